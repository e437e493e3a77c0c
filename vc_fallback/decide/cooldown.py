"""Which nodes are left alone for a while, because they asked for it or refuse us (Q11, case 24)."""

from vc_fallback.base.types import NodeId

LONGEST = 600.0
"""Seconds that a node is left alone at most, whatever it asks for: it may name the year 9999."""

SILENT = 2
"""Times in a row from which on a node that does not answer a kind of requests is asked for it last."""

KINDS = 64
"""Kinds of requests of which it is kept how often a node did not answer them: who asks gives them names, and may do so
without end (rule 6)."""

REFUSED = 2
"""Kinds of requests from which on a node that refuses them refuses us: one alone may be what a gateway keeps shut."""


class Cooldowns:
    """When each node may be asked again. It costs no health (that counts errors by itself), and it is no verdict: where
    nobody else is left, a node that cools down is asked all the same.
    """

    def __init__(self) -> None:
        self._until: dict[NodeId, float] = {}
        self._asked_until: dict[NodeId, float] = {}
        self._refused: dict[NodeId, dict[str, float]] = {}
        """Until when nodes are not to be asked for single kinds of requests, as they refused them."""
        self._silent: dict[NodeId, dict[str, float]] = {}
        """The same, as they did not answer them."""
        self._silences: dict[NodeId, dict[str, int]] = {}
        """How often in a row they did not, the latest last."""

    def __bool__(self) -> bool:
        """Whether anything is remembered."""
        return bool(self._until or self._refused or self._silent)

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

    def refused(self, node_id: NodeId, what: str, now: float, seconds: float) -> None:
        """Ask a node for one kind of requests no more for so long: it has refused one (401, 402, 403). Where it refuses
        others too it is left alone."""
        until = now + min(max(seconds, 0.0), LONGEST)
        kinds = {kind: ends for kind, ends in self._refused.get(node_id, {}).items() if ends > now}
        self._refused[node_id] = {**kinds, what: until}
        if len(self._refused[node_id]) >= REFUSED:
            self.cool(node_id, now, seconds)

    def silent(self, node_id: NodeId, what: str, now: float, seconds: float) -> None:
        """Note that others were faster with a kind of requests than a node that had its time: the second time in a row
        it is asked for that no more for so long. It may answer everything else, its checks among them."""
        counts = self._silences.setdefault(node_id, {})
        count = counts[what] = counts.pop(what, 0) + 1
        if len(counts) > KINDS:
            self.answered(node_id, next(iter(counts)))
        if count >= SILENT:
            self._silent.setdefault(node_id, {})[what] = now + seconds

    def answered(self, node_id: NodeId, what: str) -> None:
        """Note that a node has answered a kind of requests, be it by an error."""
        counts = self._silences.get(node_id)
        if counts and counts.pop(what, 0):
            kinds = self._silent.get(node_id, {})
            kinds.pop(what, None)
            if not kinds:
                self._silent.pop(node_id, None)

    def warm(self, node_id: NodeId) -> None:
        """Forget a node: it has left, or is reached in another way."""
        for kept in (self._until, self._asked_until, self._refused, self._silent, self._silences):
            kept.pop(node_id, None)

    def left(self, node_id: NodeId, now: float, what: str = "") -> float:
        """Return for how many more seconds a node is left alone, 0 where it is not.

        :param what: a kind of requests, for which alone it may be.
        """
        until = self._until.get(node_id, now)
        for by_kind in (self._refused, self._silent):
            kinds = by_kind.get(node_id)
            if kinds is not None:
                until = max(until, kinds.get(what, now))
                if all(ends <= now for ends in kinds.values()):
                    del by_kind[node_id]
        if self._until.get(node_id, now) <= now:
            self._until.pop(node_id, None)
            self._asked_until.pop(node_id, None)
        return max(0.0, until - now)

    def asked_for(self, node_id: NodeId, now: float) -> float:
        """Return for how many more seconds a node has asked to be left alone, 0 where it has not."""
        return max(0.0, self._asked_until.get(node_id, now) - now)
