"""The Beacon API definition, read: its operations with every reference resolved, and validation against its schemas."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

JSON = "application/json"
SSZ = "application/octet-stream"

FOLDER = Path(__file__).parent.parent / "data" / "beacon-api"
_ROOT = FOLDER / "openapi" / "beacon-node-oapi.yaml"
_METHODS = ("get", "post")

Schema = Mapping[str, Any]

NAME = "x-name"
"""Key under which a schema that was referred to keeps its name, as in `Electra.Attestation` or `Uint64`."""

# The definition says in words only that numbers are quoted decimals: its schemas would let any text pass.
_STRICTER: Mapping[str, Mapping[str, Any]] = {
    "Uint64": {"pattern": "^(0|[1-9][0-9]{0,19})$"},
    "Uint256": {"pattern": "^(0|[1-9][0-9]{0,77})$"},
}


@dataclass(frozen=True)
class Parameter:
    """One parameter; `where` is `path`, `query` or `header`."""

    name: str
    where: str
    required: bool
    schema: Schema


@dataclass(frozen=True)
class Answer:
    """What is defined of one status: schemas and explicit examples by media type, schemas of headers by name."""

    status: int
    headers: Mapping[str, Schema]
    schemas: Mapping[str, Schema]
    examples: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Operation:
    """One operation; `bodies` are schemas of the request's body by media type."""

    name: str
    method: str
    template: str
    tags: frozenset[str]
    parameters: tuple[Parameter, ...]
    bodies: Mapping[str, Schema]
    answers: Mapping[int, Answer]

    @property
    def required(self) -> bool:
        """Whether a validator client cannot do without it."""
        return "ValidatorRequiredApi" in self.tags

    @property
    def media_types(self) -> frozenset[str]:
        """The media types in which its success is answered."""
        return frozenset(media for status, answer in self.answers.items() if status < 300 for media in answer.schemas)

    def placed(self, where: str) -> Mapping[str, Parameter]:
        """Return the parameters of one place by name."""
        return {parameter.name: parameter for parameter in self.parameters if parameter.where == where}


@cache
def operations() -> Mapping[str, Operation]:
    """Return all operations by their `operationId`, in the definition's order."""
    found = {}
    for template, item in _resolved(_ROOT, "/paths").items():
        for method in _METHODS:
            if method in item:
                operation = _operation(method, template, item[method])
                assert operation.name not in found, operation.name
                found[operation.name] = operation
    return found


@cache
def component(name: str) -> Schema:
    """Return a schema of the definition's components by its name, as in `Electra.Attestation`."""
    schema: Schema = _resolved(_ROOT, "/components/schemas")[name]
    return schema


def problems(schema: Schema, value: Any) -> list[str]:
    """Say where a value does not hold to a schema; nothing where it does."""
    # Schemas live as long as the definition, so their identity is a key.
    validator = _validator(id(schema)) if id(schema) in _known else _learn(schema)
    return [
        f"{'/'.join(map(str, error.absolute_path)) or '(whole)'}: {error.message[:200]}"
        for error in validator.iter_errors(value)
    ]


@cache
def event_examples() -> Mapping[str, str]:
    """Return the example of each event topic, its data as one line of JSON."""
    lines = (FOLDER / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return {event["topic"]: json.dumps(event["data"]) for event in map(json.loads, lines)}


_known: dict[int, Draft202012Validator] = {}


def _validator(key: int) -> Draft202012Validator:
    return _known[key]


def _learn(schema: Schema) -> Draft202012Validator:
    return _known.setdefault(id(schema), Draft202012Validator(schema))


@cache
def _file(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506


@cache
def _resolved(path: Path, pointer: str) -> Any:
    """Return what stands at a place of a file, its references replaced; what is referred to twice is one object."""
    node = _file(path)
    for step in filter(None, pointer.split("/")):
        node = node[step]
    return _replace(path, node)


def _replace(path: Path, node: Any) -> Any:
    if isinstance(node, list):
        return [_replace(path, item) for item in node]
    if not isinstance(node, dict):
        return node
    members = {key: _replace(path, value) for key, value in node.items() if key != "$ref"}
    if "$ref" not in node:
        return members
    target, _, pointer = node["$ref"].partition("#")
    whole = _resolved((path.parent / target).resolve() if target else path, pointer)
    if not members and NAME in whole:
        return whole
    name = pointer.removeprefix("/components/schemas").strip("/").replace("/", ".")
    # The innermost name stands: `Gwei` is `Uint64`. Members beside a reference override what it refers to.
    return {NAME: name, **_STRICTER.get(name, {}), **whole, **members}


def _operation(method: str, template: str, node: Mapping[str, Any]) -> Operation:
    parameters = tuple(
        Parameter(item["name"], item["in"], item.get("required", False), item["schema"])
        for item in node.get("parameters", ())
    )
    body = node.get("requestBody", {}).get("content", {})
    return Operation(
        name=node["operationId"],
        method=method.upper(),
        template=template,
        tags=frozenset(node["tags"]),
        parameters=parameters,
        bodies={media: content["schema"] for media, content in body.items()},
        answers={int(status): _answer(int(status), answer) for status, answer in node["responses"].items()},
    )


def _answer(status: int, node: Mapping[str, Any]) -> Answer:
    content = node.get("content", {})
    return Answer(
        status=status,
        headers={name: header["schema"] for name, header in node.get("headers", {}).items()},
        schemas={media: item.get("schema", {}) for media, item in content.items()},
        examples={media: _examples(item) for media, item in content.items()},
    )


def _examples(content: Mapping[str, Any]) -> Mapping[str, Any]:
    found = {name: example["value"] for name, example in content.get("examples", {}).items()}
    return {**found, "example": content["example"]} if "example" in content else found
