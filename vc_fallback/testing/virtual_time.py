"""Virtual time on asyncio and trio, with real loopback sockets.

Time stands still while anything is ready, and jumps to the next timer when nothing is. An hour of slots passes in
seconds, every wait is exact, and nothing needs a mocked socket: bytes over loopback arrive without time passing.

What it asks of the code under test: everything runs as tasks of one event loop, takes its time from
:func:`anyio.current_time`, and dials IP literals. A thread (name resolution is one), a subprocess or uvloop is outside
the loop's sight, so time would jump over it. So are the timers of TCP itself, which a transfer larger than a socket
buffer meets where the buffer was made smaller than 64 KiB (measured; no false jump with 64 KiB or the default).
"""

import asyncio
import functools
import os
import selectors
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal, ParamSpec, TypeVar

import anyio

from vc_fallback.base.clock import Clock
from vc_fallback.base.types import Slot
from vc_fallback.chain import ChainIdentity

T = TypeVar("T")
P = ParamSpec("P")

Backend = Literal["asyncio", "trio"]

DAY = 86400.0

_STUCK_AFTER = 2.0
"""Real seconds after which a loop without a timer and without a ready socket is given up."""


class VirtualTimeError(Exception):
    """What was run in virtual time waits for something that never comes."""


class VirtualTimeEventLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop whose :meth:`time` starts at 0 and jumps to the next timer when nothing is ready.

    For :func:`anyio.run`, :class:`asyncio.Runner` and the like as their `loop_factory`.
    """

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_JumpingSelector(self._jump))

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    async def getaddrinfo(
        self,
        host: bytes | str | None,
        port: bytes | str | int | None,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        """Resolve within the loop: in a thread, as event loops do, time would jump over it."""
        return socket.getaddrinfo(host, port, family, type, proto, flags)

    def _jump(self, seconds: float) -> None:
        self._now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    """Polls; where nothing is ready, lets the loop's time jump instead of waiting."""

    def __init__(self, jump: Callable[[float], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        # The kernel may hand loopback bytes to a thread of its own under load: let it run, and look again.
        os.sched_yield()
        ready = super().select(0)
        if ready:
            return ready
        if timeout is not None:
            self._jump(timeout)
            return []
        ready = super().select(_STUCK_AFTER)
        if not ready:
            raise VirtualTimeError("nothing is ready and no timer is left: this loop would wait for ever")
        return ready


def virtual_time_backend(backend: Backend) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of an event loop in virtual time, fresh at time 0.

    For the fixture `anyio_backend` of anyio's pytest plugin, and for :func:`anyio.run` as `backend` and
    `backend_options` (or simply :func:`run_in_virtual_time`). Use each value for one loop only.

    :raises ValueError: for another backend.
    """
    if backend == "asyncio":
        return "asyncio", {"loop_factory": VirtualTimeEventLoop}
    if backend == "trio":
        import trio.testing

        return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}
    raise ValueError("virtual time runs on asyncio and on trio")


def time_limited(function: Callable[P, Awaitable[T]], *, limit: float = DAY) -> Callable[P, Awaitable[T]]:
    """Wrap an async function so that it fails once `limit` seconds of virtual time have passed (default: a day).

    A wait that nothing will ever end thus fails at once: where no other timer is left, time jumps to the limit.

    :raises VirtualTimeError: by the wrapped function, at the limit.
    """

    @functools.wraps(function)
    async def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with anyio.move_on_after(limit):
            return await function(*args, **kwargs)
        # Only the scope's own cancellation leads here.
        raise VirtualTimeError(f"not done after {limit:g} s of virtual time: it waits for what never comes")

    return limited


def run_in_virtual_time(
    function: Callable[..., Awaitable[T]], *args: object, backend: Backend = "asyncio", limit: float = DAY
) -> T:
    """Run an async function in a new event loop in virtual time and return its result.

    :param limit: seconds of virtual time after which it is given up.
    :raises VirtualTimeError: when the limit has passed; at once where nothing is ready and no timer is left.
    """
    name, options = virtual_time_backend(backend)
    return anyio.run(time_limited(function, limit=limit), *args, backend=name, backend_options=options)


def virtual_clock(chain: ChainIdentity, *, slot: int = 0, into: float = 0.0) -> Clock:
    """Return a clock by which it is now `into` seconds after the start of `slot` (which may be negative).

    Its pair of loop time and Unix time is fixed. Works in real time as well; call it inside a running event loop.
    """
    return Clock(wall=None, unix=chain.genesis_time + Slot(slot) * chain.slot_duration + into)


def real_time() -> float:
    """Return real seconds from a monotonic clock, for tests that say how long something really took."""
    return time.perf_counter()
