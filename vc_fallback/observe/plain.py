"""Plain lines, for people: delivered heads, changes of streams worth knowing, and a table at the end."""

from collections.abc import Callable
from datetime import UTC, datetime

from vc_fallback.base.signals import (
    GenerationChanged,
    HeadDelivered,
    HeadOutcome,
    NodeHeadSeen,
    Quarantined,
    Signal,
    Started,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import NodeId, Root, Slot, root_hex
from vc_fallback.observe.counts import Counts
from vc_fallback.observe.words import shown

_WORTH_A_LINE = frozenset(
    {HeadOutcome.OPTIMISTIC, HeadOutcome.FUTURE, HeadOutcome.WRONG_CHAIN, HeadOutcome.OLD},
)
_SHOWN_IN_ANY_STATE = frozenset({StreamReason.TOPICS_REDUCED, StreamReason.QUARANTINED})


class PlainLines:
    """An observer that writes a readable line for what a person wants to see.

    Duplicates and the steps of a connection are left out; of failures in a row, number 1, 2, 4, 8, … is shown; heads
    that are not delivered for a reason of their own are shown when the reason is new for that node.

    :param unix: turns loop time into Unix time in seconds (:meth:`Clock.unix`). Times are shown in UTC.
    :param write: takes one line without its line break; it must not wait and may not fail.
    """

    def __init__(self, unix: Callable[[float], float], write: Callable[[str], None]) -> None:
        self.counts = Counts()
        self._unix = unix
        self._write = write
        self._outcomes: dict[NodeId, HeadOutcome] = {}

    def __call__(self, signal: Signal) -> None:
        """Write the line of a signal, where it has one."""
        self.counts(signal)
        match signal:
            case HeadDelivered():
                self._line(signal.at, "head", _head(signal))
            case NodeHeadSeen():
                self._node_head(signal)
            case StreamChanged():
                if _worth_a_line(signal):
                    self._line(signal.at, "stream", _stream(signal))
            case GenerationChanged():
                self._outcomes = {n: outcome for n, outcome in self._outcomes.items() if n not in signal.removed}
                self._line(signal.at, "list", _generation(signal))
            case Quarantined():
                what = f"quarantined: {shown(signal.mismatch)}" if signal.mismatch else "fits the chain again"
                self._line(signal.at, "chain", f"{signal.node_id}  {what}")
            case Started():
                self._line(signal.at, "start", self._start(signal))

    def summary(self, at: float) -> str:
        """Return the table of the end, in several lines; `at` is loop time."""
        names = [str(node_id) for node_id in self.counts.nodes]
        width = max([len("node"), *map(len, names)])
        rows = [self._text(at, "end", f"{self.counts.delivered} heads delivered")]
        rows.append(f"  {'node':<{width}}  {'heads':>7}  {'reconnects':>10}  {'stalls':>6}  {'last slot':>10}")
        for name, counts in zip(names, self.counts.nodes.values(), strict=True):
            last = "-" if counts.last_slot is None else str(counts.last_slot)
            rows.append(
                f"  {name:<{width}}  {counts.heads:>7}  {counts.reconnects:>10}  {counts.stalls:>6}  {last:>10}"
            )
        return "\n".join(rows)

    def _line(self, at: float, kind: str, text: str) -> None:
        self._write(self._text(at, kind, text))

    def _text(self, at: float, kind: str, text: str) -> str:
        clock = _utc(self._unix(at), "%H:%M:%S.%f")[:-3]
        return f"{clock}  {kind:<6}  {text}".rstrip()

    def _start(self, signal: Started) -> str:
        nodes = ", ".join(f"{node_id} ({tier})" for node_id, tier in signal.nodes)
        if signal.genesis_time is None or signal.slot_duration is None:
            day = _utc(self._unix(signal.at), "%Y-%m-%d")
            return f"{day} UTC, asking for the chain: {nodes}"
        genesis = _utc(signal.genesis_time, "%Y-%m-%d %H:%M:%S")
        return f"slots of {signal.slot_duration:g} s since {genesis} UTC: {nodes}"

    def _node_head(self, signal: NodeHeadSeen) -> None:
        before = self._outcomes.get(signal.node_id)
        self._outcomes[signal.node_id] = signal.outcome
        if signal.outcome in _WORTH_A_LINE and signal.outcome is not before:
            self._line(
                signal.at,
                "skip",
                f"{_slot(signal.slot, signal.root)}  {signal.node_id}  {signal.outcome.replace('_', ' ')}",
            )


def _utc(unix: float, form: str) -> str:
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
    return f"slot {slot}  {root_hex(root)[:10]}…"


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
    text = f"{signal.node_id}  {signal.state}: "
    text += signal.reason.replace("_", " ") + (f" ({detail})" if detail else "")
    if signal.retry_in is not None:
        text += f", failure {signal.failures}, next attempt in {signal.retry_in:.1f} s"
    return text


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
