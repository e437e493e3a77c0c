"""Which head is delivered when, as tables: rows of what nodes show, and what becomes of each (C1–C4, H7, H11–H13).

A row is read aloud: this node shows this block, and that is what becomes of it. Blocks are named by slot and
branch: `100a` and `100b` are two blocks of slot 100.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from vc_fallback.base.signals import HeadOutcome
from vc_fallback.base.types import HeadSource, NodeId, PayloadStatus, Root, Slot
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.delivery import SETTLE, Decision, Delivered, Delivery
from vc_fallback.decide.ledger import NodeHead, Standing

SLOT = 12.0
CHAIN = ChainIdentity(genesis_time=1_000_000.0, genesis_validators_root=Root(b"g" * 32), slot_duration=SLOT)
SLOTS = SlotClock(CHAIN, offset=1_000_000.0)  # loop time 0 is genesis

EMPTY, FULL = PayloadStatus.EMPTY, PayloadStatus.FULL
DELIVERED, DUPLICATE, BEHIND = HeadOutcome.DELIVERED, HeadOutcome.DUPLICATE, HeadOutcome.BEHIND
OPTIMISTIC, FUTURE, OLD = HeadOutcome.OPTIMISTIC, HeadOutcome.FUTURE, HeadOutcome.OLD
TIER, WRONG_CHAIN = HeadOutcome.TIER, HeadOutcome.WRONG_CHAIN


def block(name: str) -> tuple[Slot, Root]:
    """Read `100a` as slot 100, branch a."""
    return Slot(int(name[:-1])), Root(name.encode().rjust(32, b"."))


def name_of(head: NodeHead) -> str:
    return head.root.lstrip(b".").decode()


@dataclass
class World:
    """A delivery with a clock and standings that a test moves by hand."""

    deliver_optimistic: bool = False
    standings: dict[str, Standing] = field(default_factory=dict)
    slots: SlotClock | None = SLOTS

    def __post_init__(self) -> None:
        self.delivery = Delivery(self._standing, deliver_optimistic=self.deliver_optimistic)
        self.events: list[Delivered] = []

    def _standing(self, node_id: NodeId) -> Standing:
        return self.standings.get(node_id, Standing.ELIGIBLE)

    def show(self, node: str, name: str, at: float | None = None, **more: Any) -> list[tuple[str, HeadOutcome]]:
        """Show a block at a moment in slots (default: a third into its own slot)."""
        slot, root = block(name)
        at = slot + 1 / 3 if at is None else at
        head = NodeHead(NodeId(node), slot, root, received=at * SLOT, **more)
        return self.note(self.delivery.offer(head, at * SLOT, self.slots))

    def settle(self, at: float) -> list[tuple[str, HeadOutcome]]:
        return self.note(self.delivery.settle(at * SLOT, SLOTS))

    def reconsider(self, at: float) -> str | None:
        delivered = self.delivery.reconsider(at * SLOT, self.slots)
        if delivered is None:
            return None
        self.events.append(delivered)
        return name_of(delivered.head)

    def note(self, decisions: list[Decision]) -> list[tuple[str, HeadOutcome]]:
        self.events += [decision.delivered for decision in decisions if decision.delivered is not None]
        return [(name_of(decision.head), decision.outcome) for decision in decisions]

    @property
    def delivered(self) -> list[str]:
        return [name_of(event.head) for event in self.events]

    @property
    def latest(self) -> Delivered:
        assert self.delivery.delivered is not None
        return self.delivery.delivered


# --- C3, C4, H7: every node shows its head in time; what becomes of each

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


# --- C2


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


# --- H11


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


# --- H12


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


# --- H13


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


# --- standing, chain, list


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
    """C5, scenario 19: the same head from a primary later is delivered, once."""
    world = World(standings={"fallback": Standing.HELD})
    assert world.show("fallback", "100a", 100.1) == [("100a", TIER)]
    assert world.show("n1", "100a", 100.2) == [("100a", DELIVERED)]
    assert world.latest.seen_by == ("n1",)
    assert world.delivered == ["100a"]


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


# --- H8, G1, G3: forget and leave


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


# --- H5, H7


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
