"""The tier gate as it stands: evaluates the decision over the facts, holds fallbacks back, tells changes (C5, C6)."""

from operator import attrgetter

from vc_fallback.base.types import NodeId, Role, Slot, Tier
from vc_fallback.candidates import CandidateList, Candidates
from vc_fallback.chain import SlotClock
from vc_fallback.decide.choice import stream_choice
from vc_fallback.decide.delivery import Delivery
from vc_fallback.decide.gate import MOST_BEHIND, Gate, gate
from vc_fallback.decide.ledger import Ledger
from vc_fallback.decide.tip import tip
from vc_fallback.heads.telling import Telling
from vc_fallback.times import StreamTimes

_SLOT = attrgetter("slot")


class TierGate:
    """Open at first: without fallbacks there is nothing to hold back."""

    def __init__(self, candidates: Candidates, ledger: Ledger, delivery: Delivery, tell: Telling) -> None:
        self._candidates = candidates
        self._ledger = ledger
        self._delivery = delivery
        self._tell = tell
        self._gate = Gate(open=True, holder=None, reason="no primary")
        self._listed: CandidateList | None = None
        """The list that the next two are of."""
        self._primaries: tuple[NodeId, ...] = ()
        self._fallbacks: frozenset[NodeId] = frozenset()

    def tip(self, now: float, slots: SlotClock) -> Slot | None:
        """Return the tip of what the nodes of the pinned chain show (N5)."""
        nodes = self._ledger.nodes
        shown = self._delivery.entries.items()
        heights = [head.slot for node_id, head in shown if node_id in nodes and nodes[node_id].verified]
        return tip(heights, slots.slot_at(now))

    def look(self, now: float, slots: SlotClock, times: StreamTimes) -> bool:
        """Evaluate it; return whether it has just opened."""
        listed = self._candidates.current
        if listed is not self._listed:
            self._listed = listed
            self._primaries = tuple(member.node_id for member in listed.of(Role.EVENTS, Tier.PRIMARY))
            self._fallbacks = frozenset(member.node_id for member in listed.of(Role.EVENTS, Tier.FALLBACK))
        if not self._fallbacks:
            self._ledger.held = self._fallbacks
            return False
        before, self._gate = self._gate, self._evaluate(now, slots, times)
        self._ledger.held = frozenset() if self._gate.open else self._fallbacks
        if (self._gate.open, self._gate.holder) != (before.open, before.holder):
            self._tell.gate(self._gate)
        return self._gate.open and not before.open

    def stream_choice(self, now: float, slots: SlotClock, times: StreamTimes) -> tuple[NodeId, ...]:
        """Put the nodes with role `events` into the order in which consumers should prefer their events (C7)."""
        members = self._candidates.current.of(Role.EVENTS)
        return stream_choice(members, self._ledger, self._delivery.usable, self.tip(now, slots), now, slots, times)

    def _evaluate(self, now: float, slots: SlotClock, times: StreamTimes) -> Gate:
        usable = self._delivery.usable
        found = gate(self._primaries, self._ledger, usable, None, now, slots, times)
        # For the tip the standing of all nodes is looked at, twice for every head; no tip is beyond the newest head.
        newest = max(map(_SLOT, self._delivery.entries.values()), default=0)
        if found.holder is None or usable[found.holder].slot + MOST_BEHIND >= newest:
            return found
        return gate(self._primaries, self._ledger, usable, self.tip(now, slots), now, slots, times)
