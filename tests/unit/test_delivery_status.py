"""Payload statuses and optimistic heads: what of them is news, and what is delivered (H11, H12)."""

import pytest

from tests.delivery_world import BEHIND, DELIVERED, DUPLICATE, EMPTY, FULL, OPTIMISTIC, SLOT, World
from vc_fallback.base.types import HeadSource, NodeId, PayloadStatus, Root


@pytest.mark.parametrize(
    ("said", "news"),
    [
        pytest.param([("n1", None), ("n1", EMPTY)], [None, EMPTY], id="rises unknown → empty"),
        pytest.param([("n1", EMPTY), ("n1", FULL)], [EMPTY, FULL], id="rises empty → full"),
        pytest.param([("n1", None), ("n2", FULL)], [None, FULL], id="rises by another node"),
        pytest.param([("n1", FULL), ("n2", EMPTY)], [FULL], id="a slower node's empty is no news"),
        pytest.param([("n1", FULL), ("n2", None)], [FULL], id="unknown matches any"),
        pytest.param([("n1", FULL), ("n1", None)], [FULL], id="head after head_v2 takes nothing back"),
        pytest.param([("n1", FULL), ("n1", EMPTY)], [FULL, EMPTY], id="falls when all that said full say empty"),
        pytest.param(
            [("n1", FULL), ("n2", FULL), ("n1", EMPTY), ("n2", EMPTY)],
            [FULL, EMPTY],
            id="falls with the last that said full, not with the first",
        ),
        pytest.param(
            [("n1", FULL), ("n2", EMPTY), ("n1", EMPTY), ("n2", FULL)], [FULL, EMPTY, FULL], id="and rises again"
        ),
        pytest.param([("n1", EMPTY), ("n2", EMPTY), ("n1", EMPTY)], [EMPTY], id="the same again is no news"),
    ],
)
def test_the_payload_status_rises_as_news_and_falls_by_all(
    said: list[tuple[str, PayloadStatus | None]], news: list[PayloadStatus | None]
) -> None:
    """H11, case 11: the delivered payload status of one block."""
    world = World()
    for node, status in said:
        world.show(node, "10a", payload_status=status)
    assert [event.head.payload_status for event in world.events] == news
    assert world.delivered == ["10a"] * len(news)
    assert not any(event.reorg for event in world.events)


def test_a_payload_status_is_news_of_the_node_that_says_it() -> None:
    """Rule 1, Q8: the head with its new status carries the provenance of the node that knows the payload."""
    world = World()
    world.show("n1", "10a", 10.1, payload_status=EMPTY)
    world.show("n2", "10a", 10.2, payload_status=FULL)
    assert [(e.head.node_id, e.head.received) for e in world.events] == [("n1", 10.1 * SLOT), ("n2", 10.2 * SLOT)]
    assert world.latest.seen_by == ("n1", "n2")


def test_what_nodes_said_of_the_status_before_the_block_was_delivered_counts() -> None:
    """H11: statuses belong to a block and follow it when it becomes the delivered one."""
    world = World()
    world.show("n1", "100a")
    world.show("n2", "100b", payload_status=FULL)
    world.show("n3", "100b", payload_status=EMPTY)
    assert world.delivered == ["100a", "100b"]
    assert world.latest.head.payload_status is FULL


def test_the_status_of_one_block_says_nothing_of_another() -> None:
    """H11: a new block begins as unknown."""
    world = World()
    world.show("n1", "10a", payload_status=FULL)
    world.show("n1", "11a")
    assert world.latest.head.payload_status is None


def test_both_topics_for_one_block_are_one_head() -> None:
    """H11, case 7: `head` and then `head_v2` of one block; what the first knew and the second leaves out is kept."""
    world = World()
    root = Root(b"d" * 32)
    world.show("n1", "10a", current_epoch_dependent_root=root, optimistic=False)
    world.show("n1", "10a")
    entry = world.delivery.entries[NodeId("n1")]
    assert (entry.current_epoch_dependent_root, entry.optimistic) == (root, False)
    assert world.delivered == ["10a"]


def test_an_optimistic_head_is_kept_and_not_delivered_until_it_is_valid() -> None:
    """H12: kept and marked; delivered when a poll says that it became valid."""
    world = World()
    assert world.show("n1", "100a", 100.1, optimistic=True) == [("100a", OPTIMISTIC)]
    assert world.delivery.entries[NodeId("n1")].optimistic is True
    assert world.show("n1", "100a", 100.2, optimistic=False, source=HeadSource.POLL) == [("100a", DELIVERED)]
    assert world.delivered == ["100a"]


def test_a_missing_flag_is_not_optimistic_and_takes_no_flag_back() -> None:
    """H12: a missing flag counts as not optimistic; but it does not contradict what the node said of the same block."""
    world = World()
    assert world.show("n1", "100a", optimistic=None) == [("100a", DELIVERED)]
    assert world.show("n2", "100a", optimistic=True) == [("100a", OPTIMISTIC)]
    assert world.show("n2", "100a", optimistic=None) == [("100a", OPTIMISTIC)]


def test_an_optimistic_node_has_no_vote() -> None:
    """H12, C4: optimistic heads stand behind nothing."""
    world = World()
    world.show("n1", "100a")
    world.show("n2", "100a", optimistic=True)
    assert world.latest.seen_by == ("n1",)
    world.show("n3", "100b", optimistic=True)
    assert world.show("n4", "100b") == [("100b", BEHIND)]


def test_optimistic_heads_are_delivered_where_that_is_configured() -> None:
    """H12: configurable; the mark stays."""
    world = World(deliver_optimistic=True)
    assert world.show("n1", "100a", optimistic=True) == [("100a", DELIVERED)]
    assert world.latest.head.optimistic is True
    assert world.show("n1", "100a", optimistic=False) == [("100a", DUPLICATE)]


def test_a_reorg_whose_head_was_optimistic_at_first_is_delivered_when_valid() -> None:
    """H12, C3: a withheld head is no step of its own; the step is from the delivered head to the valid one."""
    world = World()
    world.show("n1", "100a", 100.1)
    assert world.show("n1", "99b", 100.3, optimistic=True) == [("99b", OPTIMISTIC)]
    assert world.show("n1", "99b", 100.4, optimistic=False, source=HeadSource.POLL) == [("99b", DELIVERED)]
    assert world.delivered == ["100a", "99b"]
