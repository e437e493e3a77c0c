"""The event stream decoder against the rules of the HTML standard, on whole streams and cut anywhere."""

from collections.abc import Iterable

import pytest

from tests.sse_reference import Event, plain
from vc_fallback.wire.sse import COMMENT_LIMIT, SSEDecoder

BOM = b"\xef\xbb\xbf"


def decode(*parts: bytes) -> list[Event]:
    decoder = SSEDecoder()
    return plain([event for part in parts for event in decoder.feed(part)])


def message(data: str, event: str = "message", id: str = "", retry: int | None = None) -> Event:  # noqa: A002
    return Event(event, data, id, retry)


def every_cut(stream: bytes) -> Iterable[list[bytes]]:
    """The stream cut in two at every byte, and byte by byte."""
    for at in range(len(stream) + 1):
        yield [stream[:at], stream[at:]]
    yield [stream[at : at + 1] for at in range(len(stream))]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        pytest.param(b"data: a\n\n", [message("a")], id="plain"),
        pytest.param(b"data:a\n\n", [message("a")], id="no space after the colon"),
        pytest.param(b"data:  a \n\n", [message(" a ")], id="at most one leading space is taken off"),
        pytest.param(b"data:\ta\n\n", [message("\ta")], id="a tab is no space"),
        pytest.param(b"event:  head\ndata: a\n\n", [message("a", " head")], id="one space of a type too"),
        pytest.param(b"data: a: b\n\n", [message("a: b")], id="only the first colon ends the name"),
        pytest.param(b"data\n\n", [message("")], id="field without colon"),
        pytest.param(b"data\ndata\n\n", [message("\n")], id="two fields without colon"),
        pytest.param(b"data:\n\n", [message("")], id="empty data is an event"),
        pytest.param(b"data: \n\n", [message("")], id="only a space"),
        pytest.param(b"data: a\ndata:b\ndata: c\n\n", [message("a\nb\nc")], id="lines are joined by LF"),
        pytest.param(b"data: a\ndata:\n\n", [message("a\n")], id="only the last LF is taken off"),
        pytest.param(b"event: head\n\n", [], id="no dispatch without data: event"),
        pytest.param(b"id: 1\n\n", [], id="no dispatch without data: id"),
        pytest.param(b"retry: 1\n\n", [], id="no dispatch without data: retry"),
        pytest.param(b"\n\n\n\n", [], id="blank lines"),
        pytest.param(b": c\n\n", [], id="comment alone"),
        pytest.param(b"id: 1\n\n: c\n\ndata: a\n\n", [message("a", id="1")], id="comment after an id"),
        pytest.param(b"event: head\n\ndata: a\n\n", [message("a")], id="type is reset without dispatch"),
        pytest.param(b"event: head\ndata: a\n\ndata: b\n\n", [message("a", "head"), message("b")], id="type is reset"),
        pytest.param(b"event: a\nevent: b\ndata: a\n\n", [message("a", "b")], id="the last type counts"),
        pytest.param(b"event: a\nevent\ndata: a\n\n", [message("a")], id="an empty type is message"),
        pytest.param(b": c\nevent: head\n:\ndata: a\n: c\n\n", [message("a", "head")], id="glued comments"),
        pytest.param(b"data: a\n\n data: b\n\n", [message("a")], id="a space before a name makes another name"),
        pytest.param(b"Data: a\nDATA: b\ndat: c\ndatas: d\n\n", [], id="names are exact"),
        pytest.param(b"execution_optimistic: false\ndata: a\n\n", [message("a")], id="unknown field"),
        pytest.param(b"data: a\n\ndata: b\n", [message("a")], id="end without blank line"),
        pytest.param(b"data: a\n\ndata: b", [message("a")], id="end within a line"),
        pytest.param(b"data: a\r\n\r\ndata: b\r\r" + b"data: c\n\n", [message(x) for x in "abc"], id="line ends"),
        pytest.param(b"data: a\r\ndata: b\rdata: c\n\r\n", [message("a\nb\nc")], id="mixed line ends"),
        pytest.param(b"data: a\n\r", [message("a")], id="LF CR is two ends"),
        pytest.param(
            b"data: a\x0bb\x0c\xc2\x85\xe2\x80\xa8c\n\n", [message("a\x0bb\x0c\x85\u2028c")], id="no other ends"
        ),
        pytest.param(BOM + b"data: a\n\n", [message("a")], id="BOM"),
        pytest.param(BOM + BOM + b"data: a\n\ndata: b\n\n", [message("b")], id="only one BOM"),
        pytest.param(b"data: a\n\n" + BOM + b"data: b\n\n", [message("a")], id="BOM only at the start"),
        pytest.param(b"\xef\xbbdata: a\n\ndata: b\n\n", [message("b")], id="half a BOM"),
        pytest.param(b"data: \xef\xbb\xbfa\n\n", [message("\ufeffa")], id="BOM in a value stays"),
        pytest.param("data: 1 €\n\n".encode(), [message("1 €")], id="UTF-8"),
        pytest.param(b"data: a\x00b\n\n", [message("a\0b")], id="NUL in data"),
    ],
)
def test_streams(stream: bytes, expected: list[Event]) -> None:
    """HTML standard, 9.2: each rule, and the same events however the bytes are cut."""
    assert decode(stream) == expected
    for parts in every_cut(stream):
        assert decode(*parts) == expected


def test_last_event_id_persists_until_changed() -> None:
    """The id stays for later events, an empty one clears it, one with NUL is ignored."""
    decoder = SSEDecoder()
    events = decoder.feed(
        b"id: 1\ndata: a\n\ndata: b\n\nid: 2\x00\ndata: c\n\nid: \xe2\x82\xac\n\ndata: d\n\nid\ndata: e\n\nid: 9\n"
    )
    assert [(e.data, e.id) for e in events] == [("a", "1"), ("b", "1"), ("c", "1"), ("d", "€"), ("e", "")]
    assert decoder.last_event_id == "", "the id of a block that has not ended is not in force"
    decoder.feed(b"\n")
    assert decoder.last_event_id == "9"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"0", 0),
        (b"5000", 5000),
        (b"00010", 10),
        (b"0" * 30, 0),
        (b"9" * 18, 10**18 - 1),
        (b"0" * 9000 + b"7", 7),
        (b"", None),
        (b" 5", None),
        (b"5 ", None),
        (b"+5", None),
        (b"-5", None),
        (b"5.0", None),
        (b"1_000", None),
        (b"1e3", None),
        (b"0x5", None),
        ("٣".encode(), None),
        ("²".encode(), None),
        (b"9" * 19, None),
        (b"9" * 9000, None),
    ],
)
def test_retry_takes_ascii_digits_only(value: bytes, expected: int | None) -> None:
    """Only ASCII digits count; a number beyond any wait is ignored, so that none is too long to convert."""
    decoder = SSEDecoder()
    (event,) = decoder.feed(b"retry: " + value + b"\ndata: a\n\n")
    assert event.retry == expected
    assert decoder.retry == expected


def test_retry_is_kept_for_the_stream_and_given_with_its_own_event() -> None:
    """A later event and a bad value leave the stream's `retry` as it was."""
    decoder = SSEDecoder()
    events = decoder.feed(b"retry: 5\n\ndata: a\n\nretry: 6\nretry: x\ndata: b\n\ndata: c\n\n")
    assert [(e.data, e.retry) for e in events] == [("a", None), ("b", 6), ("c", None)]
    assert decoder.retry == 6


@pytest.mark.parametrize(
    "value",
    [
        b"\xff",
        b"a\x80b",
        b"\xe2\x82",
        b"\xe2\x82 x",
        b"\xf0\x9f\x92",
        b"\xf0\x80\x80\x80",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82\xe2\x82\xac",
    ],
)
def test_invalid_utf8_is_replaced_as_in_the_whole_stream(value: bytes) -> None:
    """A line end is ASCII and never part of a sequence, so decoding by line equals decoding the stream."""
    stream = b"event: x" + value + b"\ndata: " + value + b"\ndata:" + value + b"\n\ndata: after\n\n"
    text = stream.decode("utf-8", "replace")
    data = text.split("\n")
    expected = [
        message(f"{data[1].removeprefix('data: ')}\n{data[2].removeprefix('data:')}", data[0].removeprefix("event: ")),
        message("after"),
    ]
    assert decode(stream) == expected
    for parts in every_cut(stream):
        assert decode(*parts) == expected


def test_an_event_is_handed_out_with_the_byte_that_ends_it() -> None:
    """Also when that byte is a CR after which an LF may come: no event waits for the next read."""
    decoder = SSEDecoder()
    assert decoder.feed(b"data: a\r\n") == []
    assert plain(decoder.feed(b"\r")) == [message("a")]
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"") == []
    assert decoder.feed(b"data: b\r") == []
    assert plain(decoder.feed(b"\r")) == [message("b")]


def test_an_empty_read_between_cr_and_lf_does_not_part_them() -> None:
    """CR, nothing, LF is one line end."""
    assert decode(b"data: a\r", b"", b"\ndata: b\r", b"", b"\n", b"\r\n") == [message("a\nb")]


def test_a_buffer_can_be_used_again_after_feed() -> None:
    """The wire reads into one buffer: neither events nor a begun line may refer to it."""
    decoder = SSEDecoder()
    buffer = bytearray(b"data: first\n\ndata: sec")
    events = decoder.feed(memoryview(buffer))
    buffer[:] = b"x" * len(buffer)
    events += decoder.feed(bytearray(b"ond\n\n"))
    buffer += b"resizing fails while a view is held"
    assert plain(events) == [message("first"), message("second")]


def test_comments_are_counted_and_handed_out() -> None:
    """H5, H14: a connection is known to send comments, and their text can be read."""
    seen: list[str] = []
    decoder = SSEDecoder(on_comment=seen.append)
    stream = b": ready\nevent: head\n:\ndata: a\n:  two\n\n: \n\n:error - dropped 3 messages\n\n: \xff\n"
    for at in range(len(stream)):
        decoder.feed(stream[at : at + 1])
    assert seen == ["ready", "", " two", "", "error - dropped 3 messages", "\ufffd"]
    assert decoder.comments == 6
    assert SSEDecoder().feed(stream), "comments need no reader"


def test_a_long_comment_is_cut_and_costs_no_event() -> None:
    """A comment over the bound belongs to no event: it is one comment, cut, and nothing is dropped."""
    seen: list[str] = []
    decoder = SSEDecoder(line_limit=5000, on_comment=seen.append)
    events = decoder.feed(b"data: a\n: " + b"c" * 4000 + b"\n: " + b"d" * 9000 + b"\ndata: b\n\n")
    assert plain(events) == [message("a\nb")]
    assert [text[:1] for text in seen] == ["c", "d"]
    assert [len(text) for text in seen] == [COMMENT_LIMIT - 1] * 2
    assert (decoder.comments, decoder.dropped) == (2, 0)


@pytest.mark.parametrize(("line_limit", "event_limit"), [(0, 1), (1, 0), (-1, 1)])
def test_a_limit_below_one_is_refused(line_limit: int, event_limit: int) -> None:
    """A bound of nothing would drop everything in silence."""
    with pytest.raises(ValueError, match="at least 1"):
        SSEDecoder(line_limit=line_limit, event_limit=event_limit)
