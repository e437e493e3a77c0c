"""Whom to ask, in which order, and why: the plan of a request (role, rank, tier, affinity, cool-down, drain)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from vc_fallback.base.types import NodeId, Role, Tier
from vc_fallback.decide import rank_words
from vc_fallback.decide.rank import Group, Place, RankFacts, Ranking


@dataclass(frozen=True, slots=True)
class Plan:
    """The nodes for a request, best first.

    :param role: what is asked for; `None` for what every node is told.
    :param nodes: whom to ask, each once.
    :param left_out: who is not asked, and why.
    :param cooling: for how many seconds nodes are to be left alone: they come after their equals (Q11).
    :param without_role: whether nodes that lack the role serve as well, because no usable one has it (Q14).
    :param preferred: who comes first by affinity (Q9), `None` where nobody does.
    """

    role: Role | None
    nodes: tuple[NodeId, ...]
    left_out: Mapping[NodeId, str]
    ranking: Ranking = field(repr=False)
    cooling: Mapping[NodeId, float] = field(default_factory=dict)
    without_role: bool = False
    preferred: NodeId | None = None

    def of(self, tier: Tier) -> tuple[NodeId, ...]:
        """Return the nodes of a tier, in order."""
        places = self.ranking.places
        return tuple(node_id for node_id in self.nodes if places[node_id].facts.tier is tier)

    def usable(self, nodes: Collection[NodeId]) -> tuple[NodeId, ...]:
        """Return those of some nodes that are usable, in order."""
        places = self.ranking.places
        return tuple(node_id for node_id in self.nodes if node_id in nodes and places[node_id].usable)

    def reason(self, node_id: NodeId) -> str:
        """Say in one sentence why a node is where it is in this plan.

        :raises KeyError: for a node that is not in the list.
        """
        if node_id in self.left_out:
            return f"{node_id} is not asked: {self.left_out[node_id]}"
        if node_id not in self.nodes:
            raise KeyError(node_id)
        words = rank_words.explain(self.ranking, node_id)
        if node_id in self.cooling:
            return (
                f"{node_id} comes after its equals: it is to be left alone for {self.cooling[node_id]:.3g} s; {words}"
            )
        if node_id == self.preferred:
            return f"{node_id} comes first: what is asked for belongs to what it gave; {words}"
        if self.without_role:
            return f"{words}; nobody who is usable has the role {self.role}"
        return words


def plan(
    order: Sequence[NodeId],
    ranking: Ranking,
    roles: Mapping[NodeId, Collection[Role]],
    *,
    role: Role | None = None,
    cooling: Mapping[NodeId, float] | None = None,
    prefer: NodeId | None = None,
) -> Plan:
    """Plan a request.

    Who has the role comes in the given order. Where none of them is usable all nodes come, by the same order: usable
    ones without the role before those with it that are not (Q14). Nodes that are to be left alone come after their
    equals (Q11): usable ones before those that are not, which would answer for an old head or not at all. A preferred
    node comes first where it answers, as far as is known (Q9): not while it is suspect (N4), and it is not brought in
    where it has not the role.

    :param order: node ids in the order in which to ask them, the one that has the duties first (N9).
    :param roles: the roles of every node of the list.
    """
    left_out = {node_id: why_left_out(facts) for node_id, facts in ranking.left_out.items()}
    places = ranking.places
    without_role = False
    if role is None:
        nodes = [*order]
    else:
        nodes = [node_id for node_id in order if role in roles.get(node_id, ())]
        if any(places[node_id].usable for node_id in nodes):
            for node_id in order:
                if node_id not in nodes:
                    left_out[node_id] = f"it has not the role {role}"
        else:
            without_role = len(nodes) < len(order)
            usable = [node_id for node_id in order if places[node_id].usable]
            nodes = [*usable, *(node_id for node_id in order if not places[node_id].usable)] if without_role else nodes
    first: NodeId | None = None
    if prefer is not None and prefer in nodes:
        place = places[prefer]
        first = prefer if place.standing.group < Group.NO_ANSWER and not place.facts.suspect else None
    rests: Mapping[NodeId, float] = cooling or {}
    if rests:
        nodes.sort(key=lambda node_id: (_kind(places[node_id]), node_id in rests, node_id != first))
    if first in rests:
        first = None
    if first is not None:
        nodes.sort(key=lambda node_id: node_id != first)
    return Plan(role, tuple(nodes), left_out, ranking, rests, without_role, first)


def _kind(place: Place) -> int:
    """Say what a node is good for, less is better: usable, answering, not to be reached, put last on purpose."""
    return 0 if place.usable else int(place.standing.group)


def why_left_out(facts: RankFacts) -> str:
    """Say why a node is not asked, and what is known of it besides: it may not have said which chain it is on because
    nobody can reach it."""
    besides = facts.unhealthy or facts.suspect
    return f"{facts.excluded}: {besides}" if besides and besides != facts.excluded else facts.excluded
