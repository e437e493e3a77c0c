"""Notices which nodes were up and synced all the time: on their word alone "not live" rests (Q14a)."""

import math

from vc_fallback.base.errors import NodeError
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
from vc_fallback.node.failures import BEHIND_A_PROXY, StatusError, Unreachable
from vc_fallback.node.routes import SYNCING, Route
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

    Nobody ends the connections of a node that loses power. So where it could not be reached, failed a check, or did not
    know a kept connection any more, it counts as one that was restarted until its stream, the same one, has a head.

    While its chain is another one than that of most its heads are no sign, neither for it nor against it: it is on the
    wrong one, or a reorg is under way.
    """

    def __init__(self, desk: Desk) -> None:
        self._steadiness = Steadiness()
        self._desk = desk
        self._heard: dict[NodeId, float] = {}
        """When the last head of a stream came."""
        self._lost: dict[NodeId, float] = {}
        """When a node could not be reached."""

    def __call__(self, signal: Signal) -> None:
        """Take a signal."""
        if isinstance(signal, NodeHeadSeen):
            if signal.source is HeadSource.STREAM:
                self._announced(signal)
        elif isinstance(signal, StreamChanged):
            # A connection that was replaced may have been, because the one before it had ended.
            if signal.state in _ENDED or signal.reason is StreamReason.HARD_CLOCK:
                self._gone(signal.node_id)
            elif signal.state is StreamState.STALLED:
                self._steadiness.bad(signal.node_id)
        elif isinstance(signal, HealthChanged):
            if signal.suspect or signal.state is HealthState.UNHEALTHY or not self._is_well(signal.node_id):
                self._steadiness.bad(signal.node_id)
        elif isinstance(signal, NodeQuarantined):
            self._gone(signal.node_id)
        elif isinstance(signal, GenerationChanged):
            for node_id in (*signal.removed, *signal.changed):
                self._gone(node_id)

    def ended(self, node_id: NodeId, route: Route, at: float, error: NodeError) -> None:
        """Take how a request to a node, or a check of it, failed: it may be away, and come back as another one."""
        away = isinstance(error, Unreachable) and error.blames_node
        if away or route is SYNCING or (isinstance(error, StatusError) and error.status in BEHIND_A_PROXY):
            self._lost[node_id] = at

    def throughout(self, node_id: NodeId, begin: float, end: float) -> bool:
        """Whether a node was up and synced from one moment in loop time to another, and has not been restarted since,
        as far as we have seen it."""
        within = self._desk.part(SILENCE)
        if not self._desk.chain.follows(node_id) or self._may_be_another(node_id):
            return False
        return self._steadiness.throughout(node_id, begin, end, within=within)

    def _may_be_another(self, node_id: NodeId) -> bool:
        """Whether a node was away, and has not been heard since on the stream that it had before."""
        heard = self._heard.get(node_id, -math.inf)
        return heard <= max(self._lost.get(node_id, -math.inf), self._desk.pool.get(node_id).http.reset_at)

    def _gone(self, node_id: NodeId) -> None:
        self._steadiness.gone(node_id)
        self._heard.pop(node_id, None)
        self._lost.pop(node_id, None)

    def _announced(self, head: NodeHeadSeen) -> None:
        slots = self._desk.chain.slots
        self._heard[head.node_id] = max(head.received, self._heard.get(head.node_id, head.received))
        if slots is None:
            return
        if head.slot < slots.slot_at(head.received) - CURRENT or not self._is_well(head.node_id):
            self._steadiness.bad(head.node_id)
        elif not self._desk.book.divided(head.node_id):
            self._steadiness.good(head.node_id, head.received, within=self._desk.part(SILENCE))

    def _is_well(self, node_id: NodeId) -> bool:
        place = self._desk.book.ranking.places.get(node_id)
        if place is None or not place.usable or not self._desk.chain.follows(node_id):
            return False
        facts = place.facts
        return not (facts.suspect or facts.inconsistent or facts.early)
