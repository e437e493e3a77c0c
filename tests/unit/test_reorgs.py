"""Which change of the delivered head left a branch, and what it touches (C3, C11, H14, case 45). Epochs have 8 slots.

Duties of epoch 6 are fixed by the block at slot 39, the last before epoch 5; those of epoch 7 by that at 47.
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from vc_fallback.base.signals import ChainReorged, ReorgEvidence, RootChange
from vc_fallback.base.types import BlockRef, Epoch, HeadSource, NodeId, Root, Slot
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.branches import Branches
from vc_fallback.decide.delivery import Delivered
from vc_fallback.decide.dependents import DependentRoots
from vc_fallback.decide.ledger import NodeHead, Standing
from vc_fallback.decide.reorgs import HOLD, RECENT, Reorgs

SLOT = 12.0
CHAIN = ChainIdentity(genesis_time=1e6, genesis_validators_root=Root(b"g" * 32), slot_duration=SLOT, slots_per_epoch=8)
SLOTS = SlotClock(CHAIN, offset=1e6)
A, B = NodeId("a"), NodeId("b")

ROOT_5, ROOT_6, ROOT_7, OTHER_6 = (Root(name.ljust(32, b".")) for name in (b"five", b"six", b"seven", b"other six"))


def root(name: str) -> Root:
    return Root(name.encode().rjust(32, b"."))


def slot_of(name: str) -> Slot:
    return Slot(int(name.rstrip("abc")))


@dataclass
class World:
    """Reorgs of nodes that a test moves by hand; blocks are named by slot and branch: `44a`."""

    standings: dict[NodeId, Standing] = field(default_factory=dict)
    entries: dict[NodeId, NodeHead] = field(default_factory=dict)
    now: float = 44.2 * SLOT

    def __post_init__(self) -> None:
        self.branches = Branches()
        self.roots = DependentRoots(8)
        self.reorgs = Reorgs(
            self.entries, lambda node: self.standings.get(node, Standing.ELIGIBLE), self.branches, self.roots
        )

    def head(
        self, name: str, node: NodeId = A, *, roots: tuple[Root, Root] | None = None, source: HeadSource | None = None
    ) -> NodeHead:
        slot = slot_of(name)
        current, following = roots or (None, None)
        head = NodeHead(
            node,
            slot,
            root(name),
            received=self.now,
            source=source or HeadSource.STREAM,
            current_epoch_dependent_root=current,
            next_epoch_dependent_root=following,
        )
        self.entries[node] = head
        return head

    def deliver(
        self, head: NodeHead, voters: tuple[NodeId, ...] = (A,), *, at: float | None = None
    ) -> list[ChainReorged]:
        if at is not None:
            self.now = at * SLOT
            head = replace(head, received=self.now)
        delivered = Delivered(head, late=False, reorg=False, voters=dict.fromkeys(voters))
        told = self.reorgs.moved(delivered, self.now, SLOTS)
        self.roots.look(head, [head])
        return told

    def report(self, node: NodeId, old: str, new: str, depth: int = 1) -> list[ChainReorged]:
        return self.reorgs.reported(node, root(old), root(new), depth, self.now, SLOTS)

    def wait(self, slots: float = HOLD) -> list[ChainReorged]:
        self.now += slots * SLOT
        return self.reorgs.look(self.now, SLOTS)

    def link(self, *names: str) -> None:
        for parent, name in pairwise(names):
            self.branches.link(root(name), slot_of(name), root(parent))


ROOTS = (ROOT_5, ROOT_6)
"""Those of a head in epoch 5."""


def one(told: list[ChainReorged]) -> ChainReorged:
    (reorg,) = told
    return reorg


def test_the_first_head_and_the_next_blocks_are_none() -> None:
    world = World()
    for name in ("42a", "43a", "44a"):
        assert world.deliver(world.head(name, roots=ROOTS)) == []
    assert world.deliver(replace(world.entries[A], next_epoch_dependent_root=None)) == [], "the same block"
    assert world.wait(5) == []
    assert world.reorgs.due is None


def test_it_is_told_at_once_with_both_events_and_after_a_while_with_one() -> None:
    """The report may come before its head and after it; a head that names no roots is waited for, too."""
    for report_first in (True, False):
        world = World()
        world.deliver(world.head("44a", roots=ROOTS))
        told = world.report(A, "44a", "44b", 3) if report_first else []
        told += world.deliver(world.head("44b", roots=ROOTS))
        told += [] if report_first else world.report(A, "44a", "44b", 3)
        reorg = one(told)
        assert (reorg.at, reorg.depth, reorg.evidence, reorg.reported_by) == (
            world.now,
            3,
            ReorgEvidence.REPORTED,
            (A,),
        )
        assert world.report(B, "44a", "44b", 2) == []
        assert world.wait(5) == []

    world = World()
    world.deliver(world.head("44a", roots=ROOTS))
    assert world.deliver(world.head("44b")) == []
    assert world.reorgs.due == world.now + HOLD * SLOT
    assert world.wait(HOLD * 0.9) == []
    reorg = one(world.wait(HOLD * 0.11))
    assert (reorg.evidence, reorg.depth, reorg.reported_by) == (ReorgEvidence.SLOT, None, ())
    assert (reorg.crosses_epoch, reorg.touches_current_duties, reorg.touches_next_duties) == (None, None, None)


def test_reorgs_are_told_in_the_order_of_the_heads() -> None:
    """C3: there and back again within the time for which one is held back."""
    world = World()
    world.deliver(world.head("44a"))
    told = world.deliver(world.head("44b")) + world.deliver(world.head("44a")) + world.wait()
    assert [(reorg.old.root, reorg.new.root) for reorg in told] == [
        (root("44a"), root("44b")),
        (root("44b"), root("44a")),
    ]


@pytest.mark.parametrize("standing", [Standing.HELD, Standing.QUARANTINED, Standing.UNVERIFIED])
def test_nobody_else_is_believed(standing: Standing) -> None:
    """C4, C5: that a higher head left a branch, and how deep it is, by the word of a node that is followed alone."""
    world = World(standings={B: standing})
    world.deliver(world.head("43a", roots=ROOTS))
    world.report(B, "43a", "44b", 7)
    assert world.deliver(world.head("44b", roots=ROOTS)) == []
    assert world.report(B, "43a", "44b", 7) == []
    reorg = one(world.report(A, "43a", "44b", 2))
    assert (reorg.depth, reorg.reported_by, reorg.nodes) == (2, (A,), (A,))


def test_another_change_that_is_reported_is_none() -> None:
    """A node's own old head was another one: that says nothing of ours."""
    world = World()
    world.deliver(world.head("43a", roots=ROOTS))
    world.deliver(world.head("44a", roots=ROOTS))
    assert world.report(A, "43c", "44a") == []
    assert world.report(A, "44a", "43a") == []
    assert world.wait(1) == []


def test_what_is_known_of_reports_is_bounded() -> None:
    world = World()
    world.deliver(world.head("43a", roots=ROOTS))
    world.report(A, "43a", "44b")
    for number in range(RECENT):
        world.report(A, f"{number}a", f"{number}b")
    assert world.deliver(world.head("44b", roots=ROOTS)) == []
    assert world.reorgs.due is None


@pytest.mark.parametrize(
    ("depth", "crosses", "touches"),
    [(1, False, (False, False)), (2, False, (False, False)), (3, None, (False, False)), (5, True, (False, None))],
)
def test_what_is_touched_by_the_depth_alone(
    depth: int, crosses: bool | None, touches: tuple[bool | None, bool | None]
) -> None:
    """From 42a to 43b, whichever of them the node counts from: the common block is at 39 or below, at 40 or above."""
    world = World(now=43.2 * SLOT)
    world.deliver(world.head("42a", roots=ROOTS))
    world.report(A, "42a", "43b", depth)
    world.deliver(world.head("43b"))
    reorg = one(world.wait())
    assert (reorg.depth, reorg.crosses_epoch) == (depth, crosses)
    assert (reorg.touches_current_duties, reorg.touches_next_duties) == touches


def test_the_block_that_fixes_duties_is_itself_the_one_that_left() -> None:
    """Case 47: the last block of an epoch is left by the first of the next, or a late one takes its place."""
    world = World(now=40.3 * SLOT)
    world.deliver(world.head("39a"))
    world.report(A, "39a", "40b", 1)
    world.deliver(world.head("40b"))
    reorg = one(world.wait())
    assert (reorg.epoch, reorg.crosses_epoch) == (5, True)
    assert (reorg.touches_current_duties, reorg.touches_next_duties) == (False, True)
    world.report(A, "40b", "39c", 2)
    world.deliver(world.head("39c"))
    reorg = one(world.wait())
    assert (reorg.epoch, reorg.crosses_epoch, reorg.touches_next_duties) == (4, True, True)


def test_roots_that_are_named_count_before_the_depth() -> None:
    """C11: by most of the nodes at the new head, against what was known before."""
    world = World()
    world.deliver(world.head("44a", roots=ROOTS))
    world.head("44b", B, roots=(ROOT_5, OTHER_6))
    world.head("44b", NodeId("c"), roots=(ROOT_5, OTHER_6))
    world.report(A, "44a", "44b", 1)
    reorg = one(world.deliver(world.head("44b", roots=ROOTS)))
    assert reorg.changed_roots == (RootChange(Epoch(6), ROOT_6, OTHER_6),)
    assert (reorg.crosses_epoch, reorg.touches_current_duties, reorg.touches_next_duties) == (True, False, True)


def test_roots_that_were_known_before_count_where_the_old_head_names_none() -> None:
    """C11, H14: it was polled, or known by a report alone."""
    world = World()
    world.deliver(world.head("43a", roots=ROOTS))
    world.deliver(world.head("44a"))
    world.report(A, "44a", "44b", 1)
    reorg = one(world.deliver(world.head("44b", roots=(ROOT_5, OTHER_6))))
    assert reorg.changed_roots == (RootChange(Epoch(6), ROOT_6, OTHER_6),)


def test_heads_of_two_epochs_compare_by_the_epoch() -> None:
    """C11: what the last epoch's head named for the next one is the current one's now."""
    world = World(now=40.2 * SLOT)
    world.deliver(world.head("39a", roots=(Root(b"4" * 32), ROOT_5)))
    world.report(A, "39a", "40b", 2)
    reorg = one(world.deliver(world.head("40b", roots=(ROOT_5, ROOT_6))))
    assert (reorg.changed_roots, reorg.touches_current_duties) == ((), False)
    assert reorg.touches_next_duties is True, "39a would have fixed them"


def test_headers_tell_the_common_block() -> None:
    """Case 45: without a report; what is lacking is asked for, of the node that brought the head first."""
    world = World()
    world.deliver(world.head("44a", roots=ROOTS))
    world.deliver(world.head("43b", B, roots=ROOTS), (B,))
    assert world.reorgs.open
    assert world.reorgs.wanted(world.now, SLOTS) == {root("44a"): (B, A)}
    world.link("40a", "44a")
    assert world.reorgs.wanted(world.now, SLOTS) == {root("40a"): (B, A)}
    world.link("39a", "40a", "43b")
    reorg = one(world.reorgs.review(world.now, SLOTS))
    assert (reorg.depth, reorg.crosses_epoch, reorg.evidence) == (4, False, ReorgEvidence.SLOT)


def test_a_higher_head_is_one_where_its_parents_lead_past_the_old_one() -> None:
    """Case 45: asked for where it may well be so; found out later it is told later, for two slots."""
    world = World()
    world.deliver(world.head("43a", roots=ROOTS))
    assert world.deliver(world.head("44b", B, roots=ROOTS), (B,)) == []
    assert world.reorgs.wanted(world.now, SLOTS) == {root("44b"): (B,)}
    world.link("42a", "44b")
    world.now += SLOT
    reorg = one(world.reorgs.review(world.now, SLOTS) + world.wait())
    assert (reorg.old, reorg.new) == (BlockRef(Slot(43), root("43a")), BlockRef(Slot(44), root("44b")))
    assert reorg.evidence is ReorgEvidence.PARENTS
    assert world.reorgs.review(world.now, SLOTS) == []

    world = World()
    world.deliver(world.head("43a", roots=ROOTS))
    world.deliver(world.head("44b", B, roots=ROOTS), (B,))
    world.now += 2.1 * SLOT
    assert world.reorgs.wanted(world.now, SLOTS) == {}
    world.link("42a", "44b")
    assert world.reorgs.review(world.now, SLOTS) + world.wait() == []


def test_a_gap_on_one_chain_is_none() -> None:
    """Its header, which is asked for, leads to the old head."""
    world = World()
    world.deliver(world.head("43a", roots=ROOTS))
    world.deliver(world.head("46a", roots=ROOTS), at=46.2)
    world.link("43a", "46a")
    assert world.reorgs.review(world.now, SLOTS) + world.wait() == []
    assert world.reorgs.wanted(world.now, SLOTS) == {}


@pytest.mark.parametrize("why", ["", "another node", "a gap", "a poll", "late"])
def test_headers_are_asked_for_only_where_it_may_well_be_a_reorg(why: str) -> None:
    """No request in a slot like any other: by a poll, after a gap, a late block, or of a node that had another head."""
    world = World()
    world.deliver(world.head("43a", roots=ROOTS), (A, B), at=43.5 if why == "late" else 43.2)
    world.now = 44.2 * SLOT
    head = world.head("45a" if why == "a gap" else "44a", NodeId("c") if why == "another node" else A, roots=ROOTS)
    if why == "a poll":
        head = replace(head, source=HeadSource.POLL)
    world.deliver(head)
    assert bool(world.reorgs.wanted(world.now, SLOTS)) is world.reorgs.open is bool(why)


def test_a_head_that_goes_back_to_its_own_ancestor() -> None:
    """Case 45: what left was on top of what stays."""
    world = World()
    world.link("42a", "43a", "44a")
    world.deliver(world.head("44a", roots=ROOTS))
    reorg = one(world.deliver(world.head("42a", roots=ROOTS)))
    assert (reorg.depth, reorg.crosses_epoch) == (2, False)


def test_headers_that_tell_more_than_a_node_reports() -> None:
    """The depth is the node's, what it touches goes by the headers: a node that is followed reported it, too."""
    held = [NodeId("c"), NodeId("d")]
    world = World(standings=dict.fromkeys(held, Standing.HELD))
    world.link("37a", "38a", "39a", "42a")
    world.link("38a", "43b")
    world.deliver(world.head("42a", roots=ROOTS))
    for node in held:
        world.head("43b", node, roots=ROOTS)
    world.report(B, "42a", "43b", 1)
    reorg = one(world.deliver(world.head("43b", roots=(ROOT_5, OTHER_6))))
    assert (reorg.depth, reorg.crosses_epoch, reorg.nodes, reorg.reported_by) == (1, True, (A, B), (B,))
    assert reorg.changed_roots == (RootChange(Epoch(6), ROOT_6, OTHER_6),)


def test_a_common_block_is_no_higher_than_the_lower_head() -> None:
    """A depth that is counted from the higher head says nothing more."""
    world = World(now=42.2 * SLOT)
    world.deliver(world.head("39a"))
    world.report(A, "39a", "42b", 1)
    world.deliver(world.head("42b"))
    assert one(world.wait()).crosses_epoch is True


def test_an_ancestor_is_not_another_block() -> None:
    """What came after 38a at slot 39, if anything did, is not known."""
    world = World(now=41.2 * SLOT)
    world.link("38a", "41a")
    world.deliver(world.head("41a"))
    world.deliver(world.head("38a"))
    reorg = one(world.wait())
    assert (reorg.depth, reorg.crosses_epoch, reorg.touches_next_duties) == (3, True, None)


def test_a_common_block_that_is_itself_a_head_needs_no_header() -> None:
    branches = Branches()
    branches.link(root("44a"), Slot(44), root("42a"))
    low, high, beside = (
        BlockRef(Slot(42), root("42a")),
        BlockRef(Slot(44), root("44a")),
        BlockRef(Slot(43), root("43b")),
    )
    assert branches.common(low, high, {}) == branches.common(high, low, {}) == (42, None)
    assert branches.common(beside, high, {}) == (None, root("42a"))
    assert branches.common(beside, high, {root("42a"): Slot(42)}) == (None, root("43b"))
