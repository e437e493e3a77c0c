"""Going round again while nodes say that they cannot answer yet (Q4)."""

from collections.abc import Sequence
from typing import Any

import anyio

from vc_fallback.base.types import NodeId
from vc_fallback.node.failures import FutureSlot, NotReady, RateLimited
from vc_fallback.routing.desk import Desk
from vc_fallback.routing.outcomes import Attempt, RequestFailed, failure

_NOT_YET = (NotReady, FutureSlot, RateLimited)


class Rounds:
    """For one request that all have been asked. Who said "not yet" is asked again: every 1/24 slot, or when one of them
    has news, but not before the time that it named itself; and so is who is new. All others are not.

    :param end: moment in loop time at which there is nothing to wait for any more.
    """

    def __init__(self, desk: Desk, end: float) -> None:
        self._desk = desk
        self._end = end
        self._asked: dict[NodeId, Attempt[Any]] = {}
        self._news = anyio.Event()

    async def next(self, error: RequestFailed) -> bool:
        """Take how a round failed, and wait for the time of the next; `False` where none is worth it, or the time is
        over."""
        desk, end = self._desk, self._end
        self._asked |= {attempt.node_id: attempt for attempt in error.attempts}
        waiting = {
            n: self._rests_until(a) for n, a in self._asked.items() if _not_yet(a) and n in desk.candidates.current
        }
        if not waiting or min(waiting.values()) >= end:
            return False
        now = desk.clock.now()
        # News of many nodes come together: a round is made of them.
        soonest = min(end, max(now + desk.settings.refetch_after, min(waiting.values())))
        latest = min(end, max(now + desk.part(desk.settings.quorum_again), soonest))
        watches = [desk.news, *(desk.chain.head_news(node_id) for node_id in waiting)]
        deaf = [watch.listen(lambda: self._news.set()) for watch in watches]
        until = latest
        try:
            while not desk.left and desk.clock.now() < until:
                self._news = anyio.Event()
                with anyio.CancelScope(deadline=until):
                    await self._news.wait()
                    until = soonest
        finally:
            for stop in deaf:
                stop()
        return desk.clock.now() < end and not desk.left

    def failure(self, what: str) -> Exception:
        """Return what is to be raised when there are no more: with the last reason of every node."""
        return failure(what, [*self._asked], [*self._asked.values()], over=False)

    def of(self, nodes: Sequence[NodeId]) -> list[NodeId]:
        """Return those of some nodes that are asked in this round."""
        now = self._desk.clock.now()
        asked = self._asked
        return [n for n in nodes if n not in asked or (_not_yet(asked[n]) and self._rests_until(asked[n]) <= now)]

    def _rests_until(self, attempt: Attempt[Any]) -> float:
        error = attempt.error
        if isinstance(error, RateLimited):
            return attempt.ended + (self._desk.settings.cooldown if error.retry_after is None else error.retry_after)
        return attempt.ended + (error.retry_after or 0.0 if isinstance(error, NotReady) else 0.0)


def _not_yet(attempt: Attempt[Any]) -> bool:
    """Whether a node may say something else in a moment: it is syncing, optimistic, behind, or its clock is."""
    return isinstance(attempt.error, _NOT_YET) or attempt.doubt is not None
