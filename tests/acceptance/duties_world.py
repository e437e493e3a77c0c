"""The facade over simulated nodes, in virtual time, with times in slots."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from tests.acceptance.harness import Followed, Nodes, candidate, known
from vc_fallback.base.types import NodeId, Root, Slot
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate
from vc_fallback.config import FallbackConfig
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.testing import SimulatedBlock, SimulatedNode

DATA = "/eth/v1/validator/attestation_data"
HEAD_ROOT = "/eth/v1/beacon/blocks/head/root"
SYNCING = "/eth/v1/node/syncing"


class Held(Followed):
    """A running facade: `nodes` are the simulated ones, `calls` is what a validator client holds."""

    calls: BeaconNodeFallback

    async def due(self, slot: int) -> Slot:
        """Wait for the moment at which attestations of a slot are due, and return the slot."""
        await anyio.sleep_until(self.slots.attestation_due(Slot(slot)))
        return Slot(slot)

    async def settled(self) -> None:
        """Wait until all nodes are usable and the first heads are in: the middle of slot 129."""
        await self.calls.wait_ready(min_synced=len(self.calls.heads.candidates.current.members), timeout=60)
        await self.until(129.5)

    def asked(self, path: str) -> dict[str, int]:
        """Return how often each node was asked for a path; those that were not are left out."""
        counts = {name: node.request_counts[path] for name, node in self.nodes.items()}
        return {name: count for name, count in counts.items() if count}

    def root(self, slot: int, branch: str = "main") -> Root:
        """Return the root of the block of a slot."""
        return self.block(slot, branch).root


@asynccontextmanager
async def held(
    nodes: Nodes,
    *,
    fallbacks: Collection[SimulatedNode] = (),
    roles: Mapping[str, Sequence[str]] | None = None,
    listed: Sequence[SimulatedNode] | None = None,
    **settings: Any,
) -> AsyncIterator[Held]:
    """Hold simulated nodes as one until the body ends; then see that no task and no timer of a request is left.

    :param fallbacks: which of the nodes are in the fallback tier.
    :param roles: of nodes by name; all, where it is not given.
    :param listed: the nodes that are in the list; by default all.
    :param settings: fields of :class:`FallbackConfig`.
    """
    world = Held(nodes)
    given = roles or {}
    candidates = [
        candidate(node, fallback=node in fallbacks, **({"roles": given[node.name]} if node.name in given else {}))
        for node in (nodes if listed is None else listed)
    ]
    config = FallbackConfig.of({"candidates": candidates, "chain": known(world.chain), **settings})
    world.calls = BeaconNodeFallback(config, observers=[world.signals.append], clock=world.chain.clock)
    async with world.calls:
        world.monitor = world.calls.heads
        yield world
        await assert_nothing_left(world)


async def assert_nothing_left(world: Held) -> None:
    """No request has left a timer behind, or a task that does not end (rule 5)."""
    runner = world.calls._runner
    # Those that are asked to the end beside, to know how long they take (N3).
    with anyio.move_on_after(10):
        while runner._running:  # noqa: ASYNC110 - they tell nobody
            await anyio.sleep(0.1)
    assert not runner._running, runner._running
    assert not [timer for _, _, timer in runner._timers if timer.callback is not None]


def node_id(node: SimulatedNode) -> NodeId:
    """Return a node's id: its name."""
    return NodeId(node.name)


def moved(node: SimulatedNode, name: str, **more: Any) -> Candidate:
    """Return a candidate that has a name and the address of a node, whatever that is called."""
    return Candidate(BaseURL.parse(node.url), name, **more)


def on(block: SimulatedBlock) -> dict[str, str]:
    """Return what has attestation data name a block: to be given to `override`."""
    return {"beacon_block_root": "0x" + block.root.hex()}
