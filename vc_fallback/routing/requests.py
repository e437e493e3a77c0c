"""What every call of the facade is made of: a plan, a strategy, an end, and one node's method."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from vc_fallback.base.types import NodeId, Role, Slot, Sourced, Tier
from vc_fallback.decide.plan import Plan
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import Closed
from vc_fallback.node.routes import Route
from vc_fallback.routing.best import Score, best
from vc_fallback.routing.desk import Desk
from vc_fallback.routing.first_success import first_success
from vc_fallback.routing.hedged import hedge_delay
from vc_fallback.routing.outcomes import Accept, AllNodesFailed, Attempt, NoCandidates, enumerate_some

T = TypeVar("T")

Ask = Callable[[BeaconNode, float], Awaitable[Sourced[T]]]
"""Calls a method of one node, within so many seconds."""

Delay = Callable[[NodeId], float]

_EARLIER = 0.001
"""Seconds by which a node's own time-out comes before the end of the request: a node that is silent until then is to be
known for it (N4), and what is cancelled says nothing."""


class Requests:
    """The base of the facade's calls."""

    _desk: Desk | None = None

    def _open(self) -> Desk:
        if self._desk is None:
            raise RuntimeError("the nodes have not been entered, or were left")
        return self._desk

    # --- time

    def _end(self, part: float | None, slot: Slot | None, deadline: float | None) -> float:
        """Return the moment in loop time at which a request ends (Q2): the caller's own, where there is one, else the
        earlier of a part of a slot from now and the end of the duty's slot."""
        if deadline is not None:
            return deadline
        desk = self._open()
        end = float("inf") if part is None else desk.clock.now() + desk.part(part)
        slots = desk.chain.slots
        if slot is not None and slots is not None:
            end = min(end, slots.start_of(Slot(slot + 1)))
        # Before the chain is known there is nobody to ask, which is said; but every wait has an end (rule 6).
        return end if end != float("inf") else desk.clock.now() + desk.slot_duration

    # --- one node

    async def _ask(self, ask: Ask[T], what: str, end: float, node_id: NodeId) -> Sourced[T]:
        desk = self._open()
        try:
            node = desk.pool.get(node_id)
        except KeyError:
            raise Closed(node_id, what, "node removed from the list") from None
        try:
            return await ask(node, max(0.0, end - desk.clock.now() - _EARLIER))
        except Closed as error:
            if desk.pool.has(node):
                raise
            raise Closed(node_id, error.endpoint, "node removed from the list, or reached in another way now") from None

    # --- strategies

    async def _first(
        self,
        route: Route,
        role: Role,
        ask: Ask[T],
        *,
        end: float,
        delay: Delay | float | None = None,
        prefer: NodeId | None = None,
        accept: Accept[T] | None = None,
        kind: str | None = None,
    ) -> Sourced[T]:
        """Ask one node after the other (Q3); where the list changes meanwhile, those who have come too.

        :param delay: seconds until the next node is asked as well; that of duties by default.
        :param kind: keeps how long answers take under this name.
        """
        desk = self._open()
        wait = desk.part(desk.settings.duties_next) if delay is None else delay
        return await self._first_of(
            f"{route.method} {route.template}",
            role,
            ask,
            end=end,
            delay=wait if callable(wait) else lambda _: wait,
            prefer=prefer,
            accept=accept,
            kind=kind,
        )

    async def _first_of(
        self,
        what: str,
        role: Role | None,
        ask: Ask[T],
        *,
        end: float,
        delay: Delay,
        prefer: NodeId | None = None,
        accept: Accept[T] | None = None,
        kind: str | None = None,
    ) -> Sourced[T]:
        desk = self._open()
        generation = desk.candidates.generation
        plan = desk.planner.plan(role, prefer)
        nodes: Sequence[NodeId] = plan.nodes
        asked: dict[NodeId, BeaconNode] = {}
        earlier: list[Attempt[Any]] = []
        report = None if kind is None else partial(self._report, kind)
        while True:
            if not nodes:
                raise nobody(what, plan)
            try:
                return await first_success(
                    partial(self._ask, ask, what, end),
                    nodes,
                    end=end,
                    delay=delay,
                    runner=desk.runner,
                    accept=accept,
                    report=report,
                    what=what,
                )
            except AllNodesFailed as error:
                if generation == desk.candidates.generation:
                    raise
                # Who has joined the list meanwhile, or is reached in another way now, may still have it.
                closed = {attempt.node_id for attempt in error.attempts if isinstance(attempt.error, Closed)}
                done = {attempt.node_id for attempt in (*earlier, *error.attempts)} - closed
                generation = desk.candidates.generation
                plan = desk.planner.plan(role, prefer)
                nodes = [n for n in plan.nodes if n not in done and desk.pool.get(n) is not asked.get(n)]
                asked.update({node_id: desk.pool.get(node_id) for node_id in nodes})
                earlier += error.attempts
                if not nodes:
                    raise

    async def _hedge(
        self,
        route: Route,
        role: Role,
        ask: Ask[T],
        *,
        end: float,
        kind: str,
        prefer: NodeId | None = None,
        accept: Accept[T] | None = None,
    ) -> Sourced[T]:
        """Ask as `_first` does, the next node after what nine of ten answers of the one before stay within (Q2, Q4)."""
        desk = self._open()
        floor, most = desk.settings.hedge_floor, desk.part(desk.settings.attestation_next)

        def delay(node_id: NodeId) -> float:
            return hedge_delay(desk.latency(node_id, kind), floor=floor, most=most)

        return await self._first(route, role, ask, end=end, delay=delay, prefer=prefer, accept=accept, kind=kind)

    async def _best(
        self,
        route: Route,
        role: Role,
        ask: Ask[T],
        *,
        soft: float,
        end: float,
        score: Score[T],
        prefer: NodeId | None = None,
        accept: Accept[T] | None = None,
        min_improvement: float = 0.0,
    ) -> Sourced[T]:
        """Ask all primaries of a role, fallbacks where these do not answer, and take the best answer (Q7)."""
        desk = self._open()
        what = f"{route.method} {route.template}"
        plan = desk.planner.plan(role, prefer)
        if not plan.nodes:
            raise nobody(what, plan)
        tiers = [plan.of(Tier.PRIMARY), plan.of(Tier.FALLBACK)]
        if not plan.usable(tiers[0]) and plan.usable(tiers[1]):
            tiers.reverse()
        return await best(
            partial(self._ask, ask, what, end),
            tiers,
            soft=soft,
            end=end,
            score=score,
            runner=desk.runner,
            min_improvement=min_improvement,
            accept=accept,
            what=what,
        )

    def _report(self, kind: str, attempt: Attempt[Any]) -> None:
        if attempt.answer is not None:
            self._open().took(attempt.node_id, kind, attempt.duration)
        elif attempt.given_up:
            self._open().took(attempt.node_id, kind, attempt.duration, given_up=True)


def nobody(what: str, plan: Plan) -> NoCandidates:
    """Return the error for a plan without nodes: why nobody can be asked."""
    reasons = [f"{node_id}: {reason}" for node_id, reason in plan.left_out.items()]
    words = enumerate_some(reasons, "; ") if reasons else "the list of nodes is empty"
    return NoCandidates(what, f"there is no node to ask: {words}")
