"""Subscriptions to topics over all nodes: who carries what, each event once to everyone who wants it (T1–T7)."""

import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import anyio
from anyio.abc import TaskGroup

from vc_fallback.base.buffered import Buffered, OnFull
from vc_fallback.base.signals import NodeHeadSeen, Signal, StreamChanged, StreamReason
from vc_fallback.base.types import NodeId, Provenance, Role, Slot, Tier
from vc_fallback.candidates import Member
from vc_fallback.decide.ledger import NodeFacts
from vc_fallback.decide.seen import SeenWindow
from vc_fallback.decide.topic_tiers import HIGH_RATE, NodeTopics, Outlook, assign, outlook
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.events import HeadTopicEvent, MalformedEvent
from vc_fallback.node.topic_events import TopicValue, read_topic_event
from vc_fallback.status import TopicConnectionStatus, TopicStatus
from vc_fallback.topics.context import TopicContext
from vc_fallback.topics.event import TopicEvent, TopicUnavailable
from vc_fallback.topics.heads import HeadSource, HeadTopics
from vc_fallback.topics.look import HEAD_TOPICS, look_at_heads, look_at_topics, reasons
from vc_fallback.topics.subscription import TopicSubscription
from vc_fallback.topics.unit import TopicStatistics, TopicUnit
from vc_fallback.topics.units import TopicUnits

logger = logging.getLogger(__name__)

MOST_TOPICS = 64
"""Topics at most that may be subscribed to at once: all are in one request (rule 6)."""

MEMORY = 64
"""Slots for which an event is known as seen: a node may be two epochs late (T6)."""

MEMORY_HIGH_RATE = 4
"""The same for topics of a high rate."""

CEILING = 2**16
"""Events at most that are known as seen, 8 MB of a topic: a guard, as a thousand in a slot are more than any topic has
but those of a high rate (rule 6)."""

CEILING_HIGH_RATE = 2**18
"""The same for topics of a high rate: the events of four slots and of the one that has begun are 150,000."""

TICK = 0.001
"""Seconds after the beginning of a slot within which it is surely the next one, however its moment is rounded."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DEAD = frozenset({StreamReason.HEAD_SILENCE, StreamReason.TRANSPORT_SILENCE})
"""Why a head stream connects again where nothing has ended: the node's other connections may be dead, too."""
_ALIVE = frozenset({StreamReason.RESPONSE, StreamReason.CURRENT_HEAD})


class TopicHub:
    """All methods but :meth:`run` return at once (rule 7).

    :param make_node: makes the client that a node's streams have for themselves.
    :param heads: where the events of the head's topics come from.
    """

    def __init__(
        self,
        context: TopicContext,
        make_node: Callable[[Member], BeaconNode],
        heads: HeadSource,
    ) -> None:
        self._context = context
        self._subscriptions: set[TopicSubscription] = set()
        self._by_topic: dict[str, tuple[TopicSubscription, ...]] = {}
        self._seen: dict[str, SeenWindow] = {}
        self._told: Counter[str] = Counter()
        self._heads = HeadTopics(heads, context.ledger, self._head)
        self._units = TopicUnits(context, make_node, offer=self._offer, changed=self._wake)
        self._woken = anyio.Event()
        self._closed = False

    # --- subscribers

    def subscribe(self, topics: Iterable[str], *, buffer: int | None, on_full: OnFull) -> TopicSubscription:
        """Subscribe to topics.

        :raises RuntimeError: after the end.
        :raises ValueError: for no topic, for something that cannot be one, for too many, and for a buffer below 1.
        :raises TypeError: for what is no text.
        """
        if self._closed:
            raise RuntimeError("it has been left")
        named = [*topics]
        if not all(isinstance(topic, str) for topic in named):
            raise TypeError("topics are names, given one by one: subscribe('block', 'head')")
        wanted = frozenset(named)
        if not wanted:
            raise ValueError("no topic is named")
        for topic in wanted:
            if not _NAME.fullmatch(topic) or topic in {"error", "message"}:
                raise ValueError("a topic is a name of letters, digits and _, of 64 characters at most")
        if len(wanted | self._by_topic.keys()) > MOST_TOPICS:
            raise ValueError(f"{MOST_TOPICS} topics at most")
        subscription = TopicSubscription(
            wanted,
            since=self._context.clock.now(),
            buffer=self._context.config.topics.buffer if buffer is None else buffer,
            on_full=on_full,
            readable=self._readable,
            closed=self._leave,
        )
        self._subscriptions.add(subscription)
        self._group()
        return subscription

    def close(self) -> None:
        """End all subscriptions."""
        self._closed = True
        for subscription in list(self._subscriptions):
            subscription.close()

    def _leave(self, subscription: Buffered[Any]) -> None:
        if isinstance(subscription, TopicSubscription):
            self._subscriptions.discard(subscription)
            self._group()

    def _group(self) -> None:
        """See who wants what."""
        by_topic: dict[str, list[TopicSubscription]] = {}
        for subscription in self._subscriptions:
            for topic in subscription.topics:
                by_topic.setdefault(topic, []).append(subscription)
        self._by_topic = {topic: tuple(wanting) for topic, wanting in by_topic.items()}
        for kept in (self._seen, self._told):
            for topic in kept.keys() - by_topic.keys():
                del kept[topic]
        self._heads.follow(not HEAD_TOPICS.isdisjoint(by_topic))
        self._woken.set()

    def _readable(self, event: TopicEvent) -> TopicEvent | None:
        """Return an event stamped with the present generation; `None` when its node left or is quarantined (C8, G3)."""
        came, generation = event.provenance, self._context.candidates.generation
        facts = self._context.ledger.nodes.get(came.node_id)
        if facts is None or facts.joined > came.generation or facts.quarantined:
            return None
        if came.generation == generation:
            return event
        return replace(event, provenance=replace(came, generation=generation))

    # --- events

    def _offer(self, unit: TopicUnit, topic: str, data: str, received: float) -> None:
        """Take an event of a node that is in the list."""
        if topic not in self._by_topic or not self._ours(unit.facts):
            return
        try:
            reading = read_topic_event(topic, data)
        except MalformedEvent as malformed:
            unit.unreadable(topic, malformed)
            return
        unit.sound(topic)
        if not self._first(topic, reading.key, received):
            unit.copies += 1
            return
        unit.told += 1
        self._deliver((topic,), reading.value, data, unit.node_id, received)

    def _head(self, topics: tuple[str, ...], event: HeadTopicEvent, node_id: NodeId, received: float) -> None:
        """Take an event about the head."""
        self._deliver(topics, event, "", node_id, received)

    def _deliver(self, topics: tuple[str, ...], value: TopicValue, data: str, node_id: NodeId, received: float) -> None:
        event = TopicEvent(topics[0], value, data, Provenance(node_id, self._context.candidates.generation, received))
        wanting = self._by_topic.get(topics[0], ())
        if len(topics) > 1:
            wanting = tuple({subscription for topic in topics for subscription in self._by_topic.get(topic, ())})
        for topic in topics:
            self._told[topic] += 1
        for subscription in wanting:
            subscription.tell(event)

    def _first(self, topic: str, key: bytes, received: float) -> bool:
        slots = self._context.slots()
        if slots is None:
            return False
        window = self._seen.get(topic)
        if window is None:
            memory, ceiling = (MEMORY_HIGH_RATE, CEILING_HIGH_RATE) if topic in HIGH_RATE else (MEMORY, CEILING)
            window = self._seen[topic] = SeenWindow(memory, ceiling=ceiling)
        return window.first(key, slots.slot_at(received))

    def _ours(self, facts: NodeFacts) -> bool:
        return facts.verified and self._context.ledger.chain is not None

    # --- what there is

    def topics(self) -> dict[str, TopicStatus]:
        """Return the state of the topics that are subscribed to."""
        (nodes, _), heads = look_at_topics(self._context, self._units), look_at_heads(self._context)
        return {
            topic: TopicStatus(
                subscribers=len(wanting),
                live=tuple(n.node_id for n in (heads if topic in HEAD_TOPICS else nodes) if topic in n.live),
                events=self._told[topic],
                forgotten=self._seen[topic].forgotten if topic in self._seen else 0,
            )
            for topic, wanting in sorted(self._by_topic.items())
        }

    def connections(self, node_id: NodeId) -> tuple[TopicConnectionStatus, ...]:
        """Return the state of a node's connections for topics."""
        unit = self._units.get(node_id)
        return unit.status() if unit is not None else ()

    def statistics(self) -> Mapping[NodeId, TopicStatistics]:
        """Return counts of every node that was asked for topics."""
        return {unit.node_id: unit.statistics() for unit in self._units}

    # --- who carries what

    def restart_all(self) -> None:
        """Give every node's streams from before the present generation a new start."""
        self._units.restart_all()
        self._woken.set()

    def observe(self, signal: Signal) -> None:
        """Take a signal of heads or health: who carries what is looked at anew (T2)."""
        if not self._units and not self._by_topic:
            return
        if isinstance(signal, StreamChanged):
            unit = self._units.get(signal.node_id)
            if unit is not None and signal.reason in _DEAD:
                unit.renew()
            elif unit is not None and signal.reason in _ALIVE:
                unit.nudge()
        if not isinstance(signal, NodeHeadSeen) or self._by_topic:
            self._woken.set()

    async def run(self) -> None:
        """Make what nodes carry fit what is wanted, for ever."""
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    self._woken = anyio.Event()
                    with anyio.CancelScope(deadline=self._reconcile(tasks)):
                        await self._woken.wait()
        finally:
            self._units.clear()

    def _reconcile(self, tasks: TaskGroup) -> float:
        """Do what there is to do; return when to look again, in loop time."""
        context, now = self._context, self._context.clock.now()
        self._units.end_gone()
        wanted = frozenset(self._by_topic) - HEAD_TOPICS
        listed = context.candidates.current
        if wanted:
            for member in listed.of(Role.EVENTS, Tier.PRIMARY):
                # Before it is seen what is lost: who is asked just now need not be helped out.
                if not context.ledger.nodes[member.node_id].quarantined:
                    self._units.want(member, wanted, tasks)
        nodes, due = look_at_topics(context, self._units)
        for node_id, topics in assign(wanted, nodes).items():
            self._units.want(listed.members[node_id], topics, tasks)
        due = min(due, self._judge(nodes, now))
        slots = context.slots()
        if slots is not None and self._by_topic:
            due = min(due, max(slots.start_of(Slot(slots.slot_at(now) + 1)), now + TICK))
        return due

    def _wake(self) -> None:
        self._woken.set()

    def _judge(self, nodes: list[NodeTopics], now: float) -> float:
        """Tell subscribers of topics that nobody carries (T7); return when to look again."""
        due = math.inf
        if not self._subscriptions:
            return due
        settings, slot = self._context.config.topics, self._context.slot
        patience = settings.unserved * slot + settings.scaled("attempt", slot)
        heads = [] if HEAD_TOPICS.isdisjoint(self._by_topic) else look_at_heads(self._context)
        carried = frozenset().union(*(node.standing for node in (*nodes, *heads) if node.carries and node.flows))
        for subscription in list(self._subscriptions):
            if not subscription.missing and subscription.topics <= carried:
                # Many subscribers, and nothing wrong: heads are not to wait for this.
                continue
            for topic in subscription.topics:
                among = heads if topic in HEAD_TOPICS else nodes
                found = outlook(topic, among, subscription.since)
                if found is Outlook.CARRIED:
                    if subscription.missing.pop(topic, None) is not None:
                        subscription.warned.discard(topic)
                        subscription.carried(topic)
                    continue
                begun = subscription.missing.setdefault(topic, now)
                at_once = found is Outlook.REFUSED and topic not in subscription.warned
                if at_once or now >= begun + patience:
                    subscription.fail(TopicUnavailable(topic, reasons(topic, among)))
                    subscription.warned.add(topic)
                    begun = subscription.missing[topic] = now
                due = min(due, begun + patience)
        return due
