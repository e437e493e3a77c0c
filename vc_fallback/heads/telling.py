"""Tells the observers what the head cache and the streams do."""

from collections.abc import Callable, Mapping

from vc_fallback.base.buffered import Buffered
from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import (
    ChainReorged,
    DependentRootChanged,
    GateChanged,
    GenerationChanged,
    HeadDelivered,
    HeadHeld,
    HeadOutcome,
    NodeHeadSeen,
    NodeQuarantined,
    NodeReorgSeen,
    Observers,
    Started,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import NodeId
from vc_fallback.candidates import Candidates, ListChange
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.delivery import Decision, Delivered
from vc_fallback.decide.dependents import DependentRootChange
from vc_fallback.decide.gate import Gate
from vc_fallback.decide.ledger import NodeFacts
from vc_fallback.node.events import ReorgEvent


class Telling:
    """Makes signals of facts, stamped with the present generation.

    :param healthy: says whether a node's stream is to be relied on.
    """

    def __init__(
        self,
        observers: Observers,
        clock: Clock,
        candidates: Candidates,
        nodes: Mapping[NodeId, NodeFacts],
        healthy: Callable[[NodeId], bool | None],
    ) -> None:
        self._observers = observers
        self._clock = clock
        self._candidates = candidates
        self._nodes = nodes
        self._healthy = healthy
        self._told: dict[NodeId, bool | None] = {}
        self.reorgs: set[Buffered[ChainReorged]] = set()
        self.root_changes: set[Buffered[DependentRootChanged]] = set()

    def started(self, chain: ChainIdentity | None) -> None:
        """Tell which nodes there are, and which chain it is where that is known."""
        self._observers(
            Started(
                at=self._clock.now(),
                nodes=tuple((m.node_id, m.tier) for m in self._candidates.current.members.values()),
                genesis_time=chain.genesis_time if chain else None,
                slot_duration=chain.slot_duration if chain else None,
            )
        )

    def stream(
        self,
        node_id: NodeId,
        reason: StreamReason,
        detail: str = "",
        *,
        failures: int = 0,
        retry_in: float | None = None,
    ) -> None:
        """Tell a stream's state and verdict."""
        facts = self._nodes.get(node_id)
        if facts is not None:
            healthy = self._told[node_id] = self._healthy(node_id)
            self._stream(node_id, facts.stream.state, healthy, reason, detail, failures, retry_in)

    def stream_ended(
        self, node_id: NodeId, state: StreamState, reason: StreamReason, failures: int, retry_in: float | None
    ) -> None:
        """Tell that a stream has stopped, or failed by a mistake of ours; its node may have left the list."""
        self._stream(node_id, state, None, reason, "", failures, retry_in)

    def verdict_changed(self, node_id: NodeId) -> bool:
        """Whether the verdict is another than the one told last, with time alone."""
        return node_id in self._told and self._told[node_id] is not self._healthy(node_id)

    def forget(self, node_id: NodeId) -> None:
        """Forget what was told of a node that left."""
        self._told.pop(node_id, None)

    def head_seen(self, decision: Decision) -> None:
        """Tell what became of a node's head."""
        if not self._observers:
            return
        head = decision.head
        now = self._clock.now()
        self._observers(
            NodeHeadSeen(
                at=now,
                node_id=head.node_id,
                slot=head.slot,
                root=head.root,
                generation=self._candidates.generation,
                source=head.source,
                received=head.received,
                outcome=decision.outcome,
            )
        )
        if decision.outcome is HeadOutcome.TIER:
            self._observers(HeadHeld(now, head.node_id, head.slot, head.root))

    def reorg_seen(self, node_id: NodeId, event: ReorgEvent, received: float) -> None:
        """Tell that a node said that its head has left a branch."""
        if self._observers:
            self._observers(
                NodeReorgSeen(
                    at=self._clock.now(),
                    node_id=node_id,
                    slot=event.slot,
                    depth=event.depth,
                    old_root=event.old_head_block,
                    new_root=event.new_head_block,
                    epoch=event.epoch,
                    optimistic=event.optimistic,
                    generation=self._candidates.generation,
                    received=received,
                )
            )

    def delivered(self, delivered: Delivered, slots: SlotClock) -> None:
        """Tell that a head was delivered."""
        if not self._observers:
            return
        head = delivered.head
        self._observers(
            HeadDelivered(
                at=self._clock.now(),
                node_id=head.node_id,
                tier=self._candidates.current.members[head.node_id].tier,
                slot=head.slot,
                root=head.root,
                generation=head.generation,
                source=head.source,
                received=head.received,
                delay=slots.into_slot(head.received, head.slot),
                optimistic=head.optimistic,
                payload_status=head.payload_status,
                late=delivered.late,
                reorg=delivered.reorg,
                seen_by=delivered.seen_by,
            )
        )

    def list_changed(self, change: ListChange) -> None:
        """Tell that the list changed."""
        self._observers(
            GenerationChanged(
                at=self._clock.now(),
                generation=self._candidates.generation,
                added=change.added,
                removed=change.removed,
                changed=change.changed,
                kept=change.kept,
            )
        )

    def quarantined(self, node_id: NodeId, mismatch: str) -> None:
        """Tell that a node is on another chain, or fits again."""
        self._observers(NodeQuarantined(self._clock.now(), node_id, self._candidates.generation, mismatch))

    def gate(self, gate: Gate) -> None:
        """Tell that the tier gate changed."""
        self._observers(GateChanged(self._clock.now(), gate.open, gate.holder, gate.reason))

    def dependent_root(self, change: DependentRootChange) -> None:
        """Tell that a dependent root changed."""
        told = DependentRootChanged(self._clock.now(), change.epoch, change.old, change.new, change.nodes)
        for subscription in list(self.root_changes):
            subscription.tell(told)
        self._observers(told)

    def reorg(self, reorg: ChainReorged) -> None:
        """Tell that the delivered chain left a branch."""
        for subscription in list(self.reorgs):
            subscription.tell(reorg)
        self._observers(reorg)

    def _stream(
        self,
        node_id: NodeId,
        state: StreamState,
        healthy: bool | None,
        reason: StreamReason,
        detail: str,
        failures: int,
        retry_in: float | None,
    ) -> None:
        self._observers(
            StreamChanged(
                at=self._clock.now(),
                node_id=node_id,
                generation=self._candidates.generation,
                state=state,
                subscription_healthy=healthy,
                reason=reason,
                detail=detail,
                failures=failures,
                retry_in=retry_in,
            )
        )
