"""The connection of a cancelled request: its answer comes and goes, and it is kept; on trio it is closed."""

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from tests.rawserver import RawConnection, answer, serve
from tests.wire_helpers import client_of, eventually, get
from vc_fallback.wire import asyncio_connection
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.keepalive import MOST_DRAINING

pytestmark = pytest.mark.anyio

Stage = Callable[[RawConnection], Awaitable[None]]


@pytest.fixture
def drains(anyio_backend_name: str) -> bool:
    return anyio_backend_name == "asyncio"


async def cancelled(client: HTTPClient, until: anyio.Event, path: str = "/late") -> None:
    """Cancel a request once the server has it."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(get, client, path)
        await until.wait()
        tasks.cancel_scope.cancel()


async def test_an_answer_that_nobody_waits_for_leaves_its_connection_fit_for_the_next(drains: bool) -> None:
    """Who is outrun in every slot is not dialled in every slot; what was late is never another request's answer."""
    asked, go_on = anyio.Event(), anyio.Event()

    async def handle(connection: RawConnection) -> None:
        while True:
            request = await connection.request()
            if request.target == "/late":
                asked.set()
                await go_on.wait()
                await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nla")
                await anyio.lowlevel.checkpoint()
                await connection.send(b"te")
            else:
                await connection.send(answer(b"next"))

    async with serve(handle) as server, client_of(server) as client:
        await cancelled(client, asked)
        assert client.statistics().draining == client.statistics().open == int(drains)
        # While it drains it is nobody's.
        assert (await get(client)).body == b"next"
        assert client.statistics().dials == 2
        go_on.set()
        await eventually(lambda: client.statistics().idle == 1 + drains)
        assert client.statistics().draining == 0
        for _ in range(3):
            assert (await get(client)).body == b"next"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(get, client)
            tasks.start_soon(get, client)
        assert client.statistics().dials == (2 if drains else 3)
        assert len(server.connections) == client.statistics().dials


async def silent(connection: RawConnection) -> None:
    """Say nothing."""


async def too_much(connection: RawConnection) -> None:
    """Announce more than is worth reading."""
    await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (asyncio_connection.DRAINED + 1))


async def without_end(connection: RawConnection) -> None:
    """Send chunks for ever."""
    await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await connection.send(b"4000\r\n" + bytes(0x4000) + b"\r\n")


async def last(connection: RawConnection) -> None:
    """Say that this was the last answer."""
    await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")


async def nonsense(connection: RawConnection) -> None:
    """Speak another protocol."""
    await connection.send(b"SSH-2.0-OpenSSH_9.6\r\n")


@pytest.mark.parametrize("stage", [silent, too_much, without_end, last, nonsense])
async def test_what_does_not_answer_well_and_soon_is_closed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 6: neither time nor bytes without bound go into what nobody wants."""
    monkeypatch.setattr(asyncio_connection, "DRAIN", 0.1)
    asked, go_on = anyio.Event(), anyio.Event()

    async def handle(connection: RawConnection) -> None:
        request = await connection.request()
        if request.target == "/late":
            asked.set()
            await go_on.wait()
            await stage(connection)
            await connection.receive()
        await connection.send(answer(b"next"))
        await connection.receive()

    async with serve(handle) as server, client_of(server) as client:
        await cancelled(client, asked)
        go_on.set()
        await eventually(lambda: client.statistics().open == 0)
        await eventually(lambda: server.open == 0)
        assert (await get(client)).body == b"next"


async def test_a_node_that_hangs_does_not_collect_connections() -> None:
    """Rule 6: four wait for late answers, the others are closed at once; all of them with the client."""
    started: list[anyio.Event] = []

    async def handle(connection: RawConnection) -> None:
        await connection.request()
        started[-1].set()
        await connection.receive()

    async with serve(handle) as server, client_of(server) as client:
        for _ in range(2 * MOST_DRAINING):
            started.append(anyio.Event())
            await cancelled(client, started[-1])
        assert client.statistics().open == client.statistics().draining <= MOST_DRAINING
        client.close()
        assert client.statistics().open == 0
        await eventually(lambda: server.open == 0)
