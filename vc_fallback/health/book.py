"""The book of health: outcomes of checks and requests and the heads of streams go in, a ranking comes out (N1–N11)."""

from collections.abc import Callable, Mapping

from vc_fallback.base.clock import Clock
from vc_fallback.base.health import HealthReason
from vc_fallback.base.health_signals import (
    AllUnhealthy,
    BranchesDiffer,
    ClockDoubted,
    DutiesMoved,
    FinalityDiffers,
    HealthChanged,
)
from vc_fallback.base.signals import Observers
from vc_fallback.base.types import Epoch, NodeId, Root, Slot
from vc_fallback.candidates import Candidates, ListChange, Member
from vc_fallback.chain import NETWORKS, SlotClock
from vc_fallback.decide import health_words, rank_words
from vc_fallback.decide.clock_offset import ClockPolicy, ClockWatch
from vc_fallback.decide.consistency import Consistency
from vc_fallback.decide.drain import Drains
from vc_fallback.decide.failover import Failover, FailoverPolicy
from vc_fallback.decide.finality import Finality
from vc_fallback.decide.health_policy import HealthPolicy
from vc_fallback.decide.health_state import HealthTransition, NodeHealth
from vc_fallback.decide.rank import RankFacts, Ranking, rank
from vc_fallback.decide.tip_consensus import SETTLE, Heights, by_own_word
from vc_fallback.health.record import NodeRecord
from vc_fallback.settings import MAINNET_SLOT, SHORTEST, HealthSettings
from vc_fallback.times import CheckTimes

UNKNOWN_CHAIN = "its chain is not known yet"
PEERS = 15
"""Peers that a node of a known network needs before duties go back to it (N9)."""


class HealthBook:
    """All methods are synchronous and never wait (rule 7). Moments are loop time in seconds.

    Streams, checks and requests write; the ranking is made anew whenever what it depends on has changed, and duties
    move with it. One definition of "down" for requests, the tier gate and topics (rule 3): :meth:`unhealthy`.
    """

    def __init__(self, settings: HealthSettings, candidates: Candidates, clock: Clock, observers: Observers) -> None:
        self.settings = settings
        self.records: dict[NodeId, NodeRecord] = {}
        self.slots: SlotClock | None = None
        """The pinned chain's slots; `None` until the chain is known (I1)."""
        self.times = CheckTimes.of(settings, MAINNET_SLOT)
        self.on_verdict: Callable[[NodeId], None] = lambda _: None
        """Called when what :meth:`unhealthy` says of a node has changed."""
        self.on_sooner: Callable[[], None] = lambda: None
        """Called when a check may be due sooner than was thought."""
        self.consistency = Consistency()
        self.finality = Finality()
        self.drains = Drains()
        self._candidates = candidates
        self._clock = clock
        self._observers = observers
        self._policy = self._policy_of(MAINNET_SLOT)
        self._heights = Heights(SETTLE * MAINNET_SLOT)
        self._clocks = ClockWatch(ClockPolicy())
        self._failover = Failover(FailoverPolicy())
        self._ranking = Ranking({}, {})
        self._places: dict[NodeId, int] = {}
        self._split: object = None

    # --- the list and the chain

    def start(self) -> None:
        """Begin with the list as it is."""
        for member in self._candidates.current.members.values():
            self._join(member)
        self._rank()

    def pin(self, slots: SlotClock) -> None:
        """Take the chain's slots: limits scale with them (defaults are for 12 s)."""
        duration = slots.duration
        self.slots = slots
        self.times = CheckTimes.of(self.settings, duration)
        self._policy = self._policy_of(duration)
        for record in self.records.values():
            record.health.use(self._policy)
        self._heights.settle = SETTLE * duration
        scale = duration / MAINNET_SLOT
        warn, lower = max(SHORTEST, 0.25 * scale), max(SHORTEST, 0.5 * scale)
        self._clocks = ClockWatch(ClockPolicy(duration, warn, lower, duration / 3))
        known = any(slots.chain.genesis_validators_root == c.genesis_validators_root for c in NETWORKS.values())
        floor = self.settings.min_peers
        self._failover.policy = FailoverPolicy(
            dwell=self.settings.dwell * duration,
            prefer_higher_priority=self.settings.prefer_higher_priority,
            min_peers=(PEERS if known else 0) if floor is None else floor,
        )
        self.on_sooner()

    def apply(self, change: ListChange) -> None:
        """Follow a change of the list: who only changed tier, role or priority keeps its health (G2)."""
        for node_id in (*change.removed, *change.changed):
            self._forget(node_id)
            self.drains.resume(node_id)
            del self.records[node_id]
        listed = self._candidates.current.members
        for node_id in (*change.added, *change.changed):
            self._join(listed[node_id])
        for node_id in change.kept:
            self.records[node_id].member = listed[node_id]
        # The order of the list, in which nodes are shown.
        self.records = {node_id: self.records[node_id] for node_id in listed}
        self._rank()
        self.on_sooner()

    def identified(self, node_id: NodeId, mismatch: str) -> None:
        """Take what a node says of its chain, measured against the pinned one; empty where it fits (N7)."""
        record = self.records.get(node_id)
        if record is None:
            return
        record.mismatch = record.excluded = mismatch
        if mismatch:
            self._forget(node_id)
        self._changed(record)

    # --- checks

    def check_passed(
        self,
        node_id: NodeId,
        *,
        head_slot: Slot,
        sync_distance: int,
        latency: float,
        optimistic: bool | None,
        el_offline: bool | None,
    ) -> None:
        """Take an answer of `node/syncing`: distance in slots, latency in seconds."""
        record, now = self.records.get(node_id), self._clock.now()
        if record is None:
            return
        record.checked_head, record.claim = head_slot, sync_distance
        lag = None
        if not record.excluded:
            self._heights.saw(node_id, head_slot, now, served=False)
            lag = self._lag(node_id, now)
        self._took(
            record,
            record.health.check_passed(now, lag=lag, latency=latency, optimistic=optimistic, el_offline=el_offline),
        )

    def check_failed(self, node_id: NodeId, problem: str) -> None:
        """Take a check that failed, for whatever cause (N3, N4)."""
        record = self.records.get(node_id)
        if record is not None:
            self._took(record, record.health.check_failed(self._clock.now(), problem))
            if record.health.failed >= self._policy.failed_checks:
                # What it said is no height any more.
                self._heights.forget(node_id)
                self.consistency.forget(node_id)

    def answered(self, node_id: NodeId) -> None:
        """Take that a node has opened its stream: one that failed its checks may be back long before its next turn."""
        record = self.records.get(node_id)
        if record is not None and record.health.failed:
            record.answered = self._clock.now()
            self.on_sooner()

    # --- requests

    def request_failed(self, node_id: NodeId, problem: str, *, started: float, transport: bool) -> None:
        """Take a request that failed in a way that rule 10 counts; `transport`: there was no answer."""
        record = self.records.get(node_id)
        if record is not None:
            now = self._clock.now()
            self._took(record, record.health.request_failed(now, problem, started=started, transport=transport))

    def duty_answered(self, node_id: NodeId, latency: float) -> None:
        """Take the latency in seconds of attestation data (N3, Q2)."""
        record = self.records.get(node_id)
        if record is not None:
            self._took(record, record.health.duty_answered(self._clock.now(), latency))

    def future_slot(self, node_id: NodeId) -> None:
        """Note that a node said of the present slot that it is yet to come (N8)."""
        if self.slots is not None and node_id in self.records:
            self._clocks.future_slot(node_id, self.slots.slot_at(self._clock.now()))

    # --- heads

    def head(self, node_id: NodeId, slot: Slot, root: Root, *, announced: bool, optimistic: bool | None) -> None:
        """Take a node's head, from its stream (`announced`) or a poll."""
        record, slots = self.records.get(node_id), self.slots
        if record is None or record.excluded or slots is None:
            return
        now = self._clock.now()
        self._heights.saw(node_id, slot, now, served=True)
        self.consistency.head(node_id, slot, root)
        if announced:
            self._clocks.head(node_id, slot, slots.into_slot(now, slot))
        self._took(record, record.health.seen(now, lag=self._lag(node_id, now), optimistic=optimistic))

    def finalized(self, node_id: NodeId, epoch: Epoch, root: Root) -> None:
        """Take a checkpoint that a node has finalized (N3)."""
        conflict = self.finality.finalized(node_id, epoch, root) if node_id in self.records else None
        if conflict is not None:
            self._observers(FinalityDiffers(self._clock.now(), conflict.epoch, conflict.roots))

    def peers(self, node_id: NodeId, count: int) -> None:
        """Take how many peers a node says it has (N9)."""
        record = self.records.get(node_id)
        if record is not None:
            record.peers, record.peers_at = count, self._clock.now()
            self._changed(record)

    # --- time

    def slot_ended(self, slot: Slot) -> None:
        """Look back on a slot that is over: at branches, clocks, and errors that have grown old."""
        now = self._clock.now()
        for judged in self.consistency.judge():
            self._observers(BranchesDiffer(now, slot, judged.node_id, judged.reason, {}))
        split = self.consistency.splits[:1]
        if split != self._split:
            self._split = split
            if split:
                self._observers(BranchesDiffer(now, split[0].slot, None, "", split[0].roots))
        for odd in self._clocks.judge(slot):
            warning = self._clocks.ours() if odd is None else self._clocks.verdict(odd).warning
            self._observers(ClockDoubted(now, odd, warning))
        for record in self.records.values():
            self._changed(record, rank=False)
        self._rank()

    def look(self) -> float | None:
        """See what time alone has changed; return the next moment at which it may change something."""
        now = self._clock.now()
        for node_id in self.drains.ended(now):
            if node_id in self.records:
                self._changed(self.records[node_id], rank=False)
        self._rank()
        moments = [moment for moment in (self.drains.next_end, self._failover.next_look(now)) if moment is not None]
        return min(moments, default=None)

    # --- what is asked of it

    def unhealthy(self, node_id: NodeId) -> str:
        """Say why requests should not go to a node; empty while it is healthy (rule 3)."""
        record = self.records.get(node_id)
        return record.health.unhealthy if record is not None else "not in the list"

    @property
    def ranking(self) -> Ranking:
        """All nodes by rank (N6)."""
        return self._ranking

    @property
    def order(self) -> tuple[NodeId, ...]:
        """The nodes in the order in which to ask them: the one that has the duties first (N9)."""
        return self._failover.order(self._ranking)

    @property
    def active(self) -> NodeId | None:
        """The node that has the duties."""
        return self._failover.active

    @property
    def all_unhealthy(self) -> bool:
        """Whether there are nodes and none of them is healthy (N10)."""
        return self._failover.all_unhealthy

    def explain(self, node_id: NodeId) -> str:
        """Say in one sentence why a node is where it is.

        :raises KeyError: for a node that is not in the list.
        """
        record = self.records[node_id]
        return f"{rank_words.explain(self._ranking, node_id)}; {health_words.explain(record.health, self._clock.now())}"

    def drain(self, node_id: NodeId, duration: float) -> None:
        """Put a node last on purpose for so many seconds (N11); 0 ends it.

        :raises KeyError: for a node that is not in the list.
        """
        record = self.records[node_id]
        if duration > 0:
            self.drains.drain(node_id, self._clock.now() + duration)
        else:
            self.drains.resume(node_id)
        self._changed(record)
        self.on_sooner()

    # --- how it is done

    def _policy_of(self, duration: float) -> HealthPolicy:
        settings = self.settings
        defaults = HealthPolicy.for_slot(duration)
        return HealthPolicy(
            failed_checks=settings.failed_checks,
            min_recovery_checks=settings.min_recovery_checks,
            max_lag=settings.max_lag,
            most_errors=settings.most_errors,
            error_window=settings.scaled("error_window", duration),
            slow=None if settings.slow is None else max(SHORTEST, settings.slow * duration),
            latency_memory=defaults.latency_memory,
        )

    def _join(self, member: Member) -> None:
        health = NodeHealth(self._policy, self._clock.now())
        self.records[member.node_id] = record = NodeRecord(member, health, UNKNOWN_CHAIN)
        self._changed(record, rank=False)

    def _forget(self, node_id: NodeId) -> None:
        self._heights.forget(node_id)
        self.consistency.forget(node_id)
        self.finality.forget(node_id)
        self._clocks.forget(node_id)

    def _lag(self, node_id: NodeId, now: float) -> int | None:
        return None if self.slots is None else self._heights.lag(node_id, now, self.slots.slot_at(now))

    def _took(self, record: NodeRecord, transition: HealthTransition | None) -> None:
        self._changed(record)
        if transition is not None:
            if transition.moved:
                self.on_verdict(record.node_id)
            self.on_sooner()

    def _changed(self, record: NodeRecord, *, rank: bool = True) -> None:
        """Make what the rank of a node depends on anew; where it is as before nothing is ranked."""
        facts = self._facts(record)
        known = facts == record.facts
        record.facts = facts
        if rank and not known:
            self._rank()
        elif rank:
            self._tell(record)

    def _facts(self, record: NodeRecord) -> RankFacts:
        now, health, node_id = self._clock.now(), record.health, record.node_id
        candidate = record.member.candidate
        claim = beyond = None
        if record.claim is not None and record.checked_head is not None:
            claim = by_own_word(record.checked_head, record.claim, self._heights.slot(node_id))
        if self.slots is not None:
            beyond = node_id in self._heights.beyond_clock(self.slots.slot_at(now))
        left = self.drains.left(node_id, now)
        return RankFacts(
            node_id=node_id,
            tier=candidate.tier,
            priority=candidate.priority,
            index=record.member.index,
            unhealthy=record.mismatch or health.unhealthy,
            answers=health.answers,
            suspect=health.suspect,
            lag=health.lag,
            claim=claim,
            optimistic=health.optimistic,
            el_offline=health.el_offline,
            beyond_clock=bool(beyond),
            inconsistent=self.consistency.inconsistent(node_id),
            early=self._clocks.verdict(node_id).lowers,
            drained="for maintenance" if left else "",
            excluded=record.excluded,
            steady=health.steady,
            peers=record.peers,
        )

    def _rank(self) -> None:
        now = self._clock.now()
        self._ranking = rank(record.facts for record in self.records.values() if record.facts is not None)
        self._places = {node_id: place for place, node_id in enumerate(self._ranking.places, 1)}
        before = self._failover.all_unhealthy
        move = self._failover.look(now, self._ranking)
        for record in list(self.records.values()):
            self._tell(record)
        if move is not None:
            self._observers(DutiesMoved(now, str(move.kind), move.source, move.target, move.reason))
        if self._failover.all_unhealthy != before:
            self._observers(AllUnhealthy(now, self._failover.all_unhealthy))

    def _tell(self, record: NodeRecord) -> None:
        if not self._observers:
            return
        health, node_id, now = record.health, record.node_id, self._clock.now()
        place = self._places.get(node_id)
        told = (
            health.state, bool(health.suspect), health.reason, place, health.optimistic, health.el_offline,
            record.excluded,
        )  # fmt: skip
        if told == record.told or (record.told is None and health.reason is HealthReason.NEW and record.excluded):
            return
        record.told = told
        slot = self._heights.slot(node_id)
        distance = None if slot is None or self.slots is None else max(0, self.slots.slot_at(now) - slot)
        self._observers(
            HealthChanged(
                at=now,
                node_id=node_id,
                generation=self._candidates.generation,
                state=health.state,
                suspect=bool(health.suspect),
                reason=health.reason,
                detail=health.detail,
                explanation=rank_words.explain(self._ranking, node_id),
                rank=place,
                sync_distance=distance,
                optimistic=health.optimistic,
                el_offline=health.el_offline,
                latency=health.sync_latency.p90(now),
                offset=self._clocks.verdict(node_id).offset,
                peers=record.peers,
            )
        )

    def healths(self) -> Mapping[NodeId, NodeHealth]:
        """Return the health of every node of the list."""
        return {node_id: record.health for node_id, record in self.records.items()}
