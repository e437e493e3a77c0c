"""What consumers can subscribe to of heads: the heads, reorgs, and changes of dependent roots (C8, C11)."""

from collections.abc import Callable
from typing import Any, TypeVar

from vc_fallback.base.buffered import Buffered, OnFull
from vc_fallback.base.signals import ChainReorged, DependentRootChanged
from vc_fallback.config import FallbackConfig
from vc_fallback.heads.cache import HeadCache
from vc_fallback.heads.subscription import Subscription

T = TypeVar("T")


class HeadSubscriptions:
    """The part of a head monitor that makes subscriptions, and ends them with it."""

    _config: FallbackConfig

    def __init__(self) -> None:
        self._subscriptions: set[Buffered[Any]] = set()

    @property
    def cache(self) -> HeadCache:
        """The head cache."""
        raise RuntimeError("the monitor has not been entered")

    def subscribe(
        self, *, buffer: int | None = None, on_full: OnFull = "drop_oldest", replay_latest: bool = False
    ) -> Subscription:
        """Subscribe to delivered heads (C8).

        :param buffer: heads that may wait unread; default from the configuration.
        :param on_full: drop the oldest and count it, or close the subscription.
        :param replay_latest: begin with the present head.
        :raises RuntimeError: before the context is entered, and after it was left.
        """
        if self.cache.closing:
            raise RuntimeError("the monitor has ended")
        subscription = Subscription(
            self.cache,
            buffer=self._config.heads.buffer if buffer is None else buffer,
            on_full=on_full,
            replay_latest=replay_latest,
            closed=self._subscriptions.discard,
        )
        self._subscriptions.add(subscription)
        return subscription

    def reorgs(self, *, buffer: int | None = None, on_full: OnFull = "drop_oldest") -> Buffered[ChainReorged]:
        """Subscribe to reorgs of the delivered chain: each time that it leaves a branch (C3, C11).

        They come beside the heads, up to 1/24 of a slot after the head that a reorg led to, or when its header came.
        Nodes do not report each; so the header of every delivered head is asked for while there is a subscription, of
        the node that brought it: one request a slot. What a node says of a chain that is not followed is not among
        them: :class:`NodeReorgSeen` signals tell of it.

        :param buffer: reorgs that may wait unread; default from the configuration.
        :param on_full: drop the oldest and count it, or close the subscription.
        :raises RuntimeError: before the context is entered, and after it was left.
        """
        return self._subscribed(self.cache.tell.reorgs, self.cache.members.readable_reorg, buffer, on_full)

    def dependent_root_changes(
        self, *, buffer: int | None = None, on_full: OnFull = "drop_oldest"
    ) -> Buffered[DependentRootChanged]:
        """Subscribe to changes of the blocks that fix the duties of an epoch on the delivered chain (C11).

        A change counts once more nodes report the new root than the old one. Duties of that epoch that were got by the
        old one are void.

        :param buffer: changes that may wait unread; default from the configuration.
        :param on_full: drop the oldest and count it, or close the subscription.
        :raises RuntimeError: before the context is entered, and after it was left.
        """
        return self._subscribed(self.cache.tell.root_changes, self.cache.members.readable_change, buffer, on_full)

    def _subscribed(
        self, told: set[Buffered[T]], readable: Callable[[T], T | None], buffer: int | None, on_full: OnFull
    ) -> Buffered[T]:
        if self.cache.closing:
            raise RuntimeError("the monitor has ended")

        def closed(subscription: Buffered[T]) -> None:
            told.discard(subscription)
            self._subscriptions.discard(subscription)

        subscription: Buffered[T] = Buffered(
            buffer=self._config.heads.buffer if buffer is None else buffer,
            on_full=on_full,
            readable=readable,
            closed=closed,
        )
        told.add(subscription)
        self._subscriptions.add(subscription)
        return subscription

    def _close_subscriptions(self) -> None:
        for subscription in list(self._subscriptions):
            subscription.close()
