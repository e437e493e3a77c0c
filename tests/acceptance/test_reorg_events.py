"""Reorgs of the delivered chain as they are told: what left, how deep, and what it touches (C3, C11, H14, case 45).

Epochs have eight slots here, and it begins in slot 32, the first of epoch 4. The block at slot 39 fixes the duties of
epoch 6.
"""

from typing import Any

import anyio
import pytest

from tests.acceptance.harness import Followed, monitor
from vc_fallback.base.errors import SubscriptionClosed
from vc_fallback.base.signals import (
    ChainReorged,
    DependentRootChanged,
    NodeReorgSeen,
    ReorgEvidence,
    RootChange,
    Signal,
)
from vc_fallback.base.types import BlockRef, root_hex
from vc_fallback.testing import SimulatedBlock, SimulatedNode, events, simulated_devnet

pytestmark = pytest.mark.anyio

HEADER = "/eth/v1/beacon/headers/"


def reorgs(followed: Followed) -> list[ChainReorged]:
    """Return the reorgs that were told."""
    return followed.told(ChainReorged)


def at(block: SimulatedBlock) -> BlockRef:
    """Return a block as signals name it."""
    return BlockRef(block.slot, block.root)


@pytest.mark.parametrize("reorg_first", [True, False])
async def test_a_reorg_within_an_epoch(reorg_first: bool) -> None:
    """H14: old and new head, the node's depth, who said so; no duties are touched, whichever event came first."""
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=41)
        await followed.until(44.5)
        async with followed.monitor.reorgs() as subscription:
            for node in net:
                node.switch("other", reorg_first=reorg_first)
            reorg = await subscription.receive()
        assert reorgs(followed) == [reorg]
        # With both events of a node all is known at once.
        assert followed.now == pytest.approx(44.5, abs=0.01)
        old, new = followed.block(44), followed.block(44, "other")
        assert (reorg.old, reorg.new, reorg.slot, reorg.epoch) == (at(old), at(new), 44, 5)
        assert (reorg.depth, reorg.crosses_epoch, reorg.changed_roots) == (3, False, ())
        assert (reorg.touches_current_duties, reorg.touches_next_duties) == (False, False)
        assert reorg.evidence is ReorgEvidence.REPORTED
        assert reorg.node_id == reorg.provenance.node_id == followed.deliveries()[-1].node_id
        assert reorg.node_id in reorg.nodes
        assert reorg.reported_by
        assert set(reorg.reported_by) <= set(reorg.nodes) <= {"bn1", "bn2", "bn3"}
        assert not followed.told(DependentRootChanged)
        await followed.until(46.5)
        assert len(reorgs(followed)) == 1


async def test_a_reorg_over_the_boundary_of_an_epoch() -> None:
    """C11: crosses the boundary, names the root that is another, and touches the next epoch's duties."""
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=38)
        await followed.until(41.5)
        async with followed.monitor.dependent_root_changes() as changes:
            for node in net:
                node.switch("other")
            change = await changes.receive()
        await followed.until(41.6)
        (reorg,) = reorgs(followed)
        fixed = RootChange(6, followed.block(39).root, followed.block(39, "other").root)  # type: ignore[arg-type]
        assert (reorg.depth, reorg.crosses_epoch, reorg.changed_roots) == (3, True, (fixed,))
        assert (reorg.touches_current_duties, reorg.touches_next_duties) == (False, True)
        assert (change.epoch, change.old, change.new) == fixed
        assert followed.told(DependentRootChanged) == [change]


@pytest.mark.parametrize("count", [1, 3])
async def test_a_reorg_that_no_node_reports(count: int) -> None:
    """Case 45: nodes without `chain_reorg` say a head at the same slot: headers tell what it goes back to."""
    async with simulated_devnet(count, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=38)
        await followed.until(44.5)
        for node in net:
            node.switch("other", reorg_event=False)
        await followed.until(44.53)
        (reorg,) = reorgs(followed)
        assert (reorg.old, reorg.new) == (at(followed.block(44)), at(followed.block(44, "other")))
        assert (reorg.evidence, reorg.reported_by, reorg.depth) == (ReorgEvidence.SLOT, (), 6)
        assert [change.epoch for change in reorg.changed_roots] == [6]
        assert (reorg.crosses_epoch, reorg.touches_current_duties, reorg.touches_next_duties) == (True, False, True)
        assert all(sum(count for path, count in node.request_counts.items() if HEADER in path) <= 24 for node in net)


async def test_a_reorg_of_which_nothing_is_known_but_the_heads() -> None:
    """Case 45: no report, no header: told after 1/24 of a slot, with all who stand there by then; depth unknown."""
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=41)
        await followed.until(44.5)
        for node in net:
            node.answer(f"{HEADER}0x*", 404)
            node.switch("other", reorg_event=False)
        await followed.until(44.53)
        assert not reorgs(followed)
        await followed.until(44.55)
        (reorg,) = reorgs(followed)
        assert (reorg.evidence, reorg.depth, reorg.crosses_epoch) == (ReorgEvidence.SLOT, None, None)
        # The heads name the same roots: whatever left, no duties are touched.
        assert (reorg.touches_current_duties, reorg.touches_next_duties) == (False, False)
        assert set(reorg.nodes) == {node.name for node in net}
        assert all(node.request_counts[f"{HEADER}{root_hex(followed.block(44).root)}"] <= 1 for node in net)


async def test_a_reorg_of_which_nothing_but_chain_reorg_tells() -> None:
    """Case 45, H14: no head event: the new head names no roots; by the depth it is known what is touched."""
    async with simulated_devnet(2, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=41)
        net.chain.branch("deep", above=30)
        await followed.until(44.5)
        for node in net:
            node.switch("other", head_event=False)
        await followed.until(44.6)
        (reorg,) = reorgs(followed)
        assert (reorg.depth, reorg.crosses_epoch) == (3, False)
        assert (reorg.touches_current_duties, reorg.touches_next_duties) == (False, False)
        for node in net:
            node.switch("deep", head_event=False)
        await followed.until(44.7)
        reorg = reorgs(followed)[-1]
        assert (reorg.depth, reorg.crosses_epoch, reorg.changed_roots) == (14, True, ())
        # Both branches have blocks below slot 31 and from it on: which it was is not known without their headers.
        assert (reorg.touches_current_duties, reorg.touches_next_duties) == (None, None)


async def test_a_reorg_to_a_higher_slot_is_told_where_a_node_reports_it() -> None:
    """H14: a late block is left by the next one: the head is above the old one, and only `chain_reorg` tells."""
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=41)
        net.chain.miss(42, branch="other")
        await followed.until(42.5)
        for node in net:
            node.state.branch = "other"
        await followed.until(42.9)
        assert not reorgs(followed)
        await followed.until(43.5)
        # The nodes say `head` of slot 43 as of any block, and then that it was a reorg.
        old, new = followed.block(42), followed.block(43, "other")
        assert followed.delivered_roots()[-1] == new.root
        assert not reorgs(followed), "a block on top of the old head, for all that is known"
        say_reorg(net[0], old, new)
        await anyio.sleep(0.01)
        (reorg,) = reorgs(followed)
        assert (reorg.old, reorg.new, reorg.depth) == (at(old), at(new), 1)
        assert (reorg.evidence, reorg.reported_by) == (ReorgEvidence.REPORTED, ("bn1",))
        say_reorg(net[1], old, new)
        await followed.until(44.5)
        assert len(reorgs(followed)) == 1


async def test_a_late_block_that_is_left_out_is_told_without_a_report() -> None:
    """Case 45: no node reports that the next block does not come on top of it; its header shows that."""
    async with simulated_devnet(1, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=41)
        net.chain.miss(42, branch="other")
        net.chain.delay(42, 5.0)
        await followed.until(42.5)
        net[0].state.branch = "other"
        await followed.until(43.5)
        (reorg,) = reorgs(followed)
        assert (reorg.old, reorg.new) == (at(followed.block(42)), at(followed.block(43, "other")))
        assert (reorg.evidence, reorg.depth) == (ReorgEvidence.PARENTS, 1)


async def test_no_reorg_is_missed_while_someone_subscribes() -> None:
    """Case 45: the next block does not come on top of one that was in time, and no node says so; nobody else asks."""
    async with simulated_devnet(2, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=41)
        net.chain.miss(42, branch="other")
        await followed.until(40.5)
        assert not [request for node in net for request in node.requests if f"{HEADER}0x" in request.path]
        async with followed.monitor.reorgs() as subscription:
            await followed.until(42.5)
            asked = [request for node in net for request in node.requests if f"{HEADER}0x" in request.path]
            assert len(asked) == 2
            for node in net:
                node.state.branch = "other"
            reorg = await subscription.receive()
            assert (reorg.old, reorg.new) == (at(followed.block(42)), at(followed.block(43, "other")))
            assert (reorg.evidence, reorg.depth) == (ReorgEvidence.PARENTS, 1)
            assert followed.position(reorg.at) == pytest.approx(43 + 1 / 12, abs=0.01)


async def test_there_and_back_again_is_two_reorgs() -> None:
    """C3: A → B → A: told in the order of the heads, also within the time for which one is held back."""
    async with simulated_devnet(1, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=41)
        await followed.until(43.5)
        for branch in ("other", "main"):
            net[0].switch(branch, reorg_event=False)
        await followed.until(43.6)
        main, other = at(followed.block(43)), at(followed.block(43, "other"))
        assert [(reorg.old, reorg.new) for reorg in reorgs(followed)] == [(main, other), (other, main)]


async def test_what_a_node_says_that_is_not_followed_is_no_reorg() -> None:
    """C4, C5: neither of a minority, nor of a fallback behind the gate, however often it changes; each is told as its
    own word."""
    async with (
        simulated_devnet(3, slots_per_epoch=8) as net,
        monitor(net, fallbacks=[net[2]]) as followed,
    ):
        *primaries, fallback = net
        net.chain.branch("other", above=41)
        await followed.until(44.5)
        first = followed.deliveries()[-1].node_id
        odd = next(node for node in primaries if node.name != first)
        odd.switch("other")
        for branch in ("other", "main", "other"):
            fallback.switch(branch)
        await followed.until(44.7)
        assert not reorgs(followed)
        said = followed.told(NodeReorgSeen)
        names = [odd.name] + [fallback.name] * 3
        assert sorted((seen.node_id, seen.depth) for seen in said) == sorted((name, 3) for name in names)
        own = next(seen for seen in said if seen.node_id == odd.name)
        assert (own.old_root, own.new_root) == (followed.block(44).root, followed.block(44, "other").root)


async def test_a_fallback_does_not_bear_witness_behind_the_gate() -> None:
    """C5: that the delivered chain left a branch is not believed of a fallback that is held back."""
    async with (
        simulated_devnet(2, slots_per_epoch=8) as net,
        monitor(net, fallbacks=[net[1]]) as followed,
    ):
        await followed.until(44.5)
        say_reorg(net[1], followed.block(43), followed.block(44))
        await followed.until(44.7)
        assert len(followed.told(NodeReorgSeen)) == 1
        assert not reorgs(followed)
        say_reorg(net[0], followed.block(43), followed.block(44))
        await followed.until(44.8)
        (reorg,) = reorgs(followed)
        assert reorg.reported_by == (net[0].name,)


async def test_a_reorg_to_a_head_that_is_optimistic_is_told_when_it_is_valid() -> None:
    """H12, H14: `chain_reorg` says so, too: the node's own head, not the delivered one before a poll finds it valid."""
    async with simulated_devnet(1, slots_per_epoch=8) as net, monitor(net) as followed:
        (node,) = net
        net.chain.branch("other", above=41)
        await followed.until(44.5)
        node.state.optimistic = True
        node.switch("other", head_event=False)
        await followed.until(44.7)
        (seen,) = followed.told(NodeReorgSeen)
        assert seen.optimistic is True
        assert not reorgs(followed)
        assert followed.delivered_roots()[-1] == followed.block(44).root
        node.state.optimistic = False
        await followed.until(44.9)
        (reorg,) = reorgs(followed)
        assert (reorg.new, reorg.depth, reorg.reported_by) == (at(followed.block(44, "other")), 3, ("bn1",))


async def test_nodes_that_disagree_lead_from_branch_to_branch() -> None:
    """C4: who is first at each block: each time the delivered chain is another one, as headers show."""
    async with simulated_devnet(2, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=41)
        await followed.until(41.5)
        net[1].state.branch = "other"
        net[1].state.head_delay = 0.5
        net.chain.delay(44, 3.0)
        await followed.until(46.9)
        blocks = [followed.block(43), followed.block(44, "other"), followed.block(45), followed.block(46)]
        assert followed.delivered_roots(since=43) == [block.root for block in blocks]
        told = reorgs(followed)
        before, odd, after, _ = map(at, blocks)
        assert [(reorg.old, reorg.new) for reorg in told] == [(before, odd), (odd, after)]
        assert [reorg.evidence for reorg in told] == [ReorgEvidence.PARENTS] * 2
        assert [reorg.depth for reorg in told] == [2, 3]
        assert [reorg.crosses_epoch for reorg in told] == [False, False]
        assert [followed.position(reorg.at) for reorg in told] == pytest.approx([44 + 1.5 / 12, 45 + 1 / 12], abs=0.01)


async def test_a_gap_hides_no_reorg() -> None:
    """H14: a sole node that comes back on another branch: its head is higher, headers show that one left."""
    async with simulated_devnet(1, slots_per_epoch=8) as net, monitor(net) as followed:
        (node,) = net
        net.chain.branch("other", above=41)
        await followed.until(42.5)
        await node.kill()
        node.state.branch = "other"
        await followed.until(44.5)
        assert not reorgs(followed)
        node.restart()
        await followed.until(46.5)
        (reorg,) = reorgs(followed)
        assert reorg.old == at(followed.block(42))
        assert (reorg.evidence, reorg.depth) == (ReorgEvidence.PARENTS, 1)


async def test_a_gap_without_a_reorg_is_none() -> None:
    """A node that comes back after some slots, and nodes that take turns: nothing has left."""
    async with simulated_devnet(2, slots_per_epoch=8) as net, monitor(net) as followed:
        for slot in range(34, 46, 3):
            await followed.until(slot + 0.5)
            await net[slot % 2].kill()
            await followed.until(slot + 1.5)
            net[slot % 2].restart()
        await net[0].kill()
        await net[1].kill()
        await followed.until(49.5)
        net[0].restart()
        await followed.until(52.5)
        assert followed.delivered_slots()[-1] == 52
        assert not reorgs(followed)


async def test_a_subscriber_has_its_own_buffer(anyio_backend: Any) -> None:
    """C8: the oldest are dropped and counted, or the subscription is closed; the end of the monitor closes it."""
    async with simulated_devnet(1, slots_per_epoch=8) as net:
        async with monitor(net) as followed:
            net.chain.branch("other", above=41)
            await followed.until(43.5)
            few = followed.monitor.reorgs(buffer=2)
            strict = followed.monitor.reorgs(buffer=1, on_full="close")
            for branch in ("other", "main", "other"):
                net[0].switch(branch)
                await anyio.sleep(0.1)
            assert followed.monitor.dependent_root_changes().receive_nowait() is None
            told = reorgs(followed)
            assert len(told) == 3
            assert [few.receive_nowait(), few.receive_nowait(), few.receive_nowait()] == [*told[1:], None]
            assert few.statistics().dropped == 1
            assert await strict.receive() == told[0]
            with pytest.raises(SubscriptionClosed, match="buffer full"):
                await strict.receive()
            with pytest.raises(ValueError, match="buffer"):
                followed.monitor.reorgs(buffer=0)
        with pytest.raises(SubscriptionClosed):
            await few.receive()
        with pytest.raises(RuntimeError):
            followed.monitor.reorgs()


async def test_a_reorg_of_a_node_that_left_is_told_by_those_who_stay() -> None:
    """G3: stamped anew and without the node that left; not told any more where nobody is left that had shown it."""
    async with simulated_devnet(2, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=38)
        await followed.until(41.5)
        waiting, roots = followed.monitor.reorgs(), followed.monitor.dependent_root_changes()
        for node in net:
            node.answer(f"{HEADER}0x*", 404)
            node.switch("other", reorg_event=False)
        await followed.until(41.6)
        first = reorgs(followed)[0].node_id
        stays = next(node for node in net if node.name != first)
        listed = {name: member.candidate for name, member in followed.monitor.candidates.current.members.items()}
        followed.monitor.update_candidates([listed[followed.id(stays)]])
        reorg = waiting.receive_nowait()
        assert reorg is not None
        assert (reorg.node_id, reorg.nodes, reorg.generation) == (stays.name, (stays.name,), 2)
        change = roots.receive_nowait()
        assert change is not None
        assert change.nodes == (stays.name,)
        await followed.until(42.5)
        stays.switch("main")
        await followed.until(42.6)
        assert len(reorgs(followed)) == len(followed.told(DependentRootChanged)) == 2
        followed.monitor.update_candidates([])
        assert waiting.receive_nowait() is None
        assert roots.receive_nowait() is None
        assert (waiting.statistics().purged, roots.statistics().purged) == (1, 1)


async def test_observers_are_told_after_the_head() -> None:
    """The signal of a reorg follows that of its head, and one that changes the list in between costs nobody."""
    async with simulated_devnet(2, slots_per_epoch=8) as net:
        kinds: list[str] = []

        def note(signal: Signal) -> None:
            if signal.at > net.chain.slots.start_of(net.chain.head_at(44).slot):
                kinds.append(type(signal).__name__)

        async with monitor(net, observers=[note]) as followed:
            net.chain.branch("other", above=41)
            await followed.until(44.5)
            kinds.clear()
            for node in net:
                node.switch("other")
            await followed.until(44.6)
            assert kinds.index("NodeHeadSeen") < kinds.index("HeadDelivered") < kinds.index("ChainReorged")


def say_reorg(node: SimulatedNode, old: SimulatedBlock, new: SimulatedBlock) -> None:
    """Let a node report a reorg, and nothing else."""
    node.publish("chain_reorg", events.chain_reorg(node.chain, old, new))


async def test_a_report_that_headers_disprove_is_none() -> None:
    """Rule 4: one node that takes a block for a reorg to its own child tells nobody of one, where headers are known."""
    async with simulated_devnet(3) as net, monitor(net) as followed, followed.monitor.reorgs() as reorgs:
        await followed.until(131.5)
        parent, child = net.chain.block_at(130), net.chain.block_at(131)
        assert parent is not None
        assert child is not None
        net[2].publish("chain_reorg", events.chain_reorg(net.chain, parent, child))
        await followed.until(132.5)
        assert reorgs.receive_nowait() is None
