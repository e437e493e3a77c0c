"""Hazards 6, 9, 10 and 16: heads that are refused, and strange ones that are not."""

from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from tests.rawserver import Handler, RawConnection, answer, replies, serve
from tests.wire_helpers import client_of, fails, get
from vc_fallback.wire.errors import LimitExceeded

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time: no wait is too short for a busy machine."""
    return virtual_time_backend


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def once(data: bytes, *, reset: bool = False) -> Handler:
    """Answer one request and close."""

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(data)
        if reset:
            await anyio.sleep(0.05)  # RST may overtake what was not read yet
            connection.reset()

    return handler


@pytest.mark.parametrize(
    ("version", "headers", "kept"),
    [
        ("HTTP/1.1", "", True),
        ("HTTP/1.1", "Connection: close\r\n", False),
        ("HTTP/1.1", "Connection: foo, Close\r\n", False),
        ("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n", False),
        ("HTTP/1.0", "", False),
        ("HTTP/1.0", "Connection: Keep-Alive\r\n", True),
        ("HTTP/1.0", "Connection: keep-alive, close\r\n", False),
    ],
)
async def test_connection_is_kept_as_version_and_headers_say(version: str, headers: str, kept: bool) -> None:
    """Hazard 6."""
    data = answer(headers=headers).replace(b"HTTP/1.1", version.encode())
    async with serve(replies(data)) as server, client_of(server) as client:
        await get(client)
        assert client.statistics().idle == kept
        await get(client)
        assert client.statistics().dials == 2 - kept


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: -1",
        b"Content-Length: +2",
        b"Content-Length: 2_0",
        b"Content-Length: 0x2",
        b"Content-Length: 2 2",
        b"Content-Length: 2, 2",
        b"Content-Length:",
        b"Content-Length: 1" + b"0" * 30,
        b"Content-Length: 2\r\nContent-Length: 3",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 2",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: chunkedx",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: chunked, chunked",
        b"Transfer-Encoding: chunked;q=1",
        b"Transfer-Encoding: identity",
        b"Transfer-Encoding:",
        b"A: b\x00c",
        b"A: b\rc",
        b"A: b\nB: c",
        b"A: \x01",
        b"A : b",
        b"A b",
        b": b",
        b" A: b",
        b"A: b\r\n c",
        b"A:\r\n\tb",
        b"A\x80: b",
        b"(A): b",
    ],
)
async def test_wrong_header_is_an_error(lines: bytes) -> None:
    """Hazards 9, 10 and 16."""
    async with serve(once(OK + lines + b"\r\n\r\n2\r\nab\r\n0\r\n\r\n")) as server, client_of(server) as client:
        await fails(client)


@pytest.mark.parametrize(
    "line",
    [
        b"HTTP/1.1 20 OK",
        b"HTTP/1.1 2000 OK",
        b"HTTP/1.1 200OK",
        b"HTTP/1.1  200 OK",
        b"HTTP/1.1 099 OK",
        b"HTTP/1.1 -20 OK",
        b"HTTP/1.1 abc OK",
        b"HTTP/1.1 200 O\x00K",
        b"HTTP/1.1 200 O\rK",
        b"HTTP/1.1 200 OK\n",
        b"HTTP/2.0 200 OK",
        b"HTTP/1.2 200 OK",
        b"HTTP/0.9 200 OK",
        b"http/1.1 200 OK",
        b"RTSP/1.0 200 OK",
        b"SSH-2.0-OpenSSH",
        b" HTTP/1.1 200 OK",
        b"\r\nHTTP/1.1 200 OK",
        b"{}",
    ],
)
async def test_wrong_status_line_is_an_error(line: bytes) -> None:
    """Hazard 16: at once, not when the server closes."""

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(line + b"\r\nContent-Length: 0\r\n\r\n")
        await connection.until_gone()

    async with serve(handler) as server, client_of(server) as client:
        await fails(client)


async def test_strange_but_legal_heads_pass() -> None:
    """The other side of strictness: what servers do send."""
    head = b"HTTP/1.1 200\r\nX:\r\ny: \t \xe4 \t\r\nCONTENT-length:   2\r\nTE-ST_1!: ~\r\n\r\nab"
    async with serve(replies(head)) as server, client_of(server) as client:
        response = await get(client)
        assert (response.body, response.headers.get("Y"), response.headers.get("x")) == (b"ab", "ä", "")
        assert isinstance(response.headers.get("content-length"), str)


async def test_other_statuses_are_answers() -> None:
    """Every final status comes back as it is; only 3xx may be followed."""
    for status in (200, 201, 202, 206, 301, 302, 303, 400, 404, 408, 415, 429, 500, 503, 599, 999):
        async with serve(replies(answer(status=f"{status} X"))) as server, client_of(server) as client:
            assert (await get(client)).status == status
    assert issubclass(LimitExceeded, httpx.RemoteProtocolError)
