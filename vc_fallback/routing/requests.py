"""What every call of the facade is made of: a plan, a strategy, an end, and one node's method."""

# Functions are made here at every call: their annotations are not to be evaluated each time.
from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio

from vc_fallback.base.types import NodeId, Role, Slot, Sourced, Tier
from vc_fallback.chain import SlotClock
from vc_fallback.decide.plan import Plan
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import Closed
from vc_fallback.node.routes import Route
from vc_fallback.routing.best import Score, best
from vc_fallback.routing.desk import Desk
from vc_fallback.routing.first_success import first_success
from vc_fallback.routing.joining import Joining
from vc_fallback.routing.outcomes import Accept, AllNodesFailed, Attempt, NoCandidates, Report, enumerate_some
from vc_fallback.routing.rounds import Rounds

T = TypeVar("T")

Ask = Callable[[BeaconNode, float], Awaitable[Sourced[T]]]
"""Calls a method of one node, within so many seconds."""

Delay = Callable[[NodeId], float]

EARLIER = 0.001
"""Seconds by which a node's own time-out comes before the end of the request: a node that is silent until then is to be
known for it (N4), and what is cancelled says nothing."""

REMOVED = "node removed from the list"
OTHERWISE = "the node is reached in another way now"
LEFT = "the nodes were left"


SILENCE = 8.0
"""Slots for which a node that does not answer a kind of requests is asked for it last; then it is tried again."""


class Requests:
    """The base of the facade's calls."""

    _desk: Desk | None = None
    _left = False

    def _open(self) -> Desk:
        if self._desk is None:
            raise RuntimeError(LEFT if self._left else "the nodes have not been entered")
        return self._desk

    # --- time

    def _end(self, part: float | None, slot: Slot | None, deadline: float | None) -> float:
        """Return the moment in loop time at which a request ends (Q2): the caller's own, where there is one, else the
        earlier of a part of a slot from now and the end of the duty's slot, where that is this one or the next."""
        if deadline is not None:
            return deadline
        desk = self._open()
        now = desk.clock.now()
        slots = desk.chain.slots
        if slot is None or slots is None:
            # Before the chain is known there is nobody to ask, which is said; but every wait has an end (rule 6).
            return now + desk.part(1.0 if part is None else part)
        over = _end_of(slot, slots, now)
        if over <= now and (anew := desk.chain.reanchor()) is not None:
            # It seems to be over: the system clock may have been put right since the slot began.
            over = _end_of(slot, anew, now)
        return over if part is None else min(over, now + desk.part(part))

    # --- who is asked

    async def _plan(self, what: str, role: Role | None, end: float, prefer: NodeId | None = None) -> Plan:
        """Return the plan of a request. Where nobody can be asked yet, because nodes have still to say which chain they
        are on, it is waited for them (G6).

        :raises NoCandidates: where there is nobody, at the end.
        """
        desk = self._open()
        plan = desk.planner.plan(role, prefer, what)
        if not plan.nodes and math.isfinite(end):
            news = desk.news.watcher()
            with anyio.CancelScope(deadline=end):
                while not plan.nodes and not desk.left and desk.expects_nodes:
                    await news.wait()
                    plan = desk.planner.plan(role, prefer, what)
        if not plan.nodes:
            raise nobody(what, plan)
        return plan

    # --- one node

    async def _ask(self, ask: Ask[T], what: str, end: float, node_id: NodeId) -> Sourced[T]:
        desk = self._desk if self._desk is None or not self._desk.left else None
        if desk is None:
            raise Closed(node_id, what, LEFT)
        try:
            node = desk.pool.get(node_id)
        except KeyError:
            raise Closed(node_id, what, REMOVED) from None
        if node_id in desk.identities.unsure:
            wait = min(desk.part(desk.settings.attestation_next), end - desk.clock.now())
            await desk.identities.ask(node, what, wait)
        left = end - desk.clock.now()
        # Who is asked at the last moment is not to blame for it: the request ends before its own time does.
        timeout = left - EARLIER if left > desk.part(desk.settings.attestation_next) else max(left, 0.0) + EARLIER
        try:
            return await ask(node, timeout)
        except Closed as error:
            if desk.left:
                problem = LEFT
            elif desk.pool.has(node):
                raise
            else:
                problem = OTHERWISE if node_id in desk.candidates.current else REMOVED
            raise Closed(node_id, error.endpoint, problem) from None

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
        report: Report[T] | None = None,
        rounds: Rounds | None = None,
    ) -> Sourced[T]:
        """Ask one node after the other (Q3).

        :param delay: seconds until the next node is asked as well; that of duties by default.
        :param rounds: those before this one, where there were any.
        """
        desk = self._open()
        wait = desk.part(desk.settings.duties_next) if delay is None else delay
        what = route.what
        if report is None:
            report = self._notice_silence(what, wait)
        return await self._first_of(
            what,
            role,
            ask,
            end=end,
            delay=wait if callable(wait) else lambda _: wait,
            prefer=prefer,
            accept=accept,
            report=report,
            rounds=rounds,
        )

    def _notice_silence(self, what: str, wait: Delay | float) -> Report[Any]:
        """Return what notices nodes that do not answer a kind of requests: each would cost its delay every time."""
        desk = self._open()

        def report(attempt: Attempt[Any]) -> None:
            node_id = attempt.node_id
            if not attempt.given_up:
                desk.cooldowns.answered(node_id, what)
            elif attempt.duration >= (wait(node_id) if callable(wait) else wait):
                desk.cooldowns.silent(node_id, what, attempt.ended, desk.part(SILENCE))

        return report

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
        report: Report[T] | None = None,
        rounds: Rounds | None = None,
    ) -> Sourced[T]:
        """Do so; where the list changes meanwhile, those who have come are asked too (G2)."""
        desk = self._open()
        joining = Joining(desk, role, prefer)
        plan = await self._plan(what, role, end, prefer)
        nodes: Sequence[NodeId] = plan.nodes
        if rounds is not None:
            first, nodes = ask, rounds.of(nodes)
            if not nodes:
                raise rounds.failure(what)

            async def again(node: BeaconNode, timeout: float) -> Sourced[T]:
                return await first(node.asked_again(), timeout)

            ask = again
        return await first_success(
            partial(self._ask, ask, what, end),
            nodes,
            end=end,
            delay=delay,
            runner=desk.runner,
            accept=accept,
            report=report,
            joining=joining,
            what=what,
        )

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
        what = route.what
        joining = Joining(desk, role, prefer)
        plan = await self._plan(what, role, end, prefer)
        asked: set[NodeId] = set()
        replaced = False
        while True:
            tiers = [[n for n in plan.of(tier) if n not in asked] for tier in (Tier.PRIMARY, Tier.FALLBACK)]
            if plan.preferred is not None and plan.preferred in tiers[1]:
                # What is asked for belongs to what it gave, whichever tier it is of (Q9).
                tiers[1].remove(plan.preferred)
                tiers[0].insert(0, plan.preferred)
            if not plan.usable(tiers[0]) and plan.usable(tiers[1]):
                tiers.reverse()
            try:
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
            except AllNodesFailed as error:
                closed = {node_id for node_id, failed in error.errors.items() if isinstance(failed, Closed)}
                asked |= {attempt.node_id for attempt in error.attempts} - closed
                # Where some have left the list, their place may be taken by others, who come one after the other.
                replaced = replaced or bool(closed)
                others = await joining.others(asked, end) if replaced else None
                if others is None:
                    raise
                plan = others


def _end_of(slot: Slot, slots: SlotClock, now: float) -> float:
    """Return when a slot is over; where it is a later one, when the next is."""
    return slots.start_of(Slot(min(slot, slots.slot_at(now) + 1) + 1))


def nobody(what: str, plan: Plan) -> NoCandidates:
    """Return the error for a plan without nodes: why nobody can be asked."""
    reasons = [f"{node_id}: {reason}" for node_id, reason in plan.left_out.items()]
    words = enumerate_some(reasons, "; ") if reasons else "the list of nodes is empty"
    return NoCandidates(what, f"there is no node to ask: {words}")


def indices_of(validators: Iterable[int]) -> list[int]:
    """List the indices of validators.

    :raises TypeError: for what is no list, as one index is.
    """
    try:
        return [*validators]
    except TypeError:
        if isinstance(validators, Iterable):
            raise
        raise TypeError("indices: a list of the indices of validators is needed") from None
