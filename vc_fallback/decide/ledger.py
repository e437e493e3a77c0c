"""What is known of every node: streams write facts of streams, checks write polls; decisions are functions over it."""

from dataclasses import dataclass, field
from enum import Enum, auto

from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import HeadSource, NodeId, PayloadStatus, Root, Slot
from vc_fallback.chain import ChainIdentity, Fork


@dataclass(frozen=True, slots=True)
class NodeHead:
    """The head of one node, as it showed it (C1).

    Dependent roots are named by the epoch they fix; `None` is unknown. `received` is loop time in seconds.
    """

    node_id: NodeId
    slot: Slot
    root: Root
    received: float
    source: HeadSource = HeadSource.STREAM
    generation: int = 1
    payload_status: PayloadStatus | None = None
    optimistic: bool | None = None
    current_epoch_dependent_root: Root | None = None
    next_epoch_dependent_root: Root | None = None

    def same_block(self, other: "NodeHead | None") -> bool:
        """Whether both are the same block."""
        return other is not None and self.slot == other.slot and self.root == other.root


class Standing(Enum):
    """Whether a node's heads may be delivered."""

    ELIGIBLE = auto()
    UNVERIFIED = auto()
    """Its chain is not known yet (I1, G6)."""
    QUARANTINED = auto()
    """It is on another chain (N7)."""
    HELD = auto()
    """Held back by the tier gate (C5)."""


@dataclass(slots=True)
class StreamFacts:
    """Facts of one node's head stream. Moments are loop time; what belongs to a connection is of the present one."""

    started: float
    """When the stream came to the list."""
    state: StreamState = StreamState.CONNECTING
    requested: float | None = None
    """When the request of the present connection was sent."""
    opened: float | None = None
    """When the response of the present connection came."""
    baseline: Slot | None = None
    """The node's head by its poll when the present connection was made (H14)."""
    last_byte: float | None = None
    comments: int = 0
    """SSE comments on the present connection: some nodes never send one (H5)."""
    last_head: NodeHead | None = None
    """The last head that the stream announced; survives a reconnect (H6)."""
    last_head_at: float | None = None
    last_reorg: tuple[Slot, float] | None = None
    """The slot of the head that the last reorg event named, and when it came: no head liveness (H14)."""
    last_current_at: float | None = None
    """When the last current head came (H6)."""
    stalled: bool = False
    """The verdict of the watchdog, until a new current head (H6)."""
    behind: bool = False
    """The node itself is behind the others by its own word (H5), until a new current head."""
    verified: float | None = None
    """When the stream was verified last (H5)."""

    @property
    def distrusted(self) -> bool:
        """Whether the watchdog found the stream stalled or the node behind."""
        return self.stalled or self.behind

    @property
    def since(self) -> float | None:
        """From when on the present connection can be expected to announce heads.

        A node that was frozen takes up a subscription long after it was sent, and says so by its response.
        """
        return self.opened if self.opened is not None else self.requested

    @property
    def standing_connection(self) -> bool:
        """Whether a request is under way: sent, and not ended."""
        return self.requested is not None and self.state in CONNECTED

    def connection_ended(self) -> None:
        """Forget what belongs to a connection that has ended."""
        self.requested = self.opened = None
        self.baseline = None
        self.last_byte = None
        self.comments = 0


CONNECTED = frozenset({StreamState.REQUESTED, StreamState.OPEN, StreamState.FRESH, StreamState.STALLED})


@dataclass(slots=True)
class NodeFacts:
    """Everything known of one node."""

    stream: StreamFacts
    joined: int = 1
    """The generation in which the node came to the list, or in which its connection settings changed."""
    identity: ChainIdentity | None = None
    """What the node says its chain is; `None` before it was asked."""
    mismatch: str = ""
    """In which respect its chain is not the pinned one; empty when it fits or is unknown (N7)."""
    warned_of: tuple[Fork, ...] = ()
    """The forks to come that it has not scheduled, by its last word (N7)."""
    unhealthy: str = ""
    """Why requests should not go to the node; empty while it is healthy (N1)."""

    @property
    def verified(self) -> bool:
        """Whether its chain is known and fits the pinned one."""
        return self.identity is not None and not self.mismatch

    @property
    def quarantined(self) -> bool:
        """Whether the node is on another chain."""
        return bool(self.mismatch)


@dataclass(slots=True)
class Ledger:
    """Facts by node id, and the chain they are measured against."""

    chain: ChainIdentity | None = None
    """The pinned identity (I1)."""
    nodes: dict[NodeId, NodeFacts] = field(default_factory=dict)
    held: frozenset[NodeId] = frozenset()
    """The nodes whose heads the tier gate holds back (C5)."""

    def standing(self, node_id: NodeId) -> Standing:
        """Say whether a node's heads may be delivered."""
        facts = self.nodes.get(node_id)
        if facts is None or self.chain is None:
            return Standing.UNVERIFIED
        if facts.mismatch:
            return Standing.QUARANTINED
        if facts.identity is None:
            return Standing.UNVERIFIED
        return Standing.HELD if node_id in self.held else Standing.ELIGIBLE
