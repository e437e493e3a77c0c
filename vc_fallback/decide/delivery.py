"""The shared head cache and which head is delivered when (C1–C4, H7, H11–H13)."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from vc_fallback.base.signals import HeadOutcome
from vc_fallback.base.types import HeadSource, NodeId, PayloadStatus, Root, Slot
from vc_fallback.chain import SlotClock
from vc_fallback.decide.freshness import AHEAD, is_current
from vc_fallback.decide.ledger import NodeHead, Standing
from vc_fallback.decide.past import Past

SETTLE = 1 / 24
"""Part of a slot in which an old head waits for a newer one of the same burst (H13)."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A head as it is delivered: the node's own, with what was decided about it.

    `voters` grows as later nodes show the same head; the first one is the node that brought the block first.
    """

    head: NodeHead
    late: bool
    reorg: bool
    voters: dict[NodeId, None] = field(compare=False, default_factory=dict)

    @property
    def slot(self) -> Slot:
        """The head's slot."""
        return self.head.slot

    @property
    def root(self) -> Root:
        """The head's block root, 32 bytes."""
        return self.head.root

    @property
    def node_id(self) -> NodeId:
        """The node it was delivered from."""
        return self.head.node_id

    @property
    def seen_by(self) -> tuple[NodeId, ...]:
        """The nodes that have shown this head so far."""
        return tuple(self.voters)


class Decision(NamedTuple):
    """What became of a head; `delivered` is set when it was delivered."""

    head: NodeHead
    outcome: HeadOutcome
    delivered: Delivered | None = None


class Delivery:
    """Entries of all nodes, the delivered head, and the rules between them.

    :param standing: says whether a node's heads may be delivered.
    :param oldest: heads so many slots behind the clock are kept and not delivered (H13).
    :param deliver_optimistic: whether optimistic heads count as usable (H12).
    """

    def __init__(
        self, standing: Callable[[NodeId], Standing], *, oldest: int = 32, deliver_optimistic: bool = False
    ) -> None:
        self.entries: dict[NodeId, NodeHead] = {}
        self.usable: dict[NodeId, NodeHead] = {}
        """Each node's last head that was not optimistic (C5)."""
        self.delivered: Delivered | None = None
        self._standing = standing
        self._oldest = oldest
        self._deliver_optimistic = deliver_optimistic
        self._pending: dict[NodeId, float] = {}
        """When the burst is over whose newest head is the node's entry."""
        self._stood: dict[NodeId, NodeHead] = {}
        """Each node's last head that C3 was applied to: heads withheld and heads within a burst are no step of it."""
        self._past = Past()
        self._said: dict[NodeId, PayloadStatus] = {}

    def offer(self, head: NodeHead, now: float, slots: SlotClock | None) -> list[Decision]:
        """Take a head that a node shows, and say what becomes of it and of heads that it ends the wait of.

        An old head from a stream may be the first of a burst: nothing is said of it before :meth:`settle` or a newer
        head.

        :param slots: the clock of the pinned chain, `None` while it is unknown: heads are kept, none is delivered.
        """
        node_id = head.node_id
        standing = self._standing(node_id)
        if standing is Standing.QUARANTINED:
            return [Decision(head, HeadOutcome.WRONG_CHAIN)]
        wall = slots.slot_at(now) if slots is not None else None
        if wall is not None and head.slot > _furthest(wall):
            return [Decision(head, HeadOutcome.FUTURE)]
        decisions = self._end_wait(node_id)
        previous = self.entries.get(node_id)
        if head.same_block(previous) and previous is not None:
            head = _merged(previous, head)
        self.entries[node_id] = head
        if self._usable(head):
            self.usable[node_id] = head
            self._past.show(node_id, head.slot, head.root)
        outcome = HeadOutcome.BEHIND if wall is None or wall < 0 else self._weigh(head, standing, wall)
        if outcome is HeadOutcome.DELIVERED and slots is not None:
            if not (head.source is HeadSource.POLL or is_current(head.slot, now, slots) or self._is_delivered(head)):
                self._pending[node_id] = now + SETTLE * slots.duration
                return decisions
            self._stood[node_id] = head
            return [*decisions, self._deliver(head, slots)]
        if slots is None or standing is not Standing.ELIGIBLE:
            self._stood.pop(node_id, None)
        elif outcome is not HeadOutcome.OPTIMISTIC:
            self._stood[node_id] = head
        return [*decisions, Decision(head, outcome)]

    @property
    def next_settle(self) -> float | None:
        """The moment in loop time at which :meth:`settle` has something to do, or `None`."""
        return min(self._pending.values(), default=None)

    def settle(self, now: float, slots: SlotClock) -> list[Decision]:
        """Deliver the old heads whose burst is over, where they are still news."""
        decisions = []
        for node_id, due in list(self._pending.items()):
            if now < due:
                continue
            del self._pending[node_id]
            # The entry, not a copy of it from then: a change of the list has stamped it anew (G3).
            head = self.entries[node_id]
            outcome = self._weigh(head, self._standing(node_id), slots.slot_at(now))
            self._stood[node_id] = head
            delivered = outcome is HeadOutcome.DELIVERED
            decisions.append(self._deliver(head, slots) if delivered else Decision(head, outcome))
        return decisions

    def reconsider(self, now: float, slots: SlotClock | None) -> Delivered | None:
        """Deliver the best eligible entry where it is news: after a change of standing, chain or list."""
        if slots is None:
            return None
        wall = slots.slot_at(now)
        furthest = _furthest(wall)
        # Kept while the chain was unknown, or before the clock was set back: refused now (H13).
        for node_id in [node_id for node_id, head in self.entries.items() if head.slot > furthest]:
            self.forget(node_id)
        if wall < 0:
            return None
        newest: list[NodeHead] = []
        for node_id, head in self.entries.items():
            if node_id in self._pending or head.slot < wall - self._oldest or self._turned_from(head, wall, slots):
                continue
            if not self._counts(node_id, head):
                continue
            self._stood[node_id] = head
            if not newest or head.slot > newest[0].slot:
                newest = [head]
            elif head.slot == newest[0].slot:
                newest.append(head)
        if newest:
            best = newest[0]
            if any(head.root != best.root for head in newest):
                votes = self.votes(best.slot)
                best = max(newest, key=lambda head: len(votes.get(head.root, ())))
            if self._beats_delivered(best):
                return self._deliver(best, slots).delivered
        # Nodes that have become eligible since they showed the delivered head vote now.
        same = [head for head in newest if self._is_delivered(head)]
        news = [head for head in same if self._vote(head) is HeadOutcome.DELIVERED]
        return self._deliver(news[0], slots).delivered if news else None

    def forget(self, node_id: NodeId) -> list[Decision]:
        """Drop a node's entry and what waits of it (H8)."""
        decisions = self._end_wait(node_id)
        self.entries.pop(node_id, None)
        self._stood.pop(node_id, None)
        self.usable.pop(node_id, None)
        return decisions

    def leave(self, node_id: NodeId) -> list[Decision]:
        """Drop everything of a node that left the list; the delivered head passes to another node that showed it."""
        decisions = self.forget(node_id)
        self._past.forget(node_id)
        delivered = self.delivered
        if delivered is not None:
            delivered.voters.pop(node_id, None)
            if delivered.head.node_id == node_id and delivered.voters:
                heirs = [n for n in delivered.voters if delivered.head.same_block(self.entries.get(n))]
                heirs.sort(key=lambda n: self._standing(n) is not Standing.ELIGIBLE)
                heir = heirs[0] if heirs else None
                if heir is not None:
                    head = replace(self.entries[heir], payload_status=delivered.head.payload_status)
                else:
                    head = replace(delivered.head, node_id=next(iter(delivered.voters)))
                self.delivered = replace(delivered, head=head)
        return decisions

    def votes(self, slot: Slot) -> dict[Root, tuple[NodeId, ...]]:
        """Say which eligible nodes stand behind which root at a slot, by their present heads (C4)."""
        votes: dict[Root, list[NodeId]] = {}
        for node_id, head in self.entries.items():
            if head.slot == slot and self._counts(node_id, head):
                votes.setdefault(head.root, []).append(node_id)
        return {root: tuple(nodes) for root, nodes in votes.items()}

    def is_latest(self, slot: Slot) -> bool:
        """Whether a slot is at or above the slot of every eligible entry (C2)."""
        return all(slot >= head.slot for node_id, head in self.entries.items() if self._counts(node_id, head))

    def newest_elsewhere(self, node_id: NodeId) -> Slot | None:
        """Return the newest slot that any other node shows, whatever its standing short of quarantine (H5)."""
        return self.newest_others()(node_id)

    def newest_others(self) -> Callable[[NodeId], Slot | None]:
        """Return :meth:`newest_elsewhere` for every node as of now: all nodes are looked at once, not once for each."""
        shown = [
            (head.slot, node_id)
            for node_id, head in self.entries.items()
            if self._standing(node_id) is not Standing.QUARANTINED
        ]
        best = sorted(shown, reverse=True)[:2]
        newest, whose = best[0] if best else (None, None)
        second = best[1][0] if len(best) > 1 else None
        return lambda node_id: second if node_id == whose else newest

    def _usable(self, head: NodeHead) -> bool:
        return self._deliver_optimistic or not head.optimistic

    def _counts(self, node_id: NodeId, head: NodeHead) -> bool:
        return self._usable(head) and self._standing(node_id) is Standing.ELIGIBLE

    def _is_delivered(self, head: NodeHead) -> bool:
        return self.delivered is not None and head.same_block(self.delivered.head)

    def _beats_delivered(self, head: NodeHead) -> bool:
        """Whether a head is news by its slot, or by more nodes behind it at the same slot."""
        if self.delivered is None:
            return True
        current = self.delivered.head
        if head.slot != current.slot:
            return head.slot > current.slot
        return head.root != current.root and self._outvotes(head, current)

    def _outvotes(self, head: NodeHead, current: NodeHead) -> bool:
        votes = self.votes(head.slot)
        return len(votes.get(head.root, ())) > len(votes.get(current.root, ()))

    def _turned_from(self, head: NodeHead, wall: Slot, slots: SlotClock) -> bool:
        """Whether a reorg led from this block to the delivered one, where a node still stands.

        A slot later nobody is slow to follow: then it takes as many nodes as stand at this block.
        """
        if self.delivered is None or head.slot <= self.delivered.slot or not self._past.holds(head.slot, head.root):
            return False
        backers = len(self.votes(head.slot).get(head.root, ()))
        enough = backers if slots.slot_at(self.delivered.head.received) < wall else 1
        return self._standing_there >= enough

    def _repeated(self, head: NodeHead) -> bool:
        """Whether a node only comes to where the delivered chain was before, while another stands at its head."""
        return self._past.repeats(head.node_id, head.slot, head.root) and self._standing_there > 0

    @property
    def _standing_there(self) -> int:
        """How many eligible nodes stand at the delivered head."""
        return len(self.votes(self.delivered.slot).get(self.delivered.root, ())) if self.delivered is not None else 0

    def _weigh(self, head: NodeHead, standing: Standing, wall: Slot) -> HeadOutcome:
        """Say what becomes of a node's entry by its standing, its age and the delivered head."""
        if standing is Standing.QUARANTINED:
            return HeadOutcome.WRONG_CHAIN
        if standing is Standing.UNVERIFIED:
            return HeadOutcome.BEHIND
        if not self._usable(head):
            return HeadOutcome.OPTIMISTIC
        if head.slot < wall - self._oldest:
            return HeadOutcome.OLD
        if standing is Standing.HELD:
            return self._second(head)
        return self._outcome(head, self._stood.get(head.node_id))

    def _second(self, head: NodeHead) -> HeadOutcome:
        """Say what becomes of a fallback's head while a primary holds the gate: only what is news is held back (C5).

        Where the block is delivered already it has one more node behind it (C3).
        """
        if self.delivered is None or not self._is_delivered(head):
            return HeadOutcome.TIER if self._beats_delivered(head) else HeadOutcome.BEHIND
        self.delivered.voters[head.node_id] = None
        current = self.delivered.head.payload_status
        known = head.payload_status in (None, current) or current is PayloadStatus.FULL
        return HeadOutcome.DUPLICATE if known else HeadOutcome.TIER

    def _outcome(self, head: NodeHead, previous: NodeHead | None) -> HeadOutcome:
        """Apply C3 and C4 to the head of an eligible node, whose entry it is already."""
        if self.delivered is None:
            return HeadOutcome.DELIVERED
        current = self.delivered.head
        if head.same_block(current):
            return self._vote(head)
        if self._repeated(head):
            return HeadOutcome.BEHIND
        if self._beats_delivered(head):
            return HeadOutcome.DELIVERED
        # At the same slot only the node that the delivered head came from is followed to another branch (C4); at
        # another slot any node that moves on from the delivered head: a reorg, also back (A → B → A is three).
        same_slot = head.slot == current.slot
        followed = head.node_id == current.node_id if same_slot else current.same_block(previous)
        return HeadOutcome.DELIVERED if followed else HeadOutcome.BEHIND

    def _vote(self, head: NodeHead) -> HeadOutcome:
        """Count a node behind the delivered head; its payload status may be news (H11)."""
        assert self.delivered is not None  # noqa: S101 - narrows the type for the checker
        self.delivered.voters[head.node_id] = None
        if head.payload_status is None:
            return HeadOutcome.DUPLICATE
        self._said[head.node_id] = head.payload_status
        current = self.delivered.head.payload_status
        return HeadOutcome.DUPLICATE if self._payload_status() == current else HeadOutcome.DELIVERED

    def _payload_status(self) -> PayloadStatus | None:
        """Return the delivered block's status: full while one of those that said full has not said empty since."""
        said = self._said.values()
        if PayloadStatus.FULL in said:
            return PayloadStatus.FULL
        return PayloadStatus.EMPTY if said else None

    def _deliver(self, head: NodeHead, slots: SlotClock) -> Decision:
        reorg = False
        voters: dict[NodeId, None] = {head.node_id: None}
        if self._is_delivered(head) and self.delivered is not None:
            # Only the payload status is news, and it comes from this node.
            voters = self.delivered.voters
            reorg = self.delivered.reorg
        else:
            reorg = self.delivered is not None and head.slot <= self.delivered.head.slot
            before = self.delivered
            if before is not None and head.slot == before.slot and head.node_id != before.node_id:
                # It was outvoted (C4), and nobody has left it: when more nodes come there that is no lag.
                self._past.take_back(before.slot, before.root)
            self._past.deliver(head.slot, head.root)
            self._said = {} if head.payload_status is None else {head.node_id: head.payload_status}
            for node_id, entry in self.entries.items():
                if entry.slot != head.slot or entry.root != head.root or not self._usable(entry):
                    continue
                standing = self._standing(node_id)
                if standing in (Standing.ELIGIBLE, Standing.HELD):
                    voters[node_id] = None
                if standing is Standing.ELIGIBLE and entry.payload_status is not None:
                    self._said[node_id] = entry.payload_status
        status = self._payload_status()
        if head.payload_status is not status:
            head = replace(head, payload_status=status)
        late = head.received >= slots.start_of(Slot(head.slot + 1))
        self.delivered = Delivered(head=head, late=late, reorg=reorg, voters=voters)
        return Decision(head, HeadOutcome.DELIVERED, self.delivered)

    def _end_wait(self, node_id: NodeId) -> list[Decision]:
        if self._pending.pop(node_id, None) is None:
            return []
        return [Decision(self.entries[node_id], HeadOutcome.BEHIND)]


def _furthest(wall: Slot) -> Slot:
    """Return the furthest slot that a head may have (H13); before genesis that is the genesis block's."""
    return Slot(max(wall, -AHEAD) + AHEAD)


def _merged(previous: NodeHead, head: NodeHead) -> NodeHead:
    """Keep what an earlier showing of the same block knew and this one leaves unknown (a poll, the other topic)."""
    return replace(
        head,
        payload_status=head.payload_status or previous.payload_status,
        optimistic=previous.optimistic if head.optimistic is None else head.optimistic,
        current_epoch_dependent_root=head.current_epoch_dependent_root or previous.current_epoch_dependent_root,
        next_epoch_dependent_root=head.next_epoch_dependent_root or previous.next_epoch_dependent_root,
    )
