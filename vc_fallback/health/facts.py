"""What is known of the health of all nodes, and what is made of it: a ranking, verdicts, and words for both."""

from collections.abc import Callable, Mapping

from vc_fallback.base.clock import Clock
from vc_fallback.base.health import HealthReason
from vc_fallback.base.health_signals import HealthChanged
from vc_fallback.base.signals import Observers
from vc_fallback.base.types import NodeId
from vc_fallback.candidates import Candidates
from vc_fallback.chain import SlotClock
from vc_fallback.decide import health_words, rank_words
from vc_fallback.decide.clock_offset import ClockPolicy, ClockWatch
from vc_fallback.decide.consistency import Consistency, Split
from vc_fallback.decide.drain import Drains
from vc_fallback.decide.finality import Finality
from vc_fallback.decide.health_state import NodeHealth
from vc_fallback.decide.rank import RankFacts, Ranking
from vc_fallback.decide.tip_consensus import SETTLE, Heights, by_own_word
from vc_fallback.health.news import News
from vc_fallback.health.policies import health_policy
from vc_fallback.health.record import NodeRecord
from vc_fallback.health.standings import Standings
from vc_fallback.health.verdict import HealthVerdict
from vc_fallback.settings import MAINNET_SLOT, HealthSettings
from vc_fallback.times import CheckTimes


class HealthFacts:
    """The reading half of :class:`~vc_fallback.health.book.HealthBook`, with what both halves hold.

    One definition of "down" for requests, the tier gate and topics (rule 3): :meth:`unhealthy`. A head of one of 100
    nodes takes 30 µs, by measurement; observers are told when everything is as they are told.

    All that is kept of a node is bounded: 20 kB, its part of what is kept of all nodes included, by measurement.
    """

    def __init__(self, settings: HealthSettings, candidates: Candidates, clock: Clock, observers: Observers) -> None:
        self.settings = settings
        self.records: dict[NodeId, NodeRecord] = {}
        self.slots: SlotClock | None = None
        """The pinned chain's slots; `None` until the chain is known (I1)."""
        self.times = CheckTimes.of(settings, MAINNET_SLOT)
        self.on_headers: Callable[[], None] = lambda: None
        """Called when headers have come to be known, by which branches can be compared."""
        self.on_verdict: Callable[[NodeId], None] = lambda _: None
        """Called when what :meth:`unhealthy` says of a node has changed."""
        self.on_sooner: Callable[[], None] = lambda: None
        """Called when a check may be due sooner than was thought."""
        self.consistency = Consistency()
        self.finality = Finality()
        self.drains = Drains()
        self._candidates = candidates
        self._clock = clock
        self._policy = health_policy(settings, MAINNET_SLOT)
        self._heights = Heights(SETTLE * MAINNET_SLOT)
        self._clocks = ClockWatch(ClockPolicy())
        self._news = News(observers, self._news_of, clock.now)
        self._standings = Standings(self._news)
        self._split: tuple[Split, ...] = ()

    # --- what is asked of it

    def unhealthy(self, node_id: NodeId) -> str:
        """Say why requests should not go to a node; empty while it is healthy (rule 3)."""
        record = self.records.get(node_id)
        return record.unhealthy if record is not None else "not in the list"

    def usable(self, node_id: NodeId) -> bool:
        """Whether a node is healthy, not optimistic, not behind, and not drained (N6)."""
        place = self.ranking.places.get(node_id)
        return place is not None and place.usable

    def ready(self, node_id: NodeId) -> bool:
        """Whether a node is known to be usable: it has answered its last check, and nothing speaks against it."""
        record = self.records.get(node_id)
        return (
            record is not None
            and record.health.checked is not None
            and not record.health.failed
            and self.usable(node_id)
        )

    def divided(self, node_id: NodeId) -> bool:
        """Whether a node's chain was another one than that of most, as of the last look. Of two that differ either's
        is, as nobody knows who is wrong. It may be over with the next block."""
        return any(
            node_id in sharing and 2 * len(sharing) <= sum(map(len, split.roots.values()))
            for split in (*self.consistency.splits, *self._split)
            for sharing in split.roots.values()
        )

    @property
    def too_slow(self) -> float | None:
        """Seconds from which on attestation data takes too long (N3); `None` where that is switched off."""
        return self._policy.slow

    @property
    def ranking(self) -> Ranking:
        """All nodes by rank (N6)."""
        return self._standings.ranking

    @property
    def order(self) -> tuple[NodeId, ...]:
        """The nodes in the order in which to ask them: the one that has the duties first (N9)."""
        return self._standings.order

    @property
    def active(self) -> NodeId | None:
        """The node that has the duties."""
        return self._standings.failover.active

    @property
    def failovers(self) -> int:
        """How often duties left a node that did worse than when it took over."""
        return self._standings.failover.failovers

    @property
    def failbacks(self) -> int:
        """How often they went back to a node that does better."""
        return self._standings.failover.failbacks

    @property
    def all_unhealthy(self) -> bool:
        """Whether there are nodes and none of them is healthy (N10)."""
        return self._standings.failover.all_unhealthy

    def explain(self, node_id: NodeId) -> str:
        """Say in one sentence why a node is where it is.

        :raises KeyError: for a node that is not in the list.
        """
        health = self.records[node_id].health
        return f"{rank_words.explain(self.ranking, node_id)}; {health_words.explain(health, self._clock.now())}"

    def verdict(self, node_id: NodeId) -> HealthVerdict:
        """Return the verdict on a node as of now.

        :raises KeyError: for a node that is not in the list.
        """
        record, now = self.records[node_id], self._clock.now()
        health, slot, clock = record.health, self._heights.slot(node_id), self._clocks.verdict(node_id)
        return HealthVerdict(
            node_id=node_id,
            state=health.state,
            suspect=health.suspect,
            reason=health.reason,
            detail=health.detail,
            since=health.since,
            excluded=record.excluded,
            rank=self.ranking.numbers.get(node_id),
            lag=health.lag,
            sync_distance=None if slot is None or self.slots is None else max(0, self.slots.slot_at(now) - slot),
            optimistic=health.optimistic,
            el_offline=health.el_offline,
            latency=health.sync_latency.p90(now),
            duty_latency=health.duty_latency.p90(now),
            offset=clock.offset,
            clock=clock.warning,
            inconsistent=self.consistency.inconsistent(node_id),
            finalized=self.finality.latest(node_id),
            peers=record.peers,
            drained=self.drains.left(node_id, now),
            checked=health.checked,
            history=tuple(health.history),
        )

    def healths(self) -> Mapping[NodeId, NodeHealth]:
        """Return the health of every node of the list."""
        return {node_id: record.health for node_id, record in self.records.items()}

    # --- how it is done

    def _changed(self, record: NodeRecord) -> None:
        """Make what the rank of a node depends on anew; where it is as before nothing is ranked."""
        now = self._clock.now()
        facts = self._facts(record, now)
        self._news.add(record.node_id)
        if facts != record.facts:
            record.facts = facts
            due = self._news.due
            self._standings.change(facts, now)
            if due is None and self._news.due is not None:
                self.on_sooner()
        self._news.tell()

    def _rank(self) -> None:
        """Make the ranking anew, of all nodes."""
        now = self._clock.now()
        found = []
        for record in self.records.values():
            record.facts = self._facts(record, now)
            found.append(record.facts)
            self._news.add(record.node_id)
        self._standings.remake(found, now)
        self._news.tell()

    def _aged(self, record: NodeRecord, now: float) -> bool:
        """Whether a look back on a slot has changed what the rank of a node depends on."""
        facts, node_id = record.facts, record.node_id
        return facts is None or (
            facts.inconsistent != self.consistency.inconsistent(node_id)
            or facts.early != self._clocks.verdict(node_id).lowers
            or facts.beyond_clock is not self._beyond_clock(node_id, now)
        )

    def _beyond_clock(self, node_id: NodeId, now: float) -> bool:
        return self.slots is not None and self._heights.beyond_clock(node_id, self.slots.slot_at(now))

    def _facts(self, record: NodeRecord, now: float) -> RankFacts:
        health, node_id, candidate = record.health, record.node_id, record.member.candidate
        claim = None
        if record.claim is not None and record.checked_head is not None:
            claim = by_own_word(record.checked_head, record.claim, self._heights.slot(node_id))
        return RankFacts(
            node_id=node_id,
            tier=candidate.tier,
            priority=candidate.priority,
            index=record.member.index,
            unhealthy=record.unhealthy,
            answers=health.answers,
            suspect=health.suspect,
            lag=health.lag,
            claim=claim,
            optimistic=health.optimistic,
            el_offline=health.el_offline,
            beyond_clock=self._beyond_clock(node_id, now),
            inconsistent=self.consistency.inconsistent(node_id),
            early=self._clocks.verdict(node_id).lowers,
            drained="for maintenance" if self.drains.left(node_id, now) else "",
            excluded=record.excluded,
            steady=health.steady and record.peers_at is not None,
            peers=record.peers,
        )

    def _news_of(self, node_id: NodeId) -> HealthChanged | None:
        """Tell of a node what is another thing than was told of it last."""
        record = self.records.get(node_id)
        if record is None or record.facts is None:
            return None
        health, facts = record.health, record.facts
        number = self.ranking.numbers.get(node_id)
        told = (
            health.state, bool(health.suspect), health.reason, number, health.optimistic, health.el_offline,
            record.excluded, bool(facts.drained), bool(facts.inconsistent), bool(facts.early),
        )  # fmt: skip
        if told == record.told or (record.told is None and health.reason is HealthReason.NEW and record.excluded):
            return None
        record.told = told
        verdict = self.verdict(node_id)
        return HealthChanged(
            at=self._clock.now(),
            node_id=node_id,
            generation=self._candidates.generation,
            state=verdict.state,
            suspect=bool(verdict.suspect),
            reason=verdict.reason,
            detail=verdict.detail,
            explanation=rank_words.explain(self.ranking, node_id),
            rank=number,
            sync_distance=verdict.sync_distance,
            optimistic=verdict.optimistic,
            el_offline=verdict.el_offline,
            latency=verdict.latency,
            offset=verdict.offset,
            peers=verdict.peers,
        )
