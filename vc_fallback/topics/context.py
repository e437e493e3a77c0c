"""What the parts of the topics have in common: what is known of nodes, and whom to tell."""

from collections.abc import Callable
from dataclasses import dataclass

from vc_fallback.base.clock import Clock
from vc_fallback.base.health import HealthState
from vc_fallback.base.types import NodeId
from vc_fallback.candidates import Candidates
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.config import FallbackConfig
from vc_fallback.decide.cooldown import Cooldowns
from vc_fallback.decide.ledger import Ledger
from vc_fallback.health.book import HealthBook
from vc_fallback.settings import MAINNET_SLOT
from vc_fallback.times import StreamTimes


@dataclass(frozen=True, slots=True)
class TopicContext:
    """Facts that heads, health and requests share with the topics.

    :param slots: the slots of the chain; `None` until it is known.
    :param times: of streams, for the slots of the chain.
    :param identified: called with what a node says of its chain (H15).
    """

    config: FallbackConfig
    candidates: Candidates
    clock: Clock
    ledger: Ledger
    book: HealthBook
    cooldowns: Cooldowns
    slots: Callable[[], SlotClock | None]
    times: Callable[[], StreamTimes]
    identified: Callable[[NodeId, ChainIdentity], None]

    @property
    def slot(self) -> float:
        """The duration of a slot in seconds."""
        slots = self.slots()
        return MAINNET_SLOT if slots is None else slots.duration

    def healthy_since(self, node_id: NodeId) -> float | None:
        """Since when a node is healthy, `None` where it is not."""
        record = self.book.records.get(node_id)
        if record is None or record.unhealthy or record.health.state is not HealthState.HEALTHY:
            return None
        return record.health.since
