"""First success: the best node first, the next at once on failure, and as well after a delay (Q2, Q3, Q4)."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.routing.outcomes import Accept, Op, Report, check, failure, last_resort
from vc_fallback.routing.runner import Runner, Timer
from vc_fallback.routing.together import Together

T = TypeVar("T")


async def first_success(
    op: Op[T],
    nodes: Sequence[NodeId],
    *,
    end: float,
    delay: Callable[[NodeId], float],
    runner: Runner,
    accept: Accept[T] | None = None,
    report: Report[T] | None = None,
    what: str = "request",
) -> Sourced[T]:
    """Ask one node after the other, and return the first answer that can be taken.

    A failure, "not found" and an answer that is doubted included, moves on at once. Where a node is silent for its
    `delay`, the next is asked as well. Earlier attempts run on until `end`; when an answer wins, all others are
    cancelled and awaited. The first attempt, and what follows its failure, runs in the caller's own task.

    :param nodes: whom to ask, best first, each once.
    :param end: moment in loop time at which the caller gets an error.
    :param delay: seconds after asking a node until the next is asked as well; `inf` for never.
    :param accept: looks at an answer: one that it doubts does not win and does not end the race.
    :param what: names the request in errors.
    :raises NotFound: when that is what all say who can be asked.
    :raises AllNodesFailed: when all failed otherwise.
    :raises DeadlineExceeded: when the time was over first, or is already.
    :raises NoCandidates: without nodes.
    :raises Exception: what `op`, `accept` or `delay` raised but :exc:`~vc_fallback.NodeError`, unchanged.
    """
    check(what, nodes, end, runner.now())
    race = _Race(op, nodes, end, delay, runner, accept, report, what)
    if await race.run(end, race.work):
        assert race.winner is not None  # noqa: S101 - that is what was decided
        return race.winner
    attempts = [*race.attempts.values()]
    answer = last_resort(nodes, attempts)
    if answer is not None:
        return answer
    raise failure(what, nodes, attempts, over=runner.now() >= end)


class _Race(Together[T], Generic[T]):
    """One request. Whoever runs attempts, the caller's task and those beside it, takes the next node from one list.

    Nearly all are over before the first timer, which comes before the end: until then the scope needs no deadline.
    """

    keeps_time: ClassVar[bool] = True

    def __init__(
        self,
        op: Op[T],
        nodes: Sequence[NodeId],
        end: float,
        delay: Callable[[NodeId], float],
        runner: Runner,
        accept: Accept[T] | None,
        report: Report[T] | None,
        what: str,
    ) -> None:
        super().__init__(op, accept, report, runner, what)
        self.winner: Sourced[T] | None = None
        self._nodes = nodes
        self._end = end
        self._delay = delay
        self._next = 0
        self._timer: Timer | None = None

    async def work(self) -> None:
        """Ask one node after the other until the race is over or none is left."""
        nodes = self._nodes
        while not self.over and self._next < len(nodes):
            node_id = nodes[self._next]
            self._next += 1
            now = self.runner.now()
            if self._next < len(nodes):
                self._set_timer(now + self._delay(node_id))
            elif self._timer is None:
                self._scope.deadline = self._end
            attempt = await self.ask(node_id, now)
            if attempt.answer is not None and attempt.doubt is None and not self._decided():
                self.over = True
                self.winner = attempt.answer

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _decided(self) -> bool:
        # The await may have changed it, which the type checker does not see.
        return self.over

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if when < self._end and self.runner.open:
            self._timer = self.runner.at(when, self._hedge)
        else:
            self._scope.deadline = self._end

    def _hedge(self) -> None:
        """The node that was asked last is late: ask the next as well."""
        self._timer = None
        self._scope.deadline = self._end
        if not self.over and self._next < len(self._nodes):
            self.start(self.work)
