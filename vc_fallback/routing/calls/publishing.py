"""Publishing what was signed: to all nodes at once, or as the configuration wants it (Q5, Q9, Q12, rule 8)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from vc_fallback.base.types import NodeId, Role, Slot, Sourced
from vc_fallback.node import routes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.endpoints.proposals import BroadcastValidation
from vc_fallback.node.failures import Closed, Unreachable
from vc_fallback.node.routes import Route
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.broadcast import Begun, Later, Send, broadcast
from vc_fallback.routing.broadcast_result import BroadcastResult
from vc_fallback.routing.delivery import Delivery, Sending
from vc_fallback.routing.outcomes import NoCandidates
from vc_fallback.routing.requests import Requests, nobody
from vc_fallback.settings import Topic

Publish = Callable[[BeaconNode, float], Awaitable[Sourced[Publication]] | Awaitable[Sourced[None]]]
"""Calls a publishing method of one node, within so many seconds."""


class PublishingCalls(Requests):
    """Every node with role `submission`, of both tiers, is sent the same bytes; the call returns as soon as every item
    is accepted by one, and what is still under way fills in the result (:class:`~vc_fallback.BroadcastResult`). Nodes
    that are to be left alone (429, 401 …) are not sent to while others are there.

    Values are :class:`~vc_fallback.Encodings`: each node gets the form that it takes. `deadline` is a moment in loop
    time; the end of the present slot without one, and half a slot from the call for blocks.

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
            deadline,
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
            deadline,
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
            deadline,
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
            deadline,
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
            deadline,
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
            deadline,
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
            deadline,
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
            deadline,
        )

    async def publish_proposer_slashing(self, slashing: Encodings, *, deadline: float | None = None) -> BroadcastResult:
        """Publish a `ProposerSlashing`."""
        return await self._publish(
            routes.PUBLISH_PROPOSER_SLASHING,
            None,
            lambda node, t: node.publish_proposer_slashing(slashing, timeout=t),
            1,
            deadline,
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

        Others are given it only where that node cannot be reached, has left the list, or is silent for 1/8 of a slot.

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

    # --- how it is done

    def _block_end(self, deadline: float | None) -> float:
        return self._end(self._open().settings.block_end, None, deadline)

    def _slot_end(self, deadline: float | None) -> float:
        """Return the end of the present slot; in its last part that of the next: nothing is sent for no time at all."""
        desk = self._open()
        slots, now = desk.chain.slots, desk.clock.now()
        if deadline is not None or slots is None:
            return self._end(1.0, None, deadline)
        end = slots.start_of(Slot(slots.slot_at(now) + 1))
        return end if end - now >= slots.duration / 8 else end + slots.duration

    def _send(self, route: Route, publish: Publish, end: float) -> Send:
        """Return what sends to one node; the client says when it begins to write (Q5)."""
        what = f"{route.method} {route.template}"

        async def send(node_id: NodeId, begun: Begun) -> Sourced[Any]:
            async def telling(node: BeaconNode, timeout: float) -> Sourced[Any]:
                return await publish(node.telling(begun), timeout)

            return await self._ask(telling, what, end, node_id)

        return send

    async def _publish(
        self, route: Route, topic: Topic | None, publish: Publish, items: int, deadline: float | None
    ) -> BroadcastResult:
        """Send to all nodes, or to one after the other where the configuration wants that of the topic."""
        desk = self._open()
        end = self._slot_end(deadline)
        what = f"{route.method} {route.template}"
        plan = desk.planner.plan(Role.SUBMISSION)
        nodes = [node_id for node_id in plan.nodes if node_id not in plan.cooling] or [*plan.nodes]
        if not nodes:
            raise nobody(what, plan)
        later = None
        if topic is not None and topic not in desk.settings.broadcast:
            nodes, others = nodes[:1], nodes[1:]
            later = Later(tuple((node_id,) for node_id in others), _not_taken, desk.part(desk.settings.duties_next))
        return await broadcast(
            self._send(route, publish, end), nodes, end=end, items=items, later=later, runner=desk.runner, what=what
        )

    async def _publish_through(
        self, route: Route, publish: Publish, producer: NodeId, silence: float | None, deadline: float | None
    ) -> BroadcastResult:
        """Send through one node; to the others where that cannot be reached, or is silent for `silence` seconds.

        :param silence: `None`: nobody else can do anything with it.
        """
        desk = self._open()
        end = self._block_end(deadline)
        what = f"{route.method} {route.template}"
        plan = desk.planner.plan(Role.SUBMISSION)
        listed = producer in desk.candidates.current
        later = None
        if silence is not None:
            others = tuple(node_id for node_id in plan.nodes if node_id != producer)
            later = Later((others,) if others else (), _unreachable, silence)
        elif not listed:
            raise NoCandidates(what, f"only {producer}, which made the block, can take it, and it has left the list")
        nodes: Sequence[NodeId] = [producer] if listed else plan.nodes
        if not nodes:
            raise nobody(what, plan)
        return await broadcast(
            self._send(route, publish, end),
            nodes,
            end=end,
            later=later if listed else None,
            runner=desk.runner,
            what=what,
        )


def _count(items: Sequence[Encodings]) -> int:
    if not items:
        raise ValueError("an empty list: there is nothing to send")
    return len(items)


def _not_taken(delivery: Delivery) -> bool:
    return delivery.state is not Sending.ACCEPTED


def _unreachable(delivery: Delivery) -> bool:
    return isinstance(delivery.error, (Unreachable, Closed))
