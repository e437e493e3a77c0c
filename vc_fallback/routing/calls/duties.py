"""Duties of an epoch: first success, and never those of a node that knows less than was known before (Q14b)."""

from collections.abc import Iterable
from typing import Any, TypeVar

from vc_fallback.base.types import Epoch, NodeId, Role, Sourced, root_hex
from vc_fallback.decide.rank import SYNCED
from vc_fallback.decide.tip_consensus import DEMOTED
from vc_fallback.node import routes
from vc_fallback.node.routes import Route
from vc_fallback.node.values.answers import Duties
from vc_fallback.node.values.duties import AttesterDuty, ProposerDuties, PtcDuty, SyncCommitteeDuty
from vc_fallback.routing.outcomes import Doubt
from vc_fallback.routing.requests import Ask, Requests

D = TypeVar("D", bound=Duties[Any])

_EPOCHS = 4
"""Epochs for which it is remembered that duties of a synced node were given: the present one, its neighbours, and one
more for the boundary of sync committee periods."""


class DutyCalls(Requests):
    """Every answer has its provenance and its dependent root, which belongs to the absolute epoch and to the version of
    the route (:class:`~vc_fallback.ProposerDuties`): only roots of one epoch and one version are to be compared.

    Duties of an optimistic or unsynced node are taken only where no synced one answers, and never where duties of a
    synced node were given for that epoch before: then the call fails, and what the caller has holds (Q14b, case 46).
    Duties that another dependent root fixes than that of the delivered chain are taken where nobody has better ones
    (case 31).
    """

    _given: dict[tuple[str, Epoch], None]

    async def attester_duties(
        self, epoch: Epoch, indices: Iterable[int], *, deadline: float | None = None
    ) -> Sourced[Duties[AttesterDuty]]:
        """Return where validators attest in an epoch."""
        wanted = [*indices]
        return await self._duties(
            routes.ATTESTER_DUTIES, epoch, lambda node, t: node.attester_duties(epoch, wanted, timeout=t), deadline
        )

    async def proposer_duties(self, epoch: Epoch, *, deadline: float | None = None) -> Sourced[ProposerDuties]:
        """Return who proposes in an epoch, everyone of the chain."""
        return await self._duties(
            routes.PROPOSER_DUTIES, epoch, lambda node, t: node.proposer_duties(epoch, timeout=t), deadline
        )

    async def sync_committee_duties(
        self, epoch: Epoch, indices: Iterable[int], *, deadline: float | None = None
    ) -> Sourced[Duties[SyncCommitteeDuty]]:
        """Return which places validators have in the sync committee of an epoch."""
        wanted = [*indices]
        return await self._duties(
            routes.SYNC_DUTIES, epoch, lambda node, t: node.sync_committee_duties(epoch, wanted, timeout=t), deadline
        )

    async def ptc_duties(
        self, epoch: Epoch, indices: Iterable[int], *, deadline: float | None = None
    ) -> Sourced[Duties[PtcDuty]]:
        """Return when validators attest the timeliness of payloads in an epoch (Gloas)."""
        wanted = [*indices]
        return await self._duties(
            routes.PTC_DUTIES, epoch, lambda node, t: node.ptc_duties(epoch, wanted, timeout=t), deadline
        )

    async def _duties(self, route: Route, epoch: Epoch, ask: Ask[D], deadline: float | None) -> Sourced[D]:
        desk = self._open()
        known = (route.operation, epoch)

        def accept(answer: Sourced[D]) -> Doubt | None:
            flaw = self._unsynced(answer)
            if flaw:
                return Doubt(flaw, usable=known not in self._given)
            root, version = answer.value.dependent_root, getattr(answer.value, "version", 2)
            of_chain = desk.chain.dependent_root(epoch) if version != 1 else None
            if root is not None and of_chain is not None and root != of_chain:
                return Doubt(f"dependent root {root_hex(root)[:10]}…, not that of the head", usable=True)
            return None

        answer = await self._first(
            route, Role.DUTIES, ask, end=self._end(desk.settings.duties_end, None, deadline), accept=accept
        )
        if not self._unsynced(answer):
            self._given.pop(known, None)
            self._given[known] = None
            while len(self._given) > _EPOCHS * 4:
                del self._given[next(iter(self._given))]
        return answer

    def _unsynced(self, answer: Sourced[D]) -> str:
        """Say why a node's duties do not count beside those of others; empty where they do."""
        if answer.value.execution_optimistic:
            return "optimistic"
        return self._behind(answer.node_id)

    def _behind(self, node_id: NodeId) -> str:
        place = self._open().book.ranking.places.get(node_id)
        if place is None:
            return ""
        if place.facts.optimistic:
            return "its head is optimistic"
        if (place.facts.lag or 0) >= DEMOTED or (place.facts.claim or 0) > SYNCED:
            return "it is not synced"
        return ""
