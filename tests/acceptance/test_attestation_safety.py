"""What would have a validator slashed, or its vote refused, never wins (Q8; scenario 46a, case 43)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.duties_world import DATA, Held, held, on
from vc_fallback.base.types import Slot, root_hex
from vc_fallback.routing.outcomes import AllNodesFailed, QuorumNotReached
from vc_fallback.testing import SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

SOURCE = 3
"""The epoch before the present one, which is justified on the simulated chain in epoch 4."""


def source(epoch: int) -> dict[str, Any]:
    return {"source": {"epoch": str(epoch), "root": "0x" + "ab" * 32}}


def target(epoch: int) -> dict[str, Any]:
    return {"target": {"epoch": str(epoch), "root": "0x" + "cd" * 32}}


async def ask(world: Held, slot: int) -> tuple[str, int]:
    given = await world.calls.attestation_data(Slot(slot))
    return given.node_id, given.value.source.epoch


async def test_a_lower_source_than_was_given_before_never_wins() -> None:
    """Scenario 46a: of a fallback, when the primaries are gone; the call fails rather."""
    async with simulated_devnet(3) as net, held(net, fallbacks=[net[2]]) as world:
        await world.settled()
        net[2].override(DATA, **source(SOURCE - 1))
        assert (await ask(world, await world.due(130)))[1] == SOURCE
        for node in (net[0], net[1]):
            await node.kill()
        slot = await world.due(131)
        with pytest.raises(AllNodesFailed, match="source epoch 2 is below 3, which was given before"):
            await world.calls.attestation_data(slot, deadline=anyio.current_time() + 1)
        with pytest.raises(QuorumNotReached, match="source epoch 2 is below 3"):
            await world.calls.attestation_data_by_quorum(slot, threshold=1, deadline=anyio.current_time() + 2)
        # A primary is back in time, and serves.
        net[1].restart()
        assert (await ask(world, slot)) == ("bn2", SOURCE)


async def test_what_was_given_by_a_quorum_counts_too() -> None:
    """Q8: whichever call it was given by."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        await world.calls.attestation_data_by_quorum(slot)
        for node in net:
            node.override(DATA, **source(SOURCE - 1))
        with pytest.raises(AllNodesFailed):
            await world.calls.attestation_data(slot)


async def test_data_that_was_not_given_binds_nobody() -> None:
    """Q8: a node that says that a later epoch is justified, and is outrun, or not to be believed, stops no one."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        for bad in (4, 5, 2**64 - 1):
            # Not before its target: no attestation to that is valid.
            net[0].override(DATA, **source(bad))
            slot = await world.due(int(world.now) + 1)
            assert (await ask(world, slot)) == ("bn2", SOURCE)
        # The fault is at one node, the other serves; both being sound again nothing is left of it.
        net[0].override(DATA)
        slot = await world.due(int(world.now) + 1)
        assert (await ask(world, slot))[1] == SOURCE


@pytest.mark.parametrize("epoch", [3, 5, 0])
async def test_another_target_epoch_than_that_of_the_slot_never_wins(epoch: int) -> None:
    """Q8: slashing protection takes one vote for each target."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        for node in net:
            node.override(DATA, **target(epoch))
        slot = await world.due(130)
        with pytest.raises(AllNodesFailed, match="target epoch"):
            await world.calls.attestation_data(slot, deadline=anyio.current_time() + 1)
        net[1].override(DATA)
        assert (await world.calls.attestation_data(slot)).node_id == "bn2"


async def test_the_first_slot_of_an_epoch_and_the_first_of_the_chain() -> None:
    """Q8: the head is of the epoch before, the target of this one; at genesis source and target are the same."""
    async with simulated_devnet(2, start_slot=-1, slots_per_epoch=8) as net, held(net) as world:
        for number in (0, 1, 7, 8, 9, 16, 17, 24):
            net.chain.miss(*({8, 24} & {number}))
            slot = await world.due(number)
            given = await world.calls.attestation_data(slot)
            assert given.value.target.epoch == number // 8
            assert given.value.source.epoch == max(0, number // 8 - 1)
            assert given.stale == ""


async def test_calls_that_are_under_way_together_never_go_back() -> None:
    """Q8: 32 committees at the moment at which an epoch is justified; no data is given after such of a later source."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        for node, epoch in zip(net, (2, 1, 2), strict=True):
            node.override(DATA, **source(epoch))
        given: list[int] = []

        async def one(index: int) -> None:
            data = await world.calls.attestation_data(slot, index)
            given.append(data.value.source.epoch)

        async with anyio.create_task_group() as tasks:
            for index in range(32):
                tasks.start_soon(one, index)
                if index == 16:
                    await anyio.sleep(0.0)
                    for node in net:
                        node.override(DATA, **source(3))
        assert len(given) == 32
        assert given == sorted(given)
        assert given[-1] == 3


async def test_data_that_was_overtaken_on_its_way_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Q8: another call is given data with a later source after this one's has been looked at, and before it returns."""
    async with simulated_devnet(1) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        net[0].override(DATA, **source(SOURCE - 1))
        ask_nodes = world.calls._attestation_data

        async def overtaken(*wanted: Any) -> Any:
            found = await ask_nodes(*wanted)
            monkeypatch.undo()
            net[0].override(DATA, **source(SOURCE))
            await world.calls.attestation_data(slot)
            return found

        monkeypatch.setattr(world.calls, "_attestation_data", overtaken)
        assert await ask(world, slot) == ("bn1", SOURCE)


def branch_off(world: Held, *nodes: SimulatedNode, above: int) -> str:
    """Let nodes follow another branch from now on; they have a block of their own at each slot."""
    branch = world.chain.branch("other", above=above)
    for node in nodes:
        node.switch(branch)
    return branch


async def test_a_node_on_another_branch_is_asked_last_and_marked() -> None:
    """Case 43: two of three follow one branch; the third serves only when nobody else does."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        branch_off(world, net[0], above=128)
        await world.until(130.2)
        slot = await world.due(131)
        # The node of the minority comes first by rank, and has announced a head of this slot, too.
        for _ in range(3):
            given = await world.calls.attestation_data(slot)
            assert given.value.beacon_block_root == world.root(131)
            assert given.stale == ""
        agreed = await world.calls.attestation_data_by_quorum(slot)
        assert agreed.voters == ("bn2", "bn3")
        for node in (net[1], net[2]):
            node.answer(DATA, 503)
        given = await world.calls.attestation_data(slot)
        assert (given.node_id, given.value.beacon_block_root) == ("bn1", world.root(131, "other"))
        assert given.stale.startswith(f"block {root_hex(world.root(131, 'other'))[:10]}")


async def test_a_reorg_between_announcement_and_request() -> None:
    """Q8: the caller holds the head of before; the nodes have gone over to another block of the same slot."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        waited = await world.calls.heads.wait_for_slot(Slot(130), world.slots.start_of(Slot(131)))
        assert waited is not None
        branch_off(world, *net, above=129)
        await anyio.sleep(0.1)
        slot = await world.due(130)
        began = anyio.current_time()
        for head in (waited.head, None):
            given = await world.calls.attestation_data(slot, head=head)
            assert (given.value.beacon_block_root, given.stale) == (world.root(130, "other"), "")
        assert anyio.current_time() == began
        # One that has not gone over is asked once more, and then the other.
        old = net[0] if given.node_id == "bn1" else net[1]
        old.override(DATA, **on(world.block(130)))
        given = await world.calls.attestation_data(slot, head=waited)
        assert (given.value.beacon_block_root, given.stale) == (world.root(130, "other"), "")


async def test_a_reorg_to_a_lower_slot() -> None:
    """Q8, case 45: the head goes back; the block of before is the older one now, however high it was."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        waited = await world.calls.heads.wait_for_slot(Slot(130), world.slots.start_of(Slot(131)))
        assert waited is not None
        branch = world.chain.branch("other", above=128)
        world.chain.miss(130, branch=branch)
        for node in net:
            node.switch(branch)
        slot = await world.due(130)
        latest = world.calls.heads.latest.value
        assert latest is not None
        assert (latest.slot, latest.root) == (129, world.root(129, branch))
        began = anyio.current_time()
        for head in (waited.head, None):
            given = await world.calls.attestation_data(slot, head=head)
            assert (given.value.beacon_block_root, given.stale) == (world.root(129, branch), "")
        assert anyio.current_time() == began


async def test_data_of_a_later_block_never_wins() -> None:
    """Q8: a block cannot be attested to before its slot: a node, or a cache before it, that mixes up its answers."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        await world.until(131.2)
        for node in net:
            node.override(DATA, **on(world.block(131)))
        with pytest.raises(AllNodesFailed, match="its head is of slot 131"):
            await world.calls.attestation_data(slot, deadline=anyio.current_time() + 2)


async def test_a_block_that_nobody_has_shown_is_not_the_head() -> None:
    """Q8: at a slot whose head was announced, and at the next; later it may be one that nobody has told of."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        world.chain.miss(131, 132)
        unknown = {"beacon_block_root": "0x" + "12" * 32}
        for number in (130, 131, 132):
            slot = await world.due(number)
            latest = world.calls.heads.latest.value
            assert latest is not None
            assert latest.slot == 130
            world.nodes[latest.node_id].override(DATA, **unknown)
            given = await world.calls.attestation_data(slot)
            assert (given.node_id == latest.node_id) is (number == 132)
            assert given.stale == ""
