"""For how long nodes have been up and synced without a break, as far as we know (Q14a)."""

from collections import deque

from vc_fallback.base.types import NodeId

REMEMBERED = 8
"""Spells of a node that are kept: an epoch is asked about within the one after it, and who has more breaks than that in
two epochs was hardly ever synced throughout one."""


class _Spell:
    """From the first sign that a node is well to the last, without a break between."""

    __slots__ = ("first", "last")

    def __init__(self, now: float) -> None:
        self.first = self.last = now


class Steadiness:
    """What a node was while nobody looked counts as a break: a spell lasts from one sign to another, and where too much
    time goes by without one it was over with the last.

    There are two kinds of breaks. A node that was not synced for a while has seen what it saw before. One that may have
    been restarted has seen nothing: what nodes know of who is live is in their memory alone.
    """

    def __init__(self) -> None:
        self._present: dict[NodeId, _Spell] = {}
        self._past: dict[NodeId, deque[_Spell]] = {}

    def good(self, node_id: NodeId, now: float, *, within: float) -> None:
        """Take a sign that a node is up and synced at a moment in loop time.

        :param within: seconds from the sign before that are no break.
        """
        spell = self._present.get(node_id)
        if spell is not None and now - spell.last > within:
            self.bad(node_id)
            spell = None
        if spell is None:
            self._present[node_id] = _Spell(now)
        else:
            spell.last = now

    def bad(self, node_id: NodeId) -> None:
        """Note that it is not synced: it is not known for how long, but since the last sign that it was."""
        spell = self._present.pop(node_id, None)
        if spell is not None:
            self._past.setdefault(node_id, deque(maxlen=REMEMBERED)).append(spell)

    def gone(self, node_id: NodeId) -> None:
        """Note that it may have been restarted, or has left: it counts as one that has seen nothing yet."""
        self._present.pop(node_id, None)
        self._past.pop(node_id, None)

    def throughout(self, node_id: NodeId, begin: float, end: float, *, within: float) -> bool:
        """Whether a node was good from one moment in loop time to another, and was not restarted since.

        :param within: seconds for which its last sign stands.
        """
        present = self._present.get(node_id)
        if present is not None and present.first <= begin and present.last + within >= end:
            return True
        return any(spell.first <= begin and spell.last >= end for spell in self._past.get(node_id, ()))
