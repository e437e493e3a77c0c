"""Which node is asked first, as the table of the requirement says it (N6; N3, N4, N5, N8, N11; case 29, 30)."""

import random
import time
from dataclasses import replace
from typing import Any

import pytest

from vc_fallback.base.types import NodeId, Tier
from vc_fallback.decide.rank import TABLE, RankFacts, rank, step_of
from vc_fallback.decide.rank_words import explain

N6 = (
    "1 S-n+, 2 m-n+, 3 S-n−, 4 M-n+, 5 S-o+, 6 S-o−, 7 m-n−, 8 m-o+, 9 m-o−, 10 L-n+, 11 M-n−, 12 M-o+, 13 M-o−, "
    "14 L-n−, 15 L-o+, 16 L-o−"
)


def node(name: str, *, tier: str = "primary", **facts: Any) -> RankFacts:
    return RankFacts(NodeId(name), tier=Tier(tier), **facts)


def nodes(*described: dict[str, Any]) -> list[RankFacts]:
    """Describe nodes a, b, c … in list order."""
    return [node(chr(ord("a") + number), index=number, **facts) for number, facts in enumerate(described)]


def order(facts: list[RankFacts]) -> str:
    return "".join(rank(facts).order)


FALLBACK: dict[str, Any] = {"tier": "fallback"}
SICK: dict[str, Any] = {"unhealthy": "5 errors in 60 s"}
DOWN: dict[str, Any] = {"unhealthy": "3 failed checks in a row: refused", "answers": False}


def test_the_table_is_that_of_the_requirement() -> None:
    """N6: the 16 steps, literally."""
    assert ", ".join(f"{row.step} {row.code}" for row in TABLE) == N6
    for row in TABLE:
        distance, head, execution = row.code[0], row.code[2], row.code[3]
        assert row.distance == {"S": "synced", "m": "a little behind", "M": "behind", "L": "far behind"}[distance]
        assert row.head == {"n": "verified", "o": "optimistic"}[head]
        assert row.execution == f"execution layer {'up' if execution == '+' else 'offline'}"


LAGS = {"S": (0, 8), "m": (9, 16), "M": (17, 64), "L": (65, 2**64)}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.code)
def test_the_step_of_a_node(row: Any) -> None:
    """N6: S synced ≤ 8, m ≤ 16, M ≤ 64, L beyond; the worse of the node's own word and our reckoning counts."""
    for lag in LAGS[row.code[0]]:
        for ours, claim in ((lag, 0), (0, lag), (lag, lag), (lag, None), (None, lag)):
            facts = node("a", lag=ours, claim=claim, optimistic="o" in row.code, el_offline="−" in row.code)
            assert step_of(facts) == row


def test_nodes_that_are_not_usable_stand_by_the_table() -> None:
    """N6: one node for each step, all of them sick; whatever their tiers."""
    described = []
    for row in reversed(TABLE):
        lag = LAGS[row.code[0]][0]
        tier = "primary" if row.step % 2 else "fallback"
        optimistic, offline = "o" in row.code, "−" in row.code
        described.append(node(f"{row.step:02}", tier=tier, lag=lag, optimistic=optimistic, el_offline=offline, **SICK))
    assert list(rank(described).order) == [f"{step:02}" for step in range(1, 17)]


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        pytest.param([{}, {}, {}], "abc", id="equal: list order"),
        pytest.param([{"priority": 1}, {}, {"priority": -1}], "cba", id="priority, lower first"),
        pytest.param([FALLBACK, {}], "ba", id="primaries first"),
        pytest.param([FALLBACK, {"lag": 1}], "ba", id="43: the fallback is merely ahead"),
        pytest.param([{"lag": 2}, FALLBACK], "ba", id="N5: two slots behind the tip is demoted"),
        pytest.param([{"optimistic": True}, FALLBACK], "ba", id="optimistic is not usable"),
        pytest.param([{"optimistic": None, "el_offline": None, "lag": None}, {}], "ab", id="unknown counts as good"),
        pytest.param([SICK, FALLBACK], "ba", id="unhealthy is not usable"),
        pytest.param([DOWN, SICK], "ba", id="27: known to be offline is tried last"),
        pytest.param([DOWN, {**FALLBACK, "lag": 5000, "optimistic": True}], "ba", id="whatever the others are like"),
        pytest.param([{"claim": 178}, {}], "ba", id="29: first in list is unsynced by its own word"),
        pytest.param([{"claim": 8}, {}], "ab", id="N5: missed slots demote nobody"),
        pytest.param([{"el_offline": True}, {}, FALLBACK], "bac", id="30: last of its tier"),
        pytest.param([{"el_offline": True}, {"el_offline": True}], "ab", id="30: if all say so, the best"),
        pytest.param([{"suspect": "refused"}, {}, FALLBACK], "bac", id="53a: suspect is last of its tier"),
        pytest.param([{"suspect": "refused"}, FALLBACK], "ab", id="53a: but of its tier"),
        pytest.param([{"suspect": "refused"}, {"el_offline": True}], "ba", id="suspect after no execution layer"),
        pytest.param([{"inconsistent": "2 of 3"}, {"priority": 5}, FALLBACK], "bac", id="N3: within its tier only"),
        pytest.param([{"early": "0.6 s"}, {"priority": 5}, FALLBACK], "bac", id="N8"),
        pytest.param([{"inconsistent": "2 of 3"}, {"early": "0.6 s"}], "ba", id="another branch is worse than a clock"),
        pytest.param([{"drained": "1 h"}, FALLBACK, DOWN], "bca", id="N11: last"),
        pytest.param([{"excluded": "another chain"}, {}], "b", id="N7: quarantined"),
        pytest.param([{"beyond_clock": True}, {"lag": 3}], "ba", id="N5: a head beyond the clock is no head"),
        pytest.param([{**SICK, **FALLBACK}, SICK], "ba", id="one step: tier"),
        pytest.param([{**SICK, "priority": 1}, SICK], "ba", id="one step and tier: priority"),
        pytest.param([{**SICK, "lag": 9}, {**SICK, **FALLBACK}], "ba", id="steps before tier"),
    ],
)
def test_the_order(described: list[dict[str, Any]], expected: str) -> None:
    """N6, with N3, N4, N5, N7, N8, N11."""
    assert order(nodes(*described)) == expected


def test_why_a_node_is_where_it_is() -> None:
    """N6: one sentence, whichever part of the rank it is in."""
    ranking = rank(
        nodes(
            {},
            {"el_offline": True, "inconsistent": "2 of 3 nodes have 0x00 at slot 5", "early": "0.60 s before its slot"},
            {"suspect": "connection refused"},
            FALLBACK,
            {"lag": 9, "unhealthy": "9 slots behind the tip"},
            DOWN,
            {"drained": "for 60 s"},
            {"excluded": "genesis_time differs"},
            {"optimistic": True, "el_offline": True, **FALLBACK},
        )
    )
    sentences = {name: explain(ranking, NodeId(name)) for name in "abcdefghi"}
    assert sentences["a"] == "a is 1 of 8: a usable primary"
    assert sentences["b"] == (
        "b is 2 of 8: a usable primary, last of its tier as its execution layer is offline, lowered as inconsistent "
        "(2 of 3 nodes have 0x00 at slot 5), lowered for its clock (0.60 s before its slot); after a: "
        "that one has its execution layer"
    )
    assert sentences["c"] == (
        "c is 3 of 8: a usable primary, last of its tier as suspect (connection refused); after b: "
        "that one is not suspect"
    )
    assert sentences["d"] == "d is 4 of 8: a usable fallback; after c: that one is usable, and a primary"
    assert sentences["e"] == (
        "e is 5 of 8: a primary that is not usable (9 slots behind the tip), step 2: a little behind, head verified, "
        "execution layer up; after d: that one is usable"
    )
    assert sentences["f"] == (
        "f is 7 of 8: a primary that does not answer (3 failed checks in a row: refused); after i: that one answers"
    )
    assert sentences["g"] == "g is 8 of 8: a primary that is drained: for 60 s; after f: that one is not drained"
    assert sentences["h"] == "h is left out: genesis_time differs"
    assert sentences["i"] == (
        "i is 6 of 8: a fallback that is not usable (optimistic), step 6: synced, head optimistic, "
        "execution layer offline; after e: that one is at step 2"
    )
    with pytest.raises(KeyError):
        explain(ranking, NodeId("nobody"))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        pytest.param({}, {}, "by place in the list", id="index"),
        pytest.param({}, {"priority": 3}, "by priority, 0 before 3", id="priority"),
        pytest.param({}, {"inconsistent": "x"}, "that one is not inconsistent", id="inconsistent"),
        pytest.param({}, {"early": "x"}, "that one's clock is not off", id="clock"),
        pytest.param(SICK, {**SICK, **FALLBACK}, "that one is a primary", id="tier"),
        pytest.param(SICK, {"claim": 9}, "that one is at step 1", id="step"),
        pytest.param({"beyond_clock": True}, DOWN, "that one answers", id="answers"),
    ],
)
def test_what_puts_one_node_after_another(before: dict[str, Any], after: dict[str, Any], words: str) -> None:
    """N6: the first part of the rank in which they differ."""
    assert explain(rank(nodes(before, after)), NodeId("b")).endswith(f"; after a: {words}")


@pytest.mark.parametrize("seed", range(20))
def test_a_ranking_that_is_changed_is_the_one_that_would_be_made(seed: int) -> None:
    """N6: whatever is changed of whom, node by node; the ranking before it stays as it was."""
    dice = random.Random(seed)
    changes: list[dict[str, Any]] = [{}, {}, SICK, DOWN, {"lag": 1}, {"lag": 5}, {"optimistic": True}, FALLBACK]
    changes += [{"suspect": "x"}, {"excluded": "x"}, {"drained": "x"}, {"priority": 3}, {"index": 9}, {"peers": 3}]
    facts = {one.node_id: one for one in nodes(*[{}] * 8)}
    ranking = rank(facts.values())
    for _ in range(200):
        name = dice.choice(list(facts))
        before, order = ranking, ranking.order
        facts[name] = RankFacts(name, **{"index": ord(name) - ord("a")} | dice.choice(changes))
        ranking = ranking.changed(facts[name])
        anew = rank(facts.values())
        assert list(ranking.places.items()) == list(anew.places.items())
        assert dict(ranking.left_out) == dict(anew.left_out)
        assert (ranking.order, ranking.numbers) == (anew.order, anew.numbers)
        assert ranking.first == anew.first
        assert before.order == order == tuple(before.places)


def test_a_hundred_nodes_are_ranked_within_a_millisecond() -> None:
    """Rank of 100 nodes under 1 ms (the best of some runs, on a machine that does other things too)."""
    facts = [
        replace(
            node(str(number), lag=number % 70, optimistic=number % 3 == 0, el_offline=number % 5 == 0, index=number),
            tier=Tier.FALLBACK if number % 2 else Tier.PRIMARY,
            unhealthy="sick" if number % 7 == 0 else "",
        )
        for number in range(100)
    ]
    times = []
    for _ in range(50):
        begun = time.perf_counter()
        rank(facts)
        times.append(time.perf_counter() - begun)
    assert min(times) < 0.001
