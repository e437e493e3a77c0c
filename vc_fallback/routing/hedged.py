"""Hedge: first success with a short delay, from each node's own latency (Q2, Q4)."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.routing.first_success import first_success
from vc_fallback.routing.outcomes import Accept, Op, Report
from vc_fallback.routing.runner import Runner

T = TypeVar("T")


def hedge_delay(p90: float | None, *, floor: float, most: float) -> float:
    """Return the seconds after which the next node is asked as well: what nine of ten of a node's answers stay within.

    :param p90: the node's latency at this kind of request; `None` where too little is known.
    :param floor: the least: nodes that answer within a millisecond are not asked in pairs for every hiccup.
    :param most: the duty's own limit (Q2), which also stands for what is not known.
    """
    return most if p90 is None else min(max(p90, floor), most)


async def hedged(
    op: Op[T],
    nodes: Sequence[NodeId],
    *,
    end: float,
    latency: Callable[[NodeId], float | None],
    floor: float,
    most: float,
    runner: Runner,
    accept: Accept[T] | None = None,
    report: Report[T] | None = None,
    what: str = "request",
) -> Sourced[T]:
    """Do as :func:`~vc_fallback.routing.first_success.first_success`, with the delay of :func:`hedge_delay`.

    :param latency: the p90 of a node's answers to this kind of request, in seconds.
    :raises: as `first_success`.
    """

    def delay(node_id: NodeId) -> float:
        return hedge_delay(latency(node_id), floor=floor, most=most)

    return await first_success(op, nodes, end=end, delay=delay, runner=runner, accept=accept, report=report, what=what)
