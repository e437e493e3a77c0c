"""Asking again for heads that were withheld because they were optimistic: no event says that one became valid (H12)."""

from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from vc_fallback.base.types import HeadSource, NodeId, Root
from vc_fallback.decide.ledger import NodeHead
from vc_fallback.heads.cache import HeadCache
from vc_fallback.heads.supervisor import Supervisor

INTERVAL = 1 / 12
"""Between two polls, as a part of a slot."""

FOR = 1.0
"""How long a withheld head is asked for, in slots from its coming."""


class OptimisticPolls:
    """At most one poller per node; a newer withheld head lengthens its time.

    :param spawn: starts a function as a task.
    """

    def __init__(
        self, cache: HeadCache, supervisor: Supervisor, spawn: Callable[[Callable[[], Awaitable[None]]], None]
    ) -> None:
        self._cache = cache
        self._supervisor = supervisor
        self._spawn = spawn
        self._until: dict[NodeId, float] = {}
        self._asked: dict[NodeId, Root] = {}
        """The block for which each node was asked last."""

    def begin(self, head: NodeHead) -> None:
        """Ask a node again and again until its head is valid, or a slot has gone by since the stream announced it."""
        slots, delivered = self._cache.slots, self._cache.delivery.delivered
        if slots is None or (delivered is not None and head.slot < delivered.head.slot):
            return
        running = head.node_id in self._until
        known, self._asked[head.node_id] = self._asked.get(head.node_id), head.root
        for gone in self._asked.keys() - self._cache.ledger.nodes.keys():
            del self._asked[gone]
        if not running and head.source is HeadSource.POLL and head.root == known:
            # Its slot of polls is over, and it is found once more when a slot has passed in silence (H14).
            return
        # The polls' own answers come here too, and must not lengthen their time for ever.
        if not running or head.source is HeadSource.STREAM:
            self._until[head.node_id] = head.received + FOR * slots.duration
        if not running:
            self._spawn(partial(self._poll, head.node_id))

    def checked(self, node_id: NodeId) -> None:
        """Ask a node once more whose check was good: by that its head is valid, whatever was said of it before, and the
        polls may be over."""
        cache = self._cache
        entry, record = cache.delivery.entries.get(node_id), cache.book.records.get(node_id)
        if entry is None or not entry.optimistic or record is None or record.health.optimistic is not False:
            return
        if node_id not in self._until:
            self._until[node_id] = cache.clock.now()
            self._spawn(partial(self._poll, node_id, at_once=True))

    async def _poll(self, node_id: NodeId, *, at_once: bool = False) -> None:
        cache = self._cache
        try:
            if at_once and (stream := self._supervisor.get(node_id)) is not None:
                await stream.polls.head()
            while cache.slots is not None:
                await anyio.sleep(INTERVAL * cache.slots.duration)
                entry = cache.delivery.entries.get(node_id)
                stream = self._supervisor.get(node_id)
                if stream is None or entry is None or not entry.optimistic:
                    return
                if cache.clock.now() > self._until[node_id]:
                    return
                await stream.polls.head()
        finally:
            self._until.pop(node_id, None)
