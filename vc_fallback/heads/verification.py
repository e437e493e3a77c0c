"""Which chain it is, and who is on it: what the nodes say of their chain against what is pinned (I1, N7, H15)."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import StreamReason
from vc_fallback.base.types import Epoch, NodeId, Tier
from vc_fallback.candidates import Candidates
from vc_fallback.chain import ChainIdentity
from vc_fallback.decide.identity import agreed_identity, forks_of, not_scheduled
from vc_fallback.decide.ledger import CONNECTED, Ledger, NodeFacts
from vc_fallback.heads.telling import Telling
from vc_fallback.health.book import HealthBook

logger = logging.getLogger(__name__)


class Verification:
    """Measures the identities in the ledger against the pinned chain.

    :param leave: drops what a node gave that turned out to be on another chain.
    :param joined: called with a node whose chain has just become known to be ours.
    """

    def __init__(
        self,
        candidates: Candidates,
        ledger: Ledger,
        clock: Clock,
        book: HealthBook,
        tell: Telling,
        *,
        leave: Callable[[NodeId], None],
        joined: Callable[[NodeId], None],
    ) -> None:
        self._candidates = candidates
        self._ledger = ledger
        self._clock = clock
        self._book = book
        self._tell = tell
        self._leave = leave
        self._joined = joined

    def agreed(self, *, waited: bool) -> ChainIdentity | None:
        """Return the chain that the primaries agree on, if they do (I1)."""
        return agreed_identity(self._known, self._primaries, waited=waited, unix=self._unix)

    def follow_forks(self, pinned: ChainIdentity) -> ChainIdentity | None:
        """Return the pinned chain with what the nodes know of its forks by now; `None` where that is nothing new.

        A chain that was configured takes its due times from the first node in the list that has any (I2).
        """
        forks = forks_of(pinned, self._known, self._primaries, self._unix)
        due = pinned.due_bps
        if not due:
            known = self._known
            bare = replace(pinned, forks=())
            fitting = (known[node_id] for node_id in self._ledger.nodes if node_id in known)
            due = next((one.due_bps for one in fitting if one.due_bps and not bare.mismatch(one, Epoch(0))), due)
        return None if forks == pinned.forks and due is pinned.due_bps else replace(pinned, forks=forks, due_bps=due)

    def check_all(self) -> None:
        """Check every node, in list order."""
        self._check(list(self._ledger.nodes))

    def check(self, node_id: NodeId) -> None:
        """See whether a node is on the pinned chain: quarantine it where not, take it back where it is again (N7)."""
        self._check([node_id])

    def _check(self, nodes: Iterable[NodeId]) -> None:
        pinned, epoch = self._ledger.chain, Epoch(0)
        if pinned is None:
            return
        if self._book.slots is not None:
            epoch = self._book.slots.epoch_at(self._clock.now())
        found = []
        for node_id in nodes:
            facts = self._ledger.nodes[node_id]
            if facts.identity is not None:
                before, facts.mismatch = facts.mismatch, pinned.mismatch(facts.identity, epoch)
                self._warn(node_id, facts, pinned, epoch)
                found.append((node_id, facts, facts.mismatch != before))
        # All is found before anything is done about it: what is done for one may deliver heads of another.
        for node_id, facts, changed in found:
            if changed and self._still(node_id, facts):
                if facts.mismatch:
                    self._leave(node_id)
                self._tell.quarantined(node_id, facts.mismatch)
                if facts.mismatch and facts.stream.state in CONNECTED:
                    self._tell.stream(node_id, StreamReason.QUARANTINED, facts.mismatch)
            if self._still(node_id, facts) and self._book.identified(node_id, facts.mismatch):
                self._joined(node_id)

    def _still(self, node_id: NodeId, facts: NodeFacts) -> bool:
        """Whether a node is in the list, and reached as before: an observer may have changed the list."""
        return self._ledger.nodes.get(node_id) is facts

    def _warn(self, node_id: NodeId, facts: NodeFacts, pinned: ChainIdentity, epoch: Epoch) -> None:
        """Warn once of forks to come that a node has not scheduled: it will not fit any more then (case 33)."""
        lacking = () if facts.mismatch or facts.identity is None else not_scheduled(pinned, facts.identity, epoch)
        if lacking and lacking != facts.warned_of:
            names = ", ".join(f"{fork.name} at epoch {fork.epoch}" for fork in lacking)
            logger.warning("%s: has not scheduled %s: it does not count from then on", node_id, names)
        facts.warned_of = lacking

    @property
    def _unix(self) -> float:
        return self._clock.unix(self._clock.now())

    @property
    def _known(self) -> dict[NodeId, ChainIdentity]:
        return {n: facts.identity for n, facts in self._ledger.nodes.items() if facts.identity is not None}

    @property
    def _primaries(self) -> list[NodeId]:
        members = self._candidates.current.members.values()
        return [m.node_id for m in members if m.tier is Tier.PRIMARY] or [m.node_id for m in members]
