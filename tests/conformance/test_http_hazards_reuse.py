"""Hazards 12, 13 and 17: kept connections that are no longer good, and the queue for a slot."""

from functools import partial
from typing import Any

import anyio
import pytest

from tests.rawserver import Handler, RawConnection, answer, replies, serve
from tests.wire_helpers import Recorder, client_of, eventually, fails, get
from vc_fallback.wire.errors import StaleConnection, Truncated

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time: no wait is too short for a busy machine."""
    return virtual_time_backend


REQUEST_TIMEOUT = answer(status="408 Request Timeout", headers="Connection: close\r\n")


def dies_at_reuse(parting: bytes = b"", *, reset: bool = False) -> Handler:
    """Serve one request; end the connection when a second one arrives. All connections but the first live on."""

    async def handler(connection: RawConnection) -> None:
        served = False
        while True:
            request = await connection.request()
            if connection.number == 0 and served:
                await connection.send(parting)
                if reset:
                    connection.reset()
                return
            served = True
            await connection.send(answer(request.body or b"ok"))

    return handler


@pytest.mark.parametrize("how", ["408", "FIN", "RST", "garbage"])
async def test_idle_connection_that_ends_is_dropped_before_reuse(how: str, anyio_backend_name: str) -> None:
    """Hazard 12: no request is ever written to it, so nothing needs to be repeated."""
    requests = []

    async def handler(connection: RawConnection) -> None:
        while True:
            requests.append((connection.number, await connection.request()))
            await connection.send(answer(b"ok"))
            if connection.number:
                continue
            await anyio.sleep(0.02)
            if how == "RST":
                connection.reset()
                return
            if how != "FIN":
                await connection.send(REQUEST_TIMEOUT if how == "408" else b"x")
            connection.finish()
            await connection.until_gone()

    async with serve(handler) as server, client_of(server) as client:
        for method in ("GET", "POST"):
            await get(client)
            await anyio.sleep(0.08)
            # asyncio's callbacks see it at once; on trio nobody looks before the next use.
            assert client.statistics().idle == (method == "POST" or anyio_backend_name == "trio")
            response = await client.request(method, "/", body=b"x" if method == "POST" else None)
            assert (response.body, response.attempts) == (b"ok", 1)
        assert [number for number, _ in requests] == [0, 1, 1, 1]
        assert client.statistics().stale_repeats == 0


@pytest.mark.parametrize("reset", [False, True])
async def test_get_on_a_stale_connection_is_repeated_once_on_a_new_one(reset: bool) -> None:
    """Hazard 13, Q10: and counted as an attempt."""
    async with serve(dies_at_reuse(reset=reset)) as server, client_of(server) as client:
        assert (await get(client)).attempts == 1
        response = await get(client)
        assert (response.body, response.attempts) == (b"ok", 2)
        assert (client.statistics().stale_repeats, client.statistics().dials) == (1, 2)
        assert (await get(client)).attempts == 1


async def test_post_is_repeated_only_where_the_caller_said_so() -> None:
    """Hazard 13, Q10."""
    async with serve(dies_at_reuse()) as server, client_of(server) as client:
        await get(client)
        response = await client.request("POST", "/", body=b"signed", repeatable=True)
        assert (response.body, response.attempts) == (b"signed", 2)
    async with serve(dies_at_reuse()) as server, client_of(server) as client:
        await get(client)
        with pytest.raises(StaleConnection):
            await client.request("POST", "/", body=b"signed")
        assert (len(server.connections), client.statistics().open) == (1, 0)


@pytest.mark.parametrize("parting", [b"H", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"])
async def test_nothing_is_repeated_after_a_byte_of_the_response(parting: bytes) -> None:
    """Hazard 13."""
    async with serve(dies_at_reuse(parting)) as server, client_of(server) as client:
        await get(client)
        await fails(client, Truncated)
        assert len(server.connections) == 1


async def test_nothing_is_repeated_on_a_fresh_connection() -> None:
    """Hazard 13: also not when a repeat dies, which is on a fresh connection too."""

    async def dies(connection: RawConnection) -> None:
        await connection.request()

    async with serve(dies) as server, client_of(server) as client:
        await fails(client)
        assert len(server.connections) == 1

    async def dies_after_first(connection: RawConnection) -> None:
        await connection.request()
        if connection.number == 0:
            await connection.send(answer())
            await connection.request()

    async with serve(dies_after_first) as server, client_of(server) as client:
        await get(client)
        await fails(client)
        assert len(server.connections) == 2


async def test_408_exactly_at_reuse_counts_as_stale() -> None:
    """Hazard 12: the server gave up waiting while the request was on its way."""
    async with serve(dies_at_reuse(REQUEST_TIMEOUT)) as server, client_of(server) as client:
        await get(client)
        response = await get(client)
        assert (response.status, response.attempts) == (200, 2)
    async with serve(dies_at_reuse(REQUEST_TIMEOUT)) as server, client_of(server) as client:
        await get(client)
        response = await client.request("POST", "/", body=b"x")
        assert (response.status, response.attempts) == (408, 1)
    async with serve(replies(REQUEST_TIMEOUT)) as server, client_of(server) as client:
        assert (await get(client)).status == 408


async def test_408_ends_its_connection_whether_it_says_so_or_not() -> None:
    """Hazard 12: else each call would leave one more, as long as a server has nothing else to say."""
    async with serve(replies(answer(status="408 Request Timeout"))) as server, client_of(server) as client:
        for attempts in (1, 2, 2, 2):
            response = await get(client)
            assert (response.status, response.attempts) == (408, attempts)
            assert client.statistics().idle == 1


async def test_newest_idle_connection_is_used_first_and_old_ones_not_at_all() -> None:
    """The keep-alive stack: last in, first out, with a bound on age."""
    async with serve(replies(answer())) as server, client_of(server, idle_timeout=0.3) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(get, client)
        assert client.statistics().idle == 3
        for _ in range(4):
            await anyio.sleep(0.1)
            await get(client)
        assert (client.statistics().dials, client.statistics().idle) == (3, 1)
        await anyio.sleep(0.35)
        await get(client)
        assert client.statistics().dials == 4


async def test_callers_beyond_the_limit_wait_in_order_and_a_cancelled_one_loses_no_slot() -> None:
    """Hazard 17: in the queue too. Streams are not counted."""
    order: list[str] = []
    gate = anyio.Event()

    async def handler(connection: RawConnection) -> None:
        while True:
            order.append((await connection.request()).target)
            await gate.wait()
            await connection.send(answer())

    async with serve(handler) as server, client_of(server, concurrency=1) as client:
        async with anyio.create_task_group() as tasks:
            scopes = [anyio.CancelScope() for _ in range(8)]

            async def call(number: int) -> None:
                with scopes[number]:
                    await get(client, f"/{number}")

            def reached(count: int) -> bool:
                numbers = client.statistics()
                return numbers.in_use + numbers.waiting == count

            for number in range(8):
                tasks.start_soon(call, number)
                await eventually(partial(reached, number + 1))
            assert client.statistics().in_use == 1
            scopes[2].cancel()
            scopes[7].cancel()
            await eventually(lambda: client.statistics().waiting == 5)
            gate.set()
            with anyio.fail_after(5):
                await client.stream("/stream", sink=Recorder())
            scopes[5].cancel()
        order.remove("/stream")
        assert [target for target in order if target != "/5"] == ["/0", "/1", "/3", "/4", "/6"]
        await get(client)
