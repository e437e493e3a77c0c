"""Calls of the facade beside bare ones and beside others', in turns: what routing costs where all is well."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from scripts.benchmarks.routing_peers import Peers
from scripts.benchmarks.routing_server import Nodes
from vc_fallback import BeaconNode, BeaconNodeFallback, Encodings, FallbackError, OnChain, Role, Root, Slot, Sourced
from vc_fallback.base.types import NodeId
from vc_fallback.routing.first_success import first_success

Call = Callable[[], Awaitable[object]]
Rounds = dict[str, list[list[float]]]
"""Of each way the times of its turns, in seconds."""

BLOCK = 10
"""Calls in a turn."""

_ROOT = b"0x" + b"ab" * 32
_CHECKPOINT = b'{"epoch":"1","root":"%s"}' % _ROOT
ATTESTATION = Encodings(
    ssz=bytes(240),
    json=b'{"committee_index":"0","attester_index":"1","data":{"slot":"1","index":"0","beacon_block_root":"%s",'
    b'"source":%s,"target":%s},"signature":"0x%s"}' % (_ROOT, _CHECKPOINT, _CHECKPOINT, b"ab" * 96),
)
"""A `SingleAttestation`; nobody looks into it."""


@asynccontextmanager
async def ready(served: Nodes, **sections: object) -> AsyncIterator[BeaconNodeFallback]:
    """Hold all nodes of a server as one, until they are ready and have announced their head."""
    async with BeaconNodeFallback(served.config(**sections)) as nodes:
        await nodes.wait_ready(min_synced=len(served.ports), timeout=10)
        watcher = nodes.heads.latest.watcher(seen=False)
        while await watcher.wait() is None:
            pass
        yield nodes


def slot_now(nodes: BeaconNodeFallback) -> Slot:
    """Return the present slot."""
    assert nodes.slots is not None  # noqa: S101 - they are ready
    return nodes.slots.slot_at(nodes.clock.now())


def soon(nodes: BeaconNodeFallback) -> float:
    """Return a deadline that is no slot's: a call does not fail because it began at the end of one."""
    return nodes.clock.now() + 2.0


async def in_turns(ways: Mapping[str, Call], turns: int) -> Rounds:
    """Call each way so many times ten times, the ways one after the other, whoever is first being last the next time.

    So whatever the machine does meanwhile, it does to all. A call that returns a float has measured itself.
    """
    for call in ways.values():
        for _ in range(BLOCK):
            await timed(call)
    times: Rounds = {way: [] for way in ways}
    for turn in range(turns):
        order = list(ways.items())
        for way, call in order[turn % len(order) :] + order[: turn % len(order)]:
            times[way].append([await timed(call) for _ in range(BLOCK)])
    return times


async def timed(call: Call) -> float:
    """Return the seconds of a call, or what it measured itself; of one more where it failed."""
    while True:
        begun = time.perf_counter()
        try:
            found = await call()
        except FallbackError:
            # A slot has ended meanwhile: what was asked for it is not to be had any more.
            continue
        return found if isinstance(found, float) else time.perf_counter() - begun


async def overhead(served: Nodes, turns: int) -> Rounds:
    """Call one node bare and through the facade, which has three.

    The bare client is the facade's own: what it tells health and what it remembers is the same in both.
    """
    async with ready(served) as nodes:
        bare = nodes.scoped(nodes.plan(Role.DUTIES).nodes[0])

        async def root_of(node: BeaconNode) -> Sourced[OnChain[Root]]:
            return await node.block_root("head", timeout=2.0)

        return await in_turns(
            {
                "bare block root": lambda: root_of(bare),
                "`first_success`": lambda: nodes.first_success(root_of),
                "`block_root`": lambda: nodes.block_root("head"),
                "bare attestation data": lambda: bare.attestation_data(slot_now(nodes), timeout=2.0),
                "`attestation_data`": lambda: nodes.attestation_data(slot_now(nodes), deadline=soon(nodes)),
            },
            turns,
        )


async def strategy(served: Nodes, turns: int) -> Rounds:
    """Call one node bare and by the strategy alone, without plan, health or ends of slots."""
    async with ready(served) as nodes:
        ids = [*nodes.plan(Role.DUTIES).nodes]
        bare = nodes.scoped(ids[0])
        runner = nodes._desk.runner  # type: ignore[union-attr]  # noqa: SLF001 - it is entered

        async def ask(node_id: NodeId) -> Sourced[OnChain[Root]]:
            return await nodes.scoped(node_id).block_root("head", timeout=2.0)

        return await in_turns(
            {
                "bare block root": lambda: bare.block_root("head", timeout=2.0),
                "the strategy alone": lambda: first_success(
                    ask, ids, end=soon(nodes), delay=lambda _: 1.0, runner=runner
                ),
            },
            turns,
        )


async def together(served: Nodes, turns: int) -> Rounds:
    """Ask three nodes for attestation data, here and in the published way."""
    async with ready(served) as nodes, Peers(served.urls()) as peers:
        return await in_turns(
            {
                "two of three": lambda: nodes.attestation_data_by_quorum(slot_now(nodes), deadline=soon(nodes)),
                "theirs: two of three": lambda: peers.quorum(slot_now(nodes)),
                "three of three": lambda: nodes.attestation_data_by_quorum(
                    slot_now(nodes), threshold=3, deadline=soon(nodes)
                ),
                "theirs: three of three": lambda: peers.quorum(slot_now(nodes), 3),
                "hedge": lambda: nodes.attestation_data(slot_now(nodes), deadline=soon(nodes)),
                "theirs: first of three": lambda: peers.first(slot_now(nodes)),
                "theirs: one node": lambda: peers.data_of(0, slot_now(nodes)),
            },
            turns,
        )


async def broadcasts(served: Nodes, turns: int) -> Rounds:
    """Send attestations to three nodes, here and in the published way."""
    async with ready(served) as nodes, Peers(served.urls()) as peers:
        json = Encodings(json=ATTESTATION.json)
        body = ATTESTATION.json or b""

        async def settled(items: list[Encodings]) -> None:
            result = await nodes.publish_attestations(items, "electra", deadline=soon(nodes))
            await result.settled()

        async def accepted(items: list[Encodings]) -> float:
            begun = time.perf_counter()
            result = await nodes.publish_attestations(items, "electra", deadline=soon(nodes))
            taken = time.perf_counter() - begun
            # Who has not answered yet is no part of the next call.
            await result.settled()
            return taken

        ways: dict[str, Call] = {}
        for count in (1, 64):
            ways |= {
                f"{count}: accepted": lambda count=count: accepted([json] * count),  # type: ignore[misc]
                f"{count}: settled": lambda count=count: settled([json] * count),  # type: ignore[misc]
                f"theirs: {count}": lambda count=count: peers.publish([body] * count),  # type: ignore[misc]
            }
        ways["64, as SSZ: settled"] = lambda: settled([ATTESTATION] * 64)
        return await in_turns(ways, turns)
