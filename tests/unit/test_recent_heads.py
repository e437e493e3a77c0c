"""What was announced of late: the slots of blocks, and which head held at a slot (Q8)."""

from vc_fallback.base.types import NodeId, Root, Slot
from vc_fallback.decide.delivery import Delivered
from vc_fallback.decide.ledger import NodeHead
from vc_fallback.decide.recent_heads import BLOCKS, HEADS, RecentHeads


def root(number: int) -> Root:
    return Root(number.to_bytes(32))


def delivered(slot: int, number: int) -> Delivered:
    head = NodeHead(NodeId("a"), Slot(slot), root(number), received=float(slot))
    return Delivered(head, late=False, reorg=False)


def test_a_block_is_of_the_lowest_slot_that_was_said() -> None:
    """Q8: a node that names a higher one, first or later, has nobody else's data refused."""
    heads = RecentHeads()
    assert heads.slot_of(root(1)) is None
    for slot in (101, 100, 102):
        heads.saw(Slot(slot), root(1))
    heads.saw(Slot(90), root(2))
    assert (heads.slot_of(root(1)), heads.slot_of(root(2))) == (100, 90)


def test_blocks_of_long_ago_are_forgotten() -> None:
    """Rule 6."""
    heads = RecentHeads()
    for slot in range(BLOCKS + 1):
        heads.saw(Slot(slot), root(slot))
    assert heads.slot_of(root(0)) is None
    assert heads.slot_of(root(1)) == 1
    assert heads.slot_of(root(BLOCKS)) == BLOCKS


def test_the_head_up_to_a_slot_is_the_one_delivered_last() -> None:
    """Q8: not the highest; a reorg may have gone back."""
    heads = RecentHeads()
    assert heads.up_to(Slot(100)) is None
    for slot, number in ((99, 1), (100, 2), (99, 3), (101, 4)):
        heads.deliver(delivered(slot, number))
    found = [heads.up_to(Slot(slot)) for slot in (98, 99, 100, 101, 200)]
    assert [None if head is None else head.root for head in found] == [None, root(3), root(3), root(4), root(4)]


def test_delivered_heads_of_long_ago_are_forgotten() -> None:
    """Rule 6."""
    heads = RecentHeads()
    for slot in range(HEADS + 1):
        heads.deliver(delivered(slot, slot))
    assert heads.up_to(Slot(0)) is None
    first = heads.up_to(Slot(1))
    assert first is not None
    assert first.slot == 1
