"""Simulated nodes: every fault is really on the socket, as promised (cases.md, kinds a and b)."""

import errno
import json
import socket
from typing import Any

import anyio
import pytest

from tests.acceptance.raw_client import HEADS, Raw, dialled, fetch, listening
from vc_fallback.testing import (
    Answer,
    Cut,
    Hang,
    SimulatedChain,
    SimulatedNode,
    StreamHeaders,
    attester_slashing,
    gzipped,
    malformed_heads,
)
from vc_fallback.testing.faults import EVENTS

pytestmark = pytest.mark.anyio

SYNCING = "/eth/v1/node/syncing"
SLOT = 12.0


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


@pytest.fixture
def new_node(request: pytest.FixtureRequest) -> Any:
    """Makes nodes on a chain of 12 s slots whose slot 100 begins now."""

    def make(**options: Any) -> SimulatedNode:
        return SimulatedNode(SimulatedChain(start_slot=100), **options)

    return make


async def refused(port: int) -> bool:
    """Whether a connect is refused by the kernel."""
    with socket.socket() as dial:
        dial.setblocking(False)
        dial.connect_ex(("127.0.0.1", port))
        await anyio.wait_writable(dial)
        return dial.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED


async def test_a_refusing_node_keeps_its_port_and_its_open_streams(new_node: Any) -> None:
    async with new_node() as node, listening(node.url) as heard:
        port = node.port
        await anyio.sleep(SLOT)
        node.refuse()
        assert await refused(port)
        await anyio.sleep(SLOT)
        assert heard.slots() == [100, 101]
        node.listen()
        assert node.port == port
        assert (await fetch(node.url, SYNCING)).status == 200


async def test_a_killed_node_ends_streams_without_a_last_chunk_and_comes_back_on_its_port(new_node: Any) -> None:
    """As Lodestar under SIGKILL: end of stream without a final chunk, then refusals."""
    async with new_node() as node, listening(node.url) as heard:
        await anyio.sleep(SLOT)
        await node.kill()
        assert await refused(node.port)
        await anyio.sleep(SLOT)
        assert heard.how == "cut off"
        assert heard.ended == SLOT
        assert node.streams == ()
        assert node.opens[0].closed_by == "node"
        node.restart()
        async with listening(node.url) as again:
            await anyio.sleep(SLOT)
        assert again.slots() == [102]


@pytest.mark.parametrize("reset", [False, True])
async def test_connections_are_cut_with_fin_or_rst(new_node: Any, reset: bool) -> None:
    async with new_node() as node, dialled(node.url) as stream, dialled(node.url) as idle:
        await stream.ask(HEADS)
        await stream.read_for(1)
        await node.cut_connections(reset=reset)
        for raw in (stream, idle):
            await raw.read_for(1)
            assert raw.ended == ("reset" if reset else "eof")
        assert not await refused(node.port)


async def test_a_hanging_node_accepts_and_never_answers(new_node: Any) -> None:
    """Case 27."""
    async with new_node() as node, dialled(node.url) as raw:
        fault = node.hang()
        await raw.ask(HEADS)
        assert await raw.read_for(3600) == b""
        assert raw.ended is None
        assert (node.opens[0].status, node.opens[0].closed) == (None, None)
        fault.remove()
        assert (await fetch(node.url, SYNCING)).status == 200


async def test_a_node_hangs_after_its_headers(new_node: Any) -> None:
    async with new_node() as node, dialled(node.url) as stream, dialled(node.url) as rest:
        node.hang(after_headers=True)
        await stream.ask(HEADS)
        await rest.ask(SYNCING)
        head = await stream.read_for(600)
        assert b"content-type: text/event-stream\r\n" in head
        assert head.endswith(b"\r\n\r\n")
        head = await rest.read_for(600)
        assert b"Content-Length: 1" in head
        assert head.endswith(b"\r\n\r\n")
        assert stream.ended is rest.ended is None


async def test_a_vanished_connection_stays_open_and_silent_while_new_ones_work(new_node: Any) -> None:
    """Case 13, scenario 32: TCP dies without a close."""
    async with new_node() as node, dialled(node.url) as idle, listening(node.url) as heard:
        await anyio.sleep(SLOT)
        node.vanish()
        async with listening(node.url) as fresh:
            await anyio.sleep(10 * SLOT)
            assert len(fresh.slots()) == 10
        assert heard.slots() == [100]
        assert heard.comments == []
        assert heard.ended is None
        await idle.ask(SYNCING)
        assert await idle.read_for(60) == b""
        assert idle.ended is None


async def test_a_frozen_node_hangs_and_bursts_when_it_thaws(new_node: Any) -> None:
    """As Lodestar under SIGSTOP: connects succeed, requests hang, the missed heads arrive afterwards."""
    async with new_node() as node, listening(node.url) as heard, dialled(node.url) as rest:
        await anyio.sleep(SLOT)
        node.freeze()
        await rest.ask(SYNCING)
        async with dialled(node.url) as late:
            await late.ask(SYNCING)
            assert await late.read_for(5 * SLOT) == b""
            assert await rest.read_for(1) == b""
            assert (heard.slots(), heard.comments, heard.ended) == ([100], [], None)
            node.thaw()
            assert (await late.read_for(1)).startswith(b"HTTP/1.1 200 ")
            assert (await rest.read_for(1)).startswith(b"HTTP/1.1 200 ")
        assert heard.slots() == [100, 101, 102, 103, 104, 105, 106]
        assert {event.at for event in heard.heard[1:]} == {6 * SLOT + 1}


@pytest.mark.parametrize("comments", [True, False])
async def test_a_silent_stream_sends_no_heads_while_rest_goes_on(new_node: Any, comments: bool) -> None:
    """Scenarios 10 and 11: silence with and without keep-alive comments."""
    async with new_node() as node, listening(node.url) as heard:
        await anyio.sleep(SLOT)
        node.silence(comments=comments)
        await anyio.sleep(5 * SLOT)
        assert heard.slots() == [100]
        assert len(heard.comments) == (4 if comments else 0)
        assert (await fetch(node.url, SYNCING)).json["data"]["head_slot"] == "105"
        node.resume()
        await anyio.sleep(SLOT)
        assert heard.slots() == [100, 106]


async def test_held_events_come_in_one_piece(new_node: Any) -> None:
    """Case 18: a buffering proxy delivers late, several heads in one segment."""
    async with new_node() as node, dialled(node.url) as raw:
        await raw.ask(HEADS)
        await raw.read_for(SLOT)
        node.hold()
        assert await raw.read_for(4 * SLOT) == b""
        node.resume()
        piece = await raw.stream.receive()
        assert piece.count(b"event:head") == 4
        assert b'"slot":"101"' in piece


async def test_a_stream_ends_cleanly_after_each_event(new_node: Any) -> None:
    """Scenario 37."""
    async with new_node() as node:
        node.broadcast.end_after_event = True
        for number in range(3):
            async with listening(node.url) as heard:
                await anyio.sleep(SLOT)
            assert heard.slots() == [100 + number]
            assert heard.how == "complete"
        assert [record.closed_by for record in node.opens] == ["node"] * 3


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer(503, "overloaded", {"Retry-After": "24"}), 503),
        (Answer(429, "", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), 429),
        (Answer(400, '{"code":400,"message":"Invalid topic: head"}'), 400),
        (Answer(401, "project id required", content_type="text/plain"), 401),
        (Answer(200, "event: head\ndata: {}\n\n", content_type="application/json"), 200),
        (gzipped("event: head\ndata: {}\n\n", content_type="text/event-stream"), 200),
    ],
)
async def test_events_are_answered_with_any_status_and_body(new_node: Any, answer: Answer, status: int) -> None:
    """Scenario 35, cases 5, 6, 21 and 24: counted, and not open streams."""
    async with new_node() as node:
        node.inject(EVENTS, answer)
        for _ in range(3):
            reply = await fetch(node.url, HEADS, headers={"Accept": "text/event-stream", "Authorization": "Basic x"})
            assert reply.status == status
            assert reply.body == (answer.body.encode() if isinstance(answer.body, str) else answer.body)
        assert [record.status for record in node.opens] == [status] * 3
        assert node.max_streams == 0
        assert node.opens[0].headers["authorization"] == "Basic x"


async def test_a_stream_opens_with_another_media_type_or_a_claimed_coding(new_node: Any) -> None:
    """H3."""
    async with new_node() as node:
        node.inject(EVENTS, StreamHeaders(content_type="Text/Event-Stream; charset=UTF-8"), times=1)
        node.inject(EVENTS, StreamHeaders(headers=(("Content-Encoding", "gzip"),)), times=1)
        async with dialled(node.url) as raw:
            await raw.ask(HEADS)
            assert b"\r\ncontent-encoding: gzip\r\n" in await raw.read_for(1)
        async with dialled(node.url) as raw:
            await raw.ask(HEADS)
            assert b"\r\ncontent-type: Text/Event-Stream; charset=UTF-8\r\n" in await raw.read_for(1)


@pytest.mark.parametrize("reset", [False, True])
async def test_an_answer_is_cut_in_the_middle(new_node: Any, reset: bool) -> None:
    """http-hazards.md 8: truncation by FIN and by RST."""
    async with new_node() as node, dialled(node.url) as raw:
        node.inject(SYNCING, Cut(after=120, reset=reset))
        await raw.ask(SYNCING)
        await raw.read_for(1)
        assert raw.ended == ("reset" if reset else "eof")
        # An RST may overtake bytes that were on their way.
        assert len(raw.received) == 120 or (reset and len(raw.received) < 120)


async def test_a_fault_meets_as_many_requests_as_it_was_told(new_node: Any) -> None:
    async with new_node() as node, dialled(node.url) as raw:
        fault = node.inject(SYNCING, Hang(), times=1)
        await raw.ask(SYNCING)
        assert await raw.read_for(10) == b""
        assert (await fetch(node.url, SYNCING)).status == 200
        assert fault.met == 1


async def test_events_are_duplicated_malformed_unknown_and_huge_on_cue(new_node: Any) -> None:
    """Scenario 39, cases 4, 9, 11, 14 and 16: everything arrives as it was given."""
    async with new_node() as node, listening(node.url, HEADS + "&topics=attester_slashing") as heard:
        node.broadcast.duplicates = 2
        await anyio.sleep(SLOT)
        assert heard.slots() == [100, 100]
        assert heard.heard[0].text == heard.heard[1].text
        node.broadcast.duplicates = 1
        broken = malformed_heads(heard.heard[0].data)
        for _, text in broken:
            node.publish("head", text)
        await anyio.sleep(0.25)
        assert [event.text for event in heard.heard[2:]] == [text for _, text in broken]
        heard.heard.clear()
        node.publish("attester_slashing", attester_slashing())
        node.send_raw(b'event: weather\ndata: {"rain":true}\n\n')
        node.send_raw(b'event: error\ndata: {"status_code":400,"message":"Topic not allowed"}\n\n')
        node.comment("error - dropped 5 messages")
        await anyio.sleep(0.25)
        assert heard.topics() == ["attester_slashing", "weather", "error"]
        assert 300_000 < len(heard.heard[0].text) < 350_000
        assert heard.comments == ["error - dropped 5 messages"]


async def test_an_endless_line_and_bytes_below_http_are_sent_as_they_are(new_node: Any) -> None:
    """Case 14; chunk framing can be broken on purpose."""
    async with new_node() as node, dialled(node.url) as raw:
        await raw.ask(HEADS)
        await raw.read_for(SLOT - 1)
        node.send_raw(b"data: " + b"x" * 3_000_000)
        assert (await raw.read_for(0.5)).count(b"x") == 3_000_000
        node.send_raw(b"zz\r\nnot a chunk", below_http=True)
        assert await raw.read_for(0.25) == b"zz\r\nnot a chunk"


async def test_a_client_that_does_not_read_is_dropped_and_costs_nobody_else_anything(new_node: Any) -> None:
    """Rule 6: a node never writes without bound."""
    async with new_node() as node, dialled(node.url) as deaf, listening(node.url) as heard:
        await deaf.ask(HEADS)
        await anyio.sleep(0.5)
        for _ in range(40):
            node.publish("head", "y" * 1_000_000)
            await anyio.sleep(0.01)
        assert [record.overrun for record in node.opens] == [True, False]
        assert len(node.streams) == 1
        assert len(heard.heard) == 40
        await deaf.read_for(0.1)
        assert deaf.ended == "reset"


async def test_records_say_who_closed_when_and_how_many_were_open(new_node: Any) -> None:
    async with new_node() as node:
        async with listening(node.url):
            await anyio.sleep(SLOT)
            async with listening(node.url, HEADS + "&topics=block"):
                await anyio.sleep(SLOT)
            await anyio.sleep(0.5)
            assert len(node.streams) == 1
        await anyio.sleep(0.5)
        first, second = node.opens
        assert (first.number, first.opened, first.closed, first.closed_by) == (1, 0.0, 2 * SLOT + 0.5, "client")
        assert (second.number, second.opened, second.closed, second.closed_by) == (2, SLOT, 2 * SLOT, "client")
        assert (first.topics, second.topics) == (("head",), ("head", "block"))
        assert second.target == "/eth/v1/events?topics=head&topics=block"
        assert (first.events, second.events) == (2, 2)
        assert first.headers["accept"] == "text/event-stream"
        assert node.max_streams == 2
        assert node.streams == ()
        assert node.request_counts[EVENTS] == 2
        assert node.connections == 0
        assert node.accepted == 2


async def test_an_error_of_the_body_leaves_unchanged_and_takes_everything_along(new_node: Any) -> None:
    """Rule 5: nothing outlives its scope, and no ExceptionGroup hides the caller's error."""
    node = new_node()

    async def body() -> None:
        async with node, dialled(node.url) as raw:
            await raw.ask(HEADS)
            await anyio.sleep(SLOT)
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await body()
    assert node.streams == ()
    assert node.connections == 0
    assert await refused(node.port)


async def test_healing_ends_every_fault(new_node: Any) -> None:
    async with new_node() as node:
        node.answer(SYNCING, 503)
        node.override("/eth/v1/config/spec", PRESET_BASE="other")
        node.silence(comments=False)
        node.cut_off()
        node.state.optimistic = True
        node.freeze()
        await node.kill()
        await anyio.sleep(3 * SLOT)
        node.heal()
        async with listening(node.url) as heard:
            await anyio.sleep(SLOT)
        assert heard.slots()[-1] == 103
        assert json.loads(heard.heard[-1].text)["execution_optimistic"] is False
        assert (await fetch(node.url, SYNCING)).status == 200
        assert (await fetch(node.url, "/eth/v1/config/spec")).json["data"]["PRESET_BASE"] == "mainnet"


async def test_a_raw_client_notes_how_its_connection_ended(new_node: Any) -> None:
    """The tests' own client: an open connection has not ended."""
    async with new_node() as node, dialled(node.url) as raw:
        assert isinstance(raw, Raw)
        await raw.read_for(1)
        assert raw.ended is None
