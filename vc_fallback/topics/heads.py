"""The head's topics for subscribers: what the head streams bring, without another connection (T1)."""

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Protocol

from vc_fallback.base.types import NodeId, Root, Slot
from vc_fallback.decide.delivery import Delivered
from vc_fallback.decide.ledger import Ledger, Standing
from vc_fallback.node.events import HeadEvent, HeadTopicEvent, ReorgEvent
from vc_fallback.node.meaning import MEANINGS, pack

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
        self._events: OrderedDict[tuple[NodeId, Slot, Root], HeadEvent] = OrderedDict()
        self._reorgs: OrderedDict[bytes, Counter[NodeId]] = OrderedDict()
        """How often each node has told of a reorg; the most of these is how often it was told here."""
        self._last: dict[NodeId, bytes] = {}
        """The reorg that each node told of last."""

    def follow(self, follow: bool) -> None:
        """Begin to tell, or end that."""
        if follow:
            self._source.taps[self] = self._tapped
            self._source.attach(self, self._delivered)
        else:
            self._source.taps.pop(self, None)
            self._source.detach(self)
            for kept in (self._events, self._reorgs, self._last):
                kept.clear()

    def _tapped(self, node_id: NodeId, event: HeadTopicEvent, received: float) -> None:
        if isinstance(event, ReorgEvent):
            if self._ledger.standing(node_id) is Standing.ELIGIBLE and self._is_news(node_id, event):
                self._tell(REORG, event, node_id, received)
            return
        self._events[node_id, event.slot, event.block] = event
        while len(self._events) > REMEMBERED:
            self._events.popitem(last=False)

    def _is_news(self, node_id: NodeId, reorg: ReorgEvent) -> bool:
        """Whether a reorg was not told yet, or has come again at this node: A → B → A → B is three."""
        key = pack(MEANINGS[REORG[0]](reorg))
        if self._last.get(node_id) == key:
            return False
        if len(self._last) > 2 * len(self._ledger.nodes):
            self._last = {known: last for known, last in self._last.items() if known in self._ledger.nodes}
        self._last[node_id] = key
        counts = self._reorgs.setdefault(key, Counter())
        self._reorgs.move_to_end(key)
        if len(self._reorgs) > REMEMBERED:
            self._reorgs.popitem(last=False)
        told = max(counts.values(), default=0)
        counts[node_id] += 1
        return counts[node_id] > told

    def _delivered(self, delivered: Delivered) -> None:
        head = delivered.head
        event = self._events.get((head.node_id, head.slot, head.root))
        if event is None or event.payload_status is not head.payload_status:
            # It was polled, or has changed since.
            event = HeadEvent(
                head.slot,
                head.root,
                payload_status=head.payload_status,
                current_epoch_dependent_root=head.current_epoch_dependent_root,
                next_epoch_dependent_root=head.next_epoch_dependent_root,
                optimistic=head.optimistic,
            )
        elif event.optimistic is not head.optimistic:
            # It was held back until a poll found it valid.
            event = event._replace(optimistic=head.optimistic)
        self._tell(HEAD, event, head.node_id, head.received)
