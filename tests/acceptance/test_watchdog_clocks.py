"""The hard clock, transport silence, and clocks that are switched off (H5; scenarios 13 and 18)."""

from itertools import pairwise

import anyio
import pytest

from tests.acceptance.harness import known, monitor
from vc_fallback.base.signals import StreamState
from vc_fallback.testing import Delay, FramingName, simulated_devnet

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"
HEAD = "/eth/v1/beacon/headers/head"


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
        followed.assert_undisturbed(*net)
        # The last head came at 130 1/12, the first new connection is there within half a slot of 138 7/12.
        await followed.until(146.5)
        replaced = []
        for node in net:
            assert not followed.stalls(node)
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
            assert not followed.stalls(node)
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
        followed.assert_undisturbed(*net)


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
        assert not followed.stalls(node)
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


async def test_without_the_watchdog_nothing_is_verified_and_the_verdict_is_unknown() -> None:
    """Scenario 13, H5, H6: `head_silence = null` → never stalled, `subscription_healthy` is `null` throughout."""
    async with simulated_devnet(2) as net, monitor(net, streams={"head_silence": None}) as followed:
        first = net[0]
        await followed.until(130.5)
        asked = first.request_counts[HEAD]
        first.silence()
        await followed.until(138)
        assert first.request_counts[HEAD] == asked
        followed.assert_undisturbed(*net)
        assert {change.subscription_healthy for change in followed.changes(first)} == {None}
        assert followed.healthy(first) is followed.healthy(net[1]) is None
        followed.assert_every_slot_delivered(128, 137)


async def test_without_the_hard_clock_a_quiet_chain_costs_no_connection() -> None:
    """H5: `hard_clock = null`."""
    async with simulated_devnet(2) as net, monitor(net, streams={"hard_clock": None}) as followed:
        net.chain.miss(*range(131, 150))
        await followed.until(151.5)
        followed.assert_undisturbed(*net)
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
        assert followed.stalls(node) == [pytest.approx(130 + 1 / 12 + 4 + 1 / 12, abs=0.01)]
