"""What a change of standing, chain or list does to the heads that nodes have shown (C5, C6, G1, G3, G6, H8, I1, N7)."""

import pytest

from tests.delivery_world import (
    BEHIND,
    DELIVERED,
    DUPLICATE,
    EMPTY,
    FULL,
    FUTURE,
    SLOT,
    SLOTS,
    TIER,
    WRONG_CHAIN,
    World,
    block,
    name_of,
)
from vc_fallback.base.signals import HeadOutcome
from vc_fallback.base.types import HeadSource, NodeId, Slot
from vc_fallback.decide.ledger import Standing


@pytest.mark.parametrize(
    ("standing", "outcome"),
    [
        (Standing.ELIGIBLE, DELIVERED),
        (Standing.HELD, TIER),
        (Standing.UNVERIFIED, BEHIND),
        (Standing.QUARANTINED, WRONG_CHAIN),
    ],
)
def test_only_an_eligible_node_delivers(standing: Standing, outcome: HeadOutcome) -> None:
    """C3, C5, G6, N7."""
    world = World(standings={"n1": standing})
    assert world.show("n1", "100a") == [("100a", outcome)]
    assert (NodeId("n1") in world.delivery.entries) is (standing is not Standing.QUARANTINED)


@pytest.mark.parametrize("standing", [Standing.HELD, Standing.UNVERIFIED])
def test_what_a_node_showed_before_it_became_eligible_is_delivered_then(standing: Standing) -> None:
    """C6, G6: held back or unverified → eligible; the newest entry is delivered at once, once."""
    world = World(standings={"n1": standing})
    world.show("n1", "100a", 100.1)
    world.show("n1", "101a", 101.1)
    assert world.reconsider(101.2) is None
    world.standings["n1"] = Standing.ELIGIBLE
    assert world.reconsider(101.3) == "101a"
    assert world.reconsider(101.4) is None
    assert world.latest.late is False


def test_a_held_head_does_not_count_as_delivered() -> None:
    """C5, scenario 19: the same head from a primary later is delivered, once; the fallback has shown it too (C3)."""
    world = World(standings={"fallback": Standing.HELD})
    assert world.show("fallback", "100a", 100.1) == [("100a", TIER)]
    assert world.show("n1", "100a", 100.2) == [("100a", DELIVERED)]
    assert world.latest.seen_by == ("n1", "fallback")
    assert world.delivered == ["100a"]


def test_only_what_is_news_is_held_back() -> None:
    """C3, C5: a head that a primary had first is no fallback's alone: it votes; an older one moves only its entry."""
    world = World(standings={"f1": Standing.HELD, "f2": Standing.HELD, "f3": Standing.HELD})
    world.show("n1", "100a", 100.1, payload_status=EMPTY)
    assert world.show("f1", "100a", 100.2) == [("100a", DUPLICATE)]
    assert world.show("f2", "99a", 100.2) == [("99a", BEHIND)]
    assert world.show("f2", "100b", 100.3) == [("100b", BEHIND)]
    assert world.latest.seen_by == ("n1", "f1")
    # That the payload came is news, which only a fallback has.
    assert world.show("f3", "100a", 100.4, payload_status=FULL) == [("100a", TIER)]
    assert [event.head.payload_status for event in world.events] == [EMPTY]
    world.standings["f3"] = Standing.ELIGIBLE
    assert world.reconsider(100.5) == "100a"
    assert world.latest.head.payload_status is FULL


def test_the_delivered_head_passes_to_a_node_that_is_not_held_back_where_there_is_one() -> None:
    """C4, C5, G2: when the node that it came from leaves the list."""
    world = World(standings={"f1": Standing.HELD})
    world.show("n1", "100a", 100.1)
    world.show("f1", "100a", 100.2)
    world.show("n2", "100a", 100.3)
    world.delivery.leave(NodeId("n1"))
    assert world.latest.node_id == "n2"
    assert world.latest.seen_by == ("f1", "n2")


def test_a_node_that_becomes_eligible_votes_for_the_delivered_head_it_had_shown() -> None:
    """C3, G6: later nodes with the same head add their vote, also when their identity was checked after it."""
    world = World(standings={"n2": Standing.UNVERIFIED})
    world.show("n1", "100a", payload_status=EMPTY)
    world.show("n2", "100a", payload_status=FULL)
    world.standings["n2"] = Standing.ELIGIBLE
    assert world.reconsider(100.5) == "100a"
    assert world.latest.seen_by == ("n1", "n2")
    assert [event.head.payload_status for event in world.events] == [EMPTY, FULL]
    assert world.reconsider(100.6) is None


def test_until_the_chain_is_known_heads_are_kept_and_none_is_delivered() -> None:
    """I1: then the newest is, with all that stand behind it."""
    world = World(slots=None)
    for node, name in [("n1", "99a"), ("n2", "100a"), ("n3", "100a"), ("n4", "101b")]:
        assert world.show(node, name, 100.2) == [(name, BEHIND)]
    assert world.reconsider(100.3) is None
    world.slots = SLOTS
    world.standings["n4"] = Standing.QUARANTINED
    assert world.reconsider(100.4) == "100a"
    assert world.latest.seen_by == ("n2", "n3")


def test_of_two_branches_reconsidering_takes_the_one_with_more_nodes() -> None:
    """C4: list order decides nothing here."""
    world = World(slots=None)
    for node, name in [("n1", "100b"), ("n2", "100a"), ("n3", "100a")]:
        world.show(node, name)
    world.slots = SLOTS
    assert world.reconsider(100.5) == "100a"


def test_before_genesis_nothing_is_delivered_and_the_genesis_block_is_delivered_with_it() -> None:
    """H2, H13: before genesis a node's head is the genesis block; slot 1 is refused until slot 0 has begun."""
    world = World()
    assert world.show("n1", "0a", -3.0) == [("0a", BEHIND)]
    assert world.show("n2", "1a", -3.0) == [("1a", FUTURE)]
    assert world.show("n2", "1a", -0.5) == [("1a", FUTURE)]
    assert world.reconsider(-0.5) is None
    assert world.reconsider(0.0) == "0a"
    assert world.show("n2", "1a", 0.5) == [("1a", DELIVERED)]


def test_a_head_of_another_chain_is_refused() -> None:
    """H13, N7: a quarantined node changes nothing at all."""
    world = World(standings={"n2": Standing.QUARANTINED})
    world.show("n1", "100a")
    assert world.show("n2", "101z") == [("101z", WRONG_CHAIN)]
    assert world.delivery.newest_elsewhere(NodeId("n1")) is None


def test_when_the_outvoted_root_gains_by_a_change_of_standing_it_is_delivered() -> None:
    """C4: more nodes stand behind it now."""
    world = World(standings={"n3": Standing.UNVERIFIED})
    world.show("n1", "100a")
    world.show("n2", "100b")
    world.show("n3", "100b")
    assert world.reconsider(100.5) is None
    world.standings["n3"] = Standing.ELIGIBLE
    assert world.reconsider(100.6) == "100b"


def test_reconsidering_does_not_undo_a_reorg_that_slower_nodes_have_not_followed_yet() -> None:
    """C3: each change is delivered once; nobody has shown anything new."""
    world = World()
    for node in ("n1", "n2", "n3"):
        world.show(node, "100a", 100.2)
    world.show("n1", "99b", 100.5)
    assert world.reconsider(100.6) is None
    assert world.delivered == ["100a", "99b"]
    for node in ("n2", "n3"):
        assert world.show(node, "99b", 100.7) == [("99b", DUPLICATE)]


def test_when_nobody_stands_at_the_reorganised_head_any_more_the_newest_entry_is_delivered() -> None:
    """C3, H8: the node that went back is gone, the others never followed it."""
    world = World()
    world.show("n1", "100a", 100.2)
    world.show("n2", "100a", 100.2)
    world.show("n1", "99b", 100.5)
    world.delivery.forget(NodeId("n1"))
    assert world.reconsider(100.6) == "100a"


def test_an_end_drops_the_entry_of_that_node_only() -> None:
    """H8, scenario 50."""
    world = World()
    for node in ("n1", "n2"):
        world.show(node, "100a")
    world.delivery.forget(NodeId("n1"))
    assert set(world.delivery.entries) == {"n2"}
    assert world.delivery.votes(Slot(100)) == {block("100a")[1]: ("n2",)}
    assert name_of(world.latest.head) == "100a"


def test_forgetting_an_unknown_node_is_nothing() -> None:
    """H8: a node whose first connection failed has no entry."""
    world = World()
    assert world.delivery.forget(NodeId("n1")) == []
    assert world.delivery.leave(NodeId("n1")) == []


def test_a_node_that_comes_back_repeats_no_delivery() -> None:
    """H8, C3: the same head after a reconnect is a vote."""
    world = World()
    world.show("n1", "100a")
    world.delivery.forget(NodeId("n1"))
    assert world.show("n1", "100a", 100.6, source=HeadSource.POLL) == [("100a", DUPLICATE)]


def test_a_node_that_comes_back_lower_is_not_followed_down() -> None:
    """H8, C3: after an end there is no previous head; a resyncing node drags nobody back."""
    world = World()
    world.show("n1", "100a")
    world.delivery.forget(NodeId("n1"))
    assert world.show("n1", "90a", 100.6, source=HeadSource.POLL) == [("90a", BEHIND)]


def test_the_delivered_head_of_a_node_that_left_passes_to_another_that_showed_it() -> None:
    """G1, G3, rule 1: with that node's own provenance."""
    world = World()
    world.show("n1", "100a", 100.1, payload_status=FULL)
    world.show("n2", "100a", 100.2)
    world.delivery.leave(NodeId("n1"))
    assert world.latest.seen_by == ("n2",)
    assert world.latest.head.node_id == "n2"
    assert world.latest.head.received == pytest.approx(100.2 * SLOT)
    assert world.latest.head.payload_status is FULL
    assert world.show("n2", "99b", 100.5) == [("99b", DELIVERED)]


def test_a_node_that_left_has_no_vote_and_nothing_waits_of_it() -> None:
    """G3: no event of a node that left."""
    world = World()
    world.show("n1", "96a", 100.5)
    assert world.note(world.delivery.leave(NodeId("n1"))) == [("96a", BEHIND)]
    assert world.settle(101) == []
    assert world.reconsider(101) is None
    assert world.delivered == []


def test_after_all_nodes_were_replaced_the_head_goes_on_from_where_it_was() -> None:
    """G1, C3: a new list that is a slot behind delivers nothing until it is ahead, or shows another root there."""
    world = World()
    world.show("n1", "100a")
    world.delivery.leave(NodeId("n1"))
    assert world.show("n9", "99a", 100.6) == [("99a", BEHIND)]
    assert world.show("n9", "100b", 100.7) == [("100b", DELIVERED)]
