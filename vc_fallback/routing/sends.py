"""The sends of one publish: to whom, in which turn, and what becomes of each (Q5, Q9, rule 8)."""

import logging
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import anyio

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node.failures import Closed, RequestTimeout
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.ahead import Bounds
from vc_fallback.routing.broadcast_result import BroadcastResult
from vc_fallback.routing.delivery import Delivery, Sending
from vc_fallback.routing.outcomes import Attempt, NotSent, Report, tell
from vc_fallback.routing.runner import Beside, Runner, Timer, end_all

logger = logging.getLogger(__name__)

Begun = Callable[[], None]
"""Is called when the request is about to be written, each time that it is: from then on a node may take it, whatever
happens to us."""

Send = Callable[[NodeId, Begun], Awaitable[Sourced[Publication]] | Awaitable[Sourced[None]]]
"""Sends to one node, and says when it begins to."""

OnSettled = Callable[[BroadcastResult], None]
"""Is told once no node is pending any more."""

_MOST = 16
"""How many times as many signed messages as are bounded may wait for their turn at a node while no other took them."""

_CANCELLED = "cancelled before it began"


@dataclass(frozen=True, slots=True)
class Later:
    """Nodes that are sent to only where those before them did not take it (Q5, Q9).

    They are when no send to those right before them is pending any more, or these have been silent for so long, and not
    every item is accepted; `when` has the last word. Where it says no at the end of those before, it is over.

    :param nodes: each of them once, and none that is sent to before.
    :param when: looks at what has become of it so far at all who were sent to, pending ones among them.
    :param silence: seconds, from when those right before were sent to; `inf` for never.
    """

    nodes: Sequence[NodeId]
    when: Callable[[Collection[Delivery]], bool]
    silence: float = math.inf


class Sends:
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
        later: Sequence[Later] = (),
        *,
        urgent: bool = False,
        earlier: Mapping[NodeId, Delivery] = MappingProxyType({}),
        bounds: Bounds | None = None,
    ) -> None:
        if items < 1:
            raise ValueError(f"{what}: {items} items are nothing to publish")
        self.result = BroadcastResult(what, nodes, items, runner.now())
        for node_id, delivery in earlier.items():
            again = self.result.deliveries.setdefault(node_id, delivery)
            if again is not delivery:
                again.attempts = delivery.attempts
        self._send = send
        self._bound = bound
        self._runner = runner
        self._report = report
        self._on_settled = on_settled
        self._urgent = urgent
        self._bounds: Bounds = runner if bounds is None else bounds
        self._takes_turns = not urgent and bounds is None
        """Whether it waits for its turn here, among signed messages."""
        self._tasks: dict[NodeId, Beside] = {}
        self._enough = anyio.Event()
        self._stragglers: set[NodeId] = set()
        self._crowded_out: dict[NodeId, str] = {}
        self._left = False
        """Whether the caller has gone on: what is under way are stragglers."""
        self._abandoned = False
        self._settled = False
        self._later = [group for group in later if group.nodes]
        self._group: Sequence[NodeId] = nodes
        """Who was sent to last."""
        self._timer: Timer | None = None

    def begin(self) -> None:
        """Start the sends of a group."""
        if self._later and math.isfinite(self._later[0].silence):
            self._timer = self._runner.at(self._runner.now() + self._later[0].silence, self._silent)
        for delivery in [self.result.deliveries[node_id] for node_id in self._group]:
            node_id = delivery.node_id
            earlier = self._bounds.stragglers[node_id]
            if earlier >= self._bounds.most_stragglers and not self._urgent and not self._may_wait(node_id):
                self._not_sent(delivery, _crowded(earlier))
                continue
            task = self._runner.start(
                partial(self._deliver, delivery), on_end=partial(self._never_began, delivery), deadline=self._bound
            )
            if task is None:
                self._not_sent(delivery, "the program ends")
                continue
            self._tasks[node_id] = task
            if self._left:
                self._straggles(node_id)

    def _silent(self) -> None:
        """Who was sent to last has been silent for as long as the next wait for it."""
        self._stop_waiting()
        if self._later and self._later[0].when(self.result.deliveries.values()):
            self._go_on()

    def _go_on(self) -> None:
        """Send to the next group as well."""
        self._stop_waiting()
        self._group = self._later.pop(0).nodes
        for node_id in self._group:
            self.result.deliveries[node_id] = Delivery(node_id, self._runner.now())
        self.begin()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _may_wait(self, node_id: NodeId) -> bool:
        """Whether it may wait for its turn although more than enough is under way there: while nobody else took it."""
        if not self._takes_turns or self.result.complete or self._runner.lane(node_id).free:
            return False
        return self._bounds.stragglers[node_id] < _MOST * self._bounds.most_stragglers

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
            if not self._crowd_out(node_id):
                self._straggles(node_id)

    def _crowd_out(self, node_id: NodeId) -> bool:
        """Cancel what waits for its turn at a node where too much does; say whether it was."""
        if self._urgent or self.result.deliveries[node_id].begun or self._bounds.has_room(node_id):
            return False
        if self._may_wait(node_id):
            return False
        self._crowded_out[node_id] = _crowded(self._bounds.stragglers[node_id])
        self._tasks[node_id].cancel()
        return True

    def _straggles(self, node_id: NodeId) -> None:
        self._stragglers.add(node_id)
        self._bounds.stragglers[node_id] += 1

    def _end_groups(self) -> None:
        self._later.clear()
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
            delivery.attempts += 1

        try:
            answer = await self._send_in_turn(node_id, begun)
        except NodeError as error:
            self._ended(delivery, error)
        except BaseException as error:
            if isinstance(error, anyio.get_cancelled_exc_class()) and anyio.current_effective_deadline() == -math.inf:
                if self._runner.now() >= self._bound:
                    problem = f"no answer within {self._bound - delivery.started:.3g} s"
                    problem += "; it may have been taken" if delivery.begun else "; nothing was sent"
                    self._ended(delivery, RequestTimeout(node_id, what, problem))
                elif delivery.begun:
                    self._ended(delivery, Closed(node_id, what, "given up as the program ends; it may have been taken"))
                else:
                    self._not_sent(delivery, self._crowded_out.get(node_id, _CANCELLED))
                raise
            left = self._left
            self._ended(delivery, error)
            if left and _is_fatal(error):
                raise
        else:
            self._ended(delivery, None, answer)

    async def _send_in_turn(self, node_id: NodeId, begun: Begun) -> Sourced[Publication] | Sourced[None]:
        if not self._takes_turns:
            return await self._send(node_id, begun)
        lane = self._runner.lane(node_id)
        if not lane.take_nowait():
            await lane.take()
        try:
            return await self._send(node_id, begun)
        finally:
            lane.give()

    def _never_began(self, delivery: Delivery, _: Beside) -> None:
        """Its task has ended; where that never had a first step, nobody has said so yet."""
        if delivery.state is Sending.PENDING:
            self._not_sent(delivery, self._crowded_out.get(delivery.node_id, _CANCELLED))

    def _not_sent(self, delivery: Delivery, problem: str) -> None:
        self._ended(delivery, NotSent(delivery.node_id, self.result.what, problem))

    def _ended(
        self,
        delivery: Delivery,
        error: BaseException | None,
        answer: Sourced[Publication] | Sourced[None] | None = None,
    ) -> None:
        node_id = delivery.node_id
        delivery.ended = self._runner.now()
        if answer is not None:
            delivery.answered(answer.value, answer.provenance)
        elif error is not None:
            delivery.refused_or_failed(error, self.result.items)
        if node_id in self._stragglers:
            stragglers = self._bounds.stragglers
            stragglers[node_id] -= 1
            if not stragglers[node_id]:
                del stragglers[node_id]
        if self._abandoned and delivery.begun:
            logger.info("%s: its caller was cancelled; %s: %s", self.result.what, node_id, delivery.words)
        if self._left:
            self._log_problem(delivery)
        if self._report is not None and (error is None or isinstance(error, NodeError)):
            tell(self._report, Attempt(node_id, delivery.started, delivery.ended, answer, error))
        self._look(fatal=error is not None and _is_fatal(error))

    def _look(self, *, fatal: bool) -> None:
        """See whether the caller may go on, whether the next group is to be sent to, and whether all is over."""
        complete = self.result.complete
        if complete or fatal:
            self._end_groups()
        if complete and self._left:
            # Its caller went on before: what waited, as nobody had taken it, makes room.
            for node_id in self._stragglers.intersection(self.result.pending):
                self._crowd_out(node_id)
        if self._later:
            deliveries = self.result.deliveries
            if all(deliveries[node_id].state is not Sending.PENDING for node_id in self._group):
                if self._later[0].when(deliveries.values()):
                    self._go_on()
                    return
                self._end_groups()
        over = not self.result.pending and not self._later
        if over or fatal or complete:
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


def _crowded(earlier: int) -> str:
    return f"{earlier} earlier sends are still under way"
