"""Looks at the clocks of every head stream, verifies and asks silent ones, and replaces old connections (H5, H14)."""

import math
import random
from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from vc_fallback.base.signals import StreamReason, StreamState
from vc_fallback.base.types import NodeId, Slot
from vc_fallback.base.watch import Watch
from vc_fallback.chain import SlotClock
from vc_fallback.decide.freshness import Action, Verdict, announced, judge, unknown_start, watchdog
from vc_fallback.heads.cache import HeadCache
from vc_fallback.heads.stream import HeadStream
from vc_fallback.heads.supervisor import Supervisor

UNDER_WAY = 1 / 12
"""Part of a slot in which a head that the node or others have already may still be on its way over the stream."""

JITTER = 1 / 2
"""Longest wait, in slots, before a replacement by the hard clock."""


class Watchdog:
    """One task for all streams; looks at every slot's start and whenever a clock of a stream runs out."""

    def __init__(
        self, cache: HeadCache, supervisor: Supervisor, uniform: Callable[[float, float], float] = random.uniform
    ) -> None:
        self._cache = cache
        self._supervisor = supervisor
        self._uniform = uniform
        self._verifying: set[NodeId] = set()
        self._replacing = False
        self._look = Watch(None)

    async def run(self) -> None:
        """Watch for ever; nothing runs until the chain is known."""
        cache = self._cache
        slot: Slot | None = None
        async with anyio.create_task_group() as tasks:
            while True:
                looked = self._look.watcher()
                slots = cache.slots
                if slots is not None:
                    now = cache.clock.now()
                    before, slot = slot, slots.slot_at(now)
                    if slot != before:
                        cache.slot_began()
                        slots = cache.slots or slots
                        slot = slots.slot_at(now)
                    again = self._look_at_all(slots, now, tasks)
                    if before is not None and slot > before:
                        self._ask_the_silent(slots.start_of(before))
                    cache.tell_verdicts()
                else:
                    again = cache.clock.now() + 1.0
                with anyio.move_on_after(max(0.001, again - cache.clock.now())):
                    await looked.wait()

    def wake(self) -> None:
        """Look again at once: the chain has become known, or a replacement is over."""
        self._look.set(None)

    def _look_at_all(self, slots: SlotClock, now: float, tasks: TaskGroup) -> float:
        cache = self._cache
        again = slots.start_of(Slot(slots.slot_at(now) + 1))
        newest_elsewhere = cache.delivery.newest_others()
        oldest: tuple[float, HeadStream] | None = None
        for stream in self._supervisor.streams:
            if not stream.listed:
                continue
            facts = stream.facts.stream
            watch = watchdog(facts, newest_elsewhere(stream.node_id), now, slots, cache.times)
            again = min(again, watch.again)
            if watch.due is Action.VERIFY and stream.node_id not in self._verifying:
                facts.verified = now
                self._verifying.add(stream.node_id)
                tasks.start_soon(self._verify, stream)
            elif watch.due is Action.RECONNECT:
                stream.reconnect(StreamReason.TRANSPORT_SILENCE)
            elif watch.due is Action.REPLACE:
                since = stream.last_renewed
                # A node that lets no second connection in is left alone for as long, and keeps nobody else from his.
                if now < since + (cache.times.hard_clock or 0.0):
                    continue
                if oldest is None or since < oldest[0]:
                    oldest = (since, stream)
        if oldest is not None and not self._replacing:
            self._replacing = True
            tasks.start_soon(self._replace, oldest[1], slots.duration)
        return again

    def _ask_the_silent(self, since: float) -> None:
        """Ask nodes for their heads that have announced none in the slot that is over (H14, case 45).

        There may have been no block, or the node's head is another one by now and no event says so. It is no verdict.
        """
        for stream in self._supervisor.streams:
            if not stream.listed or stream.node_id in self._verifying or self._cache.times.head_silence is None:
                continue
            facts = stream.facts.stream
            reorg = facts.last_reorg[1] if facts.last_reorg is not None else -math.inf
            # Where the connection was made in that slot, or verified, it was asked then.
            latest = max(facts.last_head_at or -math.inf, facts.verified or -math.inf, reorg)
            if facts.requested is not None and max(facts.requested, latest) < since:
                stream.ask_for_head()

    async def _replace(self, stream: HeadStream, slot_duration: float) -> None:
        """One node at a time, jittered, so that a chain without blocks does not cost every connection at once."""
        try:
            await anyio.sleep(self._uniform(0, JITTER * slot_duration))
            await stream.replace()
        finally:
            self._replacing = False
            self.wake()

    async def _verify(self, stream: HeadStream) -> None:
        try:
            await self._find_out(stream)
        finally:
            self._verifying.discard(stream.node_id)

    async def _find_out(self, stream: HeadStream) -> None:
        """Poll the node's own head beside the others' and act on what that means."""
        cache = self._cache
        if not stream.listed:
            return
        facts = stream.facts.stream
        connection, current, asked = facts.requested, facts.last_current_at, cache.clock.now()
        header = await stream.polls.head()
        own = header.slot if header is not None else None
        slots = cache.slots
        if slots is None or not self._same(stream, connection):
            return
        if facts.last_current_at != current:
            # A current head came meanwhile: the stream has answered for itself, and later than the poll.
            return
        if own is not None and unknown_start(facts):
            facts.baseline = own
            return
        verdict = judge(own, announced(facts, slots), cache.delivery.newest_elsewhere(stream.node_id))
        if verdict is Verdict.STALLED:
            # A poll that failed had its time already; one that was refused at once had not.
            had = 0.0 if own is not None else cache.clock.now() - asked
            await anyio.sleep(max(0.0, UNDER_WAY * slots.duration - had))
            if not self._same(stream, connection) or facts.last_current_at != current:
                return
            if own is not None and announced(facts, slots) >= own:
                return
        facts.behind = verdict is Verdict.BEHIND
        detail = "no answer while other nodes have newer heads" if own is None else f"the node is at slot {own}"
        if verdict is Verdict.STALLED:
            facts.stalled = True
            facts.state = StreamState.STALLED
            cache.tell.stream(stream.node_id, StreamReason.HEAD_SILENCE, detail)
        # A primary that has just been found out holds the gate no more (C6).
        cache.look_at_gate()
        if verdict is Verdict.STALLED:
            stream.reconnect(StreamReason.HEAD_SILENCE, detail)

    def _same(self, stream: HeadStream, connection: float | None) -> bool:
        return stream.listed and connection is not None and stream.facts.stream.requested == connection
