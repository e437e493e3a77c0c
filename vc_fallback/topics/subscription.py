"""A subscriber's own view of events of topics (T1, T7, C8)."""

from collections.abc import Callable
from typing import Any

from vc_fallback.base.buffered import Buffered, OnFull
from vc_fallback.topics.event import TopicEvent, TopicUnavailable


class TopicSubscription(Buffered[TopicEvent]):
    """Events of some topics, in the order in which they came. Use it as an asynchronous context manager and iterate
    over it; leaving the block unsubscribes.

    Reading from nodes never waits for it: when its buffer is full, by count or with 32 MiB of text, the oldest event is
    dropped and counted, or the subscription is closed with a `close_reason`. A cancelled read loses no event.

    Where no node carries one of its topics, reading raises :exc:`TopicUnavailable` once what is in the buffer was read;
    the subscription stands, and can be read again.
    """

    def __init__(
        self,
        topics: frozenset[str],
        *,
        since: float,
        buffer: int,
        on_full: OnFull,
        readable: Callable[[TopicEvent], TopicEvent | None],
        closed: Callable[[Buffered[Any]], None],
    ) -> None:
        super().__init__(
            buffer=buffer, on_full=on_full, readable=readable, closed=closed, weigh=lambda event: len(event.data)
        )
        self.topics = topics
        self.missing: dict[str, float] = dict.fromkeys(topics, since)
        """The topics that do not reach it, each with the loop time from which that counts; written by the hub."""
        self.since = since
        """When it was made, in loop time."""
        self.warned: set[str] = set()
        """The topics of which an error was told since they were carried last; written by the hub."""
        self._errors: dict[str, TopicUnavailable] = {}

    def receive_nowait(self) -> TopicEvent | None:
        """Return the next event, or `None` when none waits.

        :raises TopicUnavailable: when none waits and no node carries one of the topics.
        """
        event = super().receive_nowait()
        if event is None and self._errors and self.close_reason is None:
            raise self._errors.pop(next(iter(self._errors)))
        return event

    def fail(self, error: TopicUnavailable) -> None:
        """Have the next read raise an error."""
        if self.close_reason is None:
            self._errors[error.topic] = error
            self._event.set()

    def carried(self, topic: str) -> None:
        """Take back an error that was not read: a node carries the topic."""
        self._errors.pop(topic, None)
