"""Aggregates of what attesters and members of sync committees signed (Q7, Q9)."""

from typing import TypeVar

from vc_fallback.base.types import NodeId, Role, Root, Slot, Sourced
from vc_fallback.node import routes
from vc_fallback.node.routes import Route
from vc_fallback.node.values.aggregation_bits import aggregation_bit_count
from vc_fallback.node.values.opaque import Opaque
from vc_fallback.node.values.sync_committee import SyncCommitteeContribution
from vc_fallback.routing.best import Score
from vc_fallback.routing.outcomes import Doubt
from vc_fallback.routing.requests import Ask, Requests

T = TypeVar("T")


class AggregatingCalls(Requests):
    """All primaries are asked, and the node whose data was signed, of whichever tier; fallbacks where these have not
    got it within 1/12 of a slot. `deadline` is a moment in loop time; the end of the slot without one.

    :raises NotFound: when all nodes say so.
    :raises AllNodesFailed, DeadlineExceeded, NoCandidates: see `vc_fallback.routing.outcomes`.
    """

    async def aggregate_attestation(
        self,
        slot: Slot,
        attestation_data_root: Root,
        committee_index: int,
        *,
        source: NodeId | None = None,
        deadline: float | None = None,
    ) -> Sourced[Opaque]:
        """Return the aggregate with the most bits that came within 1/12 of a slot, else the first one (Q7).

        :param source: the node whose attestation data was signed; it is asked first, and equals go to it (Q9).
        """
        return await self._most_bits(
            routes.AGGREGATE,
            lambda node, t: node.aggregate_attestation(slot, attestation_data_root, committee_index, timeout=t),
            lambda answer: _bits(answer.value),
            slot,
            source,
            deadline,
        )

    async def sync_committee_contribution(
        self,
        slot: Slot,
        subcommittee_index: int,
        beacon_block_root: Root,
        *,
        source: NodeId | None = None,
        deadline: float | None = None,
    ) -> Sourced[SyncCommitteeContribution]:
        """Return the contribution with the most bits that came within 1/12 of a slot, else the first one (Q7).

        :param source: the node that gave the block root; it is asked first, and equals go to it (Q9, case 44).
        """
        return await self._most_bits(
            routes.CONTRIBUTION,
            lambda node, t: node.sync_committee_contribution(slot, subcommittee_index, beacon_block_root, timeout=t),
            lambda answer: float(answer.value.bit_count),
            slot,
            source,
            deadline,
        )

    async def _most_bits(
        self,
        route: Route,
        ask: Ask[T],
        score: Score[T],
        slot: Slot,
        source: NodeId | None,
        deadline: float | None,
    ) -> Sourced[T]:
        desk = self._open()
        return await self._best(
            route,
            Role.ATTESTATION,
            ask,
            soft=desk.clock.now() + desk.part(desk.settings.aggregate_soft),
            end=self._end(None, slot, deadline),
            score=score,
            prefer=source,
            accept=lambda answer: _doubt(score(answer)),
        )


def _doubt(bits: float | None) -> Doubt | None:
    """Say why an aggregate does not win: nobody is in it (Q4), or it cannot be seen who is."""
    if bits is None:
        return Doubt("its bits cannot be read", usable=True)
    return None if bits else Doubt("empty")


def _bits(aggregate: Opaque) -> float | None:
    """Count the bits of an aggregate; one that has none where they should be loses to all that have."""
    try:
        return float(aggregation_bit_count(aggregate))
    except ValueError:
        return None
