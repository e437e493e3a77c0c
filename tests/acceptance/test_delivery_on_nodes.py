"""What is delivered of the heads of several nodes, and how often (C1–C3, H8)."""

import random

import anyio
import pytest

from tests.acceptance.forks import forked
from tests.acceptance.harness import monitor
from vc_fallback.base.signals import HeadOutcome, NodeHeadSeen
from vc_fallback.base.types import HeadSource
from vc_fallback.testing import FramingName, SimulatedBlock, SimulatedNode, simulated_devnet
from vc_fallback.testing import events as said

pytestmark = pytest.mark.anyio


def show(node: SimulatedNode, block: SimulatedBlock, **changed: object) -> None:
    """Say a `head` without changing what the node answers to polls."""
    node.publish("head", {**said.head(node.chain, block), **changed})


async def test_eight_nodes_with_one_head_at_one_instant_make_one_delivery() -> None:
    """Scenario 29, C3: one delivery, eight in `seen_by`."""
    async with simulated_devnet(8) as net, monitor(net) as followed:
        await followed.until(133.5)
        followed.assert_every_slot_delivered(128, 133)
        assert len(followed.deliveries(since=129)) == 5
        latest = followed.monitor.latest.value
        assert latest is not None
        assert sorted(latest.seen_by) == [f"bn{number}" for number in range(1, 9)]
        votes = followed.monitor.votes(latest.head.slot)
        assert {root: set(nodes) for root, nodes in votes.items()} == {latest.head.root: set(latest.seen_by)}


async def test_the_first_node_that_shows_a_head_delivers_it_and_later_ones_vote() -> None:
    """C3: nodes are 0, 2 and 5 seconds late; each head is delivered by the first, with the delay of its coming."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        for node, late in zip(net, (5.0, 0.0, 2.0), strict=True):
            node.state.head_delay = late
        await followed.until(133.9)
        followed.assert_every_slot_delivered(129, 133)
        for head in followed.deliveries(since=129):
            assert head.node_id == "bn2"
            assert head.delay == pytest.approx(1.0, abs=1e-3)
            assert not head.late
        outcomes = [seen.outcome for seen in followed.told(NodeHeadSeen, net[0], since=129) if seen.slot == 132]
        assert set(outcomes) == {HeadOutcome.DUPLICATE}
        latest = followed.monitor.latest.value
        assert latest is not None
        assert latest.seen_by == ("bn2", "bn3", "bn1")


@pytest.mark.parametrize("framing", ["lighthouse", "teku"])
async def test_a_node_that_says_everything_twice_says_it_once(framing: FramingName) -> None:
    """Case 11: byte-identical events back to back are one delivery."""
    async with simulated_devnet(2, framings=[framing]) as net, monitor(net) as followed:
        net[0].broadcast.duplicates = 3
        await followed.until(133.5)
        followed.assert_every_slot_delivered(128, 133)
        assert [head.slot for head in followed.deliveries(since=129)] == [129, 130, 131, 132, 133]


async def test_a_slower_nodes_old_heads_move_its_own_entry_only() -> None:
    """C1–C3: a node four slots behind is `behind` with each head, and its entry is what it shows."""
    async with simulated_devnet(2) as net:
        net[1].state.lag = 4
        async with monitor(net) as followed:
            await followed.until(134.5)
            followed.assert_every_slot_delivered(128, 134)
            assert {outcome for _, outcome in followed.outcomes(net[1], since=129)} == {HeadOutcome.BEHIND}
            entries = {node.name: followed.entry(node) for node in net}
            assert [entry.slot for entry in entries.values() if entry] == [134, 130]
            assert followed.monitor.is_latest(followed.block(134).slot)
            assert not followed.monitor.is_latest(followed.block(133).slot)


async def test_an_entry_says_where_it_is_from() -> None:
    """C1: head, dependent roots, optimistic, received at, source, generation; the snapshot does not change later."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        await followed.until(130.5)
        heads = followed.monitor.heads()
        entry = heads[followed.id(net[0])]
        block = followed.block(130)
        roots = net.chain.duty_roots(block)
        assert (entry.slot, entry.root, entry.node_id) == (130, block.root, "bn1")
        assert entry.current_epoch_dependent_root == roots.current_epoch
        assert entry.next_epoch_dependent_root == roots.next_epoch
        assert (entry.optimistic, entry.source, entry.generation) == (False, HeadSource.STREAM, 1)
        assert entry.received == net.chain.block_arrival(130)
        await followed.until(131.5)
        assert heads[followed.id(net[0])] is entry
        with pytest.raises(TypeError):
            heads[followed.id(net[0])] = entry  # type: ignore[index]


async def test_the_entry_goes_with_its_connection_and_the_delivered_head_stays() -> None:
    """H8: every end; what was delivered is not taken back, and the head is not delivered again with the reconnect."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        net.chain.miss(131, 132)
        await followed.until(130.5)
        told = len(followed.deliveries())
        for end in ("clean", "cut", "reset"):
            if end == "clean":
                node.end_streams()
            else:
                await node.cut_connections(reset=end == "reset")
            await anyio.sleep(0.01)
            assert followed.monitor.heads() == {}
            assert followed.monitor.latest.value is not None
            await anyio.sleep(3)
            assert followed.entry(node) is not None
        assert len(followed.deliveries()) == told


@pytest.mark.parametrize("slot_duration", [0.2, 1.0, 5.0, 12.0])
async def test_slots_of_any_duration(slot_duration: float) -> None:
    """Requirements, preface: the slot is the network's own."""
    async with simulated_devnet(3, slot_duration=slot_duration, latency=0.01) as net, monitor(net) as followed:
        await followed.until(129.5)
        await net[0].kill()
        net[1].silence()
        await followed.until(135.5)
        net[0].restart()
        net[1].resume()
        await followed.until(145.5)
        followed.assert_every_slot_delivered(129, 145)
        assert all(followed.healthy(node) for node in net)
        slots = followed.monitor.slots
        assert slots is not None
        assert slots.duration == slot_duration


async def test_missed_slots_are_no_deliveries() -> None:
    """Case 1: slot numbers jump."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        net.chain.miss(130, 131, 134)
        await followed.until(136.5)
        assert followed.delivered_slots(since=129) == [129, 132, 133, 135, 136]
        assert not [head for head in followed.deliveries() if head.reorg]


async def test_any_history_of_three_nodes_is_delivered_without_doubles() -> None:
    """C3: random heads of three nodes on two branches at random moments: each delivery is a change, and no root is
    delivered that no node shows."""
    rng = random.Random(7)
    async with forked(3, above=128) as nodes, monitor(nodes) as followed:
        for node in nodes:
            node.cut_off()
        await followed.until(129.0)
        for _ in range(200):
            await anyio.sleep(rng.choice((0.0, 0.01, 0.4, 3.0)))
            node = rng.choice(nodes)
            block = followed.chain.head_at(followed.slot - rng.choice((0, 0, 0, 1, 2)), rng.choice(("main", "other")))
            before = {name: head.root for name, head in followed.monitor.heads().items()}
            told = len(followed.deliveries())
            show(node, block)
            await anyio.sleep(0.001)
            for head in followed.deliveries()[told:]:
                assert head.root in {block.root, *before.values()}
        assert len(followed.deliveries()) > 50
