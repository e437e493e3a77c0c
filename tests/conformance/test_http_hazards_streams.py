"""Hazards 7, 8, 18 to 20 for streams, H2 and the redirects of Q16: what a sink is told, and what ends a stream."""

import gzip
from functools import partial
from typing import Any

import anyio
import httpx
import pytest

from tests.rawserver import Handler, RawConnection, answer, replies, serve
from tests.wire_helpers import Recorder, client_of, eventually, get
from vc_fallback.wire.errors import BodyTooLarge, ClientClosed, Truncated
from vc_fallback.wire.http import Headers, WireLimits

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time: no wait is too short for a busy machine."""
    return virtual_time_backend


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def sends(data: bytes, *, reset: bool = False) -> Handler:
    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(data)
        if reset:
            await anyio.sleep(0.05)
            connection.reset()

    return handler


@pytest.mark.parametrize(
    "data",
    [
        HEAD + b"\r\n: hello\n\n",
        HEAD.replace(b"1.1", b"1.0") + b"\r\n: hello\n\n",
        CHUNKED + b"9\r\n: hello\n\n\r\n0\r\n\r\n",
        HEAD + b"Content-Length: 9\r\n\r\n: hello\n\n",
    ],
)
async def test_clean_end_returns(data: bytes) -> None:
    """Hazard 7: plain until close as Nimbus sends it, chunked as most, and with a length."""
    async with serve(sends(data)) as server, client_of(server) as client:
        recorder = Recorder()
        with anyio.fail_after(5):
            await client.stream("/", sink=recorder)
        assert (recorder.sent_times, recorder.status, recorder.body) == (1, 200, b": hello\n\n")
        assert recorder.headers.get("content-TYPE") == "text/event-stream"
        assert client.statistics().open == 0


@pytest.mark.parametrize(
    ("data", "reset"),
    [
        (CHUNKED + b"9\r\n: hello\n\n\r\n", False),
        (CHUNKED + b"9\r\n: hello\n\n\r\n", True),
        (HEAD + b"\r\n: hello\n\n", True),
        (HEAD + b"Content-Length: 20\r\n\r\n: hello\n\n", False),
        (CHUNKED + b"9\r\n: hello\n\n\r\nXX\r\n", False),
    ],
)
async def test_every_other_end_is_an_error_after_the_data(data: bytes, reset: bool) -> None:
    """Hazards 7 and 8: what came before counts."""
    async with serve(sends(data, reset=reset)) as server, client_of(server) as client:
        recorder = Recorder()
        with anyio.fail_after(5), pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await client.stream("/", sink=recorder)
        assert recorder.body == b": hello\n\n"


async def test_sent_comes_long_before_a_head_that_waits_for_the_first_event() -> None:
    """H2: some nodes send response headers only with their first event."""
    go = anyio.Event()

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await go.wait()
        await connection.send(HEAD + b"\r\ndata: 1\n\n")
        await connection.until_gone()

    async with serve(handler) as server, client_of(server, concurrency=1) as client:
        recorder = Recorder()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(client.stream, "/", sink=recorder))
            with anyio.fail_after(5):
                await recorder.written.wait()
                await anyio.sleep(0.05)
                assert not recorder.opened.is_set()
                go.set()
                await recorder.first.wait()
            assert (client.statistics().streams, client.statistics().in_use) == (1, 0)
            tasks.cancel_scope.cancel()
        assert recorder.body == b"data: 1\n\n"


async def test_streams_and_requests_share_no_limit() -> None:
    """Many silent streams hinder no request."""

    async def handler(connection: RawConnection) -> None:
        request = await connection.request()
        await connection.send(HEAD + b"\r\n" if request.target == "/events" else answer(b"ok"))
        await connection.until_gone()

    async with serve(handler) as server, client_of(server, concurrency=1) as client:
        recorders = [Recorder() for _ in range(20)]
        async with anyio.create_task_group() as tasks:
            for recorder in recorders:
                tasks.start_soon(partial(client.stream, "/events", sink=recorder))
            for recorder in recorders:
                await recorder.opened.wait()
            assert (await get(client)).body == b"ok"
            tasks.cancel_scope.cancel()
        await eventually(lambda: server.open <= 1)


@pytest.mark.parametrize("method", ["sent", "response", "data"])
@pytest.mark.parametrize("kind", [ValueError, StopIteration])
async def test_sink_that_raises_aborts_the_stream_and_is_heard_once(method: str, kind: type[Exception]) -> None:
    """Hazard 20: and it is not called again."""
    calls: list[str] = []

    class Sink(Recorder):
        def sent(self) -> None:
            self.call("sent")

        def response(self, status: int, headers: Headers) -> None:
            self.call("response")

        def data(self, data: bytes) -> None:
            self.call("data")

        def call(self, name: str) -> None:
            calls.append(name)
            if name == method:
                raise kind("mine")

    gone = anyio.Event()

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(CHUNKED + b"1\r\na\r\n1\r\nb\r\n")
        await connection.until_gone()
        gone.set()

    async with serve(handler) as server, client_of(server) as client:
        with anyio.fail_after(5):
            with pytest.raises(RuntimeError if kind is StopIteration else kind) as caught:
                await client.stream("/", sink=Sink())
            if method != "sent":
                await gone.wait()
        assert "mine" in (str(caught.value), str(caught.value.__cause__))
        assert calls == ["sent", "response", "data"][: ["sent", "response", "data"].index(method) + 1]
        assert client.statistics().open == 0


async def test_body_of_a_refused_stream_is_bounded() -> None:
    """H3, Q15: the sink gets the error's text, up to the limit."""
    async with serve(sends(answer(b"no such topic", status="400 Bad Request"))) as server, client_of(server) as client:
        recorder = Recorder()
        await client.stream("/", sink=recorder)
        assert (recorder.status, recorder.body) == (400, b"no such topic")

    async def endless(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(b"HTTP/1.1 503 Busy\r\n\r\n")
        while True:
            await connection.send(bytes(10_000))

    async with serve(endless) as server, client_of(server, limits=WireLimits(error_body=50_000)) as client:
        recorder = Recorder()
        with pytest.raises(BodyTooLarge):
            await client.stream("/", sink=recorder)
        assert len(recorder.body) <= 50_000


async def test_compressed_body_of_a_refused_stream_is_bounded_as_it_inflates() -> None:
    """H3, Q15."""
    body = answer(gzip.compress(bytes(60_000)), status="503 Busy", headers="Content-Encoding: gzip\r\n")
    async with serve(replies(body)) as server, client_of(server, limits=WireLimits(error_body=50_000)) as client:
        with pytest.raises(BodyTooLarge):
            await client.stream("/", sink=Recorder())


async def test_closing_the_client_ends_streams_and_requests() -> None:
    """They raise `ClientClosed`, as do later calls; waiting ones too."""

    async def silent(connection: RawConnection) -> None:
        await connection.until_gone()

    errors: list[Exception] = []
    async with serve(silent) as server, client_of(server, concurrency=1) as client:

        async def call(*, stream: bool) -> None:
            try:
                await (client.stream("/", sink=Recorder()) if stream else client.request("GET", "/"))
            except httpx.TransportError as error:
                errors.append(error)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                for stream in (True, False, False):
                    tasks.start_soon(partial(call, stream=stream))
                await eventually(lambda: client.statistics().open == 2 and client.statistics().waiting == 1)
                await client.aclose()
        await call(stream=False)
        await call(stream=True)
        assert [type(error) for error in errors] == [ClientClosed] * 5
        await eventually(lambda: server.open == 0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_on_the_same_host_only(status: int) -> None:
    """Q16: 307 and 308 there, with the body; nothing goes to another host; any other redirect is the answer."""
    elsewhere: list[str] = []

    async def other(connection: RawConnection) -> None:
        request = await connection.request()
        elsewhere.append(f"{request.method} {request.target} {request.body.decode()}")
        assert request.headers["authorization"] == "Basic YTpi"
        await connection.send(answer(b"there"))

    async with serve(other) as target:

        async def handler(connection: RawConnection) -> None:
            while True:
                request = await connection.request()
                host = {"/same": "127.0.0.1", "/other": "localhost", "/user": "x:y@127.0.0.1"}.get(request.target)
                location = f"Location: http://{host}:{target.port}/new%2F/?a=b\r\n" if host else ""
                if request.target == "/relative":
                    location = "Location: /end\r\n"
                elif request.target == "/loop":
                    location = "Location: loop\r\n"
                if request.target == "/end":
                    await connection.send(answer(b"end"))
                else:
                    await connection.send(answer(b"moved", status=f"{status} X", headers=location))

        headers = [("Authorization", "Basic YTpi")]
        async with serve(handler) as server, client_of(server, headers=headers) as client:
            followed = status in (307, 308)
            response = await client.request("POST", "/same", body=b"body")
            assert (response.status, response.body) == ((200, b"there") if followed else (status, b"moved"))
            assert response.origin == (target.url if followed else server.url)
            assert elsewhere == (["POST /new%2F/?a=b body"] if followed else [])
            response = await get(client, "/relative")
            assert (response.status, response.body) == ((200, b"end") if followed else (status, b"moved"))
            for path in ("/other", "/user", "/loop", "/none"):
                assert (await get(client, path)).status == status
            recorder = Recorder()
            await client.stream("/relative", sink=recorder)
            assert (recorder.status, recorder.body) == ((200, b"end") if followed else (status, b"moved"))
            assert recorder.sent_times == 1 + followed
            recorder = Recorder()
            await client.stream("/loop", sink=recorder)
            assert recorder.status == status
            assert len(elsewhere) == followed


async def test_aborted_stream_leaves_nothing_behind() -> None:
    """Hazard 17."""
    async with serve(replies(CHUNKED + b"1\r\na\r\n")) as server, client_of(server) as client:
        for _ in range(20):
            recorder = Recorder()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(client.stream, "/", sink=recorder))
                await recorder.first.wait()
                tasks.cancel_scope.cancel()
            assert client.statistics().open == 0
        await eventually(lambda: server.open == 0)
    assert issubclass(Truncated, httpx.TransportError)


@pytest.mark.parametrize("framing", ["chunked", "until close"])
async def test_much_of_a_stream_comes_in_small_pieces_and_many_chunks_in_one(framing: str) -> None:
    """A burst of one node is worked off while others have their turn; a chunk for each event makes no call for each."""
    event = b"data: " + b"x" * 592 + b"\n\n"
    body = event * 2000
    chunks = b"%x\r\n%s\r\n" % (len(event), event) * 2000 + b"0\r\n\r\n"
    data = CHUNKED + chunks if framing == "chunked" else HEAD + b"\r\n" + body
    async with serve(sends(data)) as server, client_of(server) as client:
        recorder = Recorder()
        with anyio.fail_after(30):
            await client.stream("/", sink=recorder)
        assert recorder.body == body
        assert max(map(len, recorder.pieces)) <= 16 * 1024
        assert len(recorder.pieces) < 500
