"""When a head stream is stalled, and when its node is behind or slots were missed (H5, H7; scenarios 10, 11, 18)."""

import json

import anyio
import pytest

from tests.acceptance.harness import announce, monitor
from vc_fallback.base.signals import HeadOutcome, StreamState
from vc_fallback.base.types import HeadSource, root_hex
from vc_fallback.testing import FramingName, SimulatedChain, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

HEAD = "/eth/v1/beacon/headers/head"
DURATIONS = [0.2, 1.0, 2.0, 5.0, 12.0]


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
        assert followed.stalls(first) == [pytest.approx(132 + 1 / 12, abs=0.01)]
        assert followed.changes(first, since=130.5)[0].reason.value == "head_silence"
        assert followed.healthy(first) is False
        await followed.until(138.5)
        followed.assert_every_slot_delivered(129, 138)
        assert followed.healthy(first) is False
        for node in others:
            assert followed.healthy(node) is True
        followed.assert_undisturbed(*others)
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
        assert followed.stalls(node) == [pytest.approx(last + 2.5 + 1 / 12, abs=0.01)]
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
        assert followed.stalls(first) == [pytest.approx(132 + 1.5 / 12, abs=0.01)]
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
        assert not followed.stalls(others[0])
        followed.assert_every_slot_delivered(128, 147)


async def test_a_sole_frozen_node_is_nobodys_stall_and_is_followed_again_when_it_thaws() -> None:
    """H5: nobody is newer, so its failing polls mean nothing; its head comes with the thaw."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.5)
        node.freeze()
        await followed.until(134.5)
        assert not followed.stalls(node)
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
            announce(first, net.chain.head_at(slot))
            first.broadcast.silence(comments=True)
            first.comment("here")
            await anyio.sleep(0.5)
        assert "open" in followed.states(first, since=begun) or followed.state(first) is StreamState.OPEN
        assert followed.healthy(first) is False
        assert {change.subscription_healthy for change in followed.changes(first, since=begun)} <= {False}
        first.resume()
        announce(first, first.head)
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


async def test_a_node_that_is_behind_is_not_stalled_and_keeps_its_connection() -> None:
    """H5: own head not newer than its stream, others newer → *behind*: no reconnect, until it is back."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first, *others = net
        await followed.until(130.5)
        asked = first.request_counts[HEAD]
        first.cut_off()
        await followed.until(138.5)
        followed.assert_undisturbed(*net)
        assert followed.monitor.cache.ledger.nodes[followed.id(first)].stream.behind
        # One poll a slot at most (H5).
        assert 1 <= first.request_counts[HEAD] - asked <= 8
        first.rejoin()
        await followed.until(142.5)
        followed.assert_undisturbed(*net)
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
        followed.assert_undisturbed(*net)
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
        followed.assert_undisturbed(*net)
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
        followed.assert_undisturbed(first, second)
        # A reorg event is no head liveness for all that (rule 2): the stream is verified each slot.
        first.silence()
        await followed.until(136.5)
        assert followed.stalls(first)


async def test_a_late_block_is_no_stall() -> None:
    """H5: a head that one node has at the very end of its slot reaches the other by the verification, or soon after."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first, second = net
        for slot in (131, 132, 133):
            net.chain.delay(slot, 11.9)
        first.state.head_delay = 0.5
        await followed.until(136.5)
        followed.assert_undisturbed(first, second)
        assert all(followed.healthy(node) for node in net)


@pytest.mark.parametrize("status", [404, 503])
async def test_a_node_that_refuses_to_be_asked_has_a_moment_for_a_late_block(status: int) -> None:
    """H5: its stream is half a second later than others' at the very end of a slot, and its polls fail at once."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first, second = net
        first.answer(HEAD, status)
        first.state.head_delay = 0.5
        for slot in (131, 132, 133):
            net.chain.delay(slot, 11.8)
        await followed.until(135.5)
        followed.assert_undisturbed(first, second)
        first.silence()
        await followed.until(137.5)
        assert followed.stalls(first) == [pytest.approx(137 + 1 / 12, abs=0.01)]


async def test_a_stream_that_is_a_slot_later_than_the_others_is_verified_and_left_alone() -> None:
    """H5: a node whose blocks come 1.4 slots late has no newer head than its stream when it is asked."""
    async with simulated_devnet(3) as net:
        first = net[0]
        first.state.head_delay = 1.4 * 12
        async with monitor(net) as followed:
            await followed.until(142.5)
            followed.assert_undisturbed(*net)


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
        assert not followed.stalls(first)


async def test_a_quiet_chain_costs_a_poll_a_slot() -> None:
    """H5, H14, rule 6: however many streams there are whose clocks run out at different moments; first of all when the
    first silent slot is over, then as their clocks run out."""
    async with simulated_devnet(6) as net, monitor(net) as followed:
        for number, node in enumerate(net):
            node.state.head_delay = number / 2
        net.chain.miss(*range(131, 138))
        await followed.until(132)
        asked = [node.request_counts[HEAD] for node in net]
        await followed.until(138)
        for node, before in zip(net, asked, strict=True):
            assert 6 <= node.request_counts[HEAD] - before <= 7


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
            assert followed.stalls(node)[0] == pytest.approx(132 + 1.5 / 12, abs=0.01)
        assert followed.stalls(silent)[0] == pytest.approx(132 + 1 / 12, abs=0.01)
        assert not followed.stalls(last)
        followed.assert_every_slot_delivered(128, 133)
