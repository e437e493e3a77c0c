"""In a flood of places that moved only where each node has come to is told; a node's own news always is."""

from typing import Any

from tests.health_told import health as told_health
from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.base.health_signals import HealthChanged
from vc_fallback.base.signals import GenerationChanged, Signal
from vc_fallback.base.types import NodeId
from vc_fallback.observe.rank_moves import MOST, WINDOW, RankMoves


def health(number: int, rank: int | None, at: float = 0.0, **changes: Any) -> HealthChanged:
    return told_health(f"n{number}", at, rank=rank, **changes)


def told(moves: RankMoves, *signals: Signal) -> list[tuple[str, int | None]]:
    return [(found.node_id, found.rank) for signal in signals for found in moves(signal)]


def flooded(count: int = MOST) -> RankMoves:
    """Of node 0 so many moves have been told in this window: its place is 1 + `count`."""
    moves = RankMoves()
    moves(health(0, 1))
    assert len(told(moves, *(health(0, 2 + number) for number in range(count)))) == min(count, MOST)
    return moves


def test_ordinary_moves_are_told_at_once() -> None:
    moves = RankMoves()
    assert told(moves, health(1, 1), health(2, 2), health(1, 2), health(2, 1)) == [
        ("n1", 1), ("n2", 2), ("n1", 2), ("n2", 1),
    ]  # fmt: skip


def test_a_hundred_nodes_that_join_one_by_one_are_told_some_hundred_times_and_each_comes_to_its_place() -> None:
    """Without a bound there are some 5,000 moves: each of them that joins at the front moves all others."""
    moves, last = RankMoves(), {}
    lines = 0
    for number in range(100):
        at = number * 0.005
        for signal in (*(health(other, number + 1 - other, at) for other in range(number)), health(number, 1, at)):
            for found in moves(signal):
                last[found.node_id] = found.rank
                lines += 1
    for found in moves(GenerationChanged(3.0, 2, (), (), (), ())):
        last[found.node_id] = found.rank
        lines += 1
    assert lines <= 100 + MOST + 100
    assert last == {NodeId(f"n{number}"): 100 - number for number in range(100)}


def test_what_is_gathered_is_told_at_the_first_signal_after_the_window() -> None:
    moves = flooded()
    assert told(moves, health(0, 7), health(0, 8)) == []
    assert told(moves, GenerationChanged(WINDOW - 0.01, 1, (), (), (), ())) == []
    assert told(moves, GenerationChanged(WINDOW, 1, (), (), (), ())) == [("n0", 8)]
    assert told(moves, GenerationChanged(2 * WINDOW, 1, (), (), (), ())) == []


def test_what_is_gathered_counts_in_the_next_window() -> None:
    moves = flooded()
    told(moves, health(0, 7))
    assert told(moves, *(health(0, rank, WINDOW) for rank in range(8, 8 + MOST))) == [
        ("n0", rank) for rank in (7, *range(8, 8 + MOST - 1))
    ]


def test_a_node_that_came_back_to_its_place_is_no_news() -> None:
    moves = flooded()
    assert told(moves, health(0, 7), health(0, 1 + MOST)) == []
    assert moves.rest() == []


def test_another_reason_for_the_same_place_is_news() -> None:
    """A node may be inconsistent, or drained, and last before and after."""
    moves = RankMoves()
    signals = [health(0, 3), health(0, 3, explanation="drained"), health(0, 3, explanation="drained"), health(0, 3)]
    assert told(moves, *signals) == [("n0", 3)] * 3


def test_the_same_again_is_no_news() -> None:
    moves = RankMoves()
    assert told(moves, health(0, 1), health(0, 1), health(0, 1, WINDOW)) == [("n0", 1)]


def test_a_nodes_own_news_is_told_in_any_flood() -> None:
    moves = flooded()
    moves(health(0, 7))
    changes: list[dict[str, Any]] = [
        {"suspect": True},
        {"state": HealthState.UNHEALTHY},
        {"reason": HealthReason.BEHIND},
        {"optimistic": True},
        {"el_offline": None},
        {"rank": None},
    ]
    for change in changes:
        values = {"rank": 7} | change
        assert told(moves, health(0, **values)) == [("n0", values["rank"])]
    # What was gathered of it before is part of that.
    assert moves.rest() == []


def test_who_left_is_not_told_and_who_has_another_connection_begins_anew() -> None:
    moves = flooded()
    moves(health(0, 7))
    assert told(moves, GenerationChanged(0.5, 2, (), (), (NodeId("n0"),), ())) == []
    assert told(moves, health(0, 3, 0.5)) == [("n0", 3)]
    assert told(moves, health(0, 4, 0.5), GenerationChanged(5.0, 3, (), (NodeId("n0"),), (), ())) == []
    assert moves.rest() == []


def test_at_the_end_all_that_waits_is_told() -> None:
    moves = flooded()
    moves(health(0, 7))
    assert [(found.node_id, found.rank) for found in moves.rest()] == [("n0", 7)]
    assert moves.rest() == []
