"""Where the tasks of requests live that their caller's own task does not run: in the task group that is handed in."""

import heapq
import itertools
import logging
import math
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Context
from typing import Any

import anyio
from anyio.abc import TaskGroup

from vc_fallback.base.types import NodeId

logger = logging.getLogger(__name__)

_FEW = 64


class Timer:
    """Calls something at a moment, unless it is cancelled before."""

    __slots__ = ("_runner", "callback")

    def __init__(self, runner: "Runner", callback: Callable[[], None]) -> None:
        self._runner = runner
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Call nothing any more."""
        if self.callback is not None:
            self.callback = None
            self._runner._forget()  # noqa: SLF001 - one mechanism in two classes


class Beside:
    """A task of a request that its caller's own task does not run."""

    __slots__ = ("_cancelled", "_ended", "_function", "_scope", "over")

    def __init__(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._function = function
        self._scope: anyio.CancelScope | None = None
        self._cancelled = False
        self._ended: anyio.Event | None = None
        self.over = False
        """Whether it has ended."""

    @property
    def running(self) -> bool:
        """Whether it has begun, and not ended."""
        return self._scope is not None and not self.over

    def cancel(self) -> None:
        """Cancel it; one that has not begun will not."""
        self._cancelled = True
        if self._scope is not None:
            self._scope.cancel()

    async def ended(self) -> None:
        """Wait for its end."""
        if not self.over:
            if self._ended is None:
                self._ended = anyio.Event()
            await self._ended.wait()

    async def run(self) -> None:
        """Run the function. Nothing gets out of it that would end the task group, which is not the request's own."""
        try:
            if not self._cancelled:
                with anyio.CancelScope() as self._scope:
                    await self._function()
        except Exception:
            logger.exception("task of a request")
        except anyio.get_cancelled_exc_class():
            # That of the task group goes on. A native one, which the operation may have made itself, ends here: anyio
            # would cancel all other tasks for it.
            if anyio.current_effective_deadline() == -math.inf:
                raise
        finally:
            self.over = True
            if self._ended is not None:
                self._ended.set()


async def end_all(tasks: Iterable[Beside]) -> None:
    """Cancel tasks and wait for their ends, whatever happens to the one who waits (rule 5)."""
    left = [task for task in tasks if not task.over]
    for task in left:
        task.cancel()
    interrupted: BaseException | None = None
    with anyio.CancelScope(shield=True):
        for task in left:
            while not task.over:
                try:
                    await task.ended()
                except anyio.get_cancelled_exc_class() as error:
                    # A native cancellation, which no shield holds off. A task that has not begun may never run where
                    # the event loop is at its end; it does nothing any more, so nobody has to wait for it.
                    interrupted = error
                    if not task.running:
                        break
    if interrupted is not None:
        raise interrupted


class Runner:
    """Starts second attempts and sends of publishes, and knows when they are due.

    The first attempt of a request runs in its caller's own task; only who is late, or sent to many nodes, costs a
    task. For that the time has to be watched by another: one task watches for all requests, in a scope whose deadline
    is moved. Setting a timer so costs 3 µs, a task that waits 40 (measured with anyio on asyncio).

    :param tasks: outlives all requests. They end their own tasks; what is left at its end is the sends of publishes.
    :param stragglers: how many sends of publishes that were answered may be under way to one node (Q5, case 28).
    """

    def __init__(self, tasks: TaskGroup, *, stragglers: int = 64) -> None:
        self.most_stragglers = stragglers
        self.stragglers: Counter[NodeId] = Counter()
        self.closed = False
        self._tasks = tasks
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._cancelled = 0
        self._wakes = math.inf
        self._wait: anyio.CancelScope | None = None

    async def run(self) -> None:
        """Watch the time for as long as the task group lasts; to be started once, in it."""
        try:
            while True:
                self._wakes = self._next()
                with anyio.CancelScope(deadline=self._wakes) as self._wait:
                    await anyio.sleep_forever()
                self._wait = None
                self._call_due(anyio.current_time())
        finally:
            self.closed = True

    def start(
        self, function: Callable[[], Coroutine[Any, Any, None]], *, context: Context | None = None
    ) -> Beside | None:
        """Start a task; `None` when the task group is at its end.

        :param function: reports by itself what came of it; an error that gets out of it is logged.
        :param context: context variables of the task, those of the caller where it is not given.
        """
        if self.closed:
            return None
        beside = Beside(function)
        try:
            if context is None:
                self._tasks.start_soon(beside.run)
            else:
                context.run(self._tasks.start_soon, beside.run)
        except RuntimeError:
            return None
        return beside

    def at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call something, which has to return at once, at a moment in loop time."""
        timer = Timer(self, callback)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        if when < self._wakes:
            self._wakes = when
            if self._wait is not None:
                self._wait.deadline = when
        return timer

    def _call_due(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            callback, timer.callback = timer.callback, None
            if callback is None:
                self._cancelled -= 1
                continue
            try:
                callback()
            except Exception:
                logger.exception("timer of a request")

    def _next(self) -> float:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
            self._cancelled -= 1
        return self._timers[0][0] if self._timers else math.inf

    def _forget(self) -> None:
        # Nearly all are cancelled long before they are due: they must not pile up until then.
        self._cancelled += 1
        if self._cancelled > _FEW and self._cancelled > len(self._timers) // 2:
            self._timers = [entry for entry in self._timers if entry[2].callback is not None]
            heapq.heapify(self._timers)
            self._cancelled = 0
