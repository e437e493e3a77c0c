"""Calls whose next node is asked soon, by how long the one before takes as a rule (Q2, Q4)."""

# Functions are made here at every call: their annotations are not to be evaluated each time.
from __future__ import annotations

from contextlib import suppress
from typing import TypeVar

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Role, Sourced
from vc_fallback.node.routes import ATTESTATION_DATA, Route
from vc_fallback.routing.hedged import hedge_delay
from vc_fallback.routing.outcomes import Accept, AllNodesFailed, Attempt
from vc_fallback.routing.requests import EARLIER, Ask, Requests
from vc_fallback.routing.rounds import Rounds

T = TypeVar("T")

OUTRUN = 2
"""How often in a row others are faster than a node before it is found out how long it takes: once is a hiccup."""


class Hedging(Requests):
    """What calls have in common that are due within a moment."""

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
        """Ask as `_first` does, the next node after what nine of ten answers of the one before stay within (Q2, Q4).

        :param kind: keeps how long answers take under this name.
        """
        desk = self._open()
        floor, most = desk.settings.hedge_floor, desk.part(desk.settings.attestation_next)
        outrun: list[NodeId] = []
        slow = desk.book.too_slow if route is ATTESTATION_DATA else None

        def delay(node_id: NodeId) -> float:
            return hedge_delay(desk.latency(node_id, kind), floor=floor, most=most)

        def report(attempt: Attempt[T]) -> None:
            if attempt.answer is not None:
                # The node's own time: it may have been asked twice, with a pause between (Q8).
                took = attempt.answer.latency
                desk.took(attempt.node_id, kind, attempt.duration if took is None else took)
            elif attempt.given_up:
                if slow is not None and attempt.duration > slow:
                    desk.book.duty_answered(attempt.node_id, attempt.duration)
                elif attempt.duration >= delay(attempt.node_id):
                    outrun.append(attempt.node_id)
                desk.took(attempt.node_id, kind, attempt.duration, given_up=True)

        rounds: Rounds | None = None
        while True:
            try:
                found = await self._first(
                    route, role, ask, end=end, delay=delay, prefer=prefer, accept=accept, report=report, rounds=rounds
                )
                break
            except AllNodesFailed as error:
                rounds = rounds or Rounds(desk, end)
                if not await rounds.next(error):
                    raise rounds.failure(error.what) from None
        if slow is not None:
            desk.outrun.pop(found.node_id, None)
            for node_id in outrun:
                desk.outrun[node_id] += 1
                if desk.outrun[node_id] >= OUTRUN:
                    self._find_out(node_id, ask, route.what)
        return found

    def _find_out(self, node_id: NodeId, ask: Ask[T], what: str) -> None:
        """Ask a node to the end that others are faster than, beside all requests, to know how long it takes (N3).

        A wait that is given up as soon as another node has answered is never long: a node that does not answer at all
        would cost every request the delay of the hedge, and nobody would know. One at a time.
        """
        desk = self._open()
        slow = desk.book.too_slow
        if slow is None or node_id in desk.being_timed:
            return
        # Long enough for what it would take to be too slow.
        end = desk.clock.now() + 1.1 * slow + EARLIER

        async def find_out() -> None:
            with suppress(NodeError):
                await self._ask(ask, what, end, node_id)

        desk.being_timed.add(node_id)
        if desk.runner.start(find_out, on_end=lambda _: desk.being_timed.discard(node_id)) is None:
            desk.being_timed.discard(node_id)
