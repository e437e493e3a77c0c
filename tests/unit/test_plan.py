"""The plan of a request: role, rank, affinity, cool-down and drain, and why each node is where it is."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.base.types import NodeId, Role, Tier
from vc_fallback.decide.plan import Plan, plan
from vc_fallback.decide.rank import Group, RankFacts, Ranking, rank

P, F = Tier.PRIMARY, Tier.FALLBACK
ALL = frozenset(Role)
DUTIES = frozenset({Role.DUTIES})
ATTESTS = frozenset({Role.ATTESTATION})

UNHEALTHY: dict[str, Any] = {"unhealthy": "3 failed checks in a row", "answers": False}
SLOW: dict[str, Any] = {"unhealthy": "nine of ten answers take up to 4.00 s"}
BEHIND: dict[str, Any] = {"lag": 5, "claim": 5}
SUSPECT: dict[str, Any] = {"suspect": "refused"}
DRAINED: dict[str, Any] = {"drained": "for maintenance"}
ELSEWHERE: dict[str, Any] = {"excluded": "its genesis is another one", "unhealthy": "another chain"}
FALLBACK: dict[str, Any] = {"tier": F}


def ranked(**nodes: Mapping[str, Any]) -> Ranking:
    """Rank nodes of a list in this order, by what distinguishes each."""
    return rank(RankFacts(NodeId(name), index=index, **facts) for index, (name, facts) in enumerate(nodes.items()))


def planned(
    ranking: Ranking,
    role: Role | None = Role.DUTIES,
    *,
    roles: Mapping[str, frozenset[Role]] | None = None,
    cooling: Mapping[str, float] | None = None,
    prefer: str | None = None,
) -> Plan:
    known = [*ranking.places, *ranking.left_out]
    return plan(
        ranking.order,
        ranking,
        {node_id: (roles or {}).get(node_id, ALL) for node_id in known},
        role=role,
        cooling={NodeId(name): seconds for name, seconds in (cooling or {}).items()},
        prefer=None if prefer is None else NodeId(prefer),
    )


@pytest.mark.parametrize(
    ("nodes", "more", "order"),
    [
        pytest.param({"a": {}, "b": {}, "c": {}}, {}, "abc", id="by place in the list"),
        pytest.param({"a": FALLBACK, "b": {}, "c": {}}, {}, "bca", id="fallbacks after primaries"),
        pytest.param({"a": UNHEALTHY, "b": {}, "c": FALLBACK}, {}, "bca", id="who does not answer is last"),
        pytest.param({"a": SUSPECT, "b": {}, "c": FALLBACK}, {}, "bac", id="53a: suspect, last of its tier"),
        pytest.param({"a": BEHIND, "b": FALLBACK, "c": {}}, {}, "cba", id="behind, after usable fallbacks"),
        pytest.param({"a": DRAINED, "b": UNHEALTHY, "c": {}}, {}, "cba", id="N11: drained, last of all"),
        pytest.param({"a": UNHEALTHY, "b": UNHEALTHY, "c": DRAINED}, {}, "abc", id="N10: all are asked all the same"),
        pytest.param({"a": ELSEWHERE, "b": {}, "c": {}}, {}, "bc", id="another chain is never asked"),
        pytest.param({}, {}, "", id="nobody"),
        # role
        pytest.param({"a": {}, "b": {}, "c": {}}, {"roles": {"a": ATTESTS}}, "bc", id="who has the role"),
        pytest.param({"a": {}, "b": UNHEALTHY, "c": FALLBACK}, {"roles": {"a": ATTESTS}}, "cb", id="usable is enough"),
        pytest.param(
            {"a": {}, "b": UNHEALTHY, "c": FALLBACK}, {"roles": {"a": ATTESTS, "c": ATTESTS}}, "acb",
            id="Q14: nobody usable has the role, usable ones without it come first",
        ),
        pytest.param(
            {"a": UNHEALTHY, "b": BEHIND, "c": FALLBACK}, {"roles": {"a": DUTIES, "b": ATTESTS, "c": ATTESTS}}, "cba",
            id="Q14: the others by the same order",
        ),
        pytest.param(
            {"a": {}, "b": {}}, {"roles": {"a": ATTESTS, "b": ATTESTS}}, "ab", id="Q14: nobody has the role at all"
        ),
        pytest.param(
            {"a": DRAINED, "b": {}}, {"roles": {"a": DUTIES, "b": ATTESTS}}, "ba", id="Q14: who has it is drained"
        ),
        pytest.param({"a": {}, "b": FALLBACK}, {"role": None, "roles": {"a": ATTESTS}}, "ab", id="told to everyone"),
        # cool-down
        pytest.param({"a": {}, "b": {}, "c": {}}, {"cooling": {"a": 2.0}}, "bca", id="Q11: comes last"),
        pytest.param({"a": {}, "b": UNHEALTHY, "c": {}}, {"cooling": {"a": 2.0}}, "cab", id="Q11: before who is down"),
        pytest.param({"a": {}, "b": {}}, {"cooling": {"a": 2.0, "b": 1.0}}, "ab", id="Q11: all, as if none"),
        # affinity
        pytest.param({"a": {}, "b": {}, "c": FALLBACK}, {"prefer": "c"}, "cab", id="Q9: comes first"),
        pytest.param({"a": {}, "b": SLOW}, {"prefer": "b"}, "ba", id="Q9: slow, but it answers"),
        pytest.param({"a": {}, "b": UNHEALTHY}, {"prefer": "b"}, "ab", id="Q9: not where it does not answer"),
        pytest.param({"a": {}, "b": SUSPECT}, {"prefer": "b"}, "ab", id="Q9: not while it is suspect"),
        pytest.param({"a": {}, "b": DRAINED}, {"prefer": "b"}, "ab", id="Q9: not while it is drained"),
        pytest.param({"a": {}, "b": {}}, {"prefer": "b", "roles": {"b": ATTESTS}}, "a", id="Q9: not without the role"),
        pytest.param({"a": {}, "b": {}}, {"prefer": "gone"}, "ab", id="Q9: who has left"),
        pytest.param({"a": {}, "b": {}, "c": {}}, {"prefer": "b", "cooling": {"b": 9.0}}, "acb", id="Q9: not cooling"),
        pytest.param(
            {"a": {}, "b": {}, "c": {}}, {"prefer": "c", "cooling": {"a": 9.0, "b": 9.0, "c": 9.0}}, "cab",
            id="Q9: all cooling, the preferred first of them",
        ),
    ],
)  # fmt: skip
def test_who_is_asked_in_which_order(nodes: dict[str, dict[str, Any]], more: dict[str, Any], order: str) -> None:
    """Q3, Q9, Q11, Q14, N6, N10, N11, scenario 53a: the order, one case a line."""
    assert "".join(planned(ranked(**nodes), **more).nodes) == order


@pytest.mark.parametrize(
    ("nodes", "more", "reason"),
    [
        ({"a": {}, "b": {}}, {}, "a is 1 of 2: a usable primary"),
        (
            {"a": {}, "b": {}},
            {"cooling": {"a": 1.5}},
            "a comes after its equals: it is to be left alone for 1.5 s; a is 1 of 2",
        ),
        ({"b": {}, "a": {}}, {"prefer": "a"}, "a comes first: what is asked for belongs to what it gave; a is 2 of 2"),
        ({"a": ELSEWHERE}, {}, "a is not asked: its genesis is another one"),
        ({"a": {}, "b": {}}, {"roles": {"a": ATTESTS}}, "a is not asked: it has not the role duties"),
        (
            {"a": {}, "b": UNHEALTHY},
            {"roles": {"a": ATTESTS}},
            "a is 1 of 2: a usable primary; nobody who is usable has the role duties",
        ),
        ({"b": {}, "a": SUSPECT}, {}, "a is 2 of 2: a usable primary, last of its tier as suspect (refused)"),
        ({"b": {}, "a": DRAINED}, {}, "drained: for maintenance"),
    ],
)
def test_the_reason_for_each_place(nodes: dict[str, dict[str, Any]], more: dict[str, Any], reason: str) -> None:
    """The words that `explain` and logs have."""
    assert reason in planned(ranked(**nodes), **more).reason(NodeId("a"))


def test_of_a_node_that_is_not_in_the_list_there_is_no_reason() -> None:
    """A name that nobody has is a mistake of the caller's."""
    with pytest.raises(KeyError):
        planned(ranked(a={})).reason(NodeId("b"))


def test_tiers_and_usable_nodes_keep_the_order() -> None:
    """Q6, Q7: what best and quorum make of a plan."""
    made = planned(ranked(a=FALLBACK, b={}, c=SLOW, d=SUSPECT), prefer="c")
    assert made.nodes == ("c", "b", "d", "a")
    assert made.of(P) == ("c", "b", "d")
    assert made.of(F) == ("a",)
    assert made.usable(made.of(P)) == ("b", "d")
    assert made.usable(()) == ()


flaws = st.sampled_from([{}, {}, UNHEALTHY, SLOW, BEHIND, SUSPECT, DRAINED, ELSEWHERE, {"optimistic": True}])
names = "abcdefg"


@st.composite
def situations(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(0, len(names)))
    some = list(names[:count])
    facts = [
        RankFacts(
            NodeId(name),
            tier=draw(st.sampled_from([P, P, F])),
            priority=draw(st.integers(-1, 1)),
            index=index,
            **draw(flaws),
        )
        for index, name in enumerate(some)
    ]
    return {
        "facts": facts,
        "roles": {name: frozenset(draw(st.sets(st.sampled_from([*Role]), min_size=1))) for name in some},
        "role": draw(st.sampled_from([None, *Role])),
        "cooling": {name: draw(st.floats(0.1, 600)) for name in some if draw(st.integers(0, 3)) == 0},
        "prefer": draw(st.sampled_from([None, *some, "gone"])),
    }


@given(situations(), st.randoms(use_true_random=False))
def test_a_plan_is_an_order_of_its_own_whatever_comes_first(situation: dict[str, Any], chance: random.Random) -> None:
    """The order is total, each node is in it once or left out with a reason, and of no account is in which order facts,
    roles and rests became known."""
    facts = situation.pop("facts")
    made = planned(rank(facts), **situation)
    shuffled = facts[:]
    chance.shuffle(shuffled)
    roles = [*situation["roles"].items()]
    cooling = [*situation["cooling"].items()]
    chance.shuffle(roles)
    chance.shuffle(cooling)
    again = planned(rank(shuffled), **{**situation, "roles": dict(roles), "cooling": dict(cooling)})
    assert again.nodes == made.nodes
    assert {node_id: again.reason(node_id) for node_id in again.nodes} == {
        node_id: made.reason(node_id) for node_id in made.nodes
    }
    everyone = {node.node_id for node in facts}
    assert len(set(made.nodes)) == len(made.nodes)
    assert {*made.nodes} | {*made.left_out} == everyone
    assert not {*made.nodes} & {*made.left_out}
    assert all(made.reason(node_id) for node_id in everyone)


@given(situations())
def test_what_holds_of_every_plan(situation: dict[str, Any]) -> None:
    """Who is asked before whom, whatever the situation is."""
    ranking = rank(situation.pop("facts"))
    made = planned(ranking, **situation)
    places, cooling, role = ranking.places, situation["cooling"], situation["role"]
    if cooling:
        others = [node_id for node_id in made.nodes if node_id != made.preferred]
        kinds = [(0 if places[n].usable else places[n].standing.group, n in cooling) for n in others]
        assert kinds == sorted(kinds), "who is to be left alone comes after its equals"
    having = [n for n in places if role is None or role in situation["roles"][n]]
    if any(places[node_id].usable for node_id in having):
        assert {*made.nodes} == {*having}
    else:
        assert {*made.nodes} == {*places}, "a role without usable nodes falls back to all others"
    first = made.nodes[0] if made.nodes else None
    if first is not None and not cooling and made.preferred is None and role is None:
        assert first == ranking.order[0]
    if made.preferred is not None:
        place = places[made.preferred]
        assert first == made.preferred == situation["prefer"]
        assert place.standing.group not in (Group.NO_ANSWER, Group.DRAINED)
        assert not place.facts.suspect
        assert made.preferred not in cooling
