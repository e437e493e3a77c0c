"""How a simulated node follows its chain: blocks come in on time, late or in bursts, heads change, events are said."""

from collections.abc import Awaitable, Callable

import anyio

from vc_fallback.base.types import PayloadStatus, root_hex
from vc_fallback.testing import events
from vc_fallback.testing.blocks import SimulatedBlock
from vc_fallback.testing.events import Json
from vc_fallback.testing.state import NodeState


class Follower:
    """Moves the head of a node's state along its branch and says so.

    :param say: sends an event to the node's streams.
    :param gate: waits while the node is frozen.
    :param head_first: say `head` before `block`.
    """

    def __init__(
        self,
        state: NodeState,
        say: Callable[[str, Json], None],
        gate: Callable[[], Awaitable[None]],
        *,
        head_first: bool = False,
    ) -> None:
        self._state = state
        self._say = say
        self._gate = gate
        self._head_first = head_first
        self._position: int = state.arrived - state.lag
        self._rejoined: anyio.Event | None = None
        self._interval = 0.0

    async def run(self) -> None:
        """Take in the block of every slot from now on as it comes."""
        slot: int = self._state.arrived + 1
        while True:
            await self._until(slot)
            await self._advance(slot)
            await self._payload(slot)
            slot += 1

    def cut_off(self) -> None:
        """Take no blocks in until :meth:`rejoin`."""
        if self._rejoined is None:
            self._rejoined = anyio.Event()

    def rejoin(self, interval: float) -> None:
        """Take in what was missed, one block each `interval` seconds, and go on."""
        self._interval = interval
        if self._rejoined is not None:
            self._rejoined.set()
            self._rejoined = None

    def switch(self, branch: str, *, head_event: bool, reorg_event: bool, reorg_first: bool) -> None:
        """Follow another branch from now on, to the same slot."""
        state = self._state
        old = state.head
        state.branch = branch
        new = state.chain.head_at(self._position, branch)
        if new.root == old.root:
            return
        reorg = events.chain_reorg(state.chain, old, new, optimistic=state.optimistic)
        if reorg_event and reorg_first:
            self._say("chain_reorg", reorg)
        self.show(new, head_event=head_event)
        if reorg_event and not reorg_first:
            self._say("chain_reorg", reorg)

    def show(self, block: SimulatedBlock, *, head_event: bool = True) -> None:
        """Make a block the head."""
        state = self._state
        before = events.finalized(state.chain, state.head)
        state.head = block
        state.payload = PayloadStatus.EMPTY if state.chain.is_gloas(block.slot) else PayloadStatus.FULL
        topics = ("head", "block") if self._head_first else ("block", "head")
        for topic in topics:
            if topic == "block":
                self._say("block", events.block(block, optimistic=state.optimistic))
            elif head_event:
                self._say("head", events.head(state.chain, block, optimistic=state.optimistic))
                self._say_v2()
        if events.finalized(state.chain, block) != before:
            finalized = events.finalized_checkpoint(state.chain, block, optimistic=state.optimistic)
            self._say("finalized_checkpoint", finalized)

    def reveal_payload(self) -> None:
        """Let the payload of the head come: it turns from empty to full."""
        state = self._state
        if state.payload is PayloadStatus.FULL:
            return
        state.payload = PayloadStatus.FULL
        block = {"slot": str(state.head.slot), "block_root": root_hex(state.head.root)}
        self._say("execution_payload_available", block)
        self._say_v2()

    def _say_v2(self) -> None:
        state = self._state
        self._say("head_v2", events.head_v2(state.chain, state.head, state.payload, optimistic=state.optimistic))

    async def _until(self, slot: int) -> None:
        state = self._state
        # A block may be declared late while we wait for it.
        while (  # noqa: ASYNC110 - not a poll
            arrival := state.chain.block_arrival(slot, state.branch) + state.head_delay
        ) > anyio.current_time():
            await anyio.sleep_until(arrival)
        await self._gate()
        while self._rejoined is not None:
            await self._rejoined.wait()
            await self._gate()

    async def _advance(self, slot: int) -> None:
        state = self._state
        while self._position < slot - state.lag:
            self._position += 1
            block = state.chain.block_at(self._position, state.branch) if self._position >= 0 else None
            if block is None or block.root == state.head.root:
                continue
            self.show(block)
            if state.slot > block.slot and self._interval:
                await anyio.sleep(self._interval)

    async def _payload(self, slot: int) -> None:
        state = self._state
        if state.head.slot != slot or state.payload is PayloadStatus.FULL:
            return
        arrival = state.chain.payload_arrival(slot, state.branch)
        if arrival is None or arrival >= state.chain.block_arrival(slot + 1, state.branch):
            return
        block = state.head
        await anyio.sleep_until(arrival + state.head_delay)
        await self._gate()
        if state.head is block:
            self.reveal_payload()
