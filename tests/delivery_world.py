"""A delivery whose clock and standings a test moves by hand, and blocks named by slot and branch."""

from dataclasses import dataclass, field
from typing import Any

from vc_fallback.base.signals import HeadOutcome
from vc_fallback.base.types import NodeId, PayloadStatus, Root, Slot
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.delivery import Decision, Delivered, Delivery
from vc_fallback.decide.ledger import NodeHead, Standing

SLOT = 12.0
CHAIN = ChainIdentity(genesis_time=1_000_000.0, genesis_validators_root=Root(b"g" * 32), slot_duration=SLOT)
SLOTS = SlotClock(CHAIN, offset=1_000_000.0)  # loop time 0 is genesis

EMPTY, FULL = PayloadStatus.EMPTY, PayloadStatus.FULL
DELIVERED, DUPLICATE, BEHIND = HeadOutcome.DELIVERED, HeadOutcome.DUPLICATE, HeadOutcome.BEHIND
OPTIMISTIC, FUTURE, OLD = HeadOutcome.OPTIMISTIC, HeadOutcome.FUTURE, HeadOutcome.OLD
TIER, WRONG_CHAIN = HeadOutcome.TIER, HeadOutcome.WRONG_CHAIN


def block(name: str) -> tuple[Slot, Root]:
    """Read `100a` as slot 100, branch a."""
    return Slot(int(name[:-1])), Root(name.encode().rjust(32, b"."))


def name_of(head: NodeHead) -> str:
    return head.root.lstrip(b".").decode()


@dataclass
class World:
    """A delivery with a clock and standings that a test moves by hand."""

    deliver_optimistic: bool = False
    standings: dict[str, Standing] = field(default_factory=dict)
    slots: SlotClock | None = SLOTS

    def __post_init__(self) -> None:
        self.delivery = Delivery(self._standing, deliver_optimistic=self.deliver_optimistic)
        self.events: list[Delivered] = []

    def _standing(self, node_id: NodeId) -> Standing:
        return self.standings.get(node_id, Standing.ELIGIBLE)

    def show(self, node: str, name: str, at: float | None = None, **more: Any) -> list[tuple[str, HeadOutcome]]:
        """Show a block at a moment in slots (default: a third into its own slot)."""
        slot, root = block(name)
        at = slot + 1 / 3 if at is None else at
        head = NodeHead(NodeId(node), slot, root, received=at * SLOT, **more)
        return self.note(self.delivery.offer(head, at * SLOT, self.slots))

    def settle(self, at: float) -> list[tuple[str, HeadOutcome]]:
        return self.note(self.delivery.settle(at * SLOT, SLOTS))

    def reconsider(self, at: float) -> str | None:
        delivered = self.delivery.reconsider(at * SLOT, self.slots)
        if delivered is None:
            return None
        self.events.append(delivered)
        return name_of(delivered.head)

    def note(self, decisions: list[Decision]) -> list[tuple[str, HeadOutcome]]:
        self.events += [decision.delivered for decision in decisions if decision.delivered is not None]
        return [(name_of(decision.head), decision.outcome) for decision in decisions]

    @property
    def delivered(self) -> list[str]:
        return [name_of(event.head) for event in self.events]

    @property
    def latest(self) -> Delivered:
        assert self.delivery.delivered is not None
        return self.delivery.delivered
