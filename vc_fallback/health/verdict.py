"""The verdict on one node's health, as anyone may read it."""

from dataclasses import dataclass

from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.base.types import Epoch, NodeId, Root
from vc_fallback.decide.health_state import HealthTransition


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """A node's health as of now: state, reason, since when, and what it was made of (N1).

    :param suspect: why a healthy node is suspect, until a check has spoken; empty where it is not (N4).
    :param detail: the reason in words.
    :param since: loop time in seconds at which it came into its state.
    :param excluded: why it is no node of ours: its chain is not known yet, or another one (N7); empty where it is.
    :param rank: its place among all nodes, 1 is the best; `None` where it is left out.
    :param lag: slots behind the tip of all nodes (N5), when it showed a head last; `None` is unknown, as for the rest.
    :param sync_distance: slots from its head to the wall clock.
    :param latency: seconds that nine of ten answers of `node/syncing` stay within, `duty_latency` of attestation data.
    :param offset: what is proved of its clock, in seconds, 0 or below (N8).
    :param clock: what is odd of its clock; empty where nothing is.
    :param inconsistent: what speaks against the branch that it is on; empty where nothing does (N3).
    :param finalized: epoch and root of the checkpoint that it named last.
    :param peers: how many it says it has.
    :param drained: for how many more seconds it is put last on purpose, 0 where it is not (N11).
    :param checked: loop time at which its last check ended.
    :param history: its latest transitions, at most eight, oldest first.
    """

    node_id: NodeId
    state: HealthState
    suspect: str
    reason: HealthReason
    detail: str
    since: float
    excluded: str
    rank: int | None
    lag: int | None
    sync_distance: int | None
    optimistic: bool | None
    el_offline: bool | None
    latency: float | None
    duty_latency: float | None
    offset: float | None
    clock: str
    inconsistent: str
    finalized: tuple[Epoch, Root] | None
    peers: int | None
    drained: float
    checked: float | None
    history: tuple[HealthTransition, ...]
