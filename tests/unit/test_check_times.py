"""When a node is checked next (N2, N4)."""

import pytest

from vc_fallback.base.backoff import BackoffPolicy
from vc_fallback.base.types import Root, Slot
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.check_times import next_check
from vc_fallback.decide.health_policy import HealthPolicy
from vc_fallback.decide.health_state import NodeHealth

CHAIN = ChainIdentity(genesis_time=0.0, genesis_validators_root=Root(b"g" * 32), slot_duration=12.0)
SLOTS = SlotClock(CHAIN, offset=0.0)
OFTEN = BackoffPolicy(first=2.0, factor=2.0, cap=60.0)


def due(health: NodeHealth, now: float, part: float = 0.0) -> float:
    return next_check(health, now, SLOTS, OFTEN, part)


@pytest.mark.parametrize(
    ("checked", "now", "expected"),
    [
        pytest.param(None, 100.0, 100 + 5 / 6, id="never checked: in this slot"),
        pytest.param(None, 100.9, 100 + 5 / 6, id="joined late in the slot: at once"),
        pytest.param(99 + 5 / 6, 100.2, 100 + 5 / 6, id="checked in the slot before"),
        pytest.param(100 + 5 / 6, 100.9, 101 + 5 / 6, id="checked just now"),
        pytest.param(101.01, 101.02, 101 + 5 / 6, id="its answer came in the next slot"),
        pytest.param(90.0, 100.9, 100 + 5 / 6, id="long ago: one check, not ten"),
    ],
)
def test_a_healthy_node_is_checked_at_five_sixths_of_each_slot(
    checked: float | None, now: float, expected: float
) -> None:
    """N2: positions in slots."""
    health = NodeHealth(HealthPolicy(), 0.0)
    if checked is not None:
        health.check_passed(checked * 12.0, lag=0)
    assert due(health, now * 12.0) / 12.0 == pytest.approx(expected)


def test_before_genesis_and_before_the_chain_is_known_no_slot_has_a_turn() -> None:
    """N2, I1."""
    health = NodeHealth(HealthPolicy(), -100.0)
    assert due(health, -50.0) == float("inf")
    assert next_check(health, 50.0, None, OFTEN) == float("inf")
    health.check_failed(-40.0, "refused")
    assert due(health, -39.0) == -38.0
    assert next_check(health, -39.0, None, OFTEN) == -38.0


def test_a_suspect_node_is_checked_every_two_seconds() -> None:
    """N4: from the moment of the suspicion, whatever the slot."""
    health = NodeHealth(HealthPolicy(), 0.0)
    health.check_passed(1210.0, lag=0)
    health.request_failed(1215.0, "refused", started=1215.0, transport=True)
    assert due(health, 1215.0) == 1217.0
    health.check_failed(1217.0, "refused")
    assert due(health, 1217.0) == 1219.0
    health.check_failed(1219.0, "refused")
    assert due(health, 1219.0) == 1221.0


def test_an_unhealthy_node_is_given_ever_longer_until_it_answers() -> None:
    """N2: every 2 s, backing off to 60 s for those that error; N4: a recovery is not slowed down."""
    health = NodeHealth(HealthPolicy(), 0.0)
    waits, now = [], 0.0
    for _ in range(12):
        health.check_failed(now, "refused")
        waits.append(due(health, now) - now)
        now += waits[-1]
    assert waits == [2, 2, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]
    for _ in range(2):
        health.check_passed(now, lag=0)
        assert due(health, now) == now + 2
        now += 2
    health.check_passed(now, lag=0)
    assert due(health, now) == SLOTS.start_of(Slot(31)) + 10, "it is healthy, and had its turn of slot 30 just now"


def test_one_that_answers_from_behind_is_checked_every_two_seconds() -> None:
    """N2: those that error are given longer, not those that are not well."""
    health = NodeHealth(HealthPolicy(), 0.0)
    for number in range(20):
        health.check_passed(2.0 * number, lag=100)
        assert due(health, 2.0 * number) == 2.0 * number + 2


def test_waits_are_jittered() -> None:
    """N2, H4: nodes that went down together are not checked together."""
    health = NodeHealth(HealthPolicy(), 0.0)
    health.check_failed(100.0, "refused")
    assert due(health, 100.0, 1.0) == pytest.approx(102.4)
    assert due(health, 100.0, -1.0) == pytest.approx(101.6)


def test_a_day_of_failures_does_not_overflow() -> None:
    """N2."""
    health = NodeHealth(HealthPolicy(), 0.0)
    for number in range(5000):
        health.check_failed(60.0 * number, "refused")
    assert due(health, 0.0) == 60.0 * 4999 + 60
