"""What the library tells: frozen signals, given to observers (JSON lines, logs, metrics, status)."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from vc_fallback.base.types import BlockRef, Epoch, HeadSource, NodeId, PayloadStatus, Provenance, Root, Slot, Tier

logger = logging.getLogger(__name__)


class StreamState(StrEnum):
    """State of a head stream."""

    CONNECTING = "connecting"
    REQUESTED = "requested"
    OPEN = "open"
    FRESH = "fresh"
    STALLED = "stalled"
    BACKOFF = "backoff"
    STOPPED = "stopped"


class StreamReason(StrEnum):
    """Why a head stream changed its state; a closed list, `detail` beside it is free text."""

    STARTED = "started"
    """The candidate is new in the list, or its connection settings changed."""
    RETRY = "retry"
    """The backoff is over, or a good check ended it."""
    REQUEST_SENT = "request_sent"
    """The connection stands and the request went out; response headers may come only with the first event (H2)."""
    RESPONSE = "response"
    """The node answered 200 with an event stream."""
    CURRENT_HEAD = "current_head"
    """A head for the current or the previous slot came (H6)."""
    CONNECT_FAILED = "connect_failed"
    """Name resolution, TCP or TLS failed, or took longer than the connect time-out."""
    REFUSED = "refused"
    """The node answered with an error: a status that is not 200, or an in-band error event."""
    NOT_AN_EVENT_STREAM = "not_an_event_stream"
    """The node answered 200 with another media type or with a content coding that was not asked for (H3)."""
    TOPICS_REDUCED = "topics_reduced"
    """The node refused a topic; the next request carries fewer (H10)."""
    ENDED = "ended"
    """The node ended the stream cleanly."""
    BROKEN = "broken"
    """The connection broke, or the bytes were not HTTP."""
    UNREADABLE = "unreadable"
    """A line or an event was longer than the limit (Q15), or nothing but malformed events came."""
    HEAD_SILENCE = "head_silence"
    """The node has newer heads than its stream, or does not answer while others have newer ones (H5): stalled."""
    START_GRACE_OVER = "start_grace_over"
    """No current head within the start-up grace (H6)."""
    TRANSPORT_SILENCE = "transport_silence"
    """Not a byte for the limit, on a connection that had sent comments before (H5)."""
    HARD_CLOCK = "hard_clock"
    """No head for 8½ slots, on a chain where nobody has a newer one: reconnected all the same (H5)."""
    REMOVED = "removed"
    """The candidate left the list, or its connection settings changed and a new stream takes its place."""
    CLOSED = "closed"
    """The monitor ends."""
    QUARANTINED = "quarantined"
    """The node is on another chain (N7)."""
    INTERNAL = "internal"
    """A mistake of our own, logged with its traceback; the stream starts again with backoff."""


class HeadOutcome(StrEnum):
    """What became of a head that a node showed."""

    DELIVERED = "delivered"
    DUPLICATE = "duplicate"
    """The delivered head, or a payload status that is no news: a vote."""
    BEHIND = "behind"
    """Moves only the node's own entry (C3)."""
    OPTIMISTIC = "optimistic"
    """Kept, not delivered as usable (H12)."""
    TIER = "tier"
    """Held back by the tier gate (C5)."""
    FUTURE = "future"
    """More than one slot ahead of the clock: refused (H13)."""
    WRONG_CHAIN = "wrong_chain"
    """From a node of another genesis (N7)."""
    OLD = "old"
    """More than 32 slots behind the clock (H13)."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Something happened. `at` is loop time in seconds."""

    at: float


@dataclass(frozen=True, slots=True)
class Started(Signal):
    """The monitor runs, or has just learned which chain it is on (then the last two are not `None`).

    `genesis_time` is Unix time in seconds, `slot_duration` in seconds.
    """

    nodes: tuple[tuple[NodeId, Tier], ...]
    genesis_time: float | None
    slot_duration: float | None


@dataclass(frozen=True, slots=True)
class HeadDelivered(Signal):
    """A head went to the subscribers and into the `Watch` (C3).

    `received` is the loop time at which its bytes came, `delay` the seconds from the start of its slot until then.
    """

    node_id: NodeId
    tier: Tier
    slot: Slot
    root: Root
    generation: int
    source: HeadSource
    received: float
    delay: float
    optimistic: bool | None
    payload_status: PayloadStatus | None
    late: bool
    reorg: bool
    seen_by: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class NodeHeadSeen(Signal):
    """A node showed a head; `outcome` says what became of it."""

    node_id: NodeId
    slot: Slot
    root: Root
    generation: int
    source: HeadSource
    received: float
    outcome: HeadOutcome


@dataclass(frozen=True, slots=True)
class NodeReorgSeen(Signal):
    """A node said in a `chain_reorg` event that its head has left a branch: its own word of its own chain (H14).

    Whether the delivered chain has is another matter. `depth` is in slots as the node counts it: from the common block
    to the old head or to the new one. `received` is the loop time at which the event's bytes came.
    """

    node_id: NodeId
    slot: Slot
    depth: int
    old_root: Root
    new_root: Root
    epoch: Epoch
    optimistic: bool | None
    generation: int
    received: float


@dataclass(frozen=True, slots=True)
class StreamChanged(Signal):
    """A head stream changed its state or its verdict.

    `failures` counts ends in a row; `retry_in` is the wait in seconds before the next attempt, where there is one.
    """

    node_id: NodeId
    generation: int
    state: StreamState
    subscription_healthy: bool | None
    reason: StreamReason
    detail: str
    failures: int
    retry_in: float | None


@dataclass(frozen=True, slots=True)
class GenerationChanged(Signal):
    """The candidate list changed (G1). `kept` are those whose connection goes on."""

    generation: int
    added: tuple[NodeId, ...]
    removed: tuple[NodeId, ...]
    changed: tuple[NodeId, ...]
    kept: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class HeadHeld(Signal):
    """The tier gate holds a fallback's head back (C5)."""

    node_id: NodeId
    slot: Slot
    root: Root


@dataclass(frozen=True, slots=True)
class GateChanged(Signal):
    """The tier gate opened or closed, or another primary holds it (C6); `holder` is `None` while it is open."""

    open: bool
    holder: NodeId | None
    reason: str


@dataclass(frozen=True, slots=True)
class NodeQuarantined(Signal):
    """A node is on another chain than the pinned one, or fits it again (`mismatch` is then empty)."""

    node_id: NodeId
    generation: int
    mismatch: str


@dataclass(frozen=True, slots=True)
class DependentRootChanged(Signal):
    """The dependent root of an epoch changed on the delivered chain (C11); `nodes` report the new one."""

    epoch: Epoch
    old: Root
    new: Root
    nodes: tuple[NodeId, ...]


class ReorgEvidence(StrEnum):
    """What shows that the delivered chain left a branch; a closed list."""

    REPORTED = "reported"
    """A node that is followed said so by a `chain_reorg` event."""
    SLOT = "slot"
    """The new head is not above the old one."""
    PARENTS = "parents"
    """The headers that are known lead past the old head."""


class RootChange(NamedTuple):
    """The block that fixes the duties of an epoch is `new` where it was `old`."""

    epoch: Epoch
    old: Root
    new: Root


@dataclass(frozen=True, slots=True)
class ChainReorged(Signal):
    """The delivered chain left a branch: `new` is its head, and `old`, which was, is not below it any more (C3).

    It is told once for each time, in the order of the delivered heads, up to 1/24 of a slot after the head itself.
    `None` is unknown. What a reorg that no node reports goes back to is known only where the headers are.
    """

    node_id: NodeId
    """The node that the new head was delivered from; `received` is the loop time at which its bytes came."""
    generation: int
    received: float
    old: BlockRef
    new: BlockRef
    epoch: Epoch
    """That of the new head's slot."""
    depth: int | None
    """Slots back to the common block: as a node that reported the reorg counts them, from the old head or from the new
    one; else from the old head."""
    crosses_epoch: bool | None
    """Whether the common block is of an earlier epoch than the higher of the two heads: checkpoints may be others."""
    changed_roots: tuple[RootChange, ...]
    """Dependent roots that the new head names otherwise. One node names them here: that the change counts, by the word
    of most, is told by :class:`DependentRootChanged`."""
    touches_current_duties: bool | None
    """Whether the block that fixes the duties of the present epoch, by the clock, is another one."""
    touches_next_duties: bool | None
    """The same for the next epoch: proposer duties before Fulu of the present one are fixed by that block, too."""
    evidence: ReorgEvidence
    reported_by: tuple[NodeId, ...]
    """The nodes of those followed that have reported this very change by `chain_reorg`."""
    nodes: tuple[NodeId, ...]
    """These, and all that stand at the new head."""

    @property
    def slot(self) -> Slot:
        """The slot of the new head."""
        return self.new.slot

    @property
    def provenance(self) -> Provenance:
        """Where the new head came from."""
        return Provenance(self.node_id, self.generation, self.received)


Observer = Callable[[Signal], None]
"""Called with every signal, on the event loop, at once; it must not wait."""


class Observers:
    """Hands each signal to every observer. One that raises is logged and costs nobody."""

    __slots__ = ("_observers",)

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = tuple(observers)

    def __bool__(self) -> bool:
        """Whether there is anyone to tell."""
        return bool(self._observers)

    def __call__(self, signal: Signal) -> None:
        for observer in self._observers:
            try:
                observer(signal)
            except Exception:
                logger.exception("an observer raised on %s", type(signal).__name__)
