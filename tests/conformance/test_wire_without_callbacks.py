"""Variant A on asyncio: an event loop without callbacks for sockets (Windows' proactor) is served as trio is."""

import random

import anyio
import httpx
import pytest

from tests.rawserver import RawConnection, answer, serve
from tests.wire_helpers import Recorder, client_of, descriptors, eventually
from vc_fallback.wire import asyncio_connection

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    def listen(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(asyncio_connection, "listen", listen)


async def handler(connection: RawConnection) -> None:
    while True:
        request = await connection.request()
        if request.target == "/events":
            await connection.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
            return
        await connection.send(answer(request.body or b"ok"))
        if request.target == "/last":
            return


async def test_requests_and_streams() -> None:
    """The same calls, the same answers."""
    body = bytes(5_000_000)
    async with serve(handler) as server, client_of(server) as client:
        assert (await client.request("GET", "/")).body == b"ok"
        assert (await client.request("POST", "/", body=body)).body == body
        assert (await client.request("GET", "/last")).attempts == 1
        await eventually(lambda: server.open == 0)
        assert (await client.request("POST", "/", body=b"x")).body == b"x"
        assert client.statistics().dials == 2
        recorder = Recorder()
        await client.stream("/events", sink=recorder)
        assert (recorder.status, recorder.body) == (200, b"hello")


async def test_cancelled_calls_leave_nothing() -> None:
    """Hazard 17."""
    chance = random.Random(1)
    async with serve(handler) as server, client_of(server, concurrency=4) as client:
        before = descriptors()

        async def call() -> None:
            for _ in range(20):
                with anyio.move_on_after(chance.uniform(0, 0.01)):
                    await client.request("POST", "/", body=bytes(100_000))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(call)
        assert (await client.request("GET", "/")).body == b"ok"
        await client.aclose()
        await eventually(lambda: server.open == 0)
        assert descriptors() == before
        with pytest.raises(httpx.TransportError):
            await client.request("GET", "/")
