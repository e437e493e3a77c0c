"""The limits of health and their defaults (N3–N5)."""

from dataclasses import dataclass
from typing import Self

from vc_fallback.decide.tip_consensus import MAX_LAG

_MAINNET_SLOT = 12.0
_SHORTEST = 0.2


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """What makes a node unhealthy, and healthy again. Durations in seconds; the defaults are those of 12 s slots."""

    failed_checks: int = 3
    """Failed checks in a row that make a node unhealthy (N4)."""
    min_recovery_checks: int = 3
    """Good checks in a row until a node is healthy again, the one that begins its recovery included (N4)."""
    max_lag: int = MAX_LAG
    """A node more slots behind the tip than this is not synced (N5)."""
    most_errors: int = 5
    """Errors of requests within the window that are too many (N3)."""
    error_window: float = 60.0
    """Seconds (N3)."""
    slow: float | None = 3.0
    """p90 latency in seconds above which a node is slow, a quarter of a slot (N3); `None` switches it off."""
    latency_memory: float = 384.0
    """Seconds after which an answer's latency is forgotten: 32 slots."""

    @classmethod
    def for_slot(cls, slot_duration: float) -> Self:
        """Return the defaults for a slot duration in seconds: they scale with it, and are never below 0.2 s."""

        def scaled(value: float) -> float:
            return max(_SHORTEST, value * slot_duration / _MAINNET_SLOT)

        return cls(error_window=scaled(60.0), slow=scaled(3.0), latency_memory=scaled(384.0))
