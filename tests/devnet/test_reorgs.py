"""A partition of real nodes that is healed: the reorg is told, and every node has the right head in the end."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import anyio
import anyio.to_thread
import pytest

from scripts.lodestar import rest
from scripts.lodestar.devnet import Devnet
from tests.devnet.following import LIMIT
from vc_fallback.base.signals import ChainReorged, HeadDelivered, NodeReorgSeen, ReorgEvidence, Signal
from vc_fallback.base.types import BlockRef, Slot, parse_root, root_hex
from vc_fallback.config import FallbackConfig
from vc_fallback.heads.monitor import HeadMonitor

ALONE, OTHER = 1, 2
HALF = 4
"""Validators from this number on have a client on the node that is cut off."""


@dataclass
class Watched:
    """A monitor and what it told."""

    monitor: HeadMonitor
    signals: list[Signal] = field(default_factory=list)

    @property
    def reorgs(self) -> list[ChainReorged]:
        return [signal for signal in self.signals if isinstance(signal, ChainReorged)]

    @property
    def blocks(self) -> list[BlockRef]:
        """The delivered blocks, one for each change."""
        return [BlockRef(head.slot, head.root) for head in self.signals if isinstance(head, HeadDelivered)]

    def turns(self, canonical: set[BlockRef], parting: Slot) -> list[tuple[BlockRef, BlockRef]]:
        """The changes from one side of the fork to the other, until the right head was there."""
        right = max(canonical)
        until = self.blocks[: self.blocks.index(right) + 1]
        return [
            (one, other)
            for one, other in pairwise(until)
            if one.slot > parting and (one in canonical) is not (other in canonical)
        ]


@asynccontextmanager
async def watching(devnet: Devnet, *numbers: int) -> AsyncIterator[Watched]:
    """Follow some nodes as one."""
    signals: list[Signal] = []
    nodes = [{"url": devnet.url(number), "name": f"node{number}"} for number in numbers]
    config = FallbackConfig.of({"candidates": nodes, "streams": {"verify_timeout": 1.5}})
    async with HeadMonitor(config, observers=[signals.append]) as monitor, monitor.reorgs():
        yield Watched(monitor, signals)


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that takes a few slots on a machine with nothing else to do."""
    with anyio.move_on_after(LIMIT):
        while not condition():  # noqa: ASYNC110 - real nodes tell nobody
            await anyio.sleep(0.05)
        return
    raise TimeoutError(what)


def header(devnet: Devnet, block: str) -> tuple[BlockRef, str, int]:
    """Return a block, its parent's root, and its proposer, as the node that was cut off tells it."""
    port = int(devnet.url(ALONE).rpartition(":")[2])
    data = rest.call(port, f"/eth/v1/beacon/headers/{block}")["data"]
    message = data["header"]["message"]
    own = BlockRef(Slot(int(message["slot"])), parse_root(data["root"]))
    return own, message["parent_root"], int(message["proposer_index"])


def chain_of(devnet: Devnet, block: str, down_to: Slot) -> set[BlockRef]:
    """Walk down from a block."""
    chain = set()
    while True:
        own, block, _ = header(devnet, block)
        chain.add(own)
        if own.slot <= down_to:
            return chain


async def split(devnet: Devnet) -> None:
    """Give half of the validators to the node that will be alone, and see that both halves have blocks."""
    since = devnet.slot_now()
    await anyio.to_thread.run_sync(devnet.split_validators, ALONE)
    halves: set[bool] = set()
    # Two clients start, which takes a busy machine long, and each then has to be the proposer.
    with anyio.fail_after(2 * LIMIT):
        while len(halves) < 2:
            await anyio.sleep(0.25)
            block, _, proposer = await anyio.to_thread.run_sync(header, devnet, "head")
            if block.slot > since + 1:
                halves.add(proposer >= HALF)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_partition_that_is_healed(healthy_devnet: Devnet) -> None:
    """H14, C3, C11: blocks on both sides; then the nodes of one come over, each tells it, and all have one head.

    Each node is followed by itself, and all as one.
    """
    devnet, in_thread = healthy_devnet, anyio.to_thread.run_sync
    await split(devnet)
    async with AsyncExitStack() as stack:
        single = {number: await stack.enter_async_context(watching(devnet, number)) for number in devnet.numbers}
        together = await stack.enter_async_context(watching(devnet, *devnet.numbers))
        every = [*single.values(), together]
        await until(lambda: all(one.blocks for one in every), "first heads")
        await in_thread(devnet.isolate, ALONE)
        parting = max(set(single[ALONE].blocks) & set(single[OTHER].blocks))
        sides = [single[ALONE], single[OTHER]]
        await until(lambda: all(side.blocks[-1].slot > parting.slot + 1 for side in sides), "blocks on both sides")
        lonely, other = (side.blocks[-1] for side in sides)
        await in_thread(devnet.rejoin, ALONE)
        head = await in_thread(partial(devnet.await_common_head, timeout=LIMIT))
        right = BlockRef(Slot(head.slot), parse_root(head.root))
        await until(lambda: all(right in one.blocks for one in every), "the right head")
        canonical = await in_thread(chain_of, devnet, head.root, parting.slot)
    assert (lonely in canonical) is not (other in canonical)
    for number, one in single.items():
        turns = one.turns(canonical, parting.slot)
        # Whoever was on the side that lost has told that it came over, and what that side's head was.
        assert turns or (number != ALONE if other in canonical else number == ALONE), root_hex(parting.root)
        # On a busy machine blocks are late, and there may have been one before.
        since = [reorg for reorg in one.reorgs if reorg.old.slot > parting.slot]
        assert [(reorg.old, reorg.new) for reorg in since][: len(turns)] == turns
        # Lodestar does not report each of them.
        said = [(told.old_root, told.new_root) for told in one.signals if isinstance(told, NodeReorgSeen)]
        for reorg in since:
            reported = (reorg.old.root, reorg.new.root) in said
            assert reported or reorg.evidence is not ReorgEvidence.REPORTED
            assert reorg.reported_by in ((), (f"node{number}",))
            assert reorg.depth is None or 0 < reorg.depth <= right.slot - parting.slot + 1
    assert set(together.turns(canonical, parting.slot)) <= {(reorg.old, reorg.new) for reorg in together.reorgs}
