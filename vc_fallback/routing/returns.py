"""Notices who was away and has come back: such a node is told again what it forgot (Q14)."""

import math
from collections.abc import Awaitable, Callable
from functools import partial

from vc_fallback.base.errors import NodeError
from vc_fallback.base.health import HealthState
from vc_fallback.base.health_signals import HealthChanged
from vc_fallback.base.signals import (
    GenerationChanged,
    HeadDelivered,
    NodeHeadSeen,
    NodeQuarantined,
    Signal,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import NodeId
from vc_fallback.node.failures import Closed, ConnectError, RetryLater, Unreachable
from vc_fallback.routing.desk import Desk
from vc_fallback.routing.preparations import PROPOSERS, Kind, Preparations
from vc_fallback.routing.runner import Timer
from vc_fallback.routing.untold import FIRST, Untold

TellAgain = Callable[[NodeId, Kind], Awaitable[NodeError | None]]
"""Tells a node all that is kept of a kind; returns what it failed at."""

EPOCH = 32
"""Slots of an epoch while the chain is not known."""


class Returns:
    """An observer. A node was away when it could not be reached, was unhealthy or quarantined, or it is new; it may
    have been when a connection of it ended: then it is told again, too, but not every few seconds.

    A node without a head stream may be restarted and nobody sees it: it is told whom to pay once an epoch anyhow.
    """

    def __init__(self, desk: Desk, preparations: Preparations, tell_again: TellAgain) -> None:
        self._desk = desk
        self._preparations = preparations
        self._tell_again = tell_again
        self._nodes: dict[NodeId, Untold] = {}
        self._being_told: set[NodeId] = set()
        self._timers: dict[NodeId, Timer] = {}
        self._reset_at: dict[NodeId, float] = {}
        """When a kept connection of a node was last found to have ended."""

    def __call__(self, signal: Signal) -> None:
        """Take a signal."""
        if isinstance(signal, StreamChanged):
            if signal.state in (StreamState.BACKOFF, StreamState.STOPPED):
                self.not_told(signal.node_id, away=signal.reason is StreamReason.CONNECT_FAILED)
            self._look(signal.node_id, signal.at)
        elif isinstance(signal, HealthChanged):
            if signal.state is HealthState.UNHEALTHY:
                self.not_told(signal.node_id)
            elif signal.suspect and not self._desk.chain.has_stream(signal.node_id):
                # It is for any request that was not answered, which one of those that tell it again may be; a stream
                # that stands says that the node is the same.
                self.not_told(signal.node_id, away=False)
            self._look(signal.node_id, signal.at)
        elif isinstance(signal, NodeHeadSeen):
            self._look(signal.node_id, signal.at)
        elif isinstance(signal, HeadDelivered):
            for node_id in self._desk.candidates.current.members:
                self._look(node_id, signal.at)
        elif isinstance(signal, NodeQuarantined):
            self.not_told(signal.node_id)
        elif isinstance(signal, GenerationChanged):
            for node_id in (*signal.removed, *signal.changed):
                self._forget(node_id)
            for node_id in (*signal.added, *signal.changed):
                self.not_told(node_id)

    def not_told(self, node_id: NodeId, kind: Kind | None = None, *, away: bool = True) -> None:
        """Note that a node may not have heard what all were told: it is told again as soon as it can hear.

        :param kind: what it was; `None` for all that is kept.
        :param away: whether it was away, or did not hear it; else there is a doubt.
        """
        if node_id in self._desk.candidates.current:
            now = self._desk.clock.now()
            kinds = self._preparations.kinds(now) if kind is None else [kind]
            self._nodes.setdefault(node_id, Untold(now)).note(kinds, now, away=away)

    def ended(self, node_id: NodeId, error: NodeError) -> None:
        """Take how a request failed: a node to which no connection can be made may be restarted."""
        if isinstance(error, ConnectError):
            self.not_told(node_id)

    def _forget(self, node_id: NodeId) -> None:
        self._nodes.pop(node_id, None)
        self._reset_at.pop(node_id, None)
        timer = self._timers.pop(node_id, None)
        if timer is not None:
            timer.cancel()

    @property
    def _epoch(self) -> float:
        slots = self._desk.chain.slots
        return self._desk.slot_duration * (EPOCH if slots is None else slots.chain.slots_per_epoch)

    def _look(self, node_id: NodeId, at: float) -> None:
        """See whether a node is to be told something."""
        if node_id in self._being_told or not self._desk.runner.open or node_id not in self._desk.candidates.current:
            return
        self._doubt(node_id, self._nodes.setdefault(node_id, Untold(at)), at)
        if self._next(node_id) is not None:
            self._being_told.add(node_id)
            self._desk.runner.start(partial(self._run, node_id), on_end=lambda _: self._over(node_id))

    def _doubt(self, node_id: NodeId, untold: Untold, at: float) -> None:
        """Note what tells of the restart of a node whose stream does not."""
        if self._desk.chain.has_stream(node_id):
            return
        reset_at = self._desk.pool.get(node_id).http.reset_at
        if reset_at > self._reset_at.get(node_id, -math.inf):
            self._reset_at[node_id] = reset_at
            self.not_told(node_id, away=False)
        if not untold.told_since(PROPOSERS, at - self._epoch):
            untold.note([PROPOSERS], at, away=False)

    def _next(self, node_id: NodeId) -> Kind | None:
        """Return what a node is to be told next, where it can hear it."""
        desk, untold, now = self._desk, self._nodes.get(node_id), self._desk.clock.now()
        if untold is None:
            return None
        streams = desk.chain.has_stream(node_id) is not False
        due = untold.due(now, slot=desk.slot_duration, epoch=self._epoch, streams=streams)
        place = desk.book.ranking.places.get(node_id)
        if not due or place is None or place.facts.suspect or not place.facts.answers:
            return None
        nodes = desk.planner.plan(None).nodes
        if node_id not in nodes or desk.cooldowns.left(node_id, now) > 0:
            return None
        kept = self._preparations.kinds(now)
        for kind in due:
            # Of subscriptions that are not broadcast only the node knows that is asked first.
            meant = not kind.subscribes or "subscriptions" in desk.settings.broadcast or node_id == nodes[0]
            if not meant or kind not in kept:
                untold.forget(kind)
            elif not desk.cooldowns.left(node_id, now, kind.route.what):
                # What it has just refused it would refuse again (Q11).
                return kind
        return None

    async def _run(self, node_id: NodeId) -> None:
        """Tell a node what it does not know, the most urgent first.

        That it refuses something, fails at it or does not answer is no reason not to tell it the rest; only what failed
        is told again. Where no connection can be made all of it waits.
        """
        desk = self._desk
        while (kind := self._next(node_id)) is not None:
            untold = self._nodes[node_id]
            number = untold.number(kind)
            try:
                problem = await self._tell_again(node_id, kind)
            except BaseException:
                untold.failed(kind, desk.clock.now(), desk.slot_duration, own=False)
                raise
            now = desk.clock.now()
            if problem is None:
                untold.told(kind, number, now)
                continue
            untold.failed(kind, now, desk.slot_duration, own=not isinstance(problem, (Unreachable, RetryLater)))
            if isinstance(problem, (ConnectError, Closed)):
                untold.rest(now + FIRST * desk.slot_duration)
                return

    def _over(self, node_id: NodeId) -> None:
        self._being_told.discard(node_id)
        untold, runner, now = self._nodes.get(node_id), self._desk.runner, self._desk.clock.now()
        wakes = None if untold is None else untold.wakes(now)
        before = self._timers.pop(node_id, None)
        if before is not None:
            before.cancel()
        if wakes is not None and runner.open:
            self._timers[node_id] = runner.at(wakes, partial(self._wake, node_id))

    def _wake(self, node_id: NodeId) -> None:
        self._timers.pop(node_id, None)
        self._look(node_id, self._desk.clock.now())
