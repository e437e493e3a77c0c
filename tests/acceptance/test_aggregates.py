"""Aggregates and contributions: the most bits, ties to the node whose data was signed (Q2, Q4, Q7, Q9; case 44)."""

import json
from typing import Any

import anyio
import pytest

from tests.acceptance.duties_world import Held, held, node_id
from vc_fallback.base.types import Root, Slot
from vc_fallback.node.failures import NotFound
from vc_fallback.routing.outcomes import AllNodesFailed, RequestFailed
from vc_fallback.testing import Answer, Delay, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

AGGREGATE = "/eth/v2/validator/aggregate_attestation"
CONTRIBUTION = "/eth/v1/validator/sync_committee_contribution"
ROOT = Root(b"r" * 32)
SOFT = 1.0
"""1/12 of a slot."""

PATHS = (AGGREGATE, CONTRIBUTION)


def body(path: str, slot: int, bits: int) -> str:
    """Return an answer with so many bits."""
    if path == AGGREGATE:
        # The highest bit ends the list.
        data: dict[str, Any] = {"aggregation_bits": "0x" + ((1 << 16) + (1 << bits) - 1).to_bytes(3, "little").hex()}
        return json.dumps({"version": "fulu", "data": data})
    data = {
        "slot": str(slot),
        "beacon_block_root": "0x" + ROOT.hex(),
        "subcommittee_index": "1",
        "aggregation_bits": "0x" + ((1 << bits) - 1).to_bytes(16, "little").hex(),
        "signature": "0x" + "ab" * 96,
    }
    return json.dumps({"data": data})


def has(node: SimulatedNode, path: str, bits: int, *, slot: int = 130) -> None:
    node.inject(path, Answer(200, body(path, slot, bits), {"Eth-Consensus-Version": "fulu"}))


def has_not(node: SimulatedNode, path: str) -> None:
    node.answer(path, 404, '{"code":404,"message":"no aggregate available"}')


async def ask(world: Held, path: str, source: SimulatedNode | None = None, **more: Any) -> tuple[str, Any]:
    """Ask for one at slot 130; return who gave it, and after how many seconds."""
    began = anyio.current_time()
    named = None if source is None else node_id(source)
    found: Any
    if path == AGGREGATE:
        found = await world.calls.aggregate_attestation(Slot(130), ROOT, 0, source=named, **more)
    else:
        found = await world.calls.sync_committee_contribution(Slot(130), 1, ROOT, source=named, **more)
    return found.node_id, anyio.current_time() - began


@pytest.mark.parametrize("path", PATHS)
async def test_the_most_bits_win_and_ties_go_to_the_node_whose_data_was_signed(path: str) -> None:
    """Q7: of all primaries; one more bit is enough, equals are left where they are."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        await world.until(130.7)
        for bits, source, winner in (
            ((3, 5, 4), None, "bn2"),
            ((5, 5, 5), None, "bn1"),
            ((5, 5, 5), net[2], "bn3"),
            ((5, 5, 4), net[2], "bn1"),
            ((3, 4, 4), net[1], "bn2"),
            ((3, 4, 4), net[2], "bn3"),
        ):
            for node, count in zip(net, bits, strict=True):
                has(node, path, count)
            assert await ask(world, path, source) == (winner, 0.0), (bits, winner)


@pytest.mark.parametrize("path", PATHS)
async def test_what_has_come_by_a_twelfth_of_a_slot_is_compared_then_the_first_is_taken(path: str) -> None:
    """Q2: a node that is silent does not hold it back; where nothing has come the first answer counts."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        await world.until(130.7)
        has(net[0], path, 3)
        has(net[1], path, 5)
        net[2].hang(path)
        assert await ask(world, path) == ("bn2", pytest.approx(SOFT))
        for node in net:
            node.freeze()
        async with anyio.create_task_group() as tasks:

            async def wake() -> None:
                await anyio.sleep(1.5 * SOFT)
                net[0].thaw()
                await anyio.sleep(0.1)
                net[1].thaw()

            tasks.start_soon(wake)
            assert await ask(world, path) == ("bn1", pytest.approx(1.5 * SOFT))
        net[2].thaw()


@pytest.mark.parametrize("path", PATHS)
async def test_fallbacks_are_asked_where_no_primary_has_it(path: str) -> None:
    """Q7, scenario 40: at once where all primaries say so, by 1/12 of a slot where they are silent."""
    async with simulated_devnet(3) as net, held(net, fallbacks=[net[2]]) as world:
        await world.settled()
        await world.until(130.7)
        has(net[0], path, 2)
        has(net[1], path, 2)
        has(net[2], path, 9)
        assert await ask(world, path) == ("bn1", 0.0)
        assert path not in [request.path for request in net[2].requests]
        has_not(net[0], path)
        has_not(net[1], path)
        assert await ask(world, path) == ("bn3", 0.0)
        net[1].hang(path)
        assert await ask(world, path) == ("bn3", pytest.approx(SOFT))
        net[1].heal()
        has_not(net[1], path)
        has_not(net[2], path)
        with pytest.raises(NotFound):
            await ask(world, path)


@pytest.mark.parametrize("path", PATHS)
async def test_the_node_whose_data_was_signed_is_asked_of_whichever_tier(path: str) -> None:
    """Q9, case 44: data came from a fallback, as the primaries were away; they are back, and do not know that block."""
    async with simulated_devnet(3) as net, held(net, fallbacks=[net[2]]) as world:
        await world.settled()
        await world.until(130.7)
        has(net[0], path, 2)
        net[1].answer(path, 400, '{"code":400,"message":"Block not in forkChoice"}')
        has(net[2], path, 2)
        assert await ask(world, path, net[2]) == ("bn3", 0.0)
        has(net[0], path, 3)
        assert await ask(world, path, net[2]) == ("bn1", 0.0)
        # Where it has gone the others serve, and nobody waits for it.
        await net[2].kill()
        await world.until(130.95)
        assert (await ask(world, path, net[2]))[0] == "bn1"


@pytest.mark.parametrize("path", PATHS)
async def test_an_aggregate_of_nobody_never_wins(path: str) -> None:
    """Q4: empty; where all are, there is none."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        await world.until(130.7)
        has(net[0], path, 0)
        net[1].inject(path, Delay(0.4))
        has(net[1], path, 1)
        assert (await ask(world, path))[0] == "bn2"
        has(net[1], path, 0)
        with pytest.raises(AllNodesFailed, match="empty"):
            await ask(world, path)


async def test_an_aggregate_that_cannot_be_read_loses_to_all_that_can() -> None:
    """Q2a, Q7: it is taken where there is no other; what is in it is not ours to judge."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        await world.until(130.7)
        net[0].inject(
            AGGREGATE,
            Answer(200, '{"version":"fulu","data":{"aggregation_bits":"x"}}', {"Eth-Consensus-Version": "fulu"}),
        )
        has(net[1], AGGREGATE, 1)
        assert (await ask(world, AGGREGATE, net[0]))[0] == "bn2"
        has_not(net[1], AGGREGATE)
        assert (await ask(world, AGGREGATE))[0] == "bn1"


@pytest.mark.parametrize("path", PATHS)
async def test_the_end_of_the_slot_is_the_end(path: str) -> None:
    """Q2."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        await world.until(130.7)
        for node in net:
            node.hang(path)
        with pytest.raises(RequestFailed):
            await ask(world, path)
        assert anyio.current_time() == pytest.approx(world.slots.start_of(Slot(131)), abs=0.002)
