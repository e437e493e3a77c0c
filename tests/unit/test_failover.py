"""Which node has the duties, and when they move (N9, N10, N11; scenarios 9, 53a, 54; cases 29, 31)."""

from typing import Any

import pytest

from vc_fallback.base.types import NodeId, Slot, Tier
from vc_fallback.decide.drain import Drains
from vc_fallback.decide.failover import Failover, FailoverPolicy, Move, MoveKind
from vc_fallback.decide.health_policy import HealthPolicy
from vc_fallback.decide.health_state import NodeHealth
from vc_fallback.decide.rank import RankFacts, rank
from vc_fallback.decide.tip_consensus import Heights

P1, P2, F1 = NAMES = [NodeId(name) for name in ("p1", "p2", "f1")]
START, FAILOVER, FAILBACK = MoveKind.START, MoveKind.FAILOVER, MoveKind.FAILBACK
GOOD: dict[str, Any] = {}
DOWN: dict[str, Any] = {"unhealthy": "3 failed checks in a row: refused", "answers": False, "steady": False}
RECOVERING: dict[str, Any] = {"unhealthy": "recovering, 1 of 3 good checks in a row", "steady": False}
OPTIMISTIC: dict[str, Any] = {"optimistic": True, "steady": False}
UNSTEADY: dict[str, Any] = {"steady": False}
SUSPECT: dict[str, Any] = {"suspect": "refused", "steady": False}
BEHIND: dict[str, Any] = {"lag": 3, "steady": False}
NO_EL: dict[str, Any] = {"el_offline": True, "steady": False}


class World:
    """Two primaries and a fallback, at moments in seconds; slots of 12 s."""

    def __init__(self, **policy: Any) -> None:
        self.failover = Failover(FailoverPolicy(**policy))
        self.moves: list[Move] = []
        self.order: tuple[NodeId, ...] = ()

    def at(self, now: float, **described: dict[str, Any] | None) -> NodeId | None:
        """Look at a moment; nodes that are not described are well, those that are `None` are not in the list."""
        facts = []
        for index, node_id in enumerate(NAMES):
            of_node = described.get(node_id, GOOD)
            if of_node is not None:
                tier = Tier.FALLBACK if node_id == F1 else Tier.PRIMARY
                placed: dict[str, Any] = {"tier": tier, "index": index}
                facts.append(RankFacts(node_id, **placed | of_node))
        ranking = rank(facts)
        move = self.failover.look(now, ranking)
        if move is not None:
            self.moves.append(move)
            assert move.target == self.failover.active
        self.order = self.failover.order(ranking)
        return self.failover.active

    def alarm(self) -> bool:
        """Whether all are unhealthy."""
        return self.failover.all_unhealthy

    @property
    def told(self) -> list[tuple[float, MoveKind, str | None, str | None]]:
        return [(move.at, move.kind, move.source, move.target) for move in self.moves]


def test_the_first_node_is_the_first_by_rank() -> None:
    """N9: no failover is counted for it."""
    world = World()
    assert world.at(0.0) == P1
    assert world.at(1.0) == P1
    assert world.told == [(0.0, START, None, P1)]
    assert (world.failover.failovers, world.failover.failbacks) == (0, 0)


def test_whoever_answers_first_at_the_start_gives_way_to_a_better_one_that_answers_a_little_later() -> None:
    """N9: a fallback that says sooner which chain it is on does not keep the duties for it, nor is that a failback."""
    unknown = {"excluded": "its chain is not known yet"}
    for prefers in (True, False):
        world = World(prefer_higher_priority=prefers)
        assert world.at(0.0, p1=unknown, p2=unknown) == F1
        assert world.at(0.1, p1=unknown, p2=UNSTEADY) == F1, "it was not checked yet"
        assert world.at(0.2, p1=unknown) == P2
        assert world.at(0.3, p1={"peers": 3}) == P2
        assert world.at(0.4) == P1
        assert world.told == [(0.0, START, None, F1), (0.2, START, F1, P2), (0.4, START, P2, P1)]
        assert (world.failover.failovers, world.failover.failbacks) == (0, 0)


def test_the_start_is_over_with_the_dwell_or_the_first_failover() -> None:
    """N9: from then on a move to a node that ranks higher is a failback."""
    for prefers in (True, False):
        world = World(prefer_higher_priority=prefers)
        world.at(0.0, p1=DOWN, p2=DOWN)
        assert world.at(48.0, p1=GOOD, p2=DOWN) == (P1 if prefers else F1)
        assert world.failover.failbacks == prefers
    world = World()
    world.at(0.0, p1=DOWN)
    world.at(1.0, p1=DOWN, p2=DOWN)
    assert world.at(2.0, p2=DOWN) == F1
    assert world.at(49.0, p2=DOWN) == P1
    assert world.moves[-1].kind is FAILBACK


def test_all_primaries_down_and_one_comes_back() -> None:
    """Scenario 9: a fallback serves at once; failback after the recovery checks, not before the dwell is over."""
    world = World()
    world.at(0.0)
    assert world.at(10.0, p1=DOWN) == P2
    assert world.at(11.0, p1=DOWN, p2=DOWN) == F1
    assert world.order == (F1, P1, P2)
    assert world.at(20.0, p1=RECOVERING, p2=DOWN) == F1
    assert world.at(58.9, p1=GOOD, p2=DOWN) == F1
    assert world.at(59.0, p1=GOOD, p2=DOWN) == P1
    assert world.told[1:] == [(10.0, FAILOVER, P1, P2), (11.0, FAILOVER, P2, F1), (59.0, FAILBACK, F1, P1)]
    assert world.moves[1].reason == "p1: 3 failed checks in a row: refused"
    assert world.moves[3].reason == "p1 ranks higher and is steady"
    assert (world.failover.failovers, world.failover.failbacks) == (2, 1)


def test_failback_needs_recovery_however_long_it_was_away() -> None:
    """N9: N4 first; the dwell is long over."""
    world = World()
    world.at(0.0)
    world.at(10.0, p1=DOWN)
    assert world.at(1000.0, p1=RECOVERING) == P2
    assert world.at(1001.0, p1=UNSTEADY) == P2
    assert world.at(1002.0, p1=GOOD) == P1


@pytest.mark.parametrize(
    ("peers", "floor", "back"),
    [(14, 15, False), (15, 15, True), (None, 15, True), (0, 0, True), (0, 15, False)],
)
def test_failback_needs_peers_where_they_are_reported(peers: int | None, floor: int, back: bool) -> None:
    """N9, case 29: a node back with few peers takes nothing over."""
    world = World(min_peers=floor)
    world.at(0.0)
    world.at(10.0, p1=DOWN)
    assert world.at(100.0, p1={"peers": peers}) == (P1 if back else P2)


def test_a_failover_asks_for_no_peers() -> None:
    """N9: it waits for nothing."""
    world = World()
    world.at(0.0)
    assert world.at(0.1, p1=DOWN, p2={"peers": 0, **UNSTEADY}) == P2


def test_failback_can_be_off() -> None:
    """N9: the node keeps its place while it is usable."""
    world = World(prefer_higher_priority=False)
    world.at(0.0)
    world.at(10.0, p1=DOWN, p2=DOWN)
    assert world.at(10_000.0) == F1
    assert world.at(10_001.0, f1=BEHIND) == P1


def test_one_that_is_steady_is_taken_where_a_better_one_is_not() -> None:
    """N9: the best one that can be relied on."""
    world = World()
    world.at(0.0)
    world.at(10.0, p1=DOWN, p2=DOWN)
    assert world.at(100.0, p1=UNSTEADY) == P2
    assert world.at(120.0) == P2
    assert world.at(148.0) == P1


@pytest.mark.parametrize("flaw", [OPTIMISTIC, BEHIND, NO_EL], ids=["optimistic", "sync", "execution layer"])
def test_a_flapping_node_does_not_take_duties_back_and_forth(flaw: dict[str, Any]) -> None:
    """Case 31: its flag alternates every 3 s for ten minutes; duties move once."""
    world = World()
    world.at(0.0)
    for number in range(200):
        world.at(3.0 + 3 * number, p1=flaw if number % 2 == 0 else UNSTEADY)
    assert world.told[1:] == [(3.0, FAILOVER, P1, P2)]


@pytest.mark.parametrize("flaw", [OPTIMISTIC, BEHIND], ids=["optimistic", "sync"])
def test_not_even_where_the_other_one_is_not_usable(flaw: dict[str, Any]) -> None:
    """Case 31: at most one round in the dwell, although each step to a usable node is an improvement."""
    world = World()
    erring = {"unhealthy": "5 errors in 60 s", "steady": False}
    world.at(0.0, p2=erring, f1=None)
    for number in range(200):
        world.at(3.0 + 3 * number, p1=flaw if number % 2 == 0 else UNSTEADY, p2=erring, f1=None)
    assert len(world.moves) <= 1 + 2 * (600 / 48 + 1)
    for one, other in zip(world.moves[1:], world.moves[3:], strict=False):
        assert other.at - one.at >= 48.0


def test_a_suspicion_is_a_detour_and_moves_no_duties() -> None:
    """Scenario 53a: requests go to the next at once; a good check, and they are back; no failover is counted."""
    world = World()
    world.at(0.0)
    for number in range(5):
        now = 100.0 * number
        assert world.at(now + 1, p1=SUSPECT) == P1
        assert world.order == (P2, P1, F1)
        assert world.at(now + 3, p1=UNSTEADY) == P1
        assert world.order == (P1, P2, F1)
    assert world.told == [(0.0, START, None, P1)]


def test_a_suspicion_that_lasts_the_dwell_moves_no_duties_either() -> None:
    """N4: it is not worse, and the other one does not rank higher but for it."""
    world = World()
    world.at(0.0)
    assert world.at(1000.0, p1=SUSPECT) == P1
    assert world.at(1001.0, p1=DOWN) == P2


def test_nobody_goes_back_to_a_suspect() -> None:
    """N9."""
    world = World()
    world.at(0.0)
    world.at(10.0, p1=DOWN)
    assert world.at(100.0, p1={"suspect": "refused"}) == P2


def test_losing_the_execution_layer_costs_the_place_within_the_tier_only() -> None:
    """N6, N9, case 30."""
    world = World()
    world.at(0.0)
    assert world.at(10.0, p1=NO_EL, p2=None) == P1
    assert world.at(11.0, p1=NO_EL) == P2
    assert world.moves[-1].reason == "p1: its execution layer is offline"
    assert world.at(12.0, p1=NO_EL, p2=NO_EL) == P2, "all say so: nobody does better"
    assert world.at(61.0, p2=NO_EL) == P1


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"inconsistent": "2 of 3 nodes have another root"}, "p1: 2 of 3 nodes have another root"),
        ({"early": "a head came 0.60 s before its slot"}, "p1: a head came 0.60 s before its slot"),
        ({"lag": 2}, "p1: 2 slots behind the tip"),
        ({"optimistic": True}, "p1: optimistic"),
        ({"drained": "for 600 s"}, "p1: drained: for 600 s"),
        ({"excluded": "genesis_time differs"}, "p1: genesis_time differs"),
        ({"tier": Tier.FALLBACK}, "p1: it is a fallback now"),
        (None, "p1: left the list"),
    ],
)
def test_a_failover_says_why(facts: dict[str, Any] | None, reason: str) -> None:
    """N9: immediate, with its reason."""
    world = World()
    world.at(0.0)
    assert world.at(0.5, p1=facts) == P2
    assert (world.moves[-1].kind, world.moves[-1].reason) == (FAILOVER, reason)


def test_a_node_that_does_not_answer_is_left_for_any_that_does() -> None:
    """N9, N10: although it took over just now, and although nobody is usable."""
    world = World()
    world.at(0.0, p1=DOWN, p2=DOWN, f1=DOWN)
    assert world.at(1.0, p1=DOWN, p2=DOWN, f1={**BEHIND, "unhealthy": "20 slots behind the tip"}) == F1
    assert world.at(2.0, p1=DOWN, p2=UNSTEADY, f1=DOWN) == P2
    assert world.at(3.0, p1=DOWN, p2=None, f1=DOWN) == P1, "nobody answers"
    assert world.at(4.0, p1=DOWN, p2=None, f1={**BEHIND, "unhealthy": "20 slots behind the tip"}) == F1


def test_the_node_that_has_the_duties_is_asked_first() -> None:
    """N9: also while one that ranks higher is not given them back yet; the others follow by rank."""
    world = World()
    world.at(0.0)
    assert world.order == (P1, P2, F1)
    world.at(10.0, p1=DOWN, p2=DOWN)
    world.at(11.0, p2=DOWN)
    assert world.order == (F1, P1, P2)
    world.at(12.0)
    assert world.order == (F1, P1, P2)


def test_the_least_bad_is_left_at_once_for_a_steady_one_and_else_after_the_dwell() -> None:
    """N9, case 31: the active one is not usable and never was, so nothing is lost, but a flapping one is no gain."""
    for facts, moved_at in ((GOOD, 12.0), (UNSTEADY, 58.0)):
        world = World()
        world.at(0.0, f1=DOWN)
        assert world.at(10.0, p1=DOWN, p2={"lag": 40}, f1=DOWN) == P2
        for now in (12.0, 30.0, 57.9, 58.0):
            world.at(now, p1=facts, p2={"lag": 40}, f1=DOWN)
        assert world.told[2:] == [(moved_at, FAILOVER, P2, P1)]
        assert world.moves[-1].reason == "p2: 40 slots behind the tip; p1 does better"


def test_one_that_was_usable_meanwhile_is_measured_by_that_and_not_by_how_it_took_over() -> None:
    """N9: it was the least bad, became well, and is what it was: that is a failover, which waits for nothing."""
    world = World()
    world.at(0.0, f1=DOWN)
    assert world.at(10.0, p1=DOWN, p2=OPTIMISTIC, f1=DOWN) == P2
    world.at(15.0, p1=DOWN, f1=DOWN)
    assert world.at(20.0, p1=UNSTEADY, p2=OPTIMISTIC, f1=DOWN) == P1
    assert world.told[2:] == [(20.0, FAILOVER, P2, P1)]


def test_all_unhealthy_is_an_alarm_and_everyone_is_still_asked() -> None:
    """N10, scenario 54: a gauge, and an order to try."""
    world = World()
    world.at(0.0)
    assert not world.alarm()
    world.at(1.0, p1=DOWN, p2=DOWN, f1=DOWN)
    assert world.alarm()
    assert set(world.order) == set(NAMES)
    world.at(2.0, p1=RECOVERING, p2=DOWN, f1=DOWN)
    assert world.alarm(), "one that recovers is not healthy yet"
    world.at(3.0, p2=DOWN, f1=DOWN)
    assert not world.alarm()
    quarantined = {"excluded": "genesis_time differs", "unhealthy": "genesis_time differs"}
    world.at(4.0, p1=quarantined, p2=quarantined, f1=quarantined)
    assert world.alarm()
    world.at(5.0, p1={"excluded": "its chain is not known yet"}, p2=None, f1=None)
    assert not world.alarm(), "at the start nobody is known to be ill"


def test_the_list_may_be_empty_for_a_while() -> None:
    """G6, G1."""
    world = World()
    assert world.at(0.0, p1=None, p2=None, f1=None) is None
    assert not world.alarm()
    assert world.order == ()
    world.at(1.0)
    world.at(2.0, p1=None, p2=None, f1=None)
    world.at(3.0, p1=None, p2=None, f1=None)
    world.at(4.0, p1=None)
    assert world.told == [(1.0, START, None, P1), (2.0, FAILOVER, P1, None), (4.0, START, None, P2)]
    assert world.at(5.0) == P1, "from the first node duties go back at any time"


def test_when_to_look_again() -> None:
    """N9: the end of the dwell is a moment at which time alone moves duties."""
    world = World()
    assert world.failover.next_look(0.0) is None
    world.at(0.0)
    assert world.failover.next_look(0.0) is None
    world.at(10.0, p1=DOWN)
    assert world.failover.next_look(11.0) == 58.0
    assert world.failover.next_look(58.0) is None


def test_a_drained_node_comes_back_by_itself() -> None:
    """N11: put last until a time, live; it goes on being checked meanwhile."""
    drains = Drains()
    drains.drain(P1, 600.0)
    drains.drain(P2, 500.0)
    assert drains.next_end == 500.0
    assert drains.resume(P2)
    assert not drains.resume(P2)
    assert (drains.left(P1, 100.0), drains.left(P2, 100.0), drains.next_end) == (500.0, 0.0, 600.0)
    world = World()
    world.at(0.0)
    for now in range(1, 700, 10):
        over = drains.ended(float(now))
        assert over == ((P1,) if now == 601 else ())
        left = drains.left(P1, float(now))
        world.at(float(now), p1={"drained": f"for {left:.0f} s"} if left else GOOD)
    assert world.told[1:] == [(1.0, FAILOVER, P1, P2), (601.0, FAILBACK, P2, P1)]
    assert drains.next_end is None


def test_a_drain_ends_at_the_very_moment_that_was_named() -> None:
    """N11."""
    drains = Drains()
    drains.drain(P1, 800.0)
    drains.drain(P2, 900.0)
    assert [drains.ended(now) for now in (799.9, 800.0, 800.1, 900.0)] == [(), (P1,), (), (P2,)]


def test_with_real_health_a_node_is_killed_and_restarted() -> None:
    """Scenarios 9, 53, 56: suspect, unhealthy, recovering, healthy; duties leave it and come back."""
    world = World()
    healths = {node_id: NodeHealth(HealthPolicy(), 0.0) for node_id in NAMES}

    def look(now: float) -> None:
        described = {
            str(node_id): {"unhealthy": h.unhealthy, "answers": h.answers, "suspect": h.suspect, "steady": h.steady}
            for node_id, h in healths.items()
        }
        world.at(now, **described)

    for slot in range(4):
        for health in healths.values():
            health.check_passed(12.0 * slot + 10, lag=0)
        look(12.0 * slot + 10)
    for now in (50.0, 52.0, 54.0):
        healths[P1].check_failed(now, "refused")
        look(now)
        assert world.order[0] == P2
    assert world.told[1:] == [(54.0, FAILOVER, P1, P2)]
    for now in (70.0, 72.0, 74.0):
        healths[P1].check_passed(now, lag=0)
        look(now)
    look(101.0)
    assert world.failover.active == P2
    look(102.0)
    assert world.told[2:] == [(102.0, FAILBACK, P2, P1)]


def test_a_frozen_stream_moves_no_request() -> None:
    """Scenario 10, rule 3: its polls advance, whatever slots are missed; and one whose checks lag is left (59)."""
    world = World()
    heights = Heights(settle=3.0)
    healths = {node_id: NodeHealth(HealthPolicy(), 0.0) for node_id in NAMES}

    def look(now: float) -> None:
        described = {str(n): {"unhealthy": h.unhealthy, "lag": h.lag, "steady": h.steady} for n, h in healths.items()}
        world.at(now, **described)

    head = 0
    for slot in range(1, 60):
        start = 12.0 * slot
        if slot % 4 < 2:
            head = slot
            for node_id in (P2, F1):
                heights.saw(node_id, Slot(slot), start + 1, served=True)
                healths[node_id].seen(start + 1, lag=heights.lag(node_id, start + 1, Slot(slot)))
        for now in (start + 1, start + 5):
            look(now)
        for node_id, health in healths.items():
            own = head if node_id != P1 or slot < 50 else 49
            heights.saw(node_id, Slot(own), start + 10, served=False)
            health.check_passed(start + 10, lag=heights.lag(node_id, start + 10, Slot(slot)))
        look(start + 10)
        if slot < 50:
            assert world.failover.active == P1
    assert world.told == [(13.0, START, None, P1), (634.0, FAILOVER, P1, P2)]
    assert world.moves[-1].reason == "p1: 3 slots behind the tip"
