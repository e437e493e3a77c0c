"""One open event stream of a simulated node: its framing, its keep-alives, its bounded backlog, its record."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import anyio

from vc_fallback.testing.framings import Framing
from vc_fallback.testing.server import Connection, Server

BACKLOG_LIMIT = 8 * 1024 * 1024
"""Bytes waiting for a client that does not read, above which it is dropped."""


@dataclass(eq=False, slots=True)
class StreamRecord:
    """What became of one request for `/eth/v1/events`. Times are in loop time.

    :param number: 1 for the node's first.
    :param opened: when the request had been read.
    :param status: of the answer; `None` while there is none.
    :param closed_by: `client` or `node`, once it is over.
    :param events: how many events were written.
    """

    number: int
    opened: float
    topics: tuple[str, ...]
    target: str
    headers: Mapping[str, str]
    connection: int
    status: int | None = None
    closed: float | None = None
    closed_by: Literal["client", "node"] | None = None
    events: int = 0
    overrun: bool = False
    """It was dropped because the client did not read."""


class EventStream:
    """Writes events to one client.

    :param keep_alive: returns the seconds of silence after which a comment goes out, or `None` for never.
    """

    def __init__(
        self,
        record: StreamRecord,
        server: Server,
        connection: Connection,
        framing: Framing,
        head: bytes,
        keep_alive: Callable[[], float | None],
    ) -> None:
        self.record = record
        self.topics = frozenset(record.topics)
        self.held = False
        """Nothing is written; what comes meanwhile goes out in one piece afterwards (:meth:`poke` wakes it)."""
        self._server = server
        self._connection = connection
        self._framing = framing
        self._head = head
        self._keep_alive = keep_alive
        self._backlog: deque[tuple[bytes, int]] = deque()
        self._size = 0
        self._ending = False
        self._wake = anyio.Event()
        self._scope = anyio.CancelScope()
        if not framing.headers_with_first_event:
            self._send_head()

    @property
    def vanished(self) -> bool:
        """Whether it fell silent for ever."""
        return self._connection.vanished

    def event(self, data: bytes) -> None:
        """Send the bytes of an event."""
        self._send_head()
        self._queue(self._framing.body(data), 1)

    def body(self, data: bytes) -> None:
        """Send bytes that are no event, or any number of them, as part of the body."""
        self._send_head()
        self._queue(self._framing.body(data), 0)

    def wire(self, data: bytes) -> None:
        """Send bytes as they are, beneath the transfer coding."""
        self._queue(data, 0)

    def end(self) -> None:
        """End cleanly once everything is written."""
        self._ending = True
        self.poke()

    def poke(self) -> None:
        """Look again at what there is to do."""
        self._wake.set()

    async def run(self) -> None:
        """Write until the stream ends, the client closes, or the connection is cut."""
        try:
            async with anyio.create_task_group() as tasks:
                self._scope = tasks.cancel_scope
                tasks.start_soon(self._watch)
                if await self._write():
                    self._closed("node")
                else:
                    self._closed("client")
                tasks.cancel_scope.cancel()
        finally:
            self._closed("node")

    async def _watch(self) -> None:
        await self._connection.reader.wait_closed()
        self._closed("client")
        self._scope.cancel()

    def _closed(self, by: Literal["client", "node"]) -> None:
        if self.record.closed is None:
            self.record.closed = anyio.current_time()
            self.record.closed_by = by

    async def _write(self) -> bool:
        """Write; return whether the client was there to the end."""
        written = anyio.current_time()
        while True:
            await self._server.gate()
            if self._connection.vanished:
                await anyio.sleep_forever()
            if self._backlog and not self.held:
                data = b"".join(piece for piece, _ in self._backlog)
                self.record.events += sum(events for _, events in self._backlog)
                self._backlog.clear()
                self._size = 0
                try:
                    await self._connection.stream.send(data)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return False
                written = anyio.current_time()
                continue
            if self._ending and not self.held:
                return True
            self._wake = anyio.Event()
            after = self._keep_alive() if not self._head and not self.held else None
            if after is None:
                await self._wake.wait()
                continue
            with anyio.move_on_at(written + after) as waited:
                await self._wake.wait()
            if waited.cancelled_caught:
                self._queue(self._framing.body(self._framing.keep_alive), 0)

    def _send_head(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self.record.status = 200
            self._queue(head, 0)
            if self._framing.opening:
                self._queue(self._framing.body(self._framing.opening), 0)

    def _queue(self, data: bytes, events: int) -> None:
        if self._ending or self._connection.vanished:
            return
        if self._size + len(data) > BACKLOG_LIMIT:
            self.record.overrun = True
            self._connection.reset = True
            self._scope.cancel()
            return
        self._backlog.append((data, events))
        self._size += len(data)
        self.poke()
