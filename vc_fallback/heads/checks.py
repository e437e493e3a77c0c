"""Checks every node's `node/syncing`: all at 5/6 of the slot, and sooner those that are not healthy (N2, N4)."""

from functools import partial

import anyio

from vc_fallback.base.backoff import Backoff
from vc_fallback.base.errors import NodeError
from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import NodeId
from vc_fallback.config import MAINNET_SLOT
from vc_fallback.decide.health import regular_check
from vc_fallback.heads.background import once
from vc_fallback.heads.cache import HeadCache
from vc_fallback.heads.stream import HeadStream
from vc_fallback.heads.supervisor import Supervisor

LOOK = 1.0
"""Longest time between two looks at who is due, in slots."""


class Checks:
    """One task for all nodes; each check is a task with its own time-out, so a hung node delays nobody's."""

    def __init__(self, cache: HeadCache, supervisor: Supervisor) -> None:
        self._cache = cache
        self._supervisor = supervisor
        self._under_way: set[NodeId] = set()
        self._soon: dict[NodeId, tuple[Backoff, float]] = {}

    async def run(self) -> None:
        """Check for ever."""
        async with anyio.create_task_group() as tasks:
            while True:
                sooner = self._cache.checked_sooner.watcher()
                now = self._cache.clock.now()
                again = now + LOOK * (self._cache.slots.duration if self._cache.slots is not None else MAINNET_SLOT)
                streams = {stream.node_id: stream for stream in self._supervisor.streams if stream.listed}
                for gone in [node_id for node_id in self._soon if node_id not in streams]:
                    del self._soon[gone]
                for stream in streams.values():
                    due = self._due(stream, now)
                    if now >= due and stream.node_id not in self._under_way:
                        self._under_way.add(stream.node_id)
                        tasks.start_soon(once, partial(self._check, stream))
                    elif now < due:
                        again = min(again, due)
                with anyio.move_on_after(max(0.001, again - self._cache.clock.now())):
                    await sooner.wait()

    def _due(self, stream: HeadStream, now: float) -> float:
        """Return when a node is to be checked: in the slot's turn, or soon and then ever later while it is not well."""
        facts = stream.facts
        slots = self._cache.slots
        if facts.unhealthy or facts.health.failed or facts.stream.state is StreamState.BACKOFF:
            if stream.node_id not in self._soon:
                backoff = Backoff(self._cache.times.check)
                self._soon[stream.node_id] = (backoff, now + backoff.failed())
            return self._soon[stream.node_id][1]
        self._soon.pop(stream.node_id, None)
        if slots is None or slots.before_genesis(now):
            return float("inf")
        return regular_check(facts.health, now, slots)

    async def _check(self, stream: HeadStream) -> None:
        try:
            await self._ask(stream)
        finally:
            self._under_way.discard(stream.node_id)

    async def _ask(self, stream: HeadStream) -> None:
        cache = self._cache
        good = True
        try:
            syncing = (await stream.node.syncing(timeout=cache.times.verify_timeout)).value
        except NodeError as error:
            good = False
            problem = error.words
        if not stream.listed:
            return
        facts = stream.facts
        health = facts.health
        health.checked = cache.clock.now()
        if good:
            health.failed, health.error = 0, ""
            health.head_slot, health.is_syncing = syncing.head_slot, syncing.is_syncing
            health.optimistic, health.el_offline = syncing.is_optimistic, syncing.el_offline
            stream.nudge()
        else:
            health.failed += 1
            health.error = problem
        if stream.node_id in self._soon:
            backoff = self._soon[stream.node_id][0]
            if good:
                backoff.reset()
            self._soon[stream.node_id] = (backoff, health.checked + backoff.failed())
        cache.judge_health(stream.node_id)
        if not good or facts.unhealthy:
            cache.checked_sooner.set(None)
