"""When a request begins: before that, cancelling it means that the node has seen nothing of it (Q5)."""

import socket

import anyio
import httpx
import pytest

from tests.rawserver import RawConnection, answer, serve
from vc_fallback.base.clock import Clock
from vc_fallback.base.types import NodeId
from vc_fallback.base.urls import BaseURL
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.wire.client import HTTPClient

pytestmark = pytest.mark.anyio


async def test_it_is_told_on_a_new_connection_and_on_a_kept_one() -> None:
    """Once for each time that the request is written."""
    told: list[int] = []

    async def handle(connection: RawConnection) -> None:
        for _ in range(2):
            await connection.request()
            assert told
            await connection.send(answer(b"ok"))

    async with serve(handle) as server:
        client = HTTPClient(BaseURL.parse(server.url))
        for turn in (1, 2):
            await client.request("POST", "/x", body=b"y", begun=lambda: told.append(1))
            assert len(told) == turn
        client.close()


async def test_a_request_that_waits_for_a_connection_has_not_begun() -> None:
    """Cancelled while it is dialled, nothing was sent."""
    told: list[int] = []
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        client = HTTPClient(BaseURL.parse(f"http://127.0.0.1:{port}"))
        with anyio.move_on_after(0.2):
            await client.request("POST", "/x", body=b"y", begun=lambda: told.append(1), connect_timeout=5.0)
        client.close()
        for filler in fillers:
            filler.close()
    assert told == []


async def test_a_request_that_waits_for_a_slot_has_not_begun() -> None:
    """Behind others to the same node."""
    told: list[int] = []

    async def handle(connection: RawConnection) -> None:
        await connection.request()
        await anyio.sleep_forever()

    async with serve(handle) as server, anyio.create_task_group() as group:
        client = HTTPClient(BaseURL.parse(server.url), concurrency=1)
        group.start_soon(client.request, "GET", "/first")
        await anyio.sleep(0.05)
        with anyio.move_on_after(0.1):
            await client.request("POST", "/x", body=b"y", begun=lambda: told.append(1))
        group.cancel_scope.cancel()
        client.close()
    assert told == []


async def test_an_injected_transport_is_told_of_before_the_request_is_handed_over() -> None:
    """It does not say when it writes."""
    told: list[int] = []

    def handler(_: httpx.Request) -> httpx.Response:
        assert told
        return httpx.Response(200)

    client = HTTPClient(BaseURL.parse("http://node"), transport=httpx.MockTransport(handler))
    await client.request("POST", "/x", body=b"y", begun=lambda: told.append(1))


async def test_a_client_of_a_node_that_tells_is_the_same_in_everything_else() -> None:
    """Its capabilities are shared; the client that it was made of tells nothing."""
    told: list[int] = []
    transport = httpx.MockTransport(lambda _: httpx.Response(200))
    node = BeaconNode(NodeId("a"), HTTPClient(BaseURL.parse("http://node"), transport=transport), clock=Clock())
    telling = node.telling(lambda: told.append(1))
    assert telling.capabilities is node.capabilities
    await telling.publish_sync_committee_messages([Encodings(json=b"{}")])
    assert told == [1]
    await node.publish_sync_committee_messages([Encodings(json=b"{}")])
    assert told == [1]
