"""What the table shows at one moment, as plain values."""

from dataclasses import dataclass

from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import Epoch, NodeId, Root, Slot, Tier


@dataclass(frozen=True, slots=True)
class Row:
    """One node as the table shows it; `None` is unknown.

    There are two verdicts: `health`, in a word, steers requests; `fresh` is whether the events of its stream are to be
    relied on. `rank` is its place, 1 is the best, `duties` whether it is the one that has them. `delay` is the seconds
    from the start of the slot until its head came, for a head that was announced; `lag` the slots from its head to the
    best one; `latency` the seconds that nine of ten checks stay within.
    """

    node_id: NodeId
    tier: Tier
    health: str = "unknown"
    rank: int | None = None
    duties: bool = False
    state: StreamState | None = None
    fresh: bool | None = None
    slot: Slot | None = None
    root: Root | None = None
    delay: float | None = None
    lag: int | None = None
    latency: float | None = None
    peers: int | None = None
    reconnects: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DeliveredRow:
    """The delivered head: from which node, how old in seconds, and how many nodes stand behind it now."""

    node_id: NodeId
    slot: Slot
    root: Root
    delay: float
    age: float
    votes: int


@dataclass(frozen=True, slots=True)
class DutiesRow:
    """Who has the duties, for how many seconds, and how often they have moved; `node_id` is `None` for no node."""

    node_id: NodeId | None
    age: float
    failovers: int
    failbacks: int
    all_unhealthy: bool


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: a time of day, a kind in one word, and a text; `bad` where it is trouble."""

    time: str
    kind: str
    text: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """Everything the table shows at one moment. `slot`, `epoch` and `into_slot` (seconds) are of the wall clock."""

    slot: Slot | None
    epoch: Epoch | None
    into_slot: float | None
    generation: int
    delivered: DeliveredRow | None
    duties: DutiesRow | None
    gate: str
    rows: tuple[Row, ...]
    events: tuple[Event, ...]


def age(seconds: float) -> str:
    """Return a length of time in few characters."""
    for most, unit, name in ((60, 1, "s"), (3600, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < most:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds // 86400:.0f} d"
