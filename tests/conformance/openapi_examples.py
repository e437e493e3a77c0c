"""Values made from the definition's schemas: of every branch, every enumerated value, out of their own examples."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance.openapi import NAME, Schema

_HEX_DIGITS = re.compile(r"^\^0x\[a-fA-F0-9]\{(\d+)(,\d*)?}\$$")
_CHOICES = ("anyOf", "oneOf")


def examples(schema: Schema, depth: int = 64) -> list[Any]:
    """Return values of a schema: a plain one first, then one more for everything that could be otherwise.

    A choice (a branch, an enumerated value, a flag) is varied alone, everything else as in the plain value.

    :param depth: how many levels of members are varied; what is deeper stays plain.
    """
    found: list[Any] = [schema["example"]] if "example" in schema else []
    if depth < 0:
        return found or _made(schema, depth)[:1]
    for value in _made(schema, depth):
        # `in` would take 1 for True.
        if not any(type(value) is type(other) and value == other for other in found):
            found.append(value)
    return found


def example(schema: Schema) -> Any:
    """Return the plain value of a schema."""
    return examples(schema, -1)[0]


def merged(schema: Schema) -> Schema:
    """Return a schema with what `allOf` has put in its place."""
    if "allOf" not in schema:
        return schema
    whole: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
    for part in map(merged, schema["allOf"]):
        properties = {**whole.get("properties", {}), **part.get("properties", {})}
        required = [*whole.get("required", ()), *part.get("required", ())]
        whole = {**part, **whole}
        if properties:
            whole = {**whole, "properties": properties, "required": required}
    return whole


def branches(schema: Schema) -> list[Schema]:
    """Return the branches that a schema leaves open, itself where it has none."""
    for choice in _CHOICES:
        if choice in schema:
            return [inner for branch in schema[choice] for inner in branches(branch)]
    return [merged(schema)]


def fixed_size(schema: Schema) -> bool:
    """Whether values of a schema have a fixed size as SSZ."""
    if schema.get(NAME) in ("BitList", "Transaction", "ExtraData"):
        return False
    if schema.get("type") == "array":
        return schema.get("minItems") == schema.get("maxItems") is not None and fixed_size(schema["items"])
    return all(fixed_size(member) for member in merged(schema).get("properties", {}).values())


def fork_of(schema: Schema) -> str:
    """Name the fork that a schema belongs to by its name, empty where that says none."""
    inner = schema.get("items", schema)
    fork, dot, _ = str(inner.get(NAME, "")).partition(".")
    return fork.lower() if dot else ""


def _made(schema: Schema, depth: int) -> list[Any]:
    open_branches = branches(schema)[: 1 if depth < 0 else None]
    if len(open_branches) > 1:
        return [value for branch in open_branches for value in examples(branch, depth)]
    schema = open_branches[0]
    if "enum" in schema:
        return list(schema["enum"])
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return _objects(schema, depth)
    if kind == "array":
        return _arrays(schema, depth)
    if kind == "boolean":
        return [False, True]
    if "example" in schema:
        return [schema["example"]]
    if kind in ("number", "integer"):
        return [schema.get("minimum", 1)]
    return [_text(schema)]


def _objects(schema: Schema, depth: int) -> list[Any]:
    values = {name: examples(member, depth - 1) for name, member in schema.get("properties", {}).items()}
    plain = {name: choice[0] for name, choice in values.items()}
    found = [plain]
    for name, choice in values.items():
        found += [_fitting(schema, {**plain, name: value}, name) for value in choice[1:]]
    required = schema.get("required", [])
    bare = {name: value for name, value in plain.items() if name in required}
    return [*found, bare] if len(bare) < len(plain) and bare else found


def _fitting(schema: Schema, value: dict[str, Any], changed: str) -> dict[str, Any]:
    """Let `version` and `data` name the same fork, whichever of them was varied."""
    members = schema["properties"]
    if not {"version", "data"} <= members.keys() or changed not in ("version", "data"):
        return value
    for branch in branches(members["data"]):
        fork = fork_of(branch)
        if changed == "version" and fork == value["version"]:
            return {**value, "data": example(branch)}
        if changed == "data" and fork in members["version"].get("enum", ()) and value["data"] == example(branch):
            return {**value, "version": fork}
    return value


def _arrays(schema: Schema, depth: int) -> list[Any]:
    items = examples(schema["items"], depth - 1)
    least = max(schema.get("minItems", 1), 1)
    found: list[Any] = [[item] * least for item in items]
    return found if schema.get("minItems") else [*found, []]


def _text(schema: Schema) -> str:
    digits = _HEX_DIGITS.match(schema.get("pattern", ""))
    if digits is not None:
        return "0x" + "0" * int(digits[1])
    return "" if schema.get("maxLength") == 0 else "text"


OTHERS: tuple[Any, ...] = (
    *(None, True, [], [[]], {}, {"other": "member"}, "", "text", "0x", "0x0", "0x1"),
    *(-1, 1.5, 1.0, 1e3, 2**64, "-1", "-0", "+1", " 1", "1 ", "01", "1_0", "1.0", "1e3", "\u0661", str(2**64)),
)
"""Of every kind of JSON, to be put where something else belongs."""


def extended(schema: Schema, value: Any) -> Any:
    """Return a value with members in it that the definition does not know, at every level it describes."""
    known = _branch(schema, value)
    if isinstance(value, dict) and "properties" in known:
        members = {name: extended(known["properties"].get(name, {}), inner) for name, inner in value.items()}
        return {"unknown_before": {"data": [1]}, **members, "unknown_after": "text"}
    if isinstance(value, list):
        return [extended(known.get("items", {}), item) for item in value]
    return value


def places(
    schema: Schema, value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    """Yield the path of every member that is described, and whether it is required."""
    known = _branch(schema, value)
    if isinstance(value, dict):
        for name, inner in known.get("properties", {}).items():
            if name in value:
                yield (*path, name), name in known.get("required", ())
                yield from places(inner, value[name], (*path, name))
    elif isinstance(value, list) and value:
        yield (*path, 0), True
        yield from places(known.get("items", {}), value[0], (*path, 0))


def without(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return a copy of a value, a member of it left out."""
    return _changed(value, path, lambda container, key: container.pop(key))


def replaced(value: Any, path: tuple[str | int, ...], other: Any) -> Any:
    """Return a copy of a value, a member of it replaced."""
    return _changed(value, path, lambda container, key: container.__setitem__(key, other))


def _changed(value: Any, path: tuple[str | int, ...], change: Any) -> Any:
    copy: Any = dict(value) if isinstance(value, Mapping) else list(value)
    if len(path) == 1:
        change(copy, path[0])
    else:
        copy[path[0]] = _changed(copy[path[0]], path[1:], change)
    return copy


def _branch(schema: Schema, value: Any) -> Schema:
    """Return the branch of a schema that a value is of: the one that has all its members."""
    open_branches = branches(schema)
    if len(open_branches) == 1 or not isinstance(value, dict):
        return open_branches[0]
    return next((branch for branch in open_branches if value.keys() == branch.get("properties", {}).keys()), {})
