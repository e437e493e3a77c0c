"""Duties of an epoch: first success, and never those of a node that knows less than was known before (Q14b)."""

# Functions are made here at every call: their annotations are not to be evaluated each time.
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from vc_fallback.base.types import ZERO_ROOT, Epoch, NodeId, Role, Root, Sourced, root_hex
from vc_fallback.decide.rank import SYNCED
from vc_fallback.decide.tip_consensus import DEMOTED
from vc_fallback.node import routes
from vc_fallback.node.routes import Route
from vc_fallback.node.values.answers import Duties
from vc_fallback.node.values.duties import AttesterDuty, ProposerDuties, PtcDuty, SyncCommitteeDuty
from vc_fallback.routing.outcomes import Doubt
from vc_fallback.routing.patience import Found, Patience
from vc_fallback.routing.requests import Ask, Requests, indices_of

D = TypeVar("D", bound=Duties[Any])

_EPOCHS = 4
"""Epochs for which it is remembered which duties of a synced node were given: the present one, its neighbours, and one
more for the boundary of sync committee periods."""

_KINDS = 4

_ALL: frozenset[int] = frozenset({-1})
"""Stands for every validator, where duties are not asked by validators."""


class Given:
    """What synced nodes have said of the duties of an epoch, as it was given to the caller."""

    __slots__ = ("indices", "root")

    def __init__(self) -> None:
        self.indices: set[int] = set()
        """The validators whose duties were given."""
        self.root: tuple[int, Root] | None = None
        """The dependent root of the last of these, with the version of the route that it is of."""


class DutyCalls(Requests):
    """Every answer has its provenance and its dependent root, which belongs to the absolute epoch and to the version of
    the route (:class:`~vc_fallback.ProposerDuties`): only roots of one epoch and one version are to be compared.

    Duties of an optimistic or unsynced node are taken only where no synced one answers, and never where those of a
    synced node were given for the same validators before, unless the same dependent root fixes both: then the call
    fails, and what the caller has holds (Q14b, case 46). Duties that another dependent root fixes than that of the
    delivered chain are taken where nobody has better ones (case 31). Better ones are waited for an eighth of a slot.
    """

    _given: dict[tuple[str, Epoch], Given]

    async def attester_duties(
        self, epoch: Epoch, indices: Iterable[int], *, deadline: float | None = None
    ) -> Sourced[Duties[AttesterDuty]]:
        """Return where validators attest in an epoch."""
        wanted = indices_of(indices)
        return await self._duties(
            routes.ATTESTER_DUTIES,
            epoch,
            wanted,
            lambda node, t: node.attester_duties(epoch, wanted, timeout=t),
            deadline,
        )

    async def proposer_duties(self, epoch: Epoch, *, deadline: float | None = None) -> Sourced[ProposerDuties]:
        """Return who proposes in an epoch, everyone of the chain."""
        return await self._duties(
            routes.PROPOSER_DUTIES, epoch, _ALL, lambda node, t: node.proposer_duties(epoch, timeout=t), deadline
        )

    async def sync_committee_duties(
        self, epoch: Epoch, indices: Iterable[int], *, deadline: float | None = None
    ) -> Sourced[Duties[SyncCommitteeDuty]]:
        """Return which places validators have in the sync committee of an epoch."""
        wanted = indices_of(indices)
        return await self._duties(
            routes.SYNC_DUTIES,
            epoch,
            wanted,
            lambda node, t: node.sync_committee_duties(epoch, wanted, timeout=t),
            deadline,
        )

    async def ptc_duties(
        self, epoch: Epoch, indices: Iterable[int], *, deadline: float | None = None
    ) -> Sourced[Duties[PtcDuty]]:
        """Return when validators attest the timeliness of payloads in an epoch (Gloas)."""
        wanted = indices_of(indices)
        return await self._duties(
            routes.PTC_DUTIES, epoch, wanted, lambda node, t: node.ptc_duties(epoch, wanted, timeout=t), deadline
        )

    async def _duties(
        self, route: Route, epoch: Epoch, wanted: Iterable[int], ask: Ask[D], deadline: float | None
    ) -> Sourced[D]:
        desk = self._open()
        key, asked = (route.operation, epoch), frozenset(wanted)

        def worth(found: Found[D]) -> float:
            return 0.0 if self._unsynced(found.answer) else 1.0

        patience: Patience[D] = Patience(desk.clock, desk.part(desk.settings.duties_next), worth, desk.runner.scope())

        def accept(answer: Sourced[D]) -> Doubt | None:
            given, named = self._given.get(key), _root_of(answer.value)
            flaw = self._unsynced(answer)
            if flaw and given is not None and not asked.isdisjoint(given.indices):
                same = named is not None and named == given.root
                if not same:
                    return Doubt(flaw)
            return patience.judge(answer, flaw or self._not_of_chain(epoch, named))

        found = await patience.run(
            lambda: self._first(
                route, Role.DUTIES, ask, end=self._end(desk.settings.duties_end, None, deadline), accept=accept
            )
        )
        if not self._unsynced(found.answer):
            self._note(key, asked, _root_of(found.answer.value))
        return found.answer

    def _note(self, key: tuple[str, Epoch], indices: frozenset[int], root: tuple[int, Root] | None) -> None:
        given = self._given.pop(key, None) or Given()
        given.indices |= indices
        given.root = root
        self._given[key] = given
        while len(self._given) > _EPOCHS * _KINDS:
            del self._given[next(iter(self._given))]

    def _not_of_chain(self, epoch: Epoch, named: tuple[int, Root] | None) -> str:
        """Say that another root than that of the delivered chain fixes duties; empty where it is not known to.

        The roots of the first version of a route are of another epoch than those that heads name.
        """
        if named is None or named[0] == 1:
            return ""
        of_chain = self._open().chain.dependent_root(epoch)
        if of_chain is None or named[1] == of_chain:
            return ""
        return f"dependent root {root_hex(named[1])[:10]}…, not that of the head"

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


def _root_of(duties: Duties[Any]) -> tuple[int, Root] | None:
    """Return the version of the route and the dependent root; `None` where that is unknown, as all zeros are."""
    root = duties.dependent_root
    if root is None or root == ZERO_ROOT:
        return None
    return getattr(duties, "version", 2), Root(root)
