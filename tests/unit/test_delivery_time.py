"""Heads far from the clock, and bursts of old heads (H13)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.delivery_world import BEHIND, DELIVERED, DUPLICATE, FUTURE, OLD, SLOT, SLOTS, TIER, WRONG_CHAIN, World
from vc_fallback.base.signals import HeadOutcome
from vc_fallback.base.types import HeadSource, NodeId
from vc_fallback.decide.delivery import SETTLE, Decision, Delivery
from vc_fallback.decide.ledger import Standing


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("101a", DELIVERED),
        ("102a", FUTURE),
        ("100000a", FUTURE),
        (f"{2**64 - 1}a", FUTURE),
        (f"{2**80}a", FUTURE),
        ("68a", DELIVERED),
        ("67a", OLD),
        ("0a", OLD),
    ],
)
def test_a_head_far_from_the_clock(name: str, outcome: HeadOutcome) -> None:
    """H13: more than 1 slot ahead is refused; more than 32 behind is kept as the node's truth and never delivered."""
    world = World()
    assert world.show("n1", name, 100.5, source=HeadSource.POLL) == [(name, outcome)]
    assert (NodeId("n1") in world.delivery.entries) is (outcome is not FUTURE)


def test_a_refused_head_leaves_the_entry_as_it_was() -> None:
    """H13: refused is refused."""
    world = World()
    world.show("n1", "100a")
    world.show("n1", "200a", 100.5)
    assert world.delivery.entries[NodeId("n1")].slot == 100


def test_of_a_burst_of_old_heads_only_the_newest_is_delivered_and_marked_late() -> None:
    """H13, scenario 57, case 18: nothing is said before the burst is over."""
    world = World()
    assert world.show("n1", "95a", 100.500) == []
    assert world.show("n1", "96a", 100.501) == [("95a", BEHIND)]
    assert world.show("n1", "97a", 100.502) == [("96a", BEHIND)]
    due = world.delivery.next_settle
    assert due == pytest.approx((100.502 + SETTLE) * SLOT)
    assert world.settle(100.502 + SETTLE - 0.001) == []
    assert world.settle(100.502 + SETTLE) == [("97a", DELIVERED)]
    assert world.latest.late is True
    assert world.delivery.next_settle is None


def test_a_burst_that_ends_in_a_current_head_delivers_only_that() -> None:
    """H13: old heads and then the current one, in one go."""
    world = World()
    world.show("n1", "97a", 100.5)
    world.show("n1", "98a", 100.5)
    assert world.show("n1", "100a", 100.5) == [("98a", BEHIND), ("100a", DELIVERED)]
    assert world.delivered == ["100a"]
    assert world.settle(101) == []


def test_the_burst_of_a_thawed_node_is_not_delivered_where_others_went_on() -> None:
    """Scenario 57: its old heads are behind, its newest votes."""
    world = World()
    world.show("n1", "100a", 100.1)
    assert world.show("n2", "96a", 100.5) == [("96a", BEHIND)]
    assert world.show("n2", "97a", 100.5) == [("97a", BEHIND)]
    assert world.show("n2", "100a", 100.5) == [("100a", DUPLICATE)]
    assert world.delivered == ["100a"]


def test_old_heads_of_two_nodes_that_settle_together_are_judged_anew() -> None:
    """H13, C3: whoever settles second is compared with what the first delivered."""
    world = World()
    world.show("n1", "96a", 100.50)
    world.show("n2", "96a", 100.51)
    world.show("n3", "95a", 100.52)
    assert world.settle(101) == [("96a", DELIVERED), ("96a", DUPLICATE), ("95a", BEHIND)]
    assert world.latest.seen_by == ("n1", "n2")


def test_a_reorg_to_an_old_head_waits_for_the_burst_and_is_delivered() -> None:
    """C3, H13, case 45: the followed node goes back by more than a slot; the wait must not lose the transition."""
    world = World()
    world.show("n1", "100a", 100.1)
    assert world.show("n1", "98b", 100.5) == []
    assert world.settle(100.6) == [("98b", DELIVERED)]
    assert world.latest.reorg is True


def test_a_reorg_in_a_burst_is_a_step_from_the_delivered_head_to_the_newest() -> None:
    """C3, H13: 22 → 20 → 21 in one read is one step, as recorded when a partition healed."""
    world = World()
    world.show("n1", "22a", 22.1)
    assert world.show("n1", "19b", 22.5) == []
    assert world.show("n1", "20b", 22.5) == [("19b", BEHIND)]
    assert world.settle(22.6) == [("20b", DELIVERED)]
    assert world.delivered == ["22a", "20b"]


def test_a_reorg_at_an_old_slot_is_delivered_although_others_have_not_followed_yet() -> None:
    """C4, H13: it comes from the node the delivered head came from."""
    world = World()
    for node in ("n1", "n2", "n3"):
        world.show(node, "98a", 98.1)
    assert world.show("n1", "98b", 100.2) == []
    assert world.settle(100.3) == [("98b", DELIVERED)]


def test_a_head_that_waits_for_its_burst_is_dropped_with_its_connection() -> None:
    """H8, H13: nothing of a connection that ended is delivered."""
    world = World()
    world.show("n1", "96a", 100.5)
    assert world.note(world.delivery.forget(NodeId("n1"))) == [("96a", BEHIND)]
    assert world.settle(101) == []
    assert world.delivered == []


@pytest.mark.parametrize(
    ("standing", "outcome"),
    [(Standing.HELD, TIER), (Standing.UNVERIFIED, BEHIND), (Standing.QUARANTINED, WRONG_CHAIN)],
)
def test_a_node_that_loses_its_standing_while_its_burst_settles_delivers_nothing(
    standing: Standing, outcome: HeadOutcome
) -> None:
    """H13, C5, N7: standing is looked at when it is delivered."""
    world = World()
    world.show("n1", "96a", 100.5)
    world.standings["n1"] = standing
    assert world.settle(101) == [("96a", outcome)]
    assert world.delivered == []


def test_a_head_that_settles_after_a_change_of_the_list_carries_the_new_generation() -> None:
    """G3: generation is stamped at delivery, also when a head waited for its burst."""
    world = World()
    world.show("n1", "96a", 100.5, generation=1)
    entries = world.delivery.entries
    entries[NodeId("n1")] = replace(entries[NodeId("n1")], generation=2)
    world.settle(101)
    assert world.latest.head.generation == 2


def test_an_old_head_by_poll_is_delivered_at_once() -> None:
    """H14: after missed slots a poll at connect gives the head that everybody has; there is no burst to wait for."""
    world = World()
    assert world.show("n1", "95a", 100.5, source=HeadSource.POLL) == [("95a", DELIVERED)]
    assert world.latest.late is True


def test_heads_of_slots_beyond_64_bits_do_no_harm() -> None:
    """Q17: refused, whatever the clock says."""
    world = World(slots=None)
    world.show("n1", f"{2**70}a", 100.0)
    world.slots = SLOTS
    assert world.reconsider(100.1) is None
    assert world.delivery.entries == {}


@pytest.mark.parametrize("act", [Delivery.forget, Delivery.leave])
def test_an_end_in_the_middle_of_a_burst_keeps_no_trace(act: Callable[[Delivery, NodeId], list[Decision]]) -> None:
    """H8, G3: the next connection begins anew."""
    world = World()
    world.show("n1", "100a", 100.1)
    world.show("n1", "97b", 100.4)
    act(world.delivery, NodeId("n1"))
    assert world.delivery.next_settle is None
    assert world.show("n1", "98b", 100.5) == [("98b", BEHIND)]
