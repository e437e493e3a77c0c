"""A partition of real nodes that is healed: the reorg is told, and every node has the right head in the end."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import anyio
import anyio.to_thread
import pytest

from scripts.lodestar import rest
from scripts.lodestar.devnet import Devnet
from scripts.lodestar.rest import NotFoundError
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

    def until(self, right: BlockRef) -> list[BlockRef]:
        """The delivered blocks until the right head was there."""
        return self.blocks[: self.blocks.index(right) + 1]


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


class Headers:
    """Headers of blocks on any branch, from whichever node has them."""

    def __init__(self, devnet: Devnet) -> None:
        self._ports = [int(url.rpartition(":")[2]) for url in devnet.urls]
        self._parents: dict[BlockRef, BlockRef] = {}

    def get(self, block: str) -> tuple[BlockRef, str, int]:
        """Return a block, its parent's root, and its proposer."""
        for port in self._ports:
            with suppress(NotFoundError):
                data = rest.call(port, f"/eth/v1/beacon/headers/{block}")["data"]
                message = data["header"]["message"]
                own = BlockRef(Slot(int(message["slot"])), parse_root(data["root"]))
                return own, message["parent_root"], int(message["proposer_index"])
        raise NotFoundError(block)

    def left(self, blocks: list[BlockRef]) -> list[tuple[BlockRef, BlockRef]]:
        """Return the changes from a block to one that does not come after it: the reorgs among them."""
        return [(one, other) for one, other in pairwise(blocks) if not self.leads_to(other, one)]

    def leads_to(self, block: BlockRef, ancestor: BlockRef) -> bool:
        """Whether a block comes after another one."""
        while block.slot > ancestor.slot:
            if block not in self._parents:
                self._parents[block], _, _ = self.get(self.get(root_hex(block.root))[1])
            block = self._parents[block]
        return block == ancestor


async def split(devnet: Devnet) -> None:
    """Give half of the validators to the node that will be alone, and see that both halves have blocks."""
    headers, since = Headers(devnet), devnet.slot_now()
    await anyio.to_thread.run_sync(devnet.split_validators, ALONE)
    halves: set[bool] = set()
    # Two clients start, which takes a busy machine long, and each then has to be the proposer.
    with anyio.fail_after(2 * LIMIT):
        while len(halves) < 2:
            await anyio.sleep(0.25)
            block, _, proposer = await anyio.to_thread.run_sync(headers.get, "head")
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
        headers = Headers(devnet)
        expected = {number: await in_thread(headers.left, one.until(right)) for number, one in single.items()}
        flips = await in_thread(headers.left, together.until(right))
        stayed = await in_thread(headers.leads_to, right, lonely), await in_thread(headers.leads_to, right, other)
    assert sorted(stayed) == [False, True]
    for number, one in single.items():
        # Whoever was on the side that lost has told that it came over.
        assert expected[number] or (number == ALONE) is stayed[0]
        assert [(reorg.old, reorg.new) for reorg in one.reorgs][: len(expected[number])] == expected[number]
        # Lodestar does not report each of them.
        said = [(told.old_root, told.new_root) for told in one.signals if isinstance(told, NodeReorgSeen)]
        for reorg in one.reorgs:
            reported = (reorg.old.root, reorg.new.root) in said
            assert reported or reorg.evidence is not ReorgEvidence.REPORTED
            assert reorg.reported_by in ((), (f"node{number}",))
            assert reorg.depth is None or reorg.depth > 0
    assert set(flips) <= {(reorg.old, reorg.new) for reorg in together.reorgs}
