"""Checks every node's `node/syncing`: all at 5/6 of the slot, and sooner those that are not well (N2, N4)."""

import random
from collections.abc import Callable
from functools import partial

import anyio

from vc_fallback.base.background import once
from vc_fallback.base.backoff import Backoff
from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Role, Root, Slot, Sourced
from vc_fallback.base.watch import Watch
from vc_fallback.candidates import Member
from vc_fallback.chain import SlotClock
from vc_fallback.decide.check_times import next_check
from vc_fallback.health.book import HealthBook
from vc_fallback.health.record import NodeRecord
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.pool import NodePool
from vc_fallback.node.values.about import Syncing
from vc_fallback.settings import MAINNET_SLOT

LOOK = 1.0
"""Longest time between two looks at who is due, in slots."""

REST = 4.0
"""Slots between two questions for a node's peers, and for what it has finalized: they seldom change."""


class Checker:
    """One task for all nodes, active or not; each check is a task with its own time-out, so a hung node delays nobody.

    :param troubled: whether a node is to be checked soon for another reason than its health: its stream has ended.
    :param on_good: called after a good check.
    """

    def __init__(
        self,
        book: HealthBook,
        pool: NodePool,
        clock: Clock,
        *,
        troubled: Callable[[NodeId], bool],
        on_good: Callable[[NodeId], None],
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._book = book
        self._pool = pool
        self._clock = clock
        self._troubled = troubled
        self._on_good = on_good
        self._uniform = uniform
        self._sooner: Watch[None] = Watch(None)
        self._under_way: set[NodeId] = set()
        self._trouble: dict[NodeId, tuple[Backoff, float]] = {}
        self._jitter: dict[NodeId, float] = {}
        book.on_sooner = self.wake

    def wake(self) -> None:
        """Look again at once: a check may be due sooner than was thought."""
        self._sooner.set(None)

    async def run(self) -> None:
        """Check for ever."""
        book = self._book
        async with anyio.create_task_group() as tasks:
            while True:
                sooner = self._sooner.watcher()
                now = self._clock.now()
                again = now + LOOK * (book.slots.duration if book.slots is not None else MAINNET_SLOT)
                for gone in [node_id for node_id in (*self._trouble, *self._jitter) if node_id not in book.records]:
                    self._trouble.pop(gone, None)
                    self._jitter.pop(gone, None)
                for record in list(book.records.values()):
                    due = self._due(record, now)
                    if now >= due and record.node_id not in self._under_way:
                        self._under_way.add(record.node_id)
                        record.answered = None
                        tasks.start_soon(once, partial(self._check, record.member))
                    elif now < due:
                        again = min(again, due)
                changes = book.look()
                again = again if changes is None else min(again, changes)
                with anyio.move_on_after(max(0.001, again - self._clock.now())):
                    await sooner.wait()

    def _due(self, record: NodeRecord, now: float) -> float:
        """Return when to check a node: by its health, soon and then ever later while its stream is down, or now.

        Now is when a node that failed its checks has opened its stream, at most once for each connection.
        """
        node_id, book = record.node_id, self._book
        if record.answered is not None:
            return record.answered
        part = self._jitter.setdefault(node_id, self._uniform(-1, 1))
        due = next_check(record.health, now, book.slots, book.times.often, part)
        if not self._troubled(node_id):
            self._trouble.pop(node_id, None)
            return due
        if node_id not in self._trouble:
            backoff = Backoff(book.times.often)
            self._trouble[node_id] = (backoff, now + backoff.failed())
        return min(due, self._trouble[node_id][1])

    async def _check(self, member: Member) -> None:
        """Check one node. What comes when it has left the list, or is reached in another way, is dropped."""
        node_id = member.node_id
        try:
            node = self._pool.get(node_id)
            await self._ask(node)
        except KeyError:
            return
        finally:
            self._under_way.discard(node_id)
            self._jitter.pop(node_id, None)
            if node_id in self._trouble:
                backoff = self._trouble[node_id][0]
                record = self._book.records.get(node_id)
                if record is not None and not record.health.failed:
                    backoff.reset()
                self._trouble[node_id] = (backoff, self._clock.now() + backoff.failed())
            self.wake()

    async def _ask(self, node: BeaconNode) -> None:
        book, node_id = self._book, node.node_id
        answer: Sourced[Syncing] | None = None
        problem = ""
        try:
            answer = await node.syncing(timeout=book.times.timeout)
        except NodeError as error:
            problem = error.words
        if node_id not in book.records or self._pool.get(node_id) is not node:
            return
        if answer is None:
            book.check_failed(node_id, problem)
            return
        syncing = answer.value
        book.check_passed(
            node_id,
            head_slot=syncing.head_slot,
            sync_distance=syncing.sync_distance,
            latency=answer.latency or 0.0,
            optimistic=syncing.is_optimistic,
            el_offline=syncing.el_offline,
        )
        self._on_good(node_id)
        await self._ask_more(node)

    async def _ask_more(self, node: BeaconNode) -> None:
        """Ask what is needed less often: peers (N9), finality (N3). A failure of these says nothing of health."""
        book, node_id, slots = self._book, node.node_id, self._book.slots
        record = book.records.get(node_id)
        if slots is None or record is None:
            return
        if not record.member.has(Role.EVENTS):
            await self._identify(node, record, slots)
        if record.excluded:
            return
        rest = REST * slots.duration
        now = self._clock.now()
        if record.peers_at is None or now >= record.peers_at + rest:
            record.peers_at = now
            try:
                count = (await node.peer_count(timeout=book.times.timeout)).value.connected
            except NodeError:
                count = None
            if count is not None and book.records.get(node_id) is record:
                book.peers(node_id, count)
        if record.finality_at is None or now >= record.finality_at + rest:
            record.finality_at = now
            try:
                found = (await node.finality_checkpoints("head", timeout=book.times.timeout)).value.data.finalized
            except NodeError:
                return
            if book.records.get(node_id) is record:
                book.finalized(node_id, found.epoch, found.root)

    async def _identify(self, node: BeaconNode, record: NodeRecord, slots: SlotClock) -> None:
        """Ask a node without a head stream which chain it is on, once in an epoch (N7); streams ask for themselves."""
        now = self._clock.now()
        epoch = slots.chain.slots_per_epoch * slots.duration
        if record.identified_at is not None and not record.excluded and now < record.identified_at + epoch:
            return
        record.identified_at = now
        try:
            chain = (await node.identity(timeout=self._book.times.timeout)).value
        except NodeError:
            return
        if self._book.records.get(node.node_id) is record:
            mismatch = slots.chain.mismatch(chain, slots.epoch_at(self._clock.now()))
            self._book.identified(node.node_id, mismatch)


class SlotEnds:
    """Looks back on each slot when it is over (N3, N8), and asks for the headers that ties nodes' branches together."""

    def __init__(self, book: HealthBook, pool: NodePool, clock: Clock) -> None:
        self._book = book
        self._pool = pool
        self._clock = clock

    async def run(self) -> None:
        """Look for ever."""
        book = self._book
        async with anyio.create_task_group() as tasks:
            while True:
                slots = book.slots
                if slots is None or slots.before_genesis(self._clock.now()):
                    await anyio.sleep(1.0)
                    continue
                slot = slots.slot_at(self._clock.now())
                await anyio.sleep(max(0.0, slots.start_of(Slot(slot + 1)) - self._clock.now()))
                book.slot_ended(slot)
                for node_id, root in book.consistency.wanted:
                    tasks.start_soon(once, partial(self._link, node_id, root))

    async def _link(self, node_id: NodeId, root: Root) -> None:
        try:
            found = (await self._pool.get(node_id).header(root, timeout=self._book.times.timeout)).value.data
        except (NodeError, KeyError):
            return
        message = found.header.message
        # A link is believed because it hashes to the root it is listed under, whoever gives it.
        if message.hash_tree_root() == root:
            self._book.consistency.branches.link(root, message.slot, message.parent_root)
