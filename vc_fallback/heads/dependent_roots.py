"""Watches the dependent roots of the delivered chain and tells when one changes (C11)."""

from collections.abc import Callable

from vc_fallback.base.types import Epoch, NodeId, Root
from vc_fallback.decide.delivery import Delivery
from vc_fallback.decide.dependents import DependentRoots
from vc_fallback.decide.ledger import Ledger, NodeHead, Standing
from vc_fallback.heads.telling import Telling


class DependentRootWatch:
    """Looks at every head that says something new.

    :param usable: whether health has nothing against a node (N6).
    """

    def __init__(
        self,
        slots_per_epoch: int,
        ledger: Ledger,
        delivery: Delivery,
        tell: Telling,
        usable: Callable[[NodeId], bool],
    ) -> None:
        self.roots = DependentRoots(slots_per_epoch)
        self._usable = usable
        self._ledger = ledger
        self._delivery = delivery
        self._tell = tell

    def get(self, epoch: Epoch) -> Root | None:
        """Return the dependent root of an epoch on the delivered chain, or `None` where it is unknown."""
        return self.roots.get(epoch)

    def look(self, head: NodeHead) -> None:
        """See whether a head changes what is known; stalled, behind and demoted nodes have no say.

        Where health has demoted all of them they are heard all the same: requests go to them, too.
        """
        if self._delivery.delivered is None or self.roots.settled(head):
            return
        heads = [
            entry
            for node_id, entry in self._delivery.entries.items()
            if self._ledger.standing(node_id) is Standing.ELIGIBLE
            and not entry.optimistic
            and not self._ledger.nodes[node_id].stream.distrusted
        ]
        usable = [entry for entry in heads if self._usable(entry.node_id)]
        for change in self.roots.look(self._delivery.delivered.head, usable or heads):
            self._tell.dependent_root(change)
