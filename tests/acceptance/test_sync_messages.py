"""What members of sync committees and of payload timeliness committees sign (Q2, Q4, Q8; case 44)."""

import json

import anyio
import pytest

from tests.acceptance.duties_world import HEAD_ROOT, held
from vc_fallback.base.types import Slot
from vc_fallback.node.failures import NotFound
from vc_fallback.routing.outcomes import AllNodesFailed
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio

PAYLOAD = "/eth/v1/validator/payload_attestation_data"


async def test_the_root_comes_from_the_node_that_announced_the_head() -> None:
    """Q8, case 44: with its provenance, which messages and contributions follow."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        net[0].state.head_delay = net[1].state.head_delay = 2.0
        waited = await world.calls.heads.wait_for_slot(Slot(130), world.slots.start_of(Slot(131)))
        root = await world.calls.sync_message_root(Slot(130), head=waited)
        assert (root.node_id, root.value, root.stale) == ("bn3", world.root(130), "")
        assert world.asked(HEAD_ROOT) == {"bn3": 1}


async def test_an_older_root_is_asked_for_once_more_then_elsewhere_then_taken() -> None:
    """Q8: as for attestation data."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        slot = Slot(130)
        net[1].state.head_delay = 0.01
        await world.due(slot)
        net[0].override(HEAD_ROOT, root="0x" + world.root(129).hex())
        began = anyio.current_time()
        root = await world.calls.sync_message_root(slot)
        assert (root.node_id, root.value, root.stale) == ("bn2", world.root(130), "")
        assert anyio.current_time() - began == pytest.approx(0.05)
        net[1].hang(HEAD_ROOT)
        began = anyio.current_time()
        root = await world.calls.sync_message_root(slot)
        assert (root.node_id, root.value) == ("bn1", world.root(129))
        assert root.stale
        assert anyio.current_time() - began == pytest.approx(0.55)


def said(root: bytes, *, optimistic: bool) -> str:
    """Return the answer with the root of the head."""
    return json.dumps({"data": {"root": "0x" + root.hex()}, "execution_optimistic": optimistic, "finalized": False})


async def test_an_optimistic_head_is_never_signed() -> None:
    """Q4, lighthouse#3612: neither by what the answer says, nor by what the node says otherwise."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        net[0].state.optimistic = True
        for number in (130, 131):
            slot = await world.due(number)
            root = await world.calls.sync_message_root(slot)
            assert (root.node_id, root.value) == ("bn2", world.root(number))
            # Its answer says otherwise; and then it is its answer alone that says so.
            net[0].answer(HEAD_ROOT, 200, said(world.root(number + 1), optimistic=False))
        net[0].heal()
        slot = await world.due(133)
        net[0].answer(HEAD_ROOT, 200, said(world.root(133), optimistic=True))
        assert (await world.calls.sync_message_root(slot)).node_id == "bn2"
        await net[1].kill()
        with pytest.raises(AllNodesFailed, match="optimistic"):
            await world.calls.sync_message_root(slot)


@pytest.mark.parametrize("missed", [False, True])
async def test_of_a_node_that_is_a_slot_further_the_root_of_the_slot_is_taken(missed: bool) -> None:
    """Q8: a message of slot 131 is about the head at slot 131; a block of 132 came before it was made up."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        if missed:
            world.chain.miss(131)
        await world.until(132.2)
        deadline = anyio.current_time() + 2
        waited = await world.calls.heads.wait_for_slot(Slot(132), deadline)
        for head in (None, waited):
            root = await world.calls.sync_message_root(Slot(131), head=head, deadline=deadline)
            assert (root.value, root.stale) == (world.root(130 if missed else 131), "")


async def test_of_a_slot_long_ago_there_is_no_head() -> None:
    """It is looked for in the slots that may have been missed, and no further."""
    async with simulated_devnet(1) as net, held(net) as world:
        await world.settled()
        world.chain.miss(*range(131, 180))
        await world.until(180.5)
        net[0].answer("/eth/v1/beacon/blocks/*/root", 404)
        net[0].inject(HEAD_ROOT, Delay(0.0))
        with pytest.raises(NotFound):
            await world.calls.sync_message_root(Slot(179), deadline=anyio.current_time() + 5)
        assert len([r for r in net[0].requests if r.path.endswith("/root") and r.path != HEAD_ROOT]) <= 50


async def test_a_payload_attestation_is_made_as_soon_as_some_node_has_the_block() -> None:
    """Q2, Q4: that a node has seen no block never wins; where none has, `None` says that nobody is to vote."""
    async with simulated_devnet(2, gloas_epoch=0) as net, held(net) as world:
        await world.settled()
        net[0].state.head_delay = 20.0
        slot = Slot(131)
        await anyio.sleep_until(world.slots.payload_attestation_due(slot))
        data = await world.calls.payload_attestation_data(slot)
        assert data.value is not None
        assert (data.node_id, data.value.beacon_block_root) == ("bn2", world.root(131))
        assert data.value.payload_present
        world.chain.miss(133)
        slot = Slot(133)
        await anyio.sleep_until(world.slots.payload_attestation_due(slot))
        began = anyio.current_time()
        assert (await world.calls.payload_attestation_data(slot)).value is None
        assert anyio.current_time() == began


async def test_a_silent_node_costs_a_payload_attestation_the_hedge_delay() -> None:
    """Q2: 1/24 of a slot, of the quarter that is left."""
    async with simulated_devnet(2, gloas_epoch=0) as net, held(net) as world:
        await world.settled()
        for path in (PAYLOAD, HEAD_ROOT):
            net[0].hang(path)
        net[1].state.head_delay = 0.01
        slot = Slot(131)
        await anyio.sleep_until(world.slots.payload_attestation_due(slot))
        for call in (world.calls.payload_attestation_data, world.calls.sync_message_root):
            began = anyio.current_time()
            assert (await call(slot)).node_id == "bn2"
            assert anyio.current_time() - began == pytest.approx(0.5)
