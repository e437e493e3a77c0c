"""The tier gate as it stands: evaluates the decision over the facts, holds fallbacks back, tells changes (C5, C6)."""

from vc_fallback.base.types import Role, Slot, Tier
from vc_fallback.candidates import Candidates
from vc_fallback.chain import SlotClock
from vc_fallback.config import StreamTimes
from vc_fallback.decide.delivery import Delivery
from vc_fallback.decide.gate import Gate, gate
from vc_fallback.decide.ledger import Ledger, Standing
from vc_fallback.decide.tip import tip
from vc_fallback.heads.telling import Telling


class TierGate:
    """Open at first: without fallbacks there is nothing to hold back."""

    def __init__(self, candidates: Candidates, ledger: Ledger, delivery: Delivery, tell: Telling) -> None:
        self._candidates = candidates
        self._ledger = ledger
        self._delivery = delivery
        self._tell = tell
        self._gate = Gate(open=True, holder=None, reason="no primary")

    def tip(self, now: float, slots: SlotClock) -> Slot | None:
        """Return the tip of what the nodes of the pinned chain show (N5)."""
        heights = [
            head.slot
            for node_id, head in self._delivery.entries.items()
            if self._ledger.standing(node_id) in (Standing.ELIGIBLE, Standing.HELD)
        ]
        return tip(heights, slots.slot_at(now))

    def look(self, now: float, slots: SlotClock, times: StreamTimes) -> bool:
        """Evaluate it; return whether it has just opened."""
        listed = self._candidates.current
        fallbacks = frozenset(member.node_id for member in listed.of(Role.EVENTS, Tier.FALLBACK))
        if not fallbacks:
            self._ledger.held = fallbacks
            return False
        primaries = [member.node_id for member in listed.of(Role.EVENTS, Tier.PRIMARY)]
        top = self.tip(now, slots)
        before, self._gate = self._gate, gate(primaries, self._ledger, self._delivery.usable, top, now, slots, times)
        self._ledger.held = frozenset() if self._gate.open else fallbacks
        if (self._gate.open, self._gate.holder) != (before.open, before.holder):
            self._tell.gate(self._gate)
        return self._gate.open and not before.open
