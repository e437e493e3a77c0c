"""Broadcast: the same to all nodes at once, answered by the first accept of every item (Q5, Q12, rule 8)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import anyio
import anyio.lowlevel

from vc_fallback.base.types import NodeId
from vc_fallback.routing.ahead import Bounds
from vc_fallback.routing.broadcast_result import BroadcastResult, NotPublished, Outcome
from vc_fallback.routing.delivery import Delivery
from vc_fallback.routing.outcomes import Report, check
from vc_fallback.routing.runner import Runner
from vc_fallback.routing.sends import Later, OnSettled, Send, Sends


async def broadcast(
    send: Send,
    nodes: Sequence[NodeId],
    *,
    end: float,
    runner: Runner,
    items: int = 1,
    bound: float | None = None,
    later: Sequence[Later] = (),
    urgent: bool = False,
    earlier: Mapping[NodeId, Delivery] = MappingProxyType({}),
    report: Report[Any] | None = None,
    on_settled: OnSettled | None = None,
    what: str = "publish",
) -> BroadcastResult:
    """Send the same to all nodes at once; return as soon as every item is accepted, or all nodes have answered.

    What is still under way then runs on as a straggler, in the runner's task group, and fills in the result. When the
    caller is cancelled, sends that have not begun are cancelled and awaited; begun ones run on, and their ends are
    logged. A send that never says that it begins counts as not begun.

    What `send` raises but :exc:`~vc_fallback.NodeError` is the end of that send alone: what another node took must not
    be hidden by it. It comes out unchanged where no node took anything, and is logged where one did.

    :param nodes: whom to send to, each once.
    :param end: moment in loop time at which the caller gets an error, or what there is of a result.
    :param items: how many items a list has that is sent; 1 where it is none.
    :param bound: moment in loop time at which sends are given up, `end` where it is not given.
    :param later: who is sent to where these do not take it; in the result they are from then on.
    :param urgent: whether it waits for no earlier send to a node, however many are under way there. Others have their
        turn, and those for which nobody waits any more are bounded in number: what is too much is not sent (case 28).
    :param earlier: what became of it at other nodes that were sent it before; in the result they are too.
    :return: a live result, of which something is accepted, broadcast, or uncertain.
    :raises NotPublished: when no node took any item or has it, by the end.
    :raises DeadlineExceeded: when the time is over already: nothing was sent.
    :raises NoCandidates: without nodes.
    :raises Exception: see above.
    """
    bound = end if bound is None else bound
    for moment in (end, bound):
        check(what, [*nodes, *_all(later)], moment, runner.now())
    sending = Sends(send, nodes, items, bound, runner, report, on_settled, what, later, urgent=urgent, earlier=earlier)
    # On a kept connection a send begins at once: too soon for a caller that is cancelled already to stop it.
    await anyio.lowlevel.checkpoint_if_cancelled()
    sending.begin()
    try:
        with anyio.CancelScope(deadline=end):
            await sending.enough()
    except BaseException:
        await sending.abandon()
        raise
    sending.leave()
    sending.raise_fatal()
    result = sending.result
    if result.best_outcome in (Outcome.ACCEPTED, Outcome.BROADCAST, Outcome.UNCERTAIN):
        sending.log_problems()
        return result
    sending.raise_problem()
    raise NotPublished(result)


def start_broadcast(
    send: Send,
    nodes: Sequence[NodeId],
    *,
    bound: float,
    runner: Runner,
    items: int = 1,
    later: Sequence[Later] = (),
    bounds: Bounds | None = None,
    report: Report[Any] | None = None,
    on_settled: OnSettled | None = None,
    what: str = "publish",
) -> BroadcastResult:
    """Send the same to all nodes at once, off the caller's path (Q2): return at once, with all nodes pending.

    Nothing is raised for what nodes say, nor for what `send` raises: that is logged. Parameters as of `broadcast`.

    :param bounds: of what `send` has turns for by itself; by default it has its turn among signed messages.
    :raises DeadlineExceeded: when the bound is past already: nothing was sent.
    :raises NoCandidates: without nodes.
    """
    check(what, [*nodes, *_all(later)], bound, runner.now())
    sending = Sends(send, nodes, items, bound, runner, report, on_settled, what, later, bounds=bounds)
    sending.begin()
    sending.leave(final=False)
    return sending.result


def _all(later: Sequence[Later]) -> list[NodeId]:
    return [node_id for group in later for node_id in group.nodes]
