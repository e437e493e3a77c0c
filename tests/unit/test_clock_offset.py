"""Whose clock is off: a node's, or our own (N8)."""

from collections.abc import Sequence

import pytest

from vc_fallback.base.types import NodeId, Slot
from vc_fallback.decide.clock_offset import WATCHED, ClockPolicy, ClockVerdict, ClockWatch

A, B, C, D = NAMES = [NodeId(name) for name in "ABCD"]


def watch(slots: Sequence[Sequence[float | None]]) -> ClockWatch:
    """Let nodes A, B, C … show the heads of slots 0, 1, 2 … so many seconds into them."""
    clocks = ClockWatch(ClockPolicy())
    for slot, offsets in enumerate(slots):
        for node_id, offset in zip(NAMES, offsets, strict=False):
            if offset is not None:
                clocks.head(node_id, Slot(slot), offset)
        clocks.judge(Slot(slot))
    return clocks


@pytest.mark.parametrize(
    ("offset", "warning", "lowers"),
    [
        pytest.param(0.0, "", "", id="at its start"),
        pytest.param(3.9, "", "", id="normal propagation"),
        pytest.param(-0.25, "", "", id="a little early"),
        pytest.param(-0.26, "a head came 0.26 s before its slot", "", id="beyond -0.25 s warns"),
        pytest.param(-0.5, "a head came 0.50 s before its slot", "", id="at -0.5 s"),
        pytest.param(-0.51, *["a head came 0.51 s before its slot"] * 2, id="beyond -0.5 s lowers the rank"),
    ],
)
@pytest.mark.parametrize("others", [(), (0.3,), (0.3, 0.4)], ids=["alone", "of two", "of three"])
def test_a_head_before_its_slot(offset: float, warning: str, lowers: str, others: tuple[float, ...]) -> None:
    """N8: it proves our clock slow or the node's fast; the node's, where others are not early."""
    clocks = watch([[offset, *others]])
    assert clocks.verdict(A) == ClockVerdict(min(0.0, offset), warning, lowers)
    assert clocks.ours() == ""


def test_all_early_alike_is_our_own_clock() -> None:
    """N8: and what one was earlier than the others is its own."""
    clocks = watch([[-0.6, -0.7, -1.4]])
    assert "up to 0.60 s before their slot: our clock is slow" in clocks.ours()
    assert clocks.verdict(A) == ClockVerdict(-0.6, "", "")
    assert clocks.verdict(B) == ClockVerdict(-0.7, "", "")
    assert clocks.verdict(C).lowers == "a head came 0.80 s before its slot"
    assert watch([[-0.6, -0.7], [1.0, 1.0]]).ours(), "for the next slots too"
    assert watch([[-0.2, -0.2]]).ours() == ""


@pytest.mark.parametrize(
    ("late", "odd"),
    [pytest.param(7, False, id="7 of 16"), pytest.param(8, True, id="8 of 16"), pytest.param(16, True, id="16 of 16")],
)
def test_a_node_later_than_the_median_in_8_of_16_slots_is_late_itself(late: int, odd: bool) -> None:
    """N8: it warns, and lowers nothing."""
    clocks = watch([[1.0, 1.1, 1.5 if slot < late else 1.0] for slot in range(16)])
    verdict = clocks.verdict(C)
    assert verdict.warning == (f"later than the other nodes in {late} of 16 slots" if odd else "")
    assert verdict.lowers == ""
    assert verdict.offset == 0.0
    assert clocks.verdict(A).warning == clocks.verdict(B).warning == clocks.ours() == ""


def test_the_last_of_three_by_a_little_is_not_late() -> None:
    """N8: one node is always the last; it takes as much as an early head takes to warn."""
    assert watch([[1.0, 1.0, 1.2]] * 16).verdict(C).warning == ""


def test_the_later_of_two_is_not_late() -> None:
    """N8: two have no median that says who is right."""
    assert watch([[1.0, 3.0]] * 16).verdict(B).warning == ""


def test_all_late_alike_points_at_us() -> None:
    """N8: after attestations are due, in 8 of 16 slots; no node is blamed."""
    assert watch([[4.5, 4.6]] * 7 + [[1.0, 1.0]] * 9).ours() == ""
    clocks = watch([[4.5, 4.6]] * 8 + [[1.0, 1.0]] * 8)
    assert clocks.ours() == (
        "the heads of all nodes came after 4 s in 8 of 16 slots: our clock is fast, or our network slow"
    )
    assert clocks.verdict(A).warning == clocks.verdict(B).warning == ""
    assert watch([[4.5, 1.0]] * 16).ours() == ""
    assert watch([[4.5]] * 16).ours() == "", "of one node nobody knows whose fault it is"


def test_future_slot_answers_warn() -> None:
    """N8: of the node, and of ourselves where most nodes say so; forgotten after 16 slots."""
    clocks = watch([[1.0, 1.0, 1.0]])
    clocks.future_slot(A, Slot(1))
    assert clocks.judge(Slot(1)) == [A]
    assert clocks.verdict(A).warning == "says that our slots are in the future"
    assert clocks.verdict(A).lowers == clocks.ours() == ""
    clocks.future_slot(B, Slot(2))
    assert clocks.judge(Slot(2)) == [None, B]
    assert clocks.ours() == "2 nodes say that our slots are in the future: our clock is fast"
    assert clocks.judge(Slot(1 + WATCHED)) == [None, A], "both are in doubt no more"
    assert clocks.ours() == clocks.verdict(A).warning == ""
    assert clocks.verdict(B).warning != ""


@pytest.mark.parametrize(("nodes", "sayers", "ours"), [(1, 1, False), (2, 2, True), (3, 1, False), (4, 2, False)])
def test_whose_future_it_is(nodes: int, sayers: int, ours: bool) -> None:
    """N8: of one node nobody knows; of several it is ours where more than half say so."""
    clocks = watch([[1.0] * nodes])
    for node_id in NAMES[:sayers]:
        clocks.future_slot(node_id, Slot(0))
    assert bool(clocks.ours()) is ours


def test_what_is_odd_is_told_once_and_again_when_it_comes_back_and_so_is_its_end() -> None:
    """N8, rule 6: a clock that is off makes no line for each slot."""
    clocks = ClockWatch(ClockPolicy())
    told = []
    for slot in range(60):
        clocks.head(A, Slot(slot), -0.6 if slot in (3, 5, 40) else 1.0)
        told.append(clocks.judge(Slot(slot)))
    assert [slot for slot, changed in enumerate(told) if changed == [A]] == [3, 5 + WATCHED, 40, 40 + WATCHED]
    assert clocks.verdict(A).lowers == "", "16 slots later it is as if it had not been"


def test_bursts_and_repeats_say_nothing() -> None:
    """N8, H13: old heads that come late, and a head shown twice."""
    clocks = ClockWatch(ClockPolicy())
    clocks.head(A, Slot(1), 12.0)
    clocks.head(A, Slot(2), 900.0)
    assert clocks.judge(Slot(3)) == []
    assert clocks.verdict(A) == ClockVerdict()
    clocks.head(A, Slot(4), 1.0)
    clocks.head(A, Slot(4), -0.9)
    clocks.judge(Slot(4))
    assert clocks.verdict(A) == ClockVerdict(0.0)


def test_a_node_that_left_is_forgotten() -> None:
    """G1: also what it showed in the slot that is not over."""
    clocks = watch([[-0.9, 1.0]])
    clocks.head(A, Slot(1), -0.9)
    clocks.forget(A)
    assert clocks.judge(Slot(1)) == [A], "its end is told"
    assert clocks.judge(Slot(2)) == []
    assert clocks.verdict(A) == ClockVerdict()


def test_slots_that_are_not_over_are_bounded() -> None:
    """Rule 6: heads of many slots before anyone looks."""
    clocks = ClockWatch(ClockPolicy())
    for slot in range(1000):
        clocks.head(A, Slot(slot), -1.0)
        clocks.head(B, Slot(slot), 1.0)
    assert sorted(clocks._open) == [996, 997, 998, 999]
    assert clocks.judge(Slot(1000)) == [A]
