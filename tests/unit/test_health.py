"""What checks of `node/syncing` say of a node, and when the next one is due (N2, N4, N5; scenarios 1–4, 6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.base.types import Root, Slot
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.health import FAILED_CHECKS, MAX_LAG, HealthFacts, regular_check, unhealthy

CHAIN = ChainIdentity(genesis_time=1_000_000.0, genesis_validators_root=Root(b"g" * 32), slot_duration=12.0)
SLOTS = SlotClock(CHAIN, offset=1_000_000.0)


@pytest.mark.parametrize(
    ("health", "top", "reason"),
    [
        pytest.param(HealthFacts(), 1000, "", id="not checked yet"),
        pytest.param(HealthFacts(head_slot=Slot(1000)), 1002, "", id="1: lag 2"),
        pytest.param(HealthFacts(failed=1, error="503"), 1002, "", id="2: one failure"),
        pytest.param(HealthFacts(failed=2, error="503"), 1002, "", id="6: two failures"),
        pytest.param(HealthFacts(failed=3, error="503"), 1002, "503", id="2, 6: three failures"),
        pytest.param(HealthFacts(failed=30, error="ConnectError"), None, "ConnectError", id="4: not to be reached"),
        pytest.param(HealthFacts(head_slot=Slot(992)), 1000, "", id="8 behind the tip"),
        pytest.param(HealthFacts(head_slot=Slot(991)), 1000, "9 slots behind the tip", id="9 behind the tip"),
        pytest.param(HealthFacts(head_slot=Slot(990)), 1000, "10 slots behind the tip", id="3"),
        pytest.param(HealthFacts(head_slot=Slot(990)), None, "", id="no tip, nothing to be behind of"),
        pytest.param(HealthFacts(head_slot=Slot(1005)), 1000, "", id="ahead of the tip"),
        pytest.param(HealthFacts(head_slot=Slot(990), is_syncing=True), 990, "", id="missed slots: all say syncing"),
        pytest.param(
            HealthFacts(head_slot=Slot(1000), optimistic=True, el_offline=True), 1000, "", id="lowers the rank"
        ),
        pytest.param(
            HealthFacts(failed=3, error="503", head_slot=Slot(1)), 1000, "503", id="both: the failure is newer"
        ),
    ],
)
def test_what_makes_a_node_unhealthy(health: HealthFacts, top: int | None, reason: str) -> None:
    """N4, N5: three failed checks in a row, or more than `max_lag` behind the tip; nothing else here."""
    assert unhealthy(health, None if top is None else Slot(top)) == reason
    assert (FAILED_CHECKS, MAX_LAG) == (3, 8)


@pytest.mark.parametrize(
    ("checked", "now", "due"),
    [
        pytest.param(None, 100.0, 100 + 5 / 6, id="never checked: in this slot"),
        pytest.param(None, 100.9, 100 + 5 / 6, id="joined late in the slot: at once"),
        pytest.param(99 + 5 / 6, 100.2, 100 + 5 / 6, id="checked in the slot before"),
        pytest.param(100 + 5 / 6, 100.9, 101 + 5 / 6, id="checked just now"),
        pytest.param(100.95, 100.97, 101 + 5 / 6, id="its answer took a while"),
        pytest.param(101.01, 101.02, 101 + 5 / 6, id="its answer came in the next slot"),
        pytest.param(100.2, 100.5, 100 + 5 / 6, id="checked out of turn earlier in the slot"),
        pytest.param(90.0, 100.9, 100 + 5 / 6, id="long ago: one check, not ten"),
    ],
)
def test_healthy_nodes_are_checked_at_five_sixths_of_each_slot(checked: float | None, now: float, due: float) -> None:
    """N2: positions in slots."""
    health = HealthFacts(checked=None if checked is None else checked * 12.0)
    assert regular_check(health, now * 12.0, SLOTS) / 12.0 == pytest.approx(due)


@given(st.floats(0, 1e6), st.floats(0.05, 60))
def test_who_is_checked_when_it_is_due_is_due_once_in_each_slot(start: float, duration: float) -> None:
    """N2: whatever the slot's duration; the next check is one slot later."""
    chain = ChainIdentity(genesis_time=0.0, genesis_validators_root=Root(b"g" * 32), slot_duration=duration)
    slots = SlotClock(chain, offset=0.0)
    health = HealthFacts()
    due = regular_check(health, start, slots)
    for _ in range(3):
        health.checked = max(start, due)
        following = regular_check(health, health.checked, slots)
        assert following > health.checked
        assert following - due == pytest.approx(duration, rel=1e-3)
        due = following
