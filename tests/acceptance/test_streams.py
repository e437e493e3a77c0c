"""Head streams: how they open, how they wait after each end, and what they ask when they stand (H1–H4, H9, H14)."""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from itertools import pairwise

import anyio
import pytest

from tests.acceptance.harness import candidate, known, monitor
from tests.rawserver import RawConnection, serve
from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import HeadSource, NodeId
from vc_fallback.observe.log import FailureLog
from vc_fallback.testing import (
    Answer,
    Delay,
    FramingName,
    SimulatedChain,
    SimulatedNode,
    StreamHeaders,
    gzipped,
    redirect,
    simulated_devnet,
)
from vc_fallback.testing import events as said

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"
HEAD = "/eth/v1/beacon/headers/head"
JITTER = 0.2
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

FRAMINGS: tuple[FramingName, ...] = ("lighthouse", "prysm", "lodestar", "nimbus", "teku")


def most_opens(seconds: float, *, first: float = 1.0, cap: float = 16.0) -> int:
    """How many connections the backoff allows in so many seconds, with the shortest waits (H4)."""
    opens, passed, wait = 1, 0.0, first
    while (passed := passed + wait * (1 - JITTER)) < seconds:
        opens, wait = opens + 1, min(cap, 2 * wait)
    return opens


def assert_doubling(waits: list[float], *, first: float = 1.0, cap: float = 16.0) -> None:
    """Each wait is twice the one before, capped, give or take the jitter (H4)."""
    for number, wait in enumerate(waits):
        middle = min(cap, first * 2**number)
        assert middle * (1 - JITTER) <= wait <= middle * (1 + JITTER), f"wait {number + 1} was {wait}"


@contextmanager
def unanswering_port() -> Iterator[str]:
    """A port on which connects hang: its backlog is full, so that SYNs are dropped."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fill = [socket.socket() for _ in range(4)]
        try:
            for taken in fill:
                taken.setblocking(False)
                taken.connect_ex(listener.getsockname())
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for taken in fill:
                taken.close()


# H1: one stream for each node, all at once, and none touches another.


async def test_every_node_has_one_stream_at_once_however_the_others_answer() -> None:
    """H1: started all at once; a node that hangs or refuses delays nobody."""
    async with simulated_devnet(5) as net:
        hanging, refusing, erring, fourth, fifth = net
        hanging.hang()
        refusing.refuse()
        erring.answer("*", 500)
        async with monitor(net) as followed:
            await followed.until(132.5)
            for node in (hanging, erring, fourth, fifth):
                assert node.opens[0].opened == 0
            assert len(fourth.opens) == len(fifth.opens) == 1
            # Two of five are no majority, so the chain is known, and 128 delivered, six seconds later (I1).
            followed.assert_every_slot_delivered(129, 132)


async def test_only_nodes_with_the_role_have_a_stream() -> None:
    """H1: one head stream per candidate with role `events`."""
    async with simulated_devnet(2) as net:
        second = candidate(net[1], roles=["duties", "attestation"])
        async with monitor(net, listed=[net[0]], extra=[second]) as followed:
            await followed.until(130.5)
            assert [len(node.opens) for node in net] == [1, 0]
            followed.assert_every_slot_delivered(128, 130)


@pytest.mark.parametrize("end", ["kill", "reset", "clean", "refusal", "nonsense"])
async def test_one_nodes_end_touches_no_other_stream_and_no_other_entry(end: str) -> None:
    """H1, H8: the others' connections, entries and deliveries go on; the node's own entry goes at once."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first, *others = net
        await followed.until(130.5)
        if end in {"kill", "reset"}:
            await first.kill(reset=end == "reset")
        elif end == "clean":
            first.end_streams()
        elif end == "refusal":
            first.publish("error", {"status_code": 500, "message": "broken"})
            first.send_raw(b'event: error\ndata: {"status_code":500,"message":"broken"}\n\n')
        else:
            first.send_raw(b"\x00\xff not a chunk\r\n", below_http=True)
        await anyio.sleep(0.1)
        assert followed.state(first) is StreamState.BACKOFF
        assert followed.entry(first) is None
        for node in others:
            entry = followed.entry(node)
            assert entry is not None
            assert entry.slot == 130
        await followed.until(136.5)
        assert [len(node.opens) for node in others] == [1, 1]
        assert [node.max_streams for node in others] == [1, 1]
        followed.assert_every_slot_delivered(128, 136)


# H2: opening.


async def test_a_connect_that_hangs_is_given_up_after_three_seconds() -> None:
    """H2: TCP connect is bounded by 3 s for streams; then backoff, as after any end."""
    async with simulated_devnet(1) as net:
        with unanswering_port() as url:
            async with monitor(net, extra=[{"url": url, "name": "far"}], chain=known(net.chain)) as followed:
                await anyio.sleep(60)
                first = followed.ends("far")[0]
                assert first.at == pytest.approx(3.0)
                assert (first.reason.value, first.detail) == (
                    "connect_failed",
                    "ConnectTimeout: no connection within 3 s",
                )
                followed.assert_every_slot_delivered(128, 132)


@pytest.mark.parametrize("slot_duration", [0.25, 2.0, 12.0])
async def test_headers_that_come_with_the_first_event_only_are_waited_for(slot_duration: float) -> None:
    """H2: from the request on only the clocks of H5 run; missing headers are no refusal."""
    async with simulated_devnet(1, framings=["lodestar"], slot_duration=slot_duration, into=slot_duration / 2) as net:
        net.chain.miss(129, 130, 131, 132, 133)
        async with monitor(net) as followed:
            await followed.until(133.9)
            assert followed.states(net[0]) == ["connecting", "requested"]
            await followed.until(136.5)
            assert followed.states(net[0]) == ["connecting", "requested", "open", "fresh"]
            assert len(net[0].opens) == 1
            followed.assert_every_slot_delivered(134, 136)


@pytest.mark.parametrize("framing", ["lighthouse", "lodestar"])
async def test_before_genesis_no_clock_runs(framing: FramingName) -> None:
    """H2, H5, H6: forty slots before genesis cost nothing, and the verdict stays unknown until the grace after it."""
    async with simulated_devnet(2, framings=[framing], start_slot=-40) as net, monitor(net) as followed:
        await followed.until(-0.01)
        for node in net:
            assert len(node.opens) == 1
            assert followed.healthy(node) is None
            assert StreamState.STALLED not in followed.states(node)
        assert not followed.deliveries()
        await followed.until(3.5)
        followed.assert_every_slot_delivered(1, 3)
        assert all(followed.healthy(node) for node in net)
        assert [len(node.opens) for node in net] == [1, 1]


async def test_a_chain_that_starts_late_has_its_grace_after_genesis() -> None:
    """H6: the start-up grace of 3 slots runs from genesis where that is later; the verdict is then `false`."""
    async with simulated_devnet(1, start_slot=-4) as net:
        net[0].silence()
        net.chain.miss(*range(1, 12))
        async with monitor(net) as followed:
            await followed.until(2.9)
            assert followed.healthy(net[0]) is None
            await followed.until(3.1)
            assert followed.healthy(net[0]) is False
            assert followed.reasons(net[0])[-1] == "start_grace_over"
            assert len(net[0].opens) == 1


# H3: what is an event stream.


@pytest.mark.parametrize(
    "media_type",
    [
        "text/event-stream",
        "Text/Event-Stream",
        "text/event-stream;charset=UTF-8",
        "text/event-stream ; charset=latin-1",
    ],
)
async def test_media_types_are_compared_without_case_and_parameters(media_type: str) -> None:
    """H3: case-insensitive, parameters ignored."""
    async with simulated_devnet(1) as net:
        net[0].inject(EVENTS, StreamHeaders(content_type=media_type, headers=(("Content-Encoding", "identity"),)))
        async with monitor(net) as followed:
            await followed.until(129.5)
            assert followed.state(net[0]) is StreamState.FRESH
            assert len(net[0].opens) == 1


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (StreamHeaders(content_type="application/json"), "not_an_event_stream"),
        (StreamHeaders(content_type="text/event-streams"), "not_an_event_stream"),
        (StreamHeaders(content_type="text/plain; a=text/event-stream"), "not_an_event_stream"),
        (StreamHeaders(content_type=""), "not_an_event_stream"),
        (StreamHeaders(headers=(("Content-Encoding", "br"),)), "not_an_event_stream"),
        (StreamHeaders(headers=(("Content-Encoding", "gzip, br"),)), "not_an_event_stream"),
    ],
)
async def test_what_is_no_event_stream_is_a_failed_open(headers: StreamHeaders, reason: str) -> None:
    """H3: another media type or a content coding that nobody asked for; bounded by the backoff."""
    async with simulated_devnet(2) as net:
        net[0].inject(EVENTS, headers)
        async with monitor(net) as followed:
            await anyio.sleep(30)
            assert StreamState.OPEN not in followed.states(net[0])
            assert {end.reason.value for end in followed.ends(net[0])} == {reason}
            assert len(net[0].opens) <= most_opens(30)
            assert_doubling(followed.waits(net[0]))
            followed.assert_every_slot_delivered(128, 130)


async def test_a_gzipped_event_stream_is_decoded() -> None:
    """H3: gzip that was not asked for is decoded, and a stream whose gzip is broken ends."""
    async with simulated_devnet(1, follow=False) as net:
        block = net.chain.head_at(128)
        event = f"event: head\ndata: {said.dumps(said.head(net.chain, block))}\n\n"
        net[0].inject(EVENTS, gzipped(event, content_type="text/event-stream"), times=1)
        async with monitor(net, chain=known(net.chain)) as followed:
            await anyio.sleep(0.5)
            assert [seen[0] for seen in followed.outcomes(net[0])][-1] == 128
            assert followed.reasons(net[0])[:4] == ["started", "request_sent", "response", "current_head"]


@pytest.mark.parametrize("status", [500, 404, 401, 200])
async def test_a_refusals_words_are_told_and_bounded(status: int) -> None:
    """H3: a bounded part of the body is told, on one line, without secrets."""
    body = "<html>\nno\x1b[31m events here</html>" + "x" * 2_000_000
    async with simulated_devnet(1) as net:
        net[0].answer(EVENTS, status, body, content_type="text/html")
        async with monitor(net) as followed:
            await anyio.sleep(0.5)
            told = followed.changes(net[0])[-1]
            assert told.state is StreamState.BACKOFF
            assert told.reason.value == ("not_an_event_stream" if status == 200 else "refused")
            assert "events here" in told.detail
            assert len(told.detail) < 1000
            assert not any(character < " " for character in told.detail)


async def test_a_refusal_whose_body_never_ends_is_a_refusal_within_a_second() -> None:
    """H3: the body of a refusal is waited for within a bound."""

    async def endless(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(b'HTTP/1.1 500 Broken\r\nContent-Length: 99\r\n\r\n{"message":"cut')
        await connection.until_gone()

    async with (
        simulated_devnet(1) as net,
        serve(endless) as server,
        monitor(net, extra=[{"url": server.url, "name": "endless"}]) as followed,
    ):
        await followed.until(128.5)
        first = followed.ends("endless")[0]
        assert first.at == pytest.approx(1.0)
        assert first.reason.value == "refused"
        assert "cut" in first.detail


async def test_redirects_to_the_same_host_are_followed_and_no_others() -> None:
    """Q16 on streams: 307 to the same host is followed; a loop, another host and other statuses are refusals."""
    async with simulated_devnet(5) as net:
        real, moved, loop, elsewhere, other = net
        moved.inject(EVENTS, redirect(f"{real.url}{EVENTS}?topics=head&topics=head_v2", status=308))
        loop.inject(EVENTS, redirect(EVENTS))
        elsewhere.inject(EVENTS, redirect(f"http://localhost:{real.port}{EVENTS}?topics=head"))
        other.inject(EVENTS, redirect(f"{real.url}{EVENTS}?topics=head", status=302))
        async with monitor(net) as followed:
            await followed.until(132.5)
            assert followed.state(moved) is StreamState.FRESH
            assert len(moved.opens) == 1
            assert len(real.opens) == 2
            for node in (loop, elsewhere, other):
                assert StreamState.OPEN not in followed.states(node)
                assert {end.reason.value for end in followed.ends(node)} == {"refused"}
            assert len(elsewhere.opens) <= most_opens(54)
            assert len(loop.opens) <= 4 * most_opens(54)
            followed.assert_every_slot_delivered(128, 132)


# H4: backoff.


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


# H9: the failure log.


async def test_failures_are_logged_at_powers_of_two_and_recovery_once(caplog: pytest.LogCaptureFixture) -> None:
    """H9, scenario 51: nine straight failures → warnings at 1, 2, 4, 8; one info line says how long it was gone."""
    caplog.set_level(logging.INFO, "vc_fallback.observe.log")
    async with simulated_devnet(2) as net, monitor(net, observers=[FailureLog()]) as followed:
        first = net[0]
        await followed.until(130.5)
        caplog.clear()
        first.refuse()
        await first.cut_connections()
        gone = anyio.current_time()
        await anyio.sleep(98)
        assert followed.changes(first)[-1].failures in {8, 9, 10, 11}
        warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        lost = [text for text in warned if "stream lost" in text]
        assert [text.split("failure ")[1].split()[0] for text in lost] == ["1", "2", "4", "8"]
        caplog.clear()
        first.listen()
        await anyio.sleep(60)
        told = [record.getMessage() for record in caplog.records if "fresh again" in record.getMessage()]
        assert len(told) == 1
        fresh = next(c.at for c in followed.changes(first) if c.at > gone and c.reason.value == "current_head")
        assert f"{fresh - gone:.1f} s" in told[0]


# Bytes: cases a and b on streams.


async def test_heads_of_five_kinds_of_nodes_are_read_alike() -> None:
    """Cases 1, 2, 3: the five framings give the same heads at the same instant."""
    async with simulated_devnet(5, framings=FRAMINGS) as net, monitor(net) as followed:
        await followed.until(134.5)
        followed.assert_every_slot_delivered(128, 134)
        latest = followed.monitor.latest.value
        assert latest is not None
        assert len(latest.seen_by) == 5
        for node in net:
            assert len(node.opens) == 1
            assert {slot for slot, _ in followed.outcomes(node, since=128.5)} == set(range(129, 135))


async def test_a_stream_lives_through_everything_one_event_can_be() -> None:
    """Scenario 39, rule 4: optimistic, malformed, huge and unknown events cost themselves and nothing else."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        good = said.head(net.chain, first.head)
        for text, _ in said.malformed_heads(good)[:21]:
            first.publish("head", text)
        for _, text in said.malformed_heads(good):
            first.publish("head", text)
            first.publish("head_v2", text)
            first.publish("chain_reorg", text)
        slashing = said.dumps(said.attester_slashing())
        assert len(slashing) > 250_000
        first.send_raw(first.broadcast.framing.event("attester_slashing", slashing))
        first.send_raw(
            b"event: weather\ndata: {not json\n\n" + b"data: no type\n\n" + b"event: head\n\n" + b"id: 7\n\n"
        )
        first.state.optimistic = True
        await followed.until(131.5)
        first.state.optimistic = False
        await followed.until(133.5)
        assert len(first.opens) == 1
        assert (131, "optimistic") in followed.outcomes(first)
        assert (133, "delivered") in followed.outcomes(first) or (133, "duplicate") in followed.outcomes(first)
        assert followed.monitor.statistics()[followed.id(first)].malformed >= 20
        followed.assert_every_slot_delivered(128, 133)


async def test_an_event_over_the_limit_costs_that_event() -> None:
    """Q15, case 14: more than the limit on one line or over many; the head after it is taken."""
    async with simulated_devnet(1) as net, monitor(net, wire={"event": 65536}) as followed:
        node = net[0]
        await followed.until(130.5)
        node.send_raw(b"event: attester_slashing\ndata: " + b"7" * 1_000_000 + b"\n\n")
        node.send_raw(b"event: attester_slashing\n" + b"data: 7777777\n" * 20_000 + b"\n")
        await followed.until(133.5)
        assert len(node.opens) == 1
        assert followed.monitor.statistics()[followed.id(node)].oversized == 2
        followed.assert_every_slot_delivered(128, 133)


async def test_an_endless_line_costs_its_node_only_and_is_found() -> None:
    """Case 14: a line that never ends is bounded; its heads do not get through, which the watchdog finds (H5)."""
    async with simulated_devnet(2) as net, monitor(net, wire={"event": 65536}) as followed:
        first = net[0]
        await followed.until(130.5)
        with anyio.move_on_after(24):
            first.broadcast.silence(comments=False)
            while True:
                first.send_raw(b"x" * 50_000)
                await anyio.sleep(0.5)
        first.resume()
        await followed.until(138.5)
        assert "stalled" in followed.states(first)
        assert followed.state(first) is StreamState.FRESH
        followed.assert_every_slot_delivered(128, 138)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"event: head\ndata: {}\n\n" * 100,
        b"event: head_v2\ndata: 17\n\n" * 100,
        b"event: error\ndata: {}\n\n",
        b'event: error\ndata: {"status_code":503,"message":"no"}\n\n',
        b"event: chain_reorg\ndata: {}\n\nevent: head\ndata: []\n\n" * 100,
    ],
    ids=["heads", "second heads", "error", "named error", "reorgs"],
)
async def test_nonsense_for_ever_costs_its_node_its_place_and_nobody_anything(nonsense: bytes) -> None:
    """Rules 4, 6: a node that says nonsense on every stream, which stays open: bounded by the backoff."""

    async def babble(connection: RawConnection) -> None:
        request = await connection.request()
        if request.target.startswith(EVENTS):
            opens.append(anyio.current_time())
            await connection.send(STREAM + b"\r\n" + nonsense)
            await connection.until_gone()

    opens: list[float] = []
    async with (
        simulated_devnet(1) as net,
        serve(babble) as server,
        monitor(net, extra=[{"url": server.url, "name": "babble"}], chain=known(net.chain)) as followed,
    ):
        await anyio.sleep(60)
        assert 4 <= len(opens) <= most_opens(60)
        assert_doubling(followed.waits("babble"))
        assert {end.reason.value for end in followed.ends("babble")} <= {"unreadable", "refused"}
        assert followed.monitor.subscription_healthy(NodeId("babble")) is False
        followed.assert_every_slot_delivered(128, 132)


@pytest.mark.parametrize(
    "answer",
    [
        b"\x16\x03\x01\x02\x00 not http at all\r\n\r\n",
        b"HTTP/9.9 OK\r\n\r\n",
        STREAM + b"Content-Length: -1\r\n\r\n",
        STREAM + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
        STREAM + b"Transfer-Encoding: chunked\r\n\r\n5\r\n:\n\n\n\n\r\n0\r\n\r\n",
        b"",
    ],
    ids=["tls", "version", "length", "chunk", "head", "continue", "end", "nothing"],
)
async def test_answers_that_are_not_http_are_bounded_by_the_backoff(answer: bytes) -> None:
    """Rules 4, 6: bytes that are no HTTP, to every request, for two minutes."""

    async def babble(connection: RawConnection) -> None:
        await connection.request()
        streams.append(anyio.current_time())
        await connection.send(answer)

    streams: list[float] = []
    async with (
        simulated_devnet(1) as net,
        serve(babble) as server,
        monitor(net, extra=[{"url": server.url, "name": "babble"}], chain=known(net.chain)) as followed,
    ):
        await anyio.sleep(120)
        ends = followed.ends("babble")
        assert 5 <= len(ends) <= most_opens(120)
        # Beside each open there is the identity, the head twice at most, and checks.
        assert len(server.connections) <= 6 * most_opens(120)
        followed.assert_every_slot_delivered(128, 137)


async def test_an_in_band_error_is_a_failed_subscription() -> None:
    """Case 4: `event: error` on a 200 stream ends it, is told with its words, and backs off."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.send_raw(b'event: error\ndata: {"status_code":500,"message":"could not subscribe"}\n\n')
        await anyio.sleep(0.1)
        told = followed.changes(first)[-1]
        assert (told.state, told.reason.value) == (StreamState.BACKOFF, "refused")
        assert "could not subscribe" in told.detail
        await followed.until(133.5)
        assert len(first.opens) == 2
        followed.assert_every_slot_delivered(128, 133)


async def test_secrets_of_the_url_reach_no_signal() -> None:
    """Rule 11: user-info and a path's token are sent, and told to nobody."""
    async with simulated_devnet(1) as net:
        url = net[0].url.replace("http://", "http://user:s3cret@") + "/t0ken"
        async with monitor(net, listed=[], extra=[{"url": url}]) as followed:
            await anyio.sleep(60)
            assert net[0].requests
            assert all(request.path.startswith("/t0ken/") for request in net[0].requests)
            assert {request.headers["authorization"] for request in net[0].requests} == {"Basic dXNlcjpzM2NyZXQ="}
            text = repr(followed.signals)
            assert "s3cret" not in text
            assert "t0ken" not in text


# H14: what is asked when a connection stands.


async def test_the_head_known_by_poll_is_taken_at_each_connect() -> None:
    """H14: marked as a poll's, without dependent roots; the stream's head replaces it."""
    async with simulated_devnet(1, into=6) as net, monitor(net) as followed:
        node = net[0]
        await anyio.sleep(0.1)
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.slot, entry.source) == (128, HeadSource.POLL)
        assert entry.current_epoch_dependent_root is entry.next_epoch_dependent_root is None
        await followed.until(130.5)
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.slot, entry.source) == (130, HeadSource.STREAM)
        assert entry.current_epoch_dependent_root == net.chain.duty_roots(followed.block(130)).current_epoch
        asked = node.request_counts[HEAD]
        node.end_streams()
        await anyio.sleep(3)
        assert node.request_counts[HEAD] == asked + 1
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.slot, entry.source) == (130, HeadSource.POLL)


async def test_a_comment_on_dropped_messages_triggers_a_poll() -> None:
    """H14: `error - dropped N messages` → the head is asked for and taken; other comments ask nothing."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.2)
        node.broadcast.silence(comments=False)
        await followed.until(131.2)
        asked = node.request_counts[HEAD]
        node.comment("all is well")
        await anyio.sleep(0.1)
        assert node.request_counts[HEAD] == asked
        node.comment(" error - dropped 5 messages")
        await anyio.sleep(0.1)
        assert node.request_counts[HEAD] == asked + 1
        assert followed.delivered_slots()[-1] == 131
        assert followed.deliveries()[-1].source is HeadSource.POLL


async def test_a_flood_of_dropped_messages_comments_is_no_flood_of_polls() -> None:
    """Rule 6: a node that says so again and again is asked by one poll at a time."""
    async with simulated_devnet(1, latency=0.5) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.2)
        asked = node.request_counts[HEAD]
        for _ in range(500):
            node.comment("error - dropped 1 messages")
        await anyio.sleep(6)
        assert node.request_counts[HEAD] - asked <= 3


async def test_a_reorg_event_moves_the_nodes_head() -> None:
    """H14, case 45: `chain_reorg` without a `head` is the node's new head, without dependent roots; it is delivered."""
    chain = SimulatedChain(start_slot=128)
    chain.branch("other", above=129)
    async with SimulatedNode(chain, name="bn1") as node, monitor([node]) as followed:
        await followed.until(130.5)
        node.switch("other", head_event=False)
        await anyio.sleep(0.1)
        entry = followed.entry(node)
        assert entry is not None
        assert entry.root == followed.block(130, "other").root
        assert entry.current_epoch_dependent_root is None
        assert followed.delivered_roots()[-2:] == [followed.block(130).root, followed.block(130, "other").root]
        assert followed.deliveries()[-1].reorg


@pytest.mark.parametrize("path", [HEAD, "*"])
@pytest.mark.parametrize(
    "body",
    [
        Answer(200, b"not br", {"Content-Encoding": "br"}),
        Answer(200, b"not gzip", {"Content-Encoding": "gzip"}),
        Answer(200, "[" * 100_000),
        Answer(200, '{"data":null}'),
        Answer(204),
    ],
    ids=["br", "gzip", "deep", "no data", "no content"],
)
async def test_answers_to_polls_that_cannot_be_read_cost_nothing_but_themselves(path: str, body: Answer) -> None:
    """Rules 4, 10: what a stream's node is asked beside it may be answered with anything."""
    async with simulated_devnet(2) as net:
        for node in net:
            node.inject("/eth/v1/[!e]*" if path == "*" else path, body)
        async with monitor(net, chain=known(net.chain)) as followed:
            await followed.until(131.5)
            assert [len(node.opens) for node in net] == [1, 1]
            if path == HEAD:
                followed.assert_every_slot_delivered(128, 131)
            for node in net:
                node.heal()
            await followed.until(134.5)
            assert [len(node.opens) for node in net] == [1, 1]
            followed.assert_every_slot_delivered(133, 134)


async def test_requests_that_hang_never_hold_a_stream_back() -> None:
    """Streams and requests never share a limit."""
    async with simulated_devnet(1) as net, monitor(net, wire={"concurrency": 1}) as followed:
        node = net[0]
        await followed.until(130.5)
        node.hang("/eth/v1/beacon/*")
        node.hang("/eth/v1/config/*")
        node.end_streams()
        await followed.until(134.5)
        assert len(node.opens) == 2
        followed.assert_every_slot_delivered(128, 134)


async def test_a_slow_first_answer_is_no_failure() -> None:
    """H2, case 17: there is no time-out on the response of a stream, nor on the stream as a whole."""
    async with simulated_devnet(1) as net:
        net[0].inject(EVENTS, Delay(20), times=1)
        async with monitor(net) as followed:
            await followed.until(160.5)
            assert len(net[0].opens) == 1
            followed.assert_every_slot_delivered(130, 160)
