"""Attempts of one request that run side by side from the start, in a task group of the request's own."""

import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId
from vc_fallback.routing.outcomes import Accept, Attempt, Op, Report, tell

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Together(Generic[T]):
    """Asks nodes at the same time. No exception comes out in a group: the first that is no node's is raised as it is.

    :ivar attempts: the last of each node that has ended, in the order of their ends.
    """

    def __init__(self, op: Op[T], accept: Accept[T] | None, report: Report[T] | None) -> None:
        self.attempts: dict[NodeId, Attempt[T]] = {}
        self._op = op
        self._accept = accept
        self._report = report
        self._problem: BaseException | None = None
        self._decided = False
        self._tasks: TaskGroup | None = None

    async def run(self, end: float, begin: Callable[[], None]) -> None:
        """Run what `begin` starts, and what that starts in turn, until all is done, `stop` or the end.

        :raises BaseException: what came out of a task, but for its own cancellation.
        """
        async with anyio.create_task_group() as self._tasks:
            self._tasks.cancel_scope.deadline = end
            try:
                begin()
            except Exception as error:  # noqa: BLE001 - raised below, where no group wraps it
                self._broken(error)
        if self._problem is not None:
            raise self._problem

    def start(self, function: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        """Run a task beside the others."""
        assert self._tasks is not None  # noqa: S101 - only what `run` has begun calls this
        self._tasks.start_soon(self._guard, function, args)

    def stop(self) -> None:
        """It is decided: cancel what is under way."""
        self._decided = True
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()

    async def ask(self, node_id: NodeId) -> Attempt[T]:
        """Ask one node once, keep what came of it, and report it.

        :raises BaseException: what is no :exc:`~vc_fallback.NodeError`.
        """
        started = anyio.current_time()
        answer = error = doubt = None
        try:
            answer = await self._op(node_id)
            doubt = None if self._accept is None else self._accept(answer)
        except NodeError as problem:
            error = problem
        finally:
            attempt = Attempt(node_id, started, anyio.current_time(), answer, error, doubt)
            self.attempts.pop(node_id, None)
            self.attempts[node_id] = attempt
            tell(self._report, attempt)
        return attempt

    async def _guard(self, function: Callable[..., Coroutine[Any, Any, None]], args: tuple[object, ...]) -> None:
        try:
            await function(*args)
        except BaseException as error:
            # Cancelled with the others; else it is the operation's own, also where it is of the same class.
            if isinstance(error, anyio.get_cancelled_exc_class()) and anyio.current_effective_deadline() == -math.inf:
                raise
            self._broken(error)

    def _broken(self, error: BaseException) -> None:
        if self._decided and isinstance(error, Exception):
            # A loser that broke when it was cancelled: what was decided is not given up for that.
            logger.warning("an error on being cancelled", exc_info=error)
            return
        if self._problem is None:
            self._problem = error
        self.stop()
