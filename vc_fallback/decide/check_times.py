"""When a node's `node/syncing` is checked next (N2, N4)."""

from vc_fallback.base.backoff import BackoffPolicy
from vc_fallback.base.health import HealthState
from vc_fallback.base.types import Slot
from vc_fallback.chain import SlotClock
from vc_fallback.decide.health_state import NodeHealth

WHEN = 5 / 6
"""The part of a slot at which healthy nodes are checked (N2)."""


def next_check(
    health: NodeHealth, now: float, slots: SlotClock | None, often: BackoffPolicy, part: float = 0.0
) -> float:
    """Return the moment in loop time at which a node is to be checked; one that is past means now.

    A healthy node is checked once in each slot, at 5/6 of it, and not before genesis. A suspect one and one that is not
    healthy are checked every 2 s; an unhealthy one that goes on to fail its checks is given ever longer, up to 60 s.

    :param slots: the clock of the pinned chain, `None` while it is unknown: no slot has a turn then.
    :param often: the first and the longest wait, and the jitter.
    :param part: a number from −1 to 1, drawn anew for each check: how much of the jitter is taken.
    """
    if health.checked_soon:
        failures = 0
        if health.state is HealthState.UNHEALTHY:
            failures = max(0, health.failed - health.policy.failed_checks)
        # The exponent is bounded because a float overflows after a day of failures.
        wait = min(often.cap, often.first * often.factor ** min(failures, 64)) * (1 + often.jitter * part)
        begun = health.suspect_since if health.suspect else health.since
        return (begun if health.checked is None else max(begun, health.checked)) + wait
    if slots is None or slots.before_genesis(now):
        return float("inf")
    slot = slots.slot_at(now)
    moment = _turn(slot, slots)
    if health.checked is not None and health.checked >= moment:
        return _turn(Slot(slot + 1), slots)
    return moment


def _turn(slot: Slot, slots: SlotClock) -> float:
    return slots.start_of(slot) + WHEN * slots.duration
