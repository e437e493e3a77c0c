"""Places in the ranking that moved because other nodes moved: in a flood of them only where each has come to is told.

Where the first of a hundred nodes fails, ninety-nine others move up; while a hundred nodes say one after the other
which chain they are on, there are some 2,500 such moves within a second, by measurement.
"""

from typing import Final

from vc_fallback.base.health_signals import HealthChanged
from vc_fallback.base.signals import GenerationChanged, Signal
from vc_fallback.base.types import NodeId

MOST: Final = 64
"""Moves that are told at once within `WINDOW`; the others are gathered until it is over."""

WINDOW: Final = 1.0
"""Seconds."""


class RankMoves:
    """Bounds how often it is told of a node that nothing but its place is another, or why. Feed it every signal."""

    __slots__ = ("_begun", "_told", "_told_now", "_waiting")

    def __init__(self) -> None:
        self._told: dict[NodeId, HealthChanged] = {}
        self._waiting: dict[NodeId, HealthChanged] = {}
        self._begun = float("-inf")
        self._told_now = 0

    def __call__(self, signal: Signal) -> list[HealthChanged]:
        """Return what is to be told at a signal: moves that were gathered, and itself."""
        if isinstance(signal, GenerationChanged):
            for node_id in (*signal.removed, *signal.changed):
                self._told.pop(node_id, None)
                self._waiting.pop(node_id, None)
        due: list[HealthChanged] = []
        if signal.at >= self._begun + WINDOW and (self._waiting or isinstance(signal, HealthChanged)):
            due = self.rest()
            self._begun, self._told_now = signal.at, len(due)
        if isinstance(signal, HealthChanged) and self._at_once(signal):
            self._told[signal.node_id] = signal
            due.append(signal)
        return due

    def rest(self) -> list[HealthChanged]:
        """Return all that waits."""
        waiting, self._waiting = list(self._waiting.values()), {}
        self._told.update((signal.node_id, signal) for signal in waiting)
        return waiting

    def _at_once(self, signal: HealthChanged) -> bool:
        told = self._told.get(signal.node_id)
        self._waiting.pop(signal.node_id, None)
        if told is None or _own(told) != _own(signal):
            return True
        if (told.rank, told.explanation) == (signal.rank, signal.explanation):
            # It has come back to where it was told to be.
            return False
        if self._told_now < MOST:
            self._told_now += 1
            return True
        self._waiting[signal.node_id] = signal
        return False


def _own(signal: HealthChanged) -> tuple[object, ...]:
    """Return what is a node's own; whether it is ranked at all is part of it (N7)."""
    return (
        signal.state, signal.suspect, signal.reason, signal.optimistic, signal.el_offline, signal.rank is None,
    )  # fmt: skip
