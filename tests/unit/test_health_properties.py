"""What holds of health whatever happens (N1, N3–N6, N9; case 31)."""

import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.base.types import NodeId, Root, Slot, Tier
from vc_fallback.decide.consistency import Consistency
from vc_fallback.decide.failover import Failover, FailoverPolicy, MoveKind
from vc_fallback.decide.health_policy import HealthPolicy
from vc_fallback.decide.health_state import NodeHealth
from vc_fallback.decide.health_words import explain
from vc_fallback.decide.rank import Group, RankFacts, rank
from vc_fallback.decide.rank_words import explain as explain_place
from vc_fallback.decide.tip_consensus import Heights

HEALTHY, UNHEALTHY, RECOVERING = HealthState.HEALTHY, HealthState.UNHEALTHY, HealthState.RECOVERING
POLICY = HealthPolicy()


class Happening(NamedTuple):
    """Something that happens to a node, so many seconds after the thing before."""

    after: float
    what: str
    lag: int = 0
    took: float = 0.1


happenings = st.lists(
    st.builds(
        Happening,
        after=st.sampled_from([0.0, 0.5, 2.0, 12.0, 70.0]),
        what=st.sampled_from(["good", "good", "failed", "failed", "error", "broken off", "heads", "duty"]),
        lag=st.sampled_from([0, 0, 0, 1, 8, 9, 200]),
        took=st.sampled_from([0.0, 0.1, 1.0, 5.0]),
    ),
    max_size=60,
)


@settings(max_examples=250)
@given(happenings)
def test_a_node_moves_only_for_a_reason_that_holds(history: list[Happening]) -> None:
    """N1, N3, N4: no healthy node is unhealthy without a reason, and recovering is left only as N4 says.

    Beside the node runs what the requirement says of it, told only of checks, errors, lag and latencies as they come.
    """
    health = NodeHealth(POLICY, 0.0)
    now = 0.0
    failed = passed = 0
    trouble = False
    for happening in history:
        now += happening.after
        before, told = health.state, None
        match happening.what:
            case "good":
                told = health.check_passed(now, lag=happening.lag, latency=happening.took)
                failed = 0
            case "failed":
                told = health.check_failed(now, "refused")
                failed, passed = failed + 1, 0
            case "error" | "broken off":
                transport = happening.what == "broken off"
                told = health.request_failed(now, "no", started=now - happening.took, transport=transport)
            case "heads":
                told = health.seen(now, lag=happening.lag)
            case _:
                told = health.duty_answered(now, happening.took)
        after = health.state
        p90s = [health.sync_latency.p90(now), health.duty_latency.p90(now)]
        limits = {
            HealthReason.BEHIND: health.lag is not None and health.lag > 8,
            HealthReason.ERRORS: health.errors.count(now) >= 5,
            HealthReason.SLOW: any(p90 is not None and p90 > 3.0 for p90 in p90s),
        }
        if happening.what == "good":
            passed = 0 if any(limits.values()) else passed + 1
        if after is UNHEALTHY and before is not UNHEALTHY:
            passed = 0
            if before is HEALTHY:
                assert (failed >= 3 and health.reason is HealthReason.CHECKS_FAILED) or limits[health.reason]
            else:
                assert happening.what in ("failed", "broken off") or limits[health.reason]
            assert health.unhealthy
        if before is HEALTHY and after is HEALTHY:
            assert failed < 3
            assert not any(limits.values())
        if before is UNHEALTHY:
            assert after is not HEALTHY
            assert (after is RECOVERING) is (happening.what == "good" and not any(limits.values()))
        if before is RECOVERING and after is HEALTHY:
            assert happening.what == "good"
            assert passed == POLICY.min_recovery_checks
        if before is RECOVERING and after is RECOVERING:
            assert 0 < passed < POLICY.min_recovery_checks
            assert happening.what not in ("failed", "broken off")
        assert (told is not None and told.moved) is (before is not after)
        if told is not None:
            assert (told.at, told.before, told.after, told.reason) == (now, before, after, health.reason)
        if before is not after:
            assert health.since == now
        assert not health.suspect or after is HEALTHY
        trouble = trouble or after is not HEALTHY or bool(health.suspect)
        trouble = trouble or (happening.what in ("good", "heads") and happening.lag >= 2)
        assert not health.steady or (after is HEALTHY and not health.suspect and health.passed >= (3 if trouble else 1))
        assert bool(health.unhealthy) is (after is not HEALTHY)
        assert str(after) in explain(health, now)


NAMES = [NodeId(name) for name in "abcdefgh"]


@given(st.lists(st.integers(90, 101), min_size=2, max_size=7), st.integers(0, 2**64), st.booleans())
def test_one_liar_among_three_or_more_never_moves_the_tip_beyond_the_others(
    honest: list[int], lie: int, served: bool
) -> None:
    """N5: with at least three nodes it stays within what two of the others show, and nobody honest is demoted by it."""
    heights = Heights(settle=3.0)
    for node_id, slot in zip(NAMES, honest, strict=False):
        heights.saw(node_id, Slot(slot), 0.0, served=True)
    heights.saw(NodeId("liar"), Slot(lie), 0.0, served=served)
    top = heights.tip(10.0, Slot(100))
    assert top is not None
    ranked = sorted(honest, reverse=True)
    assert (ranked[1] if len(honest) > 2 else min(ranked)) <= top <= ranked[0]
    best = NAMES[honest.index(ranked[0])]
    assert heights.lag(best, 10.0, Slot(100)) == 0
    assert not heights.beyond_clock(best, Slot(100))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(95, 101)), max_size=30), st.randoms(use_true_random=False))
def test_the_tip_ignores_the_order_of_nodes(shown: list[tuple[int, int]], shuffle: random.Random) -> None:
    """N5: only what each node shows last counts."""
    last = {NAMES[number]: slot for number, slot in shown}
    one, other = Heights(0.0), Heights(0.0)
    for number, slot in shown:
        one.saw(NAMES[number], Slot(slot), 0.0, served=True)
    nodes = list(last)
    shuffle.shuffle(nodes)
    for node_id in nodes:
        other.saw(node_id, Slot(last[node_id]), 0.0, served=True)
    assert one.tip(1.0, Slot(100)) == other.tip(1.0, Slot(100))


texts = st.sampled_from(["", "", "why"])
distances = st.sampled_from([None, 0, 1, 2, 8, 9, 16, 17, 64, 65, 2**64])


@st.composite
def fleets(draw: st.DrawFn) -> list[RankFacts]:
    facts = []
    for index in range(draw(st.integers(0, 8))):
        unhealthy = draw(texts)
        facts.append(
            RankFacts(
                NAMES[index],
                tier=draw(st.sampled_from(Tier)),
                priority=draw(st.integers(-1, 1)),
                index=index,
                unhealthy=unhealthy,
                answers=not unhealthy or draw(st.booleans()),
                suspect="" if unhealthy else draw(texts),
                lag=draw(distances),
                claim=draw(distances),
                optimistic=draw(st.sampled_from([None, False, True])),
                el_offline=draw(st.sampled_from([None, False, True])),
                inconsistent=draw(texts),
                early=draw(texts),
                drained=draw(st.sampled_from(["", "", "", "why"])),
                excluded=draw(st.sampled_from(["", "", "", "why"])),
            )
        )
    return facts


@given(fleets(), st.randoms(use_true_random=False))
def test_the_rank_is_a_total_order_that_ignores_the_order_of_arrival(
    facts: list[RankFacts], shuffle: random.Random
) -> None:
    """N6: every node has one place, whoever is asked first; usable ones first, and every place can be explained."""
    ranking = rank(facts)
    arrived = list(facts)
    shuffle.shuffle(arrived)
    assert rank(arrived).order == ranking.order
    assert {*ranking.order, *ranking.left_out} == {node.node_id for node in facts}
    assert not set(ranking.order) & set(ranking.left_out)
    places = list(ranking.places.values())
    keys = [place.key for place in places]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    assert [place.usable for place in places] == sorted((place.usable for place in places), reverse=True)
    assert [place.standing.group for place in places] == sorted(place.standing.group for place in places)
    for node in facts:
        assert explain_place(ranking, node.node_id).startswith(f"{node.node_id} is ")


@given(fleets(), st.data())
def test_taking_a_node_away_leaves_the_order_of_the_others(facts: list[RankFacts], data: st.DataObject) -> None:
    """N6: the rank of two nodes does not depend on a third."""
    if not facts:
        return
    gone = data.draw(st.sampled_from(facts))
    left = [node for node in facts if node is not gone]
    assert rank(left).order == tuple(node_id for node_id in rank(facts).order if node_id != gone.node_id)


CANONICAL = [Root(bytes([slot]).ljust(32, b"h")) for slot in range(60)]

heads = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=40)


@settings(max_examples=200)
@given(heads)
def test_a_node_that_shows_what_most_show_is_never_inconsistent(shown: list[tuple[int, int, int]]) -> None:
    """N3: three honest nodes follow one chain, some later than others; one more shows whatever it likes."""
    nodes = Consistency()
    for slot in range(1, len(CANONICAL)):
        nodes.branches.link(CANONICAL[slot], Slot(slot), CANONICAL[slot - 1])
    slot = 10
    for number, behind, lie in shown:
        slot += 1
        for honest, node_id in enumerate(NAMES[:3]):
            at = slot - (behind if honest == number else 0)
            nodes.head(node_id, Slot(at), CANONICAL[at])
        liar = Root(bytes([lie]).ljust(32, b"l")) if lie else CANONICAL[slot]
        nodes.head(NAMES[3], Slot(slot + lie - 1), liar)
        nodes.judge()
        assert not any(nodes.inconsistent(node_id) for node_id in NAMES[:3])


FORK = 8


def block_of(branch: int, slot: int) -> Root:
    """The block that a branch has at a slot, or before it: after slot 8 each slot has its block on one of two."""
    while slot > FORK and slot % 2 != branch:
        slot -= 1
    return CANONICAL[slot] if slot <= FORK else Root(bytes([slot]).ljust(32, b"ab"[branch : branch + 1]))


def slot_of(root: Root) -> int:
    return CANONICAL.index(root) if root in CANONICAL else root[0]


def parent_of(root: Root) -> Root:
    branch = 0 if root.endswith(b"a") else 1
    return CANONICAL[slot_of(root) - 1] if root in CANONICAL else block_of(branch, slot_of(root) - 1)


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from([0, 1]), min_size=2, max_size=4),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20),
)
def test_what_is_told_of_a_fork_is_so_however_late_its_headers_are(
    branches: list[int], steps: list[tuple[int, int, int]]
) -> None:
    """N3: nobody is shown where it is not; when no header is wanting, a fork is known if and only if there is one."""
    nodes = Consistency()
    slot = FORK + 1
    for late, behind, learned in steps:
        slot += 1
        for index, branch in enumerate(branches):
            own = block_of(branch, slot - (behind if index == late else 0))
            nodes.head(NAMES[index], Slot(slot_of(own)), own)
        nodes.judge()
        for count in range(40):
            for split in nodes.splits:
                for root, told in split.roots.items():
                    assert {block_of(branches[NAMES.index(node_id)], split.slot) for node_id in told} == {root}
            if not nodes.wanted or (count >= learned and learned < 3):
                break
            for _, root in nodes.wanted:
                nodes.branches.link(root, Slot(slot_of(root)), parent_of(root))
            nodes.judge()
        if not nodes.wanted:
            assert not nodes.undecided
            heads = [block_of(branch, slot - (behind if i == late else 0)) for i, branch in enumerate(branches)]
            apart = {branch for branch, root in zip(branches, heads, strict=True) if slot_of(root) > FORK}
            assert bool(nodes.splits) is (len(apart) > 1)
        if len(set(branches)) == 1:
            assert not nodes.splits
            assert not any(nodes.inconsistent(node_id) for node_id in NAMES)


@st.composite
def states(draw: st.DrawFn) -> dict[str, Any]:
    return draw(
        st.sampled_from(
            [
                {},
                {},
                {"steady": False},
                {"optimistic": True, "steady": False},
                {"lag": 5, "steady": False},
                {"suspect": "refused", "steady": False},
                {"el_offline": True, "steady": False},
                {"unhealthy": "5 errors in 60 s", "steady": False},
                {"unhealthy": "refused", "answers": False, "steady": False},
            ]
        )
    )


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from([0.5, 3.0, 12.0]), states(), states(), states()), max_size=40))
def test_duties_are_where_they_should_be_and_do_not_flap(
    history: list[tuple[float, dict[str, Any], dict[str, Any], dict[str, Any]]],
) -> None:
    """N9, case 31: whatever three nodes do.

    An active node that got worse or does not answer never stays while another does better. Duties are not given back
    within the dwell, and a node that does as well as ever is left only for a steady one that ranks higher.
    """
    failover = Failover(FailoverPolicy())
    now, taken = 0.0, -1000.0
    best_since: Any = None
    for after, *described in history:
        now += after
        facts = [
            RankFacts(NAMES[index], tier=Tier.FALLBACK if index == 2 else Tier.PRIMARY, index=index, **of_node)
            for index, of_node in enumerate(described)
        ]
        ranking = rank(facts)
        source = ranking.places.get(failover.active) if failover.active is not None else None
        move = failover.look(now, ranking)
        assert failover.active is not None
        active = ranking.places[failover.active]
        best = ranking.first
        assert best is not None
        assert sorted(failover.order(ranking)) == sorted(ranking.order)
        if active.standing > best.standing:
            assert active.standing.group < Group.NO_ANSWER
        if move is None:
            best_since = min(best_since, active.standing)
            continue
        assert move.target == failover.active
        if move.kind is not MoveKind.START:
            assert source is not None
            assert move.reason
            if move.kind is MoveKind.FAILBACK:
                assert source.usable
                assert active.usable
                assert active.facts.steady
                assert active.worth < source.worth
                assert now - taken >= 48.0
            else:
                assert active.standing < source.standing
                assert (
                    source.standing > min(best_since, source.standing)
                    or source.standing.group >= Group.NO_ANSWER
                    or active.facts.steady
                    or now - taken >= 48.0
                )
            taken = now
        best_since = active.standing


@pytest.mark.parametrize("seed", range(4))
def test_a_flapping_node_beside_a_steady_one_costs_one_move(seed: int) -> None:
    """Case 31: at any rhythm; with real health, checks at 5/6 of a slot and heads in between."""
    dice = random.Random(seed)
    flapping, steady = NodeHealth(POLICY, 0.0), NodeHealth(POLICY, 0.0)
    failover = Failover(FailoverPolicy())
    moves = []
    optimistic = False
    for second in range(1, 3600):
        now = float(second)
        if dice.random() < 0.3:
            optimistic = not optimistic
            flapping.seen(now, optimistic=optimistic)
        if second % 12 == 10:
            flapping.check_passed(now, lag=0, optimistic=optimistic)
            steady.check_passed(now, lag=0, optimistic=False)
        facts = [
            RankFacts(NAMES[index], index=index, unhealthy=h.unhealthy, optimistic=h.optimistic, steady=h.steady)
            for index, h in enumerate((flapping, steady))
        ]
        move = failover.look(now, rank(facts))
        if move is not None:
            moves.append(move)
    assert [move.kind for move in moves] in ([MoveKind.START], [MoveKind.START, MoveKind.FAILOVER])
    assert failover.active == NAMES[1]
