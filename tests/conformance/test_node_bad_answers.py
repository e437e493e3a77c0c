"""Answers that follow no rule of HTTP: each call ends in its named failure within its time, and the next one works.

http-hazards.md through the node's client, in real time: TCP's own timers take part where much is sent. What comes late
or never is in `test_node_slow_answers.py`, what the answers hold in `test_node_bad_contents.py`.
"""

import gzip
from functools import cache

import anyio
import pytest

from tests.conformance.node_calls import CALLS, MB, TIMEOUT, Call, Trouble, Visit, end, fails, good, say, talk, works
from tests.rawserver import answer
from vc_fallback.base.errors import NodeError
from vc_fallback.node import failures

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\n"
JSON = b"Content-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = OK + b"Content-Encoding: gzip\r\n"


every = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
SOME = ("attestation_data", "attester_duties", "publish_block")
"""A GET, a POST that reads, and a large one that publishes: below that, HTTP knows nothing of calls."""
some = pytest.mark.parametrize("call", [CALLS[name] for name in SOME], ids=SOME)


CUT = {
    "nothing": b"",
    "in the status line": b"HTTP/1.1 20",
    "in the head": OK + b"Content-Len",
    "behind the head": OK + b"Content-Length: 5\r\n\r\n",
    "in the body": OK + b'Content-Length: 500\r\n\r\n{"data":',
    "in a large body": OK + b"Content-Length: 500000\r\n\r\n" + bytes(200000),
    "in the size of a chunk": CHUNKED + b"5",
    "in a chunk": CHUNKED + b'5\r\n{"d',
    "behind a chunk": CHUNKED + b"2\r\n{}\r\n",
    "in the last chunk": CHUNKED + b"2\r\n{}\r\n0\r\n",
    "in a trailer": CHUNKED + b"2\r\n{}\r\n0\r\nA: b\r\n",
    "behind an informational head": b"HTTP/1.1 103 Early Hints\r\n\r\n",
}


@some
@pytest.mark.parametrize("reset", [False, True], ids=["FIN", "RST"])
@pytest.mark.parametrize("data", CUT.values(), ids=CUT)
async def test_answer_that_is_cut_off_is_a_lost_connection(call: Call, data: bytes, reset: bool) -> None:
    """Hazard 8: never short data, nor a request that is sent once more when part of an answer came."""
    async with talk(call.operation, end(data, reset=reset)) as asked:
        await fails(asked, call, failures.ConnectionLost)


MALFORMED = {
    "a page and no head": b"<html><body>502 Bad Gateway</body></html>\r\n\r\n",
    "HTTP/2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18) + b"\r\n\r\n",
    "TLS": b"\x15\x03\x01\x00\x02\x02\x46\r\n\r\n",
    "HTTP/0.9": b'{"data":{}}\r\n\r\n',
    "HTTP/2.0": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "header without a colon": OK + b"Content-Length\r\n\r\n",
    "header with NUL": OK + b"A: b\x00\r\nContent-Length: 0\r\n\r\n",
    "header that is folded": OK + b"A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    "header with a bare CR": OK + b"A: b\rc\r\nContent-Length: 0\r\n\r\n",
    "blank before a colon": OK + b"Content-Length : 0\r\n\r\n",
    "length with a sign": OK + b"Content-Length: +2\r\n\r\n{}",
    "length below 0": OK + b"Content-Length: -2\r\n\r\n{}",
    "length with an underscore": OK + b"Content-Length: 2_0\r\n\r\n{}",
    "length above 2^64": OK + b"Content-Length: 1" + b"0" * 30 + b"\r\n\r\n{}",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "length and chunks": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "transfer coding gzip": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "transfer coding unknown": OK + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunk of 0x2": CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n",
    "chunk of -2": CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n",
    "chunk above 2^64": CHUNKED + b"F" * 17 + b"\r\n{}\r\n",
    "chunk that is longer": CHUNKED + b"2\r\n{}}\r\n0\r\n\r\n",
    "chunk with a bare LF": CHUNKED + b"2\n{}\n0\n\n",
    "101": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    "content coding unknown": OK + b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
    "content coding twice": OK + b"Content-Encoding: gzip, gzip\r\nContent-Length: 2\r\n\r\n{}",
    "no gzip": GZIP + b"Content-Length: 2\r\n\r\n{}",
    "gzip cut off": GZIP + b"Content-Length: 15\r\n\r\n" + gzip.compress(b"{}" * 100)[:15],
}
TOO_LARGE = {
    "256 headers and one": OK + b"A: b\r\n" * 257 + b"\r\n",
    "a header of 64 KiB": OK + b"A: " + b"b" * 64 * 1024 + b"\r\n\r\n",
    "informational heads": b"HTTP/1.1 100 Continue\r\n\r\n" * 17 + answer(),
    "extension of a chunk": CHUNKED + b"2;a=" + b"b" * 64 * 1024 + b"\r\n{}\r\n0\r\n\r\n",
    "trailers": CHUNKED + b"2\r\n{}\r\n0\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
    "64 MiB and one byte announced": OK + b"Content-Length: %d\r\n\r\n" % (64 * MB + 1),
    "2^64 bytes announced": OK + b"Content-Length: 18446744073709551615\r\n\r\n",
    "an error of 1 MiB and one byte": answer(b" " * (MB + 1), status="503 -"),
    "an error in chunks": b"HTTP/1.1 503 -\r\nTransfer-Encoding: chunked\r\n\r\n"
    + (b"40000\r\n" + b" " * 0x40000 + b"\r\n") * 5,
    "an error in gzip": answer(gzip.compress(bytes(MB + 1)), status="500 -", headers="Content-Encoding: gzip\r\n"),
}


@some
@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
async def test_what_is_no_http_is_malformed(call: Call, data: bytes) -> None:
    """Hazards 3, 4, 9, 10, 16, 22."""
    async with talk(call.operation, say(data)) as asked:
        await fails(asked, call, failures.Malformed)


@some
@pytest.mark.parametrize("data", TOO_LARGE.values(), ids=TOO_LARGE)
async def test_answer_without_measure_meets_its_limit(call: Call, data: bytes) -> None:
    """Hazards 3, 5, Q15."""
    async with talk(call.operation, say(data)) as asked:
        await fails(asked, call, failures.AnswerTooLarge)


@cache
def bomb() -> bytes:
    return gzip.compress(bytes(MB), 1) * 65


def large(way: str) -> Trouble:
    """Send 64 MiB and one byte, the head in the way."""

    async def trouble(visit: Visit) -> None:
        if way == "gzip":
            await visit.say(answer(bomb(), headers="Content-Encoding: gzip\r\n"))
            return
        await visit.say(CHUNKED if way == "chunked" else OK + b"\r\n")
        piece = b"100000\r\n" + bytes(MB) + b"\r\n" if way == "chunked" else bytes(MB)
        for _ in range(64):
            await visit.connection.send(piece)
        await visit.connection.send(b"1\r\n \r\n0\r\n\r\n" if way == "chunked" else b" ")

    return trouble


@pytest.mark.parametrize("way", ["chunked", "until the end", "gzip"])
@pytest.mark.parametrize("method", ["block", "publish_attestations"])
async def test_body_above_64_mib_is_too_large_however_it_comes(method: str, way: str) -> None:
    """Q15: also in a content coding that was not asked for (hazard 22)."""
    call = CALLS[method]
    async with talk(call.operation, large(way)) as asked:
        await fails(asked, call, failures.AnswerTooLarge)


async def _endless_header(visit: Visit) -> None:
    await visit.say(OK)
    while True:
        await visit.connection.send(b"A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n")


@every
async def test_header_without_an_end_meets_its_limit(call: Call) -> None:
    """Hazard 5."""
    async with talk(call.operation, _endless_header) as asked:
        await fails(asked, call, failures.AnswerTooLarge)


@every
@pytest.mark.parametrize("between", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 -\r\nLink: </a>\r\n\r\n"])
async def test_informational_heads_are_passed_over(call: Call, between: bytes) -> None:
    """Hazard 3: sixteen of them, in one segment with the answer."""
    async with talk(call.operation, say(between * 16 + good(call.operation))) as asked:
        await call.make(asked.ours, TIMEOUT)
        await works(asked, call)


EARLY: dict[str, tuple[bytes, type[NodeError], int | None]] = {
    "413": (answer(b'{"code":413,"message":"too large"}', status="413 -"), failures.PayloadTooLarge, 413),
    "401": (answer(b"<h1>Unauthorized</h1>", status="401 -"), failures.Unauthorized, 401),
    "503": (answer(status="503 -", headers="Connection: close\r\n"), failures.NotReady, 503),
    "400 in chunks": (
        b"HTTP/1.1 400 -\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        failures.BadRequest,
        400,
    ),
    "no HTTP": (b"<html>413</html>\r\n\r\n", failures.Malformed, None),
    "too many informational heads": (b"HTTP/1.1 100 -\r\n\r\n" * 17, failures.AnswerTooLarge, None),
    "a head without measure": (OK + b"A: b\r\n" * 20_000, failures.AnswerTooLarge, None),
}


@pytest.mark.parametrize("name", EARLY)
async def test_early_answer_to_a_large_post_counts(name: str) -> None:
    """Hazard 14: while 30 MB are still being sent, and nobody reads them."""
    data, error, status = EARLY[name]
    call = CALLS["publish_block"]

    async def trouble(visit: Visit) -> None:
        await visit.connection.send(data)
        await anyio.sleep(0.2)
        visit.connection.close()

    async with talk(call.operation, trouble) as asked:
        await fails(asked, call, error, status)
        assert len(asked.server.connections) == 2
