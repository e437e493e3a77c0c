"""Who is no witness of "not live" though it answers: it is on another branch, or came back as another one (Q14a)."""

import anyio
import pytest

from tests.acceptance.duties_world import SYNCING, Held, held
from vc_fallback.base.types import Epoch, NodeId
from vc_fallback.routing.calls.liveness import LivenessUnknown
from vc_fallback.testing import SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

EPOCH = Epoch(17)
"""The first epoch that is watched from its start on; epochs have eight slots."""

FIRST, NEXT = 17 * 8, 18 * 8


async def witnesses(world: Held) -> tuple[NodeId, ...]:
    """Return on whose word "not live" rests; nobody where nobody knows."""
    try:
        return (await world.calls.liveness(EPOCH, [1])).witnesses
    except LivenessUnknown:
        return ()


async def test_a_node_on_the_branch_of_a_minority_is_no_witness() -> None:
    """Q14a, N3: it answers, and is synced by its own word, but it saw nobody of the chain that we are on."""
    async with simulated_devnet(3, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        world.chain.branch("minority", above=131)
        await world.until(131.5)
        net[2].switch("minority")
        await world.until(NEXT + 1.5)
        assert await witnesses(world) == ("bn1", "bn2")


@pytest.mark.parametrize("again", [None, FIRST + 4.5], ids=["all the time", "for four slots"])
@pytest.mark.parametrize("in_turn", [False, True], ids=["blocks in each slot", "blocks in turn"])
async def test_of_two_nodes_that_differ_neither_is_a_witness(in_turn: bool, again: float | None) -> None:
    """Q14a: nobody knows which of them is on the wrong branch."""
    async with simulated_devnet(2, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        world.chain.branch("other", above=131)
        if in_turn:
            # So it is in a fork: each slot has one proposer, who builds on the branch that its node is on.
            world.chain.miss(*range(132, NEXT + 4, 2))
            world.chain.miss(*range(133, NEXT + 4, 2), branch="other")
        await world.until(131.5)
        net[1].switch("other")
        if again is not None:
            await world.until(again)
            net[1].switch("main")
        await world.until(NEXT + 1.5)
        assert await witnesses(world) == ()


async def test_a_branch_that_is_left_soon_is_no_break() -> None:
    """Q14a: a reorg of a slot or two is seen by nodes in their own turn; what they saw they have seen."""
    async with simulated_devnet(2, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        world.chain.branch("other", above=FIRST + 1)
        await world.until(FIRST + 1.5)
        net[1].switch("other")
        await world.until(FIRST + 3.5)
        net[1].switch("main")
        await world.until(NEXT + 1.5)
        assert await witnesses(world) == ("bn1", "bn2")


async def lose_power(node: SimulatedNode, seconds: float) -> None:
    """Take a machine away, whose connections nobody ends, and let it come back without its memory."""
    node.vanish()
    node.refuse()
    await anyio.sleep(seconds)
    node.state.pool.seen.clear()
    node.listen()


@pytest.mark.parametrize("seconds", [3.0, 15.0, 40.0])
async def test_a_node_that_lost_power_is_no_witness(seconds: float) -> None:
    """Q14a: its stream stands for us still, and its present answers are those of a node that has seen nobody."""
    async with simulated_devnet(2, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(NEXT + 0.5)
        net[0].state.pool.seen.setdefault(EPOCH, set()).add(1)
        assert (await world.calls.liveness(EPOCH, [1])).live == {1: True}
        await lose_power(net[0], seconds)
        for _ in range(12):
            await anyio.sleep(4)
            assert await witnesses(world) == ("bn2",)


async def test_a_node_that_comes_back_after_failed_checks_is_no_witness() -> None:
    """Q14a: nobody has heard it since on the stream that it had before."""
    async with simulated_devnet(1, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(NEXT + 0.5)
        await lose_power(net[0], 50)
        await anyio.sleep(1)
        assert world.health(net[0]).state == "unhealthy"
        assert await witnesses(world) == ()


@pytest.mark.parametrize("lapse", ["silent", "failed check"])
async def test_a_node_that_is_heard_on_the_same_stream_was_not_restarted(lapse: str) -> None:
    """Q14a: it was silent for a moment, or failed a check; after the next head what it saw before counts."""
    async with simulated_devnet(2, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(NEXT + 2.5)
        if lapse == "silent":
            net[0].hang(SYNCING)
        else:
            net[0].answer(SYNCING, 500)
        await world.until(NEXT + 3.04)
        assert await witnesses(world) == ("bn2",)
        net[0].heal()
        await world.until(NEXT + 4.5)
        assert await witnesses(world) == ("bn1", "bn2")
