"""What is delivered of the heads of several nodes, and how often (C1–C4, H7, H8, H13, H14)."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.acceptance.harness import known, monitor
from vc_fallback.base.signals import HeadOutcome, NodeHeadSeen
from vc_fallback.base.types import HeadSource, root_hex
from vc_fallback.testing import FramingName, SimulatedBlock, SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing import events as said

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"
HEAD = "/eth/v1/beacon/headers/head"


@asynccontextmanager
async def forked(count: int, *, above: int = 129) -> AsyncIterator[list[SimulatedNode]]:
    """Serve nodes on one chain that forks into `main` and `other` above a slot; all follow `main` at first."""
    chain = SimulatedChain(start_slot=128)
    chain.branch("other", above=above)
    nodes = [SimulatedNode(chain, name=f"bn{number + 1}") for number in range(count)]
    async with nodes[0]:
        if count == 1:
            yield nodes
            return
        async with nodes[1]:
            if count == 2:
                yield nodes
                return
            async with nodes[2]:
                yield nodes


def show(node: SimulatedNode, block: SimulatedBlock, **changed: object) -> None:
    """Say a `head` without changing what the node answers to polls."""
    node.publish("head", {**said.head(node.chain, block), **changed})


# One delivery for each change.


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
    """C3, C1: a node four slots behind is `behind` with each head, and its entry is what it shows."""
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


# Reorgs.


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


# Polls and streams.


async def test_a_poll_that_the_stream_overtook_is_no_reorg() -> None:
    """H14: the node answered with 130 before it announced 131, and the answer came after the event."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.5)
        await followed.until(131 + 0.5 / 12)
        # What it would answer now is kept for the next poll, which takes a second.
        answer = _header(node)
        node.answer(HEAD, 200, answer, times=1)
        node.latency = 1.0
        node.comment("error - dropped 1 messages")
        await followed.until(131.5)
        node.latency = 0
        assert followed.delivered_slots(since=130) == [130, 131]
        assert not [head for head in followed.deliveries() if head.reorg]
        entry = followed.entry(node)
        assert entry is not None
        assert entry.slot == 131


async def test_a_poll_that_lags_behind_the_events_is_no_reorg() -> None:
    """H14, case 51: an endpoint that is some seconds behind the node's own events, asked after the event."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(131 + 0.5 / 12)
        answer = _header(node)
        await followed.until(131.2)
        node.answer(HEAD, 200, answer)
        node.comment("error - dropped 1 messages")
        await followed.until(131.4)
        assert followed.delivered_slots(since=130) == [130, 131]
        entry = followed.entry(node)
        assert entry is not None
        assert entry.slot == 131


async def test_a_slow_poll_that_a_quick_one_overtook_is_no_reorg() -> None:
    """H14: two polls of one silent node come back in the other order than they went out."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        net.chain.delay(132, 0.6 * 12)
        await followed.until(130.5)
        node.silence()
        await followed.until(132.55)
        # The verification at 132 7/12 is answered with 131, and for 1.4 s under way.
        node.answer(HEAD, 200, _header(node), times=1)
        node.latency = 1.4
        await followed.until(132.59)
        node.latency = 0.0
        node.end_streams()
        await followed.until(132.95)
        assert [seen.slot for seen in followed.told(NodeHeadSeen, since=132.6)][:1] == [132]
        assert followed.delivered_slots(since=130) == [130, 132]


async def test_a_poll_adds_nothing_that_the_stream_knew_better() -> None:
    """C1, H14: a poll of the same block keeps dependent roots and payload status, and is no delivery."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.2)
        told = len(followed.deliveries())
        node.comment("error - dropped 1 messages")
        await followed.until(130.3)
        entry = followed.entry(node)
        assert entry is not None
        assert entry.current_epoch_dependent_root is not None
        assert entry.payload_status is not None
        assert len(followed.deliveries()) == told


# The clock.


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


# Chains that are not ours.


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


def _header(node: SimulatedNode) -> str:
    """What a node answers to a poll of its head, as of now."""
    block = node.head
    message = {
        "slot": str(block.slot),
        "proposer_index": str(block.proposer_index),
        "parent_root": root_hex(block.parent_root),
        "state_root": root_hex(block.state_root),
        "body_root": root_hex(block.body_root),
    }
    header = {"message": message, "signature": "0x" + "00" * 96}
    return said.dumps(
        {
            "execution_optimistic": False,
            "finalized": False,
            "data": {"root": root_hex(block.root), "canonical": True, "header": header},
        }
    )


def _future(chain: SimulatedChain, slot: int) -> dict[str, object]:
    return {**said.head(chain, chain.head_at(128)), "slot": str(slot)}


def _future_reorg(chain: SimulatedChain, slot: int) -> dict[str, object]:
    return {**said.chain_reorg(chain, chain.head_at(127), chain.head_at(128)), "slot": str(slot)}
