"""The watchdog: stalled, behind or missed slots, and the three clocks of a head stream (H5–H7)."""

import json
from itertools import pairwise

import anyio
import pytest

from tests.acceptance.harness import Followed, known, monitor
from vc_fallback.base.signals import HeadOutcome, StreamState
from vc_fallback.base.types import HeadSource, root_hex
from vc_fallback.testing import Delay, FramingName, SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing import events as said

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"
HEAD = "/eth/v1/beacon/headers/head"

DURATIONS = [0.2, 1.0, 2.0, 5.0, 12.0]


def stalls(followed: Followed, node: SimulatedNode) -> list[float]:
    """When a node's stream was found stalled, in slots."""
    return [followed.position(change.at) for change in followed.changes(node) if change.state is StreamState.STALLED]


def assert_undisturbed(followed: Followed, *nodes: SimulatedNode) -> None:
    """Nobody's stream was found stalled, ended or opened anew."""
    for node in nodes:
        assert not stalls(followed, node), node.name
        assert not followed.ends(node), node.name
        assert [record.closed for record in node.opens] == [None], node.name


# Head silence: stalled.


@pytest.mark.parametrize(("slot_duration", "comments"), [(0.2, True), (2.0, False), (12.0, True), (12.0, False)])
async def test_a_silent_stream_beside_others_is_stalled_at_the_end_of_the_missed_slot(
    slot_duration: float, comments: bool
) -> None:
    """Scenarios 10, 11, H5: others have announced 131, this one has not by its end; comments hide nothing."""
    async with simulated_devnet(3, slot_duration=slot_duration) as net, monitor(net) as followed:
        first, *others = net
        await followed.until(130.5)
        assert followed.healthy(first) is True
        first.silence(comments=comments)
        with anyio.move_on_after(1.9 * slot_duration):
            while comments:
                first.comment("still here")
                await anyio.sleep(slot_duration / 4)
        await followed.until(132.4)
        # The node has the head itself, so a twelfth of a slot is left for it to come by the stream.
        assert stalls(followed, first) == [pytest.approx(132 + 1 / 12, abs=0.01)]
        assert followed.changes(first, since=130.5)[0].reason.value == "head_silence"
        assert followed.healthy(first) is False
        await followed.until(138.5)
        followed.assert_every_slot_delivered(129, 138)
        assert followed.healthy(first) is False
        for node in others:
            assert followed.healthy(node) is True
        assert_undisturbed(followed, *others)
        first.resume()
        await followed.until(141.5)
        assert followed.healthy(first) is True
        assert followed.state(first) is StreamState.FRESH


@pytest.mark.parametrize("slot_duration", DURATIONS)
async def test_a_sole_silent_stream_is_stalled_after_two_and_a_half_slots(slot_duration: float) -> None:
    """H5: verified 2½ slots after its last head; its own poll is newer than its stream → stalled, reconnect."""
    async with simulated_devnet(1, slot_duration=slot_duration) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.5)
        node.silence()
        await followed.until(133.9)
        last = 130 + 1 / 12
        assert stalls(followed, node) == [pytest.approx(last + 2.5 + 1 / 12, abs=0.01)]
        assert len(node.opens) == 2
        # What the poll showed is delivered meanwhile (H14), from the moment of the verification on.
        assert followed.delivered_slots()[-1] >= 132
        assert followed.deliveries()[-1].source is HeadSource.POLL
        assert followed.healthy(node) is False
        node.resume()
        await followed.until(136.5)
        assert followed.healthy(node) is True


@pytest.mark.parametrize("framing", ["lighthouse", "lodestar"])
async def test_a_frozen_node_is_stalled_by_its_silence_to_the_poll(framing: FramingName) -> None:
    """H5: own poll fails while others are newer → stalled; thawed, only a current head renews it (H6)."""
    async with simulated_devnet(3, framings=[framing]) as net, monitor(net) as followed:
        first, *others = net
        await followed.until(130.5)
        first.freeze()
        await followed.until(132.4)
        assert stalls(followed, first) == [pytest.approx(132 + 1.5 / 12, abs=0.01)]
        assert followed.changes(first, since=130.5)[0].detail == "no answer while other nodes have newer heads"
        await followed.until(145.5)
        followed.assert_every_slot_delivered(128, 145)
        thawed = followed.now
        first.thaw()
        await anyio.sleep(1)
        assert followed.healthy(first) is False
        await followed.until(147.5)
        fresh = [change for change in followed.changes(first, since=thawed) if change.state is StreamState.FRESH]
        assert followed.position(fresh[0].at) == pytest.approx(146 + 1 / 12, abs=0.01)
        assert not stalls(followed, others[0])
        followed.assert_every_slot_delivered(128, 147)


async def test_a_sole_frozen_node_is_nobodys_stall_and_is_followed_again_when_it_thaws() -> None:
    """H5: nobody is newer, so its failing polls mean nothing; its head comes with the thaw."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.5)
        node.freeze()
        await followed.until(134.5)
        assert not stalls(followed, node)
        assert len(node.opens) == 1
        node.thaw()
        await followed.until(137.5)
        assert followed.healthy(node) is True
        assert followed.delivered_slots()[-1] == 137


async def test_a_stalled_stream_stays_stalled_until_a_current_head() -> None:
    """H6: the time of the last head survives a reconnect; no response, old head, comment or poll renews it."""
    async with simulated_devnet(2, framings=["prysm"]) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.silence()
        await followed.until(132.5)
        assert followed.healthy(first) is False
        begun = followed.now
        for slot in range(120, 130):
            first.broadcast.resume()
            first.publish("head", said.head(net.chain, net.chain.head_at(slot)))
            first.broadcast.silence(comments=True)
            first.comment("here")
            await anyio.sleep(0.5)
        assert "open" in followed.states(first, since=begun) or followed.state(first) is StreamState.OPEN
        assert followed.healthy(first) is False
        assert {change.subscription_healthy for change in followed.changes(first, since=begun)} <= {False}
        first.resume()
        first.publish("head", said.head(net.chain, first.head))
        await anyio.sleep(0.1)
        assert followed.healthy(first) is True


async def test_every_stall_is_followed_by_a_longer_wait() -> None:
    """H4, H5: a node whose events never work is connected again and again, with the backoff between, for ever."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        first.silence()
        await followed.until(170)
        waits = followed.waits(first)
        assert [end.reason.value for end in followed.ends(first)] == ["head_silence"] * len(waits)
        assert len(waits) >= 10
        assert waits[4] > 12.7
        # Checks of the node are good, so the wait is that of a check at most; a slot and more goes by until each stall.
        assert len(first.opens) <= 22
        followed.assert_every_slot_delivered(129, 169)


# Head silence: not stalled.


async def test_a_node_that_is_behind_is_not_stalled_and_keeps_its_connection() -> None:
    """H5: own head not newer than its stream, others newer → *behind*: no reconnect, until it is back."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first, *others = net
        await followed.until(130.5)
        asked = first.request_counts[HEAD]
        first.cut_off()
        await followed.until(138.5)
        assert_undisturbed(followed, *net)
        assert followed.monitor.cache.ledger.nodes[followed.id(first)].stream.behind
        # One poll a slot at most (H5).
        assert 1 <= first.request_counts[HEAD] - asked <= 8
        first.rejoin()
        await followed.until(142.5)
        assert_undisturbed(followed, *net)
        assert not followed.monitor.cache.ledger.nodes[followed.id(first)].stream.behind
        assert all(followed.healthy(node) for node in net)
        followed.assert_every_slot_delivered(128, 142)
        assert not [node for node in others if followed.monitor.cache.ledger.nodes[followed.id(node)].stream.behind]


@pytest.mark.parametrize("answers", [True, False])
async def test_a_current_head_that_comes_while_its_node_is_asked_goes_before_the_answer(answers: bool) -> None:
    """H5, H6: each head comes 1.2 s after its slot, within the poll for it, which is answered with an older one or not.

    The node is neither behind nor stalled by that poll: its stream has just said otherwise.
    """
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.state.head_delay = 12.2
        first.latency = 1.4
        if answers:
            old = {"root": root_hex(followed.block(130).root), "header": {"message": {"slot": "130"}}}
            first.answer(HEAD, 200, json.dumps({"data": old}))
        else:
            first.hang(HEAD)
        for slot in range(132, 137):
            await followed.until(slot + 1.6 / 12)
            assert followed.outcomes(first)[-1] == (slot - 1, HeadOutcome.BEHIND)
            assert not followed.monitor.cache.ledger.nodes[followed.id(first)].stream.behind
        assert_undisturbed(followed, *net)
        followed.assert_every_slot_delivered(128, 136)


@pytest.mark.parametrize(("count", "slot_duration"), [(1, 12.0), (3, 0.2), (3, 1.0), (3, 12.0)])
async def test_seven_missed_slots_are_nothing(count: int, slot_duration: float) -> None:
    """Scenario 18: seven missed slots on every node, all healthy → no stall verdict, no reconnect, no word of it."""
    async with simulated_devnet(count, slot_duration=slot_duration) as net, monitor(net) as followed:
        net.chain.miss(*range(131, 138))
        await followed.until(130.5)
        begun = followed.now
        await followed.until(138.05)
        for node in net:
            assert followed.changes(node, since=begun) == []
        assert followed.deliveries(since=begun) == []
        for node in net:
            assert followed.healthy(node) is True
        await followed.until(139.5)
        assert_undisturbed(followed, *net)
        followed.assert_every_slot_delivered(129, 139)


async def test_a_head_that_only_a_reorg_event_told_is_told() -> None:
    """H5, H14, case 45: the node's own head is newer than its last `head` event, and its stream has said so."""
    chain = SimulatedChain(start_slot=128)
    chain.miss(131, 132, 133)
    chain.branch("other", above=130)
    chain.miss(132, 133, branch="other")
    first, second = SimulatedNode(chain, name="bn1"), SimulatedNode(chain, name="bn2", branch="other")
    async with first, second, monitor([first, second]) as followed:
        await followed.until(131.5)
        first.switch("other", head_event=False)
        await followed.until(133.9)
        assert first.request_counts[HEAD] >= 2
        assert_undisturbed(followed, first, second)
        # A reorg event is no head liveness for all that (rule 2): the stream is verified each slot.
        first.silence()
        await followed.until(136.5)
        assert stalls(followed, first)


async def test_a_late_block_is_no_stall() -> None:
    """H5: a head that one node has at the very end of its slot reaches the other by the verification, or soon after."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first, second = net
        for slot in (131, 132, 133):
            net.chain.delay(slot, 11.9)
        first.state.head_delay = 0.5
        await followed.until(136.5)
        assert_undisturbed(followed, first, second)
        assert all(followed.healthy(node) for node in net)


async def test_a_stream_that_is_a_slot_later_than_the_others_is_verified_and_left_alone() -> None:
    """H5: a node whose blocks come 1.4 slots late has no newer head than its stream when it is asked."""
    async with simulated_devnet(3) as net:
        first = net[0]
        first.state.head_delay = 1.4 * 12
        async with monitor(net) as followed:
            await followed.until(142.5)
            assert_undisturbed(followed, *net)


async def test_a_new_connection_has_a_slot_of_its_own_before_it_is_verified_by_others() -> None:
    """H5: a node that connected after a head was announced cannot have announced it."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        await first.kill()
        await followed.until(131.3)
        first.restart()
        await followed.until(131.9)
        assert len(first.streams) == 1
        asked = first.request_counts[HEAD]
        await followed.until(132.04)
        assert first.request_counts[HEAD] == asked
        await followed.until(134.5)
        assert not stalls(followed, first)


async def test_a_quiet_chain_costs_a_poll_a_slot() -> None:
    """H5, rule 6: however many streams there are whose clocks run out at different moments."""
    async with simulated_devnet(6) as net, monitor(net) as followed:
        for number, node in enumerate(net):
            node.state.head_delay = number / 2
        net.chain.miss(*range(131, 138))
        await followed.until(132)
        asked = [node.request_counts[HEAD] for node in net]
        await followed.until(138)
        for node, before in zip(net, asked, strict=True):
            assert 5 <= node.request_counts[HEAD] - before <= 6


# The hard clock.


@pytest.mark.parametrize(
    ("framing", "slot_duration"), [("lighthouse", 12.0), ("lighthouse", 0.5), ("lodestar", 12.0), ("nimbus", 2.0)]
)
async def test_from_the_ninth_missed_slot_one_node_after_the_other_is_connected_anew(
    framing: FramingName, slot_duration: float
) -> None:
    """Scenario 18, H5: make before break, one node at a time, jittered, and no stall."""
    async with simulated_devnet(4, framings=[framing], slot_duration=slot_duration) as net, monitor(net) as followed:
        net.chain.miss(*range(131, 147))
        await followed.until(138.5)
        assert_undisturbed(followed, *net)
        # The last head came at 130 1/12, the first new connection is there within half a slot of 138 7/12.
        await followed.until(146.5)
        replaced = []
        for node in net:
            assert not stalls(followed, node)
            assert not followed.ends(node)
            assert followed.healthy(node) is True
            assert len(node.opens) == 2
            old, new = node.opens
            assert old.closed is not None
            assert new.opened <= old.closed, "the new connection is open before the old one closes"
            assert new.closed is None
            replaced.append((followed.position(new.opened), followed.position(old.closed)))
        replaced.sort()
        assert 138 + 7 / 12 <= replaced[0][0] <= 138 + 13 / 12 + 0.01
        for (_, before), (after, _) in pairwise(replaced):
            assert before <= after, "one node at a time"
        assert len({round(opened, 6) for opened, _ in replaced}) == 4
        for node in net:
            assert followed.reasons(node).count("hard_clock") == 1
            node_heads = node.request_counts[HEAD]
            assert node_heads >= 2
        await followed.until(149.5)
        followed.assert_every_slot_delivered(147, 149)
        assert all(followed.healthy(node) for node in net)


async def test_a_replaced_connection_is_one_connect_in_every_other_respect() -> None:
    """H14, H15: the head and the identity are asked for at a replacement too."""
    async with simulated_devnet(1) as net, monitor(net, streams={"head_silence": None}) as followed:
        node = net[0]
        net.chain.miss(*range(131, 145))
        await followed.until(138.5)
        asked = node.request_counts[HEAD], node.request_counts["/eth/v1/beacon/genesis"]
        await followed.until(140.5)
        assert len(node.opens) == 2
        assert node.request_counts[HEAD] == asked[0] + 1
        assert node.request_counts["/eth/v1/beacon/genesis"] == asked[1] + 1


@pytest.mark.parametrize("fault", ["503", "refuse", "hang", "cut"])
async def test_a_node_that_lets_no_second_connection_in_keeps_its_first_and_nobody_from_a_new_one(fault: str) -> None:
    """H5, rules 4 and 6: a replacement that fails is tried again as late as one that worked."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first, *others = net
        net.chain.miss(*range(131, 152))
        await followed.until(131.5)
        if fault == "503":
            first.answer(EVENTS, 503)
        elif fault == "refuse":
            first.refuse()
        elif fault == "hang":
            first.freeze()
        else:
            first.answer(EVENTS, 200, "", content_type="text/plain")
        await followed.until(150.5)
        assert first.opens[0].closed is None or fault == "hang"
        assert len(first.opens) <= 4
        for node in others:
            assert 2 <= len(node.opens) <= 3
            assert not stalls(followed, node)
        first.heal()
        await followed.until(155.5)
        followed.assert_every_slot_delivered(152, 155)


async def test_the_old_connection_may_end_while_the_new_one_is_made() -> None:
    """H5: then the new one takes its place, whatever it is at."""
    async with simulated_devnet(1) as net, monitor(net, chain=known(net.chain)) as followed:
        node = net[0]
        net.chain.miss(*range(131, 145))
        await followed.until(138.5)
        node.inject(EVENTS, Delay(3.0), times=1)
        while len(node.opens) < 2 and followed.now < 140:
            await anyio.sleep(0.1)
            if any(request.path == EVENTS and request.received > 100 for request in node.requests):
                break
        node.end_streams()
        await followed.until(147.5)
        followed.assert_every_slot_delivered(145, 147)
        assert followed.state(node) is StreamState.FRESH
        assert len(node.streams) == 1


async def test_any_head_winds_the_hard_clock_up() -> None:
    """H5: 8½ slots without *a* head; one in between makes it start anew."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        net.chain.miss(*range(131, 137), *range(138, 145))
        await followed.until(145.5)
        assert_undisturbed(followed, *net)


# Transport silence.


@pytest.mark.parametrize(("slot_duration", "limit"), [(12.0, 78.0), (2.0, 13.0), (0.5, 3.25)])
async def test_transport_silence_ends_a_connection_that_had_sent_comments(slot_duration: float, limit: float) -> None:
    """H5: the longer of 60 s (for 12 s slots) and 6½ slots without a byte."""
    streams = {"head_silence": None, "hard_clock": None}
    async with simulated_devnet(1, slot_duration=slot_duration) as net, monitor(net, streams=streams) as followed:
        node = net[0]
        await followed.until(130.2)
        node.comment("")
        await anyio.sleep(0.001)
        last = anyio.current_time()
        node.vanish()
        await anyio.sleep(limit - 0.05)
        assert not followed.ends(node)
        await anyio.sleep(0.1)
        (end,) = followed.ends(node)
        assert end.reason.value == "transport_silence"
        assert end.at - last == pytest.approx(limit, abs=0.01)
        assert not stalls(followed, node)
        await anyio.sleep(3 * slot_duration)
        assert followed.state(node) is StreamState.FRESH


@pytest.mark.parametrize("framing", ["lodestar", "nimbus"])
async def test_a_connection_that_never_sent_a_comment_may_be_silent(framing: FramingName) -> None:
    """H5: some nodes never send one: transport silence ends only connections that have."""
    streams = {"head_silence": None, "hard_clock": None}
    async with simulated_devnet(1, framings=[framing]) as net, monitor(net, streams=streams) as followed:
        await followed.until(130.5)
        net[0].vanish()
        await followed.until(160)
        assert not followed.ends(net[0])
        assert len(net[0].opens) == 1


async def test_comments_keep_the_transport_alive_and_do_not_carry_over_to_the_next_connection() -> None:
    """H5: a byte is a byte; and a new connection has sent no comment before it sends one."""
    streams = {"head_silence": None, "hard_clock": None}
    async with simulated_devnet(1) as net, monitor(net, streams=streams) as followed:
        node = net[0]
        await followed.until(130.5)
        node.silence(comments=True)  # one every 15 s
        await followed.until(160)
        assert not followed.ends(node)
        node.broadcast.comments = False
        node.end_streams()
        await followed.until(175)
        assert [end.reason.value for end in followed.ends(node)] == ["ended"]


# Clocks switched off.


async def test_without_the_watchdog_nothing_is_verified_and_the_verdict_is_unknown() -> None:
    """Scenario 13, H5, H6: `head_silence = null` → never stalled, `subscription_healthy` is `null` throughout."""
    async with simulated_devnet(2) as net, monitor(net, streams={"head_silence": None}) as followed:
        first = net[0]
        await followed.until(130.5)
        asked = first.request_counts[HEAD]
        first.silence()
        await followed.until(138)
        assert first.request_counts[HEAD] == asked
        assert_undisturbed(followed, *net)
        assert {change.subscription_healthy for change in followed.changes(first)} == {None}
        assert followed.healthy(first) is followed.healthy(net[1]) is None
        followed.assert_every_slot_delivered(128, 137)


async def test_without_the_hard_clock_a_quiet_chain_costs_no_connection() -> None:
    """H5: `hard_clock = null`."""
    async with simulated_devnet(2) as net, monitor(net, streams={"hard_clock": None}) as followed:
        net.chain.miss(*range(131, 150))
        await followed.until(151.5)
        assert_undisturbed(followed, *net)
        followed.assert_every_slot_delivered(128, 151)


async def test_limits_can_be_set() -> None:
    """H5: in slots, as set."""
    streams = {"head_silence": 4.0, "start_grace": 1.0}
    async with simulated_devnet(1) as net, monitor(net, streams=streams) as followed:
        node = net[0]
        node.silence()
        await followed.until(128.9)
        assert followed.healthy(node) is None
        await followed.until(129.1)
        assert followed.healthy(node) is False
        node.resume()
        await followed.until(130.5)
        assert followed.healthy(node) is True
        node.silence()
        await followed.until(135.4)
        assert stalls(followed, node) == [pytest.approx(130 + 1 / 12 + 4 + 1 / 12, abs=0.01)]


# Verdicts.


async def test_the_verdict_is_unknown_for_the_grace_and_then_false() -> None:
    """H6: `null` before the first current head for 3 slots from the start, then `false`; told once."""
    async with simulated_devnet(2, into=6) as net:
        first = net[0]
        first.refuse()
        async with monitor(net, chain=known(net.chain)) as followed:
            await followed.until(131.45)
            assert followed.healthy(first) is None
            await followed.until(131.55)
            assert followed.healthy(first) is False
            assert followed.reasons(first).count("start_grace_over") == 1


async def test_a_short_absence_leaves_the_verdict_and_a_long_one_takes_it() -> None:
    """H6: the time of the last current head survives a reconnect, and 2½ slots away are as good as silent."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.end_streams()
        await followed.until(130.8)
        assert len(first.opens) == 2
        assert followed.healthy(first) is True
        await first.kill()
        await followed.until(132.5)
        assert followed.healthy(first) is True
        await followed.until(132.7)
        assert followed.healthy(first) is False
        gone = [change for change in followed.changes(first) if change.subscription_healthy is False]
        assert followed.position(gone[0].at) == pytest.approx(130 + 1 / 12 + 2.5, abs=0.6)
        first.restart()
        await followed.until(135.5)
        assert followed.healthy(first) is True


async def test_a_node_that_was_away_for_long_is_stalled_until_its_next_current_head() -> None:
    """H6: its new connection is open, and the time of its last head has survived."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        await first.kill()
        await followed.until(134.2)
        first.restart()
        await followed.until(135.9)
        if not first.streams:
            await followed.until(136.9)
        begun = next(change for change in followed.changes(first, since=134.2) if change.reason.value == "response")
        assert begun.subscription_healthy is False
        assert begun.state is StreamState.OPEN
        await followed.until(137.5)
        assert followed.healthy(first) is True


async def test_a_node_that_wakes_up_is_asked_for_its_head_at_once() -> None:
    """H14: its connection was requested while it was frozen, and its polls of then were given up."""
    async with simulated_devnet(1, framings=["prysm"], into=3) as net:
        node = net[0]
        node.freeze()
        async with monitor(net, chain=known(net.chain)) as followed:
            await followed.until(129.5)
            assert followed.entry(node) is None
            assert len(node.opens) == 0
            node.thaw()
            await followed.until(129.51)
            entry = followed.entry(node)
            assert entry is not None
            assert (entry.slot, entry.source) == (129, HeadSource.POLL)
            assert len(node.opens) == 1


async def test_a_burst_of_old_heads_of_a_resyncing_node_is_not_fresh() -> None:
    """Scenario 38b, H6, H13: 50 old heads renew nothing and are not delivered; the first current head does."""
    async with simulated_devnet(2) as net:
        first = net[0]
        first.state.lag = 52
        first.show(net.chain.head_at(128 - 52))
        first.cut_off()
        async with monitor(net) as followed:
            await followed.until(131.5)
            assert followed.healthy(first) is False
            begun = followed.now
            first.state.lag = 1_000
            for slot in range(77, 127):
                first.show(net.chain.head_at(slot))
            await followed.until(131.9)
            assert followed.healthy(first) is False
            assert not followed.deliveries(since=begun)
            assert [slot for slot, _ in followed.outcomes(first, since=begun)][-1] == 126
            first.show(net.chain.head_at(131))
            await anyio.sleep(0.01)
            assert followed.healthy(first) is True
            assert not followed.deliveries(since=begun)
            await followed.until(134.5)
            followed.assert_every_slot_delivered(129, 134)


# One node's trouble is one node's.


async def test_verifications_of_hanging_nodes_delay_nobody() -> None:
    """H5, rule 4: four frozen nodes are verified side by side; the fifth node's stall is found on time."""
    async with simulated_devnet(6) as net, monitor(net) as followed:
        *frozen, silent, last = net
        await followed.until(130.5)
        for node in frozen:
            node.freeze()
        silent.silence()
        await followed.until(133.5)
        for node in frozen:
            assert stalls(followed, node)[0] == pytest.approx(132 + 1.5 / 12, abs=0.01)
        assert stalls(followed, silent)[0] == pytest.approx(132 + 1 / 12, abs=0.01)
        assert not stalls(followed, last)
        followed.assert_every_slot_delivered(128, 133)
