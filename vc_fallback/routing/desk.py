"""What all requests share: whom there is to ask, what is known of the chain, and the tasks that are theirs."""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Epoch, NodeId, Root, Slot
from vc_fallback.base.watch import Watch
from vc_fallback.candidates import Candidates
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.cooldown import Cooldowns
from vc_fallback.decide.delivery import Delivered
from vc_fallback.decide.latency import LatencyDigest
from vc_fallback.decide.ledger import NodeHead
from vc_fallback.health.book import HealthBook
from vc_fallback.node.failures import RateLimited, Unauthorized
from vc_fallback.node.pool import NodePool
from vc_fallback.node.routes import Route
from vc_fallback.routing.identities import Identities
from vc_fallback.routing.planner import Planner
from vc_fallback.routing.publish_log import PublishLog
from vc_fallback.routing.runner import Runner
from vc_fallback.settings import MAINNET_SLOT, RequestSettings


class ChainView(Protocol):
    """What requests want to know of heads; the head monitor tells it."""

    @property
    def slots(self) -> SlotClock | None:
        """The slots of the chain, `None` while it is not known."""

    def reanchor(self) -> SlotClock | None:
        """Pair the clocks anew, and return the slots as they are by that: the system clock may have been put right."""

    def latest_head(self) -> Delivered | None:
        """The latest delivered head."""

    def head_up_to(self, slot: Slot) -> Delivered | None:
        """The head that was delivered last of those that are not above a slot; `None` where that was long ago."""

    def slot_of(self, root: Root) -> Slot | None:
        """The slot of a block that a node has shown of late."""

    def head_of(self, node_id: NodeId) -> NodeHead | None:
        """A node's own head."""

    def dependent_root(self, epoch: Epoch) -> Root | None:
        """The root that fixes the duties of an epoch on the delivered chain, `None` where it is not known."""

    def streams(self, node_id: NodeId) -> bool | None:
        """Whether a node's head stream stands; `None` where it is to have none."""

    def has_stream(self, node_id: NodeId) -> bool | None:
        """As `streams`; one that the node has not answered yet does not count."""

    def follows(self, node_id: NodeId) -> bool:
        """Whether a node has a head stream that stands, and is not stalled."""

    def head_news(self, node_id: NodeId) -> Watch[None]:
        """What has news when a node shows another head."""


class Desk:
    """Handed to every call of the facade. It holds no task of its own; the runner does."""

    def __init__(
        self,
        settings: RequestSettings,
        *,
        clock: Clock,
        candidates: Candidates,
        book: HealthBook,
        pool: NodePool,
        runner: Runner,
        cooldowns: Cooldowns,
        chain: ChainView,
        news: Watch[None],
        identified: Callable[[NodeId, ChainIdentity], None],
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.candidates = candidates
        self.book = book
        self.pool = pool
        self.runner = runner
        self.cooldowns = cooldowns
        self.chain = chain
        self.news = news
        """Set when the health or the rank of a node has changed, or the list, and at the end."""
        self.left = False
        """Whether the facade was left: nobody is to be asked any more."""
        self.outrun: Counter[NodeId] = Counter()
        """How often in a row another node was faster with attestation data than one that was asked before it."""
        self.being_timed: set[NodeId] = set()
        """Nodes of which it is being found out how long they take."""
        self.identities = Identities(book, pool, clock, identified)
        self.publishes = PublishLog()
        self.planner = Planner(candidates, book, cooldowns, clock)
        self._latencies: dict[NodeId, dict[str, LatencyDigest]] = {}

    @property
    def slot_duration(self) -> float:
        """Seconds per slot; those of mainnet while the chain is not known."""
        slots = self.chain.slots
        return MAINNET_SLOT if slots is None else slots.duration

    def part(self, part: float) -> float:
        """Return a part of a slot in seconds."""
        return part * self.slot_duration

    @property
    def expects_nodes(self) -> bool:
        """Whether there are nodes that may still turn out to be ours: they have not said yet which chain they are on,
        or the chain is not known (G6)."""
        return any(record.excluded and not record.mismatch for record in self.book.records.values())

    def latency(self, node_id: NodeId, kind: str) -> float | None:
        """Return the seconds that nine of ten of a node's answers of a kind stay within, `None` where too few came."""
        digest = self._latencies.get(node_id, {}).get(kind)
        return None if digest is None else digest.p90(self.clock.now())

    def took(self, node_id: NodeId, kind: str, duration: float, *, given_up: bool = False) -> None:
        """Take how long a node's answer took. One that was given up would have taken longer still: it counts where it
        says more than what is known."""
        if node_id not in self.candidates.current:
            return
        digest = self._latencies.setdefault(node_id, {}).setdefault(kind, LatencyDigest())
        now = self.clock.now()
        if given_up:
            known = digest.p90(now)
            if known is None or duration <= known:
                return
        digest.add(duration, now)

    def forget(self, node_id: NodeId) -> None:
        """Forget a node that has left, or is reached in another way."""
        self._latencies.pop(node_id, None)
        self.outrun.pop(node_id, None)
        self.publishes.forget(node_id)

    def ended(self, node_id: NodeId, route: Route, at: float, error: NodeError) -> None:
        """Take how a request failed, whoever sent it: a node may ask to be left alone (Q11)."""
        self.identities.ended(node_id, at, error)
        if isinstance(error, RateLimited):
            rest = self.settings.cooldown if error.retry_after is None else error.retry_after
            self.cooldowns.cool(node_id, at, rest, asked=True)
        elif isinstance(error, Unauthorized):
            rest = self.settings.refused_cooldown
            self.cooldowns.refused(node_id, route.what, at, rest)
            if route.inspects:
                # Who does not even say what it is refuses us.
                self.cooldowns.cool(node_id, at, rest)
