"""The health of one node: how it moves, why, and what would change it (N1, N3, N4; scenarios 1–4, 6, 53, 53a)."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.decide.health_policy import HealthPolicy
from vc_fallback.decide.health_state import HealthTransition, NodeHealth
from vc_fallback.decide.health_words import explain, what_next

HEALTHY, UNHEALTHY, RECOVERING = HealthState.HEALTHY, HealthState.UNHEALTHY, HealthState.RECOVERING
POLICY = HealthPolicy()


def node(policy: HealthPolicy = POLICY) -> NodeHealth:
    return NodeHealth(policy, 0.0)


def good(health: NodeHealth, now: float, lag: int | None = 0) -> HealthTransition | None:
    return health.check_passed(now, lag=lag, latency=0.01)


def refused(health: NodeHealth, now: float) -> HealthTransition | None:
    return health.check_failed(now, "connection refused")


def run(health: NodeHealth, checks: Iterable[str]) -> list[HealthState]:
    """Make a check every two seconds: `+` a good one, `-` a failed one; return the states after each."""
    states = []
    for number, check in enumerate(checks):
        now = 2.0 * number
        good(health, now) if check == "+" else refused(health, now)
        states.append(health.state)
    return states


H, U, R = HEALTHY, UNHEALTHY, RECOVERING


@pytest.mark.parametrize(
    ("checks", "states"),
    [
        pytest.param("+++", [H, H, H], id="well"),
        pytest.param("--", [H, H], id="6: two failures are not enough"),
        pytest.param("---", [H, H, U], id="2, 4, 6: the third flips it"),
        pytest.param("--+--", [H, H, H, H, H], id="6: a success in between starts the count again"),
        pytest.param("--+---", [H, H, H, H, H, U], id="6: and three more flip it"),
        pytest.param("---+++", [H, H, U, R, R, H], id="9: three good checks in a row, the first of them included"),
        pytest.param("---+-+++", [H, H, U, R, U, R, R, H], id="53: the full cycle with a failed recovery"),
        pytest.param("---++-++-+++", [H, H, U, R, R, U, R, R, U, R, R, H], id="it starts again each time"),
        pytest.param("----", [H, H, U, U], id="stays down"),
    ],
)
def test_checks_move_it(checks: str, states: list[HealthState]) -> None:
    """N4, scenarios 2, 4, 6, 9, 53."""
    assert run(node(), checks) == states


def test_every_transition_says_when_why_and_from_where() -> None:
    """N1: the full cycle of scenario 53, as it is told."""
    health = node()
    run(health, "---+-+++")
    told = [(t.at, t.before, t.after, t.suspect, t.reason) for t in health.history]
    assert told == [
        (0.0, HEALTHY, HEALTHY, True, HealthReason.CHECKS_FAILED),
        (4.0, HEALTHY, UNHEALTHY, False, HealthReason.CHECKS_FAILED),
        (6.0, UNHEALTHY, RECOVERING, False, HealthReason.CHECK_PASSED),
        (8.0, RECOVERING, UNHEALTHY, False, HealthReason.CHECKS_FAILED),
        (10.0, UNHEALTHY, RECOVERING, False, HealthReason.CHECK_PASSED),
        (14.0, RECOVERING, HEALTHY, False, HealthReason.RECOVERED),
    ]
    assert [t.moved for t in health.history] == [False, True, True, True, True, True]
    assert health.since == 14.0


def test_the_reason_names_the_transport_error() -> None:
    """Scenario 4."""
    health = node()
    run(health, "---")
    assert health.unhealthy == "3 failed checks in a row: connection refused"
    assert not health.answers


@pytest.mark.parametrize(
    ("head", "top", "limit", "state", "lag"),
    [
        pytest.param(1000, 1002, 3, HEALTHY, 2, id="1"),
        pytest.param(990, 1000, 8, UNHEALTHY, 10, id="3"),
        pytest.param(992, 1000, 8, HEALTHY, 8, id="at the limit"),
        pytest.param(991, 1000, 8, UNHEALTHY, 9, id="beyond the limit"),
    ],
)
def test_a_lag_beyond_the_limit_breaks_it_at_once(
    head: int, top: int, limit: int, state: HealthState, lag: int
) -> None:
    """N5, scenarios 1 and 3: by a check, and by a head between checks."""
    by_check = node(replace(POLICY, max_lag=limit))
    good(by_check, 0.0, lag=top - head)
    by_heads = node(replace(POLICY, max_lag=limit))
    by_heads.seen(0.0, lag=top - head)
    for health in (by_check, by_heads):
        assert (health.state, health.lag) == (state, lag)
        assert bool(health.unhealthy) is (state is UNHEALTHY)
    assert by_check.reason is (HealthReason.BEHIND if state is UNHEALTHY else HealthReason.CHECK_PASSED)


def test_an_answer_from_far_behind_is_no_good_check() -> None:
    """N4, N5: a restarted node that resyncs answers long before it can be used."""
    health = node()
    run(health, "---")
    transition = good(health, 10.0, lag=200)
    assert transition is not None
    assert (transition.moved, transition.reason) == (False, HealthReason.BEHIND)
    assert health.unhealthy == "200 slots behind the tip"
    assert health.answers
    for number in range(5):
        assert good(health, 12.0 + number, lag=100 - number) is None
    good(health, 20.0, lag=8)
    assert health.state is RECOVERING
    health.seen(21.0, lag=9)
    assert (health.state, health.reason) == (UNHEALTHY, HealthReason.BEHIND)


def test_one_refused_connection_makes_it_suspect_until_a_good_check() -> None:
    """Scenario 53a, N4."""
    health = node()
    good(health, 0.0)
    assert not health.checked_soon
    transition = health.request_failed(5.0, "connection refused", started=5.0, transport=True)
    assert transition is not None
    assert (transition.moved, transition.suspect, transition.reason) == (False, True, HealthReason.REQUEST_FAILED)
    assert (health.state, health.suspect, health.checked_soon) == (HEALTHY, "connection refused", True)
    assert not health.unhealthy
    cleared = good(health, 7.0)
    assert cleared is not None
    assert (cleared.suspect, cleared.reason) == (False, HealthReason.CHECK_PASSED)
    assert not health.suspect
    assert not health.checked_soon
    assert good(health, 9.0) is None


def test_a_suspicion_is_one_incident_however_many_requests_meet_it() -> None:
    """N3, N4, scenario 53a: a proxy that restarts costs a suspicion, not a minute."""
    health = node()
    for number in range(50):
        health.request_failed(1.0 + number / 50, "refused", started=1.0 + number / 50, transport=True)
    assert health.errors.count(2.0) == 1
    good(health, 3.0)
    assert (health.state, health.suspect) == (HEALTHY, "")


def test_a_node_that_breaks_off_again_and_again_is_unhealthy_although_every_check_is_good() -> None:
    """N3, rule 10: five incidents in a minute; half a backend behind a proxy looks like this."""
    health = node()
    for number in range(5):
        assert health.state is HEALTHY
        now = 10.0 * number
        health.request_failed(now + 1, "broken off", started=now, transport=True)
        good(health, now + 3)
    assert (health.state, health.reason) == (UNHEALTHY, HealthReason.ERRORS)
    assert health.unhealthy == "5 errors in 60 s"


def test_failed_requests_of_a_node_that_is_down_do_not_keep_it_down() -> None:
    """N4, N10, scenario 54: everything is tried while all are down, and a restarted node recovers by its checks."""
    health = node()
    run(health, "---")
    for number in range(20):
        now = 10.0 + number
        health.request_failed(now, "refused", started=now, transport=True)
    assert [good(health, 40.0 + 2 * n) is not None for n in range(3)] == [True, False, True]
    assert health.state is HEALTHY


def test_a_transport_failure_breaks_a_recovery_off() -> None:
    """N4: a bad one in between."""
    health = node()
    run(health, "---++")
    transition = health.request_failed(11.0, "broken off", started=10.0, transport=True)
    assert transition is not None
    assert (transition.before, transition.after) == (RECOVERING, UNHEALTHY)
    assert transition.reason is HealthReason.REQUEST_FAILED
    assert not health.answers
    good(health, 12.0)
    assert (health.state, health.passed) == (RECOVERING, 1)


def test_errors_in_the_window_make_it_unhealthy_and_let_it_recover_when_they_are_over() -> None:
    """N3: 5 in 60 s; a check is not good while the limit is broken."""
    health = node()
    for number in range(5):
        assert (health.state, health.suspect) == (HEALTHY, "")
        health.request_failed(10.0 * number + 1, "500", started=10.0 * number, transport=False)
    assert (health.state, health.reason) == (UNHEALTHY, HealthReason.ERRORS)
    assert not health.suspect
    assert good(health, 59.0) is None
    assert health.state is UNHEALTHY
    good(health, 61.5)
    assert health.state is RECOVERING


def test_a_slow_node_is_unhealthy_and_recovers_when_its_slow_answers_are_forgotten() -> None:
    """N3: p90 of attestation data above a quarter of a slot, whatever node/syncing takes."""
    health = node()
    for number in range(30):
        good(health, 10.0 + number)
    for number in range(2):
        assert health.duty_answered(50.0 + 12 * number, 3.2) is None
    transition = health.duty_answered(80.0, 3.1)
    assert transition is not None
    assert (transition.after, transition.reason) == (UNHEALTHY, HealthReason.SLOW)
    good(health, 100.0)
    assert health.state is UNHEALTHY
    good(health, 62.0 + POLICY.latency_memory)
    assert health.state is RECOVERING


def test_a_node_at_the_limit_is_not_slow() -> None:
    """N3: above a limit."""
    health = node()
    for number in range(10):
        health.duty_answered(float(number), 3.0)
    assert health.state is HEALTHY


def test_slowness_can_be_switched_off() -> None:
    """N3."""
    health = node(replace(POLICY, slow=None))
    for number in range(10):
        health.duty_answered(float(number), 11.0)
    assert health.state is HEALTHY


@pytest.mark.parametrize(
    ("checks", "steady"),
    [
        pytest.param([], False, id="new, and not checked yet"),
        pytest.param([{}], True, id="new, and nothing was against it"),
        pytest.param([{}, {}, {}], True, id="three good checks"),
        pytest.param([{}, {}, {"optimistic": True}], False, id="optimistic now"),
        pytest.param([{"optimistic": True}, {}, {}], False, id="optimistic two checks ago"),
        pytest.param([{"optimistic": True}, {}, {}, {}], True, id="optimistic long ago"),
        pytest.param([{}, {}, {"lag": 2}], False, id="two slots behind"),
        pytest.param([{}, {}, {"lag": 1}], True, id="one slot behind is on its way"),
        pytest.param([{}, {}, {"el_offline": True}], False, id="without execution layer"),
    ],
)
def test_who_is_steady(checks: list[dict[str, int]], steady: bool) -> None:
    """N9, case 31: three checks in a row that find nothing for which duties would be taken away; of a new node one."""
    health = node()
    for number, facts in enumerate(checks):
        health.check_passed(
            2.0 * number,
            lag=facts.get("lag", 0),
            optimistic=bool(facts.get("optimistic")),
            el_offline=bool(facts.get("el_offline")),
        )
    assert health.state is HEALTHY
    assert health.steady is steady


def test_a_head_between_checks_ends_steadiness_too() -> None:
    """Case 31: is_optimistic alternates within seconds, checks are a slot apart."""
    health = node()
    for number in range(6):
        good(health, 12.0 * number)
        assert health.steady is (number == 0), "a new one is, until something speaks against it"
        health.seen(12.0 * number + 3, optimistic=True)
        health.seen(12.0 * number + 6, optimistic=False)
    assert steadies(health, 80.0) == [False, False, False, True]
    health.seen(98.0, lag=1, optimistic=False)
    assert health.steady


def steadies(health: NodeHealth, now: float) -> list[bool]:
    """Make three good checks and say before and after each whether the node is steady."""
    found = [health.steady]
    for number in range(3):
        good(health, now + number)
        found.append(health.steady)
    return found


def test_a_failure_ends_steadiness() -> None:
    """N9: of a request or of a check; so does a stay on another chain."""
    health = node()
    steadies(health, 0.0)
    health.doubt()
    assert steadies(health, 50.0) == [False, False, False, True]
    health.request_failed(100.0, "refused", started=100.0, transport=True)
    assert steadies(health, 102.0) == [False, False, False, True]
    refused(health, 110.0)
    assert health.passed == 0
    assert steadies(health, 112.0) == [False, False, False, True]


def test_one_recovery_check_is_enough_where_that_is_set() -> None:
    """N4."""
    assert run(node(replace(POLICY, min_recovery_checks=1)), "---+") == [H, H, U, H]


def test_defaults_scale_with_the_slot() -> None:
    """N3: a quarter of a slot; seconds are for 12 s slots, and never below 0.2 s."""
    assert HealthPolicy.for_slot(12.0) == POLICY
    short = HealthPolicy.for_slot(2.0)
    assert (short.error_window, short.slow, short.latency_memory) == (10.0, 0.5, 64.0)
    assert HealthPolicy.for_slot(0.1).slow == 0.2
    assert (POLICY.failed_checks, POLICY.min_recovery_checks, POLICY.max_lag, POLICY.most_errors) == (3, 3, 8, 5)


def test_what_would_change_it_can_be_said_in_words() -> None:
    """N1: a verdict anyone can explain."""
    health = node()
    assert explain(health, 3.0) == (
        "healthy for 3 s: not checked yet; 3 failed checks in a row, more than 8 slots behind the tip (unknown now), "
        "5 errors in 60 s (0 now) or a p90 latency above 3 s would make it unhealthy"
    )
    good(health, 4.0, lag=1)
    health.request_failed(5.0, "refused", started=5.0, transport=True)
    refused(health, 7.0)
    assert explain(health, 8.0) == (
        "healthy for 8 s, suspect for 3 s: 1 failed check in a row: connection refused; "
        "a good check would clear it, 2 more failed checks in a row, "
        "more than 8 slots behind the tip (1 now), 5 errors in 60 s (1 now) or a p90 latency above 3 s "
        "would make it unhealthy"
    )
    refused(health, 9.0)
    refused(health, 11.0)
    assert explain(health, 20.0) == (
        "unhealthy for 9 s: 3 failed checks in a row: connection refused; "
        "it recovers at the first check that it answers"
    )
    good(health, 21.0)
    assert explain(health, 22.0) == (
        "recovering for 1 s: 1 of 3 good checks in a row; "
        "2 more good checks in a row would make it healthy, a failed one unhealthy"
    )
    good(health, 23.0)
    assert what_next(health, 23.0) == "1 more good check would make it healthy, a failed one unhealthy"
    good(health, 25.0)
    health.seen(26.0, lag=30)
    assert what_next(health, 26.0) == (
        "it recovers at the first check that it answers from at most 8 slots behind the tip"
    )


def test_what_would_change_a_node_that_made_errors_or_is_slow() -> None:
    """N1."""
    erring = node()
    for number in range(5):
        erring.request_failed(number + 0.5, "500", started=float(number), transport=False)
    assert what_next(erring, 10.0) == (
        "it recovers at the first check that it answers in 50 s or later, if it makes no more errors"
    )
    slow = node()
    for number in range(3):
        slow.duty_answered(float(number), 5.0)
    assert what_next(slow, 3.0) == (
        "it recovers at the first check that it answers once its slow answers are forgotten or outweighed"
    )
    quiet = node(replace(POLICY, slow=None))
    assert what_next(quiet, 0.0).endswith("or 5 errors in 60 s (0 now) would make it unhealthy")
