"""First success: the best node first, the next at once on failure, and as well after a delay (Q2, Q3, Q4)."""

from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import ClassVar, Generic, TypeVar

import anyio

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node.failures import Closed, SemanticError
from vc_fallback.routing.joining import Joining
from vc_fallback.routing.outcomes import NO_SAY, Accept, Attempt, Op, Report, check, failure, last_resort, tell
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
    joining: Joining | None = None,
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
    :param joining: who may come meanwhile: they are asked after all others. Where nodes have left the list, and nobody
        else has said anything, it is waited for those that are about to come.
    :param what: names the request in errors.
    :raises NotFound: when that is what all say who can be asked.
    :raises AllNodesFailed: when all failed otherwise.
    :raises DeadlineExceeded: when the time was over first, or is already.
    :raises NoCandidates: without nodes.
    :raises Exception: what `op`, `accept` or `delay` raised but :exc:`~vc_fallback.NodeError`, unchanged.
    """
    began = runner.now()
    check(what, nodes, end, began)
    first = nodes[0]
    context = copy_context()

    def race() -> _Race[T]:
        return _Race(op, nodes, end, delay, runner, accept, report, joining, what, context)

    if not runner.open:
        alone = race()
        await alone.run(end, alone.work)
        return alone.result()
    # Nearly every request is one answer of its first node. It is made a race where that is late, or no answer to be
    # taken: a race costs as much as all the rest (measured).
    lead = _Lead(race, runner.scope(), first, began)
    timer = runner.at(min(began + delay(first), end), lead.late)
    attempt: Attempt[T] | Exception | None = None
    try:
        with lead.scope:
            try:
                answer = await op(first)
                doubt = None if accept is None else accept(answer)
            except NodeError as error:
                attempt = Attempt(first, began, runner.now(), error=error)
            except Exception as error:
                if lead.race is None:
                    raise
                attempt = error
            except BaseException:
                lead.give_up(Attempt(first, began, runner.now()), report)
                raise
            else:
                attempt = Attempt(first, began, runner.now(), answer, None, doubt)
                if doubt is None and lead.race is None:
                    tell(report, attempt)
                    return answer
            timer.cancel()
            await lead.join().go_on(attempt)
    finally:
        # An error leads to this frame by its traceback.
        attempt = None
        timer.cancel()
        if lead.race is not None:
            await lead.race.close()
    return lead.join().result()


class _Lead(Generic[T]):
    """The first attempt of a request, in its caller's own task."""

    __slots__ = ("_began", "_make", "_node_id", "race", "scope")

    def __init__(self, make: Callable[[], "_Race[T]"], scope: anyio.CancelScope, node_id: NodeId, began: float) -> None:
        self._make = make
        self._node_id = node_id
        self._began = began
        self.scope = scope
        self.race: _Race[T] | None = None

    def late(self) -> None:
        """Nothing has come of it in time: the next node is asked as well."""
        self.join().hedge()

    def join(self) -> "_Race[T]":
        """Return the race, of which it is the first attempt."""
        if self.race is None:
            self.race = self._make()
            self.race.enter(self.scope, self._node_id, self._began)
        return self.race

    def give_up(self, attempt: Attempt[T], report: Report[T] | None) -> None:
        """It is cancelled."""
        if self.race is None:
            tell(report, attempt)
        else:
            self.race.note(attempt)


class _Race(Together[T], Generic[T]):
    """One request. Whoever runs attempts, the caller's task and those beside it, takes the next node from one list.

    Its scope has no deadline before the first timer, which comes before the end.
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
        joining: Joining | None,
        what: str,
        context: Context,
    ) -> None:
        super().__init__(op, accept, report, runner, what, context)
        self.winner: Sourced[T] | None = None
        self._nodes = [*nodes]
        self._end = end
        self._delay = delay
        self._joining = joining
        self._next = 0
        self._timer: Timer | None = None
        self._under_way: set[NodeId] = set()
        self._last: tuple[NodeId, float] | None = None
        """Who was asked last, and when."""
        self._again: dict[NodeId, int] = {}
        """In which generation of the list a node was put on the list once more."""
        self._deaf = None if joining is None else joining.listen(self.call(self._news))

    @property
    def nodes(self) -> list[NodeId]:
        """All nodes, each once, in the order in which they were to be asked."""
        return [*dict.fromkeys(self._nodes)]

    def enter(self, scope: anyio.CancelScope, node_id: NodeId, began: float) -> None:
        """Take in a first attempt, which is under way already."""
        self._scope = scope
        self._next = 1
        self._last = node_id, began
        self._under_way.add(node_id)

    async def go_on(self, first: Attempt[T] | Exception) -> None:
        """Go on after the first attempt, in the task that made it.

        :param first: what came of it, or what was raised that is no node's.
        """
        await self.go(partial(self._after, first))

    async def _after(self, first: Attempt[T] | Exception) -> None:
        if isinstance(first, Exception):
            raise first
        self._under_way.discard(first.node_id)
        self._look_at(self.note(first))
        await self.work()
        if not self.over:
            # What is waited for now, others or who may join, ends with the time.
            self._scope.deadline = self._end

    def result(self) -> Sourced[T]:
        """Return what it came to, when it is over.

        :raises FallbackError: why there is no answer.
        :raises BaseException: what is no node's.
        """
        if self.decided():
            assert self.winner is not None  # noqa: S101 - that is what was decided
            return self.winner
        attempts, nodes = [*self.attempts.values()], self.nodes
        answer = last_resort(nodes, attempts)
        if answer is not None:
            return answer
        raise failure(self.what, nodes, attempts, over=self.runner.now() >= self._end)

    async def work(self) -> None:
        """Ask one node after the other until the race is over or none is left."""
        while not self.over and self._anyone_left():
            node_id = self._nodes[self._next]
            self._next += 1
            now = self.runner.now()
            self._last = node_id, now
            if self._next < len(self._nodes):
                self._set_timer(now + self._delay(node_id))
            elif self._timer is None:
                self._scope.deadline = self._end
            self._under_way.add(node_id)
            attempt = await self.ask(node_id, now)
            self._under_way.discard(node_id)
            self._look_at(attempt)

    def _look_at(self, attempt: Attempt[T]) -> None:
        if attempt.answer is not None and attempt.doubt is None and not self.over:
            self.over = True
            self.winner = attempt.answer

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._deaf is not None:
            self._deaf()
            # It leads back here, and only the garbage collector would find it.
            self._deaf = None

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if when < self._end and self.runner.open:
            self._timer = self.runner.at(when, self.hedge)
        else:
            self._scope.deadline = self._end

    def hedge(self) -> None:
        """The node that was asked last is late: ask the next as well."""
        self._timer = None
        self._scope.deadline = self._end
        if not self.over and self._anyone_left() and self.runner.now() < self._end:
            self.start(self.work)

    # --- the list changes

    def _anyone_left(self) -> bool:
        if self._next >= len(self._nodes):
            self._take_in()
        return self._next < len(self._nodes)

    def _take_in(self) -> None:
        """Put who has joined on the list, and who left it when it was asked and is reached in another way now."""
        if self._joining is None or not self._joining.changed:
            return
        generation = self._joining.generation
        for node_id in self._joining.nodes():
            if node_id in self._under_way or node_id in self._nodes[self._next :]:
                continue
            attempt = self.attempts.get(node_id)
            closed = attempt is not None and isinstance(attempt.error, Closed)
            if attempt is None or (closed and self._again.get(node_id) != generation):
                self._again[node_id] = generation
                self._nodes.append(node_id)

    def _news(self) -> None:
        """The list, or what is known of a node, has changed."""
        self._take_in()
        if self._next >= len(self._nodes):
            return
        if not self._under_way:
            self.start(self.work)
        elif self._timer is None and self._last is not None:
            node_id, asked = self._last
            self._set_timer(max(asked + self._delay(node_id), self.runner.now()))

    def _more_may_come(self) -> bool:
        return super()._more_may_come() or self._waits_for_joiners()

    def _waits_for_joiners(self) -> bool:
        """Whether it is worth to wait for nodes that are about to join: who was asked has left, or was not able."""
        if self._joining is None or not self._joining.expected or not self.runner.open:
            return False
        return not any(
            attempt.answer is not None
            or (isinstance(attempt.error, SemanticError) and not isinstance(attempt.error, NO_SAY))
            for attempt in self.attempts.values()
        )
