"""Calls that stand for all of a node's client, and a node whose answer to one request of them goes wrong."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from tests.conformance.openapi_calls import plain_reply
from tests.conformance.openapi_node import take_apart
from tests.conformance.openapi_rows import EPOCH, SIGNATURE, SLOT
from tests.rawserver import RawConnection, RawServer, Request, answer, serve
from tests.wire_helpers import Authority, client_of
from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.routes import ROUTES
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.tls import tls_context

MB = 1024 * 1024
TIMEOUT = 20.0
"""Seconds that calls have."""


@dataclass(frozen=True)
class Call:
    """One call; `operation` names the request of it that goes wrong."""

    operation: str
    method: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def template(self) -> str:
        return next(route.template for route in ROUTES if route.operation == self.operation)

    @property
    def publishes(self) -> bool:
        return self.method.startswith("publish")

    def make(self, node: BeaconNode, timeout: float) -> Awaitable[Sourced[Any]]:
        made: Awaitable[Sourced[Any]] = getattr(node, self.method)(*self.args, **self.kwargs, timeout=timeout)
        return made


_ATTESTATION = Encodings(ssz=bytes(240), json=b"{}")
CALLS = {
    call.method: call
    for call in (
        Call("produceAttestationData", "attestation_data", (SLOT,)),
        Call("getAttesterDuties", "attester_duties", (EPOCH, [1])),
        Call("produceBlockV3", "produce_block", (SLOT, SIGNATURE), {"fork": "fulu"}),
        Call("getBlockV2", "block", ("head",)),
        Call("getSyncingStatus", "syncing"),
        Call("getSpec", "identity"),
        Call("submitPoolAttestationsV2", "publish_attestations", ([_ATTESTATION] * 2, "fulu")),
        Call("publishBlockV2", "publish_block", (Encodings(ssz=bytes(30 * MB)), "fulu")),
    )
}
"""By their methods. What they answer is of every kind: containers, rows, bytes, a mapping of anything, nothing."""

_OWN = {
    "getSpec": answer(b'{"data":{"SECONDS_PER_SLOT":"12","SLOTS_PER_EPOCH":"32","PRESET_BASE":"mainnet"}}'),
    # The definition's example is of 270 KB.
    "produceBlockV3": answer(b'{"version":"fulu","execution_payload_blinded":false,"data":{"block":{"slot":"1"}}}'),
}


def good(operation: str) -> bytes:
    """Return what the node answers where nothing is wrong; 404 to what is no operation, as after a redirect."""
    if not operation:
        return answer(status="404 -")
    return _OWN[operation] if operation in _OWN else plain_reply(operation).encode()


@dataclass
class Visit:
    """One request as it comes, its body of `length` bytes still to be read."""

    connection: RawConnection
    operation: str
    request: Request
    length: int

    async def read(self) -> None:
        """Read the body, and forget it."""
        left = self.length
        while left > 0:
            data = self.connection.buffer or await self.connection.receive()
            self.connection.buffer = data[left:]
            left -= len(data)

    async def say(self, data: bytes) -> None:
        """Read the body and answer."""
        await self.read()
        await self.connection.send(data)


Trouble = Callable[[Visit], Awaitable[None]]


def say(data: bytes) -> Trouble:
    """Answer so, and take the next request."""

    async def trouble(visit: Visit) -> None:
        await visit.say(data)

    return trouble


def end(data: bytes, *, reset: bool = False) -> Trouble:
    """Answer so, and end the connection."""

    async def trouble(visit: Visit) -> None:
        await visit.say(data)
        if reset:
            await anyio.sleep(0.01)
            visit.connection.reset()
        else:
            visit.connection.finish()
            await visit.connection.until_gone()

    return trouble


@dataclass
class Troubled:
    """A node. While it has a trouble, that is what becomes of each request of one operation."""

    trouble: Trouble | None = None
    operation: str = ""
    visits: list[Visit] = field(default_factory=list)

    async def handle(self, connection: RawConnection) -> None:
        while True:
            visit = await _visit(connection)
            self.visits.append(visit)
            if self.trouble is not None and visit.operation == self.operation:
                await self.trouble(visit)
            else:
                await visit.say(good(visit.operation))


@dataclass
class Talk:
    """The node, and a client of it."""

    theirs: Troubled
    ours: BeaconNode
    server: RawServer

    @property
    def http(self) -> HTTPClient:
        return self.ours.http


@asynccontextmanager
async def talk(
    operation: str = "", trouble: Trouble | None = None, *, tls: Authority | None = None
) -> AsyncIterator[Talk]:
    """Listen, and make a client. When it is through, no connection, slot or task is left."""
    before = len(anyio.get_running_tasks())
    theirs = Troubled(trouble, operation)
    async with serve(theirs.handle, tls=None if tls is None else tls.server) as server:
        context = None if tls is None else tls_context(tls.settings)
        async with client_of(server, tls=context) as http:
            yield Talk(theirs, BeaconNode(NodeId("n1"), http, clock=Clock(), connect_timeout=TIMEOUT), server)
        with anyio.fail_after(5):
            # Only the server's own task is left: those of its connections end with them, ours with the calls.
            while len(anyio.get_running_tasks()) > before + 1:  # noqa: ASYNC110 - what is waited for has no event
                await anyio.sleep(0.01)


async def fails(asked: Talk, call: Call, error: type[NodeError], status: int | None = None) -> NodeError:
    """Make a call that is to fail so; then the same call once more, which is to work."""
    began = anyio.current_time()
    with pytest.raises(NodeError) as caught:
        await call.make(asked.ours, TIMEOUT)
    assert anyio.current_time() - began <= TIMEOUT + 0.01
    found = caught.value
    assert (type(found), found.node_id, found.endpoint, found.status) == (error, "n1", call.template, status)
    await works(asked, call)
    return found


async def works(asked: Talk, call: Call) -> None:
    """Make a call to the node, which is well by now; nothing of those before is left."""
    at_rest(asked)
    asked.theirs.trouble = None
    assert (await call.make(asked.ours, TIMEOUT)).node_id == "n1"
    at_rest(asked)


def at_rest(asked: Talk) -> None:
    """See that no slot is taken, and that there is no connection but what is kept for the next call."""
    numbers = asked.http.statistics()
    assert (numbers.in_use, numbers.waiting, numbers.streams) == (0, 0, 0)
    assert numbers.open == numbers.idle <= 1


async def _visit(connection: RawConnection) -> Visit:
    while b"\r\n\r\n" not in connection.buffer:
        connection.buffer += await connection.receive()
    head, _, connection.buffer = connection.buffer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    request = Request(method, target, headers, b"", head)
    operation = ""
    with suppress(AssertionError):
        operation = take_apart(request).operation
    return Visit(connection, operation, request, int(headers.get("content-length", "0")))
