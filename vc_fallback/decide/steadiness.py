"""For how long nodes have been up and synced without a break, as far as we know (Q14a)."""

from collections import deque

from vc_fallback.base.types import NodeId

REMEMBERED = 8
"""Spells of a node that are kept: an epoch is asked about within the one after it, and who has more breaks than that in
two epochs was hardly ever synced throughout one."""


class Steadiness:
    """What a node was while nobody looked counts as a break: a spell begins when it is seen to be good.

    There are two kinds of breaks. A node that was not synced for a while has seen what it saw before. One that may have
    been restarted has seen nothing: what nodes know of who is live is in their memory alone.
    """

    def __init__(self) -> None:
        self._since: dict[NodeId, float] = {}
        self._spells: dict[NodeId, deque[tuple[float, float]]] = {}

    def good(self, node_id: NodeId, now: float) -> None:
        """Note that a node is up and synced at a moment in loop time."""
        self._since.setdefault(node_id, now)

    def bad(self, node_id: NodeId, now: float) -> None:
        """Note that it is not synced, or that it is not known whether it is."""
        since = self._since.pop(node_id, None)
        if since is not None:
            self._spells.setdefault(node_id, deque(maxlen=REMEMBERED)).append((since, now))

    def gone(self, node_id: NodeId) -> None:
        """Note that it may have been restarted, or has left: it counts as one that has seen nothing yet."""
        self._since.pop(node_id, None)
        self._spells.pop(node_id, None)

    def throughout(self, node_id: NodeId, begin: float, end: float) -> bool:
        """Whether a node was good from one moment in loop time to another, and was not restarted since."""
        since = self._since.get(node_id)
        if since is not None and since <= begin:
            return True
        return any(first <= begin and last >= end for first, last in self._spells.get(node_id, ()))
