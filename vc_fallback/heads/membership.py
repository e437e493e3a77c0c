"""Who is in the list, and what is known of whom: joins, purges, and stamps with the generation (G1–G3)."""

from collections.abc import Iterable
from dataclasses import replace

from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import ChainReorged, DependentRootChanged
from vc_fallback.base.types import NodeId, Role
from vc_fallback.candidates import Candidates, ListChange, Member
from vc_fallback.decide.delivery import Delivered, Delivery
from vc_fallback.decide.ledger import Ledger, NodeFacts, StreamFacts
from vc_fallback.heads.telling import Telling


class Membership:
    """Makes facts and entries fit the list after every change of it."""

    def __init__(self, candidates: Candidates, ledger: Ledger, delivery: Delivery, tell: Telling, clock: Clock) -> None:
        self.followed: frozenset[NodeId] = frozenset()
        """The nodes that have role `events` by the last list."""
        self._candidates = candidates
        self._ledger = ledger
        self._delivery = delivery
        self._tell = tell
        self._clock = clock

    def member(self, node_id: NodeId, connection: object) -> Member | None:
        """Return the member that a stream or a poll speaks for; `None` when the list has it no more, or not so (G3)."""
        member = self._candidates.current.get(node_id)
        if member is None or not member.has(Role.EVENTS) or member.candidate.connection != connection:
            return None
        return member

    def start(self) -> None:
        """Begin with the list as it is."""
        self._join(self._candidates.current.members)

    def apply(self, change: ListChange) -> None:
        """Purge who left, and stamp who stays with the new generation; nothing is told of it here."""
        for node_id in (*change.removed, *change.changed):
            self._purge(node_id)
            self._ledger.nodes.pop(node_id, None)
        before = self.followed
        self._join((*change.added, *change.changed))
        for node_id in set(change.kept) & (before ^ self.followed):
            # It is not followed any more, or only from now on.
            self._purge(node_id)
            self._ledger.nodes[node_id].stream = StreamFacts(started=self._clock.now())
        generation = self._candidates.generation
        entries, delivered = self._delivery.entries, self._delivery.delivered
        for node_id, head in entries.items():
            entries[node_id] = replace(head, generation=generation)
        if delivered is not None and delivered.head.node_id in delivered.voters:
            self._delivery.delivered = replace(delivered, head=replace(delivered.head, generation=generation))

    def readable(self, delivered: Delivered) -> Delivered | None:
        """Return a delivered head stamped with the present generation; `None` when its node left or is quarantined.

        A node whose connection settings changed has left, and come again (C8, G3, H15).
        """
        head, generation = delivered.head, self._candidates.generation
        facts = self._ledger.nodes.get(head.node_id)
        if facts is None or facts.joined > head.generation or facts.quarantined:
            return None
        if head.generation == generation:
            return delivered
        return replace(delivered, head=replace(head, generation=generation))

    def readable_reorg(self, reorg: ChainReorged) -> ChainReorged | None:
        """Return a reorg as it is to be told now: of the nodes that are in the list; `None` where none of them is."""
        if reorg.generation == self._candidates.generation:
            return reorg
        nodes = self.listed(reorg.nodes)
        if not nodes:
            return None
        return replace(
            reorg,
            node_id=reorg.node_id if reorg.node_id in nodes else nodes[0],
            generation=self._candidates.generation,
            reported_by=self.listed(reorg.reported_by),
            nodes=nodes,
        )

    def readable_change(self, change: DependentRootChanged) -> DependentRootChanged | None:
        """Return a change of a dependent root as it is to be told now, by those in the list; `None` where none is."""
        nodes = self.listed(change.nodes)
        return change if nodes == change.nodes else replace(change, nodes=nodes) if nodes else None

    def listed(self, nodes: Iterable[NodeId]) -> tuple[NodeId, ...]:
        """Return those nodes that are in the list, and on our chain."""
        known = self._ledger.nodes
        return tuple(node_id for node_id in nodes if node_id in known and not known[node_id].quarantined)

    def _join(self, nodes: Iterable[NodeId]) -> None:
        now = self._clock.now()
        for node_id in nodes:
            self._ledger.nodes[node_id] = NodeFacts(StreamFacts(started=now), joined=self._candidates.generation)
        self.followed = frozenset(member.node_id for member in self._candidates.current.of(Role.EVENTS))

    def _purge(self, node_id: NodeId) -> None:
        # What waited to be told of it is not told any more (G3).
        self._delivery.leave(node_id)
        self._tell.forget(node_id)
