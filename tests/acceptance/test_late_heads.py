"""Heads that are early, late, or come in a burst (H13, C4)."""

import anyio
import pytest

from tests.acceptance.harness import known, monitor
from vc_fallback.base.signals import HeadOutcome
from vc_fallback.testing import SimulatedChain, simulated_devnet
from vc_fallback.testing import events as said

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("ahead", [2, 3, 1000, 2**62])
async def test_a_head_of_the_future_is_refused_and_counted(ahead: int) -> None:
    """H13: more than one slot ahead; it makes nothing fresh, moves no entry, and costs no stream."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        for topic in ("head", "head_v2"):
            first.publish(topic, _future(net.chain, 130 + ahead))
        first.publish("chain_reorg", _future_reorg(net.chain, 130 + ahead))
        await anyio.sleep(0.01)
        assert followed.outcomes(first)[-1] == (130 + ahead, HeadOutcome.FUTURE)
        entry = followed.entry(first)
        assert entry is not None
        assert entry.slot == 130
        await followed.until(134.5)
        followed.assert_every_slot_delivered(128, 134)
        assert len(first.opens) == 1


async def test_a_head_one_slot_ahead_is_taken() -> None:
    """H13, N8: our clock may be slow, or the node's fast."""
    async with simulated_devnet(1, follow=False) as net, monitor(net, chain=known(net.chain)) as followed:
        await followed.until(130.95)
        net[0].show(net.chain.head_at(131))
        await anyio.sleep(0.01)
        (head,) = followed.blocks(since=130.9)
        assert head.slot == 131
        assert head.delay == pytest.approx(-0.6, abs=0.02)
        assert not head.late


async def test_heads_far_behind_are_kept_and_never_delivered() -> None:
    """H13: more than 32 slots behind the clock is that node's truth and no news; 32 slots behind is."""
    async with simulated_devnet(1, follow=False) as net:
        net[0].show(net.chain.head_at(90))
        async with monitor(net, chain=known(net.chain)) as followed:
            await anyio.sleep(1)
            net[0].show(net.chain.head_at(95))
            await anyio.sleep(1)
            assert followed.outcomes(net[0])[-1] == (95, HeadOutcome.OLD)
            assert not followed.deliveries()
            entry = followed.entry(net[0])
            assert entry is not None
            assert entry.slot == 95
            net[0].show(net.chain.head_at(97))
            await anyio.sleep(1)
            assert followed.delivered_slots() == [97]
            assert followed.deliveries()[0].late


async def test_late_is_after_the_end_of_its_slot() -> None:
    """C4: `late` = received after the end of its slot."""
    async with simulated_devnet(1) as net:
        net.chain.delay(130, 11.9)
        net.chain.delay(131, 12.1)
        async with monitor(net) as followed:
            await followed.until(133.5)
            late = {head.slot: head.late for head in followed.blocks(since=128.05)}
            assert late == {128: False, 129: False, 130: False, 131: True, 132: False, 133: False}


async def test_of_a_late_burst_only_the_newest_is_delivered_and_marked() -> None:
    """H13, case 18: a proxy buffers for four slots, then everything comes in one segment."""
    async with simulated_devnet(1) as net, monitor(net, streams={"head_silence": None}) as followed:
        node = net[0]
        await followed.until(130.5)
        node.hold()
        await followed.until(135.02)
        node.resume()
        await followed.until(135.5)
        heads = followed.blocks(since=130.5)
        assert [(head.slot, head.late) for head in heads] == [(134, True), (135, False)]
        assert {outcome for slot, outcome in followed.outcomes(node, since=131) if slot < 134} == {HeadOutcome.BEHIND}


async def test_of_an_old_burst_in_pieces_only_the_newest_is_delivered() -> None:
    """H13: a resync shows 52 old heads one after the other, none of them current: at most the last one is news."""
    async with simulated_devnet(1, follow=False) as net:
        node = net[0]
        node.show(net.chain.head_at(70))
        async with monitor(net, chain=known(net.chain)) as followed:
            await anyio.sleep(1)
            for slot in range(71, 123):
                node.show(net.chain.head_at(slot))
                await anyio.sleep(0.01)
            await anyio.sleep(1)
            assert followed.delivered_slots() == [122]
            assert followed.deliveries()[0].late


async def test_a_late_burst_behind_another_nodes_head_is_nothing() -> None:
    """H13, scenario 57: a thawed node's burst of old heads is not delivered."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.hold()
        await followed.until(131.9)
        first.resume()
        await followed.until(133.5)
        followed.assert_every_slot_delivered(128, 133)


def _future(chain: SimulatedChain, slot: int) -> dict[str, object]:
    return {**said.head(chain, chain.head_at(128)), "slot": str(slot)}


def _future_reorg(chain: SimulatedChain, slot: int) -> dict[str, object]:
    return {**said.chain_reorg(chain, chain.head_at(127), chain.head_at(128)), "slot": str(slot)}
