"""Which slot the nodes together hold to be the newest (N5, scenario 5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.base.types import Slot
from vc_fallback.decide.tip import tip


@pytest.mark.parametrize(
    ("heights", "wall", "expected"),
    [
        ([], 100, None),
        ([100], 100, 100),
        ([100, 99], 100, 100),
        ([100, 99, 98], 100, 99),
        ([100, 100, 98], 100, 100),
        ([100, 99, 98, 97, 96], 100, 99),
        ([1000, 1005, 998], 1001, 1000),
        ([1005], 1001, None),
        ([1002, 1000], 1001, 1002),
        ([2**80, 50, 49, 48], 100, 49),
        ([101, 50, 49], 100, 50),
        ([0, 0, 0], 0, 0),
        ([90, 89], 10**6, 90),
    ],
)
def test_the_tip(heights: list[int], wall: int, expected: int | None) -> None:
    """N5: beyond the clock is discarded; of three the second highest, of two the higher, one is its own."""
    assert tip(map(Slot, heights), Slot(wall)) == expected


@given(st.lists(st.integers(0, 110), min_size=3, max_size=8), st.integers(0, 2**64))
def test_one_liar_among_three_or_more_never_moves_the_tip_beyond_the_others(honest: list[int], lie: int) -> None:
    """N5: whatever it says, the tip stays within what the others show."""
    moved = tip(map(Slot, [*honest, lie]), Slot(100))
    usable = [height for height in honest if height <= 101]
    if len(usable) >= 2:
        assert moved is not None
        assert sorted(usable)[-2] <= moved <= max(usable)
