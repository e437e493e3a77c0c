"""The facade: many beacon nodes held as one. It composes heads, health and requests."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Literal, Self

import anyio
import httpx

from vc_fallback.base.buffered import OnFull
from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import FallbackError, NodeError
from vc_fallback.base.health_signals import HealthChanged
from vc_fallback.base.signals import (
    GenerationChanged,
    HeadDelivered,
    NodeHeadSeen,
    Observer,
    Signal,
)
from vc_fallback.base.types import Epoch, NodeId, Role, Slot
from vc_fallback.base.watch import Watch
from vc_fallback.candidates import Candidate, ListChange
from vc_fallback.chain import SlotClock
from vc_fallback.chain_view import ChainOfHeads
from vc_fallback.config import FallbackConfig
from vc_fallback.decide.plan import Plan, why_left_out
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.node.caller import Outcomes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.routes import Route
from vc_fallback.node.warm import warm
from vc_fallback.payloads import AVAILABLE, Payloads, SlotPayload
from vc_fallback.routing.ahead import Ahead
from vc_fallback.routing.calls.attesting import AttestingCalls
from vc_fallback.routing.calls.duties import DutyCalls
from vc_fallback.routing.calls.liveness import LivenessCalls
from vc_fallback.routing.calls.own import OwnCalls
from vc_fallback.routing.calls.preparing import PreparingCalls
from vc_fallback.routing.calls.proposing import ProposingCalls
from vc_fallback.routing.calls.publishing import PublishingCalls
from vc_fallback.routing.calls.reading import ReadingCalls
from vc_fallback.routing.desk import Desk
from vc_fallback.routing.outcomes import cut, enumerate_some
from vc_fallback.routing.preparations import Preparations
from vc_fallback.routing.returns import Returns
from vc_fallback.routing.runner import Runner
from vc_fallback.routing.witnesses import Witnesses
from vc_fallback.snapshot import snapshot
from vc_fallback.status import Status
from vc_fallback.topics.context import TopicContext
from vc_fallback.topics.hub import TopicHub
from vc_fallback.topics.subscription import TopicSubscription
from vc_fallback.topics.unit import TopicStatistics
from vc_fallback.wire.dial import Resolver


class NotReadyInTime(FallbackError):
    """Too few usable nodes were there in time; the text says what each node lacks."""


class BeaconNodeFallback(
    OwnCalls,
    ReadingCalls,
    DutyCalls,
    AttestingCalls,
    ProposingCalls,
    PublishingCalls,
    PreparingCalls,
    LivenessCalls,
):
    """Many beacon nodes as one: every call of a duty goes to the right node, in time.

    Use it as an asynchronous context manager. Every task of it ends with the block, stragglers of publishes included,
    and an exception of the block leaves unchanged. Calls may come from any task of the event loop; those that are under
    way in other tasks when it is left end then, as failed. Calls before it is entered and after raise
    :exc:`RuntimeError`.

    A threaded program holds it in an event loop that has a thread of its own; it starts none by itself. Any thread may
    then call everything through the portal, nothing without it, and exceptions come out as they are. A call that does
    not end is given up by its own `deadline`, or by cancelling the future of `portal.start_task_soon`::

        with (
            anyio.from_thread.start_blocking_portal() as portal,
            portal.wrap_async_context_manager(BeaconNodeFallback(config)) as nodes,
        ):
            portal.call(nodes.wait_ready, 1, 60)
            data = portal.call(nodes.attestation_data, portal.call(lambda: nodes.slots.slot_at(nodes.clock.now())))
            duties = portal.call(partial(nodes.first_success, ask, role=Role.DUTIES))
            status = portal.call(nodes.status)

    Every call takes `deadline`, a moment in loop time (`nodes.clock`), and has one of its own without (Q2). Answers are
    :class:`~vc_fallback.Sourced`: `value`, `node_id`, `latency`, `provenance`. Errors: see
    `vc_fallback.routing.outcomes`; none of them says more of a node than its id.

    :param config: candidates and settings; the list may be empty (G6).
    :param observers: called with every signal, at once; they must not wait.
    :param clock: loop time and Unix time; one of your own for virtual time.
    :param resolver: resolves host names instead of the system.
    :param transport: used for all nodes instead of the built-in connections: a proxy, a mock, your own.
    :raises ConfigurationError: for a candidate that cannot be used; `field` names what is wrong.
    """

    def __init__(
        self,
        config: FallbackConfig,
        *,
        observers: Sequence[Observer] = (),
        clock: Clock | None = None,
        resolver: Resolver | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        warm()
        if not isinstance(config, FallbackConfig):
            raise TypeError("config: a FallbackConfig is needed; FallbackConfig.from_urls([...]) makes one of URLs")
        self._config = config
        self._settings = config.requests
        stragglers = config.requests.stragglers
        self._runner = Runner(stragglers=stragglers, at_once=max(1, min(stragglers, config.wire.concurrency) // 2))
        # Slow relays are not to take the turns of signed messages, nor all that a node is asked at once.
        self._ahead = Ahead(stragglers=stragglers, at_once=max(1, min(4, config.wire.concurrency // 8)))
        self._preparations = Preparations()
        self._given = {}
        self._highest_source = Epoch(0)
        self._changed: Watch[None] = Watch(None)
        """Set when the health or the rank of a node has changed, or the list."""
        self._returns = None
        self._heads = HeadMonitor(
            config,
            observers=[self._observe, *observers],
            clock=clock,
            resolver=resolver,
            transport=transport,
            outcomes=self._outcomes_of,
            also=[self._run, self._run_topics],
        )
        self._chain = ChainOfHeads(self._heads)
        self._topics: TopicHub | None = None
        self._payloads = Payloads(lambda: self.clock.now(), self._chain, lambda: self.subscribe(AVAILABLE))

    async def __aenter__(self) -> Self:
        await self._heads.__aenter__()
        heads = self._heads
        self._chain.cache = heads.cache
        self._desk = desk = Desk(
            self._settings,
            clock=heads.clock,
            candidates=heads.candidates,
            book=heads.cache.book,
            pool=heads.pool,
            runner=self._runner,
            cooldowns=heads.cache.cooldowns,
            chain=self._chain,
            news=self._changed,
            identified=heads.cache.identified,
        )
        self._witnesses = Witnesses(desk)
        self._returns = Returns(desk, self._preparations, self._tell_again)
        self._topics = TopicHub(
            TopicContext(
                config=self._config,
                candidates=heads.candidates,
                clock=heads.clock,
                ledger=heads.cache.ledger,
                book=heads.cache.book,
                cooldowns=heads.cache.cooldowns,
                slots=lambda: heads.slots,
                times=lambda: heads.cache.times,
                identified=heads.cache.identified,
            ),
            heads.make_node,
            heads.cache,
        )
        try:
            await self._runner.opened.wait()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        desk = self._desk
        if desk is None:
            return
        try:
            await self._heads.__aexit__(kind, error, traceback)
        finally:
            if self._topics is not None:
                self._topics.close()
            # Who waits for nodes is woken.
            desk.left = True
            self._desk, self._left = None, True
            self._changed.set(None)
            self._changed.close()

    # --- the parts

    @property
    def heads(self) -> HeadMonitor:
        """The head monitor: subscriptions, the latest head, `wait_for_slot`, ranking, health."""
        return self._heads

    @property
    def clock(self) -> Clock:
        """Loop time and Unix time."""
        return self._heads.clock

    @property
    def slots(self) -> SlotClock | None:
        """When slots begin and duties are due, in loop time; `None` until the chain is known (I1)."""
        return self._heads.slots

    def scoped(self, node_id: NodeId) -> BeaconNode:
        """Return the client of one node: its calls go to that node alone, and their ends count for its health.

        It is that of the present list: when the node leaves or is reached in another way, its calls raise `Closed`.

        :raises KeyError: for a node that is not in the list.
        """
        pool = self._open().pool
        return pool.get(self._heads.candidates.current.listed(node_id).node_id)

    # --- topics

    def subscribe(self, *topics: str, buffer: int | None = None, on_full: OnFull = "drop_oldest") -> TopicSubscription:
        """Subscribe to topics of the Beacon API's events, known here or not; leaving the block unsubscribes (T1–T7)::

            async with nodes.subscribe("finalized_checkpoint", "attester_slashing") as events:
                async for event in events:
                    print(event.topic, event.value, event.node_id)

        Every primary carries them, and fallbacks do while no primary does. Each event is told once, as the first node
        told it. Events begin when a node has taken the subscription; of the head's topics (`head` and `head_v2`, which
        are one, and `chain_reorg`) they come by the head streams.

        :param buffer: events that may wait unread; default from the configuration.
        :param on_full: drop the oldest and count it, or close the subscription.
        :raises RuntimeError: before the context is entered, and after it was left.
        :raises ValueError: for no topic, for what cannot be the name of one, and for more than 64 at once. Reading
            raises :exc:`TopicUnavailable` where nobody carries a topic.
        :raises TypeError: for what is no text, as a list of topics is.
        """
        return self._hub().subscribe(topics, buffer=buffer, on_full=on_full)

    async def wait_for_payload(self, slot: Slot, deadline: float | None = None) -> SlotPayload | None:
        """Wait until the payload of a slot's block is there to be attested to (Gloas); `None` at the deadline.

        A node says so by the head's own status (`head_v2` with a full payload) or by `execution_payload_available`, to
        which nodes are subscribed while someone waits (or expects payloads, see below); what comes first counts. The
        block is what was delivered last as that slot's head: a payload of another block there answers only once that
        one is the head. Of a slot without a block there is none, and one that was there stays there.

        Events from before the call are known where it was made within :meth:`expect_payloads`, which spares nodes a new
        subscription in every slot, too.

        :param deadline: in loop time; by default when the payload timeliness committee is to speak, 3/4 of the slot,
            for until then it may say that it saw the payload.
        :raises ValueError: for a slot before Gloas, whose blocks have their payload in them; without a deadline before
            the chain is known; and where there is no place for another topic (64 at most).
        :raises WatchClosed: when the context is left before.
        :raises RuntimeError: before the context is entered, and after it was left.
        """
        self._hub()
        return await self._payloads.wait(slot, self._heads.latest, deadline)

    def expect_payloads(self) -> AbstractAsyncContextManager[None]:
        """Follow `execution_payload_available` over a block, for :meth:`wait_for_payload`::

            async with nodes.expect_payloads():
                seen = await nodes.wait_for_payload(slot)

        :raises RuntimeError: when the block is entered before the context is, or after it was left.
        """
        return self._payloads.expect()

    def topic_statistics(self) -> Mapping[NodeId, TopicStatistics]:
        """Return counts of every node that was asked for topics other than the head's."""
        return {} if self._topics is None else self._topics.statistics()

    # --- the list

    def update_candidates(
        self, candidates: Iterable[Candidate | str], *, restart: Literal["changed", "all"] = "changed"
    ) -> ListChange:
        """Replace the candidate list (G1, G2). Nothing changes when it cannot be used.

        Nothing is restarted: a call in flight on a node that leaves ends there as "node removed" and moves on, to nodes
        that have just come too.

        :raises ConfigurationError: `field` names what is wrong.
        """
        change = self._heads.update_candidates(candidates, restart=restart)
        if restart == "all" and self._topics is not None:
            self._topics.restart_all()
        return change

    def drain(self, node_id: NodeId, duration: float) -> None:
        """Put a node last on purpose for so many seconds; see :meth:`HeadMonitor.drain`."""
        self._heads.drain(node_id, duration)

    # --- what there is

    def plan(self, role: Role | str | None = None, *, prefer: NodeId | None = None) -> Plan:
        """Return whom a request would be sent to now, in order, with a reason for each.

        :param role: what is asked for, its name will do; `None` for what every node is told.
        :raises ValueError: for a role that there is not.
        """
        return self._open().planner.plan(role if role is None else Role.of(role), prefer)

    def explain(self, node_id: NodeId) -> str:
        """Say in one sentence why a node is where it is in the ranking; see :meth:`HeadMonitor.explain`."""
        return self._heads.explain(node_id)

    async def wait_ready(self, min_synced: int = 1, timeout: float | None = None) -> None:
        """Wait until so many nodes are usable: checked and healthy, synced, not optimistic, on our chain.

        :param timeout: seconds; for ever without one.
        :raises NotReadyInTime: when they are not by then, with what each node lacks.
        :raises ValueError: for no node at all.
        """
        if min_synced < 1:
            raise ValueError("ready is at least one node")
        if timeout is not None and math.isnan(timeout):
            raise ValueError("a time-out is a number of seconds")
        desk = self._open()
        watcher = self._changed.watcher()
        with anyio.CancelScope(deadline=math.inf if timeout is None else desk.clock.now() + timeout):
            while self._usable() < min_synced:
                await watcher.wait()
                self._open()
            return
        wanting, count = self._wanting(), len(self._heads.candidates.current)
        if count < min_synced:
            wanting.insert(0, f"the list has only {count}" if count else "the list of nodes is empty")
        words = enumerate_some(wanting, "; ")
        raise NotReadyInTime(f"{self._usable()} of {min_synced} nodes are usable after {timeout} s: {words}")

    def status(self) -> Status:
        """Return a snapshot of everything (O2)."""
        return snapshot(self._heads, self._open(), self._preparations, self._hub())

    def _wanting(self) -> list[str]:
        """Say of every node that is not usable what it lacks."""
        book = self._heads.cache.book
        flaws = {n: place.flaw or book.records[n].health.detail for n, place in book.ranking.places.items()}
        out = {n: why_left_out(facts) for n, facts in book.ranking.left_out.items()}
        return [cut(f"{n}: {words}") for n, words in (flaws | out).items() if not book.ready(n)]

    def _usable(self) -> int:
        book = self._heads.cache.book
        return sum(book.ready(node_id) for node_id in book.records)

    # --- what is seen

    async def _run(self) -> None:
        try:
            await self._runner.run()
        finally:
            if self._desk is not None and self._heads.cache.closing:
                # Calls under way in other tasks end now, and not when all streams have closed, which may take a second.
                self._desk.left = True
                self._heads.pool.close()

    def _hub(self) -> TopicHub:
        self._open()
        if self._topics is None:
            raise RuntimeError("it has not been entered")
        return self._topics

    async def _run_topics(self) -> None:
        if self._topics is not None:
            await self._topics.run()

    def _outcomes_of(self, node_id: NodeId) -> Outcomes:
        """Return what is told how requests to a node ended, for a client that is made now.

        What is still under way when the node is reached in another way says nothing of that (G3).
        """
        listed = self._heads.candidates.current.get(node_id)
        connection = None if listed is None else listed.candidate.connection

        def ended(route: Route, _began: float, at: float, error: NodeError | None) -> None:
            if error is None or self._desk is None:
                return
            now = self._heads.candidates.current.get(node_id)
            if now is not None and now.candidate.connection == connection:
                self._desk.ended(node_id, route, at, error)
                if self._returns is not None:
                    self._returns.ended(node_id, error)
                self._witnesses.ended(node_id, route, at, error)

        return ended

    def _observe(self, signal: Signal) -> None:
        if isinstance(signal, NodeHeadSeen):
            self._chain.seen(signal)
        elif isinstance(signal, HeadDelivered):
            self._chain.delivered()
        elif isinstance(signal, GenerationChanged):
            for node_id in (*signal.removed, *signal.changed):
                self._chain.forget(node_id)
                if self._desk is not None:
                    self._desk.forget(node_id)
        if self._desk is not None:
            self._desk.identities(signal)
        if self._returns is not None:
            self._returns(signal)
            self._witnesses(signal)
        if self._topics is not None:
            self._topics.observe(signal)
        if isinstance(signal, (HealthChanged, GenerationChanged)) and not self._changed.closed:
            self._changed.set(None)
