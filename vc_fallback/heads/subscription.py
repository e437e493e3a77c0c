"""A subscriber's own view of the delivered heads: its buffer, what it dropped, why it ended (C8)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

import anyio
import anyio.lowlevel

from vc_fallback.base.errors import SubscriptionClosed
from vc_fallback.decide.delivery import Delivered
from vc_fallback.heads.cache import HeadCache

OnFull = Literal["drop_oldest", "close"]


@dataclass(frozen=True, slots=True)
class SubscriptionStatistics:
    """Heads handed to the reader, dropped because the buffer was full, dropped because their node left, and waiting."""

    read: int
    dropped: int
    purged: int
    waiting: int


class Subscription:
    """Delivered heads, in order. Use it as an asynchronous context manager and iterate over it.

    Reading from nodes never waits for it: when its buffer is full, the oldest head is dropped and counted, or the
    subscription is closed with a `close_reason`. A cancelled read loses no head.
    """

    def __init__(
        self,
        cache: HeadCache,
        *,
        buffer: int,
        on_full: OnFull,
        replay_latest: bool,
        closed: Callable[["Subscription"], None],
    ) -> None:
        if buffer < 1:
            raise ValueError("buffer: at least 1")
        self.close_reason: str | None = None
        self._cache = cache
        self._limit = buffer
        self._on_full = on_full
        self._closed = closed
        self._heads: deque[Delivered] = deque()
        self._event = anyio.Event()
        self._read = self._dropped = self._purged = 0
        if replay_latest and cache.delivery.delivered is not None:
            self._heads.append(cache.delivery.delivered)
        cache.attach(self, self._deliver)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivered:
        try:
            return await self.receive()
        except SubscriptionClosed as closed:
            if closed.reason == "closed":
                raise StopAsyncIteration from None
            raise

    async def receive(self) -> Delivered:
        """Wait for the next head and return it.

        :raises SubscriptionClosed: when it was closed, and every head from before was read.
        """
        # Others run before the head is taken: no await may come after that, or a cancellation would lose it.
        await anyio.lowlevel.checkpoint()
        while True:
            delivered = self._pop()
            if delivered is not None:
                return delivered
            if self.close_reason is not None:
                raise SubscriptionClosed(self.close_reason)
            if self._event.is_set():
                self._event = anyio.Event()
            await self._event.wait()

    def receive_nowait(self) -> Delivered | None:
        """Return the next head, or `None` when none waits."""
        return self._pop()

    def close(self, reason: str = "closed") -> None:
        """End the subscription: heads in its buffer can still be read."""
        if self.close_reason is None:
            self.close_reason = reason
            self._cache.detach(self)
            self._closed(self)
            self._event.set()

    def statistics(self) -> SubscriptionStatistics:
        """Return counts."""
        return SubscriptionStatistics(self._read, self._dropped, self._purged, len(self._heads))

    def _deliver(self, delivered: Delivered) -> None:
        if len(self._heads) >= self._limit:
            self._dropped += 1
            if self._on_full == "close":
                self.close("buffer full")
                return
            self._heads.popleft()
        self._heads.append(delivered)
        self._event.set()

    def _pop(self) -> Delivered | None:
        while self._heads:
            delivered = self._cache.members.readable(self._heads.popleft())
            if delivered is not None:
                self._read += 1
                return delivered
            self._purged += 1
        return None
