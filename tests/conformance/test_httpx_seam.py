"""The httpx seam, both ways: an `AsyncClient` over our connections, and a transport of the user's under our client."""

import gzip
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import anyio
import httpx
import pytest

from tests.rawserver import RawConnection, RawServer, answer, replies, serve
from tests.wire_helpers import Recorder, client_of, eventually, get
from vc_fallback.base.urls import BaseURL
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.errors import BodyTooLarge, ClientClosed
from vc_fallback.wire.http import Response, WireLimits
from vc_fallback.wire.transport import PulledBody, VCTransport

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time: no wait is too short for a busy machine."""
    return virtual_time_backend


MB = 1024 * 1024


def over(transport: httpx.AsyncBaseTransport, server: RawServer, **options: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=transport, base_url=server.url, trust_env=False, **options)


async def echo(connection: RawConnection) -> None:
    while True:
        request = await connection.request()
        if request.target == "/big":
            await connection.send(answer(bytes(10 * MB)))
        body = json.dumps({"method": request.method, "target": request.target, "size": len(request.body)})
        await connection.send(answer(body.encode(), headers="Content-Type: application/json\r\n"))


async def test_async_client_over_our_transport() -> None:
    """Requests of every kind, connections kept."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"def"

    transport = VCTransport()
    async with serve(echo) as server, over(transport, server) as client:
        response = await client.get("/a%2Fb", params={"x": "1 2"})
        assert response.json() == {"method": "GET", "target": "/a%2Fb?x=1+2", "size": 0}
        assert (response.http_version, response.headers["content-type"]) == ("HTTP/1.1", "application/json")
        assert (await client.post("/", json={"a": 1})).json()["size"] == 7
        assert (await client.post("/", content=pieces())).json()["size"] == 6
        assert (await client.post("/")).json()["size"] == 0
        assert (await client.put("/", content=bytes(MB // 4))).json()["size"] == MB // 4
        assert (await client.delete("/")).status_code == 200
        assert len(server.connections) == 1
        async with client.stream("GET", "/big") as response:
            assert response.headers["content-length"] == str(10 * MB)
        assert (await client.get("/")).status_code == 200
        assert len(server.connections) == 2  # a body that was not read to its end costs the connection
    with pytest.raises(ClientClosed):
        await transport.handle_async_request(httpx.Request("GET", server.url))


async def test_httpx_undoes_codings_and_follows_redirects_itself_over_our_transport() -> None:
    """At the seam a response is passed on as it came."""

    async def handler(connection: RawConnection) -> None:
        while True:
            if (await connection.request()).target == "/moved":
                await connection.send(answer(status="302 Found", headers="Location: /\r\n"))
            else:
                await connection.send(answer(gzip.compress(b"text"), headers="Content-Encoding: gzip\r\n"))

    async with serve(handler) as server, over(VCTransport(), server) as client:
        assert (await client.get("/")).content == b"text"
        assert (await client.get("/moved")).status_code == 302
        assert (await client.get("/moved", follow_redirects=True)).content == b"text"


async def test_cancelled_read_loses_no_byte() -> None:
    """Hazard 18."""
    count = 400

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(count):
            await connection.send(b"3\r\n%03d\r\n" % number)
            await anyio.sleep(0.001)
        await connection.send(b"0\r\n\r\n")

    transport = VCTransport()
    async with serve(handler) as server:
        response = await transport.handle_async_request(httpx.Request("GET", server.url))
        assert isinstance(response.stream, PulledBody)
        body = response.stream
        pieces: list[bytes] = []
        cancelled = 0
        with anyio.fail_after(20):
            while True:
                with anyio.move_on_after(0.0005) as scope:
                    try:
                        pieces.append(await anext(body))
                    except StopAsyncIteration:
                        break
                cancelled += scope.cancelled_caught
        assert b"".join(pieces) == b"".join(b"%03d" % number for number in range(count))
        assert cancelled > 10
        await transport.aclose()


async def test_time_outs_of_httpx_hold() -> None:
    """`connect`, `read` and `pool`, each with httpx's own error; no slot and no connection is lost."""

    async def handler(connection: RawConnection) -> None:
        while True:
            request = await connection.request()
            if request.target == "/head":
                await connection.until_gone()
            elif request.target == "/body":
                await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
                await connection.until_gone()
            await connection.send(answer())

    transport = VCTransport(concurrency=1)
    timeout = httpx.Timeout(5, read=0.1, pool=0.1, write=0.1)
    async with serve(handler) as server, over(transport, server, timeout=timeout) as client:
        for path in ("/head", "/body"):
            with pytest.raises(httpx.ReadTimeout):
                await client.get(path)
        async with client.stream("GET", "/body"):
            with pytest.raises(httpx.PoolTimeout):
                await client.get("/")
        assert (await client.get("/")).status_code == 200
        await eventually(lambda: server.open == 1)


async def test_stale_connection_is_repeated_at_the_seam_too() -> None:
    """Hazard 13: for GET; a POST is the caller's to repeat."""

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(answer())
        await connection.request()

    async with serve(handler) as server, over(VCTransport(), server) as client:
        for _ in range(3):
            assert (await client.get("/")).status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("/", content=b"x")
        assert len(server.connections) == 3


async def test_error_in_the_middle_of_a_pulled_body_comes_after_its_data() -> None:
    """Hazard 8 at the seam."""

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")

    async with serve(handler) as server:
        response = await VCTransport().handle_async_request(httpx.Request("GET", server.url))
        assert isinstance(response.stream, PulledBody)
        assert await anext(response.stream) == b"abc"
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(response.stream)
        await response.aclose()


async def test_closing_the_transport_ends_calls_under_way() -> None:
    """They raise `ClientClosed`."""
    transport = VCTransport()

    async def silent(connection: RawConnection) -> None:
        await connection.until_gone()

    async def call() -> None:
        with pytest.raises(ClientClosed):
            await transport.handle_async_request(httpx.Request("GET", server.url))

    async with serve(silent) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await eventually(lambda: server.open == 1)
        await transport.aclose()


def mocked(handler: Any, *, limits: WireLimits = WireLimits()) -> HTTPClient:  # noqa: B008 - frozen
    url = BaseURL.parse("http://user:secret@node/prefix?key=1")
    return HTTPClient(url, transport=httpx.MockTransport(handler), limits=limits)


async def test_injected_transport_carries_requests_and_streams() -> None:
    """A proxy, a mock, anything of httpx's kind: same calls, same answers, same limits."""
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(203, headers={"X-A": "b"}, content=request.content + b"!")

    client = mocked(handler)
    response = await client.request("POST", "/eth", query=[("a", "b")], headers=[("X-B", "c")], body=b"body")
    assert (response.status, response.headers.get("x-a"), response.body) == (203, "b", b"body!")
    recorder = Recorder()
    await client.stream("/events", sink=recorder)
    assert (recorder.sent_times, recorder.status, recorder.body) == (1, 203, b"!")
    assert str(seen[0].url) == "http://node/prefix/eth?key=1&a=b"
    assert seen[0].headers["authorization"] == "Basic dXNlcjpzZWNyZXQ="
    assert (seen[0].headers["x-b"], seen[0].headers["host"]) == ("c", "node")
    assert seen[0].extensions["timeout"]["connect"] == 1.0
    await client.aclose()
    with pytest.raises(ClientClosed):
        await client.request("GET", "/")


async def test_injected_transport_is_not_redirected_to_what_httpx_cannot_write() -> None:
    """Q16: a redirect that cannot be followed is the answer."""
    location = "/" + "a" * 65_000

    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(307, headers={"Location": location})

    client = mocked(handler)
    assert (await client.request("GET", "/")).status == 307
    await client.aclose()


async def test_injected_transport_is_held_to_the_limits() -> None:
    """Q15, hazards 20 and 22 hold whoever carries the bytes."""

    class Endless(httpx.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return self

        async def __anext__(self) -> bytes:
            return bytes(1000)

        async def aclose(self) -> None:
            closed.append(self)

    closed: list[Endless] = []

    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("gzip"):
            return httpx.Response(200, content=gzip.compress(bytes(10 * MB)), headers={"Content-Encoding": "gzip"})
        if request.url.path.endswith("fails"):
            raise httpx.ReadError("lost")
        return httpx.Response(200, stream=Endless())

    client = mocked(handler, limits=WireLimits(body=MB))
    for path in ("/endless", "/gzip"):
        with pytest.raises(BodyTooLarge):
            await client.request("GET", path)
    with pytest.raises(httpx.ReadError):
        await client.request("GET", "/fails")

    class Sink(Recorder):
        def data(self, data: bytes) -> None:
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await client.stream("/endless", sink=Sink())
    assert client.statistics().in_use == 0
    assert len(closed) == 2


async def test_asgi_application_answers() -> None:
    """`httpx.ASGITransport`: a simulated node without a socket."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-path", scope["path"].encode())]})
        await send({"type": "http.response.body", "body": b"asgi"})

    client = HTTPClient(BaseURL.parse("http://node"), transport=httpx.ASGITransport(application))
    response = await client.request("GET", "/eth")
    assert (response.body, response.headers.get("x-path")) == (b"asgi", "/eth")


async def test_our_transport_under_our_client() -> None:
    """The two halves of the seam fit together."""
    transport = VCTransport()
    answers: list[Response] = []

    async def call(client: HTTPClient) -> None:
        answers.append(await get(client))

    async with serve(replies(answer(b"ok"))) as server, client_of(server, transport=transport) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(partial(call, client))
        assert [response.body for response in answers] == [b"ok"] * 10
        await transport.aclose()
