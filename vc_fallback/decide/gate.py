"""The tier gate: whether heads that only fallbacks have may reach consumers (C5)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import NodeId, Slot
from vc_fallback.chain import SlotClock
from vc_fallback.decide.freshness import subscription_healthy
from vc_fallback.decide.ledger import Ledger, NodeFacts, NodeHead
from vc_fallback.times import StreamTimes

MOST_BEHIND = 1
"""A primary whose last usable head is more slots behind the tip than this holds nothing (C5)."""

OPEN_STATES = frozenset({StreamState.OPEN, StreamState.FRESH})

_CLOSED = {state: f"stream {state}" for state in StreamState if state not in OPEN_STATES}


@dataclass(frozen=True, slots=True)
class Gate:
    """Open: heads of fallbacks are delivered. `holder` is the primary that keeps it closed, `reason` says why."""

    open: bool
    holder: NodeId | None
    reason: str


def gate(
    primaries: Iterable[NodeId],
    ledger: Ledger,
    heads: Mapping[NodeId, NodeHead],
    tip: Slot | None,
    now: float,
    slots: SlotClock,
    times: StreamTimes,
) -> Gate:
    """Look for a primary that holds the gate, in list order.

    :param primaries: primaries with role `events`.
    :param heads: each node's last usable head (not optimistic).
    :param tip: see :func:`~vc_fallback.decide.tip.tip`.
    """
    node_id: NodeId | None = None
    lack = ""
    for node_id in primaries:
        facts = ledger.nodes.get(node_id)
        lack = "unknown" if facts is None else lacks(facts, heads.get(node_id), tip, now, slots, times)
        if not lack:
            return Gate(open=False, holder=node_id, reason="held by a primary")
    return Gate(open=True, holder=None, reason="no primary" if node_id is None else f"{node_id}: {lack}")


def lacks(
    facts: NodeFacts,
    head: NodeHead | None,
    tip: Slot | None,
    now: float,
    slots: SlotClock,
    times: StreamTimes,
) -> str:
    """Say what a primary lacks to hold the gate; empty when it holds it.

    Also what a node of any tier lacks to be a first choice of consumers of events (C7): one definition for both.
    """
    # Not its standing: a fallback that has just become a primary is still held back by the gate as it was.
    if facts.identity is None or facts.mismatch:
        return "chain not verified"
    if facts.unhealthy:
        return facts.unhealthy
    stream = facts.stream
    if stream.state in _CLOSED:
        return _CLOSED[stream.state]
    if stream.stalled:
        return "stream stalled"
    if stream.behind:
        return "behind the other nodes"
    if head is None:
        return "no usable head"
    if tip is not None and head.slot < tip - MOST_BEHIND:
        return f"{tip - head.slot} slots behind the tip"
    # Last, because it asks for the slot: every head is measured against all primaries where none holds the gate.
    if times.head_silence is not None and not subscription_healthy(stream, now, slots, times):
        return "stream not fresh"
    return ""
