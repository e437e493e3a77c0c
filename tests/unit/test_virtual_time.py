"""Virtual time with real sockets: exact waits, no false jump, and an error instead of a hang."""

import itertools
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import pytest

from vc_fallback.base.types import Root
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.testing.virtual_time import (
    Backend,
    VirtualTimeError,
    real_time,
    run_in_virtual_time,
    time_limited,
    virtual_clock,
    virtual_time_backend,
)

BACKENDS: tuple[Backend, ...] = ("asyncio", "trio")


class TestWithTheFixture:
    """The pytest fixture gives the tests of a class, a module or a package virtual time on both backends."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self, virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
        return virtual_time_backend

    async def test_waits_take_exactly_their_virtual_time_and_no_real_time(self) -> None:
        began = real_time()
        assert anyio.current_time() == 0.0
        await anyio.sleep(3600)
        assert anyio.current_time() == 3600.0
        assert real_time() - began < 5

    async def test_delayed_exchanges_arrive_exactly_on_time(self) -> None:
        """1,500 requests answered late by a server in the same loop: no answer is ever missed by a jump."""

        async def answer(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                try:
                    while True:
                        delay = float(await stream.receive())
                        await anyio.sleep(delay)
                        await stream.send(b"x" * 600)
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return

        async def ask(number: int) -> None:
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                for turn in range(50):
                    delay = (1 + number * 7 + turn) / 64
                    asked = anyio.current_time()
                    await stream.send(str(delay).encode())
                    with anyio.fail_after(delay + 1 / 256):
                        await receive(stream, 600)
                    assert anyio.current_time() == asked + delay

        async with serving(answer) as port, anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(ask, number)

    async def test_large_bodies_cross_without_time_passing(self) -> None:
        """30 MB both ways, far more than the socket buffers hold, beside a timer that would show a false jump."""

        async def echo(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                await receive(stream, 30_000_000)
                await stream.send(bytes(30_000_000))

        async with serving(echo) as port:
            for buffer in (None, 65536):
                async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                    if buffer is not None:
                        raw: socket.socket = stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610
                        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
                        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
                    began = anyio.current_time()
                    with anyio.fail_after(1):
                        await stream.send(bytes(30_000_000))
                        await receive(stream, 30_000_000)
                    assert anyio.current_time() == began

    async def test_bytes_that_drip_arrive_one_by_one_at_their_times(self) -> None:
        async def drip(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                for _ in range(2000):
                    await anyio.sleep(1 / 128)
                    await stream.send(b"x")

        async with serving(drip) as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
            for count in range(1, 2001):
                assert await stream.receive() == b"x"
                assert anyio.current_time() == count / 128

    async def test_a_burst_of_dials_takes_no_time(self) -> None:
        async def hold(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                await stream.send(b"hello")
                await anyio.sleep(1)

        async def dial() -> None:
            with anyio.fail_after(0.5):
                stream = await anyio.connect_tcp("127.0.0.1", port)
            async with stream:
                with anyio.fail_after(0.5):
                    assert await receive(stream, 5) == 5

        async with serving(hold) as port, anyio.create_task_group() as tasks:
            for _ in range(200):
                tasks.start_soon(dial)
        assert anyio.current_time() <= 1.0

    async def test_a_refused_dial_is_refused_at_once(self, free_tcp_port: int) -> None:
        with anyio.fail_after(0.5), pytest.raises(OSError, match="connection attempts failed"):
            await anyio.connect_tcp("127.0.0.1", free_tcp_port)
        assert anyio.current_time() == 0.0

    async def test_a_clock_starts_at_the_wanted_point_of_a_slot(self) -> None:
        """I2: the pair of times is fixed in virtual time."""
        chain = ChainIdentity(genesis_time=1_700_000_000.0, genesis_validators_root=Root(bytes(32)), slot_duration=12.0)
        clock = virtual_clock(chain, slot=1000, into=3.0)
        slots = SlotClock(chain, clock.offset)
        assert slots.slot_at(clock.now()) == 1000
        assert slots.into_slot(clock.now(), slots.slot_at(clock.now())) == 3.0
        await anyio.sleep(9)
        assert slots.slot_at(clock.now()) == 1001
        assert clock.reanchor() == 0.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wait_for_nothing_fails_at_once_instead_of_hanging(backend: Backend) -> None:
    began = real_time()
    with pytest.raises(VirtualTimeError, match="never comes"):
        run_in_virtual_time(anyio.sleep_forever, backend=backend)
    assert real_time() - began < 5


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wait_beside_endless_timers_fails_at_the_limit(backend: Backend) -> None:
    async def wait() -> None:
        async def tick() -> None:
            for _ in itertools.count():
                await anyio.sleep(12)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tick)
            await anyio.Event().wait()

    with pytest.raises(VirtualTimeError, match="3600 s"):
        run_in_virtual_time(wait, backend=backend, limit=3600)


def test_a_bare_loop_in_virtual_time_says_that_it_is_stuck() -> None:
    """Where nothing limits the time, a loop without timers raises rather than block."""
    with pytest.raises(VirtualTimeError, match="no timer is left"):
        anyio.run(
            anyio.Event().wait,
            backend="asyncio",
            backend_options={"loop_factory": virtual_time_backend("asyncio")[1]["loop_factory"]},
        )


def test_names_are_resolved_without_a_thread_on_asyncio() -> None:
    """Event loops resolve names in a thread, and time would jump over it."""

    async def listen() -> float:
        with anyio.move_on_after(3600):
            async with await anyio.create_tcp_listener(local_host="localhost"):
                pass
        return anyio.current_time()

    assert run_in_virtual_time(listen, backend="asyncio") == 0.0


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ValueError, match="asyncio and on trio"):
        virtual_time_backend("curio")  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_and_errors_pass_through(backend: Backend) -> None:
    async def fail() -> None:
        raise LookupError("mine")

    async def add(one: int, two: int) -> int:
        await anyio.sleep(1)
        return one + two

    assert run_in_virtual_time(add, 1, 2, backend=backend) == 3
    with pytest.raises(LookupError, match="mine"):
        run_in_virtual_time(time_limited(fail), backend=backend)


async def receive(stream: anyio.abc.ByteReceiveStream, count: int) -> int:
    """Read exactly `count` bytes."""
    got = 0
    while got < count:
        got += len(await stream.receive(min(262144, count - got)))
    return got


@asynccontextmanager
async def serving(handler: Callable[[anyio.abc.SocketStream], Awaitable[None]]) -> AsyncIterator[int]:
    """Serve on a free port as a task of this loop; yield the port."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handler)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610
        tasks.cancel_scope.cancel()
