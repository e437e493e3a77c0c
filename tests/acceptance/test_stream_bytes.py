"""Every byte that can come on a head stream (rules 4 and 6, Q15, scenario 39; cases 1–4, 14)."""

import anyio
import pytest

from tests.acceptance.harness import known, monitor
from tests.acceptance.waits import STREAM, assert_doubling, most_opens
from tests.rawserver import RawConnection, serve
from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import NodeId
from vc_fallback.testing import FramingName, simulated_devnet
from vc_fallback.testing import events as said

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"

FRAMINGS: tuple[FramingName, ...] = ("lighthouse", "prysm", "lodestar", "nimbus", "teku")


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
