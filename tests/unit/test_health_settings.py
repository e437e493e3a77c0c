"""Settings of health: each bad one is an error that names it, and defaults in seconds scale with the slot (N2–N9)."""

from dataclasses import replace
from typing import Any

import pytest

from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.types import Root
from vc_fallback.chain import NETWORKS, ChainIdentity, SlotClock
from vc_fallback.config import FallbackConfig
from vc_fallback.decide.failover import FailoverPolicy
from vc_fallback.decide.health_policy import HealthPolicy
from vc_fallback.health.policies import clock_policy, failover_policy, health_policy
from vc_fallback.settings import HealthSettings
from vc_fallback.times import CheckTimes

DEVNET = ChainIdentity(genesis_time=0.0, genesis_validators_root=Root(b"g" * 32), slot_duration=2.0)


@pytest.mark.parametrize(
    "field", ["check_timeout", "check_interval", "check_cap", "error_window", "failed_checks", "min_recovery_checks"]
)
@pytest.mark.parametrize("value", [0, -1, None, "3", True, float("nan"), float("inf")])
def test_what_must_be_above_nothing(field: str, value: Any) -> None:
    """Scenario 8: a limit of 0 or below is a start-up error."""
    _refused(field, value)


@pytest.mark.parametrize("field", ["max_lag", "most_errors"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True])
def test_limits_of_whole_numbers(field: str, value: Any) -> None:
    """Scenario 8."""
    _refused(field, value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("slow", 0),
        ("slow", -1),
        ("slow", True),
        ("dwell", -0.1),
        ("dwell", None),
        ("min_peers", -1),
        ("min_peers", 1.5),
        ("prefer_higher_priority", "yes"),
        ("prefer_higher_priority", 1),
        ("weather", "fine"),
    ],
)
def test_what_else_cannot_be(field: str, value: Any) -> None:
    """Scenario 8; an unknown field is a typing mistake."""
    _refused(field, value)


def test_what_can_be_switched_off_or_left_out() -> None:
    """N3, N9: slowness; a dwell of nothing; a floor of no peers."""
    health = FallbackConfig.of({"health": {"slow": False, "dwell": 0, "min_peers": 0}}).health
    assert (health.slow, health.dwell, health.min_peers) == (None, 0, 0)
    assert health_policy(health, 12.0).slow is None


def _refused(field: str, value: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        FallbackConfig.of({"health": {field: value}})
    assert caught.value.field == f"health.{field}"


@pytest.mark.parametrize(
    ("slot", "timeout", "often", "window", "slow"),
    [
        (12.0, 1.5, (2.0, 60.0), 60.0, 3.0),
        (5.0, 0.625, (2 / 2.4, 25.0), 25.0, 1.25),
        (2.0, 0.25, (1 / 3, 10.0), 10.0, 0.5),
        (0.5, 0.2, (0.2, 2.5), 2.5, 0.2),
    ],
)
def test_defaults_scale_with_the_slot(
    slot: float, timeout: float, often: tuple[float, float], window: float, slow: float
) -> None:
    """Requirements, top: for 12 s slots, never below 0.2 s."""
    settings = HealthSettings()
    times, policy = CheckTimes.of(settings, slot), health_policy(settings, slot)
    assert times.timeout == pytest.approx(timeout)
    assert (times.often.first, times.often.cap) == pytest.approx(often)
    assert policy.error_window == pytest.approx(window)
    assert policy.slow == pytest.approx(slow)
    assert policy == replace(HealthPolicy.for_slot(slot), slow=policy.slow, error_window=policy.error_window)


def test_what_is_set_stays_as_it_is() -> None:
    """Requirements, top: unless set; parts of a slot are parts of a slot."""
    settings = HealthSettings(check_timeout=1, check_interval=3, check_cap=4, error_window=20, slow=0.5)
    times, policy = CheckTimes.of(settings, 2.0), health_policy(settings, 2.0)
    assert (times.timeout, times.often.first, times.often.cap) == (1, 3, 4)
    assert (policy.error_window, policy.slow) == (20, 1.0)


def test_the_limits_of_clocks() -> None:
    """N8: −0.25 s and −0.5 s for 12 s slots, and never below 0.2 s; a third of a slot is when attestations are due."""
    policy = clock_policy(12.0)
    assert (policy.warn, policy.lower, policy.due) == (0.25, 0.5, 4.0)
    policy = clock_policy(1.0)
    assert (policy.warn, policy.lower) == (0.2, 0.2)
    assert policy.due == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("chain", "floor", "peers"),
    [
        pytest.param(DEVNET, None, 0, id="a devnet"),
        pytest.param(DEVNET, 3, 3, id="a devnet, set"),
        pytest.param(NETWORKS["mainnet"], None, 15, id="mainnet"),
        pytest.param(NETWORKS["gnosis"], None, 15, id="gnosis"),
        pytest.param(NETWORKS["mainnet"], 0, 0, id="mainnet, set"),
    ],
)
def test_when_duties_go_back(chain: ChainIdentity, floor: int | None, peers: int) -> None:
    """N9: four slots, and 15 peers where it is a network that is known."""
    settings = HealthSettings(min_peers=floor, prefer_higher_priority=floor is None)
    policy = failover_policy(settings, SlotClock(chain, 0.0))
    assert policy == FailoverPolicy(
        dwell=4 * chain.slot_duration, prefer_higher_priority=floor is None, min_peers=peers
    )
