"""Event streams as real beacon nodes frame them: the same events from all (cases 1–3), and recordings of real nodes."""

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from tests.recordings import load, load_body
from tests.sse_reference import Event, interpret, plain
from vc_fallback.wire.sse import SSEDecoder

HEAD = (
    '{"slot":"6071990","block":"0x' + "aa" * 32 + '","state":"0x' + "bb" * 32 + '","epoch_transition":false,'
    '"previous_duty_dependent_root":"0x' + "dd" * 32 + '","current_duty_dependent_root":"0x' + "cc" * 32 + '",'
    '"execution_optimistic":false}'
)
BLOCK = '{"slot":"6071990","block":"0x' + "aa" * 32 + '","execution_optimistic":false}'
EVENTS = [("head", HEAD), ("block", BLOCK), ("head", HEAD)]


def lighthouse() -> bytes:
    """No space after the colon; a bare colon and a blank line every 15 s."""
    return ":\n\n".join(f"event:{name}\ndata:{data}\n\n" for name, data in EVENTS).encode()


def prysm() -> bytes:
    """A comment at once, then after each idle slot."""
    return (":\n\n" + ":\n\n".join(f"event: {name}\ndata: {data}\n\n" for name, data in EVENTS)).encode()


def lodestar() -> bytes:
    """No comments."""
    return "".join(f"event: {name}\ndata: {data}\n\n" for name, data in EVENTS).encode()


def nimbus() -> bytes:
    """CRLF, no comments."""
    return "".join(f"event: {name}\r\ndata: {data}\r\n\r\n" for name, data in EVENTS).encode()


def teku() -> bytes:
    """A comment glued to the first event, an empty one without a blank line every 30 s."""
    return (": ready\n" + ": \n".join(f"event: {name}\ndata: {data}\n\n" for name, data in EVENTS)).encode()


def carriage_returns() -> bytes:
    """CR alone ends a line: allowed by the standard, sent by none of them."""
    return lighthouse().replace(b"\n", b"\r")


def byte_order_mark() -> bytes:
    """As written by a proxy that rewrites text."""
    return b"\xef\xbb\xbf" + nimbus()


def mixed_line_ends() -> bytes:
    """Three events, each with line ends of its own."""
    first, second, third = (f"event: {name}\ndata: {data}\n\n".encode() for name, data in EVENTS)
    return first.replace(b"\n", b"\r\n") + second.replace(b"\n", b"\r") + third


def optional_fields() -> bytes:
    """With `id` and `retry`, which Teku's server can send, an unknown field, and fields in another order."""
    return "".join(
        f"retry: 3000\nexecution_optimistic: false\ndata: {data}\nevent: {name}\nid\n\n" for name, data in EVENTS
    ).encode()


FRAMINGS = [
    *(lighthouse, prysm, lodestar, nimbus, teku),
    *(carriage_returns, byte_order_mark, mixed_line_ends, optional_fields),
]


def decode(parts: Iterable[bytes]) -> list[tuple[str, str]]:
    decoder = SSEDecoder()
    return [(event.event, event.data) for part in parts for event in decoder.feed(part)]


@pytest.mark.parametrize("framing", FRAMINGS)
def test_all_framings_give_the_same_events_cut_at_every_byte(framing: Callable[[], bytes]) -> None:
    """Case 3: one result, whole, cut in two at every byte, and byte by byte."""
    stream = framing()
    assert decode([stream]) == EVENTS
    for at in range(1, len(stream)):
        assert decode([stream[:at], stream[at:]]) == EVENTS
    assert decode(stream[at : at + 1] for at in range(len(stream))) == EVENTS


@pytest.mark.parametrize("framing", FRAMINGS)
def test_data_over_two_lines_is_one_event(framing: Callable[[], bytes]) -> None:
    """Case 3: Javalin writes a `data` line for each line of the text; JSON stays JSON, a line break is space."""
    stream = framing()
    end = next(end for end in (b"\r\n", b"\n", b"\r") if end in stream)
    stream = stream.replace(b'"block"', end + b'data: "block"')
    expected = [(name, data.replace('"block"', '\n"block"')) for name, data in EVENTS]
    assert decode([stream]) == expected
    assert decode(stream[at : at + 3] for at in range(0, len(stream), 3)) == expected


def test_fields_without_a_space_and_bare_colon_comments() -> None:
    """Case 1: the comment is no event, counts as life, and a field of its own line is ignored; a jump is no fault."""
    decoder = SSEDecoder()
    stream = (
        b'event:head\ndata:{"slot":"876797"}\n\n:\n\n'
        b'event:head\ndata:{"slot":"876799"}\nexecution_optimistic: false\n\n:\n\n'
    )
    events = plain(decoder.feed(stream))
    assert events == [Event("head", '{"slot":"876797"}', "", None), Event("head", '{"slot":"876799"}', "", None)]
    assert decoder.comments == 2


def test_a_comment_glued_to_the_first_event() -> None:
    """Case 2: `: ready` without a blank line does not cost the event; `head` may come before `block`."""
    stream = teku()
    assert stream.startswith(b": ready\nevent: head\n")
    seen: list[str] = []
    decoder = SSEDecoder(on_comment=seen.append)
    assert [event.event for event in decoder.feed(stream)] == ["head", "block", "head"]
    assert seen == ["ready", "", ""]


def test_an_error_in_the_stream_is_an_event_like_another() -> None:
    """Case 4: the decoder hands it out; what it means is not its matter."""
    data = '{"status_code":400,"message":"Topic head,block not allowed for event subscriptions"}'
    assert decode([f"event: error\ndata: {data}\n\n".encode()]) == [("error", data)]


def test_a_250_kb_slashing_passes_and_heads_go_on() -> None:
    """Case 14: 20 000 indices on one line are below the bound and cost nothing else."""
    indices = ",".join(f'"{index}"' for index in range(1_000_000_000, 1_000_020_000))
    slashing = '{"attestation_1":{"attesting_indices":[' + indices + "]}}"
    stream = f"event: attester_slashing\ndata: {slashing}\n\n".encode() + lodestar()
    parts = (stream[at : at + 1460] for at in range(0, len(stream), 1460))
    assert len(slashing) > 250_000
    assert decode(parts) == [("attester_slashing", slashing), *EVENTS]


KINDS = {
    "n1_repeated_head_and_unknown": {"head": 6},
    "reorg_n1": {"head": 49, "block": 52, "attestation": 60, "chain_reorg": 1, "finalized_checkpoint": 2},
    "el_n2": {"head": 20, "block": 20},
    "restart_resync_n3": {"head": 58, "block": 58, "finalized_checkpoint": 4},
}


@pytest.mark.parametrize("name", KINDS)
def test_recordings_of_real_nodes_give_every_event_at_any_cut(name: str) -> None:
    """Each recorded event once, as the node's own writes cut the stream, and cut in pieces of many sizes."""
    parts = [data for _, data in load_body(name)]
    stream = b"".join(parts)
    expected = interpret(stream).events
    assert Counter(event.event for event in expected) == KINDS[name]
    assert decode(parts) == [(event.event, event.data) for event in expected]
    for size in (1, 2, 3, 5, 17, 101, 439, 440, 441, 1460, 4096):
        assert decode(stream[at : at + size] for at in range(0, len(stream), size)) == decode(parts)


def test_a_recording_of_a_real_node_cut_in_two_at_every_byte() -> None:
    """Six heads, wherever the cut is."""
    stream = b"".join(data for _, data in load_body("n1_repeated_head_and_unknown"))
    whole = decode([stream])
    assert len(whole) == 6
    for at in range(len(stream)):
        assert decode([stream[:at], stream[at:]]) == whole


@pytest.mark.parametrize("name", KINDS)
def test_the_loader_gives_every_read(name: str) -> None:
    """The helper the other tests stand on: times grow, the first read has the HTTP head, no chunk framing is left."""
    reads = load(name)
    times = [elapsed for elapsed, _ in reads]
    assert times == sorted(times)
    assert reads[0][1].startswith(b"HTTP/1.1 200 OK\r\n")
    assert all(data.endswith(b"\n\n") for _, data in load_body(name)), "a real node writes whole events"
