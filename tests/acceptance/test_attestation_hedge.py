"""When the next node is asked as well for attestation data, and how often (Q2, Q4; scenarios 44, 46b, 9; case 27)."""

from collections import Counter
from itertools import pairwise
from typing import Any

import anyio
import pytest

from tests.acceptance.duties_world import DATA, Held, held, on
from vc_fallback.base.types import Slot
from vc_fallback.routing.outcomes import AllNodesFailed, RequestFailed
from vc_fallback.testing import Delay, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

FLOOR = 0.05
NEXT = 0.5
"""1/24 of a slot."""


def announce_first(world: Held, node: SimulatedNode) -> None:
    """Let a node have all blocks a moment before the others."""
    for other in world.nodes.values():
        other.state.head_delay = 0.0 if other is node else 0.01


async def timed(world: Held, slot: int, index: int = 0) -> tuple[str, Any]:
    began = anyio.current_time()
    given = await world.calls.attestation_data(Slot(slot), index)
    return given.node_id, anyio.current_time() - began


async def test_a_silent_node_costs_the_hedge_delay_and_the_time_of_the_next() -> None:
    """Scenario 44, case 27: nothing is known of how long it takes, so a 24th of a slot."""
    async with simulated_devnet(3) as net, held(net) as world:
        announce_first(world, net[0])
        await world.settled()
        net[0].hang(DATA)
        net[1].inject(DATA, Delay(0.05))
        slot = await world.due(130)
        assert await timed(world, slot) == ("bn2", pytest.approx(NEXT + 0.05))
        assert world.asked(DATA) == {"bn1": 1, "bn2": 1}


@pytest.mark.parametrize("down", ["refused", "dropped", "frozen"])
async def test_a_primary_that_is_known_to_be_away_costs_nothing(down: str) -> None:
    """Case 27, rule: known to be offline is tried last; in the slot in which it goes it costs the hedge delay at most,
    and not its time-out."""
    async with simulated_devnet(2) as net, held(net) as world:
        announce_first(world, net[0])
        await world.settled()
        await world.until(130.2)
        if down == "refused":
            await net[0].kill()
        elif down == "dropped":
            net[0].vanish()
            net[0].freeze()
        else:
            net[0].freeze()
        for number in range(130, 134):
            slot = await world.due(number)
            node, seconds = await timed(world, slot)
            assert node == "bn2"
            assert seconds <= (NEXT if number < 132 else 0.0) + 1e-6, number
        net[0].thaw()


async def test_the_delay_is_what_nine_of_ten_answers_of_that_node_stay_within() -> None:
    """Q2: of its own, between the floor and 1/24 of a slot."""
    for took, delay in ((0.0, FLOOR), (0.2, 0.2), (0.9, NEXT)):
        async with simulated_devnet(2) as net, held(net) as world:
            announce_first(world, net[0])
            await world.settled()
            net[0].inject(DATA, Delay(took))
            net[1].inject(DATA, Delay(5.0))
            for number in range(130, 134):
                assert (await timed(world, await world.due(number)))[0] == "bn1"
            net[0].hang(DATA)
            net[1].answer(DATA, 404, times=0)
            net[1].inject(DATA, Delay(0.01))
            slot = await world.due(134)
            assert await timed(world, slot) == ("bn2", pytest.approx(delay + 0.01))


async def test_a_pause_before_it_is_asked_again_is_not_the_nodes_time() -> None:
    """Q2, Q8: data that is a moment old in every slot makes no node slow."""
    async with simulated_devnet(2) as net, held(net) as world:
        announce_first(world, net[0])
        await world.settled()
        net[1].inject(DATA, Delay(5.0))
        for number in range(130, 136):
            slot = await world.due(number)
            net[0].override(DATA, **on(world.block(number - 1)))
            async with anyio.create_task_group() as tasks:

                async def catch_up() -> None:
                    await anyio.sleep(0.02)
                    net[0].override(DATA)

                tasks.start_soon(catch_up)
                assert await timed(world, slot) == ("bn1", pytest.approx(FLOOR))
        desk = world.calls._desk
        assert desk is not None
        assert (desk.latency(world.id(net[0]), "attestation data") or 0.0) < 0.01


async def test_at_an_epoch_change_every_node_may_need_a_third_of_a_slot() -> None:
    """Scenario 46b: the call answers before its end, and nobody is asked more than once."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        for node in net:
            node.inject(DATA, Delay(4.0))
        slot = await world.due(160)
        _, seconds = await timed(world, slot)
        assert seconds == pytest.approx(4.0)
        assert max(world.asked(DATA).values()) == 1


async def test_at_an_epoch_change_old_data_is_taken_in_time() -> None:
    """Scenario 46b with case 50: each answers after a third of a slot, and is a block behind; the second question is
    not waited for to the end of the slot."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        for node in net:
            node.inject(DATA, Delay(4.0))
            node.override(DATA, **on(world.block(158)))
        slot = await world.due(160)
        began = anyio.current_time()
        given = await world.calls.attestation_data(slot)
        assert given.stale
        assert anyio.current_time() - began == pytest.approx(4.0 + FLOOR + NEXT)


async def test_many_committees_at_once_ask_no_node_more_than_once_each() -> None:
    """Q2: the load is bounded by the number of nodes, whatever they do; sound nodes are not asked in pairs."""
    async with simulated_devnet(3) as net, held(net) as world:
        announce_first(world, net[0])
        await world.settled()
        for number in range(130, 133):
            await timed(world, await world.due(number))
        before = world.asked(DATA)
        assert before == {"bn1": 3}

        async def all_at_once(slot: int) -> Counter[str]:
            answered: Counter[str] = Counter()

            async def one(index: int) -> None:
                answered[(await timed(world, slot, index))[0]] += 1

            async with anyio.create_task_group() as tasks:
                for index in range(32):
                    tasks.start_soon(one, index)
            return answered

        assert await all_at_once(await world.due(133)) == {"bn1": 32}
        assert world.asked(DATA) == {"bn1": 35}
        # The first is silent from now on: each call goes on to the second, and no further.
        net[0].hang(DATA)
        assert await all_at_once(await world.due(134)) == {"bn2": 32}
        assert world.asked(DATA) == {"bn1": 67, "bn2": 32}
        # All are, for a second: each is asked once for each committee.
        for node in net:
            node.heal()
            node.inject(DATA, Delay(1.0))
        await world.until(136.9)
        before = world.asked(DATA)
        assert sum((await all_at_once(await world.due(137))).values()) == 32
        asked = world.asked(DATA)
        assert all(count - before.get(name, 0) <= 33 for name, count in asked.items())


async def test_while_all_primaries_are_away_a_fallback_serves_and_then_hands_back() -> None:
    """Scenario 9, N9: at once; and back after their recovery checks, with no call late or lost."""
    async with simulated_devnet(3) as net, held(net, fallbacks=[net[2]]) as world:
        await world.settled()
        duties: list[str] = []
        for number in range(130, 146):
            if number == 133:
                for node in (net[0], net[1]):
                    await node.kill()
            if number == 136:
                for node in (net[0], net[1]):
                    node.restart()
            slot = await world.due(number)
            began = anyio.current_time()
            given = await world.calls.attestation_data(slot)
            assert anyio.current_time() - began < NEXT + FLOOR
            assert (given.value.beacon_block_root, given.stale) == (world.root(number), "")
            assert (given.node_id == "bn3") or number not in (133, 134, 135)
            found = await world.calls.proposer_duties(world.chain.identity.epoch_of(slot))
            duties.append("fallback" if found.node_id == "bn3" else "primary")
        assert duties[:3] == ["primary"] * 3
        assert duties[3:6] == ["fallback"] * 3
        assert duties[-4:] == ["primary"] * 4
        # Once there and once back.
        assert sum(one != other for one, other in pairwise(duties)) == 2


async def test_a_node_that_has_nothing_yet_does_not_end_the_race() -> None:
    """Q4: "not found" and syncing of the fast ones, then the hit of the slow one."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        net[0].answer(DATA, 404, '{"code":404,"message":"no block"}')
        net[1].answer(DATA, 503, '{"code":503,"message":"Beacon node is currently syncing"}')
        net[2].inject(DATA, Delay(2.0))
        slot = await world.due(130)
        assert await timed(world, slot) == ("bn3", pytest.approx(2.0))
        net[2].answer(DATA, 503)
        with pytest.raises(AllNodesFailed):
            await world.calls.attestation_data(slot)


async def test_data_of_a_slot_far_ahead_is_not_waited_for_until_then() -> None:
    """Rule 6: every wait has an end, whatever the caller asks for and nodes do: that of the next slot."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        for node in net:
            node.hang(DATA)
        with pytest.raises(RequestFailed):
            await world.calls.attestation_data(Slot(10**9))
        assert anyio.current_time() == pytest.approx(world.slots.start_of(Slot(131)), abs=0.002)
