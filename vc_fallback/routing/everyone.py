"""Everyone: all nodes are asked, and all answers waited for, where the word of each counts (Q14a)."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from vc_fallback.base.types import NodeId
from vc_fallback.routing.outcomes import Attempt, Op, Report, check
from vc_fallback.routing.runner import Runner
from vc_fallback.routing.together import Together

T = TypeVar("T")


async def everyone(
    op: Op[T],
    nodes: Sequence[NodeId],
    *,
    end: float,
    runner: Runner,
    report: Report[T] | None = None,
    what: str = "request",
) -> list[Attempt[T]]:
    """Ask all nodes at once, and return what came of it at each, in the given order.

    :param end: moment in loop time at which those that have not answered are given up.
    :raises DeadlineExceeded: when the time is over already.
    :raises NoCandidates: without nodes.
    :raises Exception: what `op` raised but :exc:`~vc_fallback.NodeError`, unchanged.
    """
    check(what, nodes, end, runner.now())
    asking = _Everyone(op, None, report, runner, what)
    await asking.run(end, lambda: asking.ask_all(nodes))
    return [asking.attempts[node_id] for node_id in nodes if node_id in asking.attempts]


class _Everyone(Together[T], Generic[T]):
    """One request."""

    async def ask_all(self, nodes: Sequence[NodeId]) -> None:
        """Ask the first node here and the others beside."""
        first, *others = nodes
        for node_id in others:
            if not self.start(self._one, node_id):
                self.not_asked(node_id)
        await self._one(first)

    async def _one(self, node_id: NodeId) -> None:
        await self.ask(node_id)
