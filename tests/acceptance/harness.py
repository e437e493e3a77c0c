"""A head monitor over simulated nodes that writes down everything it tells, with times in slots."""

import logging
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio

from vc_fallback.base.health import HealthState
from vc_fallback.base.health_signals import DutiesMoved, HealthChanged
from vc_fallback.base.signals import (
    HeadDelivered,
    HeadOutcome,
    NodeHeadSeen,
    Observer,
    Signal,
    StreamChanged,
    StreamState,
)
from vc_fallback.base.types import NodeId, Root, Slot, root_hex
from vc_fallback.chain import SlotClock
from vc_fallback.config import FallbackConfig
from vc_fallback.decide.ledger import NodeHead
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.health.verdict import HealthVerdict
from vc_fallback.node.client import BeaconNode
from vc_fallback.testing import SimulatedBlock, SimulatedChain, SimulatedDevnet, SimulatedNode, events

S = TypeVar("S", bound=Signal)

Nodes = SimulatedDevnet | Sequence[SimulatedNode]


class Followed:
    """A running monitor and what it told. Nodes are known by their names: `bn1`, `bn2`, …"""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.signals: list[Signal] = []
        self.chain = next(iter(nodes)).chain
        self.monitor: HeadMonitor

    # --- time

    @property
    def slots(self) -> SlotClock:
        """The slots of the simulated chain."""
        return self.chain.slots

    @property
    def now(self) -> float:
        """Now, in slots: 130.5 is the middle of slot 130."""
        return self.position(anyio.current_time())

    @property
    def slot(self) -> Slot:
        """The present slot."""
        return self.slots.slot_at(anyio.current_time())

    def position(self, at: float) -> float:
        """Return a moment in loop time as a position in slots."""
        return self.slots.into_slot(at, Slot(0)) / self.slots.duration

    async def until(self, position: float) -> None:
        """Wait for a position in slots: `until(130.5)`."""
        await anyio.sleep_until(self.slots.start_of(Slot(0)) + position * self.slots.duration)

    async def wait_slots(self, count: float) -> None:
        """Wait so many slots from now."""
        await anyio.sleep(count * self.slots.duration)

    async def to_middle(self) -> None:
        """Wait for the next middle of a slot: nothing of the chain's own happens then."""
        await self.until(int(self.now + 0.5) + 0.5)

    # --- what was told

    def told(self, kind: type[S], node: SimulatedNode | None = None, *, since: float = 0.0) -> list[S]:
        """Return the signals of a kind, of one node or of all, from a position in slots on."""
        return [
            signal
            for signal in self.signals
            if isinstance(signal, kind)
            and (node is None or getattr(signal, "node_id", None) == node.name)
            and self.position(signal.at) >= since
        ]

    def deliveries(self, *, since: float = 0.0) -> list[HeadDelivered]:
        """Return the delivered heads."""
        return self.told(HeadDelivered, since=since)

    def blocks(self, *, since: float = 0.0) -> list[HeadDelivered]:
        """Return the delivered heads without those that only told a payload status (H11)."""
        blocks: list[HeadDelivered] = []
        for head in self.deliveries(since=since):
            if not blocks or (head.slot, head.root) != (blocks[-1].slot, blocks[-1].root):
                blocks.append(head)
        return blocks

    def delivered_slots(self, *, since: float = 0.0) -> list[int]:
        """Return the slots of the delivered blocks, one for each change."""
        return [head.slot for head in self.blocks(since=since)]

    def delivered_roots(self, *, since: float = 0.0) -> list[Root]:
        """Return the roots of the delivered blocks, one for each change."""
        return [head.root for head in self.blocks(since=since)]

    def outcomes(self, node: SimulatedNode, *, since: float = 0.0) -> list[tuple[int, HeadOutcome]]:
        """Return the slots of a node's heads and what became of them."""
        return [(seen.slot, seen.outcome) for seen in self.told(NodeHeadSeen, node, since=since)]

    def changes(self, node: SimulatedNode, *, since: float = 0.0) -> list[StreamChanged]:
        """Return what was told of a node's stream."""
        return self.told(StreamChanged, node, since=since)

    def states(self, node: SimulatedNode, *, since: float = 0.0) -> list[str]:
        """Return the states of a node's stream in turn, without repeats."""
        states = [change.state.value for change in self.changes(node, since=since)]
        return [state for state, before in zip(states, [None, *states], strict=False) if state != before]

    def reasons(self, node: SimulatedNode, *, since: float = 0.0) -> list[str]:
        """Return why a node's stream changed, every time."""
        return [change.reason.value for change in self.changes(node, since=since)]

    def ends(self, node: SimulatedNode | str, *, since: float = 0.0) -> list[StreamChanged]:
        """Return what was told of each end of a node's connections (a node that is not simulated by its name)."""
        name = node if isinstance(node, str) else node.name
        changes = self.told(StreamChanged, since=since)
        return [change for change in changes if change.node_id == name and change.retry_in is not None]

    def waits(self, node: SimulatedNode | str, *, since: float = 0.0) -> list[float]:
        """Return the waits in seconds after these ends."""
        return [change.retry_in for change in self.ends(node, since=since) if change.retry_in is not None]

    def stalls(self, node: SimulatedNode) -> list[float]:
        """Return when a node's stream was found stalled, in slots."""
        return [self.position(change.at) for change in self.changes(node) if change.state is StreamState.STALLED]

    def health_turns(self, *nodes: SimulatedNode, since: float = -1e9) -> list[HealthChanged]:
        """Return what was told of health whenever a node's state became another one; every node begins as healthy."""
        states: dict[str, HealthState] = {}
        turns = []
        for change in self.told(HealthChanged, since=-1e9):
            if nodes and change.node_id not in {node.name for node in nodes}:
                continue
            before = states.get(change.node_id, HealthState.HEALTHY)
            states[change.node_id] = change.state
            if change.state is not before and self.position(change.at) >= since:
                turns.append(change)
        return turns

    def health_states(self, node: SimulatedNode, *, since: float = -1e9) -> str:
        """Return the states that a node's health came into in turn: `unhealthy recovering healthy`."""
        return " ".join(change.state for change in self.health_turns(node, since=since))

    def moves(self, *, since: float = 0.0) -> list[tuple[str, str | None, str | None]]:
        """Return how duties moved, without the start: the kind, from whom, to whom."""
        moves = self.told(DutiesMoved, since=since)
        return [(move.kind, move.source, move.target) for move in moves if move.kind != "start"]

    def assert_undisturbed(self, *nodes: SimulatedNode) -> None:
        """Nobody's stream was found stalled, ended or opened anew."""
        for node in nodes:
            assert not self.stalls(node), node.name
            assert not self.ends(node), node.name
            assert [record.closed for record in node.opens] == [None], node.name

    # --- what is

    def id(self, node: SimulatedNode) -> NodeId:
        """Return a node's id."""
        return NodeId(node.name)

    def state(self, node: SimulatedNode) -> StreamState:
        """Return the present state of a node's stream."""
        return self.changes(node)[-1].state

    def healthy(self, node: SimulatedNode) -> bool | None:
        """Return whether a node's stream is to be relied on."""
        return self.monitor.subscription_healthy(self.id(node))

    def health(self, node: SimulatedNode) -> HealthVerdict:
        """Return the verdict on a node's health."""
        return self.monitor.health(self.id(node))

    def client(self, node: SimulatedNode) -> BeaconNode:
        """Return the client with which a node is asked, as requests do."""
        pool = self.monitor._pool
        assert pool is not None
        return pool.get(self.id(node))

    def entry(self, node: SimulatedNode) -> NodeHead | None:
        """Return a node's entry in the cache."""
        return self.monitor.heads().get(self.id(node))

    def block(self, slot: int, branch: str = "main") -> SimulatedBlock:
        """Return the block of a slot."""
        block = self.chain.block_at(slot, branch)
        assert block is not None
        return block

    def assert_every_slot_delivered(self, first: int, last: int, *, within: float = 0.0) -> None:
        """Each slot of the chain from `first` to `last` was delivered once, within so many seconds of its coming."""
        slots = [slot for slot in range(first, last + 1) if self.chain.block_at(slot) is not None]
        heads = [head for head in self.blocks() if first <= head.slot <= last]
        assert [head.slot for head in heads] == slots
        for head in heads:
            assert head.root == self.block(head.slot).root
            assert head.at - self.chain.block_arrival(head.slot) <= within + 1e-6, f"slot {head.slot} came late"


@asynccontextmanager
async def monitor(
    nodes: Nodes,
    *,
    fallbacks: Collection[SimulatedNode] = (),
    listed: Iterable[SimulatedNode] | None = None,
    extra: Iterable[dict[str, object]] = (),
    observers: Iterable[Observer] = (),
    mistakes_of_others: bool = False,
    **settings: Any,
) -> AsyncIterator[Followed]:
    """Follow simulated nodes until the body ends; then see that nothing of the monitor is left and nothing went wrong.

    :param fallbacks: which of the nodes are in the fallback tier.
    :param listed: the nodes that are in the list at first; by default all.
    :param extra: settings of further candidates, after the nodes.
    :param observers: told beside the harness.
    :param mistakes_of_others: the test gives it observers or the like that raise, which is logged.
    :param settings: fields of :class:`FallbackConfig`.
    """
    followed = Followed(nodes)
    candidates = [candidate(node, fallback=node in fallbacks) for node in (nodes if listed is None else listed)]
    config = FallbackConfig.of({"candidates": [*candidates, *extra]} | settings)
    mistakes = _Mistakes()
    package = logging.getLogger("vc_fallback")
    package.addHandler(mistakes)
    try:
        followed.monitor = HeadMonitor(
            config, observers=[followed.signals.append, *observers], clock=followed.chain.clock
        )
        async with followed.monitor:
            yield followed
    finally:
        package.removeHandler(mistakes)
    assert mistakes_of_others or not mistakes.texts
    _check(followed)
    for node in nodes:
        await _all_closed(node)


def known(chain: SimulatedChain) -> dict[str, object]:
    """Return the settings by which the chain is known from the start: `monitor(net, chain=known(net.chain))`."""
    identity = chain.identity
    return {
        "genesis_time": identity.genesis_time,
        "genesis_validators_root": root_hex(identity.genesis_validators_root),
        "slot_duration": identity.slot_duration,
        "slots_per_epoch": identity.slots_per_epoch,
    }


def announce(node: SimulatedNode, block: SimulatedBlock, **changed: object) -> None:
    """Let a node say a head in both forms, as it does itself, without changing what it answers.

    Where the second form has been seen the first says nothing any more (H11).
    """
    data = {**events.head(node.chain, block), **changed}
    node.publish("head", data)
    node.publish("head_v2", {"version": "fulu", "data": data})


def candidate(node: SimulatedNode, *, fallback: bool = False, **more: object) -> dict[str, object]:
    """Return the settings of a candidate for a simulated node, which is called by the node's name."""
    return {"url": node.url, "name": node.name, "tier": "fallback" if fallback else "primary", **more}


def _check(followed: Followed) -> None:
    """Hold down what is so in every scenario: no change is delivered twice, and each comes from a node's head."""
    before: tuple[object, ...] = ()
    for head in followed.deliveries():
        news = (head.slot, head.root, head.payload_status)
        assert news != before, f"slot {head.slot} was delivered twice in a row"
        assert head.node_id in head.seen_by
        before = news


async def _all_closed(node: SimulatedNode) -> None:
    """See that the monitor has closed all its connections to a node."""
    node.thaw()  # a stopped process sees no close
    with anyio.move_on_after(120):
        while node.connections:  # noqa: ASYNC110 - the node's own clean-up, of which it tells nobody
            await anyio.sleep(0.1)
    assert not node.connections, f"{node.name} has {node.connections} connections that nobody closed"


class _Mistakes(logging.Handler):
    """Collects what was logged as an error: mistakes of our own."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))
