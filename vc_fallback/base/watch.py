"""The newest value of something, for any number of waiters (C9)."""

from collections.abc import Callable
from typing import Generic, TypeVar

import anyio
import anyio.lowlevel

T = TypeVar("T")


class WatchClosed(Exception):
    """The watch was closed; no newer value will come."""


class Watch(Generic[T]):
    """Holds one value and a version that counts up. Setting never waits; a slow waiter sees the newest value only.

    `set` and reading the value are synchronous. Every waiter holds a :class:`Watcher` with the version it saw last, so
    no wake-up is lost between two waits, and a cancelled wait loses nothing.
    """

    __slots__ = ("_closed", "_event", "_listeners", "_value", "_version")

    def __init__(self, value: T) -> None:
        self._value = value
        self._version = 0
        self._closed = False
        self._event: anyio.Event | None = None
        self._listeners: list[Callable[[], None]] = []

    @property
    def value(self) -> T:
        """The newest value."""
        return self._value

    @property
    def version(self) -> int:
        """How often the value was set."""
        return self._version

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    def set(self, value: T) -> None:
        """Replace the value and wake everyone who waits.

        :raises WatchClosed: after :meth:`close`.
        """
        if self._closed:
            raise WatchClosed
        self._value = value
        self._version += 1
        self._wake()
        for listener in (*self._listeners,):
            listener()

    def listen(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have something called whenever the value was set, where no task is to wait for that; return what ends it.

        :param callback: returns at once and raises nothing: whoever sets the value calls it.
        """
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def amend(self, value: T) -> None:
        """Replace the value by one that is no news: the version stays, nobody is woken."""
        self._value = value

    def close(self) -> None:
        """End the watch: waiters get a value they have not seen, then :exc:`WatchClosed`."""
        if not self._closed:
            self._closed = True
            self._wake()

    def watcher(self, *, seen: bool = True) -> "Watcher[T]":
        """Make a waiter; with `seen=False` its first wait returns the present value at once."""
        return Watcher(self, self._version if seen else self._version - 1)

    def _wake(self) -> None:
        # Swapped before it is set: whoever comes after this line waits for the next change.
        event, self._event = self._event, None
        if event is not None:
            event.set()

    def _next(self) -> anyio.Event:
        if self._event is None:
            self._event = anyio.Event()
        return self._event


class Watcher(Generic[T]):
    """One waiter of a :class:`Watch`."""

    __slots__ = ("_seen", "_watch")

    def __init__(self, watch: Watch[T], seen: int) -> None:
        self._watch = watch
        self._seen = seen

    @property
    def changed(self) -> bool:
        """Whether there is a value this waiter has not seen."""
        return self._watch.version != self._seen

    async def wait(self) -> T:
        """Wait for a value that this waiter has not seen, and return the newest.

        :raises WatchClosed: when the watch is closed and every value was seen.
        """
        if self.changed:
            # A loop over a watch that is set all the time must still let others run.
            await anyio.lowlevel.checkpoint()
        while not self.changed:
            if self._watch.closed:
                raise WatchClosed
            # No await between reading the version above and taking the event here, or a wake-up could be lost.
            await self._watch._next().wait()  # noqa: SLF001 - one mechanism in two classes
        # Marked as seen only now: a wait that was cancelled has seen nothing.
        self._seen = self._watch.version
        return self._watch.value
