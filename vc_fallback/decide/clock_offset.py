"""Whose clock is off: a node's, or our own (N8)."""

from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from vc_fallback.base.types import NodeId, Slot

WATCHED = 16
"""Slots that are looked back on (N8)."""

LATE_SLOTS = 8
"""So many late ones of them are no chance (N8)."""

FEWEST = 3
"""Nodes that show a head in a slot before one of them is late against the median."""

_MOST_OPEN = 4


@dataclass(frozen=True, slots=True)
class ClockPolicy:
    """Limits in seconds; the defaults are those of 12 s slots (N8)."""

    slot_duration: float = 12.0
    warn: float = 0.25
    """A head so long before its slot warns; so does a node that is so long after the median, slot after slot."""
    lower: float = 0.5
    """A head so long before its slot lowers its node's rank. Honest clocks differ by less: gossip of the consensus
    specification allows for 500 ms."""
    due: float = 4.0
    """Seconds into the slot at which attestations are due: nodes that all have their heads later point at us."""


@dataclass(frozen=True, slots=True)
class ClockVerdict:
    """What is known of a node's clock. Texts are empty where there is nothing to say.

    :param offset: what is proved of a clock, in seconds: how long before its slot the earliest head came, below 0; 0
        where all came after the start of theirs, and `None` before any came.
    :param warning: what is odd of it.
    :param lowers: why its rank is lowered.
    """

    offset: float | None = None
    warning: str = ""
    lowers: str = ""


_NOTHING = ClockVerdict()


class _Seen(NamedTuple):
    offset: float
    """Seconds from the start of the slot to the head."""
    late: bool
    """Later than the median of the nodes by more than the limit."""
    own: float
    """The offset without what all nodes were early by."""


class _Slot(NamedTuple):
    early: float
    """By how many seconds all nodes were early; 0 where not all were."""
    late: bool
    """Whether all nodes were late."""


@dataclass(slots=True)
class _Node:
    seen: deque[_Seen] = field(default_factory=lambda: deque(maxlen=WATCHED))
    future: Slot | None = None
    """The latest slot in which it said that a slot of ours is yet to come."""
    verdict: ClockVerdict | None = None
    """What is known of it, once that was asked; every head asks."""


class ClockWatch:
    """Compares when heads come with when their slots begin, over 16 slots of each node: 2.1 kB, by measurement.

    A head before its slot proves our clock slow or the node's fast. By as much as the heads of all nodes came early in
    that slot, and they are two or more, it is ours that is in doubt; what one was earlier than that is the node's own.
    """

    def __init__(self, policy: ClockPolicy) -> None:
        self.policy = policy
        self._nodes: dict[NodeId, _Node] = {}
        self._open: dict[Slot, dict[NodeId, float]] = {}
        self._slots: deque[_Slot] = deque(maxlen=WATCHED)
        self._latest = Slot(0)
        self._odd: set[NodeId | None] = set()

    def head(self, node_id: NodeId, slot: Slot, offset: float) -> None:
        """Take a head that a node's stream announced; polled ones say nothing of when they came to be.

        Only the first one of a slot counts, and none that came a slot after its own had begun or later: bursts of old
        heads say nothing of a clock.

        :param offset: seconds from the start of the head's slot to the arrival; negative before it.
        """
        if offset >= self.policy.slot_duration:
            return
        self._open.setdefault(slot, {}).setdefault(node_id, offset)
        if len(self._open) > _MOST_OPEN:
            del self._open[min(self._open)]

    def future_slot(self, node_id: NodeId, slot: Slot) -> None:
        """Note that a node answered a request of the present slot by "that slot is in the future"."""
        node = self._nodes.setdefault(node_id, _Node())
        node.future, node.verdict = slot, None

    def forget(self, node_id: NodeId) -> None:
        """Forget a node that left or is on another chain."""
        self._nodes.pop(node_id, None)
        for heads in self._open.values():
            heads.pop(node_id, None)

    def judge(self, slot: Slot) -> list[NodeId | None]:
        """Look at all slots up to one that is over.

        :returns: who is odd since then, and who is so no more, by name; `None` stands for ourselves and comes first. A
            node that was forgotten is odd no more.
        """
        self._latest = slot
        for node in self._nodes.values():
            node.verdict = None
        for over in sorted(s for s in self._open if s <= slot):
            self._close(self._open.pop(over))
        odd: set[NodeId | None] = {node_id for node_id in self._nodes if self.verdict(node_id).warning}
        if self.ours():
            odd.add(None)
        changed = odd ^ self._odd
        self._odd = odd
        nodes = sorted(who for who in changed if who is not None)
        return [None, *nodes] if None in changed else [*nodes]

    def verdict(self, node_id: NodeId) -> ClockVerdict:
        """Say what is known of a node's clock."""
        node = self._nodes.get(node_id)
        if node is None:
            return _NOTHING
        if node.verdict is None:
            node.verdict = self._verdict(node)
        return node.verdict

    def ours(self) -> str:
        """Say why our own clock is in doubt; empty where it is not."""
        warnings = []
        early = max((slot.early for slot in self._slots), default=0.0)
        if early > self.policy.warn:
            warnings.append(f"the heads of all nodes came up to {early:.2f} s before their slot: our clock is slow")
        late = sum(slot.late for slot in self._slots)
        if late >= LATE_SLOTS:
            warnings.append(
                f"the heads of all nodes came after {self.policy.due:g} s in {late} of {len(self._slots)} slots: "
                "our clock is fast, or our network slow"
            )
        future = sum(self._in_future(node) for node in self._nodes.values())
        if future >= 2 and 2 * future > len(self._nodes):
            warnings.append(f"{future} nodes say that our slots are in the future: our clock is fast")
        return ", ".join(warnings)

    def _verdict(self, node: _Node) -> ClockVerdict:
        offset = min(0.0, *(seen.offset for seen in node.seen)) if node.seen else None
        own = -min((seen.own for seen in node.seen), default=0.0)
        late = sum(seen.late for seen in node.seen)
        warnings = []
        lowers = ""
        if own > self.policy.warn:
            warnings.append(f"a head came {own:.2f} s before its slot")
        if own > self.policy.lower:
            lowers = warnings[0]
        if late >= LATE_SLOTS:
            warnings.append(f"later than the other nodes in {late} of {len(node.seen)} slots")
        if self._in_future(node):
            warnings.append("says that our slots are in the future")
        return ClockVerdict(offset, ", ".join(warnings), lowers)

    def _in_future(self, node: _Node) -> bool:
        return node.future is not None and node.future > self._latest - WATCHED

    def _close(self, offsets: dict[NodeId, float]) -> None:
        if not offsets:
            return
        policy = self.policy
        earliest, latest = min(offsets.values()), max(offsets.values())
        several = len(offsets) > 1
        early = -latest if several and latest < 0 else 0.0
        self._slots.append(_Slot(early, several and earliest > policy.due))
        middle = median(offsets.values()) if len(offsets) >= FEWEST else latest
        for node_id, offset in offsets.items():
            node = self._nodes.setdefault(node_id, _Node())
            node.verdict = None
            node.seen.append(_Seen(offset, offset - middle > policy.warn, offset + early))
