"""Asks what a validator client asks, slot by slot, in several ways at once, and keeps when which answer came."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import anyio

from vc_fallback import (
    AttestationData,
    AttesterDuty,
    BeaconNode,
    BeaconNodeFallback,
    Duties,
    Epoch,
    FallbackError,
    HeadDelivered,
    HeadOutcome,
    HeadSource,
    NodeError,
    NodeHeadSeen,
    NodeId,
    ProposerDuties,
    Root,
    Signal,
    Slot,
    SlotClock,
    Sourced,
    Watch,
)

LATE = 1 / 6
"""Part of a slot after the moment at which a call's answer is due; half of what is left until aggregates are due."""


class Way(Protocol):
    """A way to have an answer; `end` is the moment in loop time after which nobody wants it any more."""

    @property
    def node_id(self) -> NodeId | None:
        """The node whose heads are followed; `None` for all of them as one."""

    async def attestation_data(self, slot: Slot, end: float) -> Sourced[AttestationData]:
        """What attesters of a slot are to sign."""

    async def head_root(self, slot: Slot, end: float) -> Sourced[Root]:
        """What members of the sync committee are to sign."""

    async def attester_duties(self, epoch: Epoch, indices: Sequence[int], end: float) -> Sourced[Duties[AttesterDuty]]:
        """Where validators attest."""

    async def proposer_duties(self, epoch: Epoch, end: float) -> Sourced[ProposerDuties]:
        """Who proposes."""


class OptimisticHead(NodeError):
    """The node says itself that its head is not verified."""


class ByAll:
    """The facade."""

    node_id = None

    def __init__(self, nodes: BeaconNodeFallback) -> None:
        self._nodes = nodes

    async def attestation_data(self, slot: Slot, end: float) -> Sourced[AttestationData]:
        return await self._nodes.attestation_data(slot, deadline=end)

    async def head_root(self, slot: Slot, end: float) -> Sourced[Root]:
        return await self._nodes.sync_message_root(slot, deadline=end)

    async def attester_duties(self, epoch: Epoch, indices: Sequence[int], end: float) -> Sourced[Duties[AttesterDuty]]:
        return await self._nodes.attester_duties(epoch, indices, deadline=end)

    async def proposer_duties(self, epoch: Epoch, end: float) -> Sourced[ProposerDuties]:
        return await self._nodes.proposer_duties(epoch, deadline=end)


class ByOne:
    """One node, as a validator client has it that knows no other."""

    def __init__(self, node: BeaconNode) -> None:
        self._node = node
        self.node_id = node.node_id

    async def attestation_data(self, slot: Slot, end: float) -> Sourced[AttestationData]:
        return await self._node.attestation_data(slot, timeout=_left(end))

    async def head_root(self, slot: Slot, end: float) -> Sourced[Root]:  # noqa: ARG002 - a node knows one head
        answer = await self._node.block_root("head", timeout=_left(end))
        self._look(answer.value.execution_optimistic)
        return Sourced(answer.value.data, answer.provenance)

    async def attester_duties(self, epoch: Epoch, indices: Sequence[int], end: float) -> Sourced[Duties[AttesterDuty]]:
        answer = await self._node.attester_duties(epoch, indices, timeout=_left(end))
        self._look(answer.value.execution_optimistic)
        return answer

    async def proposer_duties(self, epoch: Epoch, end: float) -> Sourced[ProposerDuties]:
        answer = await self._node.proposer_duties(epoch, timeout=_left(end))
        self._look(answer.value.execution_optimistic)
        return answer

    def _look(self, optimistic: bool | None) -> None:
        if optimistic:
            raise OptimisticHead(self._node.node_id, "head", "optimistic")


def _left(end: float) -> float:
    return max(0.001, end - anyio.current_time())


@dataclass(frozen=True, slots=True)
class Call:
    """One call and what came of it. Moments are loop time in seconds.

    :param due: when its answer is due: for what is signed when that is signed, for duties when the first are.
    :param node: who answered; `None` where nobody did.
    :param old: whether the answer is an older block than the head that was announced before it was asked for.
    :param problem: why there is no answer.
    """

    what: str
    slot: Slot
    asked: float
    due: float
    ended: float
    node: NodeId | None
    old: bool = False
    problem: str = ""

    @property
    def missed(self) -> bool:
        """Whether there was no answer by the end of the slot."""
        return self.node is None

    def late(self, slot_duration: float) -> bool:
        """Whether the answer came later than it is of full use."""
        return not self.missed and self.ended > self.due + LATE * slot_duration

    @property
    def took(self) -> float:
        """Seconds from asking to the end."""
        return self.ended - self.asked


class Pretended:
    """In each slot, until it is cancelled: duties at its start, attestation data and the head's root at its head or
    when they are due. An observer of the facade; `calls` holds what came of it, by the names of the ways.

    :param ways: asked at the same moments.
    :param indices: the validators.
    """

    def __init__(self, indices: Sequence[int]) -> None:
        self.ways: dict[str, Way] = {}
        self.calls: dict[str, list[Call]] = {}
        self._indices = indices
        self._slots_of: dict[Root, Slot] = {}
        self._heads: dict[NodeId | None, Slot] = {}
        self._news: Watch[None] = Watch(None)

    def __call__(self, signal: Signal) -> None:
        """Take note of which root is of which slot, and of whose head is where."""
        if isinstance(signal, NodeHeadSeen):
            self._slots_of[signal.root] = signal.slot
            if signal.source is HeadSource.STREAM and signal.outcome is not HeadOutcome.OPTIMISTIC:
                self._heads[signal.node_id] = signal.slot
        elif isinstance(signal, HeadDelivered):
            self._heads[None] = signal.slot
        else:
            return
        self._news.set(None)

    async def run(self, nodes: BeaconNodeFallback, ways: Mapping[str, Way]) -> None:
        """Ask slot by slot."""
        self.calls = {name: [] for name in ways}
        self.ways = dict(ways)
        async with anyio.create_task_group() as tasks:
            while True:
                slots = _slots(nodes)
                slot = Slot(slots.slot_at(nodes.clock.now()) + 1)
                await anyio.sleep(max(0.0, slots.start_of(slot) - nodes.clock.now()))
                for name in ways:
                    tasks.start_soon(self._duties, nodes, name, slot)
                    tasks.start_soon(self._signing, nodes, name, slot)

    async def _duties(self, nodes: BeaconNodeFallback, name: str, slot: Slot) -> None:
        """Clients ask in every slot, as a reorganisation may change duties: those of attesters for the next epoch."""
        slots, way = _slots(nodes), self.ways[name]
        epoch = slots.chain.epoch_of(slot)
        due = slots.attestation_due(slot)
        async with anyio.create_task_group() as tasks:
            ask: Callable[[float], Awaitable[Sourced[Any]]]
            ask = partial(way.attester_duties, Epoch(epoch + 1), self._indices)
            tasks.start_soon(self._ask, nodes, name, "attester duties", slot, due, ask)
            ask = partial(way.proposer_duties, epoch)
            tasks.start_soon(self._ask, nodes, name, "proposer duties", slot, due, ask)

    async def _signing(self, nodes: BeaconNodeFallback, name: str, slot: Slot) -> None:
        """At the head of the slot, or when it is due without one (phase 0 specification of honest validators)."""
        due, way = _slots(nodes).attestation_due(slot), self.ways[name]
        news = self._news.watcher()
        with anyio.move_on_after(due - nodes.clock.now()):
            while self._heads.get(way.node_id, -1) < slot:
                await news.wait()
        async with anyio.create_task_group() as tasks:
            ask: Callable[[float], Awaitable[Sourced[Any]]]
            ask = partial(way.attestation_data, slot)
            tasks.start_soon(self._ask, nodes, name, "attestation data", slot, due, ask, _voted_for)
            ask = partial(way.head_root, slot)
            tasks.start_soon(self._ask, nodes, name, "head root", slot, due, ask, _itself)

    async def _ask(
        self,
        nodes: BeaconNodeFallback,
        name: str,
        what: str,
        slot: Slot,
        due: float,
        ask: Callable[[float], Awaitable[Sourced[Any]]],
        root: Callable[[Any], Root] | None = None,
    ) -> None:
        asked = nodes.clock.now()
        latest = nodes.heads.latest.value
        node, problem, old = None, "", False
        try:
            answer = await ask(_slots(nodes).start_of(Slot(slot + 1)))
        except FallbackError as error:
            problem = str(error)
        else:
            node = answer.node_id
            if root is not None and latest is not None:
                old = self._slots_of.get(root(answer.value), latest.slot) < min(latest.slot, slot)
        ended = nodes.clock.now()
        self.calls[name].append(Call(what, slot, asked, due, ended, node, old, problem))


def _slots(nodes: BeaconNodeFallback) -> SlotClock:
    slots = nodes.slots
    assert slots is not None  # noqa: S101 - whoever starts this has waited for the chain
    return slots


def _voted_for(data: AttestationData) -> Root:
    return data.beacon_block_root


def _itself(root: Root) -> Root:
    return root
