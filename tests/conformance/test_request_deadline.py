"""The deadline of a request holds wherever it is waited, and nothing is left of what is late (rule 6)."""

import math
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import httpx
import pytest

from tests.rawserver import RawConnection, answer, serve
from tests.wire_helpers import Deaf, client_of
from vc_fallback.base.urls import BaseURL
from vc_fallback.wire.client import HTTPClient

pytestmark = pytest.mark.anyio

SOON = 0.1

Stage = Callable[[RawConnection], Awaitable[None]]


async def silent(connection: RawConnection) -> None:
    """Say nothing."""


async def half_a_head(connection: RawConnection) -> None:
    """Stop in the head."""
    await connection.send(b"HTTP/1.1 200 OK\r\nContent-Le")


async def half_a_body(connection: RawConnection) -> None:
    """Stop in the body."""
    await connection.send(answer(b"whole")[:-2])


async def drops(connection: RawConnection) -> None:
    """Send bytes for ever: none of them sets the clock back."""
    await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        await connection.send(b"x")
        await anyio.sleep(SOON / 10)


@pytest.mark.parametrize("kept", [False, True], ids=["new connection", "kept connection"])
@pytest.mark.parametrize("stage", [silent, half_a_head, half_a_body, drops])
async def test_what_is_late_is_given_up_and_its_connection_closed(stage: Stage, kept: bool) -> None:
    """The next request goes its own way."""
    late = anyio.Event()

    async def handle(connection: RawConnection) -> None:
        if kept:
            await connection.request()
            await connection.send(answer(b"before"))
        if not late.is_set():
            await connection.request()
            late.set()
            await stage(connection)
            await anyio.sleep_forever()
        await connection.request()
        await connection.send(answer(b"after"))

    async with serve(handle) as server, client_of(server) as client:
        if kept:
            await client.request("GET", "/before")
        began = anyio.current_time()
        with pytest.raises(TimeoutError):
            await client.request("GET", "/late", deadline=began + SOON)
        assert SOON <= anyio.current_time() - began < SOON + 5.0
        assert client.statistics().open == 0
        assert client.statistics().in_use == 0
        if kept:
            await client.request("GET", "/before")
        assert (await client.request("GET", "/after", deadline=anyio.current_time() + 5)).body == b"after"


async def test_it_holds_while_a_connection_is_made() -> None:
    """The connect time-out may be longer."""
    with Deaf() as port:
        client = HTTPClient(BaseURL.parse(f"http://127.0.0.1:{port}"))
        began = anyio.current_time()
        with pytest.raises(TimeoutError):
            await client.request("GET", "/x", connect_timeout=30.0, deadline=began + SOON)
        assert anyio.current_time() - began < SOON + 5.0
        assert client.statistics().open == 0
        client.close()


async def test_it_holds_while_a_slot_is_waited_for() -> None:
    """Others are served; the slot that was waited for is not lost."""
    go_on = anyio.Event()

    async def handle(connection: RawConnection) -> None:
        await connection.request()
        await go_on.wait()
        await connection.send(answer(b"first"))
        await connection.request()
        await connection.send(answer(b"third"))

    async with serve(handle) as server, client_of(server, concurrency=1) as client, anyio.create_task_group() as group:
        group.start_soon(client.request, "GET", "/first")
        while not client.statistics().in_use:
            await anyio.lowlevel.checkpoint()
        with pytest.raises(httpx.PoolTimeout):
            await client.request("GET", "/second", deadline=anyio.current_time() + SOON)
        assert client.statistics().waiting == 0
        go_on.set()
        assert (await client.request("GET", "/third", deadline=anyio.current_time() + 5)).body == b"third"


async def test_it_holds_for_an_injected_transport() -> None:
    """Which knows nothing of it."""

    async def handler(_: httpx.Request) -> httpx.Response:
        await anyio.sleep_forever()
        raise AssertionError("for the type checker")

    client = HTTPClient(BaseURL.parse("http://node"), transport=httpx.MockTransport(handler))
    with pytest.raises(TimeoutError):
        await client.request("GET", "/x", deadline=anyio.current_time() + SOON)


@pytest.mark.parametrize("kept", [False, True], ids=["new connection", "kept connection"])
async def test_a_deadline_that_is_past_is_past(kept: bool) -> None:
    """At once, and the client is as good as before."""

    async def handle(connection: RawConnection) -> None:
        while True:
            if (await connection.request()).target == "/late":
                await anyio.sleep_forever()
            await connection.send(answer(b"ok"))

    async with serve(handle) as server, client_of(server) as client:
        if kept:
            await client.request("GET", "/x")
        with pytest.raises(TimeoutError):
            await client.request("GET", "/late", deadline=anyio.current_time() - 1)
        assert (await client.request("GET", "/x", deadline=math.inf)).body == b"ok"


async def test_being_cancelled_is_no_time_out() -> None:
    """Who cancels finds the cancellation; whose time is over first, the time-out."""

    async def handle(connection: RawConnection) -> None:
        await connection.request()
        await anyio.sleep_forever()

    async with serve(handle) as server, client_of(server) as client:
        for deadline in (30.0, math.inf):
            with anyio.move_on_after(SOON) as scope:
                await client.request("GET", "/x", deadline=anyio.current_time() + deadline)
            assert scope.cancelled_caught
        with anyio.move_on_after(30.0) as scope, pytest.raises(TimeoutError):
            await client.request("GET", "/x", deadline=anyio.current_time() + SOON)
        assert not scope.cancel_called
