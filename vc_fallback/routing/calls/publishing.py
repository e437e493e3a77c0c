"""Publishing what was signed: to all nodes at once, or as the configuration wants it (Q5, Q9, Q12, rule 8)."""

# Functions are made here at every call: their annotations are not to be evaluated each time.
from __future__ import annotations

from collections.abc import Awaitable, Sequence

from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node import routes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.endpoints.proposals import BroadcastValidation
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.broadcast_result import BroadcastResult
from vc_fallback.routing.publishing import Publishing


class PublishingCalls(Publishing):
    """Every node with role `submission`, of both tiers, is sent the same bytes; the call returns as soon as every item
    is accepted by one, and what is still under way fills in the result (:class:`~vc_fallback.BroadcastResult`). So what
    one node refuses of a list has gone to all others too, and is accepted where any of them takes it: nothing is sent
    again for it (Q12, case 60).

    What none of them takes, or says anything of for an eighth of a slot, goes to nodes that are to be left alone (429,
    401 …) as well, and where none says anything of it at all, to those without the role. What the configuration
    does not want to be broadcast goes to one node after the other, best first, until one takes it.

    Values are :class:`~vc_fallback.Encodings`: each node gets the form that it takes. `deadline` is when the caller
    gets an error, in loop time; the end of the present slot without one, and half a slot from the call for blocks.
    Sends go on until then at least.

    A result that is `uncertain` is no success: nodes have it, and none took it. Nor is `broadcast`: a node sent the
    block on and did not import it. A later head says what became of it (cases 53, 62).

    :raises NotPublished: when no node took any item or has it.
    :raises NoCandidates, DeadlineExceeded: nothing was sent.
    :raises ValueError: for an empty list, and what else can be seen to be wrong before anything is sent.
    """

    async def publish_attestations(
        self, attestations: Sequence[Encodings], version: str, *, deadline: float | None = None
    ) -> BroadcastResult:
        """Publish attestations of one fork; see :meth:`vc_fallback.BeaconNode.publish_attestations`."""
        return await self._publish(
            routes.PUBLISH_ATTESTATIONS,
            "attestations",
            lambda node, t: node.publish_attestations(attestations, version, timeout=t),
            _count(attestations),
            self._slot_end(deadline),
        )

    async def publish_aggregates(
        self, aggregates: Sequence[Encodings], version: str, *, deadline: float | None = None
    ) -> BroadcastResult:
        """Publish `SignedAggregateAndProof`s of one fork."""
        return await self._publish(
            routes.PUBLISH_AGGREGATES,
            "attestations",
            lambda node, t: node.publish_aggregates(aggregates, version, timeout=t),
            _count(aggregates),
            self._slot_end(deadline),
        )

    async def publish_payload_attestations(
        self, messages: Sequence[Encodings], version: str, *, deadline: float | None = None
    ) -> BroadcastResult:
        """Publish `PayloadAttestationMessage`s (Gloas)."""
        return await self._publish(
            routes.PUBLISH_PAYLOAD_ATTESTATIONS,
            "attestations",
            lambda node, t: node.publish_payload_attestations(messages, version, timeout=t),
            _count(messages),
            self._slot_end(deadline),
        )

    async def publish_sync_committee_messages(
        self, messages: Sequence[Encodings], *, deadline: float | None = None
    ) -> BroadcastResult:
        """Publish `SyncCommitteeMessage`s."""
        return await self._publish(
            routes.PUBLISH_SYNC_MESSAGES,
            "sync-committee",
            lambda node, t: node.publish_sync_committee_messages(messages, timeout=t),
            _count(messages),
            self._slot_end(deadline),
        )

    async def publish_contributions(
        self, contributions: Sequence[Encodings], *, deadline: float | None = None
    ) -> BroadcastResult:
        """Publish `SignedContributionAndProof`s."""
        return await self._publish(
            routes.PUBLISH_CONTRIBUTIONS,
            "sync-committee",
            lambda node, t: node.publish_contributions(contributions, timeout=t),
            _count(contributions),
            self._slot_end(deadline),
        )

    async def publish_voluntary_exit(
        self, voluntary_exit: Encodings, *, deadline: float | None = None
    ) -> BroadcastResult:
        """Publish a `SignedVoluntaryExit`."""
        return await self._publish(
            routes.PUBLISH_EXIT,
            None,
            lambda node, t: node.publish_voluntary_exit(voluntary_exit, timeout=t),
            1,
            self._slot_end(deadline),
        )

    async def publish_bls_to_execution_changes(
        self, changes: Sequence[Encodings], *, deadline: float | None = None
    ) -> BroadcastResult:
        """Publish `SignedBLSToExecutionChange`s."""
        return await self._publish(
            routes.PUBLISH_BLS_CHANGES,
            None,
            lambda node, t: node.publish_bls_to_execution_changes(changes, timeout=t),
            _count(changes),
            self._slot_end(deadline),
        )

    async def publish_attester_slashing(
        self, slashing: Encodings, version: str, *, deadline: float | None = None
    ) -> BroadcastResult:
        """Publish an `AttesterSlashing`."""
        return await self._publish(
            routes.PUBLISH_ATTESTER_SLASHING,
            None,
            lambda node, t: node.publish_attester_slashing(slashing, version, timeout=t),
            1,
            self._slot_end(deadline),
        )

    async def publish_proposer_slashing(self, slashing: Encodings, *, deadline: float | None = None) -> BroadcastResult:
        """Publish a `ProposerSlashing`."""
        return await self._publish(
            routes.PUBLISH_PROPOSER_SLASHING,
            None,
            lambda node, t: node.publish_proposer_slashing(slashing, timeout=t),
            1,
            self._slot_end(deadline),
        )

    async def publish_block(
        self,
        block: Encodings,
        version: str,
        *,
        broadcast_validation: BroadcastValidation | None = None,
        deadline: float | None = None,
    ) -> BroadcastResult:
        """Publish a signed block, to all nodes at once: equivocation is impossible, it is the same block."""
        return await self._publish(
            routes.PUBLISH_BLOCK,
            "blocks",
            lambda node, t: node.publish_block(block, version, broadcast_validation=broadcast_validation, timeout=t),
            1,
            self._block_end(deadline),
        )

    async def publish_blinded_block(
        self,
        block: Encodings,
        version: str,
        *,
        producer: NodeId,
        broadcast_validation: BroadcastValidation | None = None,
        deadline: float | None = None,
    ) -> BroadcastResult:
        """Publish a signed blinded block through the node that made it, whose builder has the payload (Q9).

        Others are given it only where that node cannot be reached, has left the list, or is silent for 1/8 of a slot;
        never because it refuses it.

        :param producer: the node that made it, as its provenance names it.
        """

        def publish(node: BeaconNode, t: float) -> Awaitable[Sourced[Publication]]:
            return node.publish_blinded_block(block, version, broadcast_validation=broadcast_validation, timeout=t)

        desk = self._open()
        return await self._publish_through(
            routes.PUBLISH_BLINDED_BLOCK, publish, producer, desk.part(desk.settings.producer_silence), deadline
        )

    async def publish_execution_payload_envelope(
        self,
        envelope: Encodings,
        version: str,
        *,
        producer: NodeId,
        blob_data_included: bool,
        broadcast_validation: BroadcastValidation | None = None,
        deadline: float | None = None,
    ) -> BroadcastResult:
        """Publish a signed envelope, once its block was accepted by a node (Gloas, Q9).

        With its blobs any node can take it, and all are given it; without them only the node that made the block.

        :param producer: the node that made the block.
        """

        def publish(node: BeaconNode, t: float) -> Awaitable[Sourced[Publication]]:
            return node.publish_execution_payload_envelope(
                envelope,
                version,
                blob_data_included=blob_data_included,
                broadcast_validation=broadcast_validation,
                timeout=t,
            )

        if blob_data_included:
            return await self._publish(routes.PUBLISH_ENVELOPE, "blocks", publish, 1, self._block_end(deadline))
        return await self._publish_through(routes.PUBLISH_ENVELOPE, publish, producer, None, deadline)


def _count(items: Sequence[Encodings]) -> int:
    if not items:
        raise ValueError("an empty list: there is nothing to send")
    try:
        return len(items)
    except TypeError:
        raise TypeError("items are given as a list of Encodings") from None
