"""What is told of the health of nodes, and of which node has the duties."""

from collections.abc import Mapping
from dataclasses import dataclass

from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.base.signals import Signal
from vc_fallback.base.types import Epoch, NodeId, Root, Slot


@dataclass(frozen=True, slots=True)
class HealthChanged(Signal):
    """A node's health, what it says of itself, or its rank has changed (N1, N6).

    :param suspect: the mark on a healthy node (N4).
    :param detail: the reason in words.
    :param explanation: why it is where it is in the ranking, in one sentence.
    :param rank: its place among all nodes, 1 is the best; `None` where it is left out: on another chain, or unknown.
    :param sync_distance: slots from its head to the wall clock; `None` is unknown, as for the rest.
    :param latency: seconds that nine of ten answers of `node/syncing` stay within.
    :param offset: what is proved of its clock, in seconds, 0 or below (N8).
    """

    node_id: NodeId
    generation: int
    state: HealthState
    suspect: bool
    reason: HealthReason
    detail: str
    explanation: str
    rank: int | None
    sync_distance: int | None
    optimistic: bool | None
    el_offline: bool | None
    latency: float | None
    offset: float | None
    peers: int | None


@dataclass(frozen=True, slots=True)
class DutiesMoved(Signal):
    """Duties have gone to another node: the first one, a failover, or a failback (N9). `None` stands for no node."""

    kind: str
    source: NodeId | None
    target: NodeId | None
    reason: str


@dataclass(frozen=True, slots=True)
class AllUnhealthy(Signal):
    """No node is healthy any more, or one is again (N10); requests go on to be tried in rank order."""

    begins: bool


@dataclass(frozen=True, slots=True)
class BranchesDiffer(Signal):
    """The chains of nodes have different blocks at one slot, for two slots running where a node is blamed (N3).

    :param slot: where they differ; at the end the slot by which that was over, or `None` where a node that was blamed
        is not compared with others any more: it is down, on another chain, or one of two that are left.
    :param blamed: the node that a majority of at least three speaks against, `None` while nobody can be blamed.
    :param reason: what speaks against it; empty where nothing does any more.
    :param roots: who has which, the most nodes first; empty where a node is blamed, and where all agree again.
    """

    slot: Slot | None
    blamed: NodeId | None
    reason: str
    roots: Mapping[Root, tuple[NodeId, ...]]


@dataclass(frozen=True, slots=True)
class FinalityDiffers(Signal):
    """Nodes have finalized different roots for one epoch: critical, and it switches nothing by itself (N3).

    :param roots: who has finalized which, the most nodes first.
    """

    epoch: Epoch
    roots: Mapping[Root, tuple[NodeId, ...]]


@dataclass(frozen=True, slots=True)
class ClockDoubted(Signal):
    """A node's clock, or our own where there is no node, is in doubt, or is so no more (N8).

    :param warning: what is odd of it; empty where nothing is any more.
    """

    node_id: NodeId | None
    warning: str
