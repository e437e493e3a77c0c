"""The limits of health for a configuration and the slots of a network: defaults are for 12 s and scale with them."""

from vc_fallback.chain import NETWORKS, SlotClock
from vc_fallback.decide.clock_offset import ClockPolicy
from vc_fallback.decide.failover import FailoverPolicy
from vc_fallback.decide.health_policy import HealthPolicy
from vc_fallback.settings import MAINNET_SLOT, SHORTEST, HealthSettings

PEERS = 15
"""Peers that a node of a known network needs before duties go back to it (N9)."""

DUE = 1 / 3
"""When attestations are due, as a part of a slot: heads of all nodes that are later point at us (N8)."""


def health_policy(settings: HealthSettings, duration: float) -> HealthPolicy:
    """Return what makes a node unhealthy, and healthy again, for a slot duration in seconds."""
    defaults = HealthPolicy.for_slot(duration)
    return HealthPolicy(
        failed_checks=settings.failed_checks,
        min_recovery_checks=settings.min_recovery_checks,
        max_lag=settings.max_lag,
        most_errors=settings.most_errors,
        error_window=settings.scaled("error_window", duration),
        slow=None if settings.slow is None else max(SHORTEST, settings.slow * duration),
        latency_memory=defaults.latency_memory,
    )


def clock_policy(duration: float) -> ClockPolicy:
    """Return what makes a clock odd, for a slot duration in seconds."""
    scale = duration / MAINNET_SLOT
    return ClockPolicy(duration, max(SHORTEST, 0.25 * scale), max(SHORTEST, 0.5 * scale), DUE * duration)


def failover_policy(settings: HealthSettings, slots: SlotClock) -> FailoverPolicy:
    """Return when duties go back: on a network that nobody knows, a devnet, no peers are needed for it."""
    floor = settings.min_peers
    if floor is None:
        root = slots.chain.genesis_validators_root
        floor = PEERS if any(root == chain.genesis_validators_root for chain in NETWORKS.values()) else 0
    return FailoverPolicy(
        dwell=settings.dwell * slots.duration,
        prefer_higher_priority=settings.prefer_higher_priority,
        min_peers=floor,
    )
