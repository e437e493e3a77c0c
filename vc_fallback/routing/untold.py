"""What one node may not know of what all were told ahead of duties, and when it is told that again (Q14)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from vc_fallback.routing.preparations import Kind, Preparation

TRIES = 4
"""How often a node is told again what it fails at, before it has to come back again: it may fail at it for ever. One
that cannot be reached, or is not able yet, is told until it took it."""

FIRST = 0.5
"""Slots from the first failure until a kind is told again; twice as many with each, up to the longest."""

LONGEST = {Preparation.PROPOSERS: 1.0, Preparation.REGISTRATIONS: 8.0}
"""Slots between two tries at most: whom a block pays is worth the most, and what relays are told takes the longest."""

_LONGEST_OF_OTHERS = 2.0

FLAPPING = 2.0
"""Slots between two tellings of a node whose stream does nothing but end; registrations, which are large and go on to
relays, wait for an epoch."""


@dataclass(slots=True)
class _Mark:
    """A kind that the node may not know.

    :param away: whether the node was away, or never heard it; else only a connection of it has ended.
    """

    since: float
    away: bool
    number: int = 0
    failures: int = 0
    own: int = 0
    after: float = -math.inf


class Untold:
    """It takes `now` and waits for nothing; moments are loop time, durations seconds."""

    def __init__(self, now: float) -> None:
        self._known_since = now
        self._marks: dict[Kind, _Mark] = {}
        self._told: dict[Kind, float] = {}
        self._rest = -math.inf

    def note(self, kinds: Iterable[Kind], now: float, *, away: bool) -> None:
        """Note that the node may not know these any more."""
        for kind in kinds:
            mark = self._marks.setdefault(kind, _Mark(now, away))
            mark.away |= away
            mark.number += 1

    def due(self, now: float, *, slot: float, epoch: float, streams: bool) -> list[Kind]:
        """Return what the node is to be told now, in the order in which it is.

        :param streams: whether its head stream stands, or it is to have none. A node whose stream does not come back is
            told all the same, later.
        """
        due = [kind for kind, mark in self._marks.items() if self._when(kind, mark, slot, epoch, streams) <= now]
        return sorted(due, key=lambda kind: kind.rank)

    def told_since(self, kind: Kind, moment: float) -> bool:
        """Whether the node was told a kind again, or has become known, since a moment."""
        return self._told.get(kind, self._known_since) > moment

    def number(self, kind: Kind) -> int:
        """Return a number that is another one when a kind is noted meanwhile."""
        return self._marks[kind].number

    def told(self, kind: Kind, number: int, now: float) -> None:
        """Note that the node took it, as of that number."""
        self._told[kind] = now
        mark = self._marks.get(kind)
        if mark is not None and mark.number == number:
            del self._marks[kind]

    def forget(self, kind: Kind) -> None:
        """There is nothing to be told of a kind."""
        self._marks.pop(kind, None)

    def failed(self, kind: Kind, now: float, slot: float, *, own: bool) -> None:
        """Note that it did not take it.

        :param own: whether it may fail at it for ever.
        """
        mark = self._marks.get(kind)
        if mark is None:
            return
        longest = LONGEST.get(kind.preparation, _LONGEST_OF_OTHERS)
        mark.after = now + slot * min(longest, FIRST * 2.0 ** min(mark.failures, 8))
        mark.failures += 1
        mark.own += own
        if mark.own >= TRIES:
            del self._marks[kind]

    def rest(self, until: float) -> None:
        """Tell the node nothing until then: it could not be reached."""
        self._rest = until

    def wakes(self, now: float) -> float | None:
        """Return the moment of the next try of what failed, `None` where nothing did."""
        moments = [max(mark.after, self._rest) for mark in self._marks.values()]
        return min((moment for moment in moments if moment > now), default=None)

    def _when(self, kind: Kind, mark: _Mark, slot: float, epoch: float, streams: bool) -> float:
        when = max(mark.after, self._rest)
        if not streams:
            when = max(when, mark.since + slot)
        if not mark.away and kind in self._told:
            seldom = kind.preparation is Preparation.REGISTRATIONS or not streams
            when = max(when, self._told[kind] + (epoch if seldom else FLAPPING * slot))
        return when
