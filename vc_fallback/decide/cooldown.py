"""Which nodes are left alone for a while, because they asked for it or refuse us (Q11, case 24)."""

from vc_fallback.base.types import NodeId

LONGEST = 600.0
"""Seconds that a node is left alone at most, whatever it asks for: it may name the year 9999."""


class Cooldowns:
    """When each node may be asked again. It costs no health (that counts errors by itself), and it is no verdict: where
    nobody else is left, a node that cools down is asked all the same.
    """

    def __init__(self) -> None:
        self.version = 0
        """Counts up with every change but the ends, which come with time alone."""
        self._until: dict[NodeId, float] = {}

    def __bool__(self) -> bool:
        """Whether anything is remembered."""
        return bool(self._until)

    def cool(self, node_id: NodeId, now: float, seconds: float) -> None:
        """Leave a node alone for so long from now; a longer rest that it has already stays."""
        until = now + min(max(seconds, 0.0), LONGEST)
        if until > self._until.get(node_id, now):
            self._until[node_id] = until
            self.version += 1

    def warm(self, node_id: NodeId) -> None:
        """Forget a node: it has left, or is reached in another way."""
        if self._until.pop(node_id, None) is not None:
            self.version += 1

    def left(self, node_id: NodeId, now: float) -> float:
        """Return for how many more seconds a node is left alone, 0 where it is not."""
        until = self._until.get(node_id)
        if until is None:
            return 0.0
        if until <= now:
            self.warm(node_id)
            return 0.0
        return until - now

    def next_end(self) -> float | None:
        """Return the moment in loop time at which the next rest ends."""
        return min(self._until.values(), default=None)
