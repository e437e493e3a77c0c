"""What requests have in common that ask several nodes at once: one in the caller's own task, others beside."""

import logging
import math
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, ClassVar, Generic, TypeVar

import anyio

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId
from vc_fallback.routing.outcomes import Accept, Attempt, NotSent, Op, Report, tell
from vc_fallback.routing.runner import Beside, Runner, end_all

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Together(Generic[T]):
    """One request. What is raised that is no node's comes out of `run` as it is, whichever task it was raised in.

    :ivar attempts: the last of each node that has ended, in the order of their ends.
    :ivar over: whether it is decided, or given up: what ends now is late.
    """

    patient: ClassVar[bool] = False
    """Whether more may come when nothing is under way."""

    keeps_time: ClassVar[bool] = False
    """Whether it gives its scope a deadline by itself, once it may be needed: a third of what a scope costs."""

    def __init__(
        self,
        op: Op[T],
        accept: Accept[T] | None,
        report: Report[T] | None,
        runner: Runner,
        what: str,
        context: Context | None = None,
    ) -> None:
        self.attempts: dict[NodeId, Attempt[T]] = {}
        self.over = False
        self.runner = runner
        self.what = what
        self._op = op
        self._accept = accept
        self._report = report
        self._scope: anyio.CancelScope
        self._problem: BaseException | None = None
        self._was_decided = False
        # An operation sees the context variables of its caller, whoever starts it.
        self._context = copy_context() if context is None else context
        self._beside: set[Beside] = set()
        self._wake: anyio.Event | None = None

    async def run(self, end: float, own: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run `own` in this task and what it starts beside, until it is decided, all is done, or the end.

        :return: whether it was decided.
        :raises BaseException: what is no node's, and the cancellation of the caller.
        """
        try:
            # Whoever runs beside wakes the caller's own attempt by cancelling it.
            with self.runner.scope(deadline=math.inf if self.keeps_time else end) as self._scope:
                await self.go(own)
        finally:
            await self.close()
        return self.decided()

    async def go(self, own: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `own` and wait for what runs beside, inside the scope: the first half of `run`."""
        try:
            await own()
        except Exception as error:  # noqa: BLE001 - raised by `decided`, unless it is a loser's
            self._broken(error)
        if not self.over and self._more_may_come():
            self._wake = anyio.Event()
            await self._wake.wait()

    async def close(self) -> None:
        """End all that is left, whatever happened inside the scope: the second half."""
        self._was_decided, self.over = self.over, True
        self.leave()
        if self._beside:
            await end_all(self._beside)

    def decided(self) -> bool:
        """Return whether it was decided before it was over.

        :raises BaseException: what was raised that is no node's.
        """
        if self._problem is not None:
            raise self._problem
        return self._was_decided

    def leave(self) -> None:
        """End what is neither an attempt nor a task; called once, when nothing more is to be started."""

    def start(self, function: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> bool:  # noqa: ANN401 - the function's
        """Run something beside; `False` when the runner is at its end."""
        beside = self.runner.start(
            lambda: self._run_beside(function, args), on_end=self._ended_beside, context=self._context
        )
        if beside is None:
            return False
        self._beside.add(beside)
        return True

    def call(self, function: Callable[[], None]) -> Callable[[], None]:
        """Return a function to be called from outside, by a timer: what it raises is raised by the request."""

        def called() -> None:
            if not self.over:
                try:
                    function()
                except Exception as error:  # noqa: BLE001 - raised by the caller's own task
                    self._broken(error)
                self._look()

        return called

    async def ask(self, node_id: NodeId, started: float | None = None) -> Attempt[T]:
        """Ask one node once, keep what came of it, and report it.

        :param started: this moment in loop time, where it is known.
        :raises BaseException: what is no :exc:`~vc_fallback.NodeError`.
        """
        if started is None:
            started = self.runner.now()
        try:
            answer = await self._op(node_id)
            doubt = None if self._accept is None else self._accept(answer)
        except NodeError as error:
            return self.note(Attempt(node_id, started, self.runner.now(), error=error))
        except Exception:
            raise  # It says nothing of the node.
        except BaseException:
            self.note(Attempt(node_id, started, self.runner.now()))
            raise
        return self.note(Attempt(node_id, started, self.runner.now(), answer, None, doubt))

    def note(self, attempt: Attempt[T]) -> Attempt[T]:
        """Keep what came of asking a node, and report it."""
        self.attempts.pop(attempt.node_id, None)
        self.attempts[attempt.node_id] = attempt
        if self._report is not None:
            tell(self._report, attempt)
        return attempt

    def not_asked(self, node_id: NodeId) -> None:
        """Note that a node cannot be asked any more."""
        now = self.runner.now()
        self.attempts[node_id] = Attempt(node_id, now, now, error=NotSent(node_id, self.what, "the program ends"))

    async def _run_beside(self, function: Callable[..., Coroutine[Any, Any, None]], args: tuple[Any, ...]) -> None:
        try:
            await function(*args)
        except BaseException as error:
            # Cancelled with the others; else it is the operation's own, also where it is of the same class.
            if isinstance(error, anyio.get_cancelled_exc_class()) and anyio.current_effective_deadline() == -math.inf:
                raise
            self._broken(error)

    def _ended_beside(self, beside: Beside) -> None:
        self._beside.discard(beside)
        self._look()

    def _look(self) -> None:
        """Something beside the caller's own task has ended: see whether that has to go on."""
        if self.over:
            # All at once: none of them waits until another has ended.
            for beside in self._beside:
                beside.cancel()
        if self._wake is None:
            if self.over:
                self.runner.cancel(self._scope)
        elif self.over or not self._more_may_come():
            self._wake.set()

    def _more_may_come(self) -> bool:
        return bool(self._beside) or (self.patient and self.runner.open)

    def _broken(self, error: BaseException) -> None:
        if not self.over:
            self.over = True
            self._problem = error
        elif isinstance(error, Exception):
            # A loser that broke when it was cancelled: what was decided is not given up for that.
            logger.warning("%s: an error on being cancelled", self.what, exc_info=error)
