"""Nodes on a chain that forks."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from vc_fallback.testing import SimulatedChain, SimulatedNode


@asynccontextmanager
async def forked(count: int, *, above: int = 129) -> AsyncIterator[list[SimulatedNode]]:
    """Serve nodes on one chain that forks into `main` and `other` above a slot; all follow `main` at first."""
    chain = SimulatedChain(start_slot=128)
    chain.branch("other", above=above)
    nodes = [SimulatedNode(chain, name=f"bn{number + 1}") for number in range(count)]
    async with AsyncExitStack() as running:
        for node in nodes:
            await running.enter_async_context(node)
        yield nodes
