"""Where the delivered chain was before, so that a node that lags does not turn it back (C3)."""

from collections import OrderedDict

from vc_fallback.base.types import NodeId, Root, Slot

MOST = 64
"""Blocks that are remembered, delivered and shown by each node: those of two epochs of the mainnet preset."""

Block = tuple[Slot, Root]


class Past:
    """How often each block was delivered, and how often each node's head became it.

    A node that shows a block no oftener than it was delivered only comes to where the chain was before; one that left
    it and comes back shows it once more, which is a new change (A → B → A is three).
    """

    def __init__(self) -> None:
        self._delivered: OrderedDict[Block, int] = OrderedDict()
        self._shown: dict[NodeId, OrderedDict[Block, int]] = {}

    def deliver(self, slot: Slot, root: Root) -> None:
        """Note that a block was delivered, where another one was the delivered head."""
        _count(self._delivered, (slot, root))

    def take_back(self, slot: Slot, root: Root) -> None:
        """Note that a block was no step of the chain: others were more."""
        times = self._delivered.pop((slot, root), 0)
        if times > 1:
            self._delivered[slot, root] = times - 1

    def show(self, node_id: NodeId, slot: Slot, root: Root) -> None:
        """Note a node's head; where it is the one from before it says nothing new, also on a new connection."""
        shown = self._shown.setdefault(node_id, OrderedDict())
        if not shown or next(reversed(shown)) != (slot, root):
            _count(shown, (slot, root))

    def forget(self, node_id: NodeId) -> None:
        """Forget a node that left."""
        self._shown.pop(node_id, None)

    def holds(self, slot: Slot, root: Root) -> bool:
        """Whether a block was delivered."""
        return (slot, root) in self._delivered

    def repeats(self, node_id: NodeId, slot: Slot, root: Root) -> bool:
        """Whether a node's head is one that it has shown no oftener than it was delivered."""
        times = self._delivered.get((slot, root))
        return times is not None and self._shown[node_id].get((slot, root), 0) <= times


def _count(counts: OrderedDict[Block, int], block: Block) -> None:
    counts[block] = counts.pop(block, 0) + 1
    if len(counts) > MOST:
        counts.popitem(last=False)
