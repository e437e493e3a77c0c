"""A subscriber's own view of what is told: its buffer, what it dropped, why it ended (C8)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

import anyio
import anyio.lowlevel

from vc_fallback.base.errors import SubscriptionClosed

T = TypeVar("T")

OnFull = Literal["drop_oldest", "close"]


RUN = 32
"""Items that are read at most before others run."""

WEIGHT = 32 * 1024 * 1024
"""Bytes, or characters, that may wait unread: a single event may have 16 MiB (Q15, rule 6)."""


@dataclass(frozen=True, slots=True)
class SubscriptionStatistics:
    """Counts of one subscription: what was read, what was dropped because the buffer was full or the node left, and
    what waits."""

    read: int
    dropped: int
    purged: int
    waiting: int


class Buffered(Generic[T]):
    """What was told, in order. Use it as an asynchronous context manager and iterate over it.

    Reading from nodes never waits for it: when its buffer is full, the oldest item is dropped and counted, or the
    subscription is closed with a `close_reason`. A cancelled read loses nothing.

    :param buffer: items that may wait unread.
    :param on_full: drop the oldest and count it, or close the subscription.
    :param readable: gives an item as it is to be read now, `None` where it is not to be read any more (C8, G3).
    :param closed: called once when it is closed.
    :param weigh: gives the size of an item, where items may be large; it is always the same.
    """

    def __init__(
        self,
        *,
        buffer: int,
        on_full: OnFull,
        readable: Callable[[T], T | None],
        closed: Callable[["Buffered[Any]"], None],
        weigh: Callable[[T], int] | None = None,
    ) -> None:
        if buffer < 1:
            raise ValueError("buffer: at least 1")
        self.close_reason: str | None = None
        self._limit = buffer
        self._on_full = on_full
        self._readable = readable
        self._closed = closed
        self._weigh = weigh
        self._weight = 0
        self._items: deque[T] = deque()
        self._event = anyio.Event()
        self._read = self._dropped = self._purged = 0
        self._run = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        try:
            return await self.receive()
        except SubscriptionClosed as closed:
            if closed.reason == "closed":
                raise StopAsyncIteration from None
            raise

    async def receive(self) -> T:
        """Wait for the next item and return it.

        :raises SubscriptionClosed: when it was closed, and every item from before was read.
        """
        # Others run before the item is taken: no await may come after that, or a cancellation would lose it. Where many
        # wait they run now and then, as it takes longer than an item does: with 2,500 a second, a tenth of a core.
        self._run += 1
        if not self._items or self._run >= RUN:
            self._run = 0
            await anyio.lowlevel.checkpoint()
        while True:
            item = self.receive_nowait()
            if item is not None:
                return item
            if self.close_reason is not None:
                raise SubscriptionClosed(self.close_reason)
            if self._event.is_set():
                self._event = anyio.Event()
            await self._event.wait()

    def receive_nowait(self) -> T | None:
        """Return the next item, or `None` when none waits."""
        while self._items:
            item = self._readable(self._pop())
            if item is not None:
                self._read += 1
                return item
            self._purged += 1
        return None

    def close(self, reason: str = "closed") -> None:
        """End the subscription: what is in its buffer can still be read."""
        if self.close_reason is None:
            self.close_reason = reason
            self._closed(self)
            self._event.set()

    def statistics(self) -> SubscriptionStatistics:
        """Return counts."""
        return SubscriptionStatistics(self._read, self._dropped, self._purged, len(self._items))

    def tell(self, item: T) -> None:
        """Put an item into the buffer; called by whom it is subscribed to."""
        if self.close_reason is not None:
            return
        weight = 0 if self._weigh is None else self._weigh(item)
        while self._items and (len(self._items) >= self._limit or self._weight + weight > WEIGHT):
            self._dropped += 1
            if self._on_full == "close":
                self.close("buffer full")
                return
            self._pop()
        self._items.append(item)
        self._weight += weight
        self._event.set()

    def _pop(self) -> T:
        item = self._items.popleft()
        if self._weigh is not None:
            self._weight -= self._weigh(item)
        return item
