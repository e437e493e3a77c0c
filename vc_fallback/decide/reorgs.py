"""When the delivered chain has left a branch, and what of a validator's duties that touches (C3, C11, H14, case 45)."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vc_fallback.base.signals import ChainReorged, ReorgEvidence, RootChange
from vc_fallback.base.types import BlockRef, Epoch, HeadSource, NodeId, Root, Slot
from vc_fallback.chain import SlotClock
from vc_fallback.decide.branches import Branches
from vc_fallback.decide.delivery import SETTLE, Delivered
from vc_fallback.decide.dependents import DependentRoots
from vc_fallback.decide.ledger import NodeHead, Standing

HOLD = SETTLE
"""Part of a slot for which a reorg is held back, to learn from the node's other event what the first left open: its
`head` names dependent roots, its `chain_reorg` the depth. With both it is told at once. The head is not held back."""

RECENT = 16
"""Changes of the delivered head, and reorgs that nodes reported, that are remembered."""

REVIEWED = 2
"""For so many slots headers that come to be known may still show that a change of the delivered head was a reorg."""


@dataclass(slots=True)
class _Move:
    """A change of the delivered head."""

    old: NodeHead
    new: Delivered
    at: float
    known: dict[Epoch, Root]
    """The dependent roots by what was known before it."""
    strange: bool
    """Whether its header is to be asked for, as it may not come on top of the old one."""
    evidence: ReorgEvidence | None = None
    due: float = 0.0
    told: bool = False

    @property
    def blocks(self) -> tuple[Root, Root]:
        return self.old.root, self.new.head.root


class Reorgs:
    """Follows the changes of the delivered head, and says which of them left a branch.

    A head at the same slot or a lower one did, whoever says so. One at a higher slot did where a node that is followed
    reported the reorg, or where headers lead past the old head. They are asked for where that may well be so; else it
    is taken for a block on top of the old head.

    :param entries: every node's present head.
    :param standing: says whether a node's heads may be delivered: nobody else's report counts.
    :param branches: the headers that are known.
    :param roots: the dependent roots of the delivered chain.
    """

    def __init__(
        self,
        entries: Mapping[NodeId, NodeHead],
        standing: Callable[[NodeId], Standing],
        branches: Branches,
        roots: DependentRoots,
    ) -> None:
        self._entries = entries
        self._standing = standing
        self._branches = branches
        self._roots = roots
        self._last: Delivered | None = None
        self._recent: deque[_Move] = deque(maxlen=RECENT)
        self._reports: OrderedDict[tuple[Root, Root], dict[NodeId, int]] = OrderedDict()
        self._held: _Move | None = None

    @property
    def due(self) -> float | None:
        """The moment in loop time until which a reorg is held back, or `None`."""
        return self._held.due if self._held is not None else None

    @property
    def open(self) -> bool:
        """Whether :meth:`wanted` may have something."""
        return self._held is not None or (bool(self._recent) and self._recent[-1].strange)

    def moved(self, delivered: Delivered, now: float, slots: SlotClock, *, doubt: bool = False) -> list[ChainReorged]:
        """Take a delivered head, before the dependent roots it brings are looked at; return the reorgs to be told.

        :param doubt: have its header asked for, however likely it is to come on top of the last one.
        """
        last, self._last = self._last, delivered
        if last is None or delivered.head.same_block(last.head):
            return []
        # In order: what is held back comes before what follows from it.
        told = self._end_hold(now, slots)
        epoch = slots.chain.epoch_of(delivered.slot)
        known = self._roots.of(last.head)
        for of in (Epoch(epoch - 1), epoch, Epoch(epoch + 1)):
            root = self._roots.get(of)
            if root is not None:
                known[of] = root
        strange = doubt or _strange(last, delivered.head, slots)
        move = _Move(last.head, delivered, now, known, strange, due=now + HOLD * slots.duration)
        self._recent.append(move)
        move.evidence = self._evidence(move)
        if move.evidence is not None:
            self._held = move
        return told + self.look(now, slots)

    def reported(
        self, node_id: NodeId, old: Root, new: Root, depth: int, now: float, slots: SlotClock
    ) -> list[ChainReorged]:
        """Take a node's word that its head went from one block to another; return the reorgs to be told."""
        reports = self._reports.setdefault((old, new), {})
        self._reports.move_to_end((old, new))
        reports.setdefault(node_id, depth)
        if len(self._reports) > RECENT:
            self._reports.popitem(last=False)
        if self._held is None or self._held.blocks != (old, new):
            move = next((move for move in reversed(self._recent) if move.blocks == (old, new)), None)
            if move is None or move.told or self._evidence(move) is None:
                return []
            told = self._end_hold(now, slots)
            self._hold(move, now, slots)
            return told + self.look(now, slots)
        return self.look(now, slots)

    def wanted(self, now: float, slots: SlotClock) -> dict[Root, tuple[NodeId, ...]]:
        """Return the blocks whose headers would tell what left a branch, and from where, and the nodes to ask."""
        wanted: dict[Root, tuple[NodeId, ...]] = {}
        nodes: tuple[NodeId, ...]
        for move in self._recent:
            if move is self._held:
                lacking, nodes = self._depth(move)[2], (move.new.node_id, move.old.node_id)
            elif move.strange and not move.told and move.at >= now - REVIEWED * slots.duration:
                old, new = move.old, move.new.head
                lacking, nodes = self._branches.at(new.root, new.slot, old.slot, old.root)[1], (new.node_id,)
            else:
                continue
            if lacking is not None:
                wanted[lacking] = tuple(dict.fromkeys(nodes))
        return wanted

    def review(self, now: float, slots: SlotClock) -> list[ChainReorged]:
        """See whether headers that have come to be known show that an earlier change of the head was a reorg."""
        told: list[ChainReorged] = []
        for move in self._recent:
            if move.told or move is self._held or move.at < now - REVIEWED * slots.duration:
                continue
            if self._evidence(move) is not None:
                told += self._end_hold(now, slots)
                self._hold(move, now, slots)
        return told + self.look(now, slots)

    def look(self, now: float, slots: SlotClock) -> list[ChainReorged]:
        """Return the reorg that was held back, where nothing more is to be learnt of it or its time is over."""
        move = self._held
        if move is None:
            return []
        complete = self._depth(move)[0] is not None and len(self._named(move)) > 1
        return self._end_hold(now, slots) if complete or now >= move.due else []

    def _hold(self, move: _Move, now: float, slots: SlotClock) -> None:
        move.evidence = self._evidence(move)
        move.due = now + HOLD * slots.duration
        self._held = move

    def _end_hold(self, now: float, slots: SlotClock) -> list[ChainReorged]:
        move, self._held = self._held, None
        if move is None:
            return []
        if self._evidence(move) is None:
            # Headers have come that show that there was none.
            return []
        move.told = True
        return [self._describe(move, now, slots)]

    def _evidence(self, move: _Move) -> ReorgEvidence | None:
        """Say what shows that a change of the head left a branch, if anything does."""
        old, new = move.old, move.new.head
        reported = bool(self._reporters(move))
        if new.slot <= old.slot:
            return ReorgEvidence.REPORTED if reported else ReorgEvidence.SLOT
        at_old, _ = self._branches.at(new.root, new.slot, old.slot, old.root)
        if at_old == old.root:
            # It comes on top of the old head, whatever a node says.
            return None
        if reported:
            return ReorgEvidence.REPORTED
        return ReorgEvidence.PARENTS if at_old is not None else None

    def _reporters(self, move: _Move) -> dict[NodeId, int]:
        reports = self._reports.get(move.blocks, {})
        return {n: depth for n, depth in reports.items() if self._standing(n) is Standing.ELIGIBLE}

    def _depth(self, move: _Move) -> tuple[int | None, Slot | None, Root | None]:
        """Return the depth, the slot of the common block where that is known for certain, else the header it takes."""
        old, new = move.old, move.new.head
        recent = {head.root: head.slot for move in self._recent for head in (move.old, move.new.head)}
        common, lacking = self._branches.common((old.slot, old.root), (new.slot, new.root), recent)
        said = next(iter(self._reporters(move).values()), None)
        if said is None and common is not None:
            said = old.slot - common
        return said, common, lacking

    def _common(self, move: _Move) -> tuple[Slot, Slot]:
        """Return the lowest and the highest slot that the common block can have.

        Nodes count the depth from the old head or from the new one.
        """
        low, high = sorted((move.old.slot, move.new.slot))
        depth, common, _ = self._depth(move)
        if common is not None:
            return common, common
        if depth is None:
            return Slot(0), low
        return Slot(max(0, low - depth)), Slot(max(0, low - depth, min(low, high - depth)))

    def _named(self, move: _Move) -> dict[Epoch, Root]:
        """Return the dependent roots that the nodes at the new head name: for each epoch what most of them say."""
        new = move.new.head
        named: dict[Epoch, Counter[Root]] = {}
        for node_id, head in self._entries.items():
            if head.same_block(new) and self._standing(node_id) is Standing.ELIGIBLE:
                for of, root in self._roots.of(head).items():
                    named.setdefault(of, Counter())[root] += 1
        for of, root in self._roots.of(new).items():
            named.setdefault(of, Counter([root]))
        return {of: counts.most_common(1)[0][0] for of, counts in named.items()}

    def _describe(self, move: _Move, now: float, slots: SlotClock) -> ChainReorged:
        old, new, chain = move.old, move.new.head, slots.chain
        named = self._named(move)
        changed = tuple(
            RootChange(of, move.known[of], named[of])
            for of in sorted(named)
            if of in move.known and move.known[of] != named[of]
        )
        low, high = self._common(move)
        begins = chain.first_slot(chain.epoch_of(Slot(max(old.slot, new.slot))))
        crosses = True if changed or high < begins else False if low >= begins else None
        current = slots.epoch_at(now)
        reporters = tuple(self._reporters(move))
        return ChainReorged(
            at=now,
            node_id=new.node_id,
            generation=new.generation,
            received=new.received,
            old=BlockRef(old.slot, old.root),
            new=BlockRef(new.slot, new.root),
            epoch=chain.epoch_of(new.slot),
            depth=self._depth(move)[0],
            crosses_epoch=crosses,
            changed_roots=changed,
            touches_current_duties=self._touches(current, move, named, (low, high), slots),
            touches_next_duties=self._touches(Epoch(current + 1), move, named, (low, high), slots),
            evidence=self._evidence(move) or move.evidence or ReorgEvidence.SLOT,
            reported_by=reporters,
            nodes=tuple(dict.fromkeys((*move.new.voters, *reporters))),
        )

    def _touches(
        self, epoch: Epoch, move: _Move, named: Mapping[Epoch, Root], common: tuple[Slot, Slot], slots: SlotClock
    ) -> bool | None:
        """Say whether the block that fixes the duties of an epoch is another one now; `None` is unknown.

        It is the last block before the epoch that comes before it.
        """
        if epoch in named and epoch in move.known:
            return named[epoch] != move.known[epoch]
        fixed = slots.chain.first_slot(Epoch(epoch - 1)) - 1
        low, high = common
        if fixed < 0 or low >= fixed:
            return False
        # A head that itself comes before that epoch was, or is now, the last block there.
        if move.old.slot <= fixed or high < move.new.slot <= fixed:
            return True
        return None


def _strange(last: Delivered, new: NodeHead, slots: SlotClock) -> bool:
    """Whether a head may well not come on top of the last one: it is of a node that had not shown that, after a gap,
    known by a poll, or after a block that was late: proposers may leave that out."""
    old = last.head
    return (
        new.slot != old.slot + 1
        or new.node_id not in last.voters
        or new.source is HeadSource.POLL
        or (old.source is HeadSource.STREAM and old.received > slots.attestation_due(old.slot))
    )
