"""What requests want to know of heads, as the head monitor knows it."""

from vc_fallback.base.signals import HeadOutcome, NodeHeadSeen, StreamState
from vc_fallback.base.types import Epoch, NodeId, Role, Root, Slot
from vc_fallback.base.watch import Watch
from vc_fallback.chain import SlotClock
from vc_fallback.decide.delivery import Delivered
from vc_fallback.decide.ledger import CONNECTED, NodeHead
from vc_fallback.decide.recent_heads import RecentHeads
from vc_fallback.heads.cache import HeadCache
from vc_fallback.heads.monitor import HeadMonitor


class ChainOfHeads:
    """The :class:`~vc_fallback.routing.desk.ChainView` of a head monitor."""

    cache: HeadCache
    """That of the monitor, once it is entered: requests ask several times each, and get by without looking it up."""

    def __init__(self, heads: HeadMonitor) -> None:
        self._heads = heads
        self._news: dict[NodeId, Watch[None]] = {}
        self._recent = RecentHeads()

    @property
    def slots(self) -> SlotClock | None:
        return self.cache.slots

    def reanchor(self) -> SlotClock | None:
        return self.cache.reanchor()

    def latest_head(self) -> Delivered | None:
        return self.cache.latest.value

    def head_up_to(self, slot: Slot) -> Delivered | None:
        return self._recent.up_to(slot)

    def slot_of(self, root: Root) -> Slot | None:
        return self._recent.slot_of(root)

    def head_of(self, node_id: NodeId) -> NodeHead | None:
        return self.cache.delivery.entries.get(node_id)

    def dependent_root(self, epoch: Epoch) -> Root | None:
        return self._heads.dependent_root(epoch)

    def streams(self, node_id: NodeId) -> bool | None:
        member = self._heads.candidates.current.get(node_id)
        if member is None or not member.has(Role.EVENTS):
            return None
        return self.cache.ledger.nodes[node_id].stream.state in CONNECTED

    def has_stream(self, node_id: NodeId) -> bool | None:
        if self.streams(node_id) is None:
            return None
        return self.cache.ledger.nodes[node_id].stream.state in (StreamState.OPEN, StreamState.FRESH)

    def follows(self, node_id: NodeId) -> bool:
        return bool(self.streams(node_id)) and self.cache.ledger.nodes[node_id].stream.state is not StreamState.STALLED

    def head_news(self, node_id: NodeId) -> Watch[None]:
        return self._news.setdefault(node_id, Watch(None))

    def seen(self, head: NodeHeadSeen) -> None:
        """Remember a block, and wake who waits for another head of its node."""
        if head.outcome not in (HeadOutcome.WRONG_CHAIN, HeadOutcome.FUTURE):
            self._recent.saw(head.slot, head.root)
        watch = self._news.get(head.node_id)
        if watch is not None:
            watch.set(None)

    def delivered(self) -> None:
        """Remember the latest head."""
        latest = self._heads.latest.value
        if latest is not None:
            self._recent.deliver(latest)

    def forget(self, node_id: NodeId) -> None:
        self._news.pop(node_id, None)
