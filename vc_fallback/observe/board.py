"""What the table shows, as a plain object: fed with signals, asked for its state at a moment (rule 13)."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from vc_fallback.base.health import HealthState
from vc_fallback.base.health_signals import (
    AllUnhealthy,
    BranchesDiffer,
    ClockDoubted,
    DutiesMoved,
    FinalityDiffers,
    HealthChanged,
)
from vc_fallback.base.signals import (
    GateChanged,
    GenerationChanged,
    HeadDelivered,
    HeadHeld,
    HeadOutcome,
    NodeHeadSeen,
    NodeQuarantined,
    Signal,
    Started,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import HeadSource, NodeId, Slot, Tier
from vc_fallback.chain import SlotClock
from vc_fallback.observe.counts import Counts
from vc_fallback.observe.narration import Narration, in_words, utc
from vc_fallback.observe.view import DeliveredRow, DutiesRow, Event, Row, View, age
from vc_fallback.observe.vitals import Vitals
from vc_fallback.observe.words import shown

EVENTS: Final = 8
"""Events that are kept."""

_REFUSED = frozenset({HeadOutcome.FUTURE, HeadOutcome.WRONG_CHAIN})
_LOST = frozenset({StreamState.STALLED, StreamState.BACKOFF})
_TROUBLE = frozenset({StreamReason.START_GRACE_OVER, StreamReason.TOPICS_REDUCED})


@dataclass(slots=True)
class _Node:
    state: StreamState | None = None
    fresh: bool | None = None
    mismatch: str = ""
    reason: str = ""
    retry_at: float | None = None
    lost: str = ""
    lost_at: float = 0.0
    head: NodeHeadSeen | None = None


class Board:
    """An observer that keeps what the table shows.

    :param unix: turns loop time into Unix time in seconds (:meth:`Clock.unix`). Times are shown in UTC.
    """

    def __init__(self, unix: Callable[[float], float]) -> None:
        self.counts = Counts()
        self._unix = unix
        self._narration = Narration(unix)
        self._nodes: dict[NodeId, _Node] = {}
        self._generation = 1
        self._delivered: HeadDelivered | None = None
        self._duties: DutiesMoved | None = None
        self._all_unhealthy = False
        self._gate: GateChanged | None = None
        self._held = 0
        self._events: deque[Event] = deque(maxlen=EVENTS)

    def __call__(self, signal: Signal) -> None:
        """Take a signal."""
        self.counts(signal)
        match signal:
            case Started():
                for node_id, _ in signal.nodes:
                    self._nodes.setdefault(node_id, _Node())
            case GenerationChanged():
                self._list(signal)
            case NodeHeadSeen():
                node = self._nodes.get(signal.node_id)
                if node is not None and signal.outcome not in _REFUSED:
                    node.head = signal
            case StreamChanged():
                self._stream(signal)
            case NodeQuarantined():
                node = self._nodes.get(signal.node_id)
                if node is not None:
                    node.mismatch = signal.mismatch
            case HeadDelivered():
                self._delivered = signal
            case HeadHeld():
                self._held += 1
            case GateChanged():
                self._gate, self._held = signal, 0
            case DutiesMoved():
                self._duties = signal
            case AllUnhealthy():
                self._all_unhealthy = signal.begins
        self._tell(signal)

    def note(self, at: float, kind: str, text: str, *, bad: bool = False) -> None:
        """Add an event that is no signal; `at` is loop time."""
        self._events.append(Event(utc(self._unix(at), "%H:%M:%S"), kind, text, bad))

    def view(
        self,
        now: float,
        slots: SlotClock | None,
        listed: Iterable[tuple[NodeId, Tier]],
        health: Mapping[NodeId, Vitals] = MappingProxyType({}),
    ) -> View:
        """Return what the table shows at a moment in loop time.

        :param slots: the slots of the chain, `None` until it is known (I1).
        :param listed: the nodes of the present list with their tiers, in its order.
        :param health: how they are at this moment.
        """
        tiers = dict(listed)
        best = max((h.slot for n in tiers if (h := self._head_that_counts(n)) is not None), default=None)
        slot = epoch = into = None
        if slots is not None:
            slot, into = slots.slot_at(now), slots.into_slot(now, slots.slot_at(now))
            epoch = None if slots.before_genesis(now) else slots.epoch_at(now)
        return View(
            slot=slot,
            epoch=epoch,
            into_slot=into,
            generation=self._generation,
            delivered=self._delivered_row(now),
            duties=self._duties_row(now),
            gate=self._gate_text() if Tier.FALLBACK in tiers.values() else "",
            rows=tuple(
                self._row(node_id, tier, health.get(node_id, Vitals()), now, slots, best)
                for node_id, tier in tiers.items()
            ),
            events=tuple(self._events),
        )

    def _list(self, signal: GenerationChanged) -> None:
        self._generation = signal.generation
        for node_id in signal.removed:
            self._nodes.pop(node_id, None)
        for node_id in (*signal.added, *signal.changed):
            self._nodes[node_id] = _Node()

    def _stream(self, signal: StreamChanged) -> None:
        node = self._nodes.get(signal.node_id)
        # The end of a stream is told after its node left the list, or after another one took its place.
        if node is None or (signal.state is StreamState.STOPPED and node.state is None):
            return
        waits_on = signal.state is node.state is StreamState.BACKOFF and signal.retry_in is None
        node.state, node.fresh = signal.state, signal.subscription_healthy
        if waits_on:
            # Only the verdict changed, with time.
            return
        detail = shown(signal.detail)
        node.reason = in_words(signal.reason) + (f" ({detail})" if detail else "")
        node.retry_at = None if signal.retry_in is None else signal.at + signal.retry_in
        if _is_bad(signal):
            node.lost, node.lost_at = node.reason, signal.at

    def _tell(self, signal: Signal) -> None:
        """Add an event, but for what the table shows anyhow: each new head in its slot."""
        if isinstance(signal, HeadDelivered) and not (signal.late or signal.reorg):
            return
        told = self._narration(signal)
        if told is not None:
            self.note(signal.at, *told, bad=_is_bad(signal))

    def _head_that_counts(self, node_id: NodeId) -> NodeHeadSeen | None:
        node = self._nodes.get(node_id)
        return None if node is None or node.mismatch else node.head

    def _delivered_row(self, now: float) -> DeliveredRow | None:
        head = self._delivered
        if head is None:
            return None
        shown_by = [node.head for node in self._nodes.values() if node.head is not None and not node.mismatch]
        votes = sum((other.slot, other.root) == (head.slot, head.root) for other in shown_by)
        return DeliveredRow(head.node_id, head.slot, head.root, head.delay, max(0.0, now - head.received), votes)

    def _gate_text(self) -> str:
        gate = self._gate
        if gate is None:
            return "open"
        if gate.open:
            return f"open: {shown(gate.reason)}"
        return f"held by {gate.holder}" + (f", {self._held} heads of fallbacks held back" if self._held else "")

    def _duties_row(self, now: float) -> DutiesRow | None:
        moved = self._duties
        if moved is None:
            return None
        counts = self.counts
        since = max(0.0, now - moved.at)
        return DutiesRow(moved.target, since, counts.failovers, counts.failbacks, self._all_unhealthy)

    def _row(
        self, node_id: NodeId, tier: Tier, vitals: Vitals, now: float, slots: SlotClock | None, best: Slot | None
    ) -> Row:
        node = self._nodes.get(node_id) or _Node()
        counts = self.counts.nodes.get(node_id)
        head = node.head
        announced = head is not None and head.source is HeadSource.STREAM
        return Row(
            node_id=node_id,
            tier=tier,
            health="quarantined" if node.mismatch else vitals.health,
            rank=vitals.rank,
            duties=self._duties is not None and self._duties.target == node_id,
            state=node.state,
            fresh=node.fresh,
            slot=head.slot if head is not None else None,
            root=head.root if head is not None else None,
            delay=slots.into_slot(head.received, head.slot) if head and announced and slots is not None else None,
            lag=max(0, best - head.slot) if head is not None and best is not None and not node.mismatch else None,
            latency=vitals.latency,
            peers=vitals.peers,
            reconnects=counts.reconnects if counts is not None else 0,
            reason=_reason(node, vitals.trouble, now),
        )


def _reason(node: _Node, trouble: str, now: float) -> str:
    """Say what matters most: what speaks against the node; what ails its stream, or last did; how its stream is."""
    if node.mismatch or trouble:
        return shown(node.mismatch or trouble)
    if node.retry_at is not None:
        return f"again in {max(0.0, node.retry_at - now):.0f} s: {node.reason}"
    if node.lost and node.state not in _LOST:
        return f"{age(now - node.lost_at)} ago: {node.lost}"
    return node.reason


def _is_bad(signal: Signal) -> bool:
    match signal:
        case StreamChanged():
            return signal.state in _LOST or signal.reason in _TROUBLE
        case GateChanged():
            return signal.open
        case NodeQuarantined():
            return bool(signal.mismatch)
        case HealthChanged():
            well = signal.state is not HealthState.UNHEALTHY and not signal.suspect
            return not well or bool(signal.optimistic or signal.el_offline)
        case DutiesMoved():
            return signal.kind == "failover"
        case AllUnhealthy():
            return signal.begins
        case BranchesDiffer():
            return bool(signal.reason or signal.roots)
        case ClockDoubted():
            return bool(signal.warning)
        case FinalityDiffers():
            return True
    return False
