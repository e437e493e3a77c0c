"""The turns of what nodes are told ahead of duties: apart from those of signed messages, and narrow (Q2, Q5, Q14)."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from vc_fallback.base.types import NodeId
from vc_fallback.routing.preparations import Preparation
from vc_fallback.wire.keepalive import Slots


class Bounds(Protocol):
    """How many sends may be under way to a node for which nobody waits."""

    stragglers: Counter[NodeId]
    most_stragglers: int

    def has_room(self, node_id: NodeId) -> bool:
        """Whether another one may wait for its turn."""


class Ahead:
    """Of one preparation, such as registrations, one request at a time goes to a node, in the order of the calls: so
    the newest comes last, and one that takes long, as relays do, holds up no other.

    :param stragglers: how many requests of a preparation may be under way to a node; what is too much is told later.
    :param at_once: how many of all may be written to a node at once.
    """

    def __init__(self, *, stragglers: int = 64, at_once: int = 4) -> None:
        self._bounds = {preparation: _Of(stragglers) for preparation in Preparation}
        self._at_once = at_once
        self._lanes: dict[NodeId, _Lane] = {}

    def bounds(self, preparation: Preparation) -> Bounds:
        """Return what bounds the requests of a preparation."""
        return self._bounds[preparation]

    @property
    def under_way(self) -> int:
        """How many requests are, to all nodes, those that wait for their turn included."""
        return sum(bounds.stragglers.total() for bounds in self._bounds.values())

    @asynccontextmanager
    async def turn(self, node_id: NodeId, preparation: Preparation) -> AsyncIterator[None]:
        """Wait for the turn of a request, and hold it while the body runs."""
        lane = self._lanes.get(node_id)
        if lane is None:
            lane = self._lanes[node_id] = _Lane(self._at_once)
        lane.users += 1
        try:
            async with _taken(lane.of.setdefault(preparation, Slots(1))), _taken(lane.all):
                yield
        finally:
            # Nodes come and go: those that nobody tells anything are forgotten.
            lane.users -= 1
            if not lane.users:
                del self._lanes[node_id]


class _Of:
    def __init__(self, most: int) -> None:
        self.most_stragglers = most
        self.stragglers: Counter[NodeId] = Counter()

    def has_room(self, node_id: NodeId) -> bool:
        return self.stragglers[node_id] < self.most_stragglers


class _Lane:
    __slots__ = ("all", "of", "users")

    def __init__(self, at_once: int) -> None:
        self.all = Slots(at_once)
        self.of: dict[Preparation, Slots] = {}
        self.users = 0


@asynccontextmanager
async def _taken(slots: Slots) -> AsyncIterator[None]:
    if not slots.take_nowait():
        await slots.take()
    try:
        yield
    finally:
        slots.give()
