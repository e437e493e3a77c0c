"""What attesters and members of committees sign, and the aggregates of it (Q6–Q9)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import anyio

from vc_fallback.base.types import Epoch, HeadSource, NodeId, Role, Root, Slot, Sourced, Tier, root_hex
from vc_fallback.decide.delivery import Delivered
from vc_fallback.node import routes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.routes import Route
from vc_fallback.node.values.aggregation_bits import aggregation_bit_count
from vc_fallback.node.values.attestation import AttestationData
from vc_fallback.node.values.opaque import Opaque
from vc_fallback.node.values.payload_attestation import PayloadAttestationData
from vc_fallback.node.values.sync_committee import SyncCommitteeContribution
from vc_fallback.routing.best import Score
from vc_fallback.routing.outcomes import Doubt
from vc_fallback.routing.quorum import Agreement, majority, quorum
from vc_fallback.routing.requests import Ask, Requests, nobody

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Announced:
    """A head that was announced: what data of its slot is measured against (Q8)."""

    slot: Slot
    root: Root
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class HeadAware(Sourced[T], Generic[T]):
    """A value that was measured against the latest head.

    :param stale: in which respect it is older than what was announced; empty where it is not (Q8).
    """

    stale: str = ""


class AttestingCalls(Requests):
    """`deadline` is a moment in loop time; the end of the slot without one, as that is the window of these duties.

    :raises NotFound: when all nodes say so.
    :raises AllNodesFailed, DeadlineExceeded, NoCandidates: see `vc_fallback.routing.outcomes`.
    """

    _highest_source: Epoch

    async def attestation_data(
        self,
        slot: Slot,
        committee_index: int = 0,
        *,
        head: Delivered | None = None,
        deadline: float | None = None,
    ) -> HeadAware[AttestationData]:
        """Return what attesters of a slot are to sign, from the node that announced the head (Q8).

        Where its answer is older than that head it is asked once more after 50 ms, then the next node is; where nobody
        has newer data it is taken, with `stale` saying so. Never taken are: data of an optimistic node; of another
        target epoch than that of the slot; and with a lower source epoch than data that was given before, as signing it
        might be a surround vote, and slashing protection would refuse it.

        :param committee_index: 0 from Electra on.
        :param head: a head of the head monitor's; the latest delivered one where it is not given.
        """
        desk = self._open()
        announced = self._announced(slot, head)
        refetched: set[NodeId] = set()

        async def ask(node: BeaconNode, timeout: float) -> Sourced[AttestationData]:
            asked = desk.clock.now()
            answer = await node.attestation_data(slot, committee_index, timeout=timeout)
            if announced is None or not self._older(answer, announced) or node.node_id in refetched:
                return answer
            refetched.add(node.node_id)
            left = timeout - (desk.clock.now() - asked) - desk.settings.refetch_after
            if left <= 0:
                return answer
            await anyio.sleep(desk.settings.refetch_after)
            again = await node.attestation_data(slot, committee_index, timeout=left)
            attempts = answer.provenance.attempts + again.provenance.attempts
            return Sourced(again.value, replace(again.provenance, attempts=attempts))

        def accept(answer: Sourced[AttestationData]) -> Doubt | None:
            flaw = self._unsignable(slot, answer)
            if flaw:
                return Doubt(flaw)
            stale = "" if announced is None else self._older(answer, announced)
            return Doubt(stale, usable=True) if stale else None

        found = await self._hedge(
            routes.ATTESTATION_DATA,
            Role.ATTESTATION,
            ask,
            end=self._end(None, slot, deadline),
            kind="attestation data",
            prefer=None if announced is None else announced.node_id,
            accept=accept,
        )
        return self._gave(found, announced)

    async def attestation_data_by_quorum(
        self,
        slot: Slot,
        committee_index: int = 0,
        *,
        threshold: int | None = None,
        deadline: float | None = None,
    ) -> Agreement[AttestationData]:
        """Return what attesters of a slot are to sign once so many nodes say the same (Q6).

        Nodes in the minority are asked again on their next head, or after a part of a slot, until the deadline. All
        primaries have a vote, and fallbacks where there are too few usable primaries for the threshold. It is never
        lowered (rule 9). Not counted are data that :meth:`attestation_data` would never take.

        :param threshold: the majority of the primaries with role `attestation` where it is not given.
        :raises QuorumNotReached: with the votes.
        :raises ValueError: for a threshold below 1.
        """
        desk = self._open()
        what = f"GET {routes.ATTESTATION_DATA.template}"
        plan = desk.planner.plan(Role.ATTESTATION)
        primaries = plan.of(Tier.PRIMARY)
        if threshold is None:
            threshold = majority(len(desk.candidates.current.of(Role.ATTESTATION, Tier.PRIMARY)) or 1)
        enough = len(plan.usable(primaries)) >= threshold
        nodes: Sequence[NodeId] = primaries if enough else plan.nodes
        if not nodes:
            raise nobody(what, plan)
        end = self._end(None, slot, deadline)

        async def op(node_id: NodeId) -> Sourced[AttestationData]:
            return await self._ask(
                lambda node, timeout: node.attestation_data(slot, committee_index, timeout=timeout), what, end, node_id
            )

        def accept(answer: Sourced[AttestationData]) -> Doubt | None:
            flaw = self._unsignable(slot, answer)
            return Doubt(flaw) if flaw else None

        agreed = await quorum(
            op,
            nodes,
            threshold=threshold,
            key=lambda answer: answer.value.to_ssz(),
            end=end,
            again=desk.part(desk.settings.quorum_again),
            runner=desk.runner,
            watch=desk.chain.head_news,
            accept=accept,
            what=what,
        )
        self._gave(agreed.answer, None)
        return agreed

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

    async def sync_message_root(
        self, slot: Slot, *, head: Delivered | None = None, deadline: float | None = None
    ) -> HeadAware[Root]:
        """Return the block root that members of the sync committee sign at a slot: that of the head.

        The node that announced the head is asked first (Q8); a head that is optimistic, or that its node does not know
        to be verified, never wins.

        :param head: as of :meth:`attestation_data`.
        """
        announced = self._announced(slot, head)

        async def ask(node: BeaconNode, timeout: float) -> Sourced[Root]:
            answer = await node.block_root("head", timeout=timeout)
            if answer.value.execution_optimistic:
                optimistic.add(node.node_id)
            return Sourced(answer.value.data, answer.provenance)

        optimistic: set[NodeId] = set()

        def accept(answer: Sourced[Root]) -> Doubt | None:
            if answer.node_id in optimistic:
                return Doubt("optimistic")
            stale = "" if announced is None else self._not_the_head(answer.node_id, answer.value, announced)
            return Doubt(stale, usable=True) if stale else None

        found = await self._hedge(
            routes.BLOCK_ROOT,
            Role.ATTESTATION,
            ask,
            end=self._end(None, slot, deadline),
            kind="head root",
            prefer=None if announced is None else announced.node_id,
            accept=accept,
        )
        stale = "" if announced is None else self._not_the_head(found.node_id, found.value, announced)
        return HeadAware(found.value, found.provenance, stale)

    async def payload_attestation_data(
        self, slot: Slot, *, deadline: float | None = None
    ) -> Sourced[PayloadAttestationData | None]:
        """Return what the payload timeliness committee of a slot is to sign; `None` where no node has seen a block.

        That a node has seen none never wins and never ends the race (Q4).
        """

        def accept(answer: Sourced[PayloadAttestationData | None]) -> Doubt | None:
            return Doubt("no block was seen", usable=True) if answer.value is None else None

        return await self._hedge(
            routes.PAYLOAD_ATTESTATION_DATA,
            Role.ATTESTATION,
            lambda node, t: node.payload_attestation_data(slot, timeout=t),
            end=self._end(None, slot, deadline),
            kind="payload attestation data",
            accept=accept,
        )

    # --- how it is done

    def _announced(self, slot: Slot, head: Delivered | None) -> Announced | None:
        """Return the head that data of a slot is measured against: one of a later slot says nothing of it."""
        latest = head if head is not None else self._open().chain.latest_head()
        if latest is None or latest.head.slot > slot:
            return None
        return Announced(latest.head.slot, latest.head.root, latest.head.node_id)

    def _older(self, answer: Sourced[AttestationData], announced: Announced) -> str:
        return self._not_the_head(answer.node_id, answer.value.beacon_block_root, announced)

    def _not_the_head(self, node_id: NodeId, root: Root, announced: Announced) -> str:
        """Say in which respect a root is older than a head; empty where it is that head's, or one that its node has
        announced since: it has seen more than was announced then."""
        if root == announced.root:
            return ""
        own = self._open().chain.head_of(node_id)
        if own is not None and own.root == root and own.slot >= announced.slot and own.source is HeadSource.STREAM:
            return ""
        return f"block {root_hex(root)[:10]}…, not the head {root_hex(announced.root)[:10]}… of slot {announced.slot}"

    def _unsignable(self, slot: Slot, answer: Sourced[AttestationData]) -> str:
        """Say why data is never to be taken; empty where nothing speaks against it (Q8)."""
        desk, data = self._open(), answer.value
        slots = desk.chain.slots
        if slots is not None and data.target.epoch != slots.chain.epoch_of(slot):
            return f"its target epoch is {data.target.epoch}, not that of slot {slot}"
        if data.source.epoch >= data.target.epoch > 0:
            return f"its source epoch {data.source.epoch} is not before its target epoch"
        if data.source.epoch < self._highest_source:
            return f"its source epoch {data.source.epoch} is below {self._highest_source}, which was given before"
        own = desk.chain.head_of(answer.node_id)
        if own is not None and own.optimistic and own.root == data.beacon_block_root:
            return "its head is optimistic"
        return ""

    def _gave(self, found: Sourced[AttestationData], announced: Announced | None) -> HeadAware[AttestationData]:
        self._highest_source = max(self._highest_source, Epoch(found.value.source.epoch))
        return HeadAware(found.value, found.provenance, "" if announced is None else self._older(found, announced))

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
        )


def _bits(aggregate: Opaque) -> float | None:
    """Count the bits of an aggregate; one that has none where they should be loses to all that have."""
    try:
        return float(aggregation_bit_count(aggregate))
    except ValueError:
        return None
