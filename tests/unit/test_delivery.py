"""Which head is delivered when, as tables: rows of what nodes show, and what becomes of each (C2–C4, H7).

A row is read aloud: this node shows this block, and that is what becomes of it. Blocks are named by slot and
branch: `100a` and `100b` are two blocks of slot 100.
"""

from collections.abc import Sequence

import pytest

from tests.delivery_world import BEHIND, DELIVERED, DUPLICATE, SLOTS, World, block, name_of
from vc_fallback.base.signals import HeadOutcome
from vc_fallback.base.types import HeadSource, NodeId, Slot
from vc_fallback.decide.ledger import Standing

Row = tuple[str, str, HeadOutcome]

TABLES: dict[str, Sequence[Row]] = {
    "C3: the first node that shows a head delivers it, the others vote": [
        ("n1", "100a", DELIVERED),
        ("n2", "100a", DUPLICATE),
        ("n3", "100a", DUPLICATE),
        ("n3", "101a", DELIVERED),
        ("n1", "101a", DUPLICATE),
        ("n2", "101a", DUPLICATE),
    ],
    "C3: a slower node's older head moves only its own entry": [
        ("n1", "101a", DELIVERED),
        ("n2", "100a", BEHIND),
        ("n2", "101a", DUPLICATE),
    ],
    "C3: the same head again from the same node is no news (case 11)": [
        ("n1", "100a", DELIVERED),
        ("n1", "100a", DUPLICATE),
    ],
    "C3: slots may be missed (case 1)": [
        ("n1", "100a", DELIVERED),
        ("n1", "103a", DELIVERED),
        ("n2", "103a", DUPLICATE),
    ],
    "C3, H7: the node we follow reorganises to a lower slot, and on from there": [
        ("n1", "100a", DELIVERED),
        ("n1", "99b", DELIVERED),
        ("n1", "100b", DELIVERED),
    ],
    "C3: A → B → A is three": [
        ("n1", "100a", DELIVERED),
        ("n1", "99b", DELIVERED),
        ("n1", "100a", DELIVERED),
    ],
    "C3: A → B → A at one slot is three": [
        ("n1", "100a", DELIVERED),
        ("n1", "100b", DELIVERED),
        ("n1", "100a", DELIVERED),
    ],
    "C3: others that reorganise the same way only vote": [
        ("n1", "100a", DELIVERED),
        ("n2", "100a", DUPLICATE),
        ("n1", "99b", DELIVERED),
        ("n2", "99b", DUPLICATE),
    ],
    "C3: a lower head of a node that never showed the delivered one is behind": [
        ("n2", "98b", DELIVERED),
        ("n1", "100a", DELIVERED),
        ("n2", "99b", BEHIND),
    ],
    "C3: a node that turned to an old root and back delivers nothing more": [
        ("n2", "99a", DELIVERED),
        ("n1", "100a", DELIVERED),
        ("n2", "98b", BEHIND),
        ("n2", "99a", BEHIND),
    ],
    "C4: another root at the same slot from a node that is not followed is behind": [
        ("n1", "100a", DELIVERED),
        ("n2", "100b", BEHIND),
    ],
    "C4: one against one does not move the head, a second one behind the other root does (case 43)": [
        ("n1", "100a", DELIVERED),
        ("n2", "100b", BEHIND),
        ("n3", "100b", DELIVERED),
        ("n4", "100b", DUPLICATE),
    ],
    "C4: the minority comes over and nothing more is said": [
        ("n1", "100a", DELIVERED),
        ("n2", "100b", BEHIND),
        ("n3", "100b", DELIVERED),
        ("n1", "100b", DUPLICATE),
    ],
    "C4: two against two leave the head where it is, no A/B/A (case 43)": [
        ("n1", "100a", DELIVERED),
        ("n2", "100a", DUPLICATE),
        ("n3", "100b", BEHIND),
        ("n4", "100b", BEHIND),
        ("n3", "100b", BEHIND),
    ],
    "C4: the node the head came from moves it alone, however many stay": [
        ("n1", "100a", DELIVERED),
        ("n2", "100a", DUPLICATE),
        ("n3", "100a", DUPLICATE),
        ("n1", "100b", DELIVERED),
    ],
    "C4: next slot, next head, whoever is first": [
        ("n1", "100a", DELIVERED),
        ("n2", "100b", BEHIND),
        ("n2", "101b", DELIVERED),
        ("n1", "101a", BEHIND),
    ],
    "scenario 29: eight nodes at one instant make one delivery": [
        ("n1", "100a", DELIVERED),
        *((f"n{i}", "100a", DUPLICATE) for i in range(2, 9)),
    ],
    "recorded partition that heals: 22 → 20 → 21 → 23": [
        ("n1", "22a", DELIVERED),
        ("n1", "20b", DELIVERED),
        ("n1", "21b", DELIVERED),
        ("n1", "23b", DELIVERED),
    ],
}


@pytest.mark.parametrize("rows", TABLES.values(), ids=TABLES.keys())
def test_what_becomes_of_a_head(rows: Sequence[Row]) -> None:
    """C3, C4, H7: see the name of each table. The wall clock stands still within the newest slot of the table."""
    world = World()
    wall = max(block(name)[0] for _, name, _ in rows)
    for node, name, outcome in rows:
        # A poll is delivered at once; what comes late over the stream is below.
        source = HeadSource.STREAM if block(name)[0] >= wall - 1 else HeadSource.POLL
        assert world.show(node, name, wall + 0.4, source=source) == [(name, outcome)]
    assert world.delivered == [name for _, name, outcome in rows if outcome is DELIVERED]


def test_eight_nodes_stand_behind_one_delivery() -> None:
    """C3, scenario 29: one delivery, eight in `seen_by`, in the order they came; also in the delivery handed out."""
    world = World()
    for number in range(1, 9):
        world.show(f"n{number}", "100a", 100.1)
    assert world.delivered == ["100a"]
    assert world.events[0].seen_by == tuple(f"n{number}" for number in range(1, 9))
    assert world.events[0].head.node_id == "n1"


def test_a_reorg_is_marked_and_an_ordinary_step_is_not() -> None:
    """A head at or below the slot of the one before it is a reorg."""
    world = World()
    for name in ("100a", "101a", "101b", "100c", "102c"):
        world.show("n1", name, 101.5 if name != "102c" else 102.1)
    assert [(name_of(e.head), e.reorg) for e in world.events] == [
        ("100a", False),
        ("101a", False),
        ("101b", True),
        ("100c", True),
        ("102c", False),
    ]


@pytest.mark.parametrize(
    ("received", "late"),
    [(100.0, False), (100.99, False), (101.0, True), (101.3, True), (99.5, False)],
)
def test_late_is_received_after_the_end_of_its_slot(received: float, late: bool) -> None:
    """C4: `late` = received after the end of its slot; a head that is early is not."""
    world = World()
    assert world.show("n1", "100a", received) == [("100a", DELIVERED)]
    assert world.latest.late is late


def test_votes_tell_who_stands_where() -> None:
    """C4: `votes(slot)` counts eligible nodes by their present heads only."""
    world = World(standings={"n5": Standing.QUARANTINED, "n6": Standing.HELD, "n7": Standing.UNVERIFIED})
    for node, name in [("n1", "100a"), ("n2", "100b"), ("n3", "100b"), ("n4", "100a"), ("n5", "100a")]:
        world.show(node, name)
    for node in ("n6", "n7"):
        world.show(node, "100a")
    world.show("n8", "100a", optimistic=True)
    assert world.delivery.votes(Slot(100)) == {block("100a")[1]: ("n1", "n4"), block("100b")[1]: ("n2", "n3")}
    world.show("n4", "101a")
    assert world.delivery.votes(Slot(100)) == {block("100a")[1]: ("n1",), block("100b")[1]: ("n2", "n3")}
    assert world.delivery.votes(Slot(99)) == {}


@pytest.mark.parametrize(
    ("node", "standing", "optimistic", "latest"),
    [
        ("ahead", Standing.ELIGIBLE, None, False),
        ("ahead", Standing.ELIGIBLE, False, False),
        ("ahead", Standing.ELIGIBLE, True, True),
        ("ahead", Standing.HELD, None, True),
        ("ahead", Standing.UNVERIFIED, None, True),
        ("ahead", Standing.QUARANTINED, None, True),
    ],
)
def test_latest_is_measured_against_eligible_entries_only(
    node: str, standing: Standing, optimistic: bool | None, latest: bool
) -> None:
    """C2: an entry that is optimistic, held back, not verified or quarantined makes no other head old."""
    world = World()
    world.show("n1", "100a")
    world.show(node, "101a", optimistic=optimistic)
    world.standings[node] = standing
    assert world.delivery.is_latest(Slot(100)) is latest
    assert world.delivery.is_latest(Slot(101)) is True


def test_an_entry_beyond_the_clock_makes_no_head_old() -> None:
    """C2, H13: a head from before the chain was known that the clock then refuses is dropped, not kept for ever."""
    world = World(slots=None)
    world.show("liar", "9000a", 100.1)
    world.show("n1", "100a", 100.2)
    assert world.delivery.newest_elsewhere(NodeId("n1")) == 9000
    world.slots = SLOTS
    assert world.reconsider(100.3) == "100a"
    assert world.delivery.is_latest(Slot(100))
    assert world.delivery.newest_elsewhere(NodeId("n1")) is None


def test_newest_elsewhere_is_the_newest_of_the_others_short_of_quarantine() -> None:
    """H5: what a node's silence is measured against."""
    world = World(standings={"n4": Standing.QUARANTINED, "n3": Standing.HELD})
    assert world.delivery.newest_elsewhere(NodeId("n1")) is None
    world.show("n1", "101a", 101.1)
    assert world.delivery.newest_elsewhere(NodeId("n1")) is None
    world.show("n2", "99a", 101.1)
    world.show("n3", "100a", 101.1)
    world.show("n4", "101z", 101.1)
    assert world.delivery.newest_elsewhere(NodeId("n1")) == 100


@pytest.mark.parametrize(
    "order", [("100a", "98b"), ("98b", "100a")], ids=["a lower slot replaces a higher one", "a higher a lower one"]
)
def test_the_last_head_is_the_latest(order: tuple[str, str]) -> None:
    """H7, case 45: not the highest."""
    world = World()
    for name in order:
        world.show("n1", name, 100.5)
    assert name_of(world.delivery.entries[NodeId("n1")]) == order[1]
