"""Words of health: the states of a node and why it is in one (N1); shared by decisions, signals and observers."""

from enum import StrEnum


class HealthState(StrEnum):
    """Whether requests should go to a candidate (N1). *Suspect* is a mark on a healthy one, no state (N4)."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    RECOVERING = "recovering"


class HealthReason(StrEnum):
    """Why a node's health is what it is; a closed list, the detail beside it is free text."""

    NEW = "new"
    """It has just come to the list and nothing speaks against it."""
    CHECKS_FAILED = "checks_failed"
    """Checks failed in a row: refused, timed out, 5xx, or an answer that nobody can read (N3, N4)."""
    REQUEST_FAILED = "request_failed"
    """A request found no answer: the node is suspect, or its recovery is broken off (N4)."""
    BEHIND = "behind"
    """Its head is more than `max_lag` slots behind the tip (N5)."""
    ERRORS = "errors"
    """Too many errors in the window (N3)."""
    SLOW = "slow"
    """Nine of ten answers take longer than the limit (N3)."""
    CHECK_PASSED = "check_passed"
    """A good check: an unhealthy node recovers, a suspect one is cleared (N4)."""
    RECOVERED = "recovered"
    """Enough good checks in a row (N4)."""
