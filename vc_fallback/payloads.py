"""Waiting for the payload of a slot's block (Gloas): the head's own status says it is there, or an event does."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import anyio

from vc_fallback.base.errors import SubscriptionClosed
from vc_fallback.base.types import NodeId, PayloadStatus, Provenance, Root, Slot
from vc_fallback.base.watch import Watch, WatchClosed
from vc_fallback.chain_view import ChainOfHeads
from vc_fallback.decide.delivery import Delivered
from vc_fallback.node.values.events import PayloadAvailableEvent
from vc_fallback.topics.event import TopicEvent, TopicUnavailable
from vc_fallback.topics.subscription import TopicSubscription

AVAILABLE = "execution_payload_available"
"""The topic."""

REMEMBERED = 64
"""Slots for which payloads are remembered: two epochs of the mainnet preset."""

A_SLOT = 16
"""Payloads of a slot that one node may tell of: it is to crowd out nobody's (rule 4)."""


@dataclass(frozen=True, slots=True)
class SlotPayload:
    """The payload of a slot's block is there to be attested to.

    :param root: of the block, which was delivered last as the head of that slot.
    :param source: `head` where the head's own status says so (`head_v2`), `event` where a node's
        `execution_payload_available` does.
    :param provenance: who said so first, of those that are followed, and when, in loop time.
    """

    slot: Slot
    root: Root
    source: Literal["head", "event"]
    provenance: Provenance

    @property
    def node_id(self) -> NodeId:
        """The node that said so."""
        return self.provenance.node_id


class Payloads:
    """Looks at delivered heads, and at the events of the topic while someone waits for them.

    :param now: gives the loop time.
    :param subscribe: subscribes to the topic.
    """

    def __init__(
        self, now: Callable[[], float], chain: ChainOfHeads, subscribe: Callable[[], TopicSubscription]
    ) -> None:
        self._now = now
        self._chain = chain
        self._subscribe = subscribe
        self._there: dict[Slot, dict[Root, Provenance]] = {}
        self._expecting: set[TopicSubscription] = set()

    @asynccontextmanager
    async def expect(self) -> AsyncIterator[None]:
        """Follow the topic over the block."""
        async with self._subscribe() as events:
            self._expecting.add(events)
            try:
                yield
            finally:
                self._expecting.discard(events)

    async def wait(self, slot: Slot, latest: Watch[Delivered | None], deadline: float | None) -> SlotPayload | None:
        """Wait for the payload of a slot's block; see :meth:`BeaconNodeFallback.wait_for_payload`."""
        if deadline is None:
            slots = self._chain.slots
            if slots is None:
                raise ValueError("the chain is not known yet: give a deadline")
            deadline = slots.payload_attestation_due(slot)
        found = self._look(slot)
        if found is not None or deadline <= self._now():
            return found
        async with self._subscribe() as events:
            with anyio.move_on_after(deadline - self._now()):
                while found is None:
                    await self._news(events, latest)
                    found = self._look(slot)
        return found

    async def _news(self, events: TopicSubscription, latest: Watch[Delivered | None]) -> None:
        """Wait for an event or another head. A read that is cancelled loses nothing."""
        with anyio.CancelScope() as reading:
            unlisten = latest.listen(reading.cancel)
            try:
                self._take(await events.receive())
            except TopicUnavailable:
                # The head's own status may say it.
                return
            except SubscriptionClosed:
                raise WatchClosed from None
            finally:
                unlisten()

    def _look(self, slot: Slot) -> SlotPayload | None:
        slots = self._chain.slots
        if slots is not None and slots.chain.payload_apart(slot) is False:
            raise ValueError(f"slot {slot} is before Gloas: its block has its payload in it")
        for events in self._expecting:
            self._drain(events)
        block = self._chain.head_up_to(slot)
        if block is None or block.slot != slot:
            return None
        head = block.head
        if head.payload_status is PayloadStatus.FULL:
            return SlotPayload(slot, head.root, "head", Provenance(head.node_id, head.generation, head.received))
        told = self._there.get(slot, {}).get(head.root)
        return None if told is None else SlotPayload(slot, head.root, "event", told)

    def _drain(self, events: TopicSubscription) -> None:
        while True:
            try:
                event = events.receive_nowait()
            except TopicUnavailable:
                continue
            if event is None:
                return
            self._take(event)

    def _take(self, event: TopicEvent) -> None:
        value = event.value
        slots = self._chain.slots
        if not isinstance(value, PayloadAvailableEvent) or slots is None:
            return
        present = slots.slot_at(self._now())
        if not present - REMEMBERED < value.slot <= present + 1:
            return
        told = self._there.setdefault(value.slot, {})
        if sum(source.node_id == event.node_id for source in told.values()) < A_SLOT:
            told.setdefault(Root(value.block_root), event.provenance)
        for old in [slot for slot in self._there if slot <= present - REMEMBERED]:
            del self._there[old]
