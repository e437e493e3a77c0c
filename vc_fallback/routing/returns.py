"""Notices who was away and has come back: such a node is told again what it forgot (Q14)."""

from collections.abc import Awaitable, Callable
from functools import partial

from vc_fallback.base.health import HealthState
from vc_fallback.base.health_signals import HealthChanged
from vc_fallback.base.signals import (
    GenerationChanged,
    HeadDelivered,
    NodeHeadSeen,
    NodeQuarantined,
    Signal,
    StreamChanged,
    StreamState,
)
from vc_fallback.base.types import NodeId
from vc_fallback.routing.desk import Desk

TellAgain = Callable[[NodeId], Awaitable[bool]]
"""Tells a node all that is kept; returns whether it took it."""


class Returns:
    """An observer. A node was away when its stream ended, it was suspect, unhealthy or quarantined, or it is new."""

    def __init__(self, desk: Desk, tell_again: TellAgain) -> None:
        self._desk = desk
        self._tell_again = tell_again
        self._untold: set[NodeId] = set()
        """Nodes that may have forgotten what they were told."""
        self._being_told: set[NodeId] = set()

    def __call__(self, signal: Signal) -> None:
        """Take a signal."""
        if isinstance(signal, StreamChanged):
            if signal.state in (StreamState.BACKOFF, StreamState.STOPPED):
                self.not_told(signal.node_id)
            self._look(signal.node_id, signal.at)
        elif isinstance(signal, HealthChanged):
            if signal.suspect or signal.state is HealthState.UNHEALTHY:
                self.not_told(signal.node_id)
            self._look(signal.node_id, signal.at)
        elif isinstance(signal, NodeHeadSeen):
            self._look(signal.node_id, signal.at)
        elif isinstance(signal, HeadDelivered):
            for node_id in self._desk.candidates.current.members:
                self._look(node_id, signal.at)
        elif isinstance(signal, NodeQuarantined):
            self.not_told(signal.node_id)
        elif isinstance(signal, GenerationChanged):
            for node_id in (*signal.removed, *signal.changed):
                self._untold.discard(node_id)
            self._untold.update((*signal.added, *signal.changed))

    def not_told(self, node_id: NodeId) -> None:
        """Note that a node may not have heard what all were told: it is told again as soon as it can hear."""
        if node_id in self._desk.candidates.current:
            self._untold.add(node_id)

    def _look(self, node_id: NodeId, at: float) -> None:
        """See whether a node is back."""
        if node_id not in self._untold or node_id in self._being_told or not self._desk.runner.open:
            return
        place = self._desk.book.ranking.places.get(node_id)
        answers = place is not None and not place.facts.suspect and place.facts.answers
        if self._desk.cooldowns.left(node_id, at) > 0:
            return
        if answers and self._desk.chain.streams(node_id) is not False:
            self._being_told.add(node_id)
            self._untold.discard(node_id)
            self._desk.runner.start(partial(self._tell, node_id), on_end=lambda _: self._being_told.discard(node_id))

    async def _tell(self, node_id: NodeId) -> None:
        if not await self._tell_again(node_id):
            self.not_told(node_id)
