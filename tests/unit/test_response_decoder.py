"""The response decoder by itself: how bytes are cut into reads never matters, only errors of httpx come out."""

from itertools import pairwise

import httpx
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.wire.codec import ResponseDecoder
from vc_fallback.wire.http import Head, WireLimits

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 11\r\n\r\nhello world"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n"
    b"5;ext=1\r\nhello\r\n1\r\n \r\n0005\r\nworld\r\n0\r\nTrailer: z\r\n\r\n"
)
INFORMED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.0 200 OK\r\n\r\nhello world"

cuts = st.lists(st.integers(0, 400), max_size=12)


class Kept:
    """A receiver that keeps what it is told; with a place of its own if asked to."""

    def __init__(self, *, direct: bool) -> None:
        self.direct = direct
        self.heads: list[Head] = []
        self.body = bytearray()
        self.place = memoryview(bytearray(3))
        self.ended = False

    def head(self, head: Head) -> None:
        self.heads.append(head)

    def data(self, data: bytes) -> None:
        assert data
        self.body += data

    def room(self, remaining: int) -> memoryview | None:
        return self.place[:remaining] if self.direct else None

    def filled(self, count: int) -> None:
        self.body += self.place[:count]

    def end(self) -> None:
        assert not self.ended
        self.ended = True


def decode(decoder: ResponseDecoder, data: bytes, cuts: list[int], *, direct: bool = False, eof: bool = False) -> Kept:
    kept = Kept(direct=direct)
    decoder.begin("GET", kept)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in pairwise(places):
        piece = data[start:end]
        while piece and (room := decoder.room()) is not None:
            count = min(len(room), len(piece))
            room[:count] = piece[:count]
            decoder.filled(count)
            piece = piece[count:]
        if piece:
            decoder.feed(piece)
    if eof:
        decoder.feed_eof()
    return kept


@given(cuts, st.booleans(), st.booleans())
def test_cutting_does_not_matter(cuts: list[int], direct: bool, informed: bool) -> None:
    """One connection's responses, however they are read: same head, same body, the connection fit for the next."""
    decoder = ResponseDecoder(WireLimits())
    for data in (LENGTH, CHUNKED, LENGTH, CHUNKED):
        kept = decode(decoder, INFORMED * informed + data, cuts, direct=direct)
        assert bytes(kept.body) == b"hello world"
        assert [head.status for head in kept.heads] == [200]
        assert kept.ended
        assert decoder.complete
        assert decoder.reusable
    kept = decode(decoder, UNTIL_CLOSE, cuts, eof=True)
    assert bytes(kept.body) == b"hello world"
    assert decoder.complete
    assert not decoder.reusable


@given(cuts, st.sampled_from([LENGTH, CHUNKED]), st.binary(min_size=1, max_size=40))
def test_bytes_behind_the_end_cost_the_connection(cuts: list[int], data: bytes, extra: bytes) -> None:
    """Hazard 11: they reach nobody, however they are read. A bare CRLF that came with a last chunk is let pass."""
    decoder = ResponseDecoder(WireLimits())
    kept = decode(decoder, data + extra, cuts)
    assert bytes(kept.body) == b"hello world"
    assert len(kept.heads) == 1
    assert not decoder.reusable or not extra.strip(b"\r\n")


@given(cuts, st.sampled_from([LENGTH, CHUNKED]), st.integers(0, 400))
def test_every_truncation_is_an_error(cuts: list[int], data: bytes, length: int) -> None:
    """Hazard 8: at whichever byte."""
    decoder = ResponseDecoder(WireLimits())
    try:
        decode(decoder, data[: min(length, len(data) - 1)], cuts, eof=True)
    except httpx.RemoteProtocolError:
        assert not decoder.complete
    else:
        raise AssertionError


@given(st.binary(max_size=300), st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", CHUNKED[:60], INFORMED]), cuts)
def test_nonsense_is_refused_or_decoded_and_nothing_else(data: bytes, begin: bytes, cuts: list[int]) -> None:
    """No bytes bring out any error but httpx's."""
    decoder = ResponseDecoder(WireLimits())
    try:
        decode(decoder, begin + data, cuts, eof=True)
    except httpx.RemoteProtocolError:
        return
    assert decoder.complete or not begin + data
