"""Best: ask all of a tier, take the best of what has come until the soft deadline, then the first answer (Q2, Q7)."""

import math
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.routing.outcomes import Accept, Op, Report, check, failure, last_resort
from vc_fallback.routing.runner import Runner, Timer
from vc_fallback.routing.together import Together

T = TypeVar("T")

Score = Callable[[Sourced[T]], float | None]
"""Says how good an answer is, more is better; `None` where that is not known, which loses to all that is (Q7)."""


async def best(
    op: Op[T],
    tiers: Sequence[Sequence[NodeId]],
    *,
    soft: float,
    end: float,
    score: Score[T] | None,
    runner: Runner,
    min_improvement: float = 0.0,
    accept: Accept[T] | None = None,
    lowered: Callable[[NodeId], bool] | None = None,
    report: Report[T] | None = None,
    what: str = "request",
) -> Sourced[T]:
    """Ask all nodes of the first tier at once, and return the best answer.

    As soon as all have answered, or at the soft deadline, the best of what is there is taken; where nothing is, the
    first answer until the end. The next tier is asked when all of the one before have failed, and as well when nothing
    has come by the soft deadline, and when nothing has come after as long a time again; so scores are compared within a
    tier only.

    :param tiers: whom to ask, each tier best first, each node once; empty tiers do not count.
    :param soft: moment in loop time until which answers are collected.
    :param end: moment in loop time at which the caller gets an error.
    :param score: `None` where there is nothing to compare: the first node by rank is taken that answers, as soon as all
        before it have failed.
    :param min_improvement: by which part of its score the answer of the first node, of those that answered, has to be
        exceeded for it to be left; 0.05 is 5 %. Equal scores go to the node that comes first.
    :param lowered: whether an answer of a node, as of now, is worth less than any other, whatever its score: it is not
        compared, and taken where nothing else is there by the soft deadline, or when nothing else can come any more.
    :raises NotFound: when that is what all say who can be asked.
    :raises AllNodesFailed: when all failed otherwise.
    :raises DeadlineExceeded: when the time was over first, or is already.
    :raises NoCandidates: without nodes.
    :raises Exception: what `op`, `accept` or `score` raised but :exc:`~vc_fallback.NodeError`, unchanged.
    """
    nodes = [node_id for tier in tiers for node_id in tier]
    check(what, nodes, end, runner.now())
    tiers = [tier for tier in tiers if tier]
    choice = _Choice(op, tiers, nodes, min(end, soft), score, min_improvement, accept, lowered, report, runner, what)
    await choice.run(end, choice.begin)
    attempts = [*choice.attempts.values()]
    # The end may be before the soft deadline: what has come until then counts.
    answer = choice.chosen or choice.best_so_far() or last_resort(nodes, attempts)
    if answer is not None:
        return answer
    raise failure(what, nodes, attempts, over=runner.now() >= end)


class _Choice(Together[T], Generic[T]):
    """One request."""

    def __init__(
        self,
        op: Op[T],
        tiers: Sequence[Sequence[NodeId]],
        nodes: Sequence[NodeId],
        soft: float,
        score: Score[T] | None,
        min_improvement: float,
        accept: Accept[T] | None,
        lowered: Callable[[NodeId], bool] | None,
        report: Report[T] | None,
        runner: Runner,
        what: str,
    ) -> None:
        super().__init__(op, accept, report, runner, what)
        self.chosen: Sourced[T] | None = None
        self._tiers = [*tiers]
        self._rank = {node_id: place for place, node_id in enumerate(nodes)}
        self._soft = soft
        self._score = score
        self._min_improvement = min_improvement
        self._lowered = lowered
        self._late = False
        self._collects = 0.0
        self._under_way = 0
        self._asked: list[NodeId] = []
        """In the order of their rank."""
        self._timer: Timer | None = None

    async def begin(self) -> None:
        """Ask the first tier; where there is no time to compare, all."""
        if self._soft > self.runner.now():
            first, *others = self._asked = [*self._tiers.pop(0)]
            self._collects = self._soft - self.runner.now()
            self._wait_for_answers(self._soft)
        else:
            self._late = True
            first, *others = self._asked = [*self._rank]
            self._tiers.clear()
        self._under_way = 1
        self._start_beside(others)
        await self._try(first)

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _ask_beside(self, nodes: Sequence[NodeId]) -> None:
        self._asked += nodes
        self._start_beside(nodes)

    def _start_beside(self, nodes: Sequence[NodeId]) -> None:
        for node_id in nodes:
            if self.start(self._try, node_id):
                self._under_way += 1
            else:
                self.not_asked(node_id)

    async def _try(self, node_id: NodeId) -> None:
        try:
            await self.ask(node_id)
        finally:
            self._under_way -= 1
        if self._late or not self._under_way or (self._score is None and self._first_by_rank_is_in()):
            self._decide()
        while not self._under_way and self._tiers and not self._decided():
            self._ask_beside(self._tiers.pop(0))

    def _first_by_rank_is_in(self) -> bool:
        """Whether an answer is there that none of those under way would go before."""
        for node_id in self._asked:
            attempt = self.attempts.get(node_id)
            if attempt is None:
                return False
            if attempt.answer is not None and attempt.doubt is None and not self._is_lowered(node_id):
                return True
        return False

    def _wait_for_answers(self, until: float) -> None:
        self._timer = self.runner.at(until, self.call(self._give_up_collecting))

    def _give_up_collecting(self) -> None:
        self._late = True
        self._decide()
        if self._tiers and not self._decided():
            self._ask_beside(self._tiers.pop(0))
            self._wait_for_answers(self.runner.now() + self._collects)

    def _decide(self) -> None:
        if not self.over:
            self.chosen = self.best_so_far(lowered=self._late or not (self._under_way or self._tiers))
            self.over = self.chosen is not None

    def _decided(self) -> bool:
        return self.over

    def _is_lowered(self, node_id: NodeId) -> bool:
        return self._lowered is not None and self._lowered(node_id)

    def best_so_far(self, *, lowered: bool = True) -> Sourced[T] | None:
        """Return the best of what has come, if anything has.

        :param lowered: whether what is lowered counts where nothing else is there.
        """
        answers = {a.node_id: a.answer for a in self.attempts.values() if a.answer is not None and a.doubt is None}
        ranked = sorted(answers, key=self._rank.__getitem__)
        sound = [node_id for node_id in ranked if not self._is_lowered(node_id)]
        in_order = [answers[node_id] for node_id in sound or (ranked if lowered else ())]
        if self._score is None or len(in_order) < 2:
            return next(iter(in_order), None)
        return self._best(in_order, self._score)

    def _best(self, answers: Sequence[Sourced[T]], score: Score[T]) -> Sourced[T]:
        scores = [_known(score(answer)) for answer in answers]
        top = max(scores)
        first = scores[0]
        if first == -math.inf or top - first > abs(first) * self._min_improvement:
            return answers[scores.index(top)]
        return answers[0]


def _known(score: float | None) -> float:
    return -math.inf if score is None or math.isnan(score) else score
