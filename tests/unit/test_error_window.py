"""Errors in a window, where those that overlap in time are one (N3)."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.decide.error_window import ErrorWindow


@pytest.mark.parametrize(
    ("errors", "now", "count"),
    [
        pytest.param([], 10, 0, id="none"),
        pytest.param([(0, 1), (2, 3), (4, 5)], 5, 3, id="one after the other"),
        pytest.param([(0, 5)] * 30, 5, 1, id="thirty at once are one"),
        pytest.param([(0, 5), (1, 6), (4, 7)], 7, 1, id="those that begin within the first"),
        pytest.param([(0, 5), (4, 9), (6, 10)], 10, 2, id="overlapping ones do not chain"),
        pytest.param([(3, 3), (3, 3)], 3, 1, id="refused in the same instant"),
        pytest.param([(0, 1), (1, 2)], 2, 1, id="touching"),
        pytest.param([(0, 1), (2, 3)], 61, 1, id="the first is 60 s old"),
        pytest.param([(0, 1), (2, 3)], 60.9, 2, id="it is nearly"),
        pytest.param([(0, 1), (2, 3)], 63, 0, id="all are"),
        pytest.param([(n, n + 0.5) for n in range(9)], 10, 5, id="more are not counted"),
    ],
)
def test_what_counts(errors: list[tuple[float, float]], now: float, count: int) -> None:
    """N3: 5 in 60 s; overlapping errors count once."""
    window = ErrorWindow()
    for started, ended in errors:
        window.add(started, ended)
    assert window.count(now) == count
    assert window.exceeded(now) is (count == 5)


def test_when_there_are_no_longer_too_many() -> None:
    """N3: as soon as the fifth last is out of the window."""
    window = ErrorWindow(limit=2, window=60.0)
    assert window.add(0.0, 1.0)
    assert not window.add(0.5, 2.0)
    assert window.relents(1.0) == 0.0
    window.add(10.0, 11.0)
    assert window.relents(20.0) == 41.0
    assert window.exceeded(60.9)
    assert not window.exceeded(61.0)
    window.clear()
    assert window.count(0.0) == 0


intervals = st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(intervals, max_size=8))
def test_it_is_the_largest_number_of_errors_of_which_no_two_overlap(errors: list[tuple[int, int]]) -> None:
    """N3: compared with trying all choices."""
    window = ErrorWindow(limit=100, window=1000.0)
    errors.sort(key=lambda error: error[1])
    for started, ended in errors:
        window.add(started, ended)

    def apart(chosen: tuple[tuple[int, int], ...]) -> bool:
        return all(one[1] < other[0] or other[1] < one[0] for one, other in combinations(chosen, 2))

    most = max(size for size in range(len(errors) + 1) for chosen in combinations(errors, size) if apart(chosen))
    assert window.count(60) == most
