"""When the dependent root of an epoch changes on the delivered chain (C11; cases 15, 31, 47, 52)."""

from vc_fallback.base.types import ZERO_ROOT, Epoch, NodeId, Root, Slot
from vc_fallback.decide.dependents import DependentRootChange, DependentRoots
from vc_fallback.decide.ledger import NodeHead

A, B, C, D = (Root(letter * 32) for letter in (b"A", b"B", b"C", b"D"))


def head(node: str, slot: int, current: Root | None, following: Root | None, branch: bytes = b"x") -> NodeHead:
    return NodeHead(
        NodeId(node),
        Slot(slot),
        Root(branch * 32),
        received=0.0,
        current_epoch_dependent_root=current,
        next_epoch_dependent_root=following,
    )


def look(roots: DependentRoots, *heads: NodeHead) -> list[DependentRootChange]:
    """The first head is the delivered one."""
    return roots.look(heads[0], heads)


def test_the_first_roots_are_learned_in_silence() -> None:
    """C11: unknown → known is no change."""
    roots = DependentRoots(8)
    assert look(roots, head("n1", 16, A, B)) == []
    assert (roots.get(Epoch(2)), roots.get(Epoch(3)), roots.get(Epoch(4))) == (A, B, None)


def test_the_next_epochs_root_becomes_the_current_ones_without_a_change() -> None:
    """C11, case 52: compared by the epoch they fix."""
    roots = DependentRoots(8)
    look(roots, head("n1", 23, A, B))
    assert look(roots, head("n1", 24, B, C)) == []
    assert roots.get(Epoch(4)) == C


def test_a_late_block_at_the_end_of_an_epoch_changes_the_next_root() -> None:
    """Case 47: the head moves by one slot only."""
    roots = DependentRoots(8)
    look(roots, head("n1", 22, A, B))
    assert look(roots, head("n1", 24, C, D)) == [DependentRootChange(Epoch(3), B, C, (NodeId("n1"),))]


def test_both_roots_of_one_head_may_change() -> None:
    """C11: current and next epoch."""
    roots = DependentRoots(8)
    look(roots, head("n1", 16, A, B))
    changes = look(roots, head("n1", 17, C, D), head("n2", 17, C, D))
    assert [(change.epoch, change.old, change.new) for change in changes] == [(2, A, C), (3, B, D)]
    assert changes[0].nodes == ("n1", "n2")
    assert look(roots, head("n1", 17, C, D), head("n2", 17, C, D)) == []


def test_an_all_zero_or_missing_root_is_unknown_and_never_a_change() -> None:
    """C11, case 15: neither as the new one nor as the old one."""
    roots = DependentRoots(8)
    assert look(roots, head("n1", 16, ZERO_ROOT, None)) == []
    assert roots.get(Epoch(2)) is None
    look(roots, head("n1", 16, A, B))
    assert look(roots, head("n1", 17, ZERO_ROOT, ZERO_ROOT)) == []
    assert look(roots, head("n1", 18, None, None)) == []
    assert roots.get(Epoch(2)) == A


def test_what_the_delivered_head_does_not_know_another_showing_of_it_tells() -> None:
    """H14, case 15: a poll has no dependent roots; other nodes' roots win over zero ones."""
    roots = DependentRoots(8)
    look(roots, head("n1", 16, None, ZERO_ROOT), head("n2", 16, A, B))
    assert (roots.get(Epoch(2)), roots.get(Epoch(3))) == (A, B)


def test_a_minority_changes_nothing() -> None:
    """C11, case 31: the delivered head came from a node whose roots the others contradict."""
    roots = DependentRoots(8)
    look(roots, head("n1", 16, A, B), head("n2", 16, A, B), head("n3", 16, A, B))
    assert look(roots, head("n3", 17, C, B, b"y"), head("n1", 16, A, B), head("n2", 16, A, B)) == []
    assert roots.get(Epoch(2)) == A
    changes = look(roots, head("n3", 17, C, B, b"y"), head("n1", 17, C, B, b"y"), head("n2", 16, A, B))
    assert [(change.new, change.nodes) for change in changes] == [(C, ("n3", "n1"))]


def test_a_wrong_root_of_the_first_to_show_a_block_is_put_right_by_the_others_with_that_block() -> None:
    """C11, case 31: the node that is always first has no more say than one of many."""
    roots = DependentRoots(8)
    wrong, second, third = head("n1", 16, C, B), head("n2", 16, A, B), head("n3", 16, A, B)
    look(roots, wrong)
    assert look(roots, wrong, second) == []
    assert look(roots, wrong, second, third) == [DependentRootChange(Epoch(2), C, A, (NodeId("n2"), NodeId("n3")))]
    assert look(roots, head("n1", 17, C, B, b"y"), second, third) == []


def test_another_branch_than_the_delivered_one_changes_nothing() -> None:
    """C11: the delivered chain's roots only."""
    roots = DependentRoots(8)
    look(roots, head("n1", 16, A, B))
    assert look(roots, head("n1", 16, A, B), head("n2", 16, C, D, b"y"), head("n3", 16, C, D, b"y")) == []


def test_past_epochs_are_forgotten() -> None:
    """Rule 6: what is remembered is bounded."""
    roots = DependentRoots(8)
    for epoch in range(50):
        look(roots, head("n1", epoch * 8, Root(bytes([epoch + 1]) * 32), Root(bytes([epoch + 2]) * 32)))
    assert [epoch for epoch in range(60) if roots.get(Epoch(epoch))] == [48, 49, 50]


def test_a_head_that_says_nothing_new_is_settled() -> None:
    """C11: what need not be looked at."""
    roots = DependentRoots(8)
    known = head("n1", 16, A, B)
    assert not roots.settled(known)
    look(roots, known)
    assert roots.settled(known)
    assert roots.settled(head("n2", 17, None, ZERO_ROOT))
    assert not roots.settled(head("n2", 17, A, C))
