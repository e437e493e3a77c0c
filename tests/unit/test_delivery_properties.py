"""What holds of deliveries for any interleaving of four nodes' heads, ends and standings (C3, C4, G3, H11–H13).

Stated precisely, where "delivered" is the sequence of deliveries and "the delivered head" its last one:

- Each change once: no delivery repeats the one before it in slot, root and payload status.
- From whom: a delivery comes from a node that is in the list and eligible at that moment, by its present entry, and is
  not optimistic unless that is configured.
- At once: a usable, current head of an eligible node above the delivered slot is delivered by being shown.
- No slot is left out: no eligible node shows a usable head above everything that was delivered so far, bursts that have
  not settled aside.
- Down by reorg only: a delivery below the delivered slot comes from a node that has shown the delivered head on its
  connection; and what a node that stands there shows next at another slot, usable and current, is delivered.
- Sideways by C4: another root at the delivered slot comes from the node that the delivered head came from, or with more
  nodes behind it.
- Votes: whoever stands at the delivered head, eligible and not optimistic, is in its `seen_by`.
- Full is not taken back while an eligible node says full.
- Generation: a delivery carries the generation of the list at that moment.

Hypothesis makes short histories and shrinks them; long random walks, each by its seed, go further.
"""

import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc_fallback.base.signals import HeadOutcome
from vc_fallback.base.types import HeadSource, NodeId, PayloadStatus, Root, Slot
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.delivery import SETTLE, Decision, Delivered, Delivery
from vc_fallback.decide.freshness import is_current
from vc_fallback.decide.ledger import NodeHead, Standing

SLOT = 12.0
SLOTS = SlotClock(
    ChainIdentity(genesis_time=1_000_000.0, genesis_validators_root=Root(b"g" * 32), slot_duration=SLOT), 1_000_000.0
)
NODES = [NodeId(name) for name in ("n1", "n2", "n3", "n4")]


@dataclass(frozen=True)
class Show:
    node: NodeId
    behind: int
    branch: str
    optimistic: bool | None
    status: PayloadStatus | None
    source: HeadSource


@dataclass(frozen=True)
class End:
    node: NodeId


@dataclass(frozen=True)
class Stand:
    node: NodeId
    standing: Standing | None
    """`None`: the node leaves the list, until it gets another standing."""


@dataclass(frozen=True)
class Pass:
    slots: float


Action = Show | End | Stand | Pass

BEHIND = [0, 0, 0, 0, 1, 1, 2, 3, -1, -2, 40]
BRANCHES = "aaab"
OPTIMISTIC = [None, False, False, True]
STATUSES = [None, None, PayloadStatus.EMPTY, PayloadStatus.FULL]
SOURCES = [HeadSource.STREAM, HeadSource.STREAM, HeadSource.POLL]
STANDINGS = [*Standing, Standing.ELIGIBLE, Standing.ELIGIBLE, None]
PASSES = [0.01, SETTLE, 0.3, 0.5, 1.0, 1.7]

nodes = st.sampled_from(NODES)
shows = st.builds(
    Show,
    node=nodes,
    behind=st.sampled_from(BEHIND),
    branch=st.sampled_from(BRANCHES),
    optimistic=st.sampled_from(OPTIMISTIC),
    status=st.sampled_from(STATUSES),
    source=st.sampled_from(SOURCES),
)
others = st.one_of(
    st.builds(End, nodes), st.builds(Stand, nodes, st.sampled_from(STANDINGS)), st.builds(Pass, st.sampled_from(PASSES))
)
histories = st.lists(st.one_of(shows, shows, shows, others), max_size=40)


def walk(seed: int) -> list[Action]:
    """Make a random history; a few nodes change their standing often, most show heads."""
    draw = random.Random(seed)
    history: list[Action] = []
    for _ in range(60):
        node = draw.choice(NODES)
        kind = draw.random()
        if kind < 0.75:
            history.append(
                Show(
                    node,
                    draw.choice(BEHIND),
                    draw.choice(BRANCHES),
                    draw.choice(OPTIMISTIC),
                    draw.choice(STATUSES),
                    draw.choice(SOURCES),
                )
            )
        elif kind < 0.8:
            history.append(End(node))
        elif kind < 0.9:
            history.append(Stand(node, draw.choice(STANDINGS)))
        else:
            history.append(Pass(draw.choice(PASSES)))
    return history


@dataclass
class Play:
    """Plays a history as the head cache does, and checks every delivery when it is made."""

    deliver_optimistic: bool = False
    now: float = 100.25 * SLOT
    standings: dict[NodeId, Standing | None] = field(default_factory=lambda: dict.fromkeys(NODES, Standing.ELIGIBLE))
    highest: int = -1
    generation: int = 1
    shown: dict[NodeId, set[Root]] = field(default_factory=lambda: {node: set() for node in NODES})
    """What each node has shown since it was connected last."""
    arrivals: dict[NodeId, list[Root]] = field(default_factory=lambda: {node: [] for node in NODES})
    """The usable heads that each node has come to, since it is in the list."""
    times: list[Root] = field(default_factory=list)
    """The blocks that were delivered."""

    def __post_init__(self) -> None:
        self.delivery = Delivery(
            lambda node: self.standings[node] or Standing.UNVERIFIED, deliver_optimistic=self.deliver_optimistic
        )
        self.last: Delivered | None = None

    def step(self, action: Action) -> None:
        match action:
            case Show():
                self.show(action)
            case End(node):
                self.check(self.delivery.forget(node))
                self.shown[node].clear()
                self.reconsider()
            case Stand(node, standing):
                was, self.standings[node] = self.standings[node], standing
                if standing is None or standing is Standing.QUARANTINED:
                    self.check(self.delivery.leave(node))
                    self.shown[node].clear()
                    self.arrivals[node].clear()
                if (was is None) is not (standing is None):
                    self.change_list()
                self.reconsider()
            case Pass(slots):
                before = SLOTS.slot_at(self.now)
                self.now += slots * SLOT
                due = self.delivery.next_settle
                if due is not None and due <= self.now:
                    self.check(self.delivery.settle(self.now, SLOTS))
                if SLOTS.slot_at(self.now) != before:
                    self.reconsider()
        self.check_standing_still()

    def show(self, show: Show) -> None:
        if self.standings[show.node] is None:
            return  # the head cache takes nothing of a node that is not in the list
        slot = Slot(SLOTS.slot_at(self.now) - show.behind)
        head = NodeHead(
            node_id=show.node,
            slot=slot,
            root=Root(f"{slot}{show.branch}".encode().rjust(32)),
            received=self.now,
            source=show.source,
            payload_status=show.status,
            optimistic=show.optimistic,
            generation=self.generation,
        )
        before = self.delivery.delivered
        taken = self.standings[show.node] is not Standing.QUARANTINED and slot <= SLOTS.slot_at(self.now) + 1
        usable = self.deliver_optimistic or not head.optimistic
        if taken and usable and self.arrivals[show.node][-1:] != [head.root]:
            self.arrivals[show.node].append(head.root)
        stands = before is not None and self.counts(show.node) and before.head.same_block(self.entry(show.node))
        self.shown[show.node].add(head.root)
        decisions = self.delivery.offer(head, self.now, SLOTS)
        self.check(decisions)
        above = before is None or slot > before.head.slot
        reorg = before is not None and stands and not head.same_block(before.head)
        if before is not None and slot == before.head.slot:
            reorg = reorg and show.node == before.head.node_id
        if (
            (above or reorg)
            and not self.repeats(head, before)
            and self.counts(show.node)
            and is_current(slot, self.now, SLOTS)
        ):
            assert decisions[-1].outcome is HeadOutcome.DELIVERED

    def repeats(self, head: NodeHead, before: Delivered | None) -> bool:
        """Whether a node only comes to where the delivered chain was before, and another stands at its head."""
        times = self.times.count(head.root)
        stands = any(
            entry.same_block(before.head) and self.counts(node)
            for node, entry in self.delivery.entries.items()
            if before is not None
        )
        return times > 0 and self.arrivals[head.node_id].count(head.root) <= times and stands

    def change_list(self) -> None:
        """Stamp what stays with the new generation (G2)."""
        self.generation += 1
        for node, head in self.delivery.entries.items():
            self.delivery.entries[node] = replace(head, generation=self.generation)

    def entry(self, node: NodeId) -> NodeHead | None:
        return self.delivery.entries.get(node)

    def counts(self, node: NodeId) -> bool:
        head = self.entry(node)
        usable = head is not None and (self.deliver_optimistic or not head.optimistic)
        return usable and self.standings[node] is Standing.ELIGIBLE

    def reconsider(self) -> None:
        delivered = self.delivery.reconsider(self.now, SLOTS)
        if delivered is not None:
            self.check([Decision(delivered.head, HeadOutcome.DELIVERED, delivered)])

    def check(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            assert (decision.outcome is HeadOutcome.DELIVERED) is (decision.delivered is not None)
            if decision.delivered is not None:
                self.check_delivery(decision.delivered)

    def check_delivery(self, event: Delivered) -> None:
        node, head = event.head.node_id, event.head
        assert self.counts(node)
        assert head.same_block(self.delivery.entries[node])
        assert node in event.seen_by
        assert head.generation == self.generation
        assert SLOTS.slot_at(self.now) - 32 <= head.slot <= SLOTS.slot_at(self.now) + 1
        if self.last is not None:
            before = self.last
            followed = before.head.root in self.shown[node]
            same = head.same_block(before.head)
            assert not (same and head.payload_status == before.head.payload_status)
            if head.slot < before.head.slot:
                assert followed
            elif head.slot == before.head.slot and not same:
                votes = self.delivery.votes(head.slot)
                more = len(votes.get(head.root, ())) > len(votes.get(before.head.root, ()))
                # Where the node that it came from has left, another that showed it has taken its place.
                heir = followed and before.head.node_id not in before.seen_by
                assert more or node == before.head.node_id or heir
            if same and before.head.payload_status is PayloadStatus.FULL:
                assert head.payload_status is PayloadStatus.EMPTY
                assert not any(
                    self.counts(other) and entry.same_block(head) and entry.payload_status is PayloadStatus.FULL
                    for other, entry in self.delivery.entries.items()
                )
            assert event.reorg is (head.slot <= before.head.slot) or same
        if self.last is None or not head.same_block(self.last.head):
            self.times.append(head.root)
        self.highest = max(self.highest, head.slot)
        self.last = event

    def check_standing_still(self) -> None:
        for node, head in self.delivery.entries.items():
            waits = self.delivery.next_settle is not None
            if self.counts(node) and head.slot >= SLOTS.slot_at(self.now) - 32 and not waits:
                assert head.slot <= self.highest
                if head.same_block(self.delivery.delivered.head if self.delivery.delivered else None):
                    assert self.delivery.delivered is not None
                    assert node in self.delivery.delivered.seen_by


@settings(max_examples=100)
@given(histories, st.booleans())
def test_for_any_history_of_four_nodes(history: list[Action], deliver_optimistic: bool) -> None:
    """C3, C4, G3, H11–H13: everything that the module says, after every step."""
    play = Play(deliver_optimistic=deliver_optimistic)
    for action in history:
        play.step(action)


@pytest.mark.parametrize("hundred", range(8))
def test_for_long_random_walks(hundred: int) -> None:
    """As above, 60 steps each."""
    for seed in range(100 * hundred, 100 * hundred + 100):
        play = Play(deliver_optimistic=seed % 4 == 0)
        for action in walk(seed):
            play.step(action)


@settings(max_examples=60)
@given(st.data())
def test_four_nodes_on_one_chain_deliver_every_block_once_in_order(data: st.DataObject) -> None:
    """C3, H1: whoever is first at each block, and however far the others lag."""
    blocks = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=8).map(_slots))
    order = data.draw(st.permutations([node for node in NODES for _ in blocks]))
    delivery = Delivery(lambda _: Standing.ELIGIBLE)
    at = dict.fromkeys(NODES, 0)
    delivered = []
    outcomes = []
    for node in order:
        slot = blocks[at[node]]
        at[node] += 1
        # The wall clock is where the fastest node is.
        now = (blocks[max(at.values()) - 1] + 0.3) * SLOT
        head = NodeHead(node, slot, Root(f"{slot}".encode().rjust(32)), received=now)
        for decision in delivery.offer(head, now, SLOTS):
            outcomes.append(decision.outcome)
            if decision.delivered is not None:
                delivered.append(decision.head.slot)
    assert delivered == blocks
    assert set(outcomes) <= {HeadOutcome.DELIVERED, HeadOutcome.DUPLICATE, HeadOutcome.BEHIND}
    assert len(outcomes) == len(order)


def _slots(gaps: list[int]) -> list[Slot]:
    slots = [100]
    for gap in gaps:
        slots.append(slots[-1] + gap)
    return [Slot(slot) for slot in slots]
