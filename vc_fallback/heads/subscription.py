"""A subscriber's own view of the delivered heads (C8)."""

from collections.abc import Callable
from typing import Any

from vc_fallback.base.buffered import Buffered, OnFull
from vc_fallback.decide.delivery import Delivered
from vc_fallback.heads.cache import HeadCache


class Subscription(Buffered[Delivered]):
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
        closed: Callable[[Buffered[Any]], None],
    ) -> None:
        def ended(subscription: Buffered[Any]) -> None:
            cache.detach(self)
            closed(subscription)

        super().__init__(buffer=buffer, on_full=on_full, readable=cache.members.readable, closed=ended)
        if replay_latest and cache.delivery.delivered is not None:
            self._items.append(cache.delivery.delivered)
        cache.attach(self, self.tell)
