"""Kept connections to one origin, the newest first, and the slots that bound how many requests run at once."""

import contextlib
import socket
import ssl
import sys
from collections import deque

import anyio
import httpx

from vc_fallback.wire.anyio_connection import AnyioConnection
from vc_fallback.wire.connection import Connection
from vc_fallback.wire.dial import Resolver, dial, handshake, resolve
from vc_fallback.wire.errors import ClientClosed
from vc_fallback.wire.http import WireLimits
from vc_fallback.wire.tls import TLSSession

MOST_DRAINING = 4
"""Connections to one origin that may wait for answers that nobody wants: a node that hangs is not to collect them."""


class Slots:
    """A bound on concurrency, first come first served. Costs nothing while there is room; no cancel loses a slot.

    :param reserve: how many slots only those have who are not patient; they also go before who is.
    """

    def __init__(self, count: int, reserve: int = 0) -> None:
        self.free = count
        self._reserve = reserve
        self._waiting: deque[_Waiter] = deque()
        self._patient: deque[_Waiter] = deque()

    @property
    def waiting(self) -> int:
        """How many callers wait."""
        return len(self._waiting) + len(self._patient)

    def take_nowait(self, *, patient: bool = False) -> bool:
        """Take a slot if one is free for such a caller (then no such caller waits)."""
        if self.free > (self._reserve if patient else 0):
            self.free -= 1
            return True
        return False

    async def take(self, *, patient: bool = False) -> None:
        """Wait for a slot."""
        waiting = self._patient if patient else self._waiting
        waiter = _Waiter()
        waiting.append(waiter)
        try:
            await waiter.event.wait()
        except BaseException:
            if waiter.granted:
                self.give()
            else:
                waiting.remove(waiter)
            raise

    def give(self) -> None:
        """Give a slot back: to who waits longest, if anybody does."""
        if self._waiting:
            waiter = self._waiting.popleft()
        elif self._patient and self.free >= self._reserve:
            waiter = self._patient.popleft()
        else:
            self.free += 1
            return
        waiter.granted = True
        waiter.event.set()


class _Waiter:
    __slots__ = ("event", "granted")

    def __init__(self) -> None:
        self.event = anyio.Event()
        self.granted = False


class Origin:
    """Scheme, host and port: dials, and keeps idle connections for reuse. No task of its own."""

    def __init__(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        *,
        limits: WireLimits,
        idle_timeout: float,
        resolver: Resolver | None,
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._limits = limits
        self._idle_timeout = idle_timeout
        self._resolver = resolver
        self._dialling: set[anyio.CancelScope] = set()
        self._closed = False
        self.idle: list[Connection] = []
        self.busy: set[Connection] = set()
        self.draining: set[Connection] = set()
        """Those on which the answers to cancelled requests are still to come."""
        self.dials = 0

    def take(self) -> Connection | None:
        """Take the connection that became idle last and is still fit for use."""
        while self.idle:
            connection = self.idle.pop()
            young = connection.now() - connection.idle_since <= self._idle_timeout
            if young and connection.silent():
                self.busy.add(connection)
                return connection
            connection.close()
        return None

    def give(self, connection: Connection) -> None:
        """Give a connection back: it is kept if it can be used again, else closed."""
        self.busy.discard(connection)
        if connection.draining and len(self.draining) < MOST_DRAINING and not self._closed:
            self.draining.add(connection)
            return
        if not connection.reusable or self._closed:
            connection.close()
            return
        now = connection.idle_since = connection.now()
        idle = self.idle
        idle.append(connection)
        while now - idle[0].idle_since > self._idle_timeout:
            idle.pop(0).close()

    async def connect(self, timeout: float | None) -> Connection:
        """Make a new connection, TLS included, to whichever of the host's addresses answers. Names are resolved anew.

        :param timeout: seconds for all of it.
        :raises httpx.ConnectTimeout: when time is over.
        :raises httpx.ConnectError: when no address can be reached, or TLS fails.
        """
        self.dials += 1
        with anyio.move_on_after(timeout) as scope:
            self._dialling.add(scope)
            try:
                connection = await self._connect()
            finally:
                self._dialling.discard(scope)
            if not self._closed:
                self.busy.add(connection)
                return connection
            connection.close()
        if self._closed:
            raise ClientClosed("the client was closed")
        raise httpx.ConnectTimeout(f"no connection within {timeout:g} s")

    def close(self) -> None:
        """Close everything; calls under way raise `ClientClosed`."""
        self._closed = True
        for scope in list(self._dialling):
            scope.cancel()
        for connection in [*self.idle, *self.busy, *self.draining]:
            connection.abort(ClientClosed("the client was closed"))
        self.idle.clear()

    async def _connect(self) -> Connection:
        addresses = await resolve(self._host, self._port, self._resolver)
        connected = await dial(addresses)
        try:
            session = None if self._tls is None else await handshake(connected, self._tls, self._host)
            connection = _listen(connected, session, self._limits)
        except BaseException:
            connected.close()
            raise
        connection.on_lost = self._lost
        connection.on_drained = self._drained
        return connection

    def _lost(self, connection: Connection) -> None:
        self.draining.discard(connection)
        if connection in self.idle:
            self.idle.remove(connection)

    def _drained(self, connection: Connection) -> None:
        self.draining.discard(connection)
        self.give(connection)


def _listen(connected: socket.socket, session: TLSSession | None, limits: WireLimits) -> Connection:
    """Choose by the event loop that runs: callbacks where there are any (variant B), else the caller's task reads."""
    trio = sys.modules.get("trio")
    if trio is None or not trio.lowlevel.in_trio_task():
        from vc_fallback.wire import asyncio_connection  # not loaded on trio

        with contextlib.suppress(NotImplementedError):
            return asyncio_connection.listen(connected, session, limits)
    return AnyioConnection(connected, session, limits)
