"""How far each node is behind the slot that the nodes together hold to be the newest (N5)."""

import math
from collections import deque
from dataclasses import dataclass, field

from vc_fallback.base.types import NodeId, Slot
from vc_fallback.decide.tip import tip

MAX_LAG = 8
"""A node more slots behind the tip than this is not synced (N5)."""

DEMOTED = 2
"""A node so many slots behind the tip is demoted in rank (N5, N6)."""

SETTLE = 1 / 4
"""Part of a slot that a head may take to all nodes before one that has not got it is measured against it."""

_KEPT = 8
"""Heights kept of one node. Ones that come faster are a burst, of which the last is enough."""


@dataclass(slots=True)
class _Node:
    slot: Slot
    served: Slot | None = None
    """The newest head that came with its header."""
    seen: deque[tuple[float, Slot, Slot | None]] = field(default_factory=lambda: deque(maxlen=_KEPT))


class Heights:
    """The latest head slot of every node, from heads of streams, polls and checks alike.

    A node's own height counts at once. What it is measured against are the heights that nodes have shown for a quarter
    of a slot: after a missed slot the next head is two slots further, and whoever has it some milliseconds later than
    others is not behind (N8: late arrival alone is normal propagation).

    At most eight heights of a node are kept: 1.6 kB, by measurement. The tip is kept until a height settles that may
    move it: of 100 nodes that show the same head within a quarter of a slot none has it worked out anew.

    :param settle: seconds until a height counts against the other nodes; see :data:`SETTLE`.
    """

    def __init__(self, settle: float) -> None:
        self._settle = settle
        self._nodes: dict[NodeId, _Node] = {}
        self._known: tuple[Slot, Slot | None] | None = None
        """The slot by the clock for which the tip is known, and the tip; `None` where it is to be worked out."""
        self._until = math.inf
        """The moment at which the next height settles."""

    @property
    def settle(self) -> float:
        """Seconds until a height counts against the other nodes."""
        return self._settle

    @settle.setter
    def settle(self, settle: float) -> None:
        self._settle, self._known = settle, None

    def saw(self, node_id: NodeId, slot: Slot, now: float, *, served: bool) -> None:
        """Take a node's head slot: the latest, not the highest (H7).

        :param served: whether it came with its header, as every head of a stream or a poll does; not so the number in
            `node/syncing`.
        """
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = _Node(slot)
            self._known = None
        node.slot = slot
        if served:
            node.served = slot
        elif node.served is not None and node.served > slot:
            # It has gone back: the header it served before is no longer its head.
            node.served = None
        if node.seen and node.seen[-1][1:] == (slot, node.served):
            return
        if len(node.seen) == _KEPT:
            # The first one goes, and with it what has settled of this node.
            self._known = None
        node.seen.append((now, slot, node.served))
        self._until = min(self._until, now + self._settle)

    def forget(self, node_id: NodeId) -> None:
        """Forget a node that left, is on another chain, or says nothing any more: what it said is no height now."""
        if self._nodes.pop(node_id, None) is not None:
            self._known = None

    def slot(self, node_id: NodeId) -> Slot | None:
        """Return the latest head slot of a node, or `None` where it has shown none."""
        node = self._nodes.get(node_id)
        return None if node is None else node.slot

    def tip(self, now: float, wall: Slot) -> Slot | None:
        """Return the tip by the heights that have settled (N5), or `None` where there is none.

        :param wall: the slot by the clock at `now`.
        """
        if self._known is not None and self._known[0] == wall and now < self._until:
            return self._known[1]
        self._until = math.inf
        settled = [self._settled(node, now) for node in self._nodes.values()]
        heights = [slot for slot, _ in settled]
        found = tip(heights, wall, [served for _, served in settled if served is not None])
        self._known = (wall, found)
        return found

    def lag(self, node_id: NodeId, now: float, wall: Slot) -> int | None:
        """Return how many slots a node is behind the tip, 0 where it is there or ahead of it.

        Measure it at the moment at which the node has shown something, and keep it until it shows something again: a
        node of which only checks are known, because its stream is frozen, is a slot old for most of a slot, and would
        be behind whenever a slot was missed (scenario 10: no request moves for that).

        :returns: `None` where the node's head is unknown or beyond the clock, and where there is no tip.
        """
        node = self._nodes.get(node_id)
        if node is None or node.slot > wall + 1:
            return None
        top = self.tip(now, wall)
        return None if top is None else max(0, top - node.slot)

    def beyond_clock(self, node_id: NodeId, wall: Slot) -> bool:
        """Whether a node's head is beyond the clock, unless those of most nodes that show any are.

        Then it is the clock that is wrong, and the clock alone demotes nobody (N5, N8).
        """
        node = self._nodes.get(node_id)
        if node is None or node.slot <= wall + 1:
            return False
        return 2 * sum(other.slot > wall + 1 for other in self._nodes.values()) < len(self._nodes)

    def behind_clock(self, now: float, wall: Slot) -> int:
        """Return how many slots the tip is behind the clock, which warns and demotes nobody: slots can be missed."""
        top = self.tip(now, wall)
        return 0 if top is None else max(0, wall - top)

    def _settled(self, node: _Node, now: float) -> tuple[Slot, Slot | None]:
        seen = node.seen
        # Of heights that have settled only the last one is needed; the very first one counts at once.
        while len(seen) > 1 and seen[1][0] + self._settle <= now:
            seen.popleft()
        if len(seen) > 1:
            self._until = min(self._until, seen[1][0] + self._settle)
        return seen[0][1], seen[0][2]


def by_own_word(checked_head: Slot, sync_distance: int, latest: Slot | None) -> int:
    """Return how many slots behind its own clock a node says that it is, as of the newest head it has shown.

    A check is a slot old by the next one, and the node has gone on meanwhile: not the distance it named is kept, but
    the slot that it was measured from.

    :param checked_head: its head by the check.
    :param sync_distance: its distance by the check.
    :param latest: the newest head it has shown since by any way, or `None`.
    """
    reached = checked_head if latest is None else max(checked_head, latest)
    return max(0, checked_head + sync_distance - reached)
