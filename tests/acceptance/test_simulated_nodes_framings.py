"""Simulated nodes: each framing's bytes exactly, in virtual time on both backends (cases.md 3)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.raw_client import HEADS, dialled, fetch, listening
from vc_fallback.testing import FramingName, SimulatedChain, SimulatedNode

pytestmark = pytest.mark.anyio

DATE = b"Tue, 14 Nov 2023 22:33:20 GMT"
"""Of second 1200 after the simulated genesis, where these tests start."""

OPENINGS: dict[FramingName, bytes] = {
    "lighthouse": b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"date: " + DATE + b"\r\ntransfer-encoding: chunked\r\n\r\n",
    "prysm": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: keep-alive\r\n"
    b"Date: " + DATE + b"\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n:\n\n\r\n",
    "lodestar": b"",
    "nimbus": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nDate: " + DATE + b"\r\n\r\n",
    "teku": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream;charset=utf-8\r\nConnection: close\r\n"
    b"Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\nDate: " + DATE + b"\r\n\r\n: ready\n",
}

EVENTS: dict[FramingName, bytes] = {
    "lighthouse": b'1f\r\nevent:block\ndata:{"slot":"7"}\n\n\r\n',
    "prysm": b'21\r\nevent: block\ndata: {"slot":"7"}\n\n\r\n',
    "lodestar": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache,no-transform\r\n"
    b"Connection: keep-alive\r\nx-no-compression: 1\r\nX-Accel-Buffering: no\r\nDate: " + DATE + b"\r\n"
    b'Transfer-Encoding: chunked\r\n\r\n21\r\nevent: block\ndata: {"slot":"7"}\n\n\r\n',
    "nimbus": b'event: block\r\ndata: {"slot":"7"}\r\n\r\n',
    "teku": b'event: block\ndata: {"slot":"7"}\n\n',
}

KEEP_ALIVES: dict[FramingName, tuple[float, bytes]] = {
    "lighthouse": (15.0, b"3\r\n:\n\n\r\n"),
    "prysm": (12.0, b"3\r\n:\n\n\r\n"),
    "lodestar": (0.0, b""),
    "nimbus": (0.0, b""),
    "teku": (30.0, b": \n"),
}

NAMES: tuple[FramingName, ...] = ("lighthouse", "prysm", "lodestar", "nimbus", "teku")


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


def still(framing: FramingName) -> SimulatedNode:
    """A node that says nothing by itself."""
    return SimulatedNode(SimulatedChain(start_slot=100), framing=framing, follow=False)


@pytest.mark.parametrize("framing", NAMES)
async def test_the_bytes_of_each_framing_are_those_of_its_node(framing: FramingName) -> None:
    """Cases 1, 2 and 3: head, an event, keep-alive comments at their interval, the end."""
    async with still(framing) as node, dialled(node.url) as raw:
        await raw.ask("/eth/v1/events?topics=block")
        assert await raw.read_for(1) == OPENINGS[framing]
        node.publish("block", {"slot": "7"})
        assert await raw.read_for(1) == EVENTS[framing]
        interval, comment = KEEP_ALIVES[framing]
        if comment:
            assert await raw.read_for(interval - 1.5) == b""
            assert await raw.read_for(1) == comment
            assert await raw.read_for(2 * interval) == 2 * comment
        else:
            assert await raw.read_for(3600) == b""
        node.end_streams()
        assert await raw.read_for(1) == (b"" if framing in {"nimbus", "teku"} else b"0\r\n\r\n")
        assert raw.ended == "eof"


@pytest.mark.parametrize("framing", NAMES)
async def test_each_framing_is_followed_by_a_strict_client(framing: FramingName) -> None:
    chain = SimulatedChain(start_slot=100)
    async with SimulatedNode(chain, framing=framing) as node, listening(node.url, f"{HEADS}&topics=block") as heard:
        await anyio.sleep(12 * 4)
    assert heard.slots() == [100, 101, 102, 103]
    assert heard.slots("block") == [100, 101, 102, 103]
    first_of_a_slot = heard.topics()[:2]
    assert first_of_a_slot == (["head", "block"] if framing == "teku" else ["block", "head"])
    assert [event.at for event in heard.heard if event.topic == "head"] == [1.0, 13.0, 25.0, 37.0]


async def test_teku_wants_the_exact_accept() -> None:
    """Case 3: a list in `Accept` gets no stream."""
    async with still("teku") as node:
        accept = {"Accept": "text/event-stream, application/json"}
        reply = await fetch(node.url, HEADS, headers=accept)
        assert (reply.status, reply.body) == (200, b"")
        assert "content-type" not in reply.headers


async def test_headers_can_wait_for_the_first_event_in_every_framing() -> None:
    """H2: some nodes send response headers only with their first event."""
    for framing in NAMES:
        node = SimulatedNode(
            SimulatedChain(start_slot=100), framing=framing, follow=False, headers_with_first_event=True
        )
        async with node, dialled(node.url) as raw:
            await raw.ask("/eth/v1/events?topics=block")
            assert await raw.read_for(120) == b""
            assert node.opens[0].status is None
            node.publish("block", {"slot": "7"})
            assert (await raw.read_for(1)).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_data_of_several_lines_becomes_several_data_lines() -> None:
    """Case 3: a newline within the data never breaks the framing."""
    async with still("teku") as node, dialled(node.url) as raw:
        await raw.ask("/eth/v1/events?topics=block")
        await raw.read_for(1)
        node.publish("block", "one\ntwo")
        assert await raw.read_for(1) == b"event: block\ndata: one\ndata: two\n\n"


REFUSALS = {
    "nimbus": {
        "code": 400,
        "message": "Invalid topics value",
        "stacktraces": ["Incorrect event's topic value"],
    },
    "prysm": {"message": "weather: invalid topic name", "code": 400},
    "grandine": {"code": 400, "message": "invalid query string: topics: Matching variant not found"},
    "spec": {"code": 400, "message": "Invalid topic: weather"},
    "lodestar": {"statusCode": 400, "error": "Bad Request", "message": "Invalid topic: weather"},
}


@pytest.mark.parametrize("style", list(REFUSALS))
async def test_unknown_topics_are_refused_in_each_nodes_words(style: Any) -> None:
    """Cases 5, 6 and 7: the texts, and that one unknown topic fails the set."""
    chain = SimulatedChain(start_slot=100)
    async with SimulatedNode(chain, unknown_topics=style, topics=("head", "block")) as node:
        reply = await fetch(node.url, HEADS + "&topics=weather")
        assert reply.status == 400
        assert reply.json == REFUSALS[style]
        reply = await fetch(node.url, HEADS + "&topics=head_v2")
        assert reply.status == 400
        assert [record.status for record in node.opens] == [400, 400]
        assert node.opens[1].topics == ("head", "head_v2")


async def test_nimbus_refuses_a_topic_given_twice() -> None:
    async with still("nimbus") as node:
        assert (await fetch(node.url, HEADS + "&topics=head")).status == 400


async def test_lodestar_ignores_an_unknown_topic_beside_a_known_one_and_hangs_on_it_alone() -> None:
    """Case 5, and the recordings of Lodestar 1.5.1: also for comma-joined topics, and for none."""
    async with SimulatedNode(SimulatedChain(start_slot=100), framing="lodestar") as node:
        for target in ("/eth/v1/events?topics=weather", "/eth/v1/events?topics=head,block", "/eth/v1/events"):
            async with dialled(node.url) as raw:
                await raw.ask(target)
                assert await raw.read_for(120) == b""
                assert raw.ended is None
        async with listening(node.url, HEADS + "&topics=weather") as heard:
            await anyio.sleep(24)
        assert len(heard.slots()) == 2
        assert [record.status for record in node.opens] == [None, None, None, 200]


async def test_a_node_can_answer_200_and_ignore_unknown_topics_for_ever() -> None:
    """Case 5, before the fix."""
    node = SimulatedNode(SimulatedChain(start_slot=100), unknown_topics="open", framing="prysm")
    async with node, listening(node.url, "/eth/v1/events?topics=test") as heard:
        await anyio.sleep(60)
    assert heard.reply is not None
    assert heard.reply.status == 200
    assert heard.heard == []


async def test_the_comma_form_of_topics_is_read_where_the_node_reads_it() -> None:
    """Case 4: Lighthouse's form; elsewhere it is one unknown topic."""
    chain = SimulatedChain(start_slot=100)
    async with SimulatedNode(chain) as node, listening(node.url, "/eth/v1/events?topics=head,block") as heard:
        await anyio.sleep(12)
    assert heard.topics() == ["block", "head"]
    async with SimulatedNode(chain, framing="prysm") as node:
        reply = await fetch(node.url, "/eth/v1/events?topics=head,block")
        assert reply.json == {"message": "head,block: invalid topic name", "code": 400}
