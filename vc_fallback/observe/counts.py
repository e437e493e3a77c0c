"""Counts for the summary at the end of a run: what was delivered, how duties moved, how each node's stream fared."""

from dataclasses import dataclass

from vc_fallback.base.health_signals import DutiesMoved
from vc_fallback.base.signals import (
    GenerationChanged,
    HeadDelivered,
    HeadOutcome,
    NodeHeadSeen,
    Signal,
    Started,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import NodeId, Slot

DEPARTED = 256
"""So many nodes that left the list are still counted; older ones are forgotten, so that memory stays bounded."""

_REFUSED = frozenset({HeadOutcome.FUTURE, HeadOutcome.WRONG_CHAIN})


@dataclass(slots=True)
class NodeCounts:
    """One node's counts.

    `heads`: heads it showed, announced or polled. `reconnects`: how often it answered with an event stream again.
    `stalls`: how often its stream stalled. `last_slot`: slot of its latest head that was not refused (H13).
    """

    heads: int = 0
    reconnects: int = 0
    stalls: int = 0
    last_slot: Slot | None = None


@dataclass(slots=True)
class _Stream:
    answered: bool = False
    stalled: bool = False


class Counts:
    """An observer that counts. Nodes stand in the order of the list, those that left it included."""

    __slots__ = ("_departed", "_streams", "delivered", "failbacks", "failovers", "nodes")

    def __init__(self) -> None:
        self.delivered = 0
        self.failovers = 0
        self.failbacks = 0
        self.nodes: dict[NodeId, NodeCounts] = {}
        self._streams: dict[NodeId, _Stream] = {}
        self._departed: dict[NodeId, None] = {}

    def __call__(self, signal: Signal) -> None:
        """Count a signal."""
        match signal:
            case HeadDelivered():
                self.delivered += 1
            case NodeHeadSeen():
                counts = self._node(signal.node_id)
                counts.heads += 1
                if signal.outcome not in _REFUSED:
                    counts.last_slot = signal.slot
            case StreamChanged():
                self._stream(signal)
            case Started():
                for node_id, _ in signal.nodes:
                    self._node(node_id)
            case GenerationChanged():
                self._list(signal)
            case DutiesMoved():
                self.failovers += signal.kind == "failover"
                self.failbacks += signal.kind == "failback"

    def _stream(self, signal: StreamChanged) -> None:
        if signal.state is StreamState.STOPPED and signal.node_id not in self.nodes:
            # The end of a stream is told after its node left the list, and may by now be forgotten.
            return
        counts = self._node(signal.node_id)
        stream = self._streams.setdefault(signal.node_id, _Stream())
        # A connection that replaces a standing one (H5) is told of when it has its answer, or before.
        replaced = signal.reason is StreamReason.HARD_CLOCK and signal.state in (StreamState.OPEN, StreamState.FRESH)
        if replaced or signal.reason is StreamReason.RESPONSE:
            counts.reconnects += stream.answered
            stream.answered = True
        # A stall lasts until a new current head (H6), over any number of reconnects.
        if signal.state is StreamState.STALLED and not stream.stalled:
            counts.stalls += 1
            stream.stalled = True
        elif signal.state in (StreamState.FRESH, StreamState.STOPPED):
            stream.stalled = False

    def _list(self, signal: GenerationChanged) -> None:
        for node_id in signal.added:
            self._departed.pop(node_id, None)
            self._node(node_id)
        for node_id in signal.removed:
            self._departed[node_id] = None
        while len(self._departed) > DEPARTED:
            forgotten = next(iter(self._departed))
            del self._departed[forgotten]
            self.nodes.pop(forgotten, None)
            self._streams.pop(forgotten, None)

    def _node(self, node_id: NodeId) -> NodeCounts:
        return self.nodes.setdefault(node_id, NodeCounts())
