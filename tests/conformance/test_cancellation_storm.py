"""Hazard 17: thousands of calls cancelled at random points, in every way there is; nothing is lost, later calls work.

`CANCELLATIONS=10000` in the environment sets how many per event loop; the default suits a run of the whole suite.
"""

import asyncio
import contextlib
import gc
import os
import random
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx
import pytest
import trustme

from tests.rawserver import RawConnection, answer, serve
from tests.wire_helpers import Recorder, client_of, descriptors, eventually
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.keepalive import MOST_DRAINING
from vc_fallback.wire.transport import VCTransport

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

COUNT = int(os.environ.get("CANCELLATIONS", "1500"))
AT_ONCE = 24
SLOTS = 8
# Parts of the time that so many calls take on this machine just now: a dial, an answer, a stream and its place in the
# queue are all met, and some calls live.
LATEST = (0.02, 0.2, 1.2)

Call = Callable[[], Awaitable[object]]


@pytest.fixture(
    params=[("asyncio", {}), ("asyncio", {"use_uvloop": True}), ("trio", {})], ids=["asyncio", "uvloop", "trio"]
)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    backend: tuple[str, dict[str, Any]] = request.param
    return backend


async def by_scope(call: Call, delay: float) -> bool:
    """Cancel with a scope of anyio's."""
    with anyio.move_on_after(delay) as scope:
        await call()
    return scope.cancelled_caught


async def by_task(call: Call, delay: float) -> bool:
    """Cancel a task of asyncio's natively."""
    task = asyncio.ensure_future(call())
    await asyncio.wait({task}, timeout=delay)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


async def by_timeout(call: Call, delay: float) -> bool:
    """Cancel with a time-out of asyncio's."""
    try:
        async with asyncio.timeout(delay):
            await call()
    except TimeoutError:
        return True
    return False


async def by_wait_for(call: Call, delay: float) -> bool:
    """Cancel with the older time-out of asyncio's."""
    try:
        await asyncio.wait_for(call(), delay)
    except TimeoutError:
        return True
    return False


async def handler(connection: RawConnection) -> None:
    """Take a moment here and there; now and then answer in pieces, or close."""
    chance = random.Random(connection.number)
    while True:
        request = await connection.request()
        if request.target == "/events":
            await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(20):
                await connection.send(b"5\r\nhello\r\n")
                await anyio.sleep(0.002)
            await connection.send(b"0\r\n\r\n")
            continue
        response = answer(bytes(chance.choice((10, 1000, 300_000))))
        cut = chance.randrange(len(response))
        await anyio.sleep(chance.choice((0, 0, 0.001, 0.005)))
        await connection.send(response[:cut])
        await anyio.sleep(chance.choice((0, 0, 0.001)))
        await connection.send(response[cut:])
        if chance.random() < 0.1:
            return


def calls_of(client: HTTPClient) -> list[Call]:
    body = bytes(200_000)
    return [
        lambda: client.request("GET", "/small"),
        lambda: client.request("GET", "/small", headers=[("Accept", "application/json")]),
        lambda: client.request("POST", "/small", body=b"x", repeatable=True),
        lambda: client.request("POST", "/large", body=body, repeatable=True),
        lambda: client.stream("/events", sink=Recorder()),
    ]


async def pace(calls: list[Call]) -> float:
    """How long as many calls take as will run at once."""

    async def one(call: Call) -> None:
        with contextlib.suppress(httpx.TransportError):
            await call()

    begun = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for number in range(AT_ONCE):
            tasks.start_soon(one, calls[number % len(calls)])
    return anyio.current_time() - begun


async def storm(calls: list[Call], count: int, chance: random.Random, ways: list[Any]) -> int:
    """Begin that many calls, some at a time, and cancel each at a random moment. Return how many were cancelled."""
    cancelled = 0
    usual = await pace(calls)

    async def one() -> None:
        nonlocal cancelled
        was = False
        with contextlib.suppress(httpx.TransportError):  # the server closes now and then
            was = await chance.choice(ways)(chance.choice(calls), usual * chance.uniform(0, chance.choice(LATEST)))
        cancelled += was

    async def some(number: int) -> None:
        for _ in range(number):
            await one()

    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(some, count // AT_ONCE)
    return cancelled


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_storm_of_cancellations_loses_nothing(
    secure: bool, anyio_backend_name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Neither a socket, nor a task, nor a slot; the next calls work."""
    ways: list[Any] = [by_scope]
    if anyio_backend_name == "asyncio":
        ways += [by_task, by_timeout, by_wait_for]
    count = COUNT // 8 if secure else COUNT
    server_tls = tls = None
    if secure:
        ca = trustme.CA()
        server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert("127.0.0.1").configure_cert(server_tls)
        tls = ssl.create_default_context()
        ca.configure_trust(tls)
    async with serve(handler, tls=server_tls) as server, client_of(server, tls=tls, concurrency=SLOTS) as client:
        await client.request("GET", "/small")
        await client.aclose()
        await eventually(lambda: server.open == 0)
    async with serve(handler, tls=server_tls) as server, client_of(server, tls=tls, concurrency=SLOTS) as client:
        before = descriptors()
        tasks_before = len(asyncio.all_tasks()) if anyio_backend_name == "asyncio" else 0
        cancelled = await storm(calls_of(client), count, random.Random(17), ways)
        assert count * 0.2 < cancelled < count

        numbers = client.statistics()
        assert (numbers.in_use, numbers.waiting, numbers.streams) == (0, 0, 0)
        assert numbers.open == numbers.idle + numbers.draining
        assert numbers.idle <= SLOTS
        assert numbers.draining <= MOST_DRAINING
        # What does not answer is closed soon.
        await eventually(lambda: client.statistics().draining == 0)
        await eventually(lambda: server.open <= client.statistics().idle)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(3 * SLOTS):
                    tasks.start_soon(succeed, client)
        await client.aclose()
        await eventually(lambda: server.open == 0)
        gc.collect()
        assert descriptors() == before
        if anyio_backend_name == "asyncio":
            await eventually(lambda: len(asyncio.all_tasks()) == tasks_before)


async def succeed(client: HTTPClient) -> None:
    assert (await client.request("GET", "/small")).status == 200


async def test_storm_at_the_httpx_seam_loses_nothing(anyio_backend_name: str) -> None:
    """The same through an `httpx.AsyncClient`, whose calls end in the middle of a pulled body too."""
    ways: list[Any] = [by_scope] if anyio_backend_name == "trio" else [by_scope, by_task, by_timeout, by_wait_for]
    transport = VCTransport(concurrency=SLOTS)
    before = descriptors()
    async with serve(handler) as server:
        client = httpx.AsyncClient(transport=transport, base_url=server.url, trust_env=False, timeout=60)
        calls: list[Call] = [
            lambda: client.get("/small"),
            lambda: client.post("/large", content=bytes(200_000)),
            lambda: client.get("/events"),
        ]

        async def succeeds() -> None:
            assert (await client.get("/small")).status_code == 200

        assert await storm(calls, COUNT // 8, random.Random(18), ways) > 0
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(3 * SLOTS):
                    tasks.start_soon(succeeds)
        await client.aclose()
        await eventually(lambda: server.open == 0)
    gc.collect()
    assert descriptors() == before
