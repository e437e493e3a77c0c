"""Reading the chain through many nodes (Q2, Q3; scenarios 10, 40, 42, 43, 44; cases 27, 51)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.duties_world import held
from vc_fallback.base.types import Root, Slot
from vc_fallback.node.failures import BadRequest, NotFound, RequestTimeout
from vc_fallback.routing.outcomes import AllNodesFailed, RequestFailed
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio

ROOTS = "/eth/v1/beacon/blocks/*/root"
NEXT = 1.5
"""1/8 of a slot."""

AGAIN = 0.05
NOT_FOUND = '{"code":404,"message":"NOT_FOUND: beacon block"}'


async def timed(call: Any) -> tuple[str, Any]:
    """Return who answered, and after how many seconds."""
    began = anyio.current_time()
    found = await call
    return found.node_id, anyio.current_time() - began


async def test_a_hit_of_a_fallback_wins_over_not_found_of_all_primaries() -> None:
    """Scenario 40: fast "not found", and a slow hit."""
    async with simulated_devnet(3) as net, held(net, fallbacks=[net[2]]) as world:
        await world.settled()
        net[0].answer(ROOTS, 404, NOT_FOUND)
        net[1].answer(ROOTS, 404, NOT_FOUND)
        net[2].inject(ROOTS, Delay(1.2))
        assert await timed(world.calls.block_root(Slot(100))) == ("bn3", pytest.approx(1.2))
        assert world.health(net[0]).state == world.health(net[1]).state == "healthy"


async def test_not_found_is_the_answer_where_all_say_so() -> None:
    """Scenario 42: a block above every head; after one round, and no node is the worse for it."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        began = anyio.current_time()
        with pytest.raises(NotFound):
            await world.calls.header(Slot(100_000))
        assert anyio.current_time() == began
        assert world.asked("/eth/v1/beacon/headers/100000") == {"bn1": 1, "bn2": 1, "bn3": 1}
        assert {world.health(node).suspect for node in net} == {""}
        # One that failed otherwise might have had it.
        await net[1].kill()
        with pytest.raises(AllNodesFailed):
            await world.calls.header(Slot(100_000))


async def test_a_bad_request_at_one_node_stops_no_read() -> None:
    """Q3: another may know better."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        net[0].answer(ROOTS, 400, '{"code":400,"message":"Invalid block ID"}')
        net[1].answer(ROOTS, 500, "x")
        assert await timed(world.calls.block_root(Slot(100))) == ("bn3", 0.0)
        net[2].answer(ROOTS, 400, '{"code":400,"message":"Invalid block ID"}')
        with pytest.raises(AllNodesFailed) as failed:
            await world.calls.block_root(Slot(100))
        assert isinstance(failed.value.errors[world.id(net[0])], BadRequest)


async def test_what_can_be_seen_to_be_wrong_raises_without_a_request() -> None:
    """Q3."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        before = [len(node.requests) for node in net]
        for call in (
            world.calls.header(Slot(-1)),
            world.calls.block_root(Root(b"short")),
            world.calls.validator("head", -7),
            world.calls.attestation_data(Slot(2**64)),
        ):
            with pytest.raises(ValueError):  # noqa: PT011 - each in its own words
                await call
        assert [len(node.requests) for node in net] == before


async def test_a_fallback_that_is_merely_ahead_takes_nothing_over() -> None:
    """Scenario 43: primaries serve, for duties, reads, and data to sign."""
    async with simulated_devnet(3) as net, held(net, fallbacks=[net[2]]) as world:
        await world.settled()
        for node in (net[0], net[1]):
            node.state.head_delay = 2.0
        for number in (130, 131):
            await world.until(number + 0.15)
            assert net[2].head.slot == number
            assert net[0].head.slot == number - 1
            slot = Slot(number)
            assert (await world.calls.block_root("head")).node_id == "bn1"
            assert (await world.calls.proposer_duties(world.chain.identity.epoch_of(slot))).node_id == "bn1"
            assert (await world.calls.attestation_data(slot)).node_id in ("bn1", "bn2")
            # What only the fallback has it is asked for, after them.
            assert (await world.calls.header(slot)).node_id == "bn3"
            assert world.asked(f"/eth/v1/beacon/headers/{slot}") == {"bn1": 1, "bn2": 1, "bn3": 1}
            await world.until(number + 0.4)
            # The primaries have it, too, by now.
            assert (await world.calls.attestation_data(slot)).node_id in ("bn1", "bn2")


async def test_data_newer_than_the_head_is_not_old() -> None:
    """Q8: the fallback's head is held back, its data is asked for all the same, as the primaries fail at it."""
    async with simulated_devnet(2) as net, held(net, fallbacks=[net[1]]) as world:
        await world.settled()
        net[0].state.head_delay = 2.0
        net[0].answer("/eth/v1/validator/attestation_data", 503)
        await world.until(130.15)
        began = anyio.current_time()
        data = await world.calls.attestation_data(Slot(130))
        assert (data.node_id, data.value.beacon_block_root, data.stale) == ("bn2", world.root(130), "")
        assert anyio.current_time() == began


async def test_a_fallback_whose_head_was_delivered_is_asked_for_data_until_a_primary_has_it() -> None:
    """Scenario 43, Q8: with the gate off its heads are delivered; it alone has the block, and then it has not."""
    heads = {"tier_gate": False}
    async with simulated_devnet(3) as net, held(net, fallbacks=[net[2]], heads=heads) as world:
        await world.settled()
        net[0].state.head_delay = 2.0
        net[1].state.head_delay = 1.0
        for at, node in ((130.15, "bn3"), (130.2, "bn2"), (130.4, "bn1")):
            await world.until(at)
            latest = world.calls.heads.latest.value
            assert latest is not None
            assert latest.node_id == "bn3"
            data = await world.calls.attestation_data(Slot(130))
            assert (data.node_id, data.value.beacon_block_root) == (node, world.root(130))
        assert world.asked("/eth/v1/validator/attestation_data") == {"bn1": 1, "bn2": 1, "bn3": 1}


async def test_a_primary_that_never_answers_costs_the_hedge_delay_and_the_seconds_time() -> None:
    """Scenario 44, case 27; where it is alone its own time-out comes before the end of the request, and is its own."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        net[0].hang(ROOTS)
        net[1].inject(ROOTS, Delay(0.2))
        assert await timed(world.calls.block_root(Slot(100))) == ("bn2", pytest.approx(NEXT + 0.2))
        net[1].hang(ROOTS)
        began = anyio.current_time()
        with pytest.raises(RequestFailed) as failed:
            await world.calls.block_root(Slot(100))
        assert anyio.current_time() - began == pytest.approx(6.0, abs=0.002)
        assert isinstance(failed.value.errors[world.id(net[0])], RequestTimeout)


async def test_a_stream_that_stalls_moves_no_request() -> None:
    """Scenario 10, rule 3: polls go on, the stream is frozen: subscribers move, requests stay."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        net[0].silence()
        await world.until(136.5)
        assert world.healthy(net[0]) is False
        assert world.health(net[0]).state == "healthy"
        assert world.calls.heads.stream_choice()[0] == "bn2"
        assert (await world.calls.block_root("head")).node_id == "bn1"
        assert (await world.calls.attester_duties(world.chain.identity.epoch_of(Slot(136)), [1])).node_id == "bn1"
        # Data to sign is asked of the node that announced the head, and is up to date.
        slot = await world.due(137)
        data = await world.calls.attestation_data(slot)
        assert (data.node_id, data.value.beacon_block_root, data.stale) == ("bn2", world.root(137), "")


@pytest.mark.parametrize("by", ["root", "slot"])
async def test_a_block_that_was_just_announced_is_asked_for_once_more(by: str) -> None:
    """Case 51: 404 at the node that has announced it; 50 ms later it has it. Nobody is the worse for it."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        net[0].state.head_delay = 0.3
        waited = await world.calls.heads.wait_for_slot(Slot(130), world.slots.start_of(Slot(131)))
        assert waited is not None
        assert waited.head.node_id == "bn2"
        named = waited.head.root if by == "root" else Slot(130)
        path = f"/eth/v1/beacon/headers/{'0x' + named.hex() if isinstance(named, bytes) else named}"
        net[1].answer(path, 404, NOT_FOUND, times=1)
        assert await timed(world.calls.header(named)) == ("bn2", pytest.approx(AGAIN))
        # By its root the node that announced it is asked first, as it alone is known to have it.
        assert world.asked(path) == {"bn2": 2}
        assert world.health(net[1]).state == "healthy"


async def test_a_block_that_is_still_not_there_is_found_elsewhere() -> None:
    """Case 51: then another node; and "not found" where that has not got it either."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        await world.until(130.1)
        root = world.root(130)
        path = "/eth/v1/beacon/headers/*"
        net[0].answer(path, 404, NOT_FOUND)
        assert await timed(world.calls.header(root)) == ("bn2", pytest.approx(AGAIN))
        net[1].answer(path, 404, NOT_FOUND)
        began = anyio.current_time()
        with pytest.raises(NotFound):
            await world.calls.header(root)
        assert anyio.current_time() - began == pytest.approx(2 * AGAIN)


async def test_a_block_of_a_while_ago_is_not_asked_for_again() -> None:
    """Case 51: a second after it was announced everyone has it who will; nor is there time at the very end."""
    async with simulated_devnet(1) as net, held(net) as world:
        await world.settled()
        await world.until(130.1)
        net[0].answer("/eth/v1/beacon/headers/*", 404, NOT_FOUND)
        deadline = anyio.current_time() + AGAIN / 2
        with pytest.raises(NotFound):
            await world.calls.header(world.root(130), deadline=deadline)
        assert anyio.current_time() < deadline
        await world.until(130.3)
        began = anyio.current_time()
        with pytest.raises(NotFound):
            await world.calls.header(world.root(130))
        assert anyio.current_time() == began


async def test_a_state_of_the_slot_that_was_just_announced() -> None:
    """Case 51: as a block."""
    async with simulated_devnet(1) as net, held(net) as world:
        await world.settled()
        await world.until(130.1)
        net[0].answer("/eth/v1/beacon/states/130/finality_checkpoints", 404, NOT_FOUND, times=1)
        assert await timed(world.calls.finality_checkpoints(Slot(130))) == ("bn1", pytest.approx(AGAIN))
