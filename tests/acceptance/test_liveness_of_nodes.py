"""Whether validators are live: one word that they are is enough, that they are not takes a witness (Q14a)."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.acceptance.duties_world import Held, held, moved
from vc_fallback.base.types import Epoch
from vc_fallback.node.failures import UnsupportedEndpoint
from vc_fallback.routing.calls.liveness import LivenessReport, LivenessUnknown
from vc_fallback.routing.outcomes import NoCandidates
from vc_fallback.testing import SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

LIVENESS = "/eth/v1/validator/liveness/*"
EPOCH = Epoch(17)
"""The first epoch that is watched from its start on; epochs have eight slots."""

FIRST, NEXT = 17 * 8, 18 * 8


def live(node: SimulatedNode, *indices: int, epoch: int = EPOCH) -> None:
    """Let a node have seen validators."""
    node.state.pool.seen.setdefault(epoch, set()).update(indices)


async def ask(world: Held, *indices: int, epoch: Epoch = EPOCH) -> LivenessReport:
    return await world.calls.liveness(epoch, indices)


async def nobody_knows(world: Held, *indices: int, epoch: Epoch = EPOCH) -> LivenessUnknown:
    with pytest.raises(LivenessUnknown) as raised:
        await ask(world, *indices, epoch=epoch)
    return raised.value


async def test_one_word_is_enough_for_live_and_a_witness_for_not_live() -> None:
    """Q14a: all are asked; of the epoch before, and of this one until now."""
    async with simulated_devnet(3, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(NEXT + 1.5)
        live(net[2], 1, 3)
        live(net[1], 3)
        report = await ask(world, 1, 2, 3, 2)
        assert report.live == {1: True, 2: False, 3: True}
        assert report.seen_by == {1: ("bn3",), 3: ("bn2", "bn3")}
        assert report.witnesses == ("bn1", "bn2", "bn3")
        assert (await ask(world, 1, epoch=Epoch(EPOCH + 1))).live == {1: False}
        assert (await ask(world)).live == {}


async def restart(node: SimulatedNode) -> None:
    """Restart a node: it is away for half a second, between two checks, and has forgotten whom it saw."""
    await node.kill()
    await anyio.sleep(0.5)
    node.state.pool.seen.clear()
    node.restart()


@pytest.mark.parametrize("at", [FIRST + 4.2, NEXT + 1.2], ids=["within the epoch", "after it"])
async def test_a_node_that_was_restarted_is_no_witness(at: float) -> None:
    """Q14a: within a second, which no check has noticed; also after the epoch, throughout which it was up: what it saw
    was in its memory, and believing it would start a second validator beside a living one."""
    async with simulated_devnet(1, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(FIRST + 0.5)
        live(net[0], 1)
        await world.until(at)
        await restart(net[0])
        await world.until(NEXT + 3.5)
        assert world.health(net[0]).state == "healthy"
        unknown = await nobody_knows(world, 1, 2)
        assert (unknown.live, unknown.unknown) == ((), (1, 2))
        assert "bn1: not up and synced all that time, restarted since, or not watched" in str(unknown)
        # What it sees from now on counts, and it is a witness for the first epoch that it has seen from its start.
        live(net[0], 1)
        assert (await ask(world, 1)).live == {1: True}
        await world.until(NEXT + 16.5)
        assert (await ask(world, 1, epoch=Epoch(EPOCH + 2))).live == {1: False}


async def test_the_word_of_another_stands_beside_a_node_that_was_restarted() -> None:
    """Q14a: "live" counts from anybody; "not live" from the witness alone."""
    async with simulated_devnet(2, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(FIRST + 0.5)
        live(net[0], 1)
        live(net[1], 2)
        await restart(net[0])
        await world.until(NEXT + 1.5)
        live(net[0], 3)
        report = await ask(world, 1, 2, 3)
        assert report.live == {1: False, 2: True, 3: True}
        assert report.witnesses == ("bn2",)


async def cut_off(node: SimulatedNode) -> None:
    node.cut_off()
    await anyio.sleep(60)
    node.rejoin()


async def late(node: SimulatedNode) -> None:
    """Be without peers for three slots, which might have been missed."""
    node.cut_off()
    await anyio.sleep(36)
    node.rejoin()


async def optimistic(node: SimulatedNode) -> None:
    node.state.optimistic = True
    await anyio.sleep(24)
    node.state.optimistic = False


async def frozen(node: SimulatedNode) -> None:
    node.freeze()
    await anyio.sleep(30)
    node.thaw()


async def drop_streams(node: SimulatedNode) -> None:
    node.end_streams()


@pytest.mark.parametrize("lapse", [cut_off, late, optimistic, frozen, drop_streams, restart])
async def test_a_node_that_was_not_there_all_the_time_is_no_witness(
    lapse: Callable[[SimulatedNode], Awaitable[None]],
) -> None:
    """Q14a: it was behind, optimistic or stopped, or its stream ended, for whatever reason; it is well again since."""
    async with simulated_devnet(1, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(FIRST + 1.5)
        await lapse(net[0])
        await world.until(NEXT + 7.5)
        assert world.calls.heads.health(world.id(net[0])).lag == 0
        assert (await nobody_knows(world, 1)).unknown == (1,)


async def test_a_node_that_is_optimistic_all_the_time_is_no_witness() -> None:
    """Q14a: from before the epoch on, so that nothing changes within it."""
    async with simulated_devnet(1, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(FIRST - 2.5)
        net[0].state.optimistic = True
        await world.until(NEXT + 1.5)
        assert (await nobody_knows(world, 1)).unknown == (1,)


@pytest.mark.parametrize(("missed", "trusted"), [(3, True), (5, False)])
async def test_a_chain_without_blocks_looks_like_a_node_without_peers(missed: int, trusted: bool) -> None:
    """Q14a: three slots may be missed in a row; after five nobody can tell whether the node has seen anybody."""
    async with simulated_devnet(1, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        world.chain.miss(*range(FIRST + 2, FIRST + 2 + missed))
        await world.until(NEXT + 1.5)
        if trusted:
            assert (await ask(world, 1)).witnesses == ("bn1",)
        else:
            await nobody_knows(world, 1)


@pytest.mark.parametrize("lapse", [cut_off, optimistic])
async def test_what_a_node_saw_before_it_fell_behind_it_has_seen(
    lapse: Callable[[SimulatedNode], Awaitable[None]],
) -> None:
    """Q14a: it was up and synced throughout that epoch, and is the same."""
    async with simulated_devnet(1, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(NEXT + 0.5)
        await lapse(net[0])
        await world.until(NEXT + 7.5)
        assert (await ask(world, 1)).witnesses == ("bn1",)


async def test_before_a_whole_epoch_was_watched_nobody_is_a_witness() -> None:
    """Q14a: what a node was before we looked is not known."""
    async with simulated_devnet(2, slots_per_epoch=8, start_slot=FIRST + 1) as net, held(net) as world:
        await world.until(NEXT + 1.5)
        live(net[0], 2)
        unknown = await nobody_knows(world, 1, 2)
        assert (unknown.live, unknown.unknown) == ((2,), (1,))
        # Where all are live that is known.
        assert (await ask(world, 2)).live == {2: True}


async def test_a_node_without_a_stream_is_no_witness() -> None:
    """Q14a: nobody would see it restart."""
    roles = {"bn1": ["duties", "attestation"]}
    async with simulated_devnet(1, slots_per_epoch=8, start_slot=130) as net, held(net, roles=roles) as world:
        await world.until(NEXT + 1.5)
        assert (await nobody_knows(world, 1)).unknown == (1,)
        live(net[0], 1)
        assert (await ask(world, 1)).seen_by == {1: ("bn1",)}


async def test_a_node_whose_stream_hangs_is_no_witness_until_it_is_heard_again() -> None:
    """Q14a: the machine may have been restarted, and nobody closed the connection."""
    async with simulated_devnet(2, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(NEXT + 0.5)
        net[0].silence()
        await world.until(NEXT + 4.5)
        assert (await ask(world, 1)).witnesses == ("bn2",)


async def test_a_node_that_left_the_list_or_moved_begins_anew() -> None:
    """Q14a, G2: under the same name it may be another one; who only changed tier keeps what he has."""
    async with simulated_devnet(3, slots_per_epoch=8, start_slot=130) as net, held(net, listed=net.nodes[:2]) as world:
        await world.until(NEXT + 1.5)
        world.calls.update_candidates([moved(net[2], "bn1"), moved(net[1], "bn2", priority=7)])
        await world.until(NEXT + 3.5)
        assert (await ask(world, 1)).witnesses == ("bn2",)


async def test_of_a_validator_that_a_witness_leaves_out_it_says_nothing() -> None:
    """Q14a: a node may not know it."""
    async with simulated_devnet(2, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(NEXT + 1.5)
        for node in net:
            node.answer(LIVENESS, 200, '{"data":[{"index":"1","is_live":false}]}')
        unknown = await nobody_knows(world, 1, 2)
        assert (unknown.live, unknown.unknown) == ((), (2,))
        assert "says nothing of them" in str(unknown)
        assert (await ask(world, 1)).live == {1: False}


async def test_nodes_that_do_not_do_it_are_no_witnesses() -> None:
    """Q13, Q14a: some have it switched off; without any that does it raises."""
    async with simulated_devnet(2, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(NEXT + 1.5)
        net[0].answer(LIVENESS, 405)
        report = await ask(world, 1)
        assert report.witnesses == ("bn2",)
        asked = net[0].request_counts[f"/eth/v1/validator/liveness/{EPOCH}"]
        await ask(world, 1)
        assert net[0].request_counts[f"/eth/v1/validator/liveness/{EPOCH}"] == asked
        net[1].answer(LIVENESS, 500)
        unknown = await nobody_knows(world, 1)
        assert isinstance(unknown.errors[world.id(net[0])], UnsupportedEndpoint)


async def test_a_silent_node_is_waited_for_and_no_longer() -> None:
    """Q2, Q14a: its word may be the one that counts: half a slot."""
    async with simulated_devnet(3, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(NEXT + 1.5)
        net[0].hang(LIVENESS)
        began = anyio.current_time()
        assert (await ask(world, 1)).witnesses == ("bn2", "bn3")
        assert anyio.current_time() - began == pytest.approx(6.0, abs=0.002)
        # One that is known to be away is not.
        await net[0].kill()
        await world.until(NEXT + 4.5)
        began = anyio.current_time()
        assert (await ask(world, 1)).live == {1: False}
        assert anyio.current_time() == began


async def test_an_epoch_to_come_has_no_witness() -> None:
    """Nobody was there throughout."""
    async with simulated_devnet(1, slots_per_epoch=8, start_slot=130) as net, held(net) as world:
        await world.until(NEXT + 1.5)
        assert (await nobody_knows(world, 1, epoch=Epoch(EPOCH + 2))).unknown == (1,)
        world.calls.update_candidates([])
        with pytest.raises(NoCandidates):
            await ask(world, 1)
