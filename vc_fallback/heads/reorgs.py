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
    """Looks at every delivered head and at every report of a node; before the chain is known it does nothing.

    :param held: called when one begins to be held back.
    """

    def __init__(self, clock: Clock, members: Membership, tell: Telling, held: Callable[[], None]) -> None:
        self.slots: SlotClock | None = None
        """The chain's slots; written by the head cache."""
        self.unknown: Callable[[], None] = lambda: None
        """Called when headers are wanting that would tell what left a branch, and from where (:meth:`wanted`)."""
        self.closed = False
        """Set when the monitor ends: nothing is told any more."""
        self._reorgs: Reorgs | None = None
        self._clock = clock
        self._members = members
        self._tell = tell
        self._held = held

    def pin(self, reorgs: Reorgs) -> None:
        """Begin: the chain is known."""
        self._reorgs = reorgs

    @property
    def due(self) -> float | None:
        """The moment in loop time at which :meth:`look` has something to do, or `None`."""
        return self._reorgs.due if self._reorgs is not None else None

    def moved(self, delivered: Delivered) -> list[ChainReorged]:
        """Take a delivered head; return what is to be told after it, by :meth:`tell`."""
        if self._reorgs is None or self.slots is None:
            return []
        # Some nodes report no reorg of one slot; who wants to know of all has the header of each head asked for.
        doubt = bool(self._tell.reorgs)
        told = self._reorgs.moved(delivered, self._clock.now(), self.slots, doubt=doubt)
        self._look_up(self._reorgs)
        return told

    def reported(self, node_id: NodeId, event: ReorgEvent) -> None:
        """Take a node's report."""
        if self._reorgs is not None and self.slots is not None:
            old, new = event.old_head_block, event.new_head_block
            self.tell(self._reorgs.reported(node_id, old, new, event.depth, self._clock.now(), self.slots))
            self._look_up(self._reorgs)

    def look(self) -> None:
        """See whether more is known of a reorg that is held back, or its time is over."""
        if self._reorgs is not None and self.slots is not None:
            self.tell(self._reorgs.look(self._clock.now(), self.slots))

    def review(self) -> None:
        """See what headers show that have come to be known."""
        if self._reorgs is not None and self.slots is not None:
            self.tell(self._reorgs.review(self._clock.now(), self.slots))

    def wanted(self) -> dict[Root, tuple[NodeId, ...]]:
        """Return the blocks whose headers would tell more, and the nodes to ask, those in the list."""
        if self._reorgs is None or self.slots is None:
            return {}
        wanted = self._reorgs.wanted(self._clock.now(), self.slots)
        return {root: self._members.listed(nodes) for root, nodes in wanted.items()}

    def tell(self, told: Iterable[ChainReorged]) -> None:
        """Tell of reorgs, as far as nodes that have shown them are in the list."""
        for reorg in told:
            readable = self._members.readable_reorg(reorg)
            if readable is not None and not self.closed:
                self._tell.reorg(readable)

    def _look_up(self, reorgs: Reorgs) -> None:
        if reorgs.due is not None:
            self._held()
        if reorgs.open:
            self.unknown()
