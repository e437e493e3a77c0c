"""Hazards 14 and 19: bodies larger than the sockets' buffers, both ways. In real time: TCP's own timers take part."""

import anyio
import httpx
import pytest

from tests.rawserver import RawConnection, answer, serve
from tests.wire_helpers import client_of, get
from vc_fallback.wire.transport import PulledBody, VCTransport

pytestmark = pytest.mark.anyio

MB = 1024 * 1024
BODY = bytes(30 * MB)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_large_post_on_a_stale_connection_is_repeated_where_the_caller_said_so() -> None:
    """Hazard 13 and 14: the connection dies while the body is written."""

    async def handler(connection: RawConnection) -> None:
        if connection.number:
            await connection.send(answer(str(len((await connection.request()).body)).encode()))
            return
        await connection.request()
        await connection.send(answer())
        await connection.receive()
        connection.reset()

    async with serve(handler) as server, client_of(server) as client:
        await get(client)
        with anyio.fail_after(30):
            response = await client.request("POST", "/", body=BODY, repeatable=True)
        assert (response.body, response.attempts) == (str(len(BODY)).encode(), 2)


@pytest.mark.parametrize("status", ["413 Payload Too Large", "200 OK"])
@pytest.mark.parametrize("then", ["close", "keep", "reset"])
async def test_answer_that_comes_before_the_body_is_written(status: str, then: str) -> None:
    """Hazard 14: the answer counts; the connection is not used again."""

    async def handler(connection: RawConnection) -> None:
        await connection.receive()
        await connection.send(answer(b"early", status=status))
        if then == "keep":
            await anyio.sleep(30)
        await anyio.sleep(0.02)
        if then == "reset":
            connection.reset()

    async with serve(handler) as server, client_of(server) as client:
        for number in range(2):
            with anyio.fail_after(20):
                response = await client.request("POST", "/", body=BODY)
            assert (response.status, response.body) == (int(status[:3]), b"early")
            assert (client.statistics().open, len(server.connections)) == (0, number + 1)


async def test_reset_while_the_body_is_written_is_an_error() -> None:
    """Hazard 14: an early RST with no answer."""

    async def handler(connection: RawConnection) -> None:
        await connection.receive()
        connection.reset()

    async with serve(handler) as server, client_of(server) as client:
        with anyio.fail_after(20), pytest.raises((httpx.WriteError, httpx.ReadError)):
            await client.request("POST", "/", body=BODY)
        assert client.statistics().open == 0


async def test_large_body_to_a_slow_reader_arrives_whole() -> None:
    """Hazard 14: a full socket is waited for."""

    async def handler(connection: RawConnection) -> None:
        for _ in range(10):
            connection.buffer += await connection.receive()
            await anyio.sleep(0.01)
        request = await connection.request()
        assert request.body == BODY
        await connection.send(answer(b"whole"))

    async with serve(handler) as server, client_of(server) as client:
        with anyio.fail_after(30):
            assert (await client.request("POST", "/", body=BODY)).body == b"whole"


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, MB, MB + 1, 17 * MB, 20 * MB])
@pytest.mark.parametrize("chunked", [False, True])
async def test_body_of_any_size_comes_whole(size: int, chunked: bool) -> None:
    """Also where its place must grow on the way."""
    body = (bytes(range(251)) * (size // 251 + 1))[:size]

    async def handler(connection: RawConnection) -> None:
        while True:
            await connection.request()
            if not chunked:
                await connection.send(answer(body))
                continue
            await connection.send(CHUNKED)
            for start in range(0, size, 100_000):
                piece = body[start : start + 100_000]
                await connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            await connection.send(b"0\r\n\r\n")

    async with serve(handler) as server, client_of(server) as client:
        for _ in range(2):
            assert (await get(client)).body == body
        assert client.statistics().dials == 1


async def test_slow_reader_of_60_megabytes_stays_within_its_buffer() -> None:
    """Hazard 19: what nobody takes stays in the socket."""
    written = 0

    async def handler(connection: RawConnection) -> None:
        nonlocal written
        await connection.request()
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (60 * MB))
        for _ in range(60):
            await connection.send(bytes(MB))
            written += 1
        await connection.until_gone()

    transport = VCTransport()
    async with serve(handler) as server:
        response = await transport.handle_async_request(httpx.Request("GET", server.url))
        body = response.stream
        assert isinstance(body, PulledBody)
        taken = most = 0
        with anyio.fail_after(20):
            await anyio.sleep(0.1)
            assert written < 30
            async for piece in body:
                taken += len(piece)
                most = max(most, body.waiting)
                if taken < 5 * MB:
                    await anyio.sleep(0.002)
                    assert written < 40
        assert taken == 60 * MB
        assert most <= MB
        await response.aclose()
        await transport.aclose()
