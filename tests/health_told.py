"""Signals of health for tests of those who observe them."""

from typing import Any

from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.base.health_signals import HealthChanged
from vc_fallback.base.types import NodeId


def health(node_id: str = "a:1", at: float = 0.0, **changes: Any) -> HealthChanged:
    """A node that is well and first of all, with changes."""
    values: dict[str, Any] = {
        "at": at,
        "node_id": NodeId(node_id),
        "generation": 1,
        "state": HealthState.HEALTHY,
        "suspect": False,
        "reason": HealthReason.CHECK_PASSED,
        "detail": "answers checks",
        "explanation": "",
        "rank": 1,
        "sync_distance": 0,
        "optimistic": False,
        "el_offline": False,
        "latency": None,
        "offset": None,
        "peers": None,
    }
    return HealthChanged(**values | changes)


def well(node_id: str = "a:1", at: float = 0.0) -> HealthChanged:
    """Well, and so for the first time or after a suspicion."""
    return health(node_id, at)


def suspect(node_id: str = "a:1", at: float = 0.0, detail: str = "1 failed check in a row: refused") -> HealthChanged:
    """Healthy, and suspect."""
    return health(node_id, at, suspect=True, reason=HealthReason.CHECKS_FAILED, detail=detail)


def unhealthy(
    node_id: str = "a:1",
    at: float = 0.0,
    reason: HealthReason = HealthReason.CHECKS_FAILED,
    detail: str = "3 failed checks in a row: refused",
) -> HealthChanged:
    """Unhealthy."""
    return health(node_id, at, state=HealthState.UNHEALTHY, reason=reason, detail=detail)


def recovering(node_id: str = "a:1", at: float = 0.0) -> HealthChanged:
    """On its way back."""
    return health(node_id, at, state=HealthState.RECOVERING, detail="1 of 3 good checks in a row")


def recovered(node_id: str = "a:1", at: float = 0.0) -> HealthChanged:
    """Healthy again."""
    return health(node_id, at, reason=HealthReason.RECOVERED, detail="3 good checks in a row")
