"""Reorgs and branches: whose head is followed, and what a vote is (C3, C4, H7, H14)."""

import pytest

from tests.acceptance.forks import forked
from tests.acceptance.harness import monitor
from vc_fallback.base.signals import HeadOutcome
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio


async def test_there_and_back_again_is_three() -> None:
    """C3: A → B → A of the node that is followed are three deliveries, each told as a reorg."""
    async with forked(1) as (node,), monitor([node]) as followed:
        await followed.until(130.3)
        node.switch("other")
        await followed.until(130.5)
        node.switch("main")
        await followed.until(130.7)
        main, other = followed.block(130).root, followed.block(130, "other").root
        assert followed.delivered_roots(since=130) == [main, other, main]
        assert [head.reorg for head in followed.blocks(since=130)] == [False, True, True]


@pytest.mark.parametrize("reorg_first", [True, False])
@pytest.mark.parametrize("head_event", [True, False])
async def test_a_reorg_is_told_once_whichever_events_tell_it(reorg_first: bool, head_event: bool) -> None:
    """H14, case 45: `head`, `chain_reorg`, or both in either order."""
    async with forked(1) as (node,), monitor([node]) as followed:
        await followed.until(130.5)
        node.switch("other", reorg_first=reorg_first, head_event=head_event)
        await followed.until(130.7)
        assert followed.delivered_roots(since=130) == [followed.block(130).root, followed.block(130, "other").root]
        assert followed.deliveries()[-1].reorg


async def test_a_reorg_to_a_lower_slot_is_followed() -> None:
    """H7, case 45: the last head is the latest, not the highest; the slots after it are delivered as they come."""
    chain = SimulatedChain(start_slot=128)
    chain.branch("other", above=130)
    chain.miss(131, 132, branch="other")
    async with SimulatedNode(chain, name="bn1") as node, monitor([node]) as followed:
        await followed.until(132.5)
        node.switch("other")
        await followed.until(134.5)
        assert followed.delivered_slots(since=130) == [130, 131, 132, 130, 133, 134]
        assert followed.delivered_roots(since=133) == [followed.block(s, "other").root for s in (133, 134)]
        entry = followed.entry(node)
        assert entry is not None
        assert entry.root == followed.block(134, "other").root
        assert not followed.ends(node)


async def test_a_node_that_went_back_is_stalled_like_any_other() -> None:
    """H7: a lower head keeps detection working: silent after it, the node is verified against it."""
    chain = SimulatedChain(start_slot=128)
    chain.branch("other", above=130)
    chain.miss(131, 132, branch="other")
    async with SimulatedNode(chain, name="bn1") as node, monitor([node]) as followed:
        await followed.until(132.5)
        node.switch("other")
        node.silence()
        await followed.until(136.5)
        assert "stalled" in followed.states(node)


async def test_at_one_slot_another_head_takes_more_votes_or_the_node_of_the_first() -> None:
    """C4: a node on its own branch is `behind`; a second node with it makes two against one; `votes` tells."""
    async with forked(3) as nodes, monitor(nodes) as followed:
        first, second, third = nodes
        await followed.until(129.5)
        third.state.branch = "other"
        second.state.head_delay = third.state.head_delay = 0.5
        await followed.until(130.3)
        main, other = followed.block(130).root, followed.block(130, "other").root
        assert followed.outcomes(third)[-1] == (130, HeadOutcome.BEHIND)
        votes = followed.monitor.votes(followed.block(130).slot)
        assert {root: set(names) for root, names in votes.items()} == {main: {"bn1", "bn2"}, other: {"bn3"}}
        second.switch("other")
        await followed.until(130.5)
        assert followed.delivered_roots(since=130) == [main, other]
        first.switch("other")
        await followed.until(130.7)
        assert followed.delivered_roots(since=130) == [main, other]
        latest = followed.monitor.latest.value
        assert latest is not None
        assert set(latest.seen_by) == {"bn1", "bn2", "bn3"}


async def test_two_branches_go_on_without_flapping() -> None:
    """C4, case 43: two nodes on one branch, one later on the other: one delivery a slot."""
    async with forked(3) as nodes, monitor(nodes) as followed:
        await followed.until(129.5)
        nodes[2].state.branch = "other"
        nodes[2].state.head_delay = 0.5
        await followed.until(136.9)
        assert followed.delivered_slots(since=130) == list(range(130, 137))
        assert followed.delivered_roots(since=130) == [followed.block(slot).root for slot in range(130, 137)]


async def test_the_lonely_branch_shows_first_and_is_outvoted() -> None:
    """C4: the wrong node is quicker: its head is delivered for its slot, and replaced by the majority's."""
    async with forked(3) as nodes, monitor(nodes) as followed:
        await followed.until(129.5)
        nodes[0].state.branch = "other"
        for node in nodes[1:]:
            node.state.head_delay = 0.5
        await followed.until(132.9)
        expected = []
        for slot in (130, 131, 132):
            expected += [followed.block(slot, "other").root, followed.block(slot).root]
        assert followed.delivered_roots(since=130) == expected


async def test_a_vote_is_a_nodes_present_head() -> None:
    """C4: who has moved on votes for nothing at that slot any more."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        await followed.until(130.5)
        slot = followed.block(130).slot
        assert [len(nodes) for nodes in followed.monitor.votes(slot).values()] == [3]
        net[0].cut_off()
        await followed.until(131.5)
        assert followed.monitor.votes(slot) == {followed.block(130).root: ("bn1",)}
