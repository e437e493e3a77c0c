"""What is wrong with a request by the definition."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.conformance.openapi import JSON, SSZ, Operation, Parameter, Schema, operations, problems
from tests.conformance.openapi_node import Asked

# Headers that every request may have: HTTP's own, not of the definition.
_OF_HTTP = {"host", "user-agent", "accept", "accept-encoding", "cache-control", "content-length", "content-type"}


def violations(asked: Asked) -> list[str]:
    """Say in which respects a request of a defined operation does not hold to its definition."""
    operation = operations()[asked.operation]
    return [
        *_of_values("path", operation.placed("path"), {name: [value] for name, value in asked.place.items()}),
        *_of_values("query", operation.placed("query"), _grouped(asked.query)),
        *_of_headers(operation, asked.request.headers),
        *_of_body(operation, asked),
        *_of_accept(operation, asked.request.headers.get("accept", JSON)),
    ]


def accepted(header: str) -> Mapping[str, float]:
    """Read an `Accept` header: weights by media type."""
    found = {}
    for part in header.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        weights = [float(value.removeprefix("q=")) for value in parameters if value.startswith("q=")]
        found[media] = weights[0] if weights else 1.0
    return found


def _of_values(where: str, defined: Mapping[str, Parameter], given: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, parameter in defined.items():
        if name not in given:
            if parameter.required:
                yield f"{where}: {name} is missing"
            continue
        value = _read(parameter.schema, given[name])
        yield from (f"{where} {name}: {problem}" for problem in problems(parameter.schema, value))
    yield from (f"{where}: {name} is not known" for name in given.keys() - defined.keys())


def _of_headers(operation: Operation, headers: Mapping[str, str]) -> Iterator[str]:
    defined = {name.lower(): parameter for name, parameter in operation.placed("header").items()}
    given = {name: [value] for name, value in headers.items() if name not in _OF_HTTP}
    yield from _of_values("header", defined, given)


def _of_body(operation: Operation, asked: Asked) -> Iterator[str]:
    body, headers = asked.request.body, asked.request.headers
    media = headers.get("content-type")
    if not operation.bodies:
        if body or media is not None:
            yield "body: there is one"
        return
    if media not in operation.bodies:
        yield f"body: its type is {media}"
    elif media == JSON:
        try:
            value = json.loads(body, parse_float=_refuse, parse_constant=_refuse)
        except ValueError as error:
            yield f"body: {error}"
        else:
            yield from (f"body: {problem}" for problem in problems(operation.bodies[JSON], value))
    elif not body:
        yield "body: it is empty"


def _of_accept(operation: Operation, header: str) -> Iterator[str]:
    wanted = accepted(header)
    # Where a success has no body, what is accepted is the form of errors.
    offered = operation.media_types or {JSON}
    if not any(wanted.get(media, 0) > 0 for media in offered):
        yield f"accept: {header} for {sorted(offered)}"
    yield from (f"accept: {media} is not offered" for media in wanted if media not in offered)
    if wanted.get(SSZ, 0) > 0 and wanted.get(JSON, 0) >= wanted[SSZ]:
        yield "accept: SSZ is not preferred"


def _grouped(pairs: Sequence[tuple[str, str]]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _read(schema: Schema, values: Sequence[str]) -> Any:
    """Read a parameter: an array is repeated (`form`, exploded), everything else stands once."""
    if schema.get("type") == "array":
        return list(values)
    if len(values) != 1:
        return list(values)
    text = values[0]
    if schema.get("type") == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if schema.get("type") == "integer":
        return int(text) if text.isdecimal() else text
    return text


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no number of the Beacon API")
