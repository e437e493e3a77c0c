"""A node that answers as a test says, by operation, and keeps every request as it came."""

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.conformance.openapi import JSON, operations
from tests.rawserver import RawConnection, Request, serve
from tests.wire_helpers import client_of
from vc_fallback.base.clock import Clock
from vc_fallback.base.types import NodeId
from vc_fallback.chain import SlotClock
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.routes import ROUTES
from vc_fallback.wire.client import HTTPClient

NO_ENDPOINT = 501


@dataclass(frozen=True)
class Reply:
    """An answer to be given."""

    status: int = 200
    body: bytes = b""
    media: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} -"]
        # RFC 9110 forbids a length with 204.
        lines += [f"Content-Length: {len(self.body)}"] if self.status != 204 else []
        lines += [f"Content-Type: {self.media}"] if self.media else []
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


def json_reply(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Return an answer in JSON."""
    return Reply(status, json.dumps(value).encode(), JSON, headers or {})


_NO_ENDPOINT = json_reply({"code": NO_ENDPOINT, "message": "Endpoint not implemented"}, status=NO_ENDPOINT)


@dataclass(frozen=True)
class Asked:
    """A request, taken apart: the operation that its path is of, the values of the template's names, its query."""

    operation: str
    place: Mapping[str, str]
    query: tuple[tuple[str, str], ...]
    request: Request


@dataclass
class Answering:
    """What the node answers by operation, one after the other, the last again; every other one it does not have."""

    replies: Mapping[str, list[Reply]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    async def handle(self, connection: RawConnection) -> None:
        while True:
            await connection.send(self.reply(await connection.request()))

    def reply(self, request: Request) -> bytes:
        """Return the answer to a request."""
        asked = take_apart(request)
        self.asked.append(asked)
        replies = self.replies.get(asked.operation, [_NO_ENDPOINT])
        return (replies.pop(0) if len(replies) > 1 else replies[0]).encode()


@dataclass
class Exchange:
    """The node's side and ours. What one call learns of the node, the next does not know."""

    node: Answering
    http: HTTPClient

    def client(self, slots: Callable[[], SlotClock | None] = lambda: None) -> BeaconNode:
        return BeaconNode(NodeId("bn1"), self.http, clock=Clock(), slots=slots)

    def answer(self, replies: Mapping[str, Sequence[Reply]]) -> None:
        """Set the answers, and forget what was asked so far."""
        self.node.replies = {operation: list(several) for operation, several in replies.items()}
        self.node.asked.clear()


@asynccontextmanager
async def exchange() -> AsyncIterator[Exchange]:
    """Listen on loopback."""
    node = Answering()
    async with serve(node.handle) as server, client_of(server) as http:
        yield Exchange(node, http)


def take_apart(request: Request) -> Asked:
    """Find the operation that a request is of.

    :raises AssertionError: when there is no such.
    """
    parts = urlsplit(request.target)
    for operation, method, pattern in _patterns():
        found = pattern.fullmatch(parts.path) if method == request.method else None
        if found is not None:
            place = {name: unquote(value) for name, value in found.groupdict().items()}
            pairs = tuple(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
            return Asked(operation, place, pairs, request)
    raise AssertionError(f"{request.method} {parts.path} is no operation")


@cache
def _patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    # The definition's own templates; of the table only those that it has no more.
    known = [(operation.name, operation.method, operation.template) for operation in operations().values()]
    known += [(r.operation, r.method, r.template) for r in ROUTES if r.operation not in operations()]
    # Templates without names come first: `/headers` is not `/{name}`.
    known.sort(key=lambda entry: entry[2].count("{"))
    return tuple((name, method, re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path))) for name, method, path in known)
