"""One snapshot of everything, as a pydantic model (O2). No secret can be in it: nodes are named by their ids."""

from pydantic import BaseModel, ConfigDict

from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.base.types import Role, Tier


class _Snapshot(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ChainStatus(_Snapshot):
    """Which chain it is, and where it is now."""

    genesis_time: float
    """Unix time in seconds."""
    genesis_validators_root: str
    slot_duration: float
    """Seconds."""
    slots_per_epoch: int
    fork: str | None
    """The fork that holds now, `None` where the schedule is not known."""
    slot: int
    """The wall-clock slot, negative before genesis."""
    epoch: int


class HeadStatus(_Snapshot):
    """A head."""

    slot: int
    root: str
    """`0x…`"""
    node: str
    """The node that it came from first."""
    age: float
    """Seconds since it came."""
    seen_by: tuple[str, ...]


class TopicConnectionStatus(_Snapshot):
    """One connection of a node for topics other than the head's: for those of a high rate, or for all others (T1)."""

    topics: tuple[str, ...]
    """Those that a request of which stands, in alphabetical order."""
    live: tuple[str, ...]
    """Those that are live."""
    state: str
    """`waiting`, `connecting`, `requested`, or `open`."""
    since: float | None
    """For how many seconds the request, or the response, has stood."""
    failures: int
    """Ends in a row."""
    trouble: str
    """Why there is no connection; empty where there is one."""
    refused: dict[str, str]
    """The topics that the node refuses, each with its words; they are asked for again (T4)."""


class TopicStatus(_Snapshot):
    """One topic that somebody has subscribed to."""

    subscribers: int
    live: tuple[str, ...]
    """The nodes on which it is live."""
    events: int
    """Events that were told to subscribers."""
    forgotten: int
    """Events whose copies are told again, since there were more in a few slots than are remembered (T6)."""


class NodeStatus(_Snapshot):
    """One node. Times are in seconds; `None` is unknown."""

    node: str
    tier: Tier
    roles: tuple[Role, ...]
    """In alphabetical order."""
    priority: int
    state: HealthState
    suspect: str
    """Why it is suspect, empty where it is not (N4)."""
    reason: HealthReason
    detail: str
    since: float
    """For how long it has been in its state."""
    excluded: str
    """Why it is no node of ours; empty where it is (N7)."""
    rank: int | None
    explanation: str
    """Why it is where it is, and what would change that, in one sentence."""
    lag: int | None
    sync_distance: int | None
    optimistic: bool | None
    el_offline: bool | None
    latency: float | None
    duty_latency: float | None
    clock_offset: float | None
    peers: int | None
    drained: float
    """For how many more seconds it is put last on purpose."""
    cooling: float
    """For how many more seconds it is left alone, as it asked for that or refused us (Q11)."""
    stragglers: int
    """Sends of answered publishes that are still under way to it (Q5)."""
    subscription_healthy: bool | None
    """Whether its head stream is fresh (H6)."""
    head_slot: int | None
    head_root: str | None
    lacks: tuple[str, ...]
    """What it has not got, as it said (Q13)."""
    topics: tuple[TopicConnectionStatus, ...]
    """Its connections for topics other than the head's."""


class Status(_Snapshot):
    """Everything, as of `at`."""

    at: float
    """Unix time in seconds."""
    generation: int
    ready: bool
    """Whether a usable node is there."""
    chain: ChainStatus | None
    """`None` while it is not known (I1)."""
    head: HeadStatus | None
    """The latest delivered head."""
    duties: str | None
    """The node that is asked first (N9)."""
    failovers: int
    failbacks: int
    all_unhealthy: bool
    """Whether there are nodes and none of them is healthy (N10)."""
    remembered: dict[str, int]
    """How many preparations are kept for nodes that come back, by kind (Q14)."""
    topics: dict[str, TopicStatus]
    """The topics that are subscribed to, in alphabetical order (T1)."""
    nodes: tuple[NodeStatus, ...]
    """In the order of the list."""
