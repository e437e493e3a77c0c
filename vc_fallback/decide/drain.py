"""Nodes that are put last on purpose for a while, and come back by themselves (N11)."""

from vc_fallback.base.types import NodeId


class Drains:
    """Who is drained until when, in loop time."""

    def __init__(self) -> None:
        self._until: dict[NodeId, float] = {}

    def drain(self, node_id: NodeId, until: float) -> None:
        """Put a node last until a moment in loop time; a later call sets another one."""
        self._until[node_id] = until

    def resume(self, node_id: NodeId) -> bool:
        """End it before its time, or forget a node that left; return whether it was drained."""
        return self._until.pop(node_id, None) is not None

    def left(self, node_id: NodeId, now: float) -> float:
        """Return for how many more seconds a node is drained, 0 where it is not."""
        until = self._until.get(node_id)
        return 0.0 if until is None else max(0.0, until - now)

    def ended(self, now: float) -> tuple[NodeId, ...]:
        """Return and forget the nodes whose time is over."""
        over = tuple(node_id for node_id, until in self._until.items() if until <= now)
        for node_id in over:
            del self._until[node_id]
        return over

    @property
    def next_end(self) -> float | None:
        """The moment in loop time at which :meth:`ended` has something to say, or `None`."""
        return min(self._until.values(), default=None)
