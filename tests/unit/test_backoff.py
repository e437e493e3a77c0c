"""Waiting longer after each failure in a row, and which failures are loud (H4, H9; scenarios 15 and 51)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.base.backoff import Backoff, BackoffPolicy

POLICY = BackoffPolicy()


def no_jitter(low: float, high: float) -> float:
    return 0.0


def waits(backoff: Backoff, count: int) -> list[float]:
    return [backoff.failed() for _ in range(count)]


def test_the_waits_double_up_to_the_cap() -> None:
    """H4, scenario 15: 1, 2, 4, 8, 16, 16 s."""
    assert waits(Backoff(POLICY, no_jitter), 7) == [1, 2, 4, 8, 16, 16, 16]


@pytest.mark.parametrize(("drawn", "factor"), [(-0.2, 0.8), (0.2, 1.2)])
def test_jitter_is_a_fifth_either_way(drawn: float, factor: float) -> None:
    """H4: ±20 %, of the capped wait too."""
    asked: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        asked.append((low, high))
        return drawn

    assert waits(Backoff(POLICY, uniform), 6) == pytest.approx([factor * wait for wait in (1, 2, 4, 8, 16, 16)])
    assert set(asked) == {(-0.2, 0.2)}


def test_real_jitter_stays_within_its_bounds_and_varies() -> None:
    """H4: nodes that failed together do not come back together."""
    first = [Backoff(POLICY).failed() for _ in range(200)]
    assert all(0.8 <= wait <= 1.2 for wait in first)
    assert max(first) - min(first) > 0.1


@pytest.mark.parametrize(
    ("at_least", "wait"), [(0.0, 1.0), (0.5, 1.0), (1.0, 1.0), (2.0, 2.0), (30.0, 30.0), (-5.0, 1.0), (math.nan, 1.0)]
)
def test_a_node_that_says_retry_after_is_given_that_time_at_least(at_least: float, wait: float) -> None:
    """H4, case 24: `Retry-After` is obeyed, above the cap too, and shortens nothing."""
    assert Backoff(POLICY, no_jitter).failed(at_least) == wait


def test_retry_after_counts_as_a_failure_like_any_other() -> None:
    """H4: the wait after it is the next of the row."""
    backoff = Backoff(POLICY, no_jitter)
    assert [backoff.failed(30.0), backoff.failed()] == [30, 2]


def test_a_reset_begins_the_row_again() -> None:
    """H4, scenario 15: a current head resets it."""
    backoff = Backoff(POLICY, no_jitter)
    waits(backoff, 5)
    backoff.reset()
    assert backoff.failures == 0
    assert waits(backoff, 2) == [1, 2]


def test_failures_1_2_4_8_are_loud() -> None:
    """H9, scenario 51: nine straight failures, warnings at 1, 2, 4, 8 only."""
    assert not Backoff(POLICY).loud
    backoff = Backoff(POLICY, no_jitter)
    loud = []
    for _ in range(9):
        backoff.failed()
        if backoff.loud:
            loud.append(backoff.failures)
    assert loud == [1, 2, 4, 8]
    backoff.reset()
    assert not backoff.loud


def test_a_changed_policy_holds_from_the_next_failure_on() -> None:
    """The slot becomes known after the first failures, and times scale with it."""
    backoff = Backoff(POLICY, no_jitter)
    waits(backoff, 2)
    backoff.policy = BackoffPolicy(first=0.2, cap=1.6)
    assert waits(backoff, 3) == pytest.approx([0.8, 1.6, 1.6])


@given(
    failures=st.integers(0, 10**7),
    first=st.floats(0.01, 1e4),
    factor=st.floats(1, 10),
    cap=st.floats(0.01, 1e6),
    jitter=st.floats(0, 0.99),
)
def test_no_number_of_failures_makes_a_wait_that_is_none(
    failures: int, first: float, factor: float, cap: float, jitter: float
) -> None:
    """Rule 6: bounded, above zero and finite after months of failures, for whatever the configuration allows."""
    backoff = Backoff(BackoffPolicy(first, factor, cap, jitter))
    backoff.failures = failures
    assert 0 < backoff.failed() <= cap * (1 + jitter)
