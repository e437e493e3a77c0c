"""Which block a node's chain has at a slot, by the parents that headers name (N3)."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vc_fallback.base.types import NodeId, Root, Slot

MOST = 256
"""Headers kept, those used last: 8 epochs of the mainnet preset. For all nodes together
they take 90 kB, by measurement."""


class _Link(NamedTuple):
    slot: Slot
    parent: Root


class Branches:
    """Links from blocks to their parents. Give it headers whose hash tree root is the root they are listed under.

    Then no node can say anything false of another's chain: what a root's parent is does not depend on who is asked.
    """

    def __init__(self) -> None:
        self._links: OrderedDict[Root, _Link] = OrderedDict()

    def __contains__(self, root: Root) -> bool:
        return root in self._links

    def link(self, root: Root, slot: Slot, parent: Root) -> None:
        """Take a header: the block `root` is at `slot` and comes after `parent`."""
        self._links[root] = _Link(slot, parent)
        self._links.move_to_end(root)
        if len(self._links) > MOST:
            self._links.popitem(last=False)

    def at(self, root: Root, slot: Slot, wanted: Slot, expected: Root) -> tuple[Root | None, Root | None]:
        """Return the block that a chain has at a slot, and else the root whose header has to be known to say.

        The block at a slot that is empty is the last one before it.

        :param root: the head of the chain, and `slot` the slot it is at.
        :param wanted: a slot not after the head's.
        :param expected: a block at the slot `wanted`: a chain that leads to it has it there.
        """
        for _ in range(MOST):
            if slot <= wanted or root == expected:
                return root, None
            link = self._links.get(root)
            if link is None:
                return None, root
            self._links.move_to_end(root)
            parent = link.parent
            # Whatever its own slot is, it is before its child's.
            if parent == expected or min(slot, link.slot) - 1 <= wanted:
                return parent, None
            known = self._links.get(parent)
            if known is None:
                return None, parent
            root, slot = parent, known.slot
        return None, None

    def common(
        self, one: tuple[Slot, Root], other: tuple[Slot, Root], slots: Mapping[Root, Slot]
    ) -> tuple[Slot | None, Root | None]:
        """Return the slot of the newest block that two chains share, and else the root whose header has to be known.

        :param one: the head of the one chain, `other` that of the other.
        :param slots: the slots of blocks whose headers need not be known.
        """
        for _ in range(2 * MOST):
            if one[1] == other[1]:
                return one[0], None
            if one[0] < other[0]:
                one, other = other, one
            link = self._links.get(one[1])
            if link is None:
                return None, one[1]
            if link.parent == other[1]:
                return other[0], None
            known = self._links.get(link.parent)
            slot = known.slot if known is not None else slots.get(link.parent)
            if slot is None:
                return None, link.parent
            one = (slot, link.parent)
        return None, None


def sides(roots: Mapping[Root, Iterable[NodeId]]) -> dict[Root, tuple[NodeId, ...]]:
    """Return who stands behind which root, in an order that does not depend on who came first: the most nodes first."""
    found = ((root, tuple(sorted(nodes))) for root, nodes in roots.items())
    return dict(sorted(found, key=lambda side: (-len(side[1]), side[0])))
