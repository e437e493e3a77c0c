"""Whether nodes have finalized different blocks for one epoch (N3, case 43)."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from vc_fallback.base.types import ZERO_ROOT, Epoch, NodeId, Root
from vc_fallback.decide.branches import sides

MOST_EPOCHS = 4
"""Epochs kept of each node, the latest it named; 1.3 kB a node, by measurement."""


_MOST_TOLD = 64


@dataclass(frozen=True, slots=True)
class FinalityConflict:
    """Nodes have finalized different roots for one epoch: a critical alarm, which switches nothing by itself."""

    epoch: Epoch
    roots: Mapping[Root, tuple[NodeId, ...]]


class Finality:
    """The finalized checkpoints that the nodes name.

    Before a chain finalizes anything nodes name epoch 0, with a root of zeros or that of genesis: neither is a word.
    """

    def __init__(self) -> None:
        self._named: dict[NodeId, dict[Epoch, Root]] = {}
        self._told: OrderedDict[tuple[Epoch, Root], None] = OrderedDict()

    def finalized(self, node_id: NodeId, epoch: Epoch, root: Root) -> FinalityConflict | None:
        """Take a checkpoint that a node has finalized; return the conflict that it makes or widens.

        Each is returned once, whoever repeats it.
        """
        if epoch <= 0 or root == ZERO_ROOT:
            return None
        named = self._named.setdefault(node_id, {})
        if named.get(epoch) == root:
            return None
        named.pop(epoch, None)
        named[epoch] = root
        if len(named) > MOST_EPOCHS:
            del named[next(iter(named))]
        conflict = self.conflict(epoch)
        if conflict is None or conflict.roots[root] != (node_id,) or (epoch, root) in self._told:
            return None
        self._told[epoch, root] = None
        if len(self._told) > _MOST_TOLD:
            self._told.popitem(last=False)
        return conflict

    def latest(self, node_id: NodeId) -> tuple[Epoch, Root] | None:
        """Return the checkpoint that a node named last, or `None` where it has finalized nothing yet."""
        named = self._named.get(node_id)
        return next(reversed(named.items())) if named else None

    def conflict(self, epoch: Epoch) -> FinalityConflict | None:
        """Return who has finalized what in an epoch, where that is not one root."""
        roots: dict[Root, list[NodeId]] = {}
        for node_id, named in self._named.items():
            root = named.get(epoch)
            if root is not None:
                roots.setdefault(root, []).append(node_id)
        return FinalityConflict(epoch, sides(roots)) if len(roots) > 1 else None

    @property
    def conflicts(self) -> tuple[FinalityConflict, ...]:
        """All conflicts that are known, latest epoch first: what a gauge shows."""
        epochs = sorted({epoch for named in self._named.values() for epoch in named}, reverse=True)
        found = (self.conflict(epoch) for epoch in epochs)
        return tuple(conflict for conflict in found if conflict is not None)

    def forget(self, node_id: NodeId) -> None:
        """Forget a node that left or is on another chain."""
        self._named.pop(node_id, None)
