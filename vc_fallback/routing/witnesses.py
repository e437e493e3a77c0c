"""Notices which nodes were up and synced all the time: on their word alone "not live" rests (Q14a)."""

from vc_fallback.base.health import HealthState
from vc_fallback.base.health_signals import HealthChanged
from vc_fallback.base.signals import (
    GenerationChanged,
    NodeHeadSeen,
    NodeQuarantined,
    Signal,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import HeadSource, NodeId
from vc_fallback.decide.steadiness import Steadiness
from vc_fallback.routing.desk import Desk

SILENCE = 4.5
"""Slots from one head of a node to the next that are no break: three may have been missed in a row. Longer, and nobody
can tell a chain without blocks from a node without peers, who has seen nobody."""

CURRENT = 1
"""Slots by which a head may be behind the clock, and its node be synced (H6)."""

_ENDED = (StreamState.BACKOFF, StreamState.STOPPED, StreamState.CONNECTING)


class Witnesses:
    """An observer. That a node is up and synced is seen by its own heads as its stream announces them, in time.

    A restart is seen by the end of the head stream alone: it may be over before the next check of the node. So a node
    without a head stream is never a witness, and neither is one whose stream ended, for whatever reason, until it has
    been followed throughout another epoch.
    """

    def __init__(self, desk: Desk) -> None:
        self._steadiness = Steadiness()
        self._desk = desk

    def __call__(self, signal: Signal) -> None:
        """Take a signal."""
        if isinstance(signal, NodeHeadSeen):
            if signal.source is HeadSource.STREAM:
                self._announced(signal)
        elif isinstance(signal, StreamChanged):
            # A connection that was replaced may have been, because the one before it had ended.
            if signal.state in _ENDED or signal.reason is StreamReason.HARD_CLOCK:
                self._steadiness.gone(signal.node_id)
            elif signal.state is StreamState.STALLED:
                self._steadiness.bad(signal.node_id)
        elif isinstance(signal, HealthChanged):
            if signal.suspect or signal.state is HealthState.UNHEALTHY or not self._is_well(signal.node_id):
                self._steadiness.bad(signal.node_id)
        elif isinstance(signal, NodeQuarantined):
            self._steadiness.gone(signal.node_id)
        elif isinstance(signal, GenerationChanged):
            for node_id in (*signal.removed, *signal.changed):
                self._steadiness.gone(node_id)

    def throughout(self, node_id: NodeId, begin: float, end: float) -> bool:
        """Whether a node was up and synced from one moment in loop time to another, and has not been restarted since,
        as far as we have seen it."""
        within = self._desk.part(SILENCE)
        return self._desk.chain.follows(node_id) and self._steadiness.throughout(node_id, begin, end, within=within)

    def _announced(self, head: NodeHeadSeen) -> None:
        slots = self._desk.chain.slots
        if slots is None:
            return
        if head.slot < slots.slot_at(head.received) - CURRENT or not self._is_well(head.node_id):
            self._steadiness.bad(head.node_id)
        else:
            self._steadiness.good(head.node_id, head.received, within=self._desk.part(SILENCE))

    def _is_well(self, node_id: NodeId) -> bool:
        place = self._desk.book.ranking.places.get(node_id)
        return place is not None and place.usable and not place.facts.suspect and self._desk.chain.follows(node_id)
