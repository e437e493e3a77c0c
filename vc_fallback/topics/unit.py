"""One node's streams of topics as a task, and what became of their events."""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from vc_fallback.base.background import once
from vc_fallback.base.backoff import Backoff
from vc_fallback.base.types import NodeId
from vc_fallback.candidates import CandidateList, Member
from vc_fallback.decide.ledger import NodeFacts
from vc_fallback.decide.topic_tiers import groups
from vc_fallback.node.client import BeaconNode
from vc_fallback.status import TopicConnectionStatus
from vc_fallback.topics.context import TopicContext
from vc_fallback.topics.stream import StreamView, TopicStream

logger = logging.getLogger(__name__)

CLOSING_TIME = 1.0
"""Seconds that closing a node's connections may take."""

NONSENSE = 64
"""Events of a topic in a row that could not be read, after which the node is not asked for the topic for a while."""


@dataclass(frozen=True, slots=True)
class TopicStatistics:
    """Counts of one node's events of topics other than the head's, since it was first asked for any.

    :param opens: connections that the node answered.
    :param told: events that went to subscribers: the first ones of their meaning.
    :param copies: events that another node, or this one, had told before (T6).
    :param malformed: events that do not follow the Beacon API, by topic.
    :param oversized: events over the limit (Q15).
    :param lost: events that came while it was not known which chain the node is on, and more than are kept then.
    :param dropped: how often the node said that it dropped events.
    """

    opens: int
    told: int
    copies: int
    malformed: dict[str, int]
    oversized: int
    lost: int
    dropped: int


class TopicUnit:
    """A node's two streams: for topics of a high rate, and for all others. Cancelled by its scope.

    :param offer: called with every event while the node is in the list.
    :param changed: called whenever what the node has may have changed.
    """

    def __init__(
        self,
        member: Member,
        node: BeaconNode,
        context: TopicContext,
        *,
        offer: Callable[["TopicUnit", str, str, float], None],
        changed: Callable[[], None],
    ) -> None:
        self.node_id: NodeId = member.node_id
        self.born = context.candidates.generation
        self.facts: NodeFacts = context.ledger.nodes[member.node_id]
        self.scope = anyio.CancelScope()
        self.told = self.copies = self.lost = 0
        self.malformed: Counter[str] = Counter()
        self._in_a_row: Counter[str] = Counter()
        self._node = node
        self._connection = member.candidate.connection
        self._context = context
        self._offer = offer
        self._looked_in: CandidateList | None = None
        self._listed = False
        self._streams = {
            fast: TopicStream(node, context, listed=lambda: self.listed, tell=self._tell, changed=changed)
            for fast in (False, True)
        }

    @property
    def listed(self) -> bool:
        """Whether the node is in the list, with the connection settings of these streams (G3)."""
        listed = self._context.candidates.current
        if listed is not self._looked_in:
            # Every event asks, and a list does not change.
            self._looked_in = listed
            member = listed.get(self.node_id)
            same = self._context.ledger.nodes.get(self.node_id) is self.facts
            self._listed = member is not None and same and member.candidate.connection == self._connection
        return self._listed

    def want(self, topics: frozenset[str]) -> None:
        """Carry these topics from now on, and no others."""
        for fast, group in groups(topics).items():
            self._streams[fast].want(group)

    def view(self) -> StreamView:
        """Return what the node has."""
        slow, fast = (stream.view() for stream in self._streams.values())
        return StreamView(
            live=slow.live | fast.live,
            asked=slow.asked | fast.asked,
            standing=slow.standing | fast.standing,
            opening=slow.opening | fast.opening,
            lacks=slow.lacks | fast.lacks,
            due=min(slow.due, fast.due),
        )

    def status(self) -> tuple[TopicConnectionStatus, ...]:
        """Return the state of its connections."""
        found = (stream.status() for stream in self._streams.values())
        return tuple(status for status in found if status is not None)

    def statistics(self) -> TopicStatistics:
        """Return counts."""
        streams = self._streams.values()
        return TopicStatistics(
            opens=sum(stream.opened() for stream in streams),
            told=self.told,
            copies=self.copies,
            malformed=dict(self.malformed),
            oversized=sum(stream.oversized for stream in streams),
            lost=self.lost + sum(stream.lost for stream in streams),
            dropped=sum(stream.dropped for stream in streams),
        )

    def renew(self) -> None:
        """Replace the connections: they may be as dead as the head stream's (H5)."""
        for stream in self._streams.values():
            stream.renew()

    def nudge(self) -> None:
        """Take a sign of life of the node."""
        for stream in self._streams.values():
            stream.nudge()

    def sound(self, topic: str) -> None:
        """Note that an event could be read."""
        if self._in_a_row:
            self._in_a_row.pop(topic, None)

    def unreadable(self, topic: str, problem: object) -> None:
        """Count an event that does not follow the Beacon API: it costs itself, and a topic of nothing else is given up
        for a while (rule 4)."""
        self.malformed[topic] += 1
        self._in_a_row[topic] += 1
        count = self.malformed[topic]
        # Number 1, 2, 4, 8, … is told (H9).
        level = logging.DEBUG if count & (count - 1) else logging.WARNING
        logger.log(level, "%s: malformed event, number %d of its topic: %s", self.node_id, count, problem)
        if self._in_a_row[topic] >= NONSENSE:
            del self._in_a_row[topic]
            for fast, group in groups([topic]).items():
                if group:
                    self._streams[fast].give_up(topic, f"{NONSENSE} events in a row could not be read")

    async def run(self) -> None:
        """Run the streams until the scope is cancelled. A mistake of our own in one costs nobody else anything."""
        try:
            with self.scope:
                async with anyio.create_task_group() as tasks:
                    for stream in self._streams.values():
                        tasks.start_soon(self._guard, stream)
        finally:
            with anyio.move_on_after(CLOSING_TIME, shield=True):
                await once(self._node.aclose)

    async def _guard(self, stream: TopicStream) -> None:
        backoff = Backoff(self._context.times().backoff)
        while True:
            try:
                await stream.run()
            except Exception:
                logger.exception("%s: topics", self.node_id)
            await anyio.sleep(backoff.failed())

    def _tell(self, topic: str, data: str, received: float) -> None:
        if self.listed:
            self._offer(self, topic, data, received)
