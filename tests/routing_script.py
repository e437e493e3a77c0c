"""Operations that do, node by node, what a test has written down, and remember who was asked when."""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Provenance, Sourced
from vc_fallback.node import failures
from vc_fallback.routing.outcomes import Attempt
from vc_fallback.routing.runner import Runner

T = TypeVar("T")

A, B, C, D = map(NodeId, "abcd")
NEVER = object()
"""Given by a node that never answers."""


def node(name: str) -> NodeId:
    return NodeId(name)


def error(kind: type[NodeError], problem: str = "no") -> Callable[[NodeId], NodeError]:
    """Make errors of a kind, of the node that is asked."""
    return lambda node_id: kind(node_id, "/eth/v1/x", problem)


REFUSED = error(failures.ConnectError, "connection refused")
NOT_FOUND = error(failures.NotFound, "not found")
CLOSED = error(failures.Closed, "the client was closed")
SYNCING = error(failures.NotReady, "syncing")


@dataclass
class Step:
    """What a node gives: a value, a kind of error, an exception of the caller's own, or nothing ever.

    :param after: seconds until then.
    :param lingers: seconds that it takes to end when it is cancelled.
    :param breaks: raised instead of ending when it is cancelled.
    :param answers: whether it gives what it has when it is cancelled.
    """

    after: float
    gives: Any
    lingers: float = 0.0
    breaks: Exception | None = None
    answers: bool = False


@dataclass
class Script:
    """The operation is `op`. A node that has several steps takes the next at each call, and stays with the last."""

    steps: dict[NodeId, list[Step]]
    asked: list[tuple[NodeId, float]] = field(default_factory=list)
    ended: list[NodeId] = field(default_factory=list)
    gave: list[tuple[NodeId, float]] = field(default_factory=list)
    under_way: int = 0

    @property
    def order(self) -> list[NodeId]:
        return [node_id for node_id, _ in self.asked]

    @property
    def times(self) -> list[float]:
        return [when for _, when in self.asked]

    async def op(self, node_id: NodeId) -> Sourced[Any]:
        began = anyio.current_time()
        self.asked.append((node_id, began))
        steps = self.steps[node_id]
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        self.under_way += 1
        try:
            if step.gives is NEVER:
                await anyio.sleep_forever()
            if step.after:
                await anyio.sleep(step.after)
        except anyio.get_cancelled_exc_class():
            if step.lingers:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(step.lingers)
            if step.breaks is not None:
                raise step.breaks from None
            if not step.answers:
                raise
        finally:
            self.under_way -= 1
            self.ended.append(node_id)
        given = step.gives
        if callable(given):
            given = given(node_id)
        if isinstance(given, BaseException):
            raise given
        self.gave.append((node_id, anyio.current_time()))
        return sourced(node_id, given, began)


def sourced(node_id: NodeId, value: T, asked: float = 0.0) -> Sourced[T]:
    now = anyio.current_time()
    return Sourced(value, Provenance(node_id, 1, now, now - asked))


def script(**steps: Step | list[Step]) -> Script:
    return Script({NodeId(name): given if isinstance(given, list) else [given] for name, given in steps.items()})


def always(seconds: float) -> Callable[[NodeId], float]:
    """Return a delay that is the same for all nodes."""
    return lambda _: seconds


@dataclass
class Reports:
    """Keeps what is reported."""

    attempts: list[Attempt[Any]] = field(default_factory=list)

    def __call__(self, attempt: Attempt[Any]) -> None:
        self.attempts.append(attempt)

    @property
    def given_up(self) -> list[NodeId]:
        return [attempt.node_id for attempt in self.attempts if attempt.given_up]


def tasks() -> int:
    """Return how many tasks there are in the event loop."""
    return len(anyio.get_running_tasks())


@asynccontextmanager
async def running(*, stragglers: int = 64) -> AsyncIterator[Runner]:
    """Run a runner beside the body, which must leave no task behind; what the body raises leaves unchanged."""
    raised: BaseException | None = None
    async with anyio.create_task_group() as group:
        runner = Runner(stragglers=stragglers)
        await group.start(runner.run)
        before = tasks()
        try:
            yield runner
            assert tasks() <= before, anyio.get_running_tasks()
            assert runner._next() == math.inf, "a timer is left"
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 - raised below, where no group wraps it
            raised = error
        group.cancel_scope.cancel()
    if raised is not None:
        raise raised
