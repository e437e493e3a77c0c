"""Nodes that may have been restarted, or not, are told again, and not without end (Q14)."""

import anyio
import pytest

from tests.acceptance.held import held, node_id, to_next_slot
from tests.acceptance.preparations import PROPOSERS, REGISTRATIONS, forget, preparation, recipients, registration, told
from vc_fallback.base.signals import Signal, StreamChanged, StreamState
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio

SLOT = 12.0
PER_EPOCH = 8
EVENTS = "/eth/v1/events"
WITHOUT_EVENTS = {"roles": ["duties", "attestation", "proposal", "submission"]}


async def test_a_stream_that_is_cut_again_and_again_costs_little() -> None:
    """Q14: whom to pay is told every other slot at most, registrations once an epoch; a real restart at once."""
    async with simulated_devnet(1, slots_per_epoch=PER_EPOCH) as net, held(net) as nodes:
        (node,) = net
        node.manners.checks = "none"
        await (await nodes.register_validators([registration(1)])).settled()
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        before = anyio.current_time()
        for _ in range(18):
            node.end_streams()
            await anyio.sleep(10)
        cut = (anyio.current_time() - before) / SLOT
        assert cut / 4 <= len(told(node)) - 1 <= cut / 2 + 1
        assert 2 <= len(told(node, REGISTRATIONS)) - 1 <= cut / PER_EPOCH + 1
        await (await nodes.register_validators([registration(1)])).settled()
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        count = len(told(node)), len(told(node, REGISTRATIONS))
        await node.kill()
        forget(node)
        await anyio.sleep(4)
        node.restart()
        await anyio.sleep(SLOT)
        assert recipients(node) == {1: 1}
        assert (len(told(node)), len(told(node, REGISTRATIONS))) == (count[0] + 1, count[1] + 1)


async def test_a_node_that_gives_no_stream_is_told_once_an_epoch() -> None:
    """Q14: an attempt at a stream is no return of the node."""
    seen: list[StreamState] = []

    def observe(signal: Signal) -> None:
        if isinstance(signal, StreamChanged):
            seen.append(signal.state)

    async with (
        simulated_devnet(2, slots_per_epoch=PER_EPOCH) as net,
        held(net, observers=[observe]) as nodes,
    ):
        await to_next_slot(nodes)
        net[1].answer(EVENTS, 404)
        net[1].end_streams()
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        seen.clear()
        await anyio.sleep(2 * PER_EPOCH * SLOT)
        assert seen.count(StreamState.REQUESTED) > 5
        assert 2 <= len(told(net[1])) <= 4
        assert len(told(net[0])) == 1


@pytest.mark.parametrize("sign", ["none", "a refused connection", "a kept connection"])
async def test_a_node_without_a_stream_that_was_restarted_is_told_again(sign: str) -> None:
    """Q14: soon where a request tells of it, and in an epoch where nothing does."""
    async with simulated_devnet(2, slots_per_epoch=PER_EPOCH) as net, held(net, more={net[1]: WITHOUT_EVENTS}) as nodes:
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        await to_next_slot(nodes, into=0.05)
        await net[1].kill()
        forget(net[1])
        if sign == "a refused connection":
            with pytest.raises(Exception, match="ECONNREFUSED"):
                await nodes.scoped(node_id(net[1])).version()
        await anyio.sleep(2)
        net[1].restart()
        if sign == "a kept connection":
            # What is written to one in the moment of the restart is written once more.
            nodes.scoped(node_id(net[1])).http.reset_at = anyio.current_time()
        if sign == "none":
            await anyio.sleep(PER_EPOCH * SLOT + SLOT)
        else:
            await anyio.sleep(2 * SLOT)
        assert recipients(net[1]) == {1: 1}
        assert len(told(net[1])) <= 3
        assert len([one for one in net[0].requests if one.path == PROPOSERS]) == 1
