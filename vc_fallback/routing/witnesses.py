"""Notices which nodes were up and synced all the time: on their word alone "not live" rests (Q14a)."""

from vc_fallback.base.health import HealthState
from vc_fallback.base.health_signals import HealthChanged
from vc_fallback.base.signals import (
    GenerationChanged,
    HeadDelivered,
    NodeHeadSeen,
    NodeQuarantined,
    Signal,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import NodeId
from vc_fallback.decide.steadiness import Steadiness
from vc_fallback.routing.desk import Desk

_ENDED = (StreamState.BACKOFF, StreamState.STOPPED, StreamState.CONNECTING)


class Witnesses:
    """An observer.

    A restart is seen by its end of the head stream alone: it may be over before the next check of the node. So a node
    without a head stream is never a witness, and neither is one whose stream ended, for whatever reason, until it has
    been followed throughout another epoch.
    """

    def __init__(self, desk: Desk) -> None:
        self._steadiness = Steadiness()
        self._desk = desk

    def __call__(self, signal: Signal) -> None:
        """Take a signal."""
        if isinstance(signal, StreamChanged):
            # A connection that was replaced may have been, because the one before it had ended.
            if signal.state in _ENDED or signal.reason is StreamReason.HARD_CLOCK:
                self._steadiness.gone(signal.node_id)
            self._look(signal.node_id, signal.at)
        elif isinstance(signal, HealthChanged):
            if signal.suspect or signal.state is HealthState.UNHEALTHY:
                self._steadiness.bad(signal.node_id, signal.at)
            self._look(signal.node_id, signal.at)
        elif isinstance(signal, NodeHeadSeen):
            self._look(signal.node_id, signal.at)
        elif isinstance(signal, HeadDelivered):
            for node_id in self._desk.candidates.current.members:
                self._look(node_id, signal.at)
        elif isinstance(signal, NodeQuarantined):
            self._steadiness.gone(signal.node_id)
        elif isinstance(signal, GenerationChanged):
            for node_id in (*signal.removed, *signal.changed):
                self._steadiness.gone(node_id)

    def throughout(self, node_id: NodeId, begin: float, end: float) -> bool:
        """Whether a node was up and synced from one moment in loop time to another, and has not been restarted since,
        as far as we have seen it."""
        return self._desk.chain.follows(node_id) and self._steadiness.throughout(node_id, begin, end)

    def _look(self, node_id: NodeId, at: float) -> None:
        place = self._desk.book.ranking.places.get(node_id)
        if place is not None and place.usable and not place.facts.suspect and self._desk.chain.follows(node_id):
            self._steadiness.good(node_id, at)
        else:
            self._steadiness.bad(node_id, at)
