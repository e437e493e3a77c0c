"""Cancelling a publish: what no byte was written of is not sent, what has begun ends within its bound (Q5, rule 5)."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.acceptance.held import SYNC_MESSAGES, held, messages, node_id, sent, to_next_slot
from vc_fallback import BroadcastResult, Encodings
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.routing import sends
from vc_fallback.testing import Delay, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

SLOT = 12.0
LARGE = Encodings(json=b'"' + b"x" * 16_000_000 + b'"')
"""More than any socket takes in."""


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> list[BroadcastResult]:
    """The results of all publishes, also of those whose callers never got one."""
    made: list[BroadcastResult] = []

    class Kept(BroadcastResult):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr(sends, "BroadcastResult", Kept)
    return made


@asynccontextmanager
async def clogged(node: SimulatedNode) -> AsyncIterator[None]:
    """Let no connection to a node be made: its accept queue is full."""
    await node.kill()
    listener = node._server._socket
    assert listener is not None
    listener.listen(0)
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.1", node.port))
    yield
    for filler in fillers:
        filler.close()


def in_use(nodes: BeaconNodeFallback, node: SimulatedNode) -> int:
    return nodes.scoped(node_id(node)).http.statistics().in_use


async def test_a_send_that_waits_for_a_connection_is_cancelled_and_a_begun_one_goes_on(
    results: list[BroadcastResult], caplog: pytest.LogCaptureFixture
) -> None:
    """Q5: what the begun one came to is logged, and in the result."""
    caplog.set_level(logging.INFO, "vc_fallback.routing")
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[0].inject(SYNC_MESSAGES, Delay(3.0))
        async with clogged(net[1]):
            with anyio.move_on_after(0.5) as scope:
                await nodes.publish_sync_committee_messages(messages(nodes, net.chain))
            assert scope.cancelled_caught
            (result,) = results
            assert in_use(nodes, net[1]) == 0
            assert result.pending == (node_id(net[0]),)
            assert result.deliveries[node_id(net[1])].words == "failed: cancelled before it began"
            assert nodes.status().nodes[0].stragglers == 1
            await anyio.sleep(3.0)
        assert result.accepted == (node_id(net[0]),)
        assert "its caller was cancelled; bn1: accepted" in caplog.text
        assert "bn2" not in caplog.text
        assert sent(net[1]) == []
        assert nodes.status().nodes[0].stragglers == 0


async def test_a_node_that_reads_nothing_is_given_up_at_the_bound(
    results: list[BroadcastResult], caplog: pytest.LogCaptureFixture
) -> None:
    """Q5: a part of it was written; the caller has gone on at once."""
    caplog.set_level(logging.INFO, "vc_fallback.routing")
    async with simulated_devnet(2) as net, held(net) as nodes:
        slot = await to_next_slot(nodes)
        for node in net:
            node.freeze()
        began = anyio.current_time()
        with anyio.move_on_after(0.5):
            await nodes.publish_sync_committee_messages([LARGE])
        assert anyio.current_time() - began == pytest.approx(0.5)
        (result,) = results
        assert {*result.pending} == {*map(node_id, net)}
        assert all(delivery.begun for delivery in result.deliveries.values())
        await result.settled()
        assert nodes.slots is not None
        assert anyio.current_time() == pytest.approx(nodes.slots.start_of(slot) + SLOT, abs=0.01)
        assert caplog.text.count("its caller was cancelled") == 2
        assert [in_use(nodes, node) <= 1 for node in net] == [True, True]
        assert nodes._runner.stragglers.total() == 0
        for node in net:
            node.thaw()


async def test_a_send_that_waits_for_its_turn_is_cancelled(results: list[BroadcastResult]) -> None:
    """Q5, case 28: behind earlier ones to the same node nothing of it has been written."""
    async with simulated_devnet(1) as net, held(net, requests={"stragglers": 2}) as nodes:
        await to_next_slot(nodes)
        net[0].inject(SYNC_MESSAGES, Delay(2.0))
        values = messages(nodes, net.chain, 2)
        async with anyio.create_task_group() as group:
            group.start_soon(nodes.publish_sync_committee_messages, values[:1])
            await anyio.sleep(0.5)
            with anyio.move_on_after(0.5):
                await nodes.publish_sync_committee_messages(values[1:])
        await anyio.sleep(3)
        assert [result.complete for result in results] == [True, False]
        assert len(sent(net[0])) == 1


async def test_cancelled_before_it_began_it_sends_nothing(results: list[BroadcastResult]) -> None:
    """Q5."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await nodes.publish_sync_committee_messages(messages(nodes, net.chain))
        await anyio.sleep(1)
        assert not [body for node in net for body in sent(node)]
        assert not nodes._runner._running


@pytest.mark.parametrize("virtual_time_backend", ["asyncio"], indirect=True)
async def test_a_native_cancellation_does_the_same(
    results: list[BroadcastResult], caplog: pytest.LogCaptureFixture
) -> None:
    """`task.cancel()` and `asyncio.timeout` of a program that knows no scope."""
    caplog.set_level(logging.INFO, "vc_fallback.routing")
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[0].inject(SYNC_MESSAGES, Delay(3.0))
        async with clogged(net[1]):
            task = asyncio.create_task(nodes.publish_sync_committee_messages(messages(nodes, net.chain)))
            await asyncio.sleep(0.5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.25):
                    await nodes.publish_sync_committee_messages(messages(nodes, net.chain, 2))
            assert [result.pending for result in results] == [(node_id(net[0]),)] * 2
            for result in results:
                await result.settled()
                assert result.accepted == (node_id(net[0]),)
        assert caplog.text.count("its caller was cancelled; bn1: accepted") == 2
