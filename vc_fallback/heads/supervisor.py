"""Owns the head streams, keyed by node id, and makes them fit the candidate list after every change (G2)."""

import logging
from collections.abc import Callable, Iterable

import anyio
from anyio.abc import TaskGroup

from vc_fallback.base.background import once
from vc_fallback.base.backoff import Backoff
from vc_fallback.base.signals import StreamReason, StreamState
from vc_fallback.base.types import NodeId, Role
from vc_fallback.candidates import Member
from vc_fallback.decide.ledger import StreamFacts
from vc_fallback.heads.cache import HeadCache
from vc_fallback.heads.stream import HeadStream
from vc_fallback.node.client import BeaconNode

logger = logging.getLogger(__name__)

CLOSING_TIME = 1.0
"""Seconds that closing a node's connections may take."""


class _Unit:
    """A stream as a task: cancelled by its scope, awaited by its event."""

    def __init__(self, stream: HeadStream, facts: StreamFacts) -> None:
        self.stream = stream
        self.facts = facts
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()
        self.reason = StreamReason.CLOSED


class Supervisor:
    """Starts, stops and restarts head streams; at most one reconcile runs, and the last list rules."""

    def __init__(self, cache: HeadCache, make_node: Callable[[Member], BeaconNode]) -> None:
        self._cache = cache
        self._make_node = make_node
        self._units: dict[NodeId, _Unit] = {}
        self._restart_before = 0

    @property
    def streams(self) -> Iterable[HeadStream]:
        """The streams that run."""
        return [unit.stream for unit in self._units.values()]

    def get(self, node_id: NodeId) -> HeadStream | None:
        """Return a node's stream."""
        unit = self._units.get(node_id)
        return unit.stream if unit is not None else None

    def waits(self, node_id: NodeId) -> bool:
        """Whether a node's stream has ended and waits to be opened again: the node is checked sooner (N4)."""
        facts = self._cache.ledger.nodes.get(node_id)
        return facts is not None and facts.stream.state is StreamState.BACKOFF

    def nudge(self, node_id: NodeId) -> None:
        """Take a good check of a node: a stream that waits because its node was out of reach tries at once (H4)."""
        stream = self.get(node_id)
        if stream is not None and stream.listed:
            stream.nudge()

    def restart_all(self) -> None:
        """Give every stream from before the present generation a new start at the next reconcile."""
        self._restart_before = self._cache.candidates.generation

    async def run(self) -> None:
        """Follow the list for ever."""
        watcher = self._cache.candidates.watch.watcher(seen=False)
        async with anyio.create_task_group() as tasks:
            while True:
                await watcher.wait()
                await self._reconcile(tasks)

    async def _reconcile(self, tasks: TaskGroup) -> None:
        leaving = [unit for unit in self._units.values() if not self._stays(unit)]
        for unit in leaving:
            unit.reason = StreamReason.REMOVED
            unit.scope.cancel()
        for unit in leaving:
            await unit.ended.wait()
        # The list may have changed while the old streams ended; what counts is the list as it is now.
        for member in self._cache.candidates.current.of(Role.EVENTS):
            if member.node_id not in self._units:
                self._start(member, tasks)

    def _start(self, member: Member, tasks: TaskGroup) -> None:
        try:
            node = self._make_node(member)
        except Exception:
            # The others are followed all the same.
            logger.exception("%s: cannot be asked", member.node_id)
            return
        stream = HeadStream(member.node_id, member.candidate, node, self._cache)
        unit = self._units[member.node_id] = _Unit(stream, self._cache.ledger.nodes[member.node_id].stream)
        tasks.start_soon(self._guard, unit)

    def _stays(self, unit: _Unit) -> bool:
        """Whether a stream goes on: its facts were not purged since it began, not even for the time of one list."""
        facts = self._cache.ledger.nodes.get(unit.stream.node_id)
        return facts is not None and facts.stream is unit.facts and unit.stream.born >= self._restart_before

    async def _guard(self, unit: _Unit) -> None:
        """Run one stream. A mistake of our own in it costs nobody else anything: it is logged, the stream restarts."""
        stream = unit.stream
        backoff = Backoff(self._cache.times.backoff)
        try:
            with unit.scope:
                while True:
                    try:
                        await stream.run()
                    except Exception:
                        logger.exception("%s: head stream", stream.node_id)
                    wait = backoff.failed()
                    self._tell(stream, StreamState.BACKOFF, StreamReason.INTERNAL, backoff.failures, wait)
                    await anyio.sleep(wait)
        finally:
            with anyio.move_on_after(CLOSING_TIME, shield=True):
                await once(stream.node.aclose)
            self._units.pop(stream.node_id, None)
            self._tell(stream, StreamState.STOPPED, unit.reason, 0, None)
            unit.ended.set()

    def _tell(
        self, stream: HeadStream, state: StreamState, reason: StreamReason, failures: int, retry_in: float | None
    ) -> None:
        if stream.listed:
            stream.facts.stream.state = state
        self._cache.tell.stream_ended(stream.node_id, state, reason, failures, retry_in)
