"""Requests to simulated nodes, their answers held against the Beacon API definition."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from tests.acceptance.raw_client import Reply, fetch
from tests.conformance.openapi import JSON, SSZ, component, operations, problems
from vc_fallback.testing import SimulatedNode

RANDAO = "0x" + "ab" * 96


def check(reply: Reply, operation: str) -> Reply:
    """See that an answer is one that the definition has for an operation: status, media type, headers, body."""
    defined = operations()[operation].answers.get(reply.status)
    assert defined is not None, (operation, reply.status, reply.body[:300])
    for name, schema in defined.headers.items():
        text = reply.headers[name.lower()]
        assert not problems(schema, json.loads(text) if schema.get("type") == "boolean" else text), (operation, name)
    media_type = reply.headers.get("content-type", "")
    if reply.status >= 300:
        if media_type == JSON and b"statusCode" not in reply.body:  # which is Lodestar's way
            # What cannot be read at all fails as a whole, also where single items could have.
            schemas = (component("ErrorMessage"), defined.schemas[JSON])
            assert not all(problems(schema, reply.json) for schema in schemas), operation
    elif media_type == JSON and JSON in defined.schemas:
        assert not problems(defined.schemas[JSON], reply.json), operation
    elif defined.schemas:
        assert media_type == SSZ, (operation, media_type)
        assert SSZ in defined.schemas, operation
    return reply


async def ask(
    node: SimulatedNode,
    operation: str,
    *,
    place: Mapping[str, object] | None = None,
    query: Sequence[tuple[str, object]] = (),
    body: object = None,
    accept: str | None = JSON,
    version: str | None = None,
    headers: Mapping[str, str] | None = None,
    within: float = 5.0,
) -> Reply:
    """Make a request of an operation and check its answer.

    :param body: bytes are sent as SSZ, everything else as JSON.
    """
    defined = operations()[operation]
    target = defined.template.format_map(place or {})
    if query:
        target += "?" + urlencode(query)
    fields = dict(headers or {})
    if accept is not None:
        fields["Accept"] = accept
    if version is not None:
        fields["Eth-Consensus-Version"] = version
    content = b""
    if defined.method == "POST":
        fields.setdefault("Content-Type", SSZ if isinstance(body, bytes) else JSON)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = await fetch(node.url, target, method=defined.method, headers=fields, body=content, within=within)
    return check(reply, operation)


async def data(node: SimulatedNode, operation: str, **request: Any) -> Any:
    """Return `data` of a success."""
    reply = await ask(node, operation, **request)
    assert reply.status == 200, (operation, reply.body[:300])
    return reply.json["data"]
