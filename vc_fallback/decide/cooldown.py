"""Which nodes are left alone for a while, because they asked for it or refuse us (Q11, case 24)."""

from vc_fallback.base.types import NodeId

LONGEST = 600.0
"""Seconds that a node is left alone at most, whatever it asks for: it may name the year 9999."""


class Cooldowns:
    """When each node may be asked again. It costs no health (that counts errors by itself), and it is no verdict: where
    nobody else is left, a node that cools down is asked all the same.
    """

    def __init__(self) -> None:
        self._until: dict[NodeId, float] = {}
        self._asked_until: dict[NodeId, float] = {}

    def __bool__(self) -> bool:
        """Whether anything is remembered."""
        return bool(self._until)

    def cool(self, node_id: NodeId, now: float, seconds: float, *, asked: bool = False) -> None:
        """Leave a node alone for so long from now; a longer rest that it has already stays.

        :param asked: whether the node asks for it, as who is asked too often does (429): then its head stream is not
            opened before that either. Who refuses a request may well have a stream.
        """
        until = now + min(max(seconds, 0.0), LONGEST)
        if until <= now:
            return
        for untils in (self._until, self._asked_until) if asked else (self._until,):
            untils[node_id] = max(until, untils.get(node_id, until))

    def warm(self, node_id: NodeId) -> None:
        """Forget a node: it has left, or is reached in another way."""
        self._until.pop(node_id, None)
        self._asked_until.pop(node_id, None)

    def left(self, node_id: NodeId, now: float) -> float:
        """Return for how many more seconds a node is left alone, 0 where it is not."""
        until = self._until.get(node_id)
        if until is None:
            return 0.0
        if until <= now:
            self.warm(node_id)
            return 0.0
        return until - now

    def asked_for(self, node_id: NodeId, now: float) -> float:
        """Return for how many more seconds a node has asked to be left alone, 0 where it has not."""
        return max(0.0, self._asked_until.get(node_id, now) - now)
