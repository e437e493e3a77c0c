"""Heads of the last slots: which slot a block is of, and which head held at a slot (Q8)."""

from collections import deque

from vc_fallback.base.types import Root, Slot
from vc_fallback.decide.delivery import Delivered

BLOCKS = 256
"""Blocks that are remembered: those of two epochs on several branches; of an older one nobody asks."""

HEADS = 8
"""Delivered heads that are remembered: duties are of the present slot, or of the one that has just ended."""


class RecentHeads:
    """What was announced of late.

    Of a block's slot the lowest counts that was said: data for a block that is above its slot is refused, and one node
    that is mistaken must not have all others refused.
    """

    def __init__(self) -> None:
        self._slots: dict[Root, Slot] = {}
        self._delivered: deque[Delivered] = deque(maxlen=HEADS)

    def saw(self, slot: Slot, root: Root) -> None:
        """Take a head that a node of ours has shown."""
        known = self._slots.get(root)
        if known is None or slot < known:
            self._slots[root] = slot
            if len(self._slots) > BLOCKS:
                del self._slots[next(iter(self._slots))]

    def deliver(self, delivered: Delivered) -> None:
        """Take a head that was delivered."""
        self._delivered.append(delivered)

    def slot_of(self, root: Root) -> Slot | None:
        """Return the slot of a block, `None` where nobody has shown it."""
        return self._slots.get(root)

    def up_to(self, slot: Slot) -> Delivered | None:
        """Return the head that was delivered last of those that are not above a slot."""
        return next((head for head in reversed(self._delivered) if head.slot <= slot), None)
