"""What a node that is dead or hangs costs a call: the first one after, those that follow, and once it is known."""

from collections.abc import Mapping
from statistics import median

import anyio

from scripts.benchmarks.routing_calls import BLOCK, Call, Rounds, in_turns, ready, slot_now, soon, timed
from scripts.benchmarks.routing_peers import Peers
from scripts.benchmarks.routing_server import Manner, Nodes
from vc_fallback import BeaconNodeFallback, OnChain, Role, Root, Sourced
from vc_fallback.base.clock import Clock
from vc_fallback.base.types import NodeId
from vc_fallback.base.urls import BaseURL
from vc_fallback.node.client import BeaconNode
from vc_fallback.routing.first_success import first_success
from vc_fallback.routing.runner import Runner
from vc_fallback.wire.client import HTTPClient

STAGES = ("before", "first", "then", "known")
"""Before the fault; the first call after; the calls that follow while it is not known; when the node is known to be
down, and others are asked before it."""

_KNOWN_WITHIN = 3
"""Slots within which a node has to be known to be down."""


async def strikes(served: Nodes, manner: Manner, what: str, *, known: bool) -> Mapping[str, float]:
    """Have the node that is asked first fail, once; return the seconds of a call at each stage.

    :param what: the call.
    :param known: whether to wait until the node is known to be down.
    """
    async with ready(served) as nodes:
        ids = served.ids()
        call = _calls(nodes)[what]
        for node_id in ids:
            # As in life: checks and preparations go to all nodes, so that each has a connection.
            await nodes.scoped(node_id).block_root("head", timeout=1.0)
        for _ in range(BLOCK):
            await timed(call)
        stages = {"before": await _median(call, 3 * BLOCK)}
        primary = nodes.plan(Role.ATTESTATION).nodes[0]
        served.become(ids.index(primary), manner)
        try:
            stages["first"] = await _median(call, 1)
            stages["then"] = await _median(call, BLOCK)
            if known:
                with anyio.move_on_after(_KNOWN_WITHIN * served.slot_duration):
                    await _passed_by(nodes, primary)
                    stages["known"] = await _median(call, 3 * BLOCK)
        finally:
            served.become(ids.index(primary), "well")
    return stages


def _calls(nodes: BeaconNodeFallback) -> Mapping[str, Call]:
    async def root_of(node: BeaconNode) -> Sourced[OnChain[Root]]:
        return await node.block_root("head", timeout=2.0)

    return {
        "first_success": lambda: nodes.first_success(root_of, next_after=0.05),
        "attestation_data": lambda: nodes.attestation_data(slot_now(nodes), deadline=soon(nodes)),
    }


async def _passed_by(nodes: BeaconNodeFallback, node_id: NodeId) -> None:
    """Wait until others are asked before a node, or it is not asked at all."""
    while nodes.plan(Role.ATTESTATION).nodes[0] == node_id:  # noqa: ASYNC110 - nothing tells of a plan
        await anyio.sleep(0.02)


async def _median(call: Call, count: int) -> float:
    return median([await timed(call) for _ in range(count)])


async def always_dead(served: Nodes, turns: int) -> Rounds:
    """Ask by the strategy alone, which knows nothing of health: every call meets a dead node first, or meets none.

    The first node of the server is dead meanwhile.
    """
    clients = {
        node_id: HTTPClient(BaseURL.parse(url)) for node_id, url in zip(served.ids(), served.urls(), strict=True)
    }
    nodes = {node_id: BeaconNode(node_id, client, clock=Clock()) for node_id, client in clients.items()}
    dead, *live = nodes

    async def ask(node_id: NodeId) -> Sourced[OnChain[Root]]:
        return await nodes[node_id].block_root("head", timeout=1.0)

    def by(order: list[NodeId]) -> Call:
        return lambda: first_success(ask, order, end=runner.now() + 1.0, delay=lambda _: 0.5, runner=runner)

    runner = Runner()
    served.become(0, "dead")
    try:
        async with anyio.create_task_group() as tasks:
            await tasks.start(runner.run)
            found = await in_turns({"without": by(live), "with": by([dead, *live])}, turns)
            tasks.cancel_scope.cancel()
    finally:
        served.become(0, "well")
        for client in clients.values():
            client.close()
    return found


async def theirs(served: Nodes, manner: Manner, turns: int) -> list[float]:
    """Ask all nodes at once in the published way, while the first one of them is so."""
    async with ready(served) as nodes, Peers(served.urls()) as peers:
        for _ in range(BLOCK):
            await peers.first(slot_now(nodes))
        served.become(0, manner)
        try:
            return [await _median(lambda: peers.first(slot_now(nodes)), 1) for _ in range(turns)]
        finally:
            served.become(0, "well")
