"""Which node stands on another branch than the others (N3, case 43)."""

from itertools import permutations

import pytest

from vc_fallback.base.types import ZERO_ROOT, Epoch, NodeId, Root, Slot
from vc_fallback.decide.branches import MOST, Branches
from vc_fallback.decide.consistency import Consistency, Judged, Split
from vc_fallback.decide.finality import Finality, FinalityConflict

A, B, C, D = NAMES = [NodeId(name) for name in "ABCD"]


def root(name: str) -> Root:
    return Root(name.encode().ljust(32, b"."))


def show(nodes: Consistency, slot: int, *names: str | None) -> list[Judged]:
    """Let nodes A, B, C … show heads of this slot, named by a text, and judge as of its end."""
    for node_id, name in zip(NAMES, names, strict=False):
        if name is not None:
            nodes.head(node_id, Slot(slot), root(name))
    return nodes.judge()


def test_a_node_that_stands_against_two_others_for_two_slots_is_inconsistent() -> None:
    """N3, case 43: three nodes, two report one head and one another."""
    nodes = Consistency()
    assert show(nodes, 100, "x", "x", "y") == []
    assert nodes.inconsistent(C) == ""
    found = show(nodes, 101, "x1", "x1", "y1")
    assert [judged.node_id for judged in found] == [C]
    assert found[0].reason == nodes.inconsistent(C) == f"2 of 3 nodes have 0x{root('x1').hex()[:8]} at slot 101"
    assert nodes.inconsistent(A) == nodes.inconsistent(B) == ""
    assert show(nodes, 102, "x2", "x2", "y2") == [], "told once"


def test_one_slot_is_not_enough() -> None:
    """N3: two slots running."""
    nodes = Consistency()
    for slot in range(100, 120, 2):
        show(nodes, slot, "x", "x", "y")
        assert show(nodes, slot + 1, "z", "z", "z") == []
    assert nodes.inconsistent(C) == ""


def test_it_is_cleared_when_it_stands_with_the_others_for_two_slots() -> None:
    """N3."""
    nodes = Consistency()
    show(nodes, 100, "x", "x", "y")
    show(nodes, 101, "x", "x", "y")
    assert show(nodes, 102, "z", "z", "z") == []
    assert nodes.inconsistent(C)
    assert show(nodes, 103, "w", "w", "w") == [Judged(C, "")]


@pytest.mark.parametrize(
    "heads",
    [
        pytest.param(("x", "y"), id="two nodes"),
        pytest.param(("x", "y", "z"), id="three of three minds"),
        pytest.param(("x", "x", "y", "y"), id="two against two"),
        pytest.param(("x", "x", "y", "z"), id="two of four are no strict majority"),
    ],
)
def test_nobody_is_blamed_without_a_strict_majority_of_three(heads: tuple[str, ...]) -> None:
    """N3: nobody is blamed while only two nodes disagree; all are shown."""
    nodes = Consistency()
    for slot in range(100, 105):
        assert show(nodes, slot, *heads) == []
    assert not any(nodes.inconsistent(node_id) for node_id in NAMES)
    assert [split.slot for split in nodes.splits] == [104]
    assert set(nodes.splits[0].roots) == {root(name) for name in heads}
    assert sorted(who for nodes_of_root in nodes.splits[0].roots.values() for who in nodes_of_root) == list(
        NAMES[: len(heads)]
    )


def test_a_split_is_shown_until_it_is_over() -> None:
    """N3: both are shown."""
    nodes = Consistency()
    show(nodes, 100, "x", "y")
    assert nodes.splits == (Split(Slot(100), {root("x"): (A,), root("y"): (B,)}),)
    show(nodes, 101, "z", "z")
    assert len(nodes.splits) == 0


def test_a_split_is_the_same_whoever_comes_first() -> None:
    """Lines do not depend on who was first: the most nodes first, and nodes by name."""
    found = set()
    for order in permutations(NAMES):
        nodes = Consistency()
        for node_id in order:
            nodes.head(node_id, Slot(100), root("x" if node_id == A else "y"))
        nodes.judge()
        found.add(tuple(nodes.splits[0].roots.items()))
    assert found == {((root("y"), (B, C, D)), (root("x"), (A,)))}


def test_in_a_fork_whose_branches_take_turns_headers_tell() -> None:
    """N3, case 43: each slot has its block on one branch only, so their heads are never at one slot."""
    nodes = Consistency()
    for slot in range(100, 110):
        own, parent = root(f"{slot}"), root(f"{slot - 2}" if slot > 101 else "fork")
        for node_id in NAMES[slot % 2 :: 2]:
            nodes.head(node_id, Slot(slot), own)
        nodes.judge()
        if slot < 101:
            continue
        assert nodes.undecided, "the newest head's own header is not known"
        assert not nodes.splits
        while nodes.wanted:
            ((_, wanted),) = nodes.wanted
            number = int(wanted.rstrip(b"."))
            nodes.branches.link(wanted, Slot(number), root(f"{number - 2}" if number > 101 else "fork"))
            assert nodes.judge() == [], "two against two"
        (split,) = nodes.splits
        assert split.slot == slot - 1
        assert sorted(split.roots.values()) == [(A, C), (B, D)]
        assert set(split.roots) == {root(f"{slot - 1}"), parent}
        assert not nodes.undecided


def test_a_slot_is_counted_once_however_often_it_is_looked_at() -> None:
    """N3: a look is repeated when headers have come."""
    nodes = Consistency()
    for _ in range(5):
        assert show(nodes, 100, "x", "x", "y") == []
    assert [judged.node_id for judged in show(nodes, 101, "x1", "x1", "y1")] == [C]
    for _ in range(5):
        assert show(nodes, 102, "z", "z", "z") == []
    assert show(nodes, 103, "w", "w", "w") == [Judged(C, "")]


def test_a_verdict_on_a_node_that_is_forgotten_is_told_to_be_over() -> None:
    """N3: it is down, or on another chain; nobody says that it has come round."""
    nodes = Consistency()
    show(nodes, 100, "x", "x", "y", "x")
    show(nodes, 101, "x", "x", "y", "x")
    assert nodes.inconsistent(C)
    nodes.forget(C)
    nodes.forget(D)
    assert show(nodes, 102, "x", "x") == [Judged(C, "", compared=False)]
    assert show(nodes, 103, "x", "x") == []


def test_splits_are_shown_newest_first() -> None:
    """N3."""
    nodes = Consistency()
    nodes.head(C, Slot(103), root("c"))
    show(nodes, 102, "x", "y")
    nodes.head(D, Slot(103), root("d"))
    nodes.judge()
    assert [split.slot for split in nodes.splits] == [103, 102]


def test_missed_slots_repeat_nothing() -> None:
    """N3: a slot in which nobody has a new head is none of the two."""
    nodes = Consistency()
    show(nodes, 100, "x", "x", "y")
    for _ in range(5):
        assert nodes.judge() == []
    assert [judged.node_id for judged in show(nodes, 106, "x1", "x1", "y1")] == [C]


def test_a_node_that_is_behind_on_the_same_chain_is_consistent() -> None:
    """N3: it shows what the others showed at that slot."""
    nodes = Consistency()
    show(nodes, 100, "x100", "x100", "x100")
    for slot in range(101, 106):
        assert show(nodes, slot, f"x{slot}", f"x{slot}") == []
    assert nodes.inconsistent(C) == ""
    assert len(nodes.splits) == 0
    assert len(nodes.wanted) == 0


def test_ancestry_says_whether_a_node_behind_is_on_the_same_chain() -> None:
    """N3: where slots differ and nobody saw the others at that slot, headers tell."""
    nodes = Consistency()
    nodes.head(C, Slot(100), root("c100"))
    show(nodes, 103, "x103", "x103")
    assert set(nodes.wanted) == {(A, root("x103"))}
    nodes.branches.link(root("x103"), Slot(103), root("x101"))
    nodes.judge()
    assert set(nodes.wanted) == {(A, root("x101"))}
    nodes.branches.link(root("x101"), Slot(101), root("c100"))
    show(nodes, 104, "x103", "x103")
    assert len(nodes.wanted) == 0
    assert nodes.inconsistent(C) == ""


def test_a_node_stuck_on_a_branch_that_died_is_inconsistent() -> None:
    """N3: as the others go on, its head stays off their chain."""
    nodes = Consistency()
    nodes.branches.link(root("x101"), Slot(101), root("x100"))
    nodes.branches.link(root("x102"), Slot(102), root("x101"))
    show(nodes, 100, "x100", "x100", "y100")
    assert [judged.node_id for judged in show(nodes, 101, "x101", "x101")] == [C]
    nodes.forget(C)
    assert nodes.inconsistent(C) == ""


def test_where_slots_differ_what_was_shown_blames_nobody() -> None:
    """N3: the others may have reorged since, to the chain of the one that is behind."""
    nodes = Consistency()
    show(nodes, 100, "x", "x", "y")
    for slot in range(101, 106):
        assert show(nodes, slot, f"z{slot}", f"z{slot}") == []
    assert nodes.inconsistent(C) == ""
    assert nodes.wanted


def test_a_node_ahead_of_all_others_is_not_judged() -> None:
    """N3: they have no voice at a slot they have not come to."""
    nodes = Consistency()
    for slot in range(100, 110):
        show(nodes, slot, "x", "x", "x")
        assert show(nodes, slot + 1, None, None, "ahead") == []
    assert nodes.inconsistent(C) == ""


def test_two_that_run_ahead_together_acquit_nobody() -> None:
    """N3: at their slot only they have a voice, and two are too few to blame and to acquit."""
    nodes = Consistency()
    show(nodes, 100, "x", "x", "y", "x")
    show(nodes, 101, "x", "x", "y", "x")
    assert nodes.inconsistent(C)
    for slot in range(102, 106):
        assert show(nodes, slot, None, None, f"y{slot}", f"y{slot}") == []
    assert nodes.inconsistent(C)


def test_a_verdict_of_three_does_not_outlive_the_third() -> None:
    """N3: two that are left disagree, and nobody is blamed."""
    nodes = Consistency()
    show(nodes, 100, "x", "x", "y")
    show(nodes, 101, "x", "x", "y")
    assert nodes.inconsistent(C)
    nodes.forget(B)
    assert show(nodes, 102, "x", None, "y") == [Judged(C, "", compared=False)]
    assert show(nodes, 103, "x", "x", "y") == [], "it begins anew"
    assert [judged.node_id for judged in show(nodes, 104, "x", "x", "y")] == [C]


def test_a_reorg_of_everyone_blames_nobody() -> None:
    """N3: a node that is one slot late to follow has one slot against it, not two."""
    nodes = Consistency()
    show(nodes, 100, "x", "x", "x", "x")
    assert show(nodes, 101, "y", "y", "y", "x101") == []
    assert show(nodes, 102, "y102", "y102", "y102", "y102") == []


def test_a_hundred_nodes_of_as_many_minds_name_few_wanted_headers() -> None:
    """Rule 6: what is fetched is bounded."""
    nodes = Consistency()
    for number in range(100):
        nodes.head(NodeId(str(number)), Slot(1000 + number), root(str(number)))
    nodes.judge()
    assert len(nodes.wanted) == 8


# --- branches


def chain(*links: tuple[str, int, str]) -> Branches:
    branches = Branches()
    for child, slot, parent in links:
        branches.link(root(child), Slot(slot), root(parent))
    return branches


CHAIN = chain(("e", 105, "d"), ("d", 104, "b"), ("b", 102, "a"))


@pytest.mark.parametrize(
    ("wanted", "expected", "found", "lacking"),
    [
        pytest.param(105, "?", "e", None, id="the head"),
        pytest.param(104, "?", "d", None, id="its parent"),
        pytest.param(103, "?", "b", None, id="an empty slot: the block before"),
        pytest.param(102, "?", "b", None, id="two steps"),
        pytest.param(101, "?", "a", None, id="a parent whose own slot is unknown, but before its child's"),
        pytest.param(100, "?", None, "a", id="it may be there, or earlier"),
        pytest.param(100, "a", "a", None, id="it is the one expected"),
    ],
)
def test_the_block_that_a_chain_has_at_a_slot(
    wanted: int, expected: str, found: str | None, lacking: str | None
) -> None:
    """N3: by links from headers; slot 103 is empty."""
    assert CHAIN.at(root("e"), Slot(105), Slot(wanted), root(expected)) == (
        None if found is None else root(found),
        None if lacking is None else root(lacking),
    )


def test_the_slot_of_a_header_is_truer_than_a_node_s_word() -> None:
    """N3: a block is before its child, which is at 105 whatever the node says."""
    branches = chain(("e", 105, "d"))
    assert branches.at(root("e"), Slot(110), Slot(104), root("?")) == (root("d"), None)


def test_links_are_bounded_and_loops_end() -> None:
    """Rule 6: whatever headers come."""
    branches = Branches()
    for number in range(2 * MOST):
        branches.link(root(str(number + 1)), Slot(number + 1), root(str(number)))
    assert root(str(MOST)) not in branches
    assert root(str(2 * MOST)) in branches
    loop = chain(("a", 110, "b"), ("b", 110, "a"))
    assert loop.at(root("a"), Slot(110), Slot(5), root("?")) == (None, None)


# --- finality


def test_different_finalized_roots_of_one_epoch_are_told_once() -> None:
    """N3, case 43: a critical alarm, which names who has finalized what."""
    finality = Finality()
    assert finality.finalized(A, Epoch(10), root("x")) is None
    assert finality.finalized(B, Epoch(11), root("y")) is None
    conflict = FinalityConflict(Epoch(10), {root("x"): (A,), root("z"): (B,)})
    assert finality.finalized(B, Epoch(10), root("z")) == conflict
    assert finality.finalized(B, Epoch(10), root("z")) is None
    assert finality.finalized(C, Epoch(10), root("z")) is None, "it joins one side"
    assert finality.conflicts == (FinalityConflict(Epoch(10), {root("x"): (A,), root("z"): (B, C)}),)
    for _ in range(3):
        assert finality.finalized(C, Epoch(10), root("x")) is None
        assert finality.finalized(C, Epoch(10), root("z")) is None
    assert finality.latest(B) == (Epoch(10), root("z"))
    finality.forget(A)
    assert finality.latest(A) is None
    assert not finality.conflicts


def test_a_node_that_names_one_root_and_another_by_turns_is_told_of_once_for_each() -> None:
    """N3, rule 6: an alarm that is repeated in every epoch is none."""
    finality = Finality()
    finality.finalized(A, Epoch(10), root("x"))
    told = [finality.finalized(B, Epoch(10), root(name)) is not None for name in "zwzwz"]
    assert told == [True, True, False, False, False]


def test_before_finality_nobody_disagrees() -> None:
    """N3: nodes name epoch 0 by zeros or by the genesis block."""
    finality = Finality()
    assert finality.finalized(A, Epoch(0), ZERO_ROOT) is None
    assert finality.latest(A) is None
    assert finality.finalized(B, Epoch(0), root("genesis")) is None
    assert finality.finalized(C, Epoch(0), root("its state")) is None
    assert finality.finalized(D, Epoch(5), root("x")) is None
    assert finality.finalized(C, Epoch(5), ZERO_ROOT) is None
    assert not finality.conflicts


def test_epochs_kept_of_a_node_are_bounded() -> None:
    """Rule 6."""
    finality = Finality()
    for epoch in range(1, 1000):
        finality.finalized(A, Epoch(epoch), root("x"))
    for epoch in range(1, 1000):
        finality.finalized(B, Epoch(epoch), root("y"))
    assert [conflict.epoch for conflict in finality.conflicts] == [999, 998, 997, 996]
