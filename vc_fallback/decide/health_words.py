"""A node's health in words: what it is, since when, why, and what would change it (N1)."""

from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.decide.health_state import NodeHealth, checks


def explain(health: NodeHealth, now: float) -> str:
    """Say in one line what the state is, since when, why, and what would change it.

    :param now: loop time in seconds.
    """
    mark = f", suspect for {now - health.suspect_since:.0f} s" if health.suspect else ""
    return f"{health.state} for {now - health.since:.0f} s{mark}: {health.detail}; {what_next(health, now)}"


def what_next(health: NodeHealth, now: float) -> str:
    """Say what would change the state."""
    if health.state is HealthState.RECOVERING:
        left = health.policy.min_recovery_checks - health.passed
        return f"{checks(left, 'more good')}{_row(left)} would make it healthy, a failed one unhealthy"
    if health.state is HealthState.UNHEALTHY:
        return f"it recovers at the first check that it answers{_on_condition(health, now)}"
    clears = "a good check would clear it, " if health.suspect else ""
    left = health.policy.failed_checks - health.failed
    failures = f"{checks(left, 'more failed' if health.failed else 'failed')}{_row(left)}"
    return f"{clears}{failures}, {_limits(health, now)} would make it unhealthy"


def _on_condition(health: NodeHealth, now: float) -> str:
    broken = health.broken(now)
    if broken is None:
        return ""
    match broken[0]:
        case HealthReason.BEHIND:
            return f" from at most {health.policy.max_lag} slots behind the tip"
        case HealthReason.ERRORS:
            return f" in {health.errors.relents(now):.0f} s or later, if it makes no more errors"
        case _:
            return " once its slow answers are forgotten or outweighed"


def _limits(health: NodeHealth, now: float) -> str:
    policy = health.policy
    lag = "unknown" if health.lag is None else str(health.lag)
    words = [
        f"more than {policy.max_lag} slots behind the tip ({lag} now)",
        f"{policy.most_errors} errors in {policy.error_window:g} s ({health.errors.count(now)} now)",
    ]
    if policy.slow is not None:
        words.append(f"a p90 latency above {policy.slow:g} s")
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _row(count: int) -> str:
    return "" if count == 1 else " in a row"
