"""Which node has the duties, and when they move to another (N9, N10, case 31)."""

from dataclasses import dataclass
from enum import StrEnum

from vc_fallback.base.types import NodeId
from vc_fallback.decide.rank import Group, Place, Ranking, Standing


@dataclass(frozen=True, slots=True)
class FailoverPolicy:
    """When duties go back to a node that ranks higher (N9)."""

    dwell: float = 48.0
    """Seconds for which a node that took over keeps its place before duties go back: 4 slots."""
    prefer_higher_priority: bool = True
    """Whether they go back at all while the node that has them is usable."""
    min_peers: int = 15
    """Peers that a node must have where it says how many; 0 on a devnet."""


class MoveKind(StrEnum):
    """Why duties moved."""

    START = "start"
    """The first node, and one that ranks higher and answers within the dwell after it."""
    FAILOVER = "failover"
    """From a node that does worse than when it took over: at once."""
    FAILBACK = "failback"
    """To a node that does better: not before its time."""


@dataclass(frozen=True, slots=True)
class Move:
    """Duties moved, at a moment in loop time; `None` stands for no node."""

    at: float
    kind: MoveKind
    source: NodeId | None
    target: NodeId | None
    reason: str


class Failover:
    """Holds the active node: the one that is asked first.

    Duties leave it at once when it does worse than when it took over and another one does better, or when it does not
    answer; a failover waits for nothing. They go to one that does better while the active node does as well as ever
    only when that node can be relied on (:attr:`RankFacts.steady`, its peers) and the active one had its place for
    `dwell`. So two nodes of which one flaps do not hand duties back and forth (case 31): each round needs a step of the
    second kind.

    A suspicion moves no duties: until a check has spoken, two seconds later, requests make a detour (:meth:`order`),
    and only a node that is found unhealthy loses its place (scenario 53a).
    """

    def __init__(self, policy: FailoverPolicy) -> None:
        self.policy = policy
        self.active: NodeId | None = None
        self.since = 0.0
        """When it became the active node."""
        self.failovers = 0
        self.failbacks = 0
        self.all_unhealthy = False
        """Whether there are nodes and none of them is healthy (N10): a critical gauge, and one error line each time."""
        self._starting = 0.0
        """Until when moves to a better node belong to the start."""
        self._standing: Standing | None = None
        """The best that the active node has been since it took over."""

    def look(self, now: float, ranking: Ranking) -> Move | None:
        """See whether duties are to move, by the ranking of this moment; call it whenever that may have changed."""
        places = ranking.places.values()
        known = bool(ranking.places or ranking.left_out)
        left_out = ranking.left_out.values()
        self.all_unhealthy = known and all(p.facts.unhealthy for p in places) and all(f.unhealthy for f in left_out)
        best = ranking.first
        active = ranking.places.get(self.active) if self.active is not None else None
        if best is None:
            return self._leave(now, ranking) if self.active is not None else None
        if active is None:
            if self.active is None:
                return self._take(now, MoveKind.START, best, "the first by rank")
            return self._take(now, MoveKind.FAILOVER, best, _gone(self.active, ranking))
        self._standing = min(self._standing or active.standing, active.standing)
        worse = active.standing > self._standing or active.standing.group >= Group.NO_ANSWER
        better = best.standing < active.standing and best is not active
        if better and worse:
            return self._take(now, MoveKind.FAILOVER, best, _worse(active))
        if better and active.flaw and (best.facts.steady or now >= self.since + self.policy.dwell):
            return self._take(now, MoveKind.FAILOVER, best, f"{_worse(active)}; {best.node_id} does better")
        prefers = self.policy.prefer_higher_priority or now < self._starting
        if not active.flaw and prefers and now >= self.since + self.policy.dwell:
            worth = active.worth
            for place in places:
                if place is active:
                    break
                if place.worth < worth and self._reliable(place):
                    kind = MoveKind.START if now < self._starting else MoveKind.FAILBACK
                    return self._take(now, kind, place, f"{place.node_id} ranks higher and is steady")
        return None

    def order(self, ranking: Ranking) -> tuple[NodeId, ...]:
        """Return the nodes in the order in which to ask them: the active one, then the others by rank.

        While the active node is suspect the others of its tier come before it, as by rank (N4).
        """
        active = ranking.places.get(self.active) if self.active is not None else None
        if active is None or active.facts.suspect:
            return ranking.order
        return (active.node_id, *(node_id for node_id in ranking.places if node_id != active.node_id))

    def _reliable(self, place: Place) -> bool:
        facts = place.facts
        enough = facts.peers is None or facts.peers >= self.policy.min_peers
        return place.usable and facts.steady and not facts.suspect and enough

    def next_look(self, now: float) -> float | None:
        """Return the moment in loop time at which time alone may move duties, or `None`."""
        ends = self.since + self.policy.dwell
        return ends if self.active is not None and ends > now else None

    def _take(self, now: float, kind: MoveKind, place: Place, reason: str) -> Move:
        move = Move(now, kind, self.active, place.node_id, reason)
        self.active, self._standing = place.node_id, place.standing
        # Nobody had the duties before the first node, so they may go back from it at any time.
        self.since = now if kind is not MoveKind.START else now - self.policy.dwell
        if kind is not MoveKind.START:
            self._starting = now
        elif move.source is None:
            self._starting = now + self.policy.dwell
        self.failovers += kind is MoveKind.FAILOVER
        self.failbacks += kind is MoveKind.FAILBACK
        return move

    def _leave(self, now: float, ranking: Ranking) -> Move:
        assert self.active is not None  # noqa: S101 - narrows the type for the checker
        move = Move(now, MoveKind.FAILOVER, self.active, None, _gone(self.active, ranking))
        self.active = self._standing = None
        self.failovers += 1
        return move


def _gone(node_id: NodeId, ranking: Ranking) -> str:
    facts = ranking.left_out.get(node_id)
    return f"{node_id}: {'left the list' if facts is None else facts.excluded}"


def _worse(active: Place) -> str:
    standing = active.standing
    marks = (
        (standing.el_offline, "its execution layer is offline"),
        (standing.inconsistent, active.facts.inconsistent),
        (standing.early, active.facts.early),
    )
    words = active.flaw or ", ".join(words for holds, words in marks if holds)
    return f"{active.node_id}: {words or f'it is a {active.facts.tier} now'}"
