"""First success: the best node first, the next at once on failure, and as well after a delay (Q2, Q3, Q4)."""

import logging
import math
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Generic, TypeVar

import anyio

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.routing.outcomes import Accept, Attempt, Doubt, Op, Report, check, failure, last_resort, tell
from vc_fallback.routing.runner import Beside, Runner, Timer, end_all

logger = logging.getLogger(__name__)

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
    started = anyio.current_time()
    check(what, nodes, end, started)
    return await _Race(op, nodes, end, delay, runner, accept, report, what).run(started)


class _Race(Generic[T]):
    """One request. Whoever runs attempts, the caller's task and those beside it, takes the next node from one list."""

    __slots__ = (
        "_accept", "_attempts", "_beside", "_busy", "_context", "_delay", "_end", "_next", "_nodes", "_op", "_over",
        "_problem", "_report", "_runner", "_scope", "_timer", "_waiting", "_what", "_winner",
    )  # fmt: skip

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
        self._op = op
        self._nodes = nodes
        self._end = end
        self._delay = delay
        self._runner = runner
        self._accept = accept
        self._report = report
        self._what = what
        self._next = 0
        self._attempts: list[Attempt[T]] = []
        self._winner: Sourced[T] | None = None
        self._problem: BaseException | None = None
        self._over = False
        self._timer: Timer | None = None
        # An operation sees the context variables of its caller, whoever runs it.
        self._context = copy_context() if len(nodes) > 1 else None
        self._waiting = False
        """Whether the caller's own task waits for those beside it."""
        self._beside: list[Beside] = []
        """Tasks beside the caller's own, and how many of them may still give an answer."""
        self._busy = 0

    async def run(self, started: float) -> Sourced[T]:
        try:
            # Its deadline ends the race; and whoever runs beside wakes the caller's own task by cancelling it.
            with anyio.CancelScope(deadline=self._end) as self._scope:
                await self._work(started)
                if self._busy and not self._over:
                    self._waiting = True
                    await anyio.sleep_forever()
        finally:
            decided, self._over = self._over, True
            if self._timer is not None:
                self._timer.cancel()
            if self._beside:
                await end_all(self._beside)
        if self._problem is not None:
            raise self._problem
        answer = self._winner if decided else last_resort(self._nodes, self._attempts)
        if answer is not None:
            return answer
        raise failure(self._what, self._nodes, self._attempts, over=anyio.current_time() >= self._end)

    async def _work(self, now: float) -> None:
        """Ask one node after the other until the race is over or none is left."""
        nodes = self._nodes
        while not self._over and self._next < len(nodes):
            node_id = nodes[self._next]
            self._next += 1
            if self._next < len(nodes):
                self._set_timer(now + self._delay(node_id))
            try:
                answer = await self._op(node_id)
                doubt = None if self._accept is None else self._accept(answer)
            except NodeError as error:
                now = self._ended(node_id, now, error=error)
            except BaseException as error:
                self._ended(node_id, now)
                if not (isinstance(error, Exception) and self._decided()):
                    raise
                # A loser that broke when it was cancelled: the winner's answer is not given up for that.
                logger.warning("%s: %s: an error on being cancelled", self._what, node_id, exc_info=True)
            else:
                if doubt is None and not self._decided():
                    self._over = True
                    self._winner = answer
                    if self._report is None:
                        return
                now = self._ended(node_id, now, answer, doubt=doubt)

    def _decided(self) -> bool:
        # Any await may have changed it, which the type checker does not see.
        return self._over

    def _ended(
        self,
        node_id: NodeId,
        started: float,
        answer: Sourced[T] | None = None,
        error: NodeError | None = None,
        doubt: Doubt | None = None,
    ) -> float:
        now = anyio.current_time()
        attempt = Attempt(node_id, started, now, answer, error, doubt)
        self._attempts.append(attempt)
        tell(self._report, attempt)
        return now

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._runner.at(when, self._hedge) if when < self._end else None

    def _hedge(self) -> None:
        """The node that was asked last is late: ask the next as well."""
        self._timer = None
        if not self._over and self._next < len(self._nodes):
            beside = self._runner.start(self._run_beside, context=self._context)
            if beside is not None:
                self._busy += 1
                self._beside.append(beside)

    async def _run_beside(self) -> None:
        try:
            await self._work(anyio.current_time())
        except BaseException as error:
            # A cancellation; else it is the operation's own, also where it is of the same class.
            if isinstance(error, anyio.get_cancelled_exc_class()) and anyio.current_effective_deadline() == -math.inf:
                raise
            if not self._over:
                self._over = True
                self._problem = error
        finally:
            self._busy -= 1
            if self._over:
                # All at once: none of them waits until another has ended.
                for beside in self._beside:
                    beside.cancel()
            if self._over or (self._waiting and not self._busy):
                self._scope.cancel()
