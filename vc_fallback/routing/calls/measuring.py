"""Measures what a node gives for a slot against the heads that were announced (Q8)."""

# Functions are made here at every call: their annotations are not to be evaluated each time.
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, Protocol, TypeVar

import anyio

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Role, Root, Slot, Sourced, Tier, root_hex
from vc_fallback.decide.delivery import Delivered
from vc_fallback.node.client import BeaconNode
from vc_fallback.routing.hedging import Hedging
from vc_fallback.routing.patience import Found, Patience
from vc_fallback.routing.requests import Ask

T = TypeVar("T")


class Announced(NamedTuple):
    """The head that what is given for a slot is measured against.

    :param node_id: the node that announced it.
    :param voters: those that have shown it.
    """

    slot: Slot
    root: Root
    node_id: NodeId
    voters: Mapping[NodeId, None]


@dataclass(frozen=True, slots=True)
class HeadAware(Sourced[T], Generic[T]):
    """A value that was measured against the latest head.

    :param stale: in which respect it is older than what was announced; empty where it is not (Q8).
    """

    stale: str = ""


class Waited(Protocol):
    """What waiting for the head of a slot gives: :class:`~vc_fallback.SlotHead`."""

    @property
    def head(self) -> Delivered:
        """The head."""


Head = Delivered | Waited
"""A head as the caller has it."""


class Measuring(Hedging):
    """What calls have in common whose answers depend on the head."""

    def _announced(self, slot: Slot, head: Head | None) -> Announced | None:
        """Return the head that an answer for a slot is measured against now, `None` where nobody has announced one.

        That is the latest delivered one: a head that the caller was given before holds only until the next. One of a
        later slot says nothing of this one; then the last up to it counts.
        """
        chain = self._open().chain
        latest = chain.latest_head()
        if latest is not None and latest.slot > slot:
            latest = chain.head_up_to(slot)
        if head is not None and not isinstance(head, Delivered):
            head = head.head
        if head is not None and head.slot <= slot and _holds(head, latest):
            latest = head
        return None if latest is None else Announced(latest.slot, latest.root, latest.node_id, latest.voters)

    def _asked_first(self, announced: Announced | None) -> NodeId | None:
        """Return the node to be asked first: that which announced the head, or else one that has shown it since.

        A node that is not usable, or suspect, is not asked first for having announced a head; and neither is a fallback
        that was merely ahead, where a primary has the head by now (scenario 43).
        """
        if announced is None:
            return None
        desk = self._open()
        plan = desk.planner.plan(Role.ATTESTATION)
        places = plan.ranking.places
        if announced.node_id in plan.nodes:
            own_place = places[announced.node_id]
            facts = own_place.facts
            if own_place.usable and facts.tier is Tier.PRIMARY and not facts.suspect:
                return announced.node_id
        heads = {announced.node_id}
        for node_id in announced.voters:
            own = desk.chain.head_of(node_id)
            if own is not None and own.root == announced.root:
                heads.add(node_id)
        showing = [node_id for node_id in plan.usable(heads) if not places[node_id].facts.suspect]
        primaries = [node_id for node_id in showing if places[node_id].facts.tier is Tier.PRIMARY]
        showing = primaries or showing
        return announced.node_id if announced.node_id in showing else next(iter(showing), None)

    def _older_now(self, root: Root, slot: Slot, head: Head | None) -> str:
        """Say in which respect a block is older than the head that is announced now."""
        if head is None:
            # Nearly always it is that head: then nothing is to be found out.
            latest = self._open().chain.latest_head()
            if latest is not None and latest.root == root and latest.slot <= slot:
                return ""
        return self._older(root, slot, self._announced(slot, head))

    def _older(self, root: Root, slot: Slot, announced: Announced | None) -> str:
        """Say in which respect a block is older than the announced head; empty where it is not, as far as is known.

        A block that nobody has shown may be newer: at the slot itself it cannot be, nor is it likely beside a head of
        the slot before. But where what was announced is older than that, as the streams may all be dead, it is.
        """
        if announced is None or root == announced.root:
            return ""
        known = self._open().chain.slot_of(root)
        newer = announced.slot + 1 < slot if known is None else announced.slot < known <= slot
        if newer:
            return ""
        return f"block {root_hex(root)[:10]}…, not the head {root_hex(announced.root)[:10]}… of slot {announced.slot}"

    def _once_more(
        self,
        ask: Ask[T],
        older: Callable[[Sourced[T]], str],
        patience: Patience[T],
        usable: Callable[[Sourced[T]], bool],
    ) -> Ask[T]:
        """Ask a node once more, a moment later, where its answer is older than what was announced (Q8).

        :param usable: whether an answer can be taken, old or not.
        """

        async def asking(node: BeaconNode, timeout: float) -> Sourced[T]:
            desk = self._open()
            wait = desk.settings.refetch_after
            began = desk.clock.now()
            answer = await ask(node, timeout)
            words = older(answer)
            if not words or not usable(answer):
                return answer
            patience.hold(answer, words)
            left = timeout - (desk.clock.now() - began) - wait
            if left <= 0:
                return answer
            await anyio.sleep(wait)
            if not older(answer):
                # It was no older: its node was sooner with it than with the event.
                return answer
            try:
                again = await ask(node, left)
            except NodeError:
                return answer
            attempts = answer.provenance.attempts + again.provenance.attempts
            return Sourced(again.value, replace(again.provenance, attempts=attempts))

        return asking

    def _patience(self, root: Callable[[T], Root]) -> Patience[T]:
        """Return a patience as long as another node is waited for; of old answers that with the newest block is taken.

        :param root: the block of an answer.
        """
        desk = self._open()

        def worth(found: Found[T]) -> float:
            slot = desk.chain.slot_of(root(found.answer.value))
            return -1.0 if slot is None else float(slot)

        wait = desk.settings.refetch_after + desk.part(desk.settings.attestation_next)
        return Patience(desk.clock, wait, worth, desk.runner.scope())


def _holds(head: Delivered, latest: Delivered | None) -> bool:
    """Whether a head of the caller's is the latest one that was delivered here, or newer."""
    if latest is None or head.root == latest.root:
        return True
    return head.slot >= latest.slot and head.head.received > latest.head.received
