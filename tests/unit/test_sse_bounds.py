"""The bounds of the event stream decoder: size of a line and an event, memory, and cost."""

import time
import tracemalloc
from collections.abc import Callable, Iterable

import pytest

from tests.sse_reference import Event, plain
from vc_fallback.wire.sse import SIZE_LIMIT, SSEDecoder

AFTER = b"event: head\ndata: after\n\n"


def feed_all(decoder: SSEDecoder, parts: Iterable[bytes]) -> list[Event]:
    return plain([event for part in parts for event in decoder.feed(part)])


def in_pieces(stream: bytes, size: int) -> list[bytes]:
    return [stream[at : at + size] for at in range(0, len(stream), size)]


def test_the_bounds_are_16_mib_by_default() -> None:
    """Q15: a line of exactly 16 MiB is an event, a byte more is dropped."""
    exact = b"data: " + b"x" * (SIZE_LIMIT - 6)
    decoder = SSEDecoder()
    events = decoder.feed(exact + b"\n\n" + exact + b"x\n\n" + AFTER)
    assert [(e.event, len(e.data)) for e in events] == [("message", SIZE_LIMIT - 6), ("head", 5)]
    assert decoder.dropped == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 15, 16, 17, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_line_over_the_bound_costs_its_event_only(size: int, end: bytes) -> None:
    """Case 14: the event of the long line is gone and counted once, those around it are not."""
    block = end.join([b"data: before", b"", b"data: 0123456789", b"", b"data: 0123456789x", b"data: b", b"", b""])
    decoder = SSEDecoder(line_limit=16)
    events = feed_all(decoder, in_pieces(block * 2 + AFTER.replace(b"\n", end), size))
    kept = [Event("message", data, "", None) for data in ("before", "0123456789")]
    assert events == [*kept, *kept, Event("head", "after", "", None)]
    assert decoder.dropped == 2


@pytest.mark.parametrize("size", [1, 5, 16, 1000])
def test_the_bound_of_an_event_is_of_its_data_with_inner_line_ends(size: int) -> None:
    """Q15: two lines of three and the LF between them are seven bytes; the next line is one too many."""
    decoder = SSEDecoder(event_limit=7)
    stream = b"data: abc\ndata: def\n\ndata: abc\ndata: def\ndata\n\ndata: 01234567\n\n" + AFTER
    assert [e.data for e in feed_all(decoder, in_pieces(stream, size))] == ["abc\ndef", "after"]
    assert decoder.dropped == 2


def test_a_drop_is_counted_before_the_event_ends() -> None:
    """The caller decides whether to reconnect; on an endless line it could wait for ever for an end."""
    decoder = SSEDecoder(line_limit=10)
    assert decoder.feed(b"data: 0123") == []
    assert decoder.dropped == 0
    assert decoder.feed(b"4") == []
    assert decoder.dropped == 1
    assert decoder.feed(b"5" * 100) == []
    assert decoder.dropped == 1


def test_the_other_fields_of_a_dropped_event_count() -> None:
    """It came and was given up here, so its id and retry hold; its type must not leak into the next event."""
    decoder = SSEDecoder(line_limit=12)
    events = decoder.feed(b"event: head\nid: 7\ndata: 0123456\nretry: 4\n\ndata: next\n\n")
    assert plain(events) == [Event("message", "next", "7", None)]
    assert (decoder.dropped, decoder.retry, decoder.last_event_id) == (1, 4, "7")


def test_a_long_id_or_unknown_field_drops_its_event() -> None:
    """A line over the bound is not looked at, whatever it was; an id in force before stays."""
    decoder = SSEDecoder(line_limit=10)
    events = decoder.feed(b"id: 1\ndata: a\n\nid: 234567890\ndata: b\n\nunknown: 01\ndata: c\n\ndata: d\n\n")
    assert [(e.data, e.id) for e in events] == [("a", "1"), ("d", "1")]
    assert decoder.dropped == 2


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(lambda: [b"x" * 4096] * 250, id="endless line"),
        pytest.param(lambda: [b":" * 4096] * 250, id="endless comment"),
        pytest.param(lambda: [b"data: 0123456789\n" * 100] * 600, id="endless event"),
        pytest.param(lambda: [b"data\n" * 1000] * 200, id="endless event of empty lines"),
        pytest.param(lambda: [b"data: xyz\r" * 1000] * 100, id="endless event of short lines"),
        pytest.param(lambda: [b"event: head\nid: 1\nfoo: bar\n" * 100] * 400, id="endless block without data"),
        pytest.param(lambda: [b"\n" * 4096] * 250, id="endless blank lines"),
        pytest.param(lambda: [b"\n" * 4096 * 250], id="blank lines in one read"),
        pytest.param(lambda: [b"data: a" * 150_000], id="one huge read"),
    ],
)
def test_memory_is_bounded(parts: Callable[[], list[bytes]]) -> None:
    """Case 14: a megabyte of anything leaves no more than the bounds (8 KiB here) and a piece's lines in memory."""
    decoder = SSEDecoder(line_limit=8 * 1024, event_limit=8 * 1024)
    fed = parts()
    tracemalloc.start()
    try:
        for part in fed:
            assert decoder.feed(part) == []
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 30_000
    assert peak < 250_000
    assert decoder.dropped <= 1
    assert plain(decoder.feed(b"\n\nid\n" + AFTER))[-1] == Event("head", "after", "", None)


def cpu_time(run: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(lambda n: (b"data: " + b"x" * n + b"\n\n", 1), id="line of single bytes"),
        pytest.param(lambda n: (b": " + b"x" * n + b"\n\n", 1), id="comment of single bytes"),
        pytest.param(lambda n: (b"data: x\n" * (n // 8) + b"\n", 1), id="event of many lines, single bytes"),
        pytest.param(lambda n: (b"data: x\r\n" * n + b"\r\n", 5000), id="event of many lines"),
        pytest.param(lambda n: (b"data: " + b"x" * 100 * n + b"\n\n", 100), id="long line in small reads"),
        pytest.param(lambda n: (b"\n" * 20 * n, 10 * n), id="many line ends in one read"),
        pytest.param(lambda n: (b"\r" * 20 * n, 10 * n), id="many CR in one read"),
        pytest.param(lambda n: (b"data: " + b"\xff" * 50 * n + b"\n\n", 20 * n), id="invalid bytes"),
    ],
)
def test_cost_is_linear(stream: Callable[[int], tuple[bytes, int]]) -> None:
    """Eight times the bytes take about eight times the processor time; a quadratic cost would take 64 times it.

    The bound lies at the geometric middle of both, far from what noise does to a minimum of three.
    """
    times = []
    for n in (10_000, 80_000):
        fed = in_pieces(*stream(n))
        times.append(cpu_time(lambda fed=fed: feed_all(SSEDecoder(), fed)))  # type: ignore[misc]
    assert times[1] < 24 * times[0] + 0.01
