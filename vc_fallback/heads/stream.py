"""A head stream: one candidate's subscription, which connects again by itself (H1–H10, H14, H15)."""

import anyio
from anyio.abc import TaskGroup

from vc_fallback.base.errors import NodeError
from vc_fallback.base.signals import StreamReason, StreamState
from vc_fallback.base.types import NodeId
from vc_fallback.candidates import Candidate, CandidateList
from vc_fallback.decide.freshness import away_too_long, state_of
from vc_fallback.decide.ledger import NodeFacts, NodeHead
from vc_fallback.decide.topics import TopicPlan
from vc_fallback.heads.cache import HeadCache
from vc_fallback.heads.connection import HeadConnection
from vc_fallback.heads.polls import NodePolls
from vc_fallback.heads.retry import Retry
from vc_fallback.heads.statistics import StreamStatistics
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.events import HeadEvent, HeadTopicEvent, ReorgEvent
from vc_fallback.streams.connection import Connection


class HeadStream:
    """One candidate's head stream. :meth:`run` goes on until it is cancelled."""

    def __init__(self, node_id: NodeId, candidate: Candidate, node: BeaconNode, cache: HeadCache) -> None:
        self.node_id = node_id
        self.candidate = candidate
        self.node = node
        self.born = cache.candidates.generation
        self.polls = NodePolls(node, candidate, cache)
        self._topics = TopicPlan()
        self._cache = cache
        self._retry = Retry(cache.times.backoff)
        self._current: HeadConnection | None = None
        self._successor: HeadConnection | None = None
        self._tasks: TaskGroup | None = None
        """Of the present connection: ended with it."""
        self._checks: TaskGroup | None = None
        """Of the stream: what is asked goes on over the end of a connection."""
        self._over = anyio.Event()
        self._replacement_tried = 0.0
        self._ended = StreamStatistics()
        self._received = 0.0
        """When the bytes came whose events are told."""
        self._looked_in: CandidateList | None = None
        self._listed = False
        """Whether the list that was looked in last has the node."""

    @property
    def facts(self) -> NodeFacts:
        """The node's facts in the ledger."""
        return self._cache.ledger.nodes[self.node_id]

    @property
    def listed(self) -> bool:
        """Whether the node is in the list, with the connection settings of this stream (G3)."""
        listed = self._cache.candidates.current
        if listed is not self._looked_in:
            # Every piece of bytes asks, and a list does not change.
            self._looked_in = listed
            self._listed = self._cache.member(self.node_id, self.candidate.connection) is not None
        return self._listed

    def statistics(self) -> StreamStatistics:
        """Return counts."""
        return self._ended.with_connections((self._current, self._successor), self._retry.failures)

    async def run(self) -> None:
        """Connect, read, and wait before connecting again, for ever."""
        async with anyio.create_task_group() as self._checks:
            await self._run()

    async def _run(self) -> None:
        reason = StreamReason.STARTED
        while True:
            self._enter(StreamState.CONNECTING, reason)
            await self._look_at_version()
            end = await self._connect()
            if end.status == 400 and end.reason is StreamReason.REFUSED and self._topics.refuse(end.detail):
                self._cache.tell.stream(self.node_id, StreamReason.TOPICS_REDUCED, end.detail)
                reason = StreamReason.TOPICS_REDUCED
                continue
            await self._wait(end)
            reason = StreamReason.RETRY

    def reconnect(self, reason: StreamReason, detail: str = "") -> None:
        """End the connection; the stream connects again after its backoff."""
        successor, self._successor = self._successor, None
        for connection in (successor, self._current):
            if connection is not None:
                connection.end(reason, detail)

    @property
    def last_renewed(self) -> float:
        """The moment from which the hard clock runs: of the last head, request, or try to replace the connection."""
        stream = self.facts.stream
        return max(stream.last_head_at or 0.0, stream.requested or 0.0, self._replacement_tried)

    def ask_for_head(self) -> None:
        """Have the node asked for its head, as long as the connection stands; at most one poll at a time."""
        if self._tasks is not None:
            self.polls.refresh.ask(self._tasks)

    async def replace(self) -> None:
        """Open a new connection and close the old one when the new one stands (H5, hard clock).

        A node that sends no headers before its first event has its new connection taken as standing half a slot after
        the request; one that cannot be reached keeps its old connection.
        """
        self._replacement_tried = self._cache.clock.now()
        if self._tasks is None or self._current is None or self._successor is not None:
            return
        successor = self._new_connection()
        self._successor = successor
        self._tasks.start_soon(self._hold, successor)
        half_a_slot = self._cache.slots.duration / 2 if self._cache.slots is not None else 0.0
        with anyio.move_on_after(self._cache.times.connect_timeout + half_a_slot):
            await successor.settled.wait()
        if self._successor is successor and successor.requested is not None:
            self._promote()

    # --- one connection after the other

    def _new_connection(self) -> HeadConnection:
        cache = self._cache
        return HeadConnection(self, self.node, self._topics.topics, cache.config.wire.event, cache.clock.unix)

    async def _connect(self) -> HeadConnection:
        """Hold a connection, and its successor where one is opened, until none is left; return the last one."""
        self._current = connection = self._new_connection()
        self._over = anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._hold, connection)
                await self._over.wait()
                connection = self._current
                tasks.cancel_scope.cancel()
        finally:
            self._tasks = self._current = self._successor = None
            if self.listed:
                self.facts.stream.connection_ended()
                # Before the entry goes: the gate may open on this, and says why.
                self.facts.stream.state = StreamState.BACKOFF
                self._cache.forget(self.node_id)
        return connection

    async def _hold(self, connection: HeadConnection) -> None:
        try:
            await connection.run(self._cache.times.connect_timeout)
        finally:
            self._ended = self._ended.with_connections([connection])
        connection.settled.set()
        if connection is self._successor:
            # The old connection goes on; the hard clock comes round again.
            self._successor = None
        elif connection is self._current:
            if self._successor is None:
                self._over.set()
            else:
                self._promote()

    def _promote(self) -> None:
        """Make the successor the stream's connection, and end the one before it."""
        old, new = self._current, self._successor
        if new is None or not self.listed:
            return
        self._current, self._successor = new, None
        if old is not None:
            old.end(StreamReason.HARD_CLOCK)
        stream = self.facts.stream
        stream.connection_ended()
        stream.requested = new.requested
        stream.opened = self._cache.clock.now() if new.open else None
        stream.state = StreamState.REQUESTED if new.requested is not None else StreamState.CONNECTING
        if new.open:
            stream.state = state_of(self._cache.healthy(self.node_id))
        self._cache.tell.stream(self.node_id, StreamReason.HARD_CLOCK)
        self._cache.look_at_gate()
        self._ask()

    def _ask(self) -> None:
        """Ask the node which chain it is on and what it knows: its stream has a new connection (H14, H15)."""
        if self._tasks is not None and self._checks is not None:
            self.polls.identify.ask(self._checks)
            self._tasks.start_soon(self.polls.baseline)

    async def _wait(self, end: HeadConnection) -> None:
        """Back off after any end (H4); a good check ends the wait where the node was out of reach.

        A node that finds that it is asked too often is left alone by requests and by its stream alike (case 24).
        """
        cooldowns, now = self._cache.cooldowns, self._cache.clock.now()
        asked_for = cooldowns.asked_for(self.node_id, now) if self.listed else 0.0
        if end.status == 429 and self.listed:
            rest = self._cache.config.requests.cooldown if end.retry_after is None else end.retry_after
            cooldowns.cool(self.node_id, now, rest, asked=True)
        wait = self._retry.ended(end, self._cache.times.backoff, asked_for)
        self._enter(StreamState.BACKOFF, end.reason, end.detail, retry_in=wait)
        self._cache.book.on_sooner()
        await self._retry.wait(end, wait, nudged=not asked_for)

    def nudge(self) -> None:
        """Take a good check of the node: a stream that waits because its node was out of reach tries at once (H4)."""
        self._retry.checked_well()

    async def _look_at_version(self) -> None:
        """Before a reduced set of topics is asked for, see whether the node is still the one that refused the rest."""
        if not self._topics.reduced:
            return
        try:
            self._topics.seen_version((await self.node.version(timeout=self._cache.times.verify_timeout)).value)
        except NodeError:
            return

    # --- told by connections

    def on_sent(self, connection: Connection) -> None:
        """The request was sent: the clocks of H5 run from here, and the node is asked what it knows (H14, H15)."""
        connection.requested = self._cache.clock.now()
        if connection is not self._current or not self.listed:
            return
        stream = self.facts.stream
        if away_too_long(stream, connection.requested, self._cache.times):
            stream.stalled = True
        stream.requested = connection.requested
        self._enter(StreamState.REQUESTED, StreamReason.REQUEST_SENT)
        self._ask()

    def on_open(self, connection: Connection) -> None:
        """The node answered with an event stream."""
        connection.settled.set()
        if not self.listed:
            return
        if connection is self._successor:
            self._promote()
        elif connection is self._current:
            stream = self.facts.stream
            stream.opened = self._cache.clock.now()
            if stream.baseline is None and self._tasks is not None:
                self._tasks.start_soon(self.polls.baseline)
            self._enter(state_of(self._cache.healthy(self.node_id)), StreamReason.RESPONSE)
            self._cache.book.answered(self.node_id)

    def on_bytes(self, connection: Connection) -> None:
        """Bytes are transport liveness, comments included, and nothing else (rule 2)."""
        if connection is self._current and self.listed:
            stream = self.facts.stream
            stream.last_byte = self._received = self._cache.clock.now()
            stream.comments = connection.comments

    def on_head(self, connection: HeadConnection, event: HeadEvent) -> None:
        """A head is head liveness where it is current, and goes to the cache."""
        if connection is not self._current or not self.listed:
            return
        cache = self._cache
        if cache.taps:
            self._tap(event)
        head = NodeHead(
            node_id=self.node_id,
            slot=event.slot,
            root=event.block,
            received=self._received,
            generation=cache.candidates.generation,
            payload_status=event.payload_status,
            optimistic=event.optimistic,
            current_epoch_dependent_root=event.current_epoch_dependent_root,
            next_epoch_dependent_root=event.next_epoch_dependent_root,
        )
        stream = self.facts.stream
        before = stream.last_head
        current = cache.streamed(head)
        if current:
            self._retry.current_head(connection, again=head.same_block(before))
        cache.offer(head)
        if current and stream.state is not StreamState.FRESH:
            self._enter(StreamState.FRESH, StreamReason.CURRENT_HEAD)

    def on_reorg(self, connection: HeadConnection, event: ReorgEvent) -> None:
        """A reorg names the node's new head; its dependent roots are unknown (H14, case 45). It is no head liveness."""
        if connection is not self._current or not self.listed:
            return
        facts = self.facts
        facts.stream.last_reorg = (event.slot, self._received)
        self._tap(event)
        self._cache.reorged(self.node_id, event, self._received)
        if self._cache.ledger.nodes.get(self.node_id) is not facts:
            # Who was told of it has changed the list.
            return
        head = NodeHead(
            node_id=self.node_id,
            slot=event.slot,
            root=event.new_head_block,
            received=self._received,
            optimistic=event.optimistic,
        )
        if not head.same_block(self._cache.delivery.entries.get(self.node_id)):
            self._cache.offer(head)

    def _tap(self, event: HeadTopicEvent) -> None:
        for tap in list(self._cache.taps.values()):
            tap(self.node_id, event, self._received)

    def on_dropped(self, connection: Connection) -> None:
        """The node dropped messages for us: ask for its head (H14)."""
        if connection is self._current:
            self.ask_for_head()

    def _enter(
        self, state: StreamState, reason: StreamReason, detail: str = "", *, retry_in: float | None = None
    ) -> None:
        if self.listed:
            self.facts.stream.state = state
            failures = self._retry.failures
            self._cache.tell.stream(self.node_id, reason, detail, failures=failures, retry_in=retry_in)
            self._cache.look_at_gate()
