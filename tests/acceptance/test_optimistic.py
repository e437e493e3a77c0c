"""Optimistic heads: kept, marked, not delivered, and asked for again until they are valid (H12, scenario 38a)."""

import anyio
import pytest

from tests.acceptance.harness import Followed, known, monitor
from vc_fallback.base.signals import HeadOutcome, StreamState
from vc_fallback.base.types import HeadSource
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing import events as said

pytestmark = pytest.mark.anyio

HEAD = "/eth/v1/beacon/headers/head"


def polls(node: SimulatedNode) -> int:
    """How often a node was asked for its head."""
    return node.request_counts[HEAD]


async def optimistic_from(followed: Followed, node: SimulatedNode, position: float) -> None:
    """Wait for a position, from which on the node's heads are optimistic."""
    await followed.until(position)
    node.state.optimistic = True


@pytest.mark.parametrize("slot_duration", [0.6, 2.0, 12.0])
async def test_an_optimistic_head_is_withheld_and_delivered_when_it_is_valid(slot_duration: float) -> None:
    """H12: no event says that it became valid, so it is asked for each 1/12 slot."""
    async with simulated_devnet(1, slot_duration=slot_duration) as net, monitor(net) as followed:
        node = net[0]
        await optimistic_from(followed, node, 130.5)
        await followed.until(131.3)
        assert followed.delivered_slots()[-1] == 130
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.slot, entry.optimistic, entry.root) == (131, True, followed.block(131).root)
        assert entry.current_epoch_dependent_root is not None
        node.state.optimistic = False
        await followed.until(131.3 + 1 / 12 + 0.01)
        head = followed.deliveries()[-1]
        assert (head.slot, head.source, head.optimistic, head.late) == (131, HeadSource.POLL, False, False)
        entry = followed.entry(node)
        assert entry is not None
        assert entry.current_epoch_dependent_root is not None, "the poll has no dependent roots, and takes none away"
        asked = polls(node)
        await followed.until(131.9)
        assert polls(node) == asked, "a valid head is asked for no more"
        assert len(node.opens) == 1
        assert followed.state(node) is StreamState.FRESH


async def test_a_head_that_stays_optimistic_is_asked_for_for_one_slot() -> None:
    """H12: each 1/12 slot, for one slot from its coming."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        net.chain.miss(132, 133, 134)
        await optimistic_from(followed, node, 130.5)
        await followed.until(131.05)
        before = polls(node)
        await followed.until(132.02)
        assert polls(node) - before == 11
        await followed.until(132.2)
        asked = polls(node)
        assert 12 <= asked - before <= 13
        # Then once when a slot has passed in silence (H14).
        await followed.until(133.5)
        assert polls(node) == asked + 1
        assert 131 not in followed.delivered_slots()
        assert followed.outcomes(node, since=131).count((131, HeadOutcome.OPTIMISTIC)) >= 12


async def test_heads_that_are_all_optimistic_are_never_delivered_and_end_no_stream() -> None:
    """H12, scenario 58: an execution layer is down for twenty slots; the first valid head is delivered at once."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        for node in net:
            await optimistic_from(followed, node, 130.5)
        begun = {node.name: polls(node) for node in net}
        await followed.until(150.5)
        assert followed.delivered_slots()[-1] == 130
        for node in net:
            assert len(node.opens) == 1
            assert followed.healthy(node) is True, "the stream works (H6)"
            assert polls(node) - begun[node.name] <= 13 * 20, "one poller for each node, however many heads"
            node.state.optimistic = False
        await followed.until(152.5)
        # 150 is asked for until 151 1/12, and is valid by then.
        followed.assert_every_slot_delivered(150, 152, within=6.1)


async def test_a_valid_head_of_another_node_is_delivered_at_once() -> None:
    """H12, C2: an optimistic head holds nobody up and is no node's vote."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first = net[0]
        await optimistic_from(followed, first, 130.5)
        await followed.until(131.5)
        latest = followed.monitor.latest.value
        assert latest is not None
        assert set(latest.seen_by) == {"bn2", "bn3"}
        votes = followed.monitor.votes(latest.head.slot)
        assert list(votes) == [latest.head.root]
        assert set(votes[latest.head.root]) == {"bn2", "bn3"}
        first.state.optimistic = False
        await followed.until(131.7)
        assert set(latest.seen_by) == {"bn1", "bn2", "bn3"}, "it votes as soon as it is valid"
        assert len([head for head in followed.deliveries() if head.slot == 131]) == 1
        followed.assert_every_slot_delivered(128, 131)


async def test_an_optimistic_head_above_the_delivered_one_is_not_eligible() -> None:
    """C2: `is_latest` looks at eligible entries only."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first, second = net
        second.state.head_delay = 6
        await optimistic_from(followed, first, 130.6)
        await followed.until(131.3)
        assert followed.entry(first) is not None
        assert followed.monitor.is_latest(followed.block(130).slot)
        await followed.until(131.7)
        assert not followed.monitor.is_latest(followed.block(130).slot)
        followed.assert_every_slot_delivered(131, 131, within=6)


@pytest.mark.parametrize("field", ["absent", "null"])
async def test_a_missing_flag_is_unknown_and_counts_as_not_optimistic(field: str) -> None:
    """H12, case 1: nodes of 2022 do not say."""
    async with simulated_devnet(1, follow=False) as net, monitor(net, chain=known(net.chain)) as followed:
        node = net[0]
        await followed.until(130.1)
        data = dict(said.head(net.chain, followed.block(130)))
        if field == "absent":
            del data["execution_optimistic"]
        else:
            data["execution_optimistic"] = None
        node.publish("head", data)
        await anyio.sleep(0.01)
        assert followed.deliveries()[-1].slot == 130
        assert followed.deliveries()[-1].optimistic is None


async def test_optimistic_heads_can_be_delivered() -> None:
    """H12: configurable."""
    async with simulated_devnet(1) as net, monitor(net, heads={"deliver_optimistic": True}) as followed:
        node = net[0]
        await optimistic_from(followed, node, 130.5)
        await followed.until(133.5)
        followed.assert_every_slot_delivered(128, 133)
        assert [head.optimistic for head in followed.blocks() if head.slot >= 131] == [True] * 3
        assert polls(node) <= 2


async def test_an_older_head_that_becomes_valid_late_is_nothing_beside_a_newer_one() -> None:
    """H12, C3: another node's head has been delivered meanwhile."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first, second = net
        first.state.head_delay = 0.5
        await optimistic_from(followed, first, 130.5)
        first.cut_off()
        await followed.until(133.5)
        first.state.optimistic = False
        await followed.until(134.5)
        followed.assert_every_slot_delivered(128, 134)
        assert not [head for head in followed.deliveries() if head.reorg]
        assert len(second.opens) == len(first.opens) == 1


async def test_a_reorg_to_an_optimistic_block_is_withheld_until_it_is_valid() -> None:
    """H12, H7: by `head` and by `chain_reorg`; the delivered head stays until then."""
    chain = SimulatedChain(start_slot=128)
    chain.branch("other", above=129)
    async with SimulatedNode(chain, name="bn1") as node, monitor([node]) as followed:
        await followed.until(130.3)
        node.state.optimistic = True
        node.switch("other")
        await followed.until(130.5)
        assert followed.delivered_roots()[-1] == followed.block(130).root
        entry = followed.entry(node)
        assert entry is not None
        assert entry.root == followed.block(130, "other").root
        node.state.optimistic = False
        await followed.until(130.6)
        assert followed.delivered_roots()[-2:] == [followed.block(130).root, followed.block(130, "other").root]
        assert followed.deliveries()[-1].reorg


async def test_primaries_with_optimistic_heads_give_way_to_a_fallback_within_a_slot() -> None:
    """Scenario 38a, C5: and take the gate again when they are valid."""
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first, second, fallback = net
        await followed.until(131.5)
        assert {head.node_id for head in followed.deliveries(since=129)} <= {"bn1", "bn2"}
        begun = followed.now
        first.state.optimistic = second.state.optimistic = True
        await followed.until(135.5)
        heads = followed.blocks(since=begun)
        # 131 is one slot behind the tip of 132, so the gate opens with 133 and not before.
        assert [head.slot for head in heads][-3:] == [133, 134, 135]
        assert {head.node_id for head in heads} == {"bn3"}
        assert followed.position(heads[0].at) == pytest.approx(133 + 1 / 12, abs=0.001), "within a slot"
        first.state.optimistic = second.state.optimistic = False
        await followed.until(138.5)
        assert {head.node_id for head in followed.blocks(since=136.5)} <= {"bn1", "bn2"}
        assert (138, HeadOutcome.TIER) in followed.outcomes(fallback) or (
            138,
            HeadOutcome.DUPLICATE,
        ) in followed.outcomes(fallback)
        slots = followed.delivered_slots()
        assert slots == sorted(set(slots))
        assert set(slots) >= set(range(133, 139))
