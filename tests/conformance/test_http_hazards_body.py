"""Hazards 7, 8, 15 and 22: where a body ends, how large it may be, how it may be coded, and what is never sent."""

import gzip
import zlib
from functools import cache
from typing import Any

import anyio
import httpx
import pytest

from tests.rawserver import Handler, RawConnection, Request, answer, replies, serve
from tests.wire_helpers import Recorder, client_of, fails, get
from vc_fallback.base.urls import BaseURL
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.errors import BodyTooLarge, Truncated
from vc_fallback.wire.http import WireLimits

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time: no wait is too short for a busy machine."""
    return virtual_time_backend


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MB = 1024 * 1024


def ends(data: bytes, *, reset: bool = False) -> Handler:
    """Answer, then end the connection."""

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(data)
        if reset:
            await anyio.sleep(0.05)
            connection.reset()

    return handler


async def test_end_of_the_connection_ends_a_plain_body() -> None:
    """Hazard 7."""
    for data in (OK + b"\r\nab", OK.replace(b"1.1", b"1.0") + b"\r\nab", OK + b"Connection: keep-alive\r\n\r\nab"):
        async with serve(ends(data)) as server, client_of(server) as client:
            assert (await get(client)).body == b"ab"
            assert client.statistics().open == 0


async def test_reset_does_not_end_a_plain_body() -> None:
    """Hazard 7."""
    async with serve(ends(OK + b"\r\nab", reset=True)) as server, client_of(server) as client:
        await fails(client, httpx.ReadError)


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 20",
        OK + b"Content-Len",
        OK + b"Content-Length: 5\r\n\r\n",
        OK + b"Content-Length: 5\r\n\r\nab",
        OK + b"Content-Length: 500000\r\n\r\n" + bytes(200000),
        CHUNKED + b"5\r",
        CHUNKED + b"5\r\nab",
        CHUNKED + b"2\r\nab\r",
        CHUNKED + b"2\r\nab\r\n",
        CHUNKED + b"2\r\nab\r\n0\r\n",
        CHUNKED + b"2\r\nab\r\n0\r\nA: b\r\n",
    ],
)
async def test_truncation_is_never_short_data(data: bytes, reset: bool) -> None:
    """Hazard 8."""
    async with serve(ends(data, reset=reset)) as server, client_of(server) as client:
        await fails(client, httpx.ReadError if reset else Truncated)


@pytest.mark.parametrize(("status", "limit"), [("200 OK", 100_000), ("404 Not Found", 1000)])
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_body_above_its_limit_is_an_error_of_that_answer(status: str, limit: int, framing: str) -> None:
    """Q15: the body of an error has a smaller limit."""
    limits = WireLimits(body=100_000, error_body=1000)

    def response(size: int) -> bytes:
        if framing == "length":
            return answer(bytes(size), status=status)
        if framing == "close":
            return f"HTTP/1.1 {status}\r\n\r\n".encode() + bytes(size)
        head = f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n{size:x}\r\n"
        return head.encode() + bytes(size) + b"\r\n0\r\n\r\n"

    for size in (limit, limit + 1):
        async with serve(ends(response(size))) as server, client_of(server, limits=limits) as client:
            if size == limit:
                assert len((await get(client)).body) == limit
            else:
                await fails(client, BodyTooLarge)


async def test_announced_size_alone_is_enough_to_refuse() -> None:
    """Q15: nothing is reserved, nothing is read."""
    async with serve(ends(OK + b"Content-Length: 18446744073709551615\r\n\r\n")) as server, client_of(server) as client:
        await fails(client, BodyTooLarge)


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "GZip"])
async def test_content_coding_that_was_not_asked_for_is_undone(coding: str) -> None:
    """Hazard 22."""
    body = b'{"data":[]}' * 1000
    data = gzip.compress(body[:500]) + gzip.compress(body[500:]) if "ip" in coding.lower() else zlib.compress(body)
    for response in (
        answer(data, headers=f"Content-Encoding: {coding}\r\n"),
        f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        + b"".join(b"1\r\n%c\r\n" % byte for byte in data)
        + b"0\r\n\r\n",
    ):
        async with serve(replies(response)) as server, client_of(server) as client:
            assert (await get(client)).body == body
            recorder = Recorder()
            await client.stream("/", sink=recorder)
            assert recorder.body == body


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "gzip, identity", "unknown"])
async def test_unknown_content_coding_is_refused(coding: str) -> None:
    """Hazard 22: never passed on as data."""
    data = answer(b"data", headers=f"Content-Encoding: {coding}\r\n")
    async with serve(replies(data)) as server, client_of(server) as client:
        await fails(client, httpx.DecodingError)
        recorder = Recorder()
        with pytest.raises(httpx.DecodingError):
            await client.stream("/", sink=recorder)
        assert not recorder.pieces


@pytest.mark.parametrize(
    "data",
    [b"plain text", gzip.compress(b"abc" * 1000)[:-9], gzip.compress(b"abc") + b"rubbish"],
    ids=["plain", "cut", "more"],
)
async def test_broken_content_coding_is_an_error(data: bytes) -> None:
    """Hazard 22: a compressed body that is cut off is no shorter body."""
    async with (
        serve(replies(answer(data, headers="Content-Encoding: gzip\r\n"))) as server,
        client_of(server) as client,
    ):
        await fails(client, httpx.DecodingError)


@cache
def bomb() -> bytes:
    return gzip.compress(bytes(MB)) * 100


async def test_gzip_bomb_meets_the_limit() -> None:
    """Hazard 22, Q15: a small body that inflates to 100 MB; a stream meets its bound too, in small pieces."""
    data = answer(bomb(), headers="Content-Encoding: gzip\r\n")
    async with serve(replies(data)) as server, client_of(server, limits=WireLimits(body=MB)) as client:
        await fails(client, BodyTooLarge)
        recorder = Recorder()
        with pytest.raises(httpx.DecodingError):
            await client.stream("/", sink=recorder)
        assert max(map(len, recorder.pieces)) <= 64 * 1024
        assert len(recorder.body) < 50 * MB


@pytest.mark.parametrize("bad", ["\r\nX: y", "\n", "\r", "\x00", " ", "\x7f", "ä", "\t"])
async def test_illegal_character_is_refused_before_a_byte_is_sent(bad: str) -> None:
    """Hazard 15: in target, header name and header value."""
    async with serve(replies(answer())) as server, client_of(server) as client:
        with pytest.raises(httpx.LocalProtocolError):
            await client.request("GET", f"/a{bad}b")
        with pytest.raises(httpx.LocalProtocolError):
            await client.request("GET", "/", headers=[(f"A{bad}", "b")])
        if bad not in " \tä":
            with pytest.raises(httpx.LocalProtocolError) as caught:
                await client.request("GET", "/", headers=[("A", f"secret{bad}b")])
            assert "secret" not in str(caught.value)
            with pytest.raises(httpx.LocalProtocolError):
                HTTPClient(BaseURL.parse(server.url), headers=[("A", bad)])
        with pytest.raises(httpx.LocalProtocolError):
            await client.request(f"GET{bad}", "/")
        with pytest.raises(httpx.LocalProtocolError):
            await client.stream(f"/{bad}", sink=Recorder())
        assert client.statistics().dials == 0


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Connection", "Upgrade"])
async def test_headers_of_the_framing_are_not_the_callers(name: str) -> None:
    """Hazard 15: else a caller could smuggle a second request."""
    async with serve(replies(answer())) as server, client_of(server) as client:
        with pytest.raises(httpx.LocalProtocolError):
            await client.request("GET", "/", headers=[(name, "1")])


async def test_request_carries_what_the_base_url_and_the_node_say() -> None:
    """Q16: path prefix, query, user-info, headers per node; `Accept-Encoding: identity`; streams alike."""
    seen: list[Request] = []

    async def handler(connection: RawConnection) -> None:
        while True:
            seen.append(await connection.request())
            await connection.send(answer())

    async with serve(handler) as server:
        url = server.url.replace("://", "://user:p%40ss@") + "/pre%2Ffix/?token=a+b"
        client = HTTPClient(BaseURL.parse(url), headers=[("X-Key", "k"), ("User-Agent", "me")])
        try:
            await client.request("GET", "/eth/v1/a", query=[("id", "1"), ("id", "2")], headers=[("accept", "x")])
            await client.request("POST", "/eth/v1/b", body=b"", headers=[("x-key", "other")])
            await client.request("DELETE", "/eth/v1/c")
            await client.stream("/eth/v1/events", query=[("topics", "head")], sink=Recorder())
        finally:
            await client.aclose()
        assert [request.target for request in seen] == [
            "/pre%2Ffix/eth/v1/a?token=a+b&id=1&id=2",
            "/pre%2Ffix/eth/v1/b?token=a+b",
            "/pre%2Ffix/eth/v1/c?token=a+b",
            "/pre%2Ffix/eth/v1/events?token=a+b&topics=head",
        ]
        for request in seen:
            assert request.headers["authorization"] == "Basic dXNlcjpwQHNz"
            assert request.headers["host"] == f"127.0.0.1:{server.port}"
            assert request.headers["accept-encoding"] == "identity"
            assert request.headers["user-agent"] == "me"
        assert [request.headers["x-key"] for request in seen] == ["k", "other", "k", "k"]
        assert [request.headers.get("content-length") for request in seen] == [None, "0", None, None]


async def test_no_error_shows_a_secret() -> None:
    """Rule 11: neither user-info nor a token in path, query or header, whatever went wrong, whoever looks how deep."""
    secret = "t0ken"
    responses = [
        b"",
        b"nonsense\r\n\r\n",
        OK + b"X-Echo: t0ken\x00\r\n\r\n",
        OK + b"Content-Length: t0ken\r\n\r\n",
        OK + b"Content-Encoding: t0ken\r\nContent-Length: 1\r\n\r\na",
        CHUNKED + b"t0ken\r\n",
        answer(bytes(2000)),
    ]
    texts: list[str] = []
    for data in responses:
        async with serve(ends(data)) as server:
            url = server.url.replace("://", f"://{secret}:{secret}@") + f"/{secret}?key={secret}"
            client = HTTPClient(BaseURL.parse(url), headers=[("X-Key", secret)], limits=WireLimits(body=1000))
            with pytest.raises(httpx.TransportError) as caught:
                await client.request("GET", f"/{secret}", query=[(secret, secret)])
            await client.aclose()
            with pytest.raises(httpx.TransportError) as closed:
                await client.request("GET", f"/{secret}")
            assert secret not in repr(client.statistics())
            error: BaseException | None = caught.value
            while error is not None:
                texts.append(f"{error!r} {error}")
                error = error.__cause__ or error.__context__
            texts.append(repr(closed.value))
    assert len(texts) >= 2 * len(responses)
    assert not [text for text in texts if secret in text]
