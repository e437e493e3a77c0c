"""Hazards 1 to 5 and 11: where a response ends, and what may stand around its body."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.rawserver import Handler, RawConnection, answer, replies, serve
from tests.wire_helpers import client_of, fails, get
from vc_fallback.wire.errors import HeadTooLarge, LimitExceeded, Truncated
from vc_fallback.wire.http import WireLimits

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time: no wait is too short for a busy machine."""
    return virtual_time_backend


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def dripping(data: bytes) -> Handler:
    """Answer byte by byte."""

    async def handler(connection: RawConnection) -> None:
        while True:
            await connection.request()
            for byte in data:
                await connection.send(bytes((byte,)))
                await anyio.lowlevel.checkpoint()

    return handler


def once(data: bytes, *, reset: bool = False) -> Handler:
    """Answer one request and close."""

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(data)
        if reset:
            await anyio.sleep(0.05)  # RST may overtake what was not read yet
            connection.reset()

    return handler


async def test_head_declares_a_length_and_the_connection_is_used_again() -> None:
    """Hazard 1."""
    async with serve(replies(OK + b"Content-Length: 5000\r\n\r\n")) as server, client_of(server) as client:
        for _ in range(3):
            response = await client.request("HEAD", "/")
            assert (response.status, response.body, response.headers.get("content-length")) == (200, b"", "5000")
        assert client.statistics().dials == 1


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
@pytest.mark.parametrize("framing", [b"Content-Length: 2\r\n\r\nab", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"])
@pytest.mark.parametrize("late", [False, True])
async def test_status_without_a_body_that_has_one_costs_the_connection(status: str, framing: bytes, late: bool) -> None:
    """Hazard 2."""
    head, _, body = framing.partition(b"\r\n\r\n")

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(f"HTTP/1.1 {status}\r\n".encode() + head + b"\r\n\r\n" + (b"" if late else body))
        await anyio.sleep(0.02)
        await connection.send(body if late else b"")
        await connection.until_gone()

    async with serve(handler) as server, client_of(server) as client:
        for number in range(2):
            response = await get(client)
            assert (response.status, response.body) == (int(status[:3]), b"")
            assert client.statistics().dials == number + 1


async def test_204_and_304_as_they_should_be_keep_the_connection() -> None:
    """Hazard 2, the other way round."""
    async with serve(replies(b"HTTP/1.1 204 No Content\r\n\r\n")) as server, client_of(server) as client:
        await get(client)
        await get(client)
        assert client.statistics().dials == 1


async def test_informational_responses_are_skipped() -> None:
    """Hazard 3: 100 and 103 before 200, in one segment and byte by byte."""
    data = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + answer(b"ok")
    for handler in (replies(data), dripping(data)):
        async with serve(handler) as server, client_of(server) as client:
            for _ in range(2):
                response = await get(client)
                assert (response.body, response.headers.get("link")) == (b"ok", None)
            assert client.statistics().dials == 1


async def test_flood_of_informational_responses_is_an_error() -> None:
    """Hazard 3."""

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        while True:
            await connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            await anyio.lowlevel.checkpoint()

    async with serve(handler) as server, client_of(server) as client:
        await fails(client, LimitExceeded)


@pytest.mark.parametrize("headers", [b"", b"Connection: upgrade\r\nUpgrade: websocket\r\n"])
async def test_unasked_switch_of_protocols_is_an_error(headers: bytes) -> None:
    """Hazard 3."""
    async with serve(once(b"HTTP/1.1 101 Switching\r\n" + headers + b"\r\nabc")) as server, client_of(server) as client:
        assert "switched protocols" in str(await fails(client))


async def test_chunks_with_extensions_and_trailers_byte_by_byte() -> None:
    """Hazard 4."""
    data = CHUNKED + b'2;name=value;q="a\\"b"\r\nab\r\n0A\r\n0123456789\r\n0;last\r\nExpires: never\r\nX: y\r\n\r\n'
    for handler in (replies(data), dripping(data)):
        async with serve(handler) as server, client_of(server) as client:
            for _ in range(2):
                response = await get(client)
                assert (response.body, response.headers.get("expires")) == (b"ab0123456789", None)
            assert client.statistics().dials == 1


@pytest.mark.parametrize(
    "chunks",
    [
        b"0x2\r\nab\r\n0\r\n\r\n",
        b"-2\r\nab\r\n0\r\n\r\n",
        b"+2\r\nab\r\n0\r\n\r\n",
        b" 2\r\nab\r\n0\r\n\r\n",
        b"2 \r\nab\r\n0\r\n\r\n",
        b"2_0\r\nab\r\n0\r\n\r\n",
        b"\r\nab\r\n0\r\n\r\n",
        b";a=b\r\nab\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\nab",
        b"1" + b"0" * 30 + b"\r\nab",
        b"2\nab\r\n0\r\n\r\n",
        b"2\r\nab\n0\r\n\r\n",
        b"2\r\nab\r\n0\n\n",
        b"2\r\nab\r\n0\r\n\n",
        b"2\r\nabc\r\n0\r\n\r\n",
        b"2;\x00\r\nab\r\n0\r\n\r\n",
        b"2;a=\rb\r\nab\r\n0\r\n\r\n",
        b"2\r\nab\r\n0\r\nbad trailer\r\n\r\n",
        b"2\r\nab\r\n0\r\nContent-Length: 2\r\n\r\n",
    ],
)
async def test_wrong_chunk_syntax_is_an_error(chunks: bytes) -> None:
    """Hazard 4: also when it comes byte by byte."""

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        for byte in CHUNKED if connection.number else b"":
            await connection.send(bytes((byte,)))
        await connection.send(chunks if connection.number else CHUNKED + chunks)
        await connection.until_gone()

    async with serve(handler) as server, client_of(server) as client:
        await fails(client)
        await fails(client)


async def test_last_chunk_missing_is_truncation() -> None:
    """Hazard 4 and 8."""
    async with serve(once(CHUNKED + b"2\r\nab\r\n")) as server, client_of(server) as client:
        await fails(client, Truncated)


ENDLESS = {
    "one header": (b"HTTP/1.1 200 OK\r\nA: ", b"b" * 1000),
    "header name": (b"HTTP/1.1 200 OK\r\n", b"b" * 1000),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 50),
    "reason": (b"HTTP/1.1 200 ", b"O" * 1000),
    "chunk extension": (CHUNKED + b"2;a=", b"b" * 1000),
    "chunk size": (CHUNKED, b"0" * 1000),
    "trailer": (CHUNKED + b"0\r\nA: ", b"b" * 1000),
    "trailers": (CHUNKED + b"0\r\n", b"A: b\r\n" * 50),
}


@pytest.mark.parametrize("part", ENDLESS)
async def test_endless_part_of_the_framing_is_an_error(part: str) -> None:
    """Hazard 5 and Q15."""
    begin, more = ENDLESS[part]

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(begin)
        while True:
            await connection.send(more)
            await anyio.lowlevel.checkpoint()

    async with serve(handler) as server, client_of(server) as client:
        await fails(client, HeadTooLarge)


async def test_heads_within_the_limits_pass_and_one_header_more_does_not() -> None:
    """Hazard 5."""
    limits = WireLimits(head=2000, header_count=10)
    for count, size, good in ((9, 10, True), (10, 10, False), (3, 600, True), (3, 700, False)):
        lines = "".join(f"A{number}: {'b' * size}\r\n" for number in range(count))
        async with serve(replies(answer(headers=lines))) as server, client_of(server, limits=limits) as client:
            if good:
                await get(client)
            else:
                await fails(client, HeadTooLarge)


@pytest.mark.parametrize("extra", [answer(b"second"), b"garbage", b"\r\n", b"x", b"HTTP/1.1 408 Timeout\r\n\r\n"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    "first",
    [answer(b"first"), answer(b"first" * 40_000), CHUNKED + b"5\r\nfirst\r\n0\r\n\r\n"],
    ids=["small", "large", "chunked"],
)
async def test_bytes_behind_a_response_reach_no_later_request(first: bytes, late: bool, extra: bytes) -> None:
    """Hazard 11: the first response stands, its connection is closed, the next call is clean, also at once."""

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        if connection.number:
            await connection.send(answer(b"clean"))
        elif late:
            await connection.send(first)
            await anyio.sleep(0.02)
            await connection.send(extra)
        else:
            await connection.send(first + extra)
        await connection.until_gone()

    async with serve(handler) as server, client_of(server) as client:
        assert (await get(client)).body in (b"first", b"first" * 40_000)
        if late:
            await anyio.sleep(0.05)
        response = await get(client)
        assert (response.body, response.attempts, client.statistics().dials) == (b"clean", 1, 2)
