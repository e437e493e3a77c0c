"""Cool-downs: for how long a node is left alone, by the moments at which it is looked at (Q11, case 24)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deep_size import deep_size
from vc_fallback.base.types import NodeId
from vc_fallback.decide.cooldown import KINDS, LONGEST, Cooldowns

A, B = NodeId("a"), NodeId("b")


@pytest.mark.parametrize(
    ("asked", "at", "left"),
    [
        (2.0, 0.0, 2.0),
        (2.0, 1.5, 0.5),
        (2.0, 2.0, 0.0),
        (2.0, 7.0, 0.0),
        (0.0, 0.0, 0.0),
        (-5.0, 0.0, 0.0),
        (1e12, 0.0, LONGEST),
        (float("inf"), 10.0, LONGEST - 10.0),
    ],
)
def test_a_rest_ends_by_itself_and_is_never_longer_than_ten_minutes(asked: float, at: float, left: float) -> None:
    """Q11: whatever a node asks for."""
    cooldowns = Cooldowns()
    cooldowns.cool(A, 100.0, asked)
    assert cooldowns.left(A, 100.0 + at) == pytest.approx(left)
    assert cooldowns.left(B, 100.0 + at) == 0.0


def test_the_longer_rest_stays() -> None:
    """Ten requests under way get ten answers of 429, the shorter ones last."""
    cooldowns = Cooldowns()
    cooldowns.cool(A, 0.0, 30.0)
    cooldowns.cool(A, 1.0, 2.0)
    assert cooldowns.left(A, 1.0) == 29.0
    cooldowns.cool(A, 1.0, 40.0)
    assert cooldowns.left(A, 1.0) == 40.0


def test_only_what_a_node_asked_for_holds_its_stream() -> None:
    """Case 24: 429 is one budget for requests and streams; who refuses a request may well have a stream."""
    cooldowns = Cooldowns()
    cooldowns.cool(A, 0.0, 300.0)
    assert (cooldowns.left(A, 1.0), cooldowns.asked_for(A, 1.0)) == (299.0, 0.0)
    cooldowns.cool(A, 0.0, 20.0, asked=True)
    assert (cooldowns.left(A, 1.0), cooldowns.asked_for(A, 1.0)) == (299.0, 19.0)
    assert (cooldowns.left(A, 25.0), cooldowns.asked_for(A, 25.0)) == (275.0, 0.0)


def test_what_is_over_is_forgotten_and_so_is_who_has_left() -> None:
    """Nothing piles up: a plan is kept for as long as nobody cools down."""
    cooldowns = Cooldowns()
    assert not cooldowns
    cooldowns.cool(A, 0.0, 2.0, asked=True)
    cooldowns.cool(B, 0.0, 20.0, asked=True)
    assert cooldowns.left(A, 3.0) == 0.0
    assert cooldowns
    cooldowns.warm(B)
    assert (cooldowns.left(B, 3.0), cooldowns.asked_for(B, 3.0)) == (0.0, 0.0)
    assert not cooldowns
    cooldowns.warm(B)


@given(
    st.lists(
        st.tuples(
            st.floats(min_value=0, max_value=1000),
            st.floats(min_value=-10, max_value=2000),
            st.booleans(),
        ),
        max_size=12,
    ),
    st.floats(min_value=0, max_value=3000),
)
def test_a_rest_is_the_longest_that_was_asked_for(cools: list[tuple[float, float, bool]], later: float) -> None:
    """In whatever order answers come: the end is that of the longest, and a stream never waits longer than requests."""
    cooldowns = Cooldowns()
    cools.sort()
    for now, seconds, asked in cools:
        cooldowns.cool(A, now, seconds, asked=asked)
    now = (cools[-1][0] if cools else 0.0) + later
    ends = [at + min(max(seconds, 0.0), LONGEST) for at, seconds, _ in cools]
    assert cooldowns.left(A, now) == pytest.approx(max(0.0, *(end - now for end in ends), 0.0))
    assert cooldowns.asked_for(A, now) <= cooldowns.left(A, now) + 1e-9


def test_who_refuses_one_kind_of_requests_is_asked_for_all_others() -> None:
    """A gateway may keep one route shut (403); two kinds are a refusal of us, and the node is left alone."""
    cooldowns = Cooldowns()
    cooldowns.refused(A, "register", 0.0, 300.0)
    assert cooldowns
    assert cooldowns.left(A, 1.0, "register") == 299.0
    assert cooldowns.left(A, 1.0, "attest") == cooldowns.left(A, 1.0) == 0.0
    cooldowns.refused(A, "register", 10.0, 300.0)
    assert cooldowns.left(A, 10.0) == 0.0
    cooldowns.refused(A, "attest", 20.0, 300.0)
    assert cooldowns.left(A, 20.0) == cooldowns.left(A, 20.0, "publish") == 300.0
    assert cooldowns.left(A, 320.0, "attest") == cooldowns.left(A, 320.0) == 0.0
    assert not cooldowns


def test_refusals_that_are_over_do_not_count_with_new_ones() -> None:
    """Once in a while is no refusal of us."""
    cooldowns = Cooldowns()
    cooldowns.refused(A, "register", 0.0, 300.0)
    cooldowns.refused(A, "attest", 301.0, 300.0)
    assert cooldowns.left(A, 301.0) == 0.0
    cooldowns.warm(A)
    assert cooldowns.left(A, 301.0, "attest") == 0.0


def test_who_is_silent_twice_in_a_row_is_asked_for_that_last() -> None:
    """Once may be an accident; an answer in between begins the count again, and ends the rest."""
    cooldowns = Cooldowns()
    cooldowns.silent(A, "duties", 0.0, 96.0)
    cooldowns.answered(A, "duties")
    cooldowns.silent(A, "duties", 10.0, 96.0)
    assert not cooldowns
    cooldowns.silent(A, "duties", 20.0, 96.0)
    assert cooldowns.left(A, 20.0, "duties") == 96.0
    assert cooldowns.left(A, 20.0, "blocks") == cooldowns.left(A, 20.0) == cooldowns.left(B, 20.0, "duties") == 0.0
    cooldowns.answered(A, "blocks")
    assert cooldowns.left(A, 21.0, "duties") == 95.0
    cooldowns.answered(A, "duties")
    assert not cooldowns


def test_a_silence_is_over_by_itself_and_one_more_begins_it_again() -> None:
    """When it is asked first again and is silent again, that is enough."""
    cooldowns = Cooldowns()
    for _ in range(2):
        cooldowns.silent(A, "duties", 0.0, 96.0)
    assert cooldowns.left(A, 96.0, "duties") == 0.0
    cooldowns.silent(A, "duties", 100.0, 96.0)
    assert cooldowns.left(A, 100.0, "duties") == 96.0
    cooldowns.warm(A)
    assert not cooldowns


def test_names_without_end_are_not_kept_without_end() -> None:
    """Rule 6: callers name their own kinds; the newest are known."""
    cooldowns = Cooldowns()
    for number in range(3 * KINDS):
        for _ in range(2):
            cooldowns.silent(A, f"kind {number}", 0.0, 96.0)
    assert deep_size(cooldowns) < 40_000
    assert cooldowns.left(A, 0.0, f"kind {3 * KINDS - 1}") == cooldowns.left(A, 0.0, f"kind {2 * KINDS}") == 96.0
    assert cooldowns.left(A, 0.0, "kind 0") == 0.0
