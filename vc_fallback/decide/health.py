"""What checks of `node/syncing` say of a node's health, and when the next one is due (N2–N5)."""

from dataclasses import dataclass

from vc_fallback.base.types import Slot
from vc_fallback.chain import SlotClock

FAILED_CHECKS = 3
"""Failed checks in a row that make a node unhealthy (N4)."""

MAX_LAG = 8
"""A node more slots behind the tip than this is not synced (N5)."""

WHEN = 5 / 6
"""The part of a slot at which healthy nodes are checked (N2)."""


@dataclass(slots=True)
class HealthFacts:
    """What checks have found. `checked` is the loop time of the last one, `failed` how many failed in a row."""

    checked: float | None = None
    failed: int = 0
    error: str = ""
    head_slot: Slot | None = None
    is_syncing: bool | None = None
    optimistic: bool | None = None
    el_offline: bool | None = None


def unhealthy(health: HealthFacts, tip: Slot | None) -> str:
    """Say why requests should not go to a node; empty while it is healthy.

    Three failed checks in a row, or a head too far behind the tip. A node's own `is_syncing` alone says nothing: on a
    chain without blocks every node says so.
    """
    if health.failed >= FAILED_CHECKS:
        return health.error
    if tip is not None and health.head_slot is not None and tip - health.head_slot > MAX_LAG:
        return f"{tip - health.head_slot} slots behind the tip"
    return ""


def regular_check(health: HealthFacts, now: float, slots: SlotClock) -> float:
    """Return when a healthy node is checked next: at 5/6 of a slot, once in each (N2)."""
    slot = slots.slot_at(now)
    moment = _moment(slot, slots)
    if health.checked is not None and health.checked >= moment:
        return _moment(Slot(slot + 1), slots)
    return moment


def _moment(slot: Slot, slots: SlotClock) -> float:
    return slots.start_of(slot) + WHEN * slots.duration
