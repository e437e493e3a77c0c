"""Why a node is where it is in the ranking, in one sentence (N6)."""

from vc_fallback.base.types import NodeId, Tier
from vc_fallback.decide.rank import Group, Place, Ranking, step_of


def explain(ranking: Ranking, node_id: NodeId) -> str:
    """Say in one sentence why a node is where it is: what it is, and what puts it after the node before it.

    :raises KeyError: for a node that was not ranked.
    """
    if node_id in ranking.left_out:
        return f"{node_id} is left out: {ranking.left_out[node_id].excluded}"
    place, number = ranking.places[node_id], ranking.numbers[node_id]
    text = f"{node_id} is {number} of {len(ranking.places)}: {_part(place)}"
    if number == 1:
        return text
    before = ranking.places[ranking.order[number - 2]]
    return f"{text}; after {before.node_id}: {_difference(before, place)}"


def _part(place: Place) -> str:
    facts = place.facts
    match place.standing.group:
        case Group.USABLE_PRIMARY | Group.USABLE_FALLBACK:
            marks = "".join(f", {mark}" for mark in _marks(place))
            return f"a usable {facts.tier}{marks}"
        case Group.OTHER:
            row = step_of(facts)
            return (
                f"a {facts.tier} that is not usable ({place.flaw}), "
                f"step {row.step}: {row.distance}, head {row.head}, {row.execution}"
            )
        case Group.NO_ANSWER:
            return f"a {facts.tier} that does not answer ({place.flaw})"
        case Group.DRAINED:
            return f"a {facts.tier} that is {place.flaw}"


def _marks(place: Place) -> list[str]:
    facts = place.facts
    marks = []
    if facts.suspect:
        marks.append(f"last of its tier as suspect ({facts.suspect})")
    if facts.el_offline:
        marks.append("last of its tier as its execution layer is offline")
    if facts.inconsistent:
        marks.append(f"lowered as inconsistent ({facts.inconsistent})")
    if facts.early:
        marks.append(f"lowered for its clock ({facts.early})")
    return marks


def _difference(before: Place, after: Place) -> str:
    """Say what puts a node after another: the first part of the rank in which they differ."""
    one, other = before.facts, after.facts
    if before.standing.group is not after.standing.group:
        return {
            Group.USABLE_PRIMARY: "that one is usable, and a primary",
            Group.USABLE_FALLBACK: "that one is usable",
            Group.OTHER: "that one answers",
        }.get(before.standing.group, "that one is not drained")
    differences = (
        (before.standing.step != after.standing.step, f"that one is at step {before.standing.step}"),
        (one.tier is not other.tier, f"that one is a {Tier.PRIMARY}"),
        (bool(one.suspect) != bool(other.suspect), "that one is not suspect"),
        (bool(one.el_offline) != bool(other.el_offline), "that one has its execution layer"),
        (bool(one.inconsistent) != bool(other.inconsistent), "that one is not inconsistent"),
        (bool(one.early) != bool(other.early), "that one's clock is not off"),
        (one.priority != other.priority, f"by priority, {one.priority} before {other.priority}"),
    )
    return next((words for differs, words in differences if differs), "by place in the list")
