"""The head monitor: the heads of many nodes as one (H, C, G); usable alone, without requests."""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Literal, Self, TypeVar

import anyio
import httpx
from anyio.abc import TaskGroup

from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import ConfigurationError, NodeError
from vc_fallback.base.signals import Observer, Observers
from vc_fallback.base.types import Epoch, NodeId, Root, Slot
from vc_fallback.base.urls import BaseURL
from vc_fallback.base.watch import Watch
from vc_fallback.candidates import Candidate, Candidates, ListChange, Member
from vc_fallback.chain import SlotClock
from vc_fallback.config import FallbackConfig
from vc_fallback.decide.delivery import Delivered
from vc_fallback.decide.ledger import NodeHead
from vc_fallback.heads.cache import HeadCache
from vc_fallback.heads.statistics import StreamStatistics
from vc_fallback.heads.subscriptions import HeadSubscriptions
from vc_fallback.heads.supervisor import Supervisor
from vc_fallback.heads.tasks import run
from vc_fallback.health.book import HealthBook
from vc_fallback.health.outcomes import outcomes
from vc_fallback.health.verdict import HealthVerdict
from vc_fallback.node.caller import Outcomes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.factory import NodeFactory
from vc_fallback.node.pool import NodePool
from vc_fallback.node.routes import Route
from vc_fallback.wire.dial import Resolver

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SlotHead:
    """The answer of :meth:`HeadMonitor.wait_for_slot`; `later` says that the head is for a later slot (C10)."""

    head: Delivered
    later: bool


class HeadMonitor(HeadSubscriptions):
    """Follows the heads of all candidates with role `events` and delivers each change of head once.

    Use it as an asynchronous context manager; every task of it ends with the block, and an exception of the block
    leaves unchanged. Subscriptions and the watch of the latest head survive every change of the list.

    :param config: candidates and settings; the list may be empty (G6).
    :param observers: called with every signal, at once; they must not wait.
    :param clock: loop time and Unix time; one of your own for virtual time.
    :param resolver: resolves host names instead of the system; needed in virtual time for anything but IP literals.
    :param transport: used for all nodes instead of the built-in connections: a proxy, a mock, your own.
    :param outcomes: of who sends requests beside the monitor: makes what is told how every request to a node ended.
    :param also: tasks of theirs, which run as long as the monitor's own.
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
        outcomes: Callable[[NodeId], Outcomes] | None = None,
        also: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        super().__init__()
        if not isinstance(config, FallbackConfig):
            raise TypeError("config: a FallbackConfig is needed; FallbackConfig.from_urls([...]) makes one of URLs")
        self._config = config
        self._told_of_outcomes = outcomes
        self._also = also
        self._nodes = NodeFactory(config.wire, resolver, transport)
        candidates = config.candidate_list()
        self._nodes.prepare(candidates)
        self.candidates = Candidates(candidates)
        self._clock = clock
        self._observers = Observers(observers)
        self._cache: HeadCache | None = None
        self._supervisor: Supervisor | None = None
        self._pool: NodePool | None = None
        self._host: TaskGroup | None = None
        self._scope: anyio.CancelScope | None = None

    async def __aenter__(self) -> Self:
        if self._cache is not None:
            raise RuntimeError("a monitor is entered once; make another one")
        clock = self._clock if self._clock is not None else Clock()
        book = HealthBook(self._config.health, self.candidates, clock, self._observers)
        self._cache = cache = HeadCache(self._config, self.candidates, clock, self._observers, book)
        self._pool = NodePool(
            self.candidates,
            self._nodes,
            clock,
            slots=lambda: cache.slots,
            quarantined=cache.quarantined,
            outcomes=self._outcomes,
        )
        self._supervisor = Supervisor(cache, self.make_node)
        cache.start()
        self._host = anyio.create_task_group()
        self._scope = anyio.CancelScope()
        await self._host.__aenter__()
        self._host.start_soon(run, cache, self._supervisor, self._pool, self._scope, self._also)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        host, self._host = self._host, None
        if host is None or self._scope is None:
            return
        self.cache.closing = self.cache.reorgs.closed = True
        # A scope of our tasks' own: cancelling the one around the block would count as a cancellation of its task.
        self._scope.cancel()
        cancelled = anyio.get_cancelled_exc_class()
        try:
            # The block's exception is not shown to the task group, which would wrap it in an ExceptionGroup.
            await host.__aexit__(None, None, None)
        except cancelled:
            # What the block raised itself goes before a cancellation that comes while the tasks end.
            if error is None or isinstance(error, cancelled):
                raise
        finally:
            if self._pool is not None:
                self._pool.close()
            self._close_subscriptions()
            self.cache.latest.close()
            self.cache.activity.close()

    @property
    def cache(self) -> HeadCache:
        """The head cache; there is one from entering the context on.

        :raises RuntimeError: before that.
        """
        if self._cache is None:
            raise RuntimeError("the monitor has not been entered")
        return self._cache

    @property
    def pool(self) -> NodePool:
        """The clients with which nodes are asked; there are some from entering the context on.

        :raises RuntimeError: before that.
        """
        if self._pool is None:
            raise RuntimeError("the monitor has not been entered")
        return self._pool

    # --- heads

    @property
    def slots(self) -> SlotClock | None:
        """The slots of the pinned chain; `None` until the chain is known (I1)."""
        return self.cache.slots

    @property
    def clock(self) -> Clock:
        """The monitor's clock."""
        return self.cache.clock

    @property
    def latest(self) -> Watch[Delivered | None]:
        """The latest delivered head (C9)."""
        return self.cache.latest

    def heads(self) -> Mapping[NodeId, NodeHead]:
        """Return a snapshot of every node's own head (C1)."""
        return MappingProxyType(dict(self.cache.delivery.entries))

    def is_latest(self, slot: Slot) -> bool:
        """Whether a slot is at or above the slot of every eligible node's head (C2)."""
        return self.cache.delivery.is_latest(slot)

    def votes(self, slot: Slot) -> Mapping[Root, tuple[NodeId, ...]]:
        """Say which nodes stand behind which root at a slot, by their present heads (C4)."""
        return self.cache.delivery.votes(slot)

    def subscription_healthy(self, node_id: NodeId) -> bool | None:
        """Whether a node's head stream is fresh; `None` while that is unknown (H6).

        :raises KeyError: for a node that is not in the list.
        """
        return self.cache.healthy(node_id)

    def stream_choice(self) -> tuple[NodeId, ...]:
        """Return the nodes in the order in which consumers of events should prefer them (C7).

        Fresh and healthy primaries first, then any fresh and healthy node, then all others by plain health: healthy
        before unhealthy; within each by tier, priority and place in the list. Nodes on another chain are left out, and
        so are those that have not said yet which chain they are on; nobody is in it before the chain is known.
        """
        return self.cache.stream_choice()

    def dependent_root(self, epoch: Epoch) -> Root | None:
        """Return the block root that fixes the duties of an epoch on the delivered chain (C11).

        Known for the previous, the current and the next epoch of the delivered head, as far as nodes have named it;
        `None` is unknown. Each change of it is a :class:`DependentRootChanged` signal (:meth:`dependent_root_changes`).
        """
        dependents = self.cache.dependents
        return dependents.get(epoch) if dependents is not None else None

    async def wait_for_slot(self, slot: Slot, deadline: float, min_nodes: int = 1) -> SlotHead | None:
        """Wait for the head of a slot, shown by at least `min_nodes` nodes; a later head answers too and says so (C10).

        :param deadline: in loop time, such as `clock.now() + 2`; `None` is returned then, at once where it is past.
        :raises WatchClosed: when the monitor ends before.
        """
        watcher = self.cache.activity.watcher()
        with anyio.move_on_after(max(0.0, deadline - self.clock.now())):
            while True:
                delivered = self.cache.delivery.delivered
                if delivered is not None and delivered.head.slot >= slot and len(delivered.voters) >= min_nodes:
                    return SlotHead(delivered, later=delivered.head.slot > slot)
                await watcher.wait()
        return None

    def statistics(self) -> Mapping[NodeId, StreamStatistics]:
        """Return counts of every head stream."""
        if self._supervisor is None:
            return {}
        return {stream.node_id: stream.statistics() for stream in self._supervisor.streams}

    # --- health

    def ranking(self) -> tuple[NodeId, ...]:
        """Return the nodes by rank, best first (N6); left out are those of another chain, or of none known yet."""
        return self.cache.book.ranking.order

    def order(self) -> tuple[NodeId, ...]:
        """Return the nodes in the order in which to ask them: the one that has the duties, then the others by rank.

        Duties do not follow every change of the ranking: they leave a node at once that does worse than when it took
        over, and go back to one that ranks higher only when it can be relied on (N9). While the node that has them is
        suspect the others of its tier come first (N4). When nobody is healthy all are in it all the same (N10).
        """
        return self.cache.book.order

    def health(self, node_id: NodeId) -> HealthVerdict:
        """Return the verdict on a node's health: its state, why, since when, and what it was made of (N1).

        :raises KeyError: for a node that is not in the list.
        """
        self.candidates.current.listed(node_id)
        return self.cache.book.verdict(node_id)

    def explain(self, node_id: NodeId) -> str:
        """Say in one sentence why a node is where it is in the ranking, and what would change its health (N1, N6).

        :raises KeyError: for a node that is not in the list.
        """
        self.candidates.current.listed(node_id)
        return self.cache.book.explain(node_id)

    def drain(self, node_id: NodeId, duration: float) -> None:
        """Put a node last on purpose for so many seconds from now, for maintenance; 0 ends that (N11).

        It is checked and followed all the same, and comes back by itself. A change of the list ends it only where the
        node leaves.

        :raises KeyError: for a node that is not in the list.
        :raises ValueError: for a duration that is below 0 or no number.
        """
        if not 0 <= duration < math.inf:
            raise ValueError("a drain lasts 0 seconds or longer, and ends")
        self.candidates.current.listed(node_id)
        self.cache.book.drain(node_id, duration)

    # --- the list

    def update_candidates(
        self, candidates: Iterable[Candidate | str], *, restart: Literal["changed", "all"] = "changed"
    ) -> ListChange:
        """Replace the candidate list (G1, G2). Nothing changes when it cannot be used.

        :param candidates: the whole new list, in order; a base URL as text stands for a primary with all roles.
        :param restart: `all` gives every stream a new start, also those of nodes that stay as they are; certificates
            are read anew.
        :raises ConfigurationError: `field` names what is wrong.
        """
        new = [_candidate(one, position) for position, one in enumerate(candidates)]
        contexts = self._nodes.prepare(new, anew=restart == "all")
        change = self.candidates.update(new)
        self._nodes.use(contexts)
        if self._cache is None:
            return change
        if restart == "all" and self._supervisor is not None:
            self._supervisor.restart_all()
        if self._pool is not None:
            self._pool.apply(change)
        self._cache.apply(change)
        return change

    def make_node(self, member: Member) -> BeaconNode:
        """Make a client of a node for what needs connections of its own, as streams do; it is the caller's to close."""
        return self._nodes.make(
            member,
            self.clock,
            generation=lambda: self.candidates.generation,
            slots=lambda: self.cache.slots,
            quarantined=lambda: self.cache.quarantined(member.node_id),
            outcomes=self._outcomes(member.node_id),
        )

    def _outcomes(self, node_id: NodeId) -> Outcomes:
        health = outcomes(self.cache.book, node_id)
        if self._told_of_outcomes is None:
            return health
        also = self._told_of_outcomes(node_id)

        def ended(route: Route, began: float, at: float, error: NodeError | None) -> None:
            health(route, began, at, error)
            also(route, began, at, error)

        return ended


def _candidate(given: Candidate | str, position: int) -> Candidate:
    if isinstance(given, Candidate):
        return given
    try:
        return Candidate(BaseURL.parse(given))
    except ValueError as error:
        raise ConfigurationError(f"candidates[{position}].url", str(error)) from None
