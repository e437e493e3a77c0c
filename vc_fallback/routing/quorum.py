"""Quorum: so many nodes have to give the same value before the deadline; who differs is asked again (Q6, rule 9)."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio

from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.base.watch import Watch, WatchClosed, Watcher
from vc_fallback.node.failures import NotReady, RateLimited, Unauthorized
from vc_fallback.routing.outcomes import NO_SAY, Accept, Op, QuorumNotReached, Report, check
from vc_fallback.routing.together import Together

T = TypeVar("T")

_OUT = (*NO_SAY, Unauthorized)
"""Who says this is not asked again: it will be the same until the deadline."""


@dataclass(frozen=True, slots=True)
class Agreement(Generic[T]):
    """What enough nodes agree on.

    :param answer: of the first of these nodes in the order in which they were given.
    :param voters: those who gave it, in that order.
    :param votes: who gave which value, by its key, the most votes first; the last one of each node.
    """

    answer: Sourced[T]
    voters: tuple[NodeId, ...]
    votes: dict[Hashable, tuple[NodeId, ...]]


def majority(count: int) -> int:
    """Return how many of so many nodes are more than half."""
    return count // 2 + 1


async def quorum(
    op: Op[T],
    nodes: Sequence[NodeId],
    *,
    threshold: int,
    key: Callable[[Sourced[T]], Hashable],
    end: float,
    again: float,
    watch: Callable[[NodeId], Watch[Any] | None] | None = None,
    accept: Accept[T] | None = None,
    report: Report[T] | None = None,
    what: str = "request",
) -> Agreement[T]:
    """Ask all nodes at once until `threshold` of them give the same value. The threshold is never lowered (rule 9).

    A node has one vote, that of its last answer. Who is not with the most, or has failed, is asked again every `again`
    seconds, and each node as soon as its watch has news: what it said may not hold any more.

    :param key: equal keys are equal values; the SSZ root of what is to be signed (Q6).
    :param end: moment in loop time at which the caller gets an error.
    :param again: seconds from the end of one question to a node until the next.
    :param watch: what has news when a node may have changed its mind: its heads.
    :param accept: an answer that it doubts is no vote, usable or not.
    :raises ValueError: for a threshold below 1.
    :raises QuorumNotReached: when it was not reached in time, or cannot be any more; before anything is sent where
        there are fewer nodes than that.
    :raises DeadlineExceeded: when the time is over already.
    :raises NoCandidates: without nodes.
    :raises Exception: what `op`, `key` or `accept` raised but :exc:`~vc_fallback.NodeError`, unchanged.
    """
    if threshold < 1:
        raise ValueError(f"{what}: a threshold of {threshold} nodes is none")
    if not again > 0:
        raise ValueError(f"{what}: nodes cannot be asked again every {again} s")
    check(what, nodes, end, anyio.current_time())
    if threshold > len(nodes):
        problem = f"{threshold} nodes have to give the same, and there are {len(nodes)}"
        raise QuorumNotReached(what, threshold, {}, problem=problem)
    vote = _Vote(op, nodes, threshold, key, again, watch, accept, report)
    await vote.run(end, vote.begin)
    if vote.agreed is not None:
        return vote.agreed
    attempts = [vote.attempts[node_id] for node_id in nodes if node_id in vote.attempts]
    raise QuorumNotReached(what, threshold, vote.votes(), attempts)


class _Vote(Together[T], Generic[T]):
    """One request. Each node has a task that asks it as often as is needed."""

    def __init__(
        self,
        op: Op[T],
        nodes: Sequence[NodeId],
        threshold: int,
        key: Callable[[Sourced[T]], Hashable],
        again: float,
        watch: Callable[[NodeId], Watch[Any] | None] | None,
        accept: Accept[T] | None,
        report: Report[T] | None,
    ) -> None:
        super().__init__(op, accept, report)
        self.agreed: Agreement[T] | None = None
        self._nodes = nodes
        self._threshold = threshold
        self._key = key
        self._again = again
        self._watch = watch
        self._answers: dict[NodeId, tuple[Hashable, Sourced[T]]] = {}
        self._open = len(nodes)
        """Nodes that may still vote, or vote otherwise."""

    def begin(self) -> None:
        """Ask all."""
        for node_id in self._nodes:
            self.start(self._hear, node_id)

    def votes(self) -> dict[Hashable, tuple[NodeId, ...]]:
        """Return who gave which value, the most votes first."""
        found: dict[Hashable, list[NodeId]] = {}
        for node_id in self._nodes:
            if node_id in self._answers:
                found.setdefault(self._answers[node_id][0], []).append(node_id)
        return {key: tuple(found[key]) for key in sorted(found, key=lambda key: -len(found[key]))}

    async def _hear(self, node_id: NodeId) -> None:
        # Made before the node is asked, so that news which comes meanwhile is not lost.
        watch = None if self._watch is None else self._watch(node_id)
        watcher = None if watch is None else watch.watcher()
        while True:
            attempt = await self.ask(node_id)
            if attempt.answer is not None and attempt.doubt is None:
                self._answers[node_id] = self._key(attempt.answer), attempt.answer
                self._count()
            if isinstance(attempt.error, _OUT):
                self._leave(node_id)
                return
            if isinstance(attempt.error, (RateLimited, NotReady)):
                await anyio.sleep(attempt.error.retry_after or 0.0)
            while not await _news(watcher, self._again):
                if not self._is_with_the_most(node_id):
                    break

    def _count(self) -> None:
        votes = self.votes()
        voters = next(iter(votes.values()))
        if len(voters) >= self._threshold:
            self.agreed = Agreement(self._answers[voters[0]][1], voters, votes)
            self.stop()

    def _is_with_the_most(self, node_id: NodeId) -> bool:
        """Whether a node need not be asked again: its value is that of more nodes than any other is."""
        if node_id not in self._answers:
            return False
        votes = self.votes()
        counts = [len(voters) for voters in votes.values()]
        return node_id in next(iter(votes.values())) and (len(counts) == 1 or counts[0] > counts[1])

    def _leave(self, node_id: NodeId) -> None:
        if node_id not in self._answers:
            self._open -= 1
            if self._open < self._threshold:
                self.stop()


async def _news(watcher: Watcher[Any] | None, pause: float) -> bool:
    """Wait for news, at most so long; return whether there were."""
    if watcher is None:
        await anyio.sleep(pause)
        return False
    try:
        with anyio.move_on_after(pause):
            await watcher.wait()
            return True
    except WatchClosed:
        await anyio.sleep(pause)
    return False
