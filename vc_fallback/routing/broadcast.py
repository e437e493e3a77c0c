"""Broadcast: the same to all nodes at once, answered by the first accept of every item (Q5, Q12, rule 8)."""

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node.failures import Closed, RequestTimeout
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.broadcast_result import BroadcastResult, NotPublished, Outcome
from vc_fallback.routing.delivery import Delivery, Sending
from vc_fallback.routing.outcomes import Attempt, NotSent, Report, check, tell
from vc_fallback.routing.runner import Beside, Runner, Timer, end_all

logger = logging.getLogger(__name__)

Begun = Callable[[], None]
"""Is called when the request is about to be written: from then on a node may take it, whatever happens to us."""

Send = Callable[[NodeId, Begun], Awaitable[Sourced[Publication]] | Awaitable[Sourced[None]]]
"""Sends to one node, and says when it begins to."""

OnSettled = Callable[[BroadcastResult], None]
"""Is told once no node is pending any more."""


@dataclass(frozen=True, slots=True)
class Later:
    """Nodes that are sent to only where those before them did not take it (Q5, Q9).

    :param groups: of nodes, each node once; one group after the other.
    :param moves_on: whether what became of a node's send brings in the next group, once no send of the group before is
        pending. Where it does not, no further group is sent to.
    :param silence: seconds after which the next group is brought in while the one before is silent; `inf` for never.
    """

    groups: tuple[tuple[NodeId, ...], ...]
    moves_on: Callable[[Delivery], bool]
    silence: float = math.inf


async def broadcast(
    send: Send,
    nodes: Sequence[NodeId],
    *,
    end: float,
    runner: Runner,
    items: int = 1,
    bound: float | None = None,
    later: Later | None = None,
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
    :return: a live result, of which something is accepted, broadcast, or uncertain.
    :raises NotPublished: when no node took any item or has it, by the end.
    :raises DeadlineExceeded: when the time is over already: nothing was sent.
    :raises NoCandidates: without nodes.
    :raises Exception: see above.
    """
    bound = end if bound is None else bound
    for moment in (end, bound):
        check(what, [*nodes, *_all(later)], moment, anyio.current_time())
    sending = _Broadcast(send, nodes, items, bound, runner, report, on_settled, what, later)
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
    later: Later | None = None,
    report: Report[Any] | None = None,
    on_settled: OnSettled | None = None,
    what: str = "publish",
) -> BroadcastResult:
    """Send the same to all nodes at once, off the caller's path (Q2): return at once, with all nodes pending.

    Nothing is raised for what nodes say, nor for what `send` raises: that is logged. Parameters as of `broadcast`.

    :raises DeadlineExceeded: when the bound is past already: nothing was sent.
    :raises NoCandidates: without nodes.
    """
    check(what, [*nodes, *_all(later)], bound, anyio.current_time())
    sending = _Broadcast(send, nodes, items, bound, runner, report, on_settled, what, later)
    sending.begin()
    sending.leave(final=False)
    return sending.result


class _Broadcast:
    """One publish."""

    def __init__(
        self,
        send: Send,
        nodes: Sequence[NodeId],
        items: int,
        bound: float,
        runner: Runner,
        report: Report[Any] | None,
        on_settled: OnSettled | None,
        what: str,
        later: Later | None = None,
    ) -> None:
        if items < 1:
            raise ValueError(f"{what}: {items} items are nothing to publish")
        self.result = BroadcastResult(what, nodes, items, anyio.current_time())
        self._send = send
        self._bound = bound
        self._runner = runner
        self._report = report
        self._on_settled = on_settled
        self._tasks: dict[NodeId, Beside] = {}
        self._enough = anyio.Event()
        self._stragglers: set[NodeId] = set()
        self._left = False
        """Whether the caller has gone on: what is under way are stragglers."""
        self._final = False
        """Whether no further group is sent to, whatever becomes of the sends."""
        self._abandoned = False
        self._settled = False
        self._later = later
        self._groups = [] if later is None else [*later.groups]
        self._group: Sequence[NodeId] = nodes
        """Who was sent to last."""
        self._timer: Timer | None = None

    def begin(self) -> None:
        """Start the sends of a group."""
        if self._later is not None and self._groups and math.isfinite(self._later.silence):
            self._timer = self._runner.at(anyio.current_time() + self._later.silence, self._go_on)
        for delivery in [self.result.deliveries[node_id] for node_id in self._group]:
            node_id = delivery.node_id
            earlier = self._runner.stragglers[node_id]
            if earlier >= self._runner.most_stragglers:
                self._not_sent(delivery, f"{earlier} earlier sends are still under way")
                continue
            task = self._runner.start(partial(self._deliver, delivery), on_end=partial(self._never_began, delivery))
            if task is None:
                self._not_sent(delivery, "the program ends")
                continue
            self._tasks[node_id] = task
            if self._left:
                self._straggles(node_id)

    def _go_on(self) -> None:
        """Send to the next group as well."""
        self._stop_waiting()
        if self._groups and not self._final:
            self._group = self._groups.pop(0)
            for node_id in self._group:
                self.result.deliveries[node_id] = Delivery(node_id, anyio.current_time())
            self.begin()
            if not self.result.pending:
                self._look(fatal=False)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def enough(self) -> None:
        """Wait until every item is accepted, or no node is pending."""
        await self._enough.wait()

    def leave(self, *, final: bool = True) -> None:
        """The caller goes on; what is under way are stragglers.

        :param final: no further group is sent to.
        """
        self._left = True
        if final:
            self._end_groups()
        for node_id in self.result.pending:
            self._straggles(node_id)

    def _straggles(self, node_id: NodeId) -> None:
        self._stragglers.add(node_id)
        self._runner.stragglers[node_id] += 1

    def _end_groups(self) -> None:
        self._final = True
        self._groups.clear()
        self._stop_waiting()

    async def abandon(self) -> None:
        """The caller was cancelled: cancel what has not begun, and let the rest run on."""
        self._abandoned = True
        self.leave()
        deliveries = self.result.deliveries
        await end_all([task for node_id, task in self._tasks.items() if not deliveries[node_id].begun])

    def raise_fatal(self) -> None:
        """Raise what nobody may hold back, such as an interruption of the program."""
        for delivery in self.result.deliveries.values():
            if delivery.error is not None and _is_fatal(delivery.error):
                raise delivery.error

    def raise_problem(self) -> None:
        """Raise the first exception that is no node's."""
        for delivery in self.result.deliveries.values():
            if delivery.error is not None and not isinstance(delivery.error, NodeError):
                raise delivery.error

    def log_problems(self) -> None:
        """Log the exceptions that are no node's, which are not raised."""
        for delivery in self.result.deliveries.values():
            self._log_problem(delivery)

    async def _deliver(self, delivery: Delivery) -> None:
        node_id, what = delivery.node_id, self.result.what

        def begun() -> None:
            delivery.begun = True

        try:
            with anyio.CancelScope(deadline=self._bound) as scope:
                answer = await self._send(node_id, begun)
        except NodeError as error:
            self._ended(delivery, error)
        except BaseException as error:
            if isinstance(error, anyio.get_cancelled_exc_class()) and anyio.current_effective_deadline() == -math.inf:
                if delivery.begun:
                    self._ended(delivery, Closed(node_id, what, "given up as the program ends; it may have been taken"))
                else:
                    self._not_sent(delivery, "cancelled before it began")
                raise
            left = self._left
            self._ended(delivery, error)
            if left and _is_fatal(error):
                raise
        else:
            if scope.cancelled_caught:
                problem = f"no answer within {self._bound - delivery.started:.3g} s"
                problem += "; it may have been taken" if delivery.begun else "; nothing was sent"
                self._ended(delivery, RequestTimeout(node_id, what, problem))
            else:
                self._ended(delivery, None, answer)

    def _never_began(self, delivery: Delivery, _: Beside) -> None:
        """Its task has ended; where that never had a first step, nobody has said so yet."""
        if delivery.state is Sending.PENDING:
            self._not_sent(delivery, "cancelled before it began")

    def _not_sent(self, delivery: Delivery, problem: str) -> None:
        self._ended(delivery, NotSent(delivery.node_id, self.result.what, problem))

    def _ended(
        self,
        delivery: Delivery,
        error: BaseException | None,
        answer: Sourced[Publication] | Sourced[None] | None = None,
    ) -> None:
        node_id = delivery.node_id
        delivery.ended = anyio.current_time()
        if answer is not None:
            delivery.answered(answer.value, answer.provenance)
        elif error is not None:
            delivery.refused_or_failed(error, self.result.items)
        if node_id in self._stragglers:
            self._runner.stragglers[node_id] -= 1
            if not self._runner.stragglers[node_id]:
                del self._runner.stragglers[node_id]
        if self._abandoned and delivery.begun:
            logger.info("%s: its caller was cancelled; %s: %s", self.result.what, node_id, delivery.words)
        if self._left:
            self._log_problem(delivery)
        if error is None or isinstance(error, NodeError):
            tell(self._report, Attempt[Any](node_id, delivery.started, delivery.ended, answer, error))
        self._look(fatal=error is not None and _is_fatal(error))

    def _look(self, *, fatal: bool) -> None:
        """See whether the caller may go on, whether the next group is to be sent to, and whether all is over."""
        if self.result.complete or fatal:
            self._end_groups()
        if self._groups and self._later is not None:
            group = [self.result.deliveries[node_id] for node_id in self._group]
            if all(delivery.state is not Sending.PENDING for delivery in group):
                if any(self._later.moves_on(delivery) for delivery in group):
                    self._go_on()
                    return
                self._end_groups()
        over = not self.result.pending and not self._groups
        if over or fatal or self.result.complete:
            self._enough.set()
        if over and not self._settled:
            self._settled = True
            self.result.wake()
            if self._on_settled is not None:
                try:
                    self._on_settled(self.result)
                except Exception:
                    logger.exception("%s: reporting its result", self.result.what)

    def _log_problem(self, delivery: Delivery) -> None:
        error = delivery.error
        if error is not None and not isinstance(error, NodeError):
            logger.error("%s: %s: an error that is not the node's", self.result.what, delivery.node_id, exc_info=error)


def _is_fatal(error: BaseException) -> bool:
    return not isinstance(error, (Exception, anyio.get_cancelled_exc_class()))


def _all(later: Later | None) -> list[NodeId]:
    return [] if later is None else [node_id for group in later.groups for node_id in group]
