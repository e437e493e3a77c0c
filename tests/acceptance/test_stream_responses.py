"""Which responses are event streams, and what is told of the others (H3, Q16)."""

import anyio
import pytest

from tests.acceptance.harness import known, monitor
from tests.acceptance.waits import assert_doubling, most_opens
from tests.rawserver import RawConnection, serve
from vc_fallback.base.signals import StreamState
from vc_fallback.testing import StreamHeaders, gzipped, redirect, simulated_devnet
from vc_fallback.testing import events as said

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"


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
