"""The head's topics for subscribers: what the head streams bring, without another connection (T1)."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from vc_fallback.base.types import NodeId, Root, Slot
from vc_fallback.decide.delivery import Delivered
from vc_fallback.decide.ledger import Ledger, Standing
from vc_fallback.node.events import HeadEvent, HeadTopicEvent, ReorgEvent

HEAD = ("head", "head_v2")
"""Two forms of one event (H11): who subscribes to either gets what nodes send."""

REORG = ("chain_reorg",)

REMEMBERED = 128
"""Events about the head that are kept until their head is delivered."""


class HeadSource(Protocol):
    """Where heads come from."""

    taps: dict[object, Callable[[NodeId, HeadTopicEvent, float], None]]
    """Called with every event of the head streams and its loop time, before its head is delivered."""

    def attach(self, key: object, deliver: Callable[[Delivered], None]) -> None:
        """Have something called with every delivered head."""

    def detach(self, key: object) -> None:
        """End that."""


class HeadTopics:
    """Delivered heads as events of `head` and `head_v2`, and what nodes say of reorgs as `chain_reorg`.

    Each change of the head is told once, as it is to those who subscribe to heads alone (C3, C5): the topic knows that
    going back to an older head is news, which its meaning alone does not.

    :param tell: called with the topics, the event, its node and its loop time.
    """

    def __init__(
        self,
        source: HeadSource,
        ledger: Ledger,
        tell: Callable[[tuple[str, ...], HeadTopicEvent, NodeId, float], None],
    ) -> None:
        self._source = source
        self._ledger = ledger
        self._tell = tell
        self._events: OrderedDict[tuple[Slot, Root], HeadEvent] = OrderedDict()

    def follow(self, follow: bool) -> None:
        """Begin to tell, or end that."""
        if follow:
            self._source.taps[self] = self._tapped
            self._source.attach(self, self._delivered)
        else:
            self._source.taps.pop(self, None)
            self._source.detach(self)
            self._events.clear()

    def _tapped(self, node_id: NodeId, event: HeadTopicEvent, received: float) -> None:
        if isinstance(event, ReorgEvent):
            if self._ledger.standing(node_id) is Standing.ELIGIBLE:
                self._tell(REORG, event, node_id, received)
            return
        self._events[event.slot, event.block] = event
        while len(self._events) > REMEMBERED:
            self._events.popitem(last=False)

    def _delivered(self, delivered: Delivered) -> None:
        head = delivered.head
        event = self._events.get((head.slot, head.root))
        if event is None or event.payload_status is not head.payload_status:
            # It was polled, or another node's event has come since.
            event = HeadEvent(
                head.slot,
                head.root,
                payload_status=head.payload_status,
                current_epoch_dependent_root=head.current_epoch_dependent_root,
                next_epoch_dependent_root=head.next_epoch_dependent_root,
                optimistic=head.optimistic,
            )
        self._tell(HEAD, event, head.node_id, head.received)
