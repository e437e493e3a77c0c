"""Signals in words, for people: what is worth a line, and what the line says."""

from collections.abc import Callable
from datetime import UTC, datetime

from vc_fallback.base.health_signals import (
    AllUnhealthy,
    BranchesDiffer,
    ClockDoubted,
    DutiesMoved,
    FinalityDiffers,
    HealthChanged,
)
from vc_fallback.base.signals import (
    ChainReorged,
    DependentRootChanged,
    GateChanged,
    GenerationChanged,
    HeadDelivered,
    HeadOutcome,
    NodeHeadSeen,
    NodeQuarantined,
    Signal,
    Started,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import NodeId, Root, Slot, root_hex
from vc_fallback.observe.health_news import HealthNews
from vc_fallback.observe.health_text import (
    all_unhealthy_text,
    branches_text,
    clock_text,
    finality_text,
    moved_text,
    news_text,
)
from vc_fallback.observe.reorg_text import reorg_text
from vc_fallback.observe.words import shown

_WORTH_A_LINE = frozenset(
    {HeadOutcome.OPTIMISTIC, HeadOutcome.FUTURE, HeadOutcome.WRONG_CHAIN, HeadOutcome.OLD},
)
_SHOWN_IN_ANY_STATE = frozenset({StreamReason.TOPICS_REDUCED, StreamReason.QUARANTINED})


class Narration:
    """Says in words what a person wants to see of a signal: its kind, and a text of one line.

    Duplicates and the steps of a connection are left out; of failures in a row, number 1, 2, 4, 8, … is told; heads
    that are not delivered for a reason of their own are told when the reason is new for that node. Of health the turns
    are told, not the places in the ranking; what comes again and again is thinned out like failures.

    :param unix: turns loop time into Unix time in seconds (:meth:`Clock.unix`). Times are in UTC.
    """

    __slots__ = ("_health", "_outcomes", "_unix")

    def __init__(self, unix: Callable[[float], float]) -> None:
        self._unix = unix
        self._outcomes: dict[NodeId, HeadOutcome] = {}
        self._health = HealthNews()

    def __call__(self, signal: Signal) -> tuple[str, str] | None:
        """Return the kind and the text of a signal, or `None` where it is not worth a line."""
        news = [item for item in self._health(signal) if item.loud]
        match signal:
            case HeadDelivered():
                return "head", _head(signal)
            case NodeHeadSeen():
                return self._node_head(signal)
            case StreamChanged() if _worth_a_line(signal):
                return "stream", _stream(signal)
            case GateChanged():
                return "gate", _gate(signal)
            case GenerationChanged():
                self._outcomes = {n: outcome for n, outcome in self._outcomes.items() if n not in signal.removed}
                return "list", _generation(signal)
            case NodeQuarantined():
                what = f"quarantined: {shown(signal.mismatch)}" if signal.mismatch else "fits the chain again"
                return "chain", f"{signal.node_id}  {what}"
            case DependentRootChanged():
                return "roots", _dependent_root(signal)
            case ChainReorged():
                return "reorg", reorg_text(signal, _cut)
            case Started():
                return "start", self._start(signal)
            case HealthChanged() if news:
                return "health", f"{signal.node_id}  {news_text(signal, news)}"
            case DutiesMoved():
                return "duties", moved_text(signal)
            case AllUnhealthy():
                return "alarm", all_unhealthy_text(signal)
            case FinalityDiffers():
                return "alarm", finality_text(signal, _cut)
            case BranchesDiffer() if self._health.branches(signal):
                return "branch", branches_text(signal, _cut)
            case ClockDoubted() if self._health.clock(signal):
                return "clock", clock_text(signal)
        return None

    def _start(self, signal: Started) -> str:
        nodes = ", ".join(f"{node_id} ({tier})" for node_id, tier in signal.nodes)
        if signal.genesis_time is None or signal.slot_duration is None:
            day = utc(self._unix(signal.at), "%Y-%m-%d")
            return f"{day} UTC, asking for the chain: {nodes}"
        genesis = utc(signal.genesis_time, "%Y-%m-%d %H:%M:%S")
        return f"slots of {signal.slot_duration:g} s since {genesis} UTC: {nodes}"

    def _node_head(self, signal: NodeHeadSeen) -> tuple[str, str] | None:
        before = self._outcomes.get(signal.node_id)
        self._outcomes[signal.node_id] = signal.outcome
        if signal.outcome not in _WORTH_A_LINE or signal.outcome is before:
            return None
        return "skip", f"{_slot(signal.slot, signal.root)}  {signal.node_id}  {in_words(signal.outcome)}"


def in_words(word: str) -> str:
    """Return a word of a closed list as a person would write it."""
    return word.replace("_", " ")


def short(root: Root) -> str:
    """Return the beginning of a root."""
    return root_hex(root)[:10]


def time_of_day(unix: float) -> str:
    """Return the time of day of a Unix time in seconds, in UTC, to the millisecond."""
    return utc(unix, "%H:%M:%S.%f")[:-3]


def utc(unix: float, form: str) -> str:
    """Return a Unix time in seconds in a form of `strftime`, in UTC."""
    try:
        return datetime.fromtimestamp(unix, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        # A genesis may be configured beyond what a calendar holds.
        return f"{unix:.3f}"


def _worth_a_line(signal: StreamChanged) -> bool:
    if signal.reason in _SHOWN_IN_ANY_STATE:
        return True
    if signal.state in (StreamState.CONNECTING, StreamState.REQUESTED) or signal.reason is StreamReason.CLOSED:
        return False
    if signal.state in (StreamState.OPEN, StreamState.BACKOFF):
        return signal.failures & (signal.failures - 1) == 0
    return True


def _slot(slot: Slot, root: Root) -> str:
    return f"slot {slot}  {_cut(root)}"


def _cut(root: Root) -> str:
    return f"{short(root)}…"


def _head(signal: HeadDelivered) -> str:
    flags = [
        word
        for word, holds in (
            ("late", signal.late),
            ("reorg", signal.reorg),
            ("optimistic", signal.optimistic is True),
            ("polled", signal.source == "poll"),
        )
        if holds
    ]
    if signal.payload_status is not None:
        flags.append(f"payload {signal.payload_status}")
    seen = f"seen by {len(signal.seen_by)}"
    return "  ".join([_slot(signal.slot, signal.root), f"{signal.delay:+.3f} s", signal.node_id, seen, *flags])


def _stream(signal: StreamChanged) -> str:
    detail = shown(signal.detail)
    text = f"{signal.node_id}  {signal.state}: {in_words(signal.reason)}" + (f" ({detail})" if detail else "")
    if signal.retry_in is not None:
        text += f", failure {signal.failures}, next attempt in {signal.retry_in:.1f} s"
    return text


def _gate(signal: GateChanged) -> str:
    if signal.open:
        return f"open, heads of fallbacks are delivered: {shown(signal.reason)}"
    return f"closed, held by {signal.holder}"


def _generation(signal: GenerationChanged) -> str:
    parts = [
        f"{word} {', '.join(nodes)}"
        for word, nodes in (
            ("added", signal.added),
            ("removed", signal.removed),
            ("changed", signal.changed),
            ("kept", signal.kept),
        )
        if nodes
    ]
    return "  ".join([f"generation {signal.generation}", *parts])


def _dependent_root(signal: DependentRootChanged) -> str:
    return f"epoch {signal.epoch}  {_cut(signal.old)} became {_cut(signal.new)}  shown by {', '.join(signal.nodes)}"
