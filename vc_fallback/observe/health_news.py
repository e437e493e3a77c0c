"""What is news in what is told of nodes' health, and which of it is worth saying aloud (H9)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.base.health_signals import BranchesDiffer, ClockDoubted, HealthChanged
from vc_fallback.base.signals import GenerationChanged, Signal, Started
from vc_fallback.base.types import NodeId

REST: Final = 5.0
"""Slots: what comes again sooner than that after it was over is one more in a row, as errors within 60 s are (N3)."""

CLOCK_REST: Final = 32.0
"""As above for clocks, which are judged by 16 slots (N8)."""


class Turn(StrEnum):
    """How a node's health has turned."""

    SUSPECT = "suspect"
    CLEARED = "cleared"
    """A suspicion came to nothing."""
    UNHEALTHY = "unhealthy"
    """It has become unhealthy, or is so for another reason."""
    RECOVERING = "recovering"
    RECOVERED = "recovered"
    OPTIMISTIC = "optimistic"
    VERIFIED = "verified"
    """It is optimistic no more."""
    EL_OFFLINE = "el_offline"
    EL_BACK = "el_back"


@dataclass(frozen=True, slots=True)
class News:
    """Something new of one node.

    :param loud: number 1, 2, 4, 8, … of its kind in a row, or the end of one that was (H9).
    :param gone: seconds for which it was not healthy, suspicion included, where that is over.
    """

    turn: Turn
    loud: bool
    gone: float | None = None


Key = tuple[NodeId | None, str]
"""A node and a kind of thing; without a node it is of us, or of all."""


class Repeats:
    """Counts what comes again and again: number 1, 2, 4, 8, … in a row is loud."""

    __slots__ = ("_counted",)

    def __init__(self) -> None:
        self._counted: dict[Key, tuple[int, float]] = {}

    def begins(self, key: Key, at: float, rest: float) -> bool:
        """Take note that something begins; return whether to say it aloud.

        :param rest: seconds since its last beginning or end after which it is the first in a row again.
        """
        count, last = self._counted.get(key, (0, at))
        count = count + 1 if at <= last + rest else 1
        self._counted[key] = count, at
        return count & (count - 1) == 0

    def ends(self, key: Key, at: float) -> bool:
        """Take note that it is over; return whether to say that aloud: if its beginning was."""
        count, _ = self._counted.get(key, (0, at))
        self._counted[key] = count, at
        return count & (count - 1) == 0

    def forget(self, node_id: NodeId) -> None:
        """Forget a node."""
        for key in [key for key in self._counted if key[0] == node_id]:
            del self._counted[key]


@dataclass(slots=True)
class _Node:
    state: HealthState = HealthState.HEALTHY
    suspect: bool = False
    reason: HealthReason | None = None
    optimistic: bool = False
    el_offline: bool = False
    bad_since: float | None = None
    begun: set[Turn] = field(default_factory=set)
    """What its present trouble has been, `aloud` whether any of that was said aloud, `latest` whether the last was."""
    aloud: bool = False
    latest: bool = False


class HealthNews:
    """Tells what is new of nodes' health; feed it every signal. A place in the ranking that has moved is no news."""

    __slots__ = ("_apart", "_nodes", "_repeats", "_slot")

    def __init__(self) -> None:
        self._nodes: dict[NodeId, _Node] = {}
        self._repeats = Repeats()
        # Until the chain is known.
        self._slot = 12.0
        self._apart: set[NodeId | None] = set()
        """Who is on another branch by what was said aloud, `None` standing for a fork in which nobody is blamed."""

    def __call__(self, signal: Signal) -> tuple[News, ...]:
        """Return what is new in a signal; of anything but :class:`HealthChanged` nothing is."""
        match signal:
            case HealthChanged():
                return tuple(self._news(signal, self._nodes.setdefault(signal.node_id, _Node())))
            case Started():
                self._slot = signal.slot_duration or self._slot
            case GenerationChanged():
                for node_id in (*signal.removed, *signal.changed):
                    self._nodes.pop(node_id, None)
                    self._repeats.forget(node_id)
                    self._apart.discard(node_id)
        return ()

    def branches(self, signal: BranchesDiffer) -> bool:
        """Whether to say aloud that nodes differ. A fork is told anew in each slot in which it goes on."""
        key = (signal.blamed, "branch")
        if signal.reason or signal.roots:
            loud = self._repeats.begins(key, signal.at, REST * self._slot)
            if loud:
                self._apart.add(signal.blamed)
            return loud
        self._repeats.ends(key, signal.at)
        aloud = signal.blamed in self._apart
        self._apart.discard(signal.blamed)
        return aloud

    def clock(self, signal: ClockDoubted) -> bool:
        """Whether to say aloud that a clock is in doubt, or is so no more."""
        key = (signal.node_id, "clock")
        if not signal.warning:
            return self._repeats.ends(key, signal.at)
        return self._repeats.begins(key, signal.at, CLOCK_REST * self._slot)

    def _news(self, signal: HealthChanged, node: _Node) -> list[News]:
        before, node.state = node.state, signal.state
        was_suspect, node.suspect = node.suspect, signal.suspect
        reason, node.reason = node.reason, signal.reason
        news: list[News] = []
        if signal.state is HealthState.UNHEALTHY:
            if before is not HealthState.UNHEALTHY or reason is not signal.reason:
                news.append(self._worse(signal, node, Turn.UNHEALTHY))
        elif signal.state is HealthState.RECOVERING:
            if before is not HealthState.RECOVERING:
                news.append(News(Turn.RECOVERING, node.latest))
        else:
            if before is not HealthState.HEALTHY:
                news.append(self._better(signal, node, Turn.RECOVERED))
            if signal.suspect and not (was_suspect and before is HealthState.HEALTHY):
                news.append(self._worse(signal, node, Turn.SUSPECT))
            elif was_suspect and before is HealthState.HEALTHY and not signal.suspect:
                news.append(self._better(signal, node, Turn.CLEARED))
        news += self._flag(signal, node.optimistic, signal.optimistic, Turn.OPTIMISTIC, Turn.VERIFIED)
        news += self._flag(signal, node.el_offline, signal.el_offline, Turn.EL_OFFLINE, Turn.EL_BACK)
        # What a node does not say any more is as it was.
        node.optimistic = node.optimistic if signal.optimistic is None else signal.optimistic
        node.el_offline = node.el_offline if signal.el_offline is None else signal.el_offline
        return news

    def _worse(self, signal: HealthChanged, node: _Node, turn: Turn) -> News:
        if node.bad_since is None:
            node.bad_since = signal.at
        node.latest = self._repeats.begins((signal.node_id, turn), signal.at, REST * self._slot)
        node.aloud = node.aloud or node.latest
        node.begun.add(turn)
        return News(turn, node.latest)

    def _better(self, signal: HealthChanged, node: _Node, turn: Turn) -> News:
        gone = signal.at - node.bad_since if node.bad_since is not None else 0.0
        for kind in node.begun:
            self._repeats.ends((signal.node_id, kind), signal.at)
        news = News(turn, node.aloud, gone)
        node.bad_since, node.aloud = None, False
        node.begun.clear()
        return news

    def _flag(self, signal: HealthChanged, before: bool, now: bool | None, turn: Turn, back: Turn) -> list[News]:
        key = (signal.node_id, turn)
        if now is None or now is before:
            return []
        if now:
            return [News(turn, self._repeats.begins(key, signal.at, REST * self._slot))]
        return [News(back, self._repeats.ends(key, signal.at))]
