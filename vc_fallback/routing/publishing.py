"""How what is signed is sent: to all nodes at once, in turn, or through the one that made it (Q5, Q9)."""

# Functions are made here at every call: their annotations are not to be evaluated each time.
from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from vc_fallback.base.types import NodeId, Role, Slot, Sourced
from vc_fallback.node import routes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import Closed
from vc_fallback.node.routes import Route
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.broadcast import broadcast
from vc_fallback.routing.broadcast_result import BroadcastResult, NotPublished
from vc_fallback.routing.delivery import Delivery
from vc_fallback.routing.joining import Joining
from vc_fallback.routing.outcomes import NoCandidates
from vc_fallback.routing.sends import Begun, Later, Send
from vc_fallback.routing.turns import Turns, producer_not_reached
from vc_fallback.settings import Topic

_URGENT = (routes.PUBLISH_BLOCK, routes.PUBLISH_BLINDED_BLOCK, routes.PUBLISH_ENVELOPE)
"""There is one of them in a slot, and nothing is worth as much."""

Publish = Callable[[BeaconNode, float], Awaitable[Sourced[Publication]] | Awaitable[Sourced[None]]]
"""Calls a publishing method of one node, within so many seconds."""


class Ends(NamedTuple):
    """When the caller gets an error, and when sends are given up, in loop time."""

    caller: float
    bound: float


class Publishing(Turns):
    """What calls have in common that publish."""

    def _block_end(self, deadline: float | None) -> Ends:
        return self._ends(self._end(self._open().settings.block_end, None, None), deadline)

    def _slot_end(self, deadline: float | None) -> Ends:
        """The end of the present slot; in its last part that of the next: nothing is sent for no time at all."""
        desk = self._open()
        slots, now = desk.chain.slots, desk.clock.now()
        if slots is None:
            return self._ends(now + desk.slot_duration, deadline)
        end = slots.start_of(Slot(slots.slot_at(now) + 1))
        return self._ends(end if end - now >= slots.duration / 8 else end + slots.duration, deadline)

    def _ends(self, own: float, deadline: float | None) -> Ends:
        # Who wants to know sooner does not want it to be lost: what is on its way may still arrive (Q2).
        return Ends(own, own) if deadline is None else Ends(deadline, max(deadline, own))

    def _send(self, route: Route, publish: Publish, bound: float) -> Send:
        """Return what sends to one node; the client says when it begins to write (Q5)."""
        what = route.what

        async def send(node_id: NodeId, begun: Begun) -> Sourced[Any]:
            async def telling(node: BeaconNode, timeout: float) -> Sourced[Any]:
                return await publish(node.telling(begun), timeout)

            return await self._ask(telling, what, bound, node_id)

        return send

    async def _publish(
        self, route: Route, topic: Topic | None, publish: Publish, items: int, ends: Ends
    ) -> BroadcastResult:
        """Send to all nodes, or to one after the other where the configuration wants that of the topic."""
        desk, what = self._open(), route.what
        one_by_one = topic is not None and topic not in desk.settings.broadcast
        joining = Joining(desk, None)
        await self._plan(what, None, ends.caller)
        earlier: Mapping[NodeId, Delivery] = {}
        while True:
            nodes, later = self._in_turn(what, Role.SUBMISSION, one_by_one=one_by_one, besides=_had_it(earlier))
            try:
                return await self._broadcast(route, publish, nodes, later, items, ends, earlier)
            except NotPublished as error:
                earlier = error.result.deliveries
                had_it = _had_it(earlier)
                # Where some have left the list, their place may be taken by others.
                if len(had_it) == len(earlier) or await joining.others(had_it, ends.caller) is None:
                    raise

    async def _publish_through(
        self, route: Route, publish: Publish, producer: NodeId, silence: float | None, deadline: float | None
    ) -> BroadcastResult:
        """Send through one node; to the others where that cannot be reached, or is silent for `silence` seconds.

        :param silence: `None`: nobody else can do anything with it.
        """
        desk, what, ends = self._open(), route.what, self._block_end(deadline)
        listed = producer in desk.candidates.current
        if silence is None:
            if not listed:
                raise NoCandidates(what, f"only {producer} can take it, which made the block, and it has left the list")
            return await self._broadcast(route, publish, [producer], [], 1, ends)
        if not listed:
            return await self._publish(route, None, publish, 1, ends)
        others: Sequence[NodeId] = ()
        last: list[Later] = []
        with suppress(NoCandidates):
            others, last = self._in_turn(what, Role.SUBMISSION, besides=[producer])
        later = [Later(others, producer_not_reached, silence), *last]
        return await self._broadcast(route, publish, [producer], later, 1, ends)

    async def _broadcast(
        self,
        route: Route,
        publish: Publish,
        nodes: Sequence[NodeId],
        later: Sequence[Later],
        items: int,
        ends: Ends,
        earlier: Mapping[NodeId, Delivery] = MappingProxyType({}),
    ) -> BroadcastResult:
        desk = self._open()
        return await broadcast(
            self._send(route, publish, ends.bound),
            nodes,
            end=ends.caller,
            bound=ends.bound,
            items=items,
            later=later,
            urgent=route in _URGENT,
            earlier=earlier,
            runner=desk.runner,
            on_settled=desk.publishes.settled,
            what=route.what,
        )


def _had_it(deliveries: Mapping[NodeId, Delivery]) -> list[NodeId]:
    """Return the nodes that were sent it, but for those that left the list, or are reached in another way now."""
    return [node_id for node_id, delivery in deliveries.items() if not isinstance(delivery.error, Closed)]
