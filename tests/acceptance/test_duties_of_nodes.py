"""Duties never come from a node that knows less than was known before (Q3, Q14b; cases 27, 31, 46, 47)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.duties_world import Held, held
from vc_fallback.base.signals import DependentRootChanged
from vc_fallback.base.types import Epoch, root_hex
from vc_fallback.routing.outcomes import AllNodesFailed
from vc_fallback.testing import SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

ATTESTER = "/eth/v1/validator/duties/attester/*"
SYNC = "/eth/v1/validator/duties/sync/*"
NEXT = 1.5
"""1/8 of a slot."""

PRESENT, FOLLOWING = Epoch(4), Epoch(5)
EVERYONE = range(64)
OTHER = "0x" + "77" * 32
KINDS = ("attester", "proposer", "sync_committee")


async def ask(world: Held, kind: str, epoch: Epoch = PRESENT, indices: Any = EVERYONE) -> tuple[str, Any]:
    """Ask for duties; return who gave them, and after how many seconds."""
    began = anyio.current_time()
    found: Any
    if kind == "attester":
        found = await world.calls.attester_duties(epoch, indices)
    elif kind == "proposer":
        found = await world.calls.proposer_duties(epoch)
    else:
        found = await world.calls.sync_committee_duties(epoch, indices)
    return found.node_id, anyio.current_time() - began


def behind(node: SimulatedNode) -> None:
    """Let a node know no newer block than that of this slot, and say that it is synced all the same (case 29)."""
    node.cut_off()
    node.state.syncing = False


@pytest.mark.parametrize("kind", KINDS)
async def test_duties_carry_their_node_and_their_root(kind: str) -> None:
    """Q14b: of the first node by rank; roots are those that heads name for that very epoch."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        for epoch in (PRESENT, FOLLOWING):
            found: Any
            if kind == "attester":
                found = await world.calls.attester_duties(epoch, EVERYONE)
                assert {duty.validator_index for duty in found.value.data} == {*EVERYONE}
            elif kind == "proposer":
                found = await world.calls.proposer_duties(epoch)
                assert found.value.version == 2
            else:
                found = await world.calls.sync_committee_duties(epoch, EVERYONE)
                assert found.value.dependent_root is None
            assert found.node_id == "bn1"
            if kind != "sync_committee":
                assert found.value.dependent_root == world.calls.heads.dependent_root(epoch) is not None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flaw", ["optimistic", "behind"])
async def test_duties_of_an_unsynced_node_never_replace_those_of_a_synced_one(kind: str, flaw: str) -> None:
    """Case 46: the synced node goes; the other names another root: the call fails, and what was given holds."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        if flaw == "optimistic":
            net[1].state.optimistic = True
        else:
            behind(net[1])
        await world.until(134.5)
        assert (await ask(world, kind))[0] == "bn1"
        await net[0].kill()
        for path in (ATTESTER, "/eth/v2/validator/duties/proposer/*"):
            net[1].override(path, dependent_root=OTHER)
        with pytest.raises(AllNodesFailed, match=r"not taken: (optimistic|it is not synced)"):
            await ask(world, kind)
        # Of an epoch for which none were given they are better than none.
        assert (await ask(world, kind, FOLLOWING))[0] == "bn2"
        # And those of a synced node replace them, whatever their root is.
        net[0].restart()
        await world.until(138.5)
        assert (await ask(world, kind, FOLLOWING))[0] == "bn1"


async def test_an_unsynced_node_serves_where_the_same_root_fixes_its_duties() -> None:
    """Case 46: they are the same; and those of validators that were not asked for before are better than none."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        behind(net[1])
        await world.until(134.5)
        given = await world.calls.attester_duties(PRESENT, [1, 2])
        await net[0].kill()
        again = await world.calls.attester_duties(PRESENT, [1, 2, 3])
        assert again.node_id == "bn2"
        assert [duty for duty in again.value.data if duty.validator_index in (1, 2)] == given.value.data
        net[1].override(ATTESTER, dependent_root=OTHER)
        assert (await ask(world, "attester", indices=[3, 4]))[0] == "bn2"
        with pytest.raises(AllNodesFailed):
            await ask(world, "attester", indices=[2, 3])


async def test_duties_of_a_synced_node_are_taken_first_however_fast_the_other_is() -> None:
    """Q14b: an optimistic answer does not win; a silent synced node is waited for an eighth of a slot."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        net[1].state.optimistic = True
        await world.until(130.9)
        net[0].hang(ATTESTER)
        assert await ask(world, "attester") == ("bn2", pytest.approx(2 * NEXT))
        net[0].heal()
        assert await ask(world, "attester") == ("bn1", 0.0)


async def test_a_silent_node_costs_the_time_until_the_next_is_asked() -> None:
    """Case 27, scenario 44: an eighth of a slot, and the second node's time."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        net[0].hang("/eth/v?/validator/duties/*")
        for kind in KINDS:
            assert await ask(world, kind) == ("bn2", pytest.approx(NEXT))
        for node in net:
            node.hang("/eth/v?/validator/duties/*")
        began = anyio.current_time()
        with pytest.raises(AllNodesFailed):
            await ask(world, "attester")
        assert anyio.current_time() - began == pytest.approx(6.0, abs=0.002)


async def test_duties_that_hang_on_another_root_than_the_head_are_taken_last() -> None:
    """Case 31: the node names A, B, A, C in turn, the others are steady; an all-zero root is none (case 15)."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        for root in (OTHER, "0x" + "55" * 32):
            net[0].override(ATTESTER, dependent_root=root)
            assert await ask(world, "attester") == ("bn2", 0.0)
        net[0].override(ATTESTER, dependent_root="0x" + "00" * 32)
        assert await ask(world, "attester") == ("bn1", 0.0)
        for node in net:
            node.override(ATTESTER, dependent_root=OTHER)
        found = await world.calls.attester_duties(PRESENT, EVERYONE)
        assert (found.node_id, root_hex(found.value.dependent_root or b"")) == ("bn1", OTHER)
        # One that is silent does not hold them back for half a slot.
        net[2].hang(ATTESTER)
        assert await ask(world, "attester") == ("bn1", pytest.approx(NEXT))


async def test_an_optimistic_flapping_node_moves_no_duties() -> None:
    """Case 31: it turns optimistic and back every three seconds, with other roots; the steady one serves."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        async with anyio.create_task_group() as tasks:

            async def flap() -> None:
                for number in range(40):
                    net[1].state.optimistic = number % 2 == 0
                    roots = ("aa", "bb", "aa", "cc")
                    net[1].override(ATTESTER, dependent_root="0x" + roots[number % 4] * 32)
                    await anyio.sleep(3)

            tasks.start_soon(flap)
            for number in range(130, 138):
                await world.until(number + 0.6)
                assert await ask(world, "attester") == ("bn1", 0.0)
            tasks.cancel_scope.cancel()
        assert not world.told(DependentRootChanged)


async def test_a_late_block_in_the_last_slot_of_an_epoch() -> None:
    """Case 47: it makes other duties for the epoch after the next; who has not got it yet is asked, and not taken."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        late = 159
        world.chain.delay(late, 20.0)
        await world.until(160.5)
        # The head is still that of slot 158, which fixes the duties of epoch 6 as far as is known.
        before = await world.calls.attester_duties(Epoch(6), EVERYONE)
        assert before.value.dependent_root == world.root(158)
        net[0].state.head_delay = 30.0
        await world.until(162.5)
        after = await world.calls.attester_duties(Epoch(6), EVERYONE)
        assert (after.node_id, after.value.dependent_root) == ("bn2", world.root(late))


async def test_the_first_version_of_a_route_names_a_root_of_another_epoch() -> None:
    """Q14b: proposer v1 and v2 mean different roots, which are never compared."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        net[0].answer("/eth/v2/validator/duties/proposer/*", 404, '{"code":404,"message":"Route not found"}')
        found = await world.calls.proposer_duties(FOLLOWING)
        assert (found.node_id, found.value.version) == ("bn1", 1)
        assert found.value.dependent_root != world.calls.heads.dependent_root(FOLLOWING)
        assert (await world.calls.proposer_duties(FOLLOWING)).node_id == "bn1"


async def test_what_is_remembered_of_duties_is_bounded() -> None:
    """Rule 6: a few epochs, whoever asks for how many."""
    async with simulated_devnet(1, slots_per_epoch=8) as net, held(net) as world:
        await world.settled()
        for _ in range(12):
            await world.wait_slots(8)
            epoch = Epoch(world.slot // 8)
            for kind in KINDS:
                await ask(world, kind, epoch)
                await ask(world, kind, Epoch(epoch + 1))
        assert len(world.calls._given) <= 16
