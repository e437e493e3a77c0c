"""Blocks that nodes are asked for through the facade."""

from typing import Any

import anyio

from tests.acceptance.held import REVEAL, to_next_slot
from vc_fallback.base.types import NodeId
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.testing import Delay, Proposal, SimulatedNode

SLOT = 12.0
SOFT, END = SLOT / 8, SLOT / 2
ANY_BLOCK = "/eth/v*/validator/blocks/*"
NO_PROPOSALS = {"roles": ["events", "duties", "submission"]}


def worth(node: SimulatedNode, execution: int | str | None, consensus: int | str | None = 0) -> None:
    node.state.proposal = Proposal(execution_value=execution, consensus_value=consensus)


def late(node: SimulatedNode, seconds: float) -> None:
    node.inject(ANY_BLOCK, Delay(seconds))


def asked(node: SimulatedNode) -> int:
    return len([request for request in node.requests if "/validator/blocks/" in request.path])


async def produce(nodes: BeaconNodeFallback, **options: Any) -> tuple[NodeId, float]:
    """Have a block made for the slot that begins now; return who made it, and how long that took."""
    slot = options.pop("slot", None) or await to_next_slot(nodes, into=0.0)
    began = anyio.current_time()
    made = await nodes.produce_block(slot, REVEAL, **options)
    return made.node_id, anyio.current_time() - began


async def in_list_order(nodes: BeaconNodeFallback) -> None:
    """Wait until the first node of the list has the duties: whoever is known first takes them at the start (N9)."""
    while nodes.plan().nodes[0] != "bn1":
        await to_next_slot(nodes, into=0.0)
