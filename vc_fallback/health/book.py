"""The book of health: outcomes of checks and requests and the heads of streams go in, a ranking comes out (N1–N11)."""

from vc_fallback.base.health import HealthState
from vc_fallback.base.health_signals import BranchesDiffer, ClockDoubted, FinalityDiffers
from vc_fallback.base.types import Epoch, NodeId, Root, Slot
from vc_fallback.candidates import ListChange, Member
from vc_fallback.chain import SlotClock
from vc_fallback.decide.health_state import HealthTransition, NodeHealth
from vc_fallback.decide.tip_consensus import SETTLE
from vc_fallback.health.facts import HealthFacts
from vc_fallback.health.policies import clock_policy, failover_policy, health_policy
from vc_fallback.health.record import NodeRecord
from vc_fallback.times import CheckTimes

UNKNOWN_CHAIN = "its chain is not known yet"


class HealthBook(HealthFacts):
    """All methods are synchronous and never wait (rule 7). Moments are loop time in seconds.

    Streams, checks and requests write; the ranking is made anew whenever what it depends on has changed, and duties
    move with it.
    """

    # --- the list and the chain

    def start(self) -> None:
        """Begin with the list as it is."""
        for member in self._candidates.current.members.values():
            self._join(member)
        self._rank()

    def pin(self, slots: SlotClock) -> None:
        """Take the chain's slots: limits scale with them (defaults are for 12 s)."""
        self.slots = slots
        self.times = CheckTimes.of(self.settings, slots.duration)
        self._policy = health_policy(self.settings, slots.duration)
        for record in self.records.values():
            record.health.use(self._policy)
        self._heights.settle = SETTLE * slots.duration
        self._clocks.policy = clock_policy(slots.duration)
        self._standings.failover.policy = failover_policy(self.settings, slots)
        self.on_sooner()

    def apply(self, change: ListChange) -> None:
        """Follow a change of the list: who only changed tier, role or priority keeps its health (G2).

        A drain is of a node id: it goes on over a change of the node's connection, and ends when the node leaves.
        """
        for node_id in (*change.removed, *change.changed):
            self._forget(node_id)
            del self.records[node_id]
        for node_id in change.removed:
            self.drains.resume(node_id)
        listed = self._candidates.current.members
        for node_id in (*change.added, *change.changed):
            self._join(listed[node_id])
        for node_id in change.kept:
            self.records[node_id].member = listed[node_id]
        # The order of the list, in which nodes are shown.
        self.records = {node_id: self.records[node_id] for node_id in listed}
        self._rank()
        self.on_sooner()

    def named_chain(self, node_id: NodeId) -> None:
        """Note that a node has said which chain it is on, whichever that is."""
        record = self.records.get(node_id)
        if record is not None:
            record.identified_at = self._clock.now()

    def identified(self, node_id: NodeId, mismatch: str) -> bool:
        """Take what a node says of its chain, measured against the pinned one; empty where it fits (N7).

        :returns: whether it has become a node of ours by that.
        """
        record = self.records.get(node_id)
        if record is None:
            return False
        before, record.excluded = record.excluded, mismatch
        verdict = bool(record.mismatch) is not bool(mismatch)
        record.mismatch = mismatch
        if verdict:
            # What it has shown is of another chain, and so may be what it was found to be.
            record.health.doubt()
            record.checked_head = record.claim = None
            self._forget(node_id)
        if before and not mismatch:
            record.check_now = True
        self._changed(record)
        if verdict:
            self.on_verdict(node_id)
        if before != mismatch:
            self.on_sooner()
        return bool(before) and not record.excluded

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
            transition = record.health.check_failed(self._clock.now(), problem)
            if record.health.failed >= self._policy.failed_checks:
                # What it said is no height any more.
                self._heights.forget(node_id)
                self.consistency.forget(node_id)
            self._took(record, transition)

    def answered(self, node_id: NodeId) -> None:
        """Take that a node has opened its stream: one that failed its checks may be back long before its next turn."""
        record = self.records.get(node_id)
        if record is not None and record.health.failed:
            record.check_now = True
            self.on_sooner()

    # --- requests

    def request_failed(self, node_id: NodeId, problem: str, *, started: float, transport: bool) -> None:
        """Take a request that failed in a way that rule 10 counts; `transport`: there was no answer."""
        record = self.records.get(node_id)
        if record is not None:
            now = self._clock.now()
            self._took(record, record.health.request_failed(now, problem, started=started, transport=transport))

    def duty_answered(self, node_id: NodeId, latency: float) -> None:
        """Take the latency in seconds of attestation data, or of a wait for it that was given up (N3, Q2)."""
        record = self.records.get(node_id)
        if record is not None:
            transition = record.health.duty_answered(self._clock.now(), latency)
            # A latency alone changes no rank, and comes with every answer: to look cost 8 µs (measured).
            if transition is not None:
                self._took(record, transition)

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
        wall = slots.slot_at(now)
        self._heights.saw(node_id, slot, now, served=True)
        self.consistency.head(node_id, slot, root)
        if announced and slot <= wall + 1:
            # One that is further ahead is refused (H13), and says nothing of when it came to be.
            self._clocks.head(node_id, slot, slots.into_slot(now, slot))
        lag = self._heights.lag(node_id, now, wall)
        self._took(record, record.health.seen(now, lag=lag, optimistic=optimistic))

    def finalized(self, node_id: NodeId, epoch: Epoch, root: Root) -> None:
        """Take a checkpoint that a node has finalized (N3)."""
        record = self.records.get(node_id)
        if record is None or record.excluded:
            return
        conflict = self.finality.finalized(node_id, epoch, root)
        if conflict is not None:
            self._news.add(FinalityDiffers(self._clock.now(), conflict.epoch, conflict.roots))
            self._news.tell()

    def peers(self, node_id: NodeId, count: int | None) -> None:
        """Take how many peers a node says it has (N9); `None` where it does not say."""
        record = self.records.get(node_id)
        if record is not None:
            record.peers, record.peers_at = count, self._clock.now()
            self._changed(record)

    # --- time

    def slot_ended(self, slot: Slot) -> None:
        """Look back on a slot that is over: at branches and clocks."""
        now = self._clock.now()
        self._compare(slot, now)
        for who in self._clocks.judge(slot):
            warning = self._clocks.ours() if who is None else self._clocks.verdict(who).warning
            if who is None or who in self.records:
                self._news.add(ClockDoubted(now, who, warning))
        self._looked_back(now)

    def headers_known(self) -> None:
        """Compare branches once more, by headers that have come since the slot was over."""
        now = self._clock.now()
        if self.slots is not None:
            self._compare(Slot(self.slots.slot_at(now) - 1), now)
            self._looked_back(now)
            self.on_headers()

    def look(self) -> float | None:
        """See what time alone has changed; return the next moment at which it may change something."""
        now = self._clock.now()
        for node_id in self.drains.ended(now):
            if node_id in self.records:
                self._changed(self.records[node_id])
        self._standings.look(now)
        self._news.look(now)
        self._news.tell()
        moments = (self.drains.next_end, self._standings.failover.next_look(now), self._news.due)
        return min((moment for moment in moments if moment is not None), default=None)

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

    def _compare(self, slot: Slot, now: float) -> None:
        consistency = self.consistency
        for judged in consistency.judge():
            if judged.node_id in self.records:
                at = slot if judged.compared else None
                self._news.add(BranchesDiffer(now, at, judged.node_id, judged.reason, {}))
        split = consistency.splits[:1]
        older = not split or (bool(self._split) and split[0].slot < self._split[0].slot)
        if older and consistency.undecided:
            # It is over when the nodes are seen to agree, not when a header is wanting.
            return
        if split != self._split:
            self._split = split
            self._news.add(
                BranchesDiffer(now, split[0].slot if split else slot, None, "", split[0].roots if split else {})
            )

    def _looked_back(self, now: float) -> None:
        if any(self._aged(record, now) for record in self.records.values()):
            self._rank()
        self._news.tell()

    def _join(self, member: Member) -> None:
        self.records[member.node_id] = NodeRecord(member, NodeHealth(self._policy, self._clock.now()), UNKNOWN_CHAIN)

    def _forget(self, node_id: NodeId) -> None:
        self._heights.forget(node_id)
        self.consistency.forget(node_id)
        self.finality.forget(node_id)
        self._clocks.forget(node_id)

    def _lag(self, node_id: NodeId, now: float) -> int | None:
        return None if self.slots is None else self._heights.lag(node_id, now, self.slots.slot_at(now))

    def _took(self, record: NodeRecord, transition: HealthTransition | None) -> None:
        moved = transition is not None and transition.moved
        if moved and record.health.state is HealthState.UNHEALTHY:
            # It may be back with others, or with few (case 29): it is asked anew before duties go back to it.
            record.peers_at = None
        self._changed(record)
        if moved:
            self.on_verdict(record.node_id)
        if transition is not None:
            self.on_sooner()
