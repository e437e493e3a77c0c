"""The shared head cache: takes what nodes show, lets the pure decisions speak, hands on what they say."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import HeadOutcome, Observers, StreamReason, StreamState
from vc_fallback.base.types import Epoch, HeadSource, NodeId
from vc_fallback.base.watch import Watch
from vc_fallback.candidates import Candidates, ListChange, Member
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.config import FallbackConfig
from vc_fallback.decide.cooldown import Cooldowns
from vc_fallback.decide.delivery import Decision, Delivered, Delivery
from vc_fallback.decide.freshness import is_current, state_of, subscription_healthy
from vc_fallback.decide.ledger import Ledger, NodeHead, StreamFacts
from vc_fallback.decide.reorgs import Reorgs
from vc_fallback.heads.dependent_roots import DependentRootWatch
from vc_fallback.heads.membership import Membership
from vc_fallback.heads.reorgs import ReorgWatch
from vc_fallback.heads.telling import Telling
from vc_fallback.heads.tier_gate import TierGate
from vc_fallback.heads.verification import Verification
from vc_fallback.health.book import HealthBook
from vc_fallback.node.events import HeadTopicEvent, ReorgEvent
from vc_fallback.settings import MAINNET_SLOT
from vc_fallback.times import StreamTimes


class HeadCache:
    """Everything that is known of heads, in one place. All methods are synchronous and never wait (rule 7)."""

    def __init__(
        self, config: FallbackConfig, candidates: Candidates, clock: Clock, observers: Observers, book: HealthBook
    ) -> None:
        self.config = config
        self.book = book
        book.on_verdict = self.judge_health
        self.candidates = candidates
        self.clock = clock
        self.ledger = Ledger()
        self.cooldowns = Cooldowns()
        """Nodes that are to be left alone: one budget for requests and for opening streams (case 24)."""
        self.delivery = Delivery(
            self.ledger.standing,
            oldest=config.heads.oldest,
            deliver_optimistic=config.heads.deliver_optimistic,
        )
        self.tell = Telling(observers, clock, candidates, self.ledger.nodes, self.healthy)
        self.slots: SlotClock | None = None
        """The pinned chain's slots; `None` until the chain is known (I1)."""
        self.times = StreamTimes.of(config.streams, MAINNET_SLOT)
        self.latest: Watch[Delivered | None] = Watch(None)
        self.activity: Watch[None] = Watch(None)
        """Set on every delivery and every vote."""
        self.settle: Watch[None] = Watch(None)
        """Set when an old head begins to wait for its burst to end, or a reorg is held back."""
        self.answers: Watch[None] = Watch(None)
        """Set whenever a node has said which chain it is on."""
        self.on_pinned: Callable[[], None] = lambda: None
        """Called when the chain has become known."""
        self.withheld: Callable[[NodeHead], None] = lambda _: None
        """Called with an optimistic head that would be delivered if it were valid (H12)."""
        self.closing = False
        """Set when the monitor ends: streams that end then make nothing news."""
        self.members = Membership(candidates, self.ledger, self.delivery, self.tell, clock)
        self.reorgs = ReorgWatch(clock, self.members, self.tell, held=lambda: self.settle.set(None))
        """Reorgs of the delivered chain."""
        book.on_headers = self.reorgs.review
        self._verification = Verification(
            candidates, self.ledger, clock, book, self.tell, leave=self._leave, joined=self._joined
        )
        self._epoch: Epoch | None = None
        self._gate = TierGate(candidates, self.ledger, self.delivery, self.tell)
        self.dependents: DependentRootWatch | None = None
        """Dependent roots of the delivered chain (C11); `None` until the chain is known."""
        self._deliver_to: dict[object, Callable[[Delivered], None]] = {}
        self.taps: dict[object, Callable[[NodeId, HeadTopicEvent, float], None]] = {}
        """Called with every event about the head that a listed node's stream brings, and the loop time of its bytes:
        before the cache takes it, whatever becomes of it. `head` and `head_v2` of one block are one event (H11). They
        must not wait, and none may fail."""

    # --- the chain

    def pin(self, chain: ChainIdentity) -> None:
        """Fix the chain for good (I1), check every node's identity against it, and deliver what was kept."""
        self.ledger.chain = chain
        self.times = StreamTimes.of(self.config.streams, chain.slot_duration)
        self.dependents = DependentRootWatch(
            chain.slots_per_epoch, self.ledger, self.delivery, self.tell, self.book.usable
        )
        self.clock.reanchor()
        self.book.pin(self._set_slots(chain))
        branches = self.book.consistency.branches
        self.reorgs.pin(Reorgs(self.delivery.entries, self.ledger.standing, branches, self.dependents.roots))
        self.tell.started(chain)
        for facts in self.ledger.nodes.values():
            self._find_current(facts.stream)
        self._verification.check_all()
        self.reconsider()
        self.tell_verdicts()
        self.on_pinned()

    def reanchor(self) -> SlotClock | None:
        """Pair the clocks anew (I2), and return the slots as they are by that."""
        self.clock.reanchor()
        return self.slots if self.ledger.chain is None else self._set_slots(self.ledger.chain)

    def slot_began(self) -> None:
        """Pair the clocks anew (I2); with a new epoch a fork may have come that a node does not know of (N7)."""
        slots = self.reanchor()
        if slots is not None:
            before, self._epoch = self._epoch, slots.epoch_at(self.clock.now())
            if before != self._epoch:
                self._verification.check_all()
        self.reconsider()

    def _set_slots(self, chain: ChainIdentity) -> SlotClock:
        self.slots = self.book.slots = SlotClock(chain, self.clock.offset)
        self.reorgs.slots = self.slots
        return self.slots

    def identified(self, node_id: NodeId, identity: ChainIdentity) -> None:
        """Take a node's own word of its chain (N7, H15)."""
        facts = self.ledger.nodes[node_id]
        facts.identity = identity
        self.book.named_chain(node_id)
        self.answers.set(None)
        if self.ledger.chain is None:
            self.resolve(waited=False)
            return
        followed = self._verification.follow_forks(self.ledger.chain)
        if followed is None:
            self._verification.check(node_id)
        else:
            self.ledger.chain = followed
            self._set_slots(followed)
            self._verification.check_all()
        self.reconsider()

    def resolve(self, *, waited: bool) -> None:
        """Pin the chain that the primaries agree on, if they do (I1)."""
        chain = self._verification.agreed(waited=waited)
        if chain is not None and self.ledger.chain is None:
            self.pin(chain)

    def quarantined(self, node_id: NodeId) -> str:
        """Say why a node is not to be asked for anything but what it is (N7); empty where it may be asked."""
        facts = self.ledger.nodes.get(node_id)
        return facts.mismatch if facts is not None else ""

    def _leave(self, node_id: NodeId) -> None:
        """Drop what a node gave that turned out to be on another chain (H15)."""
        self._take(self.delivery.leave(node_id))

    def _joined(self, node_id: NodeId) -> None:
        """Take what a node showed before its chain was known to be ours."""
        entry = self.delivery.entries.get(node_id)
        if entry is not None:
            self._note(entry, announced=False)

    def _find_current(self, stream: StreamFacts) -> None:
        """See whether a head that came before the chain was known was a current one."""
        if self.slots is None or stream.last_head is None or stream.last_head_at is None:
            return
        if is_current(stream.last_head.slot, stream.last_head_at, self.slots):
            stream.last_current_at = stream.last_head_at

    # --- heads

    def member(self, node_id: NodeId, connection: object) -> Member | None:
        """Return the member that a stream or a poll speaks for; `None` when the list has it no more, or not so (G3)."""
        return self.members.member(node_id, connection)

    def offer(self, head: NodeHead) -> None:
        """Take a head that has just come; it is stamped with the present generation (G3)."""
        now, facts = head.received, self.ledger.nodes.get(head.node_id)
        self._look_at_gate(now)
        if not self.closing:
            self._note(head, announced=head.source is HeadSource.STREAM)
        # Observers are told of the gate and of health, and may have changed the list.
        listed = head.node_id in self.members.followed and self.ledger.nodes.get(head.node_id) is facts
        if self.closing or not listed:
            return
        if head.generation != self.candidates.generation:
            head = replace(head, generation=self.candidates.generation)
        known = self._votes
        decisions = self.delivery.offer(head, now, self.slots)
        self._take(decisions)
        self._look_at_gate(now)
        if self.dependents is not None:
            self.dependents.look(head)
        if self.reorgs.due is not None:
            self.reorgs.look()
        if not decisions:
            self.settle.set(None)
        elif decisions[-1].outcome is HeadOutcome.OPTIMISTIC:
            self.withheld(head)
        if self._votes != known:
            self.activity.set(None)

    def _note(self, head: NodeHead, *, announced: bool) -> None:
        """Have a head noted in the book of health."""
        self.book.head(head.node_id, head.slot, head.root, announced=announced, optimistic=head.optimistic)

    def reorged(self, node_id: NodeId, event: ReorgEvent, received: float) -> None:
        """Take a node's word that its head has left a branch, before its new head is offered (H14)."""
        self.tell.reorg_seen(node_id, event, received)
        self.reorgs.reported(node_id, event)

    def streamed(self, head: NodeHead) -> bool:
        """Note that a stream announced a head; return whether it is a current one (H6)."""
        facts = self.ledger.nodes[head.node_id].stream
        now = head.received
        facts.last_head = head
        facts.last_head_at = now
        if self.slots is None or not is_current(head.slot, now, self.slots):
            return False
        facts.last_current_at = now
        facts.stalled = facts.behind = False
        return True

    def settle_due(self) -> None:
        """Deliver old heads whose burst is over (H13), and tell of a reorg that was held back for long enough."""
        if self.slots is not None:
            self._take(self.delivery.settle(self.clock.now(), self.slots))
        self.reorgs.look()

    def forget(self, node_id: NodeId) -> None:
        """Drop the entry of a node whose connection ended (H8)."""
        self._take(self.delivery.forget(node_id))
        self.reconsider()

    def reconsider(self) -> None:
        """Look at the gate, and deliver what has become deliverable (C6)."""
        if not self.closing and not self._look_at_gate(self.clock.now()):
            self._deliver_best()

    def look_at_gate(self) -> None:
        """Look whether a stream's change of state opens or closes the gate (C6)."""
        self._look_at_gate(self.clock.now())

    def _look_at_gate(self, now: float) -> bool:
        """Evaluate the tier gate; return whether it has just opened, and with it everything was reconsidered (C6)."""
        if self.slots is None or not self.config.heads.tier_gate or self.closing:
            return False
        if not self._gate.look(now, self.slots, self.times):
            return False
        self._deliver_best()
        return True

    def _deliver_best(self) -> None:
        known = self._votes
        delivered = self.delivery.reconsider(self.clock.now(), self.slots)
        if delivered is not None:
            self._publish(delivered)
        elif self._votes != known:
            self.activity.set(None)

    @property
    def _votes(self) -> int:
        """How many nodes have shown the delivered head."""
        return len(self.delivery.delivered.voters) if self.delivery.delivered is not None else 0

    def _take(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            # Of a node that has left nothing is told any more: an observer of one decision may change the list.
            if decision.head.node_id in self.members.followed:
                self.tell.head_seen(decision)
            if decision.delivered is not None:
                self._publish(decision.delivered)

    def _publish(self, decided: Delivered) -> None:
        delivered = self.members.readable(decided) if decided.head.node_id in self.members.followed else None
        if self.slots is None or delivered is None:
            return
        self.latest.set(delivered)
        for deliver in list(self._deliver_to.values()):
            deliver(delivered)
        self.activity.set(None)
        # Before anyone is told, who may change the list: heads follow each other in the order of their delivery.
        reorgs = self.reorgs.moved(delivered)
        self.tell.delivered(delivered, self.slots)
        self.reorgs.tell(reorgs)

    # --- the list

    def start(self) -> None:
        """Begin with the list as it is."""
        self.members.start()
        self.book.start()
        self.tell.started(None)
        identity = self.config.identity()
        if identity is not None:
            self.pin(identity)

    def apply(self, change: ListChange) -> None:
        """Follow a change of the list (G1, G2). It is told when all is done: whoever is told may change it again."""
        for node_id in (*change.removed, *change.changed):
            self.cooldowns.warm(node_id)
        self.members.apply(change)
        self.book.apply(change)
        if self.delivery.delivered is not None:
            self.latest.amend(self.delivery.delivered)
        self.tell.list_changed(change)
        if self.ledger.chain is None:
            # Those who are left may be enough to say which chain it is, and may have said it already.
            self.answers.set(None)
            self.resolve(waited=False)
        self.reconsider()

    # --- verdicts

    def healthy(self, node_id: NodeId) -> bool | None:
        """Say whether a node's stream is to be relied on (H6); `None` where it has none."""
        facts = self.ledger.nodes[node_id]
        if node_id not in self.members.followed:
            return None
        return subscription_healthy(facts.stream, self.clock.now(), self.slots, self.times)

    def tell_verdicts(self) -> None:
        """Tell of streams whose verdict has changed with time alone: the grace is over, or they were away too long."""
        for node_id, facts in list(self.ledger.nodes.items()):
            if node_id not in self.ledger.nodes or not self.tell.verdict_changed(node_id):
                continue
            healthy = self.healthy(node_id)
            if facts.stream.state in (StreamState.OPEN, StreamState.FRESH):
                facts.stream.state = state_of(healthy)
            reason = StreamReason.CURRENT_HEAD
            if not healthy:
                never = facts.stream.last_current_at is None
                reason = StreamReason.START_GRACE_OVER if never else StreamReason.HEAD_SILENCE
            self.tell.stream(node_id, reason)

    def judge_health(self, node_id: NodeId) -> None:
        """Take the verdict on a node's health: the gate looks at it, too (N1, rule 3)."""
        facts = self.ledger.nodes.get(node_id)
        if facts is None:
            return
        reason = self.book.unhealthy(node_id)
        changed = bool(reason) != bool(facts.unhealthy)
        facts.unhealthy = reason
        if changed:
            self.reconsider()

    def stream_choice(self) -> tuple[NodeId, ...]:
        """Put the nodes with role `events` into the order in which consumers should prefer their events (C7)."""
        return self._gate.stream_choice(self.clock.now(), self.slots, self.times) if self.slots is not None else ()

    # --- subscribers

    def attach(self, key: object, deliver: Callable[[Delivered], None]) -> None:
        """Call `deliver` with every delivered head, at once, until :meth:`detach`."""
        self._deliver_to[key] = deliver

    def detach(self, key: object) -> None:
        """End :meth:`attach`."""
        self._deliver_to.pop(key, None)
