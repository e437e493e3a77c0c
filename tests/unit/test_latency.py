"""The latency that nine of ten answers stay within (N3, Q2)."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.decide.latency import FEWEST, MOST, LatencyDigest


@pytest.mark.parametrize(
    ("latencies", "p90"),
    [
        pytest.param([], None, id="none"),
        pytest.param([1, 1], None, id="too few to tell"),
        pytest.param([9, 1, 1], 1, id="one of three is an outlier"),
        pytest.param([9, 8, 1], 8, id="two of three are not"),
        pytest.param([1] * 8 + [9], 1, id="one of nine"),
        pytest.param([1] * 9 + [9], 1, id="one of ten"),
        pytest.param([1] * 8 + [8, 9], 8, id="two of ten"),
        pytest.param(list(range(1, 21)), 18, id="the 18th of 20"),
        pytest.param([9] * 32 + [1] * 32, 1, id="of the last 32"),
        pytest.param([1] * 28 + [9] * 4, 9, id="four of 32 are more than one of ten"),
        pytest.param([1] * 29 + [9] * 3, 1, id="three of 32 are not"),
    ],
)
def test_p90(latencies: list[float], p90: float | None) -> None:
    """N3: nearest rank, of fewer than ten never the slowest."""
    digest = LatencyDigest()
    for latency in latencies:
        digest.add(latency, 10.0)
    assert digest.p90(10.0) == p90


def test_what_is_old_is_forgotten() -> None:
    """N3: a node that nobody asks any more is not judged for ever by what it was."""
    digest = LatencyDigest(memory=100.0)
    for number in range(3):
        digest.add(5.0, float(number))
    assert digest.p90(99.0) == 5.0
    assert digest.p90(100.0) is None
    assert len(digest) == 2
    digest.add(1.0, 101.0)
    digest.add(1.0, 101.0)
    digest.add(1.0, 101.0)
    assert digest.p90(101.0) == 1.0
    digest.clear()
    assert digest.p90(101.0) is None


@given(st.lists(st.floats(0, 100), min_size=1, max_size=100))
def test_nine_of_ten_stay_within_it_and_it_is_one_of_them(latencies: list[float]) -> None:
    """N3: for any answers; memory is bounded."""
    digest = LatencyDigest()
    for latency in latencies:
        digest.add(latency, 1.0)
    kept = latencies[-MOST:]
    assert len(digest) == len(kept)
    p90 = digest.p90(1.0)
    if len(kept) < FEWEST:
        assert p90 is None
        return
    assert p90 in kept
    assert p90 is not None
    within = sum(latency <= p90 for latency in kept)
    assert within >= (ceil(0.9 * len(kept)) if len(kept) >= 10 else len(kept) - 1)
    assert p90 < max(kept) or kept.count(max(kept)) > 1
