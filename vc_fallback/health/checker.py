"""Checks every node's `node/syncing`: all at 5/6 of the slot, and sooner those that are not well (N2, N4)."""

import math
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import anyio

from vc_fallback.base.background import once
from vc_fallback.base.backoff import Backoff
from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Role, Root, Slot
from vc_fallback.base.watch import Watch
from vc_fallback.chain import ChainIdentity
from vc_fallback.decide.check_times import next_check
from vc_fallback.health.book import HealthBook
from vc_fallback.health.record import NodeRecord
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.pool import NodePool
from vc_fallback.settings import MAINNET_SLOT

LOOK = 1.0
"""Longest time between two looks at who is due, in slots."""

REST = 4.0
"""Slots between two questions for a node's peers, for what it has finalized, and, where it is on another chain, for
its chain: they seldom change."""

STEPS = 8
"""Headers asked for one after the other on each branch when a slot is over, of eight branches at the most: a fork of 60
slots is known after nine slots."""

AT_ONCE = 2
"""Checks that are begun in one step of the event loop."""


@dataclass(slots=True)
class _Turn:
    """When a node is checked, apart from its health. A node that leaves the list and comes back begins anew."""

    record: NodeRecord
    part: float
    """How much of the jitter is taken for its next check."""
    under_way: bool = False
    trouble: Backoff | None = None
    """Counts the checks of a node that is checked sooner for another reason than its health."""
    soon: float = math.inf
    earliest: float = 0.0
    """Not before this moment, whatever is due: the last check broke off by a mistake of our own."""


class Checker:
    """One task for all nodes, active or not; each check is a task with its own time-out, so a hung node delays nobody.

    A node is checked at once when it is new and when its chain has become known to be ours: what is known of one that
    was never asked is nothing, and until then it counts as well.

    :param troubled: whether a node is to be checked soon for another reason than its health: its stream has ended.
    :param on_good: called after a good check.
    :param on_identity: called with what a node says of its chain.
    """

    def __init__(
        self,
        book: HealthBook,
        pool: NodePool,
        clock: Clock,
        *,
        troubled: Callable[[NodeId], bool],
        on_good: Callable[[NodeId], None],
        on_identity: Callable[[NodeId, ChainIdentity], None],
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._book = book
        self._pool = pool
        self._clock = clock
        self._troubled = troubled
        self._on_good = on_good
        self._on_identity = on_identity
        self._uniform = uniform
        self._sooner: Watch[None] = Watch(None)
        self._turns: dict[NodeId, _Turn] = {}
        self._again = math.inf
        """When the next look is."""
        book.on_sooner = self.wake

    def wake(self) -> None:
        """Look again at once: a check may be due sooner than was thought."""
        self._sooner.set(None)

    async def run(self) -> None:
        """Check for ever."""
        book = self._book
        self._turns.clear()
        async with anyio.create_task_group() as tasks:
            while True:
                sooner = self._sooner.watcher()
                now = self._clock.now()
                changes = book.look()
                self._again = now + LOOK * (book.slots.duration if book.slots is not None else MAINNET_SLOT)
                if changes is not None:
                    self._again = min(self._again, changes)
                begun = 0
                for turn in self._listed():
                    if turn.under_way:
                        continue
                    due = self._due(turn, now)
                    if now < due:
                        self._again = min(self._again, due)
                        continue
                    turn.under_way, turn.record.check_now = True, False
                    tasks.start_soon(once, partial(self._check, turn))
                    begun += 1
                    if begun % AT_ONCE == 0:
                        # A hundred requests in one step of the event loop would hold up everything else.
                        await anyio.lowlevel.checkpoint()
                with anyio.move_on_after(max(0.001, self._again - self._clock.now())):
                    await sooner.wait()

    def _listed(self) -> list[_Turn]:
        """Return the turns of the nodes that are in the list now."""
        records = self._book.records
        for gone in [node_id for node_id, turn in self._turns.items() if records.get(node_id) is not turn.record]:
            del self._turns[gone]
        for node_id, record in records.items():
            if node_id not in self._turns:
                self._turns[node_id] = _Turn(record, self._uniform(-1, 1))
        return list(self._turns.values())

    def _due(self, turn: _Turn, now: float) -> float:
        """Return when to check a node: by its health, or soon and then ever later while it is in trouble, or now.

        Now is when it is new, when its chain has become known to be ours, and when it has opened its stream after it
        had failed its checks: at most once for each connection.
        """
        record, book = turn.record, self._book
        if record.check_now:
            return turn.earliest
        due = next_check(record.health, now, book.slots, book.times.often, turn.part)
        if not self._troubled(record.node_id) and not self._to_be_identified(record):
            turn.trouble, turn.soon = None, math.inf
        elif turn.trouble is None:
            turn.trouble = Backoff(book.times.often, self._uniform)
            turn.soon = now + turn.trouble.failed()
        return max(turn.earliest, min(due, turn.soon))

    @staticmethod
    def _to_be_identified(record: NodeRecord) -> bool:
        """Whether nobody else asks a node which chain it is on: it has no head stream, and has not said it yet."""
        return record.identified_at is None and not record.member.has(Role.EVENTS)

    async def _check(self, turn: _Turn) -> None:
        """Check one node. What comes when it has left the list, or is reached in another way, is dropped."""
        record = turn.record
        if self._gone(record):
            return
        turn.earliest = math.inf
        try:
            await self._ask(self._pool.get(record.node_id), record)
            turn.earliest = 0.0
        finally:
            now = self._clock.now()
            turn.under_way = False
            if turn.earliest:
                turn.earliest = now + self._book.times.often.first
            turn.part = self._uniform(-1, 1)
            if turn.trouble is not None:
                if not record.health.failed and not self._to_be_identified(record):
                    turn.trouble.reset()
                turn.soon = now + turn.trouble.failed()
            if self._due(turn, now) < self._again:
                self.wake()

    def _gone(self, record: NodeRecord) -> bool:
        return self._book.records.get(record.node_id) is not record

    async def _ask(self, node: BeaconNode, record: NodeRecord) -> None:
        book, node_id = self._book, record.node_id
        try:
            answer = await node.syncing(timeout=book.times.timeout)
        except NodeError as error:
            if not self._gone(record):
                book.check_failed(node_id, error.words)
            return
        if self._gone(record):
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
        await self._ask_more(node, record)

    async def _ask_more(self, node: BeaconNode, record: NodeRecord) -> None:
        """Ask what is needed less often: its chain (N7), peers (N9), finality (N3). Their failure fails no check."""
        book, node_id, now = self._book, record.node_id, self._clock.now()
        if not self._gone(record) and self._identity_due(record, now):
            await self._identify(node, record)
        if self._gone(record) or record.excluded or book.slots is None:
            return
        rest = REST * book.slots.duration
        if record.peers_at is None or now >= record.peers_at + rest:
            count: int | None = None
            with suppress(NodeError):
                count = (await node.peer_count(timeout=book.times.timeout)).value.connected
            if self._gone(record):
                return
            book.peers(node_id, count)
        if record.finality_at is None or now >= record.finality_at + rest:
            record.finality_at = now
            with suppress(NodeError):
                found = (await node.finality_checkpoints("head", timeout=book.times.timeout)).value.data.finalized
                if not self._gone(record):
                    book.finalized(node_id, found.epoch, found.root)

    def _identity_due(self, record: NodeRecord, now: float) -> bool:
        """Whether a node is to be asked for its chain beside what its head stream asks at each connection (H15)."""
        slots = self._book.slots
        if record.identified_at is None or slots is None:
            return self._to_be_identified(record)
        often = REST if record.mismatch else slots.chain.slots_per_epoch
        return now >= record.identified_at + often * slots.duration

    async def _identify(self, node: BeaconNode, record: NodeRecord) -> None:
        with suppress(NodeError):
            chain = (await node.identity(timeout=self._book.times.timeout)).value
            if not self._gone(record):
                self._on_identity(record.node_id, chain)


class SlotEnds:
    """Looks back on each slot when it is over (N3, N8), and asks for the headers that tie nodes' branches together."""

    def __init__(self, book: HealthBook, pool: NodePool, clock: Clock) -> None:
        self._book = book
        self._pool = pool
        self._clock = clock
        self._learning = False

    async def run(self) -> None:
        """Look for ever."""
        book = self._book
        self._learning = False
        async with anyio.create_task_group() as tasks:
            while True:
                slots = book.slots
                if slots is None or slots.before_genesis(self._clock.now()):
                    await anyio.sleep(1.0)
                    continue
                slot = slots.slot_at(self._clock.now())
                await anyio.sleep(max(0.0, slots.start_of(Slot(slot + 1)) - self._clock.now()))
                book.slot_ended(slot)
                if book.consistency.wanted and not self._learning:
                    self._learning = True
                    tasks.start_soon(once, self._learn)

    async def _learn(self) -> None:
        """Walk back along branches, a header of each at a time, until it is known how they are tied together.

        The heads of a fork are new in every slot, and so their headers are wanted in every slot.
        """
        consistency = self._book.consistency
        try:
            for _ in range(STEPS):
                wanted = consistency.wanted
                async with anyio.create_task_group() as tasks:
                    for node_id, root in wanted:
                        tasks.start_soon(once, partial(self._link, node_id, root))
                if not any(root in consistency.branches for _, root in wanted):
                    return
                self._book.headers_known()
                if not consistency.wanted:
                    return
        finally:
            self._learning = False

    async def _link(self, node_id: NodeId, root: Root) -> None:
        try:
            found = (await self._pool.get(node_id).header(root, timeout=self._book.times.timeout)).value.data
        except (NodeError, KeyError):
            return
        message = found.header.message
        # A link is believed because it hashes to the root it is listed under, whoever gives it.
        if message.hash_tree_root() == root:
            self._book.consistency.branches.link(root, message.slot, message.parent_root)
