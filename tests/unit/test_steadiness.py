"""For how long nodes were up and synced (Q14a)."""

from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.base.types import NodeId
from vc_fallback.decide.steadiness import REMEMBERED, Steadiness

A, B = NodeId("a"), NodeId("b")


def test_a_node_was_there_from_when_it_was_seen_to_be_good() -> None:
    """What it was before counts as a break."""
    steady = Steadiness()
    assert not steady.throughout(A, 10.0, 20.0)
    steady.good(A, 10.0)
    steady.good(A, 15.0)
    assert steady.throughout(A, 10.0, 20.0)
    assert not steady.throughout(A, 9.9, 20.0)
    assert not steady.throughout(B, 10.0, 20.0)


def test_a_node_that_was_not_synced_for_a_while_has_seen_what_it_saw_before() -> None:
    """Q14a: only throughout the epoch it has to be synced."""
    steady = Steadiness()
    steady.good(A, 0.0)
    steady.bad(A, 20.0)
    steady.bad(A, 21.0)
    assert steady.throughout(A, 5.0, 20.0)
    assert not steady.throughout(A, 5.0, 20.1)
    steady.good(A, 30.0)
    assert steady.throughout(A, 5.0, 20.0)
    assert not steady.throughout(A, 5.0, 31.0)
    assert steady.throughout(A, 30.0, 31.0)


def test_a_node_that_was_restarted_has_seen_nothing() -> None:
    """Q14a: however long it was up before: what it saw was in its memory."""
    steady = Steadiness()
    steady.good(A, 0.0)
    steady.bad(A, 20.0)
    steady.good(A, 21.0)
    steady.gone(A)
    assert not steady.throughout(A, 5.0, 15.0)
    assert not steady.throughout(A, 22.0, 23.0)
    steady.good(A, 25.0)
    assert steady.throughout(A, 25.0, 30.0)


def test_spells_of_long_ago_are_forgotten() -> None:
    """Rule 6."""
    steady = Steadiness()
    for number in range(REMEMBERED + 1):
        steady.good(A, 10.0 * number)
        steady.bad(A, 10.0 * number + 9.0)
    assert not steady.throughout(A, 1.0, 2.0)
    assert steady.throughout(A, 11.0, 12.0)
    assert steady.throughout(A, 10.0 * REMEMBERED, 10.0 * REMEMBERED + 9.0)


@given(st.lists(st.sampled_from(["good", "bad", "gone"]), max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_never_is_a_node_trusted_over_a_break(seen: list[str], one: int, other: int) -> None:
    """Q14a: at each second something is seen; a node is trusted over no second of which another thing was seen last."""
    steady = Steadiness()
    state: list[str] = []
    for second, what in enumerate(seen):
        if what == "good":
            steady.good(A, float(second))
        elif what == "bad":
            steady.bad(A, float(second))
        else:
            steady.gone(A)
        state.append(what)
    begin, end = sorted((one, other))
    if begin < end <= len(state) and steady.throughout(A, float(begin), float(end)):
        assert set(state[begin:end]) == {"good"}
        assert "gone" not in state[begin:]
    # The other way round it is trusted, as long as it is remembered.
    if begin < end <= len(state) and set(state[begin:end]) == {"good"} and "gone" not in state[begin:]:
        later = "".join("b" if what == "bad" else "g" for what in state[end:])
        if later.count("bg") < REMEMBERED - 1:
            assert steady.throughout(A, float(begin), float(end))
