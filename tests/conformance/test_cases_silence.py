"""Cases from the field: streams that fall silent, are buffered, or are slow without a fault (cases 13, 17, 18, 41)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.harness import monitor
from tests.conformance.scripted import event, head, know, root, say_head, scripted, stalls
from vc_fallback.base.signals import HeadOutcome, StreamReason
from vc_fallback.testing import SimulatedChain, simulated_devnet

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def test_half_dead_stream_is_found_by_what_another_node_says() -> None:
    """Case 13: three events, then nothing and no close: stalled within two slots, and fresh on a new connection."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        dead, other = net
        await followed.until(131.5)
        dead.vanish()
        await followed.until(133.5)
        assert followed.healthy(dead) is False
        (stall,) = stalls(followed, dead)
        assert followed.position(stall.at) <= 133.3
        await followed.until(136.5)
        assert followed.healthy(dead) is True
        assert len(dead.opens) == 2
        assert len(other.opens) == 1
        followed.assert_every_slot_delivered(128, 136)


async def test_half_dead_stream_of_a_sole_node_is_found_by_a_poll() -> None:
    """Case 13: without another node it is the node's own head by its REST that gives the silence away."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        (dead,) = net
        await followed.until(131.5)
        dead.vanish()
        await followed.until(136.5)
        assert [stall.reason for stall in stalls(followed, dead)] == [StreamReason.HEAD_SILENCE]
        assert followed.healthy(dead) is True
        assert len(dead.opens) == 2
        assert followed.delivered_slots(since=136) == [136]


async def test_slow_events_are_one_connection() -> None:
    """Case 17: an event each 12 s and not a comment: no total and no read time-out ends it."""
    async with simulated_devnet(1, framings=["nimbus"]) as net, monitor(net) as followed:
        (node,) = net
        await followed.wait_slots(100)
        assert [record.closed for record in node.opens] == [None]
        assert len(followed.delivered_slots()) == 101


async def test_limits_follow_the_slots_of_the_node() -> None:
    """Case 17: on a chain with slots of 5 s a silent stream is found as many slots later, and no sooner."""
    async with simulated_devnet(1, slot_duration=5, slots_per_epoch=16) as net, monitor(net) as followed:
        (node,) = net
        await followed.until(66.5)
        node.silence()
        await followed.until(70)
        (stall,) = stalls(followed, node)
        # 2½ slots after the last head, and a twelfth of a slot for a head that may be under way.
        assert followed.position(stall.at) == pytest.approx(66 + 1 / 12 + 2.5 + 1 / 12, abs=0.02)


async def test_burst_out_of_a_buffer_is_not_fresh() -> None:
    """Case 18: old heads in one segment after a minute: only the newest is delivered, marked late; nothing is fresh."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await followed.until(133.2)
        burst = [event("head", head(slot, f"0x{slot:064x}")) for slot in (129, 130, 131)]
        node.send_raw(b"".join(burst))
        await anyio.sleep(3)
        (delivered,) = followed.deliveries()
        assert (delivered.slot, delivered.late) == (131, True)
        assert [outcome for _, outcome in followed.outcomes(node)] == [
            HeadOutcome.BEHIND,
            HeadOutcome.BEHIND,
            HeadOutcome.DELIVERED,
        ]
        assert followed.healthy(node) is not True
        assert "fresh" not in followed.states(node)


async def test_buffering_proxy_costs_nobody_a_head() -> None:
    """Case 18: bursts every four slots through a proxy: each slot comes from the direct node, once and in time."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        buffered, direct = net
        for slot in range(130, 150, 4):
            buffered.hold()
            await followed.until(slot + 3.9)
            buffered.resume()
            await followed.until(slot + 3.95)
        followed.assert_every_slot_delivered(128, 149)
        assert {delivered.node_id for delivered in followed.deliveries(since=131)} == {"bn2"}
        # A stall takes more than a slot to be found, and is followed by a backoff.
        assert len(buffered.opens) <= 1 + 20 / 1.5
        assert len(direct.opens) == 1


async def test_missed_slots_are_asked_about_and_cost_no_connection() -> None:
    """Case 41: five missed slots and all nodes healthy: a poll a slot, no stall, no reconnect."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        net.chain.miss(*range(131, 136))
        await followed.until(130.5)
        polls = [node.request_counts["/eth/v1/beacon/headers/head"] for node in net]
        await followed.until(135.9)
        for node, before in zip(net, polls, strict=True):
            assert 4 <= node.request_counts["/eth/v1/beacon/headers/head"] - before <= 5
            assert "stalled" not in followed.states(node)
            assert len(node.opens) == 1
        await followed.until(137.5)
        followed.assert_every_slot_delivered(128, 137)
        assert [len(node.opens) for node in net] == [1, 1]


async def test_dead_stream_after_missed_slots_is_still_found() -> None:
    """Case 41: then a stream that is dead while its node goes on: the poll shows a newer head, and it is replaced."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        say_head(node, 128)
        know(node, 128, "0x" + "a" * 64)
        await followed.until(133.2)
        assert len(node.opens) == 1
        know(node, 133, "0x" + "b" * 64)
        await followed.until(134.9)
        assert [stall.reason for stall in stalls(followed, node)] == [StreamReason.HEAD_SILENCE]
        assert [(head.slot, head.root) for head in followed.deliveries()] == [(128, root("a")), (133, root("b"))]
        assert len(node.opens) == 2
