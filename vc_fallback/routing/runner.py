"""Where the tasks of requests live that their caller's own task does not run, and their timers."""

import heapq
import itertools
import logging
import math
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Context
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from vc_fallback.base.clock import loop_time
from vc_fallback.base.types import NodeId
from vc_fallback.wire.keepalive import Slots

logger = logging.getLogger(__name__)

_FEW = 64

Function = Callable[[], Coroutine[Any, Any, None]]


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

    def fire(self) -> bool:
        """Call it now, and never again; `False` where it was cancelled."""
        callback, self.callback = self.callback, None
        if callback is None:
            return False
        try:
            callback()
        except Exception:
            logger.exception("timer of a request")
        return True


class Beside:
    """A task of a request that its caller's own task does not run."""

    __slots__ = ("_cancelled", "_deadline", "_ended", "_function", "_on_end", "_runner", "_scope", "over", "task")

    def __init__(
        self, runner: "Runner", function: Function, on_end: Callable[["Beside"], None] | None, deadline: float
    ) -> None:
        self._runner = runner
        self._function: Function | None = function
        self._on_end = on_end
        self._deadline = deadline
        self._scope: anyio.CancelScope | None = None
        self._cancelled = False
        self._ended: anyio.Event | None = None
        self.task: object = None
        self.over = False
        """Whether it has ended."""

    def cancel(self) -> None:
        """Cancel it; one that has not begun will not."""
        self._cancelled = True
        if self._scope is not None and not self.over:
            self._runner.cancel(self._scope)

    async def ended(self) -> None:
        """Wait for its end."""
        if not self.over:
            if self._ended is None:
                self._ended = anyio.Event()
            await self._ended.wait()

    async def run(self) -> None:
        """Run the function. What gets out of it is a cancellation, or for the whole program."""
        try:
            if not self._cancelled and self._function is not None:
                with self._runner.scope(deadline=self._deadline) as self._scope:
                    await self._function()
        except Exception:
            logger.exception("task of a request")
        finally:
            self.end()

    def end(self) -> None:
        """Note that it has ended; also where it has never begun."""
        if not self.over:
            self.over = True
            self.task = None
            self._runner._running.discard(self)  # noqa: SLF001 - one mechanism in two classes
            # Both lead back here, as a rule, and only the garbage collector would find that.
            on_end, self._on_end, self._function = self._on_end, None, None
            if on_end is not None:
                on_end(self)
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
                    # A native cancellation, which no shield holds off.
                    interrupted = error
    if interrupted is not None:
        raise interrupted


class Runner:
    """Runs what a request needs beside its caller's own task: second attempts, sends of publishes, and timers.

    The first attempt of a request runs in its caller's own task; only what is late, or goes to many nodes, costs a
    task. For that the time has to be watched by another: one task watches for all requests, in a scope whose deadline
    is moved. Setting a timer so costs 3 µs, a task that waits forty times as much (measured on asyncio).

    Requests end their own tasks, but for begun sends of publishes; all that is left ends with :meth:`run`.

    :param stragglers: how many sends of publishes that were answered may be under way to one node (Q5, case 28).
    :param at_once: how many sends may be written to one node at once, answered or not; the others wait for their turn.
        It is less than a node is asked at once at all: one that hangs on what is published has room for what is read.
    """

    def __init__(self, *, stragglers: int = 64, at_once: int = 32) -> None:
        self.most_stragglers = stragglers
        self.stragglers: Counter[NodeId] = Counter()
        self._at_once = at_once
        self._lanes: dict[NodeId, Slots] = {}
        self.opened = anyio.Event()
        """Set once tasks can be started."""
        self.now: Callable[[], float] = anyio.current_time
        """Loop time in seconds; once tasks can be started, without looking for the loop each time."""
        self.scope: type[anyio.CancelScope] = anyio.CancelScope
        """Makes what `anyio.CancelScope` makes, from then on likewise: in two thirds of the time."""
        self.cancel: Callable[[anyio.CancelScope], None] = lambda scope: scope.cancel()
        """Cancels a scope, at once or in the next round of the event loop."""
        self._running: set[Beside] = set()
        self._tasks: TaskGroup | None = None
        self._start_on_asyncio: Callable[[Coroutine[Any, Any, None], Callable[[], None], Context | None], object] | None
        self._start_on_asyncio = None
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._cancelled = 0
        self._wakes = math.inf
        self._wait: anyio.CancelScope | None = None

    def lane(self, node_id: NodeId) -> Slots:
        """Return what bounds how many sends are written to a node at once."""
        lane = self._lanes.get(node_id)
        if lane is None:
            # Nodes come and go: those that nobody sends to are forgotten.
            self._lanes = {known: used for known, used in self._lanes.items() if used.free < self._at_once}
            lane = self._lanes[node_id] = Slots(self._at_once)
        return lane

    def has_room(self, node_id: NodeId) -> bool:
        """Whether a send may wait for its turn at a node though nobody waits for its answer any more.

        Those that are being written are never more than may be at once, so both are never more than the bound.
        """
        return self.stragglers[node_id] < max(1, self.most_stragglers - self._at_once)

    @property
    def open(self) -> bool:
        """Whether tasks can be started: while `run` runs."""
        return self._tasks is not None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Hold all tasks and watch the time, until it is cancelled; to be started once, best by `TaskGroup.start`."""
        trio = sys.modules.get("trio")
        if trio is None or not trio.lowlevel.in_trio_task():
            from vc_fallback.wire import asyncio_tasks  # not loaded on trio

            self._start_on_asyncio = asyncio_tasks.start
            self.cancel = asyncio_tasks.cancel
        self.now = loop_time()
        self.scope = type(anyio.CancelScope())
        async with anyio.create_task_group() as self._tasks:
            self.opened.set()
            task_status.started()
            try:
                await self._watch_time()
            finally:
                self._tasks = None
                # Who waits for a moment would wait in vain.
                due, self._timers = sorted(self._timers), []
                for _, _, timer in due:
                    timer.fire()
                await end_all([*self._running])

    def start(
        self,
        function: Function,
        *,
        on_end: Callable[[Beside], None] | None = None,
        context: Context | None = None,
        deadline: float = math.inf,
    ) -> Beside | None:
        """Start a task; `None` where `run` does not run (any more).

        :param function: reports by itself what came of it; an error that gets out of it is logged.
        :param on_end: called when it ends, also where it was cancelled before it began and the function never ran.
        :param context: the context variables of the task, of which it has a copy; the present ones by default.
        :param deadline: moment in loop time at which it is cancelled.
        """
        tasks = self._tasks
        if tasks is None:
            return None
        beside = Beside(self, function, on_end, deadline)
        self._running.add(beside)
        if self._start_on_asyncio is not None:
            own = None if context is None else context.copy()
            beside.task = self._start_on_asyncio(beside.run(), beside.end, own)
        elif context is None:
            tasks.start_soon(beside.run)
        else:
            context.copy().run(tasks.start_soon, beside.run)
        return beside

    async def _watch_time(self) -> None:
        while True:
            self._wakes = self._next()
            with anyio.CancelScope(deadline=self._wakes) as self._wait:
                await anyio.sleep_forever()
            self._wait = None
            self._call_due(self.now())

    def at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call something, which has to return at once, at a moment in loop time, or when `run` ends before."""
        timer = Timer(self, callback)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        if when < self._wakes:
            self._wakes = when
            if self._wait is not None:
                self._wait.deadline = when
        return timer

    def _call_due(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            if not heapq.heappop(self._timers)[2].fire():
                self._cancelled -= 1

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
