"""What a simulated node knows and says of itself, apart from how it says it."""

from dataclasses import dataclass, field

import anyio

from vc_fallback.base.types import PayloadStatus, Slot
from vc_fallback.testing.blocks import MAIN, SimulatedBlock, SimulatedChain
from vc_fallback.testing.manners import Manners
from vc_fallback.testing.pool import Pool
from vc_fallback.testing.proposal import Proposal

SYNC_TOLERANCE = 8
"""Slots behind the wall clock up to which nodes call themselves synced."""

REMOVED = object()
"""As a value given to `SimulatedNode.override`: the field is left out."""


@dataclass(slots=True)
class NodeState:
    """The state behind a node's answers.

    :param branch: of the chain, which it follows.
    :param lag: how many slots its head is behind the chain's.
    :param head_delay: seconds by which blocks reach it later than others.
    :param optimistic: its head's payload is not verified (execution layer syncing).
    :param el_offline: its execution layer is not reachable; `None` leaves the field out, as old nodes do.
    :param syncing: what it says as `is_syncing`; `None` to say so when it is more than eight slots behind.
    :param peers: how many it is connected to.
    :param overrides: fields of answers by path, exact or with `*`, in place of the true ones.
    :param proposal: what block it proposes when it is asked for one.
    :param builders: indices of the Gloas builders whose bids it has.
    :param fee_recipient: of blocks whose proposer has not told it another one.
    :param manners: how it deals with requests.
    :param pool: what it was sent.
    """

    chain: SimulatedChain
    name: str
    version: str
    branch: str = MAIN
    lag: int = 0
    head_delay: float = 0.0
    optimistic: bool = False
    el_offline: bool | None = False
    syncing: bool | None = None
    peers: int = 50
    payload: PayloadStatus = PayloadStatus.FULL
    overrides: dict[str, dict[str, object]] = field(default_factory=dict)
    proposal: Proposal = Proposal()  # noqa: RUF009 - it is frozen
    builders: set[int] = field(default_factory=lambda: {0})
    fee_recipient: bytes = bytes(20)
    manners: Manners = field(default_factory=Manners)
    pool: Pool = field(default_factory=Pool)
    head: SimulatedBlock = field(init=False)

    def __post_init__(self) -> None:
        slot = self.arrived
        self.head = self.chain.head_at(slot - self.lag, self.branch)
        arrival = self.chain.payload_arrival(self.head.slot, self.branch)
        if self.chain.is_gloas(self.head.slot) and (arrival is None or arrival > anyio.current_time()):
            self.payload = PayloadStatus.EMPTY

    @property
    def slot(self) -> Slot:
        """The wall-clock slot, 0 before genesis."""
        return Slot(max(0, self.chain.slots.slot_at(anyio.current_time())))

    @property
    def arrived(self) -> Slot:
        """The newest slot whose block, if there is one, has had the time to come."""
        slot, now = self.slot, anyio.current_time()
        while slot > 0 and self.chain.block_arrival(slot, self.branch) + self.head_delay > now:
            slot = Slot(slot - 1)
        return slot

    @property
    def distance(self) -> int:
        """Slots from its head to the wall clock."""
        return self.slot - self.head.slot

    @property
    def is_syncing(self) -> bool:
        """Whether it says that it is syncing."""
        return self.distance > SYNC_TOLERANCE if self.syncing is None else self.syncing

    def has_payload(self, block: SimulatedBlock) -> bool:
        """Whether the payload of a block on its branch is there; before Gloas it always is."""
        if not self.chain.is_gloas(block.slot):
            return True
        if block is self.head:
            return self.payload is PayloadStatus.FULL
        arrival = self.chain.payload_arrival(block.slot, block.branch)
        return arrival is not None and arrival + self.head_delay <= anyio.current_time()
