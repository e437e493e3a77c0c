"""Dependent roots of the delivered chain on nodes that disagree (C11; cases 31, 45, 47, 52).

Epochs have eight slots here, and it begins in slot 32, the first of epoch 4. The heads of epoch 5 name the block at
slot 39 as the one that fixes the duties of epoch 6.
"""

import anyio
import pytest

from tests.acceptance.harness import Followed, known, monitor
from vc_fallback.base.signals import DependentRootChanged
from vc_fallback.base.types import ZERO_ROOT, Epoch, NodeId, Root, Slot, root_hex
from vc_fallback.testing import SimulatedBlock, SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing import events as said

pytestmark = pytest.mark.anyio

A, B, C = (Root(letter * 32) for letter in (b"A", b"B", b"C"))


def changes(followed: Followed) -> list[tuple[int, Root, Root, tuple[NodeId, ...]]]:
    """Return the changes that were told."""
    return [(told.epoch, told.old, told.new, told.nodes) for told in followed.told(DependentRootChanged)]


def root(followed: Followed, epoch: int) -> Root | None:
    """Return the root that is known for an epoch."""
    return followed.monitor.dependent_root(Epoch(epoch))


def say(
    node: SimulatedNode,
    block: SimulatedBlock,
    *,
    current: Root | None = None,
    following: Root | None = None,
    optimistic: bool = False,
) -> None:
    """Make a block a node's head and announce it, with dependent roots that are not the chain's."""
    node.state.head = block
    data = said.head(node.chain, block, optimistic=optimistic)
    if current is not None:
        data["previous_duty_dependent_root"] = root_hex(current)
    if following is not None:
        data["current_duty_dependent_root"] = root_hex(following)
    node.publish("head", data)


async def test_epochs_that_come_change_nothing() -> None:
    """C11: the next epoch's root becomes the current one's; each is known as the nodes name it, past ones go."""
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        assert root(followed, 4) is None
        for epoch in (4, 5, 6, 7):
            await followed.until(8 * epoch + 5.5)
            named = net.chain.duty_roots(followed.block(8 * epoch + 5))
            assert root(followed, epoch) == named.current_epoch == net.chain.head_at(8 * (epoch - 1) - 1).root
            assert root(followed, epoch + 1) == named.next_epoch == net.chain.head_at(8 * epoch - 1).root
            assert root(followed, epoch + 2) is None
            assert root(followed, epoch - 2) is None
        assert changes(followed) == []


async def test_a_reorg_within_an_epoch_changes_nothing() -> None:
    """C11: the blocks that fix duties are the same on both branches."""
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=40)
        await followed.until(42.5)
        for node in net:
            node.switch("other")
        await followed.until(46.5)
        assert followed.delivered_roots()[-1] == followed.block(46, "other").root
        assert changes(followed) == []


@pytest.mark.parametrize("count", [1, 3])
async def test_a_reorg_over_the_boundary_of_an_epoch_is_one_change(count: int) -> None:
    """C11: epoch, old, new, and the nodes that report the new one; the other epoch's root stays."""
    async with simulated_devnet(count, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=38)
        await followed.until(41.5)
        fixed = root(followed, 5)
        old, new = followed.block(39).root, followed.block(39, "other").root
        assert root(followed, 6) == old
        for node in net:
            node.switch("other")
        await followed.until(41.6)
        ((epoch, was, now, nodes),) = changes(followed)
        assert (epoch, was, now) == (6, old, new)
        assert len(nodes) > count // 2
        assert set(nodes) <= {node.name for node in net}
        assert (root(followed, 5), root(followed, 6)) == (fixed, new)
        await followed.until(50.5)
        assert len(changes(followed)) == 1
        assert root(followed, 6) == new


async def test_a_reorg_that_only_one_of_three_nodes_makes_changes_nothing() -> None:
    """C11: a minority, even where the delivered head was its own; with a second node it is a change."""
    async with simulated_devnet(3, slots_per_epoch=8) as net:
        first, second, third = net
        second.state.head_delay = third.state.head_delay = 0.5
        async with monitor(net) as followed:
            net.chain.branch("other", above=38)
            await followed.until(41.5)
            old, new = followed.block(39).root, followed.block(39, "other").root
            first.switch("other")
            await followed.until(43.5)
            assert followed.block(42, "other").root in followed.delivered_roots(), "it is the first to show a block"
            assert root(followed, 6) == old
            assert changes(followed) == []
            third.switch("other")
            await followed.until(43.6)
            ((epoch, was, now, nodes),) = changes(followed)
            assert (epoch, was, now, set(nodes)) == (6, old, new, {"bn1", "bn3"})


async def test_nodes_that_health_has_demoted_have_no_say() -> None:
    """C11, case 31: two that fail their checks on another branch; where all are demoted they are heard all the same."""
    syncing = "/eth/v1/node/syncing"
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        steady, *demoted = net
        net.chain.branch("other", above=38)
        for node in demoted:
            node.answer(syncing, 503)
        await followed.until(41.5)
        old, new = followed.block(39).root, followed.block(39, "other").root
        assert root(followed, 6) == old
        for node in demoted:
            node.switch("other")
        await followed.until(43.5)
        assert root(followed, 6) == old
        assert changes(followed) == []
        steady.answer(syncing, 503)
        await followed.until(45.5)
        assert root(followed, 6) == new
        ((_, _, _, nodes),) = changes(followed)
        assert set(nodes) == {node.name for node in demoted}


async def test_nodes_that_are_behind_have_no_say() -> None:
    """C11, H5: two nodes that lost their peers keep the old root no longer than until they are found behind."""
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        first, *behind = net
        net.chain.branch("other", above=38)
        await followed.until(41.5)
        for node in behind:
            node.cut_off()
        await followed.until(44.5)
        old, new = followed.block(39).root, followed.block(39, "other").root
        assert root(followed, 6) == old
        first.switch("other")
        await followed.until(44.6)
        assert changes(followed) == [(6, old, new, ("bn1",))]


async def test_a_silent_node_has_no_say() -> None:
    """C11: its stream is stalled, and its polls name no dependent roots."""
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        silent = net.nodes[1:]
        net.chain.branch("other", above=38)
        await followed.until(41.5)
        for node in silent:
            node.silence()
            node.switch("other")
        await followed.until(44.5)
        assert changes(followed) == []
        assert root(followed, 6) == followed.block(39).root


async def test_a_reorg_without_a_head_event_changes_the_roots_with_the_next_head() -> None:
    """Case 45: `chain_reorg` alone leaves them unknown, which is no change."""
    async with simulated_devnet(2, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("other", above=38)
        await followed.until(41.5)
        old, new = followed.block(39).root, followed.block(39, "other").root
        for node in net:
            node.switch("other", head_event=False)
        await followed.until(41.9)
        assert followed.delivered_roots()[-1] == followed.block(41, "other").root
        assert changes(followed) == []
        assert root(followed, 6) == old
        await followed.until(42.5)
        assert [change[:3] for change in changes(followed)] == [(6, old, new)]


async def test_a_late_block_in_the_last_slot_of_an_epoch() -> None:
    """Case 47: the slot was empty for the first heads of the next epoch, then its block comes after all."""
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.branch("empty", above=38)
        net.chain.miss(39, branch="empty")
        await followed.until(38.5)
        for node in net:
            node.state.branch = "empty"
        await followed.until(40.5)
        before = followed.block(38).root
        assert root(followed, 6) == before
        # The late block is the head for a moment: one slot lower, and of the epoch before.
        for node in net:
            node.state.branch = "main"
            node.show(followed.block(39))
        await followed.until(40.9)
        assert followed.delivered_slots()[-1] == 39
        assert changes(followed) == []
        await followed.until(41.9)
        assert [change[:3] for change in changes(followed)] == [(6, before, followed.block(39).root)]
        assert root(followed, 6) == followed.block(39).root


async def test_a_block_that_is_merely_late_changes_nothing() -> None:
    """Case 47: 20 s late, before any head of the next epoch."""
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        net.chain.delay(39, 20)
        await followed.until(43.5)
        assert changes(followed) == []
        assert root(followed, 6) == followed.block(39).root


async def test_all_zero_roots_are_unknown() -> None:
    """C11, case 15: neither learned nor a change; another node's word for the same block counts."""
    chain = SimulatedChain(slots_per_epoch=8)
    async with (
        SimulatedNode(chain, name="bn1", follow=False) as first,
        SimulatedNode(chain, name="bn2", follow=False) as second,
        monitor([first, second], chain=known(chain)) as followed,
    ):
        await followed.until(33.5)
        say(first, chain.head_at(33), current=ZERO_ROOT, following=ZERO_ROOT)
        await anyio.sleep(0.1)
        assert followed.delivered_slots()[-1] == 33
        assert (root(followed, 4), root(followed, 5)) == (None, None)
        say(second, chain.head_at(33), current=A, following=B)
        await anyio.sleep(0.1)
        assert (root(followed, 4), root(followed, 5)) == (A, B)
        await followed.until(34.5)
        say(first, chain.head_at(34), current=ZERO_ROOT, following=B)
        await anyio.sleep(0.1)
        say(second, chain.head_at(34), current=A, following=ZERO_ROOT)
        await anyio.sleep(0.1)
        assert followed.delivered_slots()[-1] == 34
        assert (root(followed, 4), root(followed, 5)) == (A, B)
        assert changes(followed) == []


async def test_a_node_that_flaps_between_optimistic_and_not_rewrites_nothing() -> None:
    """Case 31: every 3 s, with roots A, B, A, C; the other node is steady at A, whoever shows a block first."""
    chain = SimulatedChain(slots_per_epoch=8)
    async with (
        SimulatedNode(chain, name="bn1", follow=False) as steady,
        SimulatedNode(chain, name="bn2", follow=False) as flapping,
        monitor([steady, flapping], chain=known(chain)) as followed,
    ):
        for turn in range(5):
            slot = Slot(33 + turn)
            await followed.until(slot + 0.1)
            first, then = ((steady, flapping), (flapping, steady))[turn % 2 if turn > 1 else 0]
            for node in (first, then):
                say(node, chain.head_at(slot), following=A if node is steady else (A, B, A, C)[turn % 4])
                await anyio.sleep(0.1)
            for number in range(3):
                await anyio.sleep(3)
                say(
                    flapping,
                    chain.head_at(slot),
                    following=(B, A, C)[number],
                    optimistic=number % 2 == 0,
                )
        assert followed.delivered_slots()[-1] == 37
        assert {head.node_id for head in followed.deliveries()} == {"bn1", "bn2"}
        assert changes(followed) == []
        assert root(followed, 5) == A


async def test_fleets_of_old_and_new_events_compare_equal() -> None:
    """Case 52: `previous_duty_…` is `current_epoch_…`, `current_duty_…` is `next_epoch_…`."""
    chain = SimulatedChain(slots_per_epoch=8)
    v1 = [topic for topic in said.TOPICS if topic != "head_v2"]
    v2 = [topic for topic in said.TOPICS if topic != "head"]
    async with (
        SimulatedNode(chain, name="bn1", topics=v1) as old,
        SimulatedNode(chain, name="bn2", topics=v2, unknown_topics="open", head_delay=0.2) as new,
        SimulatedNode(chain, name="bn3", head_delay=0.1) as both,
        monitor([old, new, both], chain=known(chain)) as followed,
    ):
        await followed.until(41.5)
        assert [heads.heads > 5 for heads in followed.monitor.statistics().values()] == [True] * 3
        entries = [followed.entry(node) for node in (old, new, both)]
        roots = {
            (entry.current_epoch_dependent_root, entry.next_epoch_dependent_root)
            for entry in entries
            if entry is not None
        }
        assert roots == {(root(followed, 5), root(followed, 6))}
        assert changes(followed) == []
        chain.branch("other", above=38)
        for node in (old, new, both):
            node.switch("other")
        await followed.until(43.5)
        ((epoch, _, now, nodes),) = changes(followed)
        assert (epoch, now) == (6, followed.block(39, "other").root)
        assert len(nodes) >= 2
