"""Plans requests by the present list, ranks and cool-downs."""

from collections.abc import Mapping

from vc_fallback.base.clock import Clock
from vc_fallback.base.types import NodeId, Role
from vc_fallback.candidates import CandidateList, Candidates
from vc_fallback.decide.cooldown import Cooldowns
from vc_fallback.decide.plan import Plan, plan
from vc_fallback.decide.rank import Ranking
from vc_fallback.health.book import HealthBook


class Planner:
    """A plan is made anew when something that it depends on has changed: else a request pays 1 µs for it (measured)."""

    def __init__(self, candidates: Candidates, book: HealthBook, cooldowns: Cooldowns, clock: Clock) -> None:
        self._candidates = candidates
        self._book = book
        self._cooldowns = cooldowns
        self._clock = clock
        self._made: dict[tuple[Role | None, NodeId | None], Plan] = {}
        self._from: tuple[CandidateList, Ranking, NodeId | None] | None = None
        self._roles: Mapping[NodeId, frozenset[Role]] = {}

    def plan(self, role: Role | None, prefer: NodeId | None = None, what: str = "") -> Plan:
        """Plan a request.

        :param role: what nodes must be there for; `None` for what every node is told.
        :param prefer: who comes first where it answers (Q9).
        :param what: the kind of requests, as errors name it: a node may have refused this one alone (Q11).
        """
        listed, book = self._candidates.current, self._book
        ranking, active = book.ranking, book.active
        made_from = self._from
        if made_from is None or listed is not made_from[0] or ranking is not made_from[1] or active != made_from[2]:
            self._made.clear()
            self._from = (listed, ranking, active)
            self._roles = {node_id: member.candidate.roles for node_id, member in listed.members.items()}
        cooling = self._cooling(what) if self._cooldowns else None
        if cooling:
            return plan(book.order, ranking, self._roles, role=role, cooling=cooling, prefer=prefer)
        made = self._made.get((role, prefer))
        if made is None:
            if prefer is not None and prefer not in self._roles:
                # Nobody is preferred: else names of the caller's would be kept here, however many they are.
                return self.plan(role)
            made = self._made[role, prefer] = plan(book.order, ranking, self._roles, role=role, prefer=prefer)
        return made

    def _cooling(self, what: str) -> dict[NodeId, float]:
        now = self._clock.now()
        left = {node_id: self._cooldowns.left(node_id, now, what) for node_id in self._roles}
        return {node_id: seconds for node_id, seconds in left.items() if seconds > 0}
