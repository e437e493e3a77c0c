"""For how long nodes were up and synced (Q14a)."""

from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.base.types import NodeId
from vc_fallback.decide.steadiness import REMEMBERED, Steadiness

A, B = NodeId("a"), NodeId("b")
WITHIN = 4.0


class Watched(Steadiness):
    """Signs of node A."""

    def signs(self, *moments: float) -> None:
        for moment in moments:
            self.good(A, moment, within=WITHIN)

    def there(self, begin: float, end: float, node: NodeId = A) -> bool:
        return self.throughout(node, begin, end, within=WITHIN)


def test_a_node_was_there_from_the_first_sign_on() -> None:
    """What it was before counts as a break; the last sign stands for a while."""
    seen = Watched()
    assert not seen.there(10, 20)
    seen.signs(10, 14, 18)
    assert seen.there(10, 20)
    assert seen.there(10, 22)
    assert not seen.there(10, 22.1)
    assert not seen.there(9.9, 20)
    assert not seen.there(10, 20, B)


def test_without_a_sign_for_too_long_it_was_away() -> None:
    """A chain without blocks and a node without peers look the same; it was over with the last sign."""
    seen = Watched()
    seen.signs(0, 4, 8.1)
    assert not seen.there(0, 8.1)
    assert seen.there(0, 4)
    assert not seen.there(0, 4.1)
    assert seen.there(8.1, 9)


def test_a_node_that_was_not_synced_for_a_while_has_seen_what_it_saw_before() -> None:
    """Q14a: only throughout the epoch it has to be synced. How long it was not is not known: since its last sign."""
    seen = Watched()
    seen.signs(0, 4, 8)
    seen.bad(A)
    seen.bad(A)
    assert seen.there(2, 8)
    assert not seen.there(2, 8.1)
    seen.signs(10, 12)
    assert seen.there(2, 8)
    assert not seen.there(2, 11)
    assert seen.there(10, 12)


def test_a_node_that_was_restarted_has_seen_nothing() -> None:
    """Q14a: however long it was up before: what it saw was in its memory."""
    seen = Watched()
    seen.signs(0, 2)
    seen.bad(A)
    seen.signs(3, 6)
    seen.gone(A)
    assert not seen.there(0, 2)
    assert not seen.there(3, 6)
    seen.signs(7, 9)
    assert seen.there(7, 9)
    assert not seen.there(3, 9)


def test_spells_of_long_ago_are_forgotten() -> None:
    """Rule 6."""
    seen = Watched()
    for number in range(REMEMBERED + 1):
        seen.signs(10 * number, 10 * number + 3)
        seen.bad(A)
    assert not seen.there(1, 2)
    assert seen.there(11, 12)
    assert seen.there(10 * REMEMBERED, 10 * REMEMBERED + 3)


@given(
    st.lists(st.sampled_from(["good", "good", "good", "bad", "gone", "nothing"]), max_size=30),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_never_is_a_node_trusted_over_a_break(what: list[str], one: int, other: int) -> None:
    """Q14a: something is seen each second; whoever is trusted gave a sign in every four, and was not found bad between,
    nor restarted since."""
    seen = Watched()
    for second, sign in enumerate(what):
        if sign == "good":
            seen.signs(second)
        elif sign == "bad":
            seen.bad(A)
        elif sign == "gone":
            seen.gone(A)
    begin, end = sorted((one, other))
    if end < len(what) and seen.there(begin, end):
        first = max(second for second in range(begin + 1) if what[second] == "good")
        between = what[first : end + 1]
        assert "bad" not in what[begin:end]
        assert "gone" not in what[begin:]
        gaps = "".join("g" if sign == "good" else "." for sign in between)
        assert "." * int(WITHIN) not in gaps.rstrip(".")
