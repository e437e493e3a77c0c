"""Quorum: so many nodes have to give the same value before the deadline; who differs is asked again (Q6, rule 9)."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.base.watch import Watch
from vc_fallback.node.failures import NotReady, Quarantined, RateLimited, SemanticError, Unauthorized
from vc_fallback.routing.outcomes import NO_SAY, Accept, Op, QuorumNotReached, Report, check
from vc_fallback.routing.runner import Runner, Timer
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
    runner: Runner,
    watch: Callable[[NodeId], Watch[Any] | None] | None = None,
    accept: Accept[T] | None = None,
    report: Report[T] | None = None,
    reserve: Sequence[NodeId] = (),
    what: str = "request",
) -> Agreement[T]:
    """Ask all nodes at once until `threshold` of them give the same value. The threshold is never lowered (rule 9).

    A node has one vote, that of its last answer. Who is not with the most, or has failed, is asked again every `again`
    seconds, and each node as soon as its watch has news: what it said may not hold any more.

    :param reserve: nodes that vote too where the others cannot be enough, as too few of them answer, or have not agreed
        `again` seconds after they were asked.
    :param key: equal keys are equal values; the SSZ root of what is to be signed (Q6).
    :param end: moment in loop time at which the caller gets an error.
    :param again: seconds from the end of one question to a node until the next.
    :param watch: what has news when a node may have changed its mind: its heads.
    :param accept: an answer that it doubts is no vote, usable or not.
    :raises ValueError: for a threshold below 1.
    :raises QuorumNotReached: when it was not reached in time, or cannot be any more; before anything is sent where
        there are fewer nodes than that, the reserve included.
    :raises DeadlineExceeded: when the time is over already.
    :raises NoCandidates: without nodes.
    :raises Exception: what `op`, `key` or `accept` raised but :exc:`~vc_fallback.NodeError`, unchanged.
    """
    if threshold < 1:
        raise ValueError(f"{what}: a threshold of {threshold} nodes is none")
    if not again > 0:
        raise ValueError(f"{what}: nodes cannot be asked again every {again} s")
    if not nodes:
        nodes, reserve = reserve, ()
    everyone = [*nodes, *reserve]
    check(what, everyone, end, runner.now())
    if threshold > len(everyone):
        problem = f"{threshold} nodes have to give the same, and there are {len(everyone)}"
        raise QuorumNotReached(what, threshold, {}, problem=problem)
    vote = _Vote(op, nodes, reserve, threshold, key, again, watch, accept, report, runner, what)
    await vote.run(end, vote.begin)
    if vote.agreed is not None:
        return vote.agreed
    attempts = [vote.attempts[node_id] for node_id in everyone if node_id in vote.attempts]
    raise QuorumNotReached(what, threshold, vote.votes(), attempts)


class _Voter:
    """What is known of one node."""

    __slots__ = ("news", "node_id", "rests_until", "seen", "timer", "under_way", "unlisten", "watch")

    def __init__(self, node_id: NodeId, watch: Watch[Any] | None) -> None:
        self.node_id = node_id
        self.watch = watch
        self.under_way = False
        self.news = False
        """Whether there were news since it was asked last."""
        self.seen = 0
        """The version of its watch when it was asked last, while nobody listens to that."""
        self.unlisten: Callable[[], None] | None = None
        """Ends listening. Nobody listens before its first answer, which nearly always is the last as well."""
        self.rests_until = -math.inf
        self.timer: Timer | None = None
        """When it is looked at again."""


class _Vote(Together[T], Generic[T]):
    """One request. Between two questions no task waits: a timer, or news, begins the next."""

    patient: ClassVar[bool] = True

    def __init__(
        self,
        op: Op[T],
        nodes: Sequence[NodeId],
        reserve: Sequence[NodeId],
        threshold: int,
        key: Callable[[Sourced[T]], Hashable],
        again: float,
        watch: Callable[[NodeId], Watch[Any] | None] | None,
        accept: Accept[T] | None,
        report: Report[T] | None,
        runner: Runner,
        what: str,
    ) -> None:
        super().__init__(op, accept, report, runner, what)
        self.agreed: Agreement[T] | None = None
        self._nodes = [*nodes, *reserve]
        self._threshold = threshold
        self._key = key
        self._again = again
        self._watch = watch
        self._answers: dict[NodeId, tuple[Hashable, Sourced[T]]] = {}
        self._voters = self._make(nodes)
        self._reserve = self._make(reserve)
        self._reserve_timer: Timer | None = None
        self._open = len(self._nodes)
        """Nodes that have voted, or may still."""

    async def begin(self) -> None:
        """Ask all but the reserve."""
        if self._reserve:
            due = self.call(self._call_reserve)
            self._reserve_timer = self.runner.at(self.runner.now() + self._again, due)
        if len(self._voters) < self._threshold:
            self._call_reserve()
        first, *others = self._voters
        for voter in others:
            if not voter.under_way:
                self._ask_beside(voter)
        await self._hear(first)

    def _make(self, nodes: Sequence[NodeId]) -> list[_Voter]:
        watch = self._watch
        return [_Voter(node_id, None if watch is None else watch(node_id)) for node_id in nodes]

    def _call_reserve(self) -> None:
        """Ask the reserve, too."""
        if self._reserve_timer is not None:
            self._reserve_timer.cancel()
        reserve, self._reserve = self._reserve, []
        self._voters += reserve
        for voter in reserve:
            if not self.over:
                self._ask_beside(voter)

    def _may_be_enough(self) -> bool:
        """Whether those that were asked can reach the threshold by what they have done so far: answered, or not yet."""
        return sum(voter.under_way or voter.node_id in self._answers for voter in self._voters) >= self._threshold

    def leave(self) -> None:
        if self._reserve_timer is not None:
            self._reserve_timer.cancel()
        for voter in self._voters:
            if voter.timer is not None:
                voter.timer.cancel()
            if voter.unlisten is not None:
                voter.unlisten()
                # It leads back here: a hundred objects that the garbage collector would have to find.
                voter.unlisten = None

    def votes(self) -> dict[Hashable, tuple[NodeId, ...]]:
        """Return who gave which value, the most votes first."""
        found: dict[Hashable, list[NodeId]] = {}
        for node_id in self._nodes:
            if node_id in self._answers:
                found.setdefault(self._answers[node_id][0], []).append(node_id)
        return {key: tuple(found[key]) for key in sorted(found, key=lambda key: -len(found[key]))}

    def _ask_beside(self, voter: _Voter) -> None:
        voter.under_way = True
        if not self.start(self._hear, voter):
            self.not_asked(voter.node_id)
            self._leave_out(voter)

    async def _hear(self, voter: _Voter) -> None:
        voter.under_way = True
        voter.news = False
        if voter.watch is not None:
            voter.seen = voter.watch.version
        attempt = await self.ask(voter.node_id)
        voter.under_way = False
        if attempt.answer is not None and attempt.doubt is None:
            self._take(voter.node_id, self._key(attempt.answer), attempt.answer)
        elif attempt.doubt is not None or isinstance(attempt.error, (SemanticError, NotReady, Quarantined)):
            # It does not stand by what it gave before, or that was of another chain.
            self._answers.pop(voter.node_id, None)
        if isinstance(attempt.error, _OUT):
            self._leave_out(voter)
        if not self.over and self._reserve and attempt.error is not None and not self._may_be_enough():
            self._call_reserve()
        if self.over or isinstance(attempt.error, _OUT):
            return
        if isinstance(attempt.error, (RateLimited, NotReady)):
            voter.rests_until = attempt.ended + (attempt.error.retry_after or 0.0)
        self._look_again(voter, attempt.ended + self._again)

    def _take(self, node_id: NodeId, key: Hashable, answer: Sourced[T]) -> None:
        self._answers[node_id] = key, answer
        if not self.over and sum(other == key for other, _ in self._answers.values()) >= self._threshold:
            votes = self.votes()
            voters = votes[key]
            self.agreed = Agreement(self._answers[voters[0]][1], voters, votes)
            self.over = True

    def _look_again(self, voter: _Voter, when: float) -> None:
        """Set the time at which a node is asked again, at once where it had news meanwhile."""
        if voter.timer is not None:
            voter.timer.cancel()
        if voter.watch is not None and voter.unlisten is None:
            voter.news = voter.watch.version != voter.seen
            voter.unlisten = voter.watch.listen(self.call(partial(self._news, voter)))
        when = max(voter.rests_until, -math.inf if voter.news else when)
        voter.timer = self.runner.at(when, self.call(partial(self._due, voter)))

    def _due(self, voter: _Voter) -> None:
        voter.timer = None
        if voter.news or not self._is_with_the_most(voter.node_id):
            self._ask_beside(voter)
        else:
            self._look_again(voter, self.runner.now() + self._again)

    def _news(self, voter: _Voter) -> None:
        voter.news = True
        if voter.timer is not None:
            self._look_again(voter, -math.inf)

    def _is_with_the_most(self, node_id: NodeId) -> bool:
        """Whether a node need not be asked again: its value is that of more nodes than any other is."""
        if node_id not in self._answers:
            return False
        votes = self.votes()
        counts = [len(voters) for voters in votes.values()]
        return node_id in next(iter(votes.values())) and (len(counts) == 1 or counts[0] > counts[1])

    def _leave_out(self, voter: _Voter) -> None:
        """It will not answer: where too few are left there is nothing to wait for."""
        if voter.node_id not in self._answers:
            self._open -= 1
            if self._open < self._threshold:
                self.over = True
