"""Properties of the event stream decoder over generated streams."""

import httpx
import httpx_sse
from hypothesis import given
from hypothesis import strategies as st

from tests.sse_reference import Interpretation, interpret, plain
from vc_fallback.wire.sse import SSEDecoder

# Streams made of what matters to the rules, so that lines, blocks and half sequences occur often.
TOKENS = (
    *(b"data", b"event", b"id", b"retry", b"head", b"x", b"7", b"000", b":", b": ", b" ", b"\n", b"\n\n", b"\r"),
    *(b"\r\n", b"\r\n\r\n", b"\0", b"\xef\xbb\xbf", b"\xef", b"\xbb", b"\xbf", b"\xe2\x82\xac", b"\xe2\x82", b"\xf0"),
    *(b"\xc2\x85", b"\x0b", b"data: {}\n\n", b"event: head\n", b"id: 1\n", b"retry: 5\n", b": c\n"),
)
streams = st.lists(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=3)), max_size=60).map(b"".join)


@st.composite
def cut_streams(draw: st.DrawFn) -> list[bytes]:
    """A stream cut at any places."""
    stream = draw(streams)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=len(stream))))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


@given(cut_streams())
def test_any_cut_of_a_stream_gives_what_the_whole_gives_by_the_standard(parts: list[bytes]) -> None:
    """HTML standard, 9.2: events, comments, retry and last event id equal those of the plain whole-stream reading."""
    decoder = SSEDecoder()
    events = [event for part in parts for event in decoder.feed(part)]
    got = Interpretation(plain(events), decoder.comments, decoder.retry, decoder.last_event_id)
    assert got == interpret(b"".join(parts))
    assert decoder.dropped == 0


@given(cut_streams(), st.integers(1, 20), st.integers(1, 20))
def test_cuts_make_no_difference_to_what_is_dropped(parts: list[bytes], line_limit: int, event_limit: int) -> None:
    """Q15: with bounds that bite, a stream in one piece and cut anywhere give the same events and counts."""
    cut, whole = (SSEDecoder(line_limit=line_limit, event_limit=event_limit) for _ in range(2))
    events = [event for part in parts for event in cut.feed(part)]
    assert plain(events) == plain(whole.feed(b"".join(parts)))
    assert (cut.comments, cut.dropped, cut.retry) == (whole.comments, whole.dropped, whole.retry)


values = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=20)
fields = st.one_of(
    st.builds("data:{}{}".format, st.sampled_from(["", " "]), values),
    st.builds("event:{}{}".format, st.sampled_from(["", " "]), values),
    st.builds("id:{}{}".format, st.sampled_from(["", " "]), values),
    st.builds(
        "retry: {}".format, st.one_of(st.integers(0, 10**18 - 1).map(str), st.from_regex("[a-z]+", fullmatch=True))
    ),
    st.builds(":{}".format, values),
    st.builds("unknown:{}".format, values),
)


@st.composite
def oracle_streams(draw: st.DrawFn) -> bytes:
    """Blocks with a data line each, ended by exactly one blank line, in any mix of line ends."""
    lines: list[str] = []
    for block in draw(st.lists(st.lists(fields, max_size=5), max_size=6)):
        data = draw(values)
        lines += [*block, f"data: {data}", ""]
    ends = st.sampled_from(["\n", "\r\n", "\r"])
    return "".join(line + draw(ends) for line in lines).encode()


@given(oracle_streams(), st.data())
def test_httpx_sse_agrees_where_it_is_right(stream: bytes, data: st.DataObject) -> None:
    """The oracle is right about streams without BOM whose every block has a data line and one blank line after it,
    whose `retry` is of ASCII digits or of letters, in valid UTF-8 without a charset parameter.

    Outside of that it makes events of blocks without data, of comments after an id and of a second blank line,
    takes `retry: +5`, keeps the BOM and obeys the charset.
    """
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream)
    expected = plain(list(httpx_sse.EventSource(response).iter_sse()))
    decoder = SSEDecoder()
    cut = data.draw(st.integers(0, len(stream)))
    assert plain([*decoder.feed(stream[:cut]), *decoder.feed(stream[cut:])]) == expected
