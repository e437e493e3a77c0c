"""Dependent roots of the delivered chain, by absolute epoch, and when one of them has changed (C11)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from vc_fallback.base.types import ZERO_ROOT, Epoch, NodeId, Root
from vc_fallback.decide.ledger import NodeHead


@dataclass(frozen=True, slots=True)
class DependentRootChange:
    """The dependent root of an epoch is another one now; `nodes` are those that report it."""

    epoch: Epoch
    old: Root
    new: Root
    nodes: tuple[NodeId, ...]


class DependentRoots:
    """Remembers the dependent root of the current and the next epoch of the delivered chain.

    Roots are compared by the epoch they fix, so that a head of the last epoch and one of this epoch, and nodes with v1
    and v2 of the event, compare equal. A new root counts once more nodes report it than the old one: what only a node
    in the minority says changes nothing.
    """

    def __init__(self, slots_per_epoch: int) -> None:
        self._slots_per_epoch = slots_per_epoch
        self._known: dict[Epoch, Root] = {}

    def get(self, epoch: Epoch) -> Root | None:
        """Return the dependent root of an epoch, or `None` where it is unknown."""
        return self._known.get(epoch)

    def settled(self, head: NodeHead) -> bool:
        """Whether a head says nothing that is not known already."""
        epoch = Epoch(head.slot // self._slots_per_epoch)
        current, following = head.current_epoch_dependent_root, head.next_epoch_dependent_root
        return (current is None or current == ZERO_ROOT or current == self._known.get(epoch)) and (
            following is None or following == ZERO_ROOT or following == self._known.get(Epoch(epoch + 1))
        )

    def of(self, head: NodeHead) -> dict[Epoch, Root]:
        """Return the dependent roots that a head names, by epoch; unknown and all-zero ones are left out."""
        epoch = Epoch(head.slot // self._slots_per_epoch)
        named = {epoch: head.current_epoch_dependent_root, Epoch(epoch + 1): head.next_epoch_dependent_root}
        return {epoch: root for epoch, root in named.items() if root is not None and root != ZERO_ROOT}

    def look(self, delivered: NodeHead, heads: Iterable[NodeHead]) -> list[DependentRootChange]:
        """Compare what the delivered chain says with what is known, and return what changed.

        :param delivered: the delivered head.
        :param heads: the heads of all nodes that count: eligible, and not stalled; the one delivered among them.
        """
        epoch = Epoch(delivered.slot // self._slots_per_epoch)
        told: dict[Epoch, dict[Root, list[NodeId]]] = {}
        of_delivered: dict[Epoch, list[Root]] = {of: [root] for of, root in self.of(delivered).items()}
        for head in heads:
            for of, root in self.of(head).items():
                told.setdefault(of, {}).setdefault(root, []).append(head.node_id)
                if head.same_block(delivered):
                    of_delivered.setdefault(of, []).append(root)
        changes = []
        for of in (epoch, Epoch(epoch + 1)):
            if of not in of_delivered:
                continue
            nodes = told.get(of, {})
            # Nodes may name different roots for one block: what most say, else what the one says that it came from.
            counts = Counter({root: len(tellers) for root, tellers in nodes.items()})
            new = max(of_delivered[of], key=counts.__getitem__)
            old = self._known.get(of)
            if new == old:
                continue
            if old is None:
                self._known[of] = new
            elif counts[new] > counts[old]:
                self._known[of] = new
                changes.append(DependentRootChange(of, old, new, tuple(nodes[new])))
        for gone in [known for known in self._known if known < epoch - 1]:
            del self._known[gone]
        return changes
