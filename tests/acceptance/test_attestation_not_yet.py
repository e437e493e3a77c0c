"""While all nodes say "not yet" a request of a duty goes round again until its end (Q4)."""

from functools import partial

import anyio
import pytest

from tests.acceptance.duties_world import DATA, HEAD_ROOT, held
from vc_fallback.node.failures import NotFound
from vc_fallback.routing.outcomes import AllNodesFailed, DeadlineExceeded
from vc_fallback.testing import SimulatedDevnet, simulated_devnet

pytestmark = pytest.mark.anyio

SYNCING = '{"code":503,"message":"Beacon node is currently syncing and not serving requests"}'


def begin(net: SimulatedDevnet, what: str) -> None:
    for node in net:
        if what == "optimistic":
            node.state.optimistic = True
        else:
            for path in (DATA, HEAD_ROOT):
                node.answer(path, 503, SYNCING)


def heal(net: SimulatedDevnet) -> None:
    for node in net:
        node.state.optimistic = False
        node.heal()


@pytest.mark.parametrize("call", ["attestation_data", "sync_message_root"])
@pytest.mark.parametrize("what", ["optimistic", "syncing"])
async def test_all_are_asked_again_until_one_is_able(what: str, call: str) -> None:
    """Q4: it is over half a second later, and the call has eight seconds."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        begin(net, what)
        async with anyio.create_task_group() as tasks:

            async def soon() -> None:
                await anyio.sleep(0.6)
                heal(net)

            tasks.start_soon(soon)
            began = anyio.current_time()
            await getattr(world.calls, call)(slot)
            assert 0.6 <= anyio.current_time() - began <= 1.2


@pytest.mark.parametrize("call", ["attestation_data", "sync_message_root"])
async def test_it_ends_with_the_time_and_says_why(call: str) -> None:
    """Q4: a round each 1/24 slot, and no health is lost by asking again."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        begin(net, "syncing")
        began = anyio.current_time()
        before = sum(world.asked(DATA).values()) + sum(world.asked(HEAD_ROOT).values())
        with pytest.raises((AllNodesFailed, DeadlineExceeded), match=r"bn.: 503 .*syncing.*bn.: 503 .*syncing"):
            await getattr(world.calls, call)(slot, deadline=began + 4)
        assert anyio.current_time() == pytest.approx(began + 4, abs=0.01)
        count = sum(world.asked(DATA).values()) + sum(world.asked(HEAD_ROOT).values()) - before
        assert 2 * 7 <= count <= 2 * 12
        assert all(world.health(node).state == "healthy" for node in net)


async def test_a_time_that_a_node_names_is_waited_for() -> None:
    """Q4, Q11: not asked before, and not at all where that is after the end."""
    async with simulated_devnet(1) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        net[0].answer(DATA, 503, SYNCING, headers={"Retry-After": "3"})
        began, before = anyio.current_time(), net[0].request_counts[DATA]
        with pytest.raises(AllNodesFailed, match="503"):
            await world.calls.attestation_data(slot, deadline=began + 2)
        assert (anyio.current_time(), net[0].request_counts[DATA]) == (began, before + 1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(world.calls.attestation_data, slot))
            await anyio.sleep(1)
            heal(net)
        assert anyio.current_time() == pytest.approx(began + 3, abs=0.1)
        assert net[0].request_counts[DATA] == before + 3


@pytest.mark.parametrize("status", [404, 400, 401, 500])
async def test_what_will_be_the_same_ends_at_once(status: int) -> None:
    """Q3: nothing is waited for."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        for node in net:
            node.answer(DATA, status)
        began = anyio.current_time()
        with pytest.raises(NotFound if status == 404 else AllNodesFailed):
            await world.calls.attestation_data(slot)
        assert anyio.current_time() == pytest.approx(began, abs=0.01)
        heal(net)
        if status == 404:
            # One word of a proxy takes no node from its validators (Q13).
            await world.calls.attestation_data(slot)


async def test_who_says_no_for_good_is_not_asked_again() -> None:
    """Q4: only who says "not yet"."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        net[0].answer(DATA, 400)
        net[1].answer(DATA, 503, SYNCING)
        before = world.asked(DATA).get("bn1", 0)
        with pytest.raises((AllNodesFailed, DeadlineExceeded), match="bn1: 400"):
            await world.calls.attestation_data(slot, deadline=anyio.current_time() + 2)
        assert world.asked(DATA)["bn1"] == before + 1
        assert world.asked(DATA)["bn2"] >= 3
