"""How long a head stream waits after each kind of end (H4, scenarios 15, 32, 35 and 37)."""

from email.utils import formatdate
from itertools import pairwise

import anyio
import pytest

from tests.acceptance.harness import known, monitor
from tests.acceptance.waits import JITTER, STREAM, assert_doubling, most_opens
from tests.rawserver import RawConnection, serve
from vc_fallback.base.signals import StreamState
from vc_fallback.testing import events as said
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"


async def test_waits_double_to_the_cap_and_a_current_head_resets_them() -> None:
    """Scenario 15, H4: 1, 2, 4, 8, 16, 16 s ± 20 % while connects fail; a head resets it."""
    async with simulated_devnet(2) as net:
        first = net[0]
        first.refuse()
        async with monitor(net) as followed:
            await anyio.sleep(90)
            waits = followed.waits(first)
            assert len(waits) >= 7
            assert_doubling(waits)
            starts = [change.at for change in followed.changes(first) if change.state is StreamState.CONNECTING]
            for wait, (before, after) in zip(waits, pairwise(starts), strict=False):
                assert after - before == pytest.approx(wait, abs=1e-6), (
                    "the wait that was told is the wait that was held"
                )
            first.listen()
            await anyio.sleep(36)
            assert followed.state(first) is StreamState.FRESH
            assert followed.changes(first)[-1].failures == 0
            first.refuse()
            await first.cut_connections()
            await anyio.sleep(5)
            assert_doubling(followed.waits(first)[len(waits) :][-3:])


@pytest.mark.parametrize("kind", ["nothing", "old heads", "malformed heads", "unknown events", "comments"])
async def test_nothing_but_a_current_head_resets_the_waits(kind: str) -> None:
    """Scenario 15, H4: a node opens streams and ends them cleanly: neither a bare connect resets, nor other events."""
    async with simulated_devnet(2) as net:
        first, chain = net[0], net.chain
        old = "".join(
            f"event: head\ndata: {said.dumps(said.head(chain, chain.head_at(slot)))}\n\n" for slot in range(100, 127)
        )
        body = {
            "old heads": old,
            "malformed heads": "event: head\ndata: {\n\n",
            "unknown events": 'event: weather\ndata: {"slot":"128"}\n\n',
            "comments": ":\n\n: here\n\n",
        }.get(kind, "id: 7\n\n")
        first.answer(EVENTS, 200, body, content_type="text/event-stream")
        async with monitor(net) as followed:
            await anyio.sleep(60)
            assert "open" in followed.states(first)
            assert {end.reason.value for end in followed.ends(first)} == {"ended"}
            assert 4 <= len(first.opens) <= most_opens(60)
            assert_doubling(followed.waits(first))
            followed.assert_every_slot_delivered(128, 132)


@pytest.mark.parametrize("status", [503, 500, 429, 404])
async def test_a_node_that_refuses_for_a_minute_is_asked_as_often_as_the_backoff_allows(status: int) -> None:
    """Scenario 35, H4: the opens are counted; answers to checks are good all the time and end no wait."""
    async with simulated_devnet(2) as net:
        first = net[0]
        fault = first.answer(EVENTS, status, '{"code":0,"message":"overloaded"}')
        async with monitor(net) as followed:
            await anyio.sleep(60)
            assert 4 <= len(first.opens) <= most_opens(60)
            assert_doubling(followed.waits(first))
            assert {end.reason.value for end in followed.ends(first)} == {"refused"}
            assert "overloaded" in followed.changes(first)[-1].detail
            followed.assert_every_slot_delivered(128, 132)
            fault.remove()
            await anyio.sleep(40)
            assert followed.state(first) is StreamState.FRESH


async def test_a_node_that_ends_its_stream_after_each_event_is_bounded_by_the_backoff() -> None:
    """Scenario 37: the same bound, though each new connection begins with the node's current head."""
    opens = []

    async def one_event(connection: RawConnection) -> None:
        request = await connection.request()
        if not request.target.startswith(EVENTS):
            return
        opens.append(anyio.current_time())
        head = said.dumps(said.head(net.chain, net.chain.head_at(followed.slot)))
        await connection.send(STREAM + f"\r\nevent: head\ndata: {head}\n\n".encode())

    async with (
        simulated_devnet(1) as net,
        serve(one_event) as server,
        monitor(net, extra=[{"url": server.url, "name": "short"}], chain=known(net.chain)) as followed,
    ):
        await anyio.sleep(60)
        # Each slot has a new head, with which the waits begin anew.
        assert len(opens) <= 5 * most_opens(12)
        assert {end.reason.value for end in followed.ends("short")} == {"ended"}
        followed.assert_every_slot_delivered(128, 132)


async def test_a_head_resets_the_waits_also_where_it_is_the_last_one_again() -> None:
    """H4: a node that came back in the same slot and shows the same head has recovered."""
    async with simulated_devnet(2, slot_duration=60, into=10) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(129.1)
        assert followed.state(first) is StreamState.FRESH
        first.refuse()
        await first.cut_connections()
        await anyio.sleep(8)
        first.listen()
        await anyio.sleep(13)
        assert followed.monitor.statistics()[followed.id(first)].failures > 0
        first.publish("head", said.head(net.chain, first.head))
        await anyio.sleep(0.1)
        assert followed.monitor.statistics()[followed.id(first)].failures == 0


async def test_a_node_whose_streams_end_with_its_heads_is_followed_all_the_same() -> None:
    """Scenario 37: one clean end a slot costs one open a slot, and no head is missed for long."""
    async with simulated_devnet(1) as net:
        net[0].broadcast.end_after_event = True
        async with monitor(net) as followed:
            await followed.until(138.5)
            assert len(net[0].opens) <= 12
            followed.assert_every_slot_delivered(128, 138)


async def test_retry_after_is_obeyed_in_seconds_and_as_a_date() -> None:
    """H4: `Retry-After` of a 429 or 503 holds the stream back for at least as long, and no good check ends it."""
    async with simulated_devnet(4) as net:
        seconds, date, longer, garbage = net
        seconds.answer(EVENTS, 503, headers={"Retry-After": "24"}, times=1)
        date.answer(EVENTS, 429, headers={"Retry-After": formatdate(net.clock.unix() + 30, usegmt=True)}, times=1)
        longer.answer(EVENTS, 503, headers={"Retry-After": "0"})
        garbage.answer(EVENTS, 503, headers={"Retry-After": "soon"})
        async with monitor(net) as followed:
            await anyio.sleep(60)
            assert seconds.opens[1].opened == pytest.approx(24, abs=0.1)
            assert date.opens[1].opened == pytest.approx(30, abs=1.1)
            for node in (longer, garbage):
                assert_doubling(followed.waits(node))
                assert len(node.opens) <= most_opens(60)


async def test_a_date_to_retry_after_counts_from_the_answer() -> None:
    """H4: a node that takes five seconds to say "in 20 s" is asked again at the moment it named."""
    async with simulated_devnet(1) as net:

        async def late(connection: RawConnection) -> None:
            await connection.request()
            await anyio.sleep(5)
            date = formatdate(net.clock.unix() + 20, usegmt=True)
            await connection.send(f"HTTP/1.1 503 No\r\nRetry-After: {date}\r\nContent-Length: 0\r\n\r\n".encode())
            await connection.until_gone()

        async with serve(late) as server, monitor(net, extra=[{"url": server.url, "name": "late"}]) as followed:
            await anyio.sleep(10)
            waits = [wait for signal in followed.signals if (wait := getattr(signal, "retry_in", None)) is not None]
            assert waits[0] == pytest.approx(20, abs=1.1)


async def test_retry_after_does_not_scale_with_the_slot() -> None:
    """Requirements, preface: `Retry-After` does not scale, and a wait without it does."""
    async with simulated_devnet(2, slot_duration=2) as net:
        first, second = net
        first.answer(EVENTS, 503, headers={"Retry-After": "24"})
        second.answer(EVENTS, 503)
        async with monitor(net) as followed:
            await anyio.sleep(60)
            assert [record.opened for record in first.opens][:3] == pytest.approx([0, 24, 48], abs=0.5)
            # The first wait begins before the slot is known; those after it are 0.2, 0.4, 0.8 … s in slots of 2 s.
            assert_doubling(followed.waits(second)[1:], first=0.4, cap=16 / 6)


async def test_a_good_check_ends_the_wait_of_a_node_that_was_out_of_reach() -> None:
    """H4: a node that was gone for a moment is back with its first check, after 2 s ± 20 %, however long its wait."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.silence()
        moments = []
        for _ in range(6):
            await first.cut_connections()
            moments.append(anyio.current_time())
            await anyio.sleep(4)
        for moment, record in zip(moments, first.opens[1:], strict=True):
            assert record.opened - moment <= 2 * (1 + JITTER) + 1e-6
        assert_doubling(followed.waits(first))


@pytest.mark.parametrize("end", ["503", "clean", "error"])
async def test_a_good_check_ends_no_wait_of_a_node_that_answers(end: str) -> None:
    """H4: a node that refuses or ends its streams answers checks all the time; they would undo the backoff."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        body = b"" if end == "clean" else b'event: error\ndata: {"status_code":500,"message":"no"}\n\n'
        if end == "503":
            first.answer(EVENTS, 503)
        else:
            first.answer(EVENTS, 200, body, content_type="text/event-stream")
        first.end_streams()
        await anyio.sleep(60)
        starts = [change.at for change in followed.changes(first) if change.state is StreamState.CONNECTING]
        for wait, (before, after) in zip(followed.waits(first), pairwise(starts), strict=False):
            assert after - before == pytest.approx(wait, abs=1e-6)


async def test_a_stream_survives_a_dead_connection_and_transient_refusals() -> None:
    """Scenario 32: TCP dies without a close → redial through failures; old *and* new subscribers get heads."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        async with followed.monitor.subscribe() as old:
            await followed.until(130.5)
            read = []
            while (head := old.receive_nowait()) is not None:
                read.append(head.head.slot)
            assert read[-1] == 130
            node.vanish()
            node.answer(EVENTS, 503, times=2)
            node.hang(EVENTS, times=1)
            await followed.until(145.5)
            assert followed.state(node) is StreamState.FRESH
            async with followed.monitor.subscribe(replay_latest=True) as new:
                assert (await new.receive()).head.slot == 145
                with anyio.fail_after(24):
                    while (head := await old.receive()).head.slot < 146:
                        pass
                    assert (await new.receive()).head.slot == 146
