"""What holds of the tier gate for any interleaving of heads, ends, stalls and list changes (C3, C5, C6, G3).

Four nodes on one chain, which never go back; the head cache as it is, on a clock that is set by hand; and beside it a
model, which knows of each node only what C5 asks for. After every step, and at every delivery:

- each slot's head is delivered once, and slots rise;
- it comes from a node of the present list, with its generation; from a fallback only while no primary holds the gate;
- the gate is held by a primary that C5 does not exclude, and open where there is none; what was told of it is so;
- no node that may be listened to shows a newer usable head than the delivered one, bursts that have not settled aside;
- the first choice of streams is the primary that holds the gate, or a node that would (C7).
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import GateChanged, HeadDelivered, HeadHeld, Observers, Signal, StreamState
from vc_fallback.base.types import NodeId, Root, Slot, Tier
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate, Candidates
from vc_fallback.config import FallbackConfig
from vc_fallback.decide.ledger import NodeHead
from vc_fallback.heads.cache import HeadCache
from vc_fallback.health.book import HealthBook

SLOT = 12.0
NODES = [NodeId(name) for name in ("n1", "n2", "n3", "n4")]
TIERS = [Tier.PRIMARY, Tier.PRIMARY, Tier.FALLBACK, Tier.FALLBACK]
CONFIG = FallbackConfig.of(
    {
        "chain": {"genesis_time": 0.0, "genesis_validators_root": "0x" + "00" * 32, "slot_duration": SLOT},
        # One check makes a node ill or well, and nothing else does.
        "health": {"failed_checks": 1, "min_recovery_checks": 1, "max_lag": 2**20},
    }
)


class ByHand(Clock):
    """Loop time and Unix time are one; it needs no event loop."""

    def __init__(self) -> None:
        self._wall = None
        self._offset = 0.0
        self.time = 100.25 * SLOT

    def now(self) -> float:
        return self.time

    def unix(self, at: float | None = None) -> float:
        return self.time if at is None else at


@dataclass(frozen=True)
class Show:
    """A node shows the block `behind` slots behind the clock, or the one it is at, where that is newer."""

    node: NodeId
    behind: int = 0
    optimistic: bool = False


@dataclass(frozen=True)
class Open:
    node: NodeId


@dataclass(frozen=True)
class End:
    node: NodeId


@dataclass(frozen=True)
class Stall:
    node: NodeId


@dataclass(frozen=True)
class Behind:
    node: NodeId


@dataclass(frozen=True)
class Health:
    node: NodeId
    well: bool


@dataclass(frozen=True)
class Relist:
    """The list becomes this: a tier for each node, `None` for one that is not in it."""

    tiers: tuple[Tier | None, ...]


@dataclass(frozen=True)
class Pass:
    slots: float


Action = Show | Open | End | Stall | Behind | Health | Relist | Pass

BEHINDS = [0, 0, 0, 0, 1, 1, 2, 5, -1]
PASSES = [0.01, 0.05, 0.3, 0.5, 1.0, 1.0, 2.6]

nodes = st.sampled_from(NODES)
shows = st.builds(Show, nodes, st.sampled_from(BEHINDS), st.sampled_from([False, False, False, True]))
passes = st.builds(Pass, st.sampled_from(PASSES))
others = st.one_of(
    st.builds(Open, nodes),
    st.builds(End, nodes),
    st.builds(Stall, nodes),
    st.builds(Behind, nodes),
    st.builds(Health, nodes, st.booleans()),
    st.builds(Relist, st.tuples(*[st.sampled_from([None, *Tier])] * 4)),
)
histories = st.lists(st.one_of(shows, shows, passes, others), max_size=50)


def walk(seed: int) -> list[Action]:
    """Make a long random history: mostly heads, slot after slot, and now and then something goes wrong."""
    draw = random.Random(seed)
    history: list[Action] = []
    for _ in range(120):
        node = draw.choice(NODES)
        kind = draw.random()
        if kind < 0.55:
            history.append(Show(node, draw.choice(BEHINDS), draw.random() < 0.15))
        elif kind < 0.75:
            history.append(Pass(draw.choice(PASSES)))
        elif kind < 0.9:
            trouble: list[Action] = [Open(node), Open(node), End(node), Stall(node), Behind(node)]
            history.append(draw.choice(trouble))
        elif kind < 0.97:
            history.append(Health(node, draw.random() < 0.7))
        else:
            history.append(Relist(tuple(draw.choice([*Tier, *Tier, None]) for _ in NODES)))
    return history


@dataclass
class Node:
    """What C5 asks of a node, and where it is on the chain."""

    tier: Tier | None
    open: bool = False
    verified: bool = False
    well: bool = True
    current: float | None = None
    stalled: bool = False
    behind: bool = False
    at: int | None = None
    """The block it is at; it never goes back."""
    entry: int | None = None
    optimistic: bool = False
    usable: int | None = None
    settles: float = 0.0
    """Until when its last head may wait for the end of a burst."""

    def forget(self) -> None:
        self.open, self.entry, self.usable, self.optimistic = False, None, None, False


@dataclass
class World:
    """The cache and the model side by side."""

    told: list[HeadDelivered] = field(default_factory=list)
    gates: list[GateChanged] = field(default_factory=list)
    held: int = 0

    @classmethod
    def begun(cls) -> Self:
        """Every node is there, open, and has shown nothing yet."""
        world = cls()
        world.clock = ByHand()
        world.model = {node: Node(tier) for node, tier in zip(NODES, TIERS, strict=True)}
        world.candidates = Candidates(world.listing(zip(NODES, TIERS, strict=True)))
        observers = Observers([world.observe])
        book = HealthBook(CONFIG.health, world.candidates, world.clock, observers)
        world.cache = HeadCache(CONFIG, world.candidates, world.clock, observers, book)
        world.cache.start()
        for node in NODES:
            world.step(Open(node))
        return world

    clock: ByHand = field(init=False)
    model: dict[NodeId, Node] = field(init=False)
    candidates: Candidates = field(init=False)
    cache: HeadCache = field(init=False)

    @staticmethod
    def listing(tiers: Iterable[tuple[NodeId, Tier | None]]) -> list[Candidate]:
        return [
            Candidate(url=BaseURL.parse(f"http://{node}"), name=node, tier=tier)
            for node, tier in tiers
            if tier is not None
        ]

    @property
    def wall(self) -> int:
        return int(self.clock.time // SLOT)

    # --- what C5 says, in its own words

    def tip(self) -> int | None:
        heights = sorted(node.entry for node in self.model.values() if node.verified and node.entry is not None)
        heights = [height for height in heights if height <= self.wall + 1]
        if not heights:
            return None
        return heights[-2] if len(heights) > 2 else heights[-1]

    def would_hold(self, node: Node) -> bool:
        tip = self.tip()
        fresh = node.current is not None and not node.stalled and not node.behind
        near = node.usable is not None and tip is not None and node.usable >= tip - 1
        return node.tier is not None and node.verified and node.well and node.open and fresh and near

    def holders(self) -> list[NodeId]:
        return [name for name, node in self.model.items() if node.tier is Tier.PRIMARY and self.would_hold(node)]

    # --- steps

    def step(self, action: Action) -> None:
        match action:
            case Pass(slots):
                self.wait(slots)
            case Relist(tiers):
                self.relist(dict(zip(NODES, tiers, strict=True)))
            case _ if self.model[action.node].tier is not None:
                self.act(action, self.model[action.node])
        self.check()

    def act(self, action: Show | Open | End | Stall | Behind | Health, node: Node) -> None:
        name, facts = action.node, self.cache.ledger.nodes[action.node]
        stream = facts.stream
        match action:
            case Show() if node.open:
                self.show(action, node)
            case Open() if not node.open:
                node.open = node.verified = True
                if node.current is not None and self.clock.time >= node.current + 2.5 * SLOT:
                    node.stalled = stream.stalled = True
                stream.requested = stream.opened = self.clock.time
                stream.state = StreamState.OPEN
                chain = CONFIG.identity()
                assert chain is not None
                self.cache.identified(name, chain)
                self.cache.look_at_gate()
            case End() if node.open:
                self.end(name, node)
            case Stall() if node.open:
                node.stalled = stream.stalled = True
                stream.state = StreamState.STALLED
                self.cache.look_at_gate()
                self.end(name, node)
            case Behind() if node.open:
                node.behind = stream.behind = True
                self.cache.look_at_gate()
            case Health(well=well):
                node.well = well
                if well:
                    self.cache.book.check_passed(
                        name, head_slot=Slot(0), sync_distance=0, latency=0.1, optimistic=False, el_offline=False
                    )
                else:
                    self.cache.book.check_failed(name, "refused")
                assert bool(facts.unhealthy) is not well

    def show(self, show: Show, node: Node) -> None:
        slot = max(node.at or 0, self.wall - show.behind)
        node.at = node.entry = slot
        node.optimistic = show.optimistic
        if not show.optimistic:
            node.usable = slot
        stream = self.cache.ledger.nodes[show.node].stream
        current = self.wall - 1 <= slot <= self.wall + 1
        if current:
            node.current, node.stalled, node.behind = self.clock.time, False, False
        else:
            node.settles = self.clock.time + SLOT / 24
        head = NodeHead(
            show.node,
            Slot(slot),
            Root(f"{slot}".encode().rjust(32)),
            received=self.clock.time,
            generation=self.candidates.generation,
            optimistic=show.optimistic,
        )
        assert self.cache.streamed(head) is current
        self.cache.offer(head)
        if current:
            stream.state = StreamState.FRESH
            self.cache.look_at_gate()

    def end(self, name: NodeId, node: Node) -> None:
        node.forget()
        stream = self.cache.ledger.nodes[name].stream
        stream.connection_ended()
        stream.state = StreamState.BACKOFF
        self.cache.forget(name)

    def relist(self, tiers: dict[NodeId, Tier | None]) -> None:
        for name, tier in tiers.items():
            before = self.model[name]
            at = before.at
            if tier is None or before.tier is None:
                self.model[name] = Node(tier, at=at)
            before = self.model[name]
            before.tier = tier
        self.cache.apply(self.candidates.update(self.listing(tiers.items())))

    def wait(self, slots: float) -> None:
        until = self.clock.time + slots * SLOT
        while self.clock.time < until:
            due = self.cache.delivery.next_settle
            following = (self.wall + 1) * SLOT
            moment = min(until, following, due if due is not None else until)
            self.clock.time = max(moment, self.clock.time)
            if due is not None and due <= self.clock.time:
                self.cache.settle_due()
            if self.clock.time >= following:
                self.cache.reconsider()

    # --- what holds

    def observe(self, signal: Signal) -> None:
        match signal:
            case HeadDelivered():
                node = self.model[signal.node_id]
                assert node.tier is signal.tier
                assert signal.generation == self.candidates.generation
                assert signal.node_id in self.candidates.current
                assert node.verified
                assert signal.slot == node.entry
                assert not node.optimistic
                if signal.tier is Tier.FALLBACK:
                    assert not self.holders()
                assert not self.told or signal.slot > self.told[-1].slot
                self.told.append(signal)
            case GateChanged():
                before = self.gates[-1] if self.gates else None
                assert before is None or (signal.open, signal.holder) != (before.open, before.holder)
                self.gates.append(signal)
            case HeadHeld():
                assert self.model[signal.node_id].tier is Tier.FALLBACK
                assert not self.told or signal.slot > self.told[-1].slot, "only what is news is held back"
                self.held += 1

    def check(self) -> None:
        fallbacks = {name for name, node in self.model.items() if node.tier is Tier.FALLBACK}
        holders = self.holders()
        held = fallbacks if holders else set()
        assert self.cache.ledger.held == held
        if fallbacks and self.gates:
            assert self.gates[-1].open is not bool(holders)
            assert self.gates[-1].holder == (holders[0] if holders else None)
        for name, node in self.model.items():
            if node.tier is None or not node.verified or name in held or node.entry is None or node.optimistic:
                continue
            if node.entry >= self.wall - 32 and self.clock.time >= node.settles:
                assert self.told
                assert self.told[-1].slot >= node.entry
        choice = self.cache.stream_choice()
        ready = [name for name, node in self.model.items() if self.would_hold(node)]
        assert set(choice[: len(ready)]) == set(ready)
        assert not holders or choice[0] in holders


@settings(max_examples=100)
@given(histories)
def test_for_any_history_of_four_nodes(history: list[Action]) -> None:
    """C3, C5, C6, C7, G3: everything that the module says, after every step."""
    world = World.begun()
    for action in history:
        world.step(action)


@pytest.mark.parametrize("fifty", range(4))
def test_for_long_random_walks(fifty: int) -> None:
    """As above, 120 steps each; together they open and close the gate and hold heads back many times."""
    opened = closed = held = delivered = 0
    for seed in range(50 * fifty, 50 * fifty + 50):
        world = World.begun()
        for action in walk(seed):
            world.step(action)
        opened += sum(gate.open for gate in world.gates)
        closed += sum(not gate.open for gate in world.gates)
        held += world.held
        delivered += len(world.told)
    assert min(opened, closed, held) > 25
    assert delivered > 250
