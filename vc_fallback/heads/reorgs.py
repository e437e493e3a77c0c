"""Watches the delivered chain for reorgs, and tells them (C11, H14)."""

from collections.abc import Callable, Iterable

from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import ChainReorged
from vc_fallback.base.types import NodeId, Root
from vc_fallback.chain import SlotClock
from vc_fallback.decide.delivery import Delivered
from vc_fallback.decide.reorgs import Reorgs
from vc_fallback.heads.membership import Membership
from vc_fallback.heads.telling import Telling
from vc_fallback.node.events import ReorgEvent


class ReorgWatch:
    """Looks at every delivered head and at every report of a node.

    :param held: called when one begins to be held back.
    :param unknown: called when headers are wanting that would tell what left a branch, and from where.
    """

    def __init__(
        self,
        reorgs: Reorgs,
        clock: Clock,
        slots: SlotClock,
        members: Membership,
        tell: Telling,
        held: Callable[[], None],
        unknown: Callable[[], None],
    ) -> None:
        self.slots = slots
        self._reorgs = reorgs
        self._clock = clock
        self._members = members
        self._tell = tell
        self._held = held
        self._unknown = unknown

    @property
    def due(self) -> float | None:
        """The moment in loop time at which :meth:`look` has something to do, or `None`."""
        return self._reorgs.due

    def moved(self, delivered: Delivered) -> list[ChainReorged]:
        """Take a delivered head; return what is to be told after it, by :meth:`tell`."""
        # Some nodes report no reorg of one slot; who wants to know of all has the header of each head asked for.
        doubt = bool(self._tell.reorgs)
        told = self._reorgs.moved(delivered, self._clock.now(), self.slots, doubt=doubt)
        self._look_up()
        return told

    def _look_up(self) -> None:
        if self._reorgs.due is not None:
            self._held()
        if self._reorgs.open:
            self._unknown()

    def reported(self, node_id: NodeId, event: ReorgEvent) -> None:
        """Take a node's report."""
        old, new = event.old_head_block, event.new_head_block
        self.tell(self._reorgs.reported(node_id, old, new, event.depth, self._clock.now(), self.slots))
        self._look_up()

    def look(self) -> None:
        """See whether more is known of a reorg that is held back, or its time is over."""
        self.tell(self._reorgs.look(self._clock.now(), self.slots))

    def review(self) -> None:
        """See what headers show that have come to be known."""
        self.tell(self._reorgs.review(self._clock.now(), self.slots))

    def wanted(self) -> dict[Root, tuple[NodeId, ...]]:
        """Return the blocks whose headers would tell more, and the nodes to ask, those in the list."""
        wanted = self._reorgs.wanted(self._clock.now(), self.slots)
        return {root: self._members.listed(nodes) for root, nodes in wanted.items()}

    def tell(self, told: Iterable[ChainReorged]) -> None:
        """Tell of reorgs, as far as nodes that have shown them are in the list."""
        for reorg in told:
            readable = self._members.readable_reorg(reorg)
            if readable is not None:
                self._tell.reorg(readable)
