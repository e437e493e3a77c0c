"""One node's stream of other topics than the head's: it connects again by itself, and changes its topics without a gap.

A node has two of them, each with a connection of its own: one for topics of a high rate, one for all others (T1).
"""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from vc_fallback.base.backoff import BackoffPolicy
from vc_fallback.base.signals import StreamReason
from vc_fallback.decide.topic_requests import TopicRequests
from vc_fallback.decide.topic_tiers import NOTHING, Lack, live_from
from vc_fallback.node.client import BeaconNode
from vc_fallback.status import TopicConnectionStatus
from vc_fallback.streams.connection import Connection
from vc_fallback.topics.checks import identify, look_at_version
from vc_fallback.topics.connection import TopicConnection
from vc_fallback.topics.context import TopicContext
from vc_fallback.topics.retry import TopicRetry

logger = logging.getLogger(__name__)

SETTLE = 0.1
"""Seconds from a new connection's answer until it is taken as accepted, and the one before it is closed, 1/24 of a slot
at most: some nodes refuse by their first event (case 4)."""

REFUSALS = frozenset({400, 404, 405, 406, 422, 501})
"""Statuses by which a node may refuse topics: the definition has the first, its servers' frameworks the others."""

ELSEWHERE = frozenset({401, 402, 403, 408, 429, 503})
"""Statuses that are about us, or about the node as a whole."""

HELD = 256
"""Events of a new connection that wait at most until it is known which chain the node is on; more are lost (H15)."""
HELD_TEXT = 16 * 1024 * 1024
"""The same in characters; the last may go beyond it."""


@dataclass(slots=True)
class StreamView:
    """What a stream has, as of now; `due` is when time alone may change it, in loop time."""

    live: frozenset[str] = NOTHING
    asked: frozenset[str] = NOTHING
    standing: frozenset[str] = NOTHING
    opening: frozenset[str] = NOTHING
    lacks: dict[str, Lack] = field(default_factory=dict)
    due: float = math.inf


class TopicStream:
    """:meth:`run` goes on until it is cancelled.

    :param listed: whether the node is in the list, reached as this stream reaches it (G3).
    :param tell: called with the topic, the data and the loop time of every event.
    :param changed: called whenever what the stream has may have changed.
    """

    def __init__(
        self,
        node: BeaconNode,
        context: TopicContext,
        *,
        listed: Callable[[], bool],
        tell: Callable[[str, str, float], None],
        changed: Callable[[], None],
    ) -> None:
        self.opens = self.oversized = self.dropped = self.lost = 0
        self.node = node
        self._context = context
        self._listed = listed
        self._tell = tell
        self._changed = changed
        self._wanted: dict[str, float] = {}
        """The topics that it is to carry, each with the loop time since when."""
        self._requests = TopicRequests(self._retry_policy)
        self._retry = TopicRetry(node.node_id, context)
        self._current: TopicConnection | None = None
        self._successor: TopicConnection | None = None
        self._tasks: TaskGroup | None = None
        self._woken = anyio.Event()
        self._renew = False
        """Whether the connection is to be replaced though its topics are right."""
        self._received = 0.0

    # --- what it is to carry, and what it has

    def want(self, topics: frozenset[str]) -> None:
        """Carry these topics from now on, and no others."""
        if topics == self._wanted.keys():
            return
        now = self._context.clock.now()
        self._wanted = {topic: self._wanted.get(topic, now) for topic in topics}
        self._wake()

    def view(self) -> StreamView:
        """Return what it has."""
        context, now, view = self._context, self._context.clock.now(), StreamView()
        healthy_since = context.healthy_since(self.node.node_id)
        for connection in self._connections:
            opened = None if connection.opened is None else connection.opened + self._settle
            at = live_from(opened, connection.requested, healthy_since, context.slot)
            if at is not None and at <= now:
                view.live |= connection.asked
            elif at is not None:
                view.due = min(view.due, at)
            if connection.requested is not None:
                view.asked |= connection.asked
        if self._current is not None:
            view.standing = self._current.asked
        soon = context.slot / 12
        for topic, since in self._wanted.items():
            lack = self._requests.lack(topic) or self._retry.trouble
            if lack is not None and topic not in view.live:
                view.lacks[topic] = lack
            elif now < since + soon:
                view.opening |= {topic}
                view.due = min(view.due, since + soon)
        return view

    def status(self) -> TopicConnectionStatus | None:
        """Return its state; `None` where it carries nothing and is to carry nothing."""
        if not self._wanted and not self._connections:
            return None
        now, view, connection = self._context.clock.now(), self.view(), self._current or self._successor
        state, since = "waiting", None
        if connection is not None:
            state = "connecting" if connection.requested is None else "requested"
            since = connection.requested
            if connection.opened is not None:
                state, since = "open", connection.opened
        return TopicConnectionStatus(
            topics=tuple(sorted(view.asked)),
            live=tuple(sorted(view.live)),
            state=state,
            since=None if since is None else now - since,
            failures=self._retry.failures,
            trouble="" if self._retry.trouble is None else self._retry.trouble.words,
            refused=self._requests.refusals(),
        )

    def opened(self) -> int:
        """Return how many connections the node has answered."""
        return self.opens + sum(connection.open for connection in self._connections)

    def renew(self) -> None:
        """Replace the connection, without a gap: the node's head stream was found to be dead (H5)."""
        if self._connections:
            self._renew = True
            self._wake()

    def nudge(self) -> None:
        """Take a sign of life of the node: where it was out of reach it is tried at once (H4)."""
        if self._retry.nudge():
            self._wake()

    def give_up(self, topic: str, words: str) -> None:
        """Carry a topic no more for a while, as nothing of it can be read."""
        self._requests.give_up(topic, words, self._context.clock.now(), refused=False)
        self._wake()

    # --- how it is done

    async def run(self) -> None:
        """Make the connection fit what is wanted, for ever."""
        try:
            async with anyio.create_task_group() as self._tasks:
                while True:
                    self._woken = anyio.Event()
                    with anyio.CancelScope(deadline=self._step()):
                        await self._woken.wait()
        finally:
            self._tasks = self._current = self._successor = None

    @property
    def _connections(self) -> list[TopicConnection]:
        return [connection for connection in (self._current, self._successor) if connection is not None]

    @property
    def _retry_policy(self) -> BackoffPolicy:
        settings, slot = self._context.config.topics, self._context.slot
        first = settings.scaled("retry_first", slot)
        return BackoffPolicy(first=first, cap=max(first, settings.scaled("retry_cap", slot)))

    @property
    def _settle(self) -> float:
        return min(SETTLE, self._context.slot / 24)

    def _wake(self) -> None:
        self._woken.set()

    def _step(self) -> float:
        """Do what there is to do; return when there is more, in loop time."""
        now = self._context.clock.now()
        if not self._wanted:
            self._let_go(self._successor)
            self._let_go(self._current)
            return math.inf
        if self._successor is not None:
            settled = self._settles(self._successor)
            if now < settled:
                return settled
            self._promote(now)
        topics = self._requests.next(self._wanted, now)
        due = self._requests.next_try(self._wanted)
        due = math.inf if due is None or due <= now else due
        current = self._current
        if not topics:
            self._let_go(current)
            return due
        if current is not None and topics == current.asked:
            due = min(due, self._silent_at(current, now))
            if not self._renew:
                return due
        again = self._retry.again(now)
        if again > now:
            return again
        self._open(topics)
        return math.inf

    def _settles(self, successor: TopicConnection) -> float:
        """Return when a new connection takes the place of the old one."""
        if successor.opened is not None:
            return successor.opened + self._settle
        if successor.requested is None:
            return math.inf
        # A node that answers with its first event only; one that refuses does so at once.
        part = 2 if self._wanted.keys() == successor.asked else 12
        return successor.requested + self._context.slot / part

    def _silent_at(self, current: TopicConnection, now: float) -> float:
        """Return when a connection that had comments is taken for dead; note where it is (H5)."""
        silence = self._context.times().transport_silence
        if silence is None or not current.comments or current.last_byte is None:
            return math.inf
        if now >= current.last_byte + silence:
            self._renew = True
        return current.last_byte + silence

    def _open(self, topics: frozenset[str]) -> None:
        if self._tasks is None:
            return
        context = self._context
        self._requests.policy = self._retry_policy
        connection = TopicConnection(
            self, self.node, tuple(sorted(topics)), context.config.wire.event, context.clock.unix
        )
        if self._retry.interrupted and self._current is None:
            connection.held = []
        self._successor = connection
        self._tasks.start_soon(self._hold, connection)

    def _promote(self, now: float) -> None:
        old, self._current, self._successor = self._current, self._successor, None
        self._renew = False
        if self._current is not None:
            self._requests.accept(self._current.asked, now)
        if old is not None:
            old.end(StreamReason.CLOSED)
        self._changed()

    def _let_go(self, connection: TopicConnection | None) -> None:
        if connection is None:
            return
        if connection is self._successor:
            self._successor = None
        else:
            self._current = None
        connection.end(StreamReason.CLOSED)
        self._changed()

    async def _hold(self, connection: TopicConnection) -> None:
        context = self._context
        attempt = context.config.topics.scaled("attempt", context.slot)
        try:
            await connection.run(min(context.times().connect_timeout, attempt))
        finally:
            self.opens += connection.open
            self.oversized += connection.oversized
        if connection is self._successor:
            self._successor = None
        elif connection is self._current:
            self._current = None
        else:
            return
        refused = connection.reason is StreamReason.REFUSED
        # What is said in the stream, or with 500, may mean anything but where it names a topic.
        if refused and (
            connection.status in REFUSALS
            or (connection.status not in ELSEWHERE and self._requests.names(connection.asked, connection.detail))
        ):
            self._refused(connection)
        else:
            self._retry.ended(connection, listed=self._listed(), lost=self._current is None)
        self._wake()
        self._changed()

    def _refused(self, connection: TopicConnection) -> None:
        for topic in self._requests.refuse(connection.asked, connection.detail, self._context.clock.now()):
            # Number 1, 2, 4, 8, … in a row is told (H9).
            level = logging.WARNING if self._requests.loud(topic) else logging.DEBUG
            logger.log(level, "%s: does not carry %s: %s", self.node.node_id, topic, connection.detail)
        if not self._requests.version and self._tasks is not None:
            self._tasks.start_soon(self._look_at_version)

    async def _look_at_version(self) -> None:
        await look_at_version(self.node, self._requests, self._context.times().verify_timeout)
        self._wake()

    async def _identify(self, connection: TopicConnection) -> None:
        await identify(
            self.node,
            self._context,
            self._retry,
            listed=self._listed,
            stands=lambda: connection in self._connections,
            release=lambda: self._release(connection),
        )

    def _release(self, connection: TopicConnection) -> None:
        held, connection.held = connection.held or (), None
        for topic, data, received in held:
            self._tell(topic, data, received)

    # --- told by connections

    def on_sent(self, connection: Connection) -> None:
        """The request was sent: where a connection has broken before, the node is asked what it is."""
        again = connection.requested is not None
        connection.requested = self._context.clock.now()
        if connection is not self._successor or again or self._tasks is None:
            return
        if self._successor.held is not None:
            self._tasks.start_soon(self._identify, self._successor)
        if self._retry.interrupted and self._requests.reduced:
            self._tasks.start_soon(self._look_at_version)
        self._wake()
        self._changed()

    def on_open(self, connection: Connection) -> None:
        """The node answered with an event stream: the topics are live (T1)."""
        for own in self._connections:
            if own is connection:
                own.opened = self._context.clock.now()
                self._retry.answered()
                self._wake()
                self._changed()

    def on_bytes(self, connection: Connection) -> None:
        """Bytes are transport liveness, comments included (rule 2)."""
        self._received = self._context.clock.now()
        if isinstance(connection, TopicConnection):
            connection.last_byte = self._received

    def on_event(self, connection: TopicConnection, topic: str, data: str) -> None:
        """An event came."""
        if connection is not self._current and connection is not self._successor:
            return
        if connection.held is None:
            self._tell(topic, data, self._received)
        elif len(connection.held) < HELD and sum(len(text) for _, text, _ in connection.held) < HELD_TEXT:
            connection.held.append((topic, data, self._received))
        else:
            self.lost += 1

    def on_dropped(self, connection: Connection) -> None:
        """The node dropped events for us: nothing brings them back, and other nodes may have them."""
        self.dropped += connection in self._connections
        logger.debug("%s: says that it dropped events", self.node.node_id)
