"""Attestation data is measured against the head that was announced (Q8; cases 30, 41, 50; scenario 46a)."""

from dataclasses import replace

import anyio
import pytest

from tests.acceptance.duties_world import DATA, Held, held, on
from vc_fallback.base.types import Role, Slot, root_hex
from vc_fallback.decide.delivery import Delivered
from vc_fallback.node.failures import Optimistic
from vc_fallback.routing.outcomes import AllNodesFailed, DeadlineExceeded, RequestFailed
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio

AGAIN = 0.05
"""Seconds until a node is asked once more."""

NEXT = 0.5
"""Seconds for which a better answer is waited for, and a node is silent before the next is asked as well: 1/24 slot."""


async def head_of(world: Held, slot: int) -> Delivered:
    """Wait for the head of a slot."""
    found = await world.calls.heads.wait_for_slot(Slot(slot), world.slots.start_of(Slot(slot + 1)))
    assert found is not None
    return found.head


async def test_the_node_that_announced_the_head_is_asked() -> None:
    """Q8: whoever has the duties; the others have not got the block yet."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        net[0].state.head_delay = net[1].state.head_delay = 2.0
        head = await head_of(world, 130)
        assert head.node_id == "bn3"
        given = await world.calls.attestation_data(Slot(130), head=head)
        assert (given.node_id, given.value.beacon_block_root, given.stale) == ("bn3", world.root(130), "")
        # Also later on, when all have it; and by what waiting for a slot gives.
        slot = await world.due(130)
        assert (await world.calls.attestation_data(slot)).node_id == "bn3"
        waited = await world.calls.heads.wait_for_slot(slot, world.slots.start_of(Slot(131)))
        assert (await world.calls.attestation_data(slot, head=waited)).node_id == "bn3"
        assert world.asked(DATA) == {"bn3": 3}
        assert world.calls.heads.order()[0] == "bn1"


async def test_data_older_than_the_head_is_asked_for_once_more() -> None:
    """Case 50: 50 ms later the node has it; nobody else is asked."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        net[0].state.head_delay = net[1].state.head_delay = 2.0
        head = await head_of(world, 130)
        net[2].override(DATA, **on(world.block(129)))
        async with anyio.create_task_group() as tasks:

            async def catch_up() -> None:
                await anyio.sleep(AGAIN / 2)
                net[2].override(DATA)

            tasks.start_soon(catch_up)
            began = anyio.current_time()
            given = await world.calls.attestation_data(Slot(130), head=head)
            assert anyio.current_time() - began == pytest.approx(AGAIN)
        assert (given.node_id, given.value.beacon_block_root, given.stale) == ("bn3", world.root(130), "")
        assert given.provenance.attempts == 2
        assert world.asked(DATA) == {"bn3": 2}


async def test_where_it_stays_old_another_node_is_asked() -> None:
    """Case 50: after the one that announced it, by rank."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        announcer = world.calls.heads.latest.value
        assert announcer is not None
        world.nodes[announcer.node_id].override(DATA, **on(world.block(129)))
        began = anyio.current_time()
        given = await world.calls.attestation_data(slot)
        assert (given.value.beacon_block_root, given.stale) == (world.root(130), "")
        assert given.node_id == next(n for n in world.calls.heads.order() if n != announcer.node_id)
        assert anyio.current_time() - began == pytest.approx(AGAIN)
        assert world.asked(DATA) == {announcer.node_id: 2, given.node_id: 1}


async def test_where_all_are_old_it_is_taken_and_marked() -> None:
    """Case 50, Q8: the head was of a node that has left; all others are a block behind."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        head = await head_of(world, 130)
        for node in net:
            node.override(DATA, **on(world.block(129)))
        began = anyio.current_time()
        given = await world.calls.attestation_data(Slot(130), head=head)
        assert given.value.beacon_block_root == world.root(129)
        old, new = root_hex(world.root(129))[:10], root_hex(world.root(130))[:10]
        assert given.stale == f"block {old}…, not the head {new}… of slot 130"
        assert anyio.current_time() - began == pytest.approx(3 * AGAIN)
        assert sum(world.asked(DATA).values()) == 6


@pytest.mark.parametrize("silent", [1, 2])
async def test_a_silent_node_does_not_hold_back_old_data_that_can_be_signed(silent: int) -> None:
    """Q8: one or two of three hang: what is there is taken 1/24 of a slot later, and not at the end of the slot."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        latest = world.calls.heads.latest.value
        assert latest is not None
        net_by_age = sorted(net, key=lambda node: node.name != latest.node_id)
        for node in net_by_age[:-silent]:
            node.override(DATA, **on(world.block(129)))
        for node in net_by_age[-silent:]:
            node.hang(DATA)
        began = anyio.current_time()
        given = await world.calls.attestation_data(slot)
        assert given.value.beacon_block_root == world.root(129)
        assert given.stale
        assert anyio.current_time() - began == pytest.approx(AGAIN + NEXT)


@pytest.mark.parametrize("fails", ["dies", "hangs", "refuses"])
async def test_old_data_is_not_lost_with_the_second_question(fails: str) -> None:
    """Q2: nothing is thrown away while it can still count. There is one node."""
    async with simulated_devnet(1) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        (node,) = net
        node.override(DATA, **on(world.block(129)))
        async with anyio.create_task_group() as tasks:

            async def fail() -> None:
                await anyio.sleep(AGAIN / 2)
                if fails == "dies":
                    await node.kill()
                elif fails == "hangs":
                    node.hang(DATA)
                else:
                    node.answer(DATA, 500, "no")

            tasks.start_soon(fail)
            began = anyio.current_time()
            given = await world.calls.attestation_data(slot)
        assert given.value.beacon_block_root == world.root(129)
        assert given.stale
        assert anyio.current_time() - began <= AGAIN + NEXT + 1e-6


async def test_the_block_may_come_while_nodes_are_asked() -> None:
    """Q8: data is measured against the head of the moment at which it comes: a late block, at 4 s into the slot."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        net.chain.delay(131, 4.0)
        slot = await world.due(131)
        old = dict(on(world.block(130)))
        for node in net:
            # Made up before the block came, and sent after it.
            node.override(DATA, **old)
            node.inject(DATA, Delay(0.1), times=1)
        async with anyio.create_task_group() as tasks:

            async def up_to_date() -> None:
                await anyio.sleep(0.12)
                for node in net:
                    node.override(DATA)

            tasks.start_soon(up_to_date)
            given = await world.calls.attestation_data(slot)
        assert (given.value.beacon_block_root, given.stale) == (world.root(131), "")
        assert len(world.asked(DATA)) == 1


async def test_missed_slots_make_nothing_old() -> None:
    """Case 41: five slots without a block; the head of before is the head. Nobody is asked twice."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        net.chain.miss(*range(131, 136))
        for number in range(131, 136):
            slot = await world.due(number)
            began = anyio.current_time()
            given = await world.calls.attestation_data(slot)
            assert (given.value.beacon_block_root, given.stale) == (world.root(130), "")
            assert anyio.current_time() == began
        assert sum(world.asked(DATA).values()) == 5


async def test_a_head_of_long_ago_makes_nothing_old() -> None:
    """Q8: all streams are silent while the nodes go on: what nobody has announced is newer, not older."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        for node in net:
            node.silence()
            # Nor is a poll of its head to be had, which would tell of newer ones.
            node.answer("/eth/v1/beacon/headers/head", 404)
        slot = await world.due(133)
        latest = world.calls.heads.latest.value
        assert latest is not None
        assert latest.slot == 129
        began = anyio.current_time()
        given = await world.calls.attestation_data(slot)
        assert (given.value.beacon_block_root, given.stale) == (world.root(133), "")
        assert anyio.current_time() == began


async def test_a_head_that_the_caller_kept_holds_until_the_next() -> None:
    """Q8: `head` is of an older slot than the latest; and one of a later slot says nothing of this one."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        kept = await head_of(world, 130)
        slot = await world.due(132)
        laggard = net[0] if kept.node_id == "bn1" else net[1]
        laggard.override(DATA, **on(world.block(130)))
        given = await world.calls.attestation_data(slot, head=kept)
        assert (given.value.beacon_block_root, given.stale) == (world.root(132), "")
        # Data of the last slot, asked for in this one: measured against the head of then.
        later = await head_of(world, 133)
        node = net[0] if laggard is net[1] else net[1]
        deadline = anyio.current_time() + 1
        for head in (later, None):
            again = await world.calls.attestation_data(slot, head=head, deadline=deadline)
            assert (again.value.beacon_block_root, again.stale) == (world.root(132), "")
        node.override(DATA, **on(world.block(131)))
        old = await world.calls.attestation_data(slot, head=later, deadline=deadline)
        assert old.stale.endswith("of slot 132")


async def test_without_any_head_data_is_taken_as_it_is() -> None:
    """Nobody has role `events`: there is nothing to measure it against."""
    roles = {"bn1": ["duties", "attestation"]}
    async with simulated_devnet(1) as net, held(net, roles=roles) as world:
        await world.settled()
        assert world.calls.heads.latest.value is None
        net[0].override(DATA, **on(world.block(128)))
        given = await world.calls.attestation_data(await world.due(130))
        assert (given.value.beacon_block_root, given.stale) == (world.root(128), "")


async def test_a_head_made_by_hand_is_as_good() -> None:
    """Q8: of a validator client that follows heads by itself."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        head = await head_of(world, 130)
        net[0].state.head_delay = 3.0
        await world.until(131.2)
        block = world.block(131)
        own = replace(head.head, slot=block.slot, root=block.root, node_id=world.id(net[1]), received=1e9)
        given = await world.calls.attestation_data(Slot(131), head=Delivered(own, late=False, reorg=False))
        assert (given.node_id, given.value.beacon_block_root) == ("bn2", block.root)


@pytest.mark.parametrize("said", ["by its events", "by its answer"])
async def test_optimistic_data_never_wins(said: str) -> None:
    """Case 30, Q8: 500 `HeadBlockNotFullyVerified`, or data all the same; another node is asked at once."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        net[0].state.optimistic = True
        slot = await world.due(130)
        if said == "by its events":
            data = await world.client(net[1]).attestation_data(slot)
            net[0].answer(DATA, 200, data.value.to_ssz(), content_type="application/octet-stream")
            # Whom it is asked of first; what it gives is the right block.
            await net[1].cut_connections()
            net[1].answer("/eth/v1/events", 503)
            assert world.calls.plan(Role.ATTESTATION).nodes == ("bn2", "bn1")
            refused = net[1].answer(DATA, 503)
            with pytest.raises(AllNodesFailed, match="its head is optimistic"):
                await world.calls.attestation_data(slot, deadline=anyio.current_time() + 0.6)
            refused.remove()
        began = anyio.current_time()
        given = await world.calls.attestation_data(slot)
        assert (given.node_id, anyio.current_time()) == ("bn2", began)
        net[1].state.optimistic = True
        slot = await world.due(131)
        with pytest.raises(AllNodesFailed) as failed:
            await world.calls.attestation_data(slot, deadline=anyio.current_time() + 1)
        assert isinstance(failed.value.errors["bn2"], Optimistic)  # type: ignore[index]
        assert anyio.current_time() < world.slots.start_of(slot) + 5.1


async def test_duties_that_fail_feed_back_into_rank() -> None:
    """Case 30: the node says that it is fine; after five failures it is not asked first any more."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        net[0].answer(DATA, 500, '{"code":500,"message":"UNHANDLED_ERROR: HeadBlockNotFullyVerified"}')
        net[1].state.head_delay = 0.5
        for number in range(130, 135):
            slot = await world.due(number)
            began = anyio.current_time()
            given = await world.calls.attestation_data(slot)
            assert (given.node_id, given.stale, anyio.current_time()) == ("bn2", "", began)
        assert world.health(net[0]).state == "unhealthy"
        failed = net[0].request_counts[DATA]
        assert failed == 5
        await world.calls.attestation_data(await world.due(135))
        assert net[0].request_counts[DATA] == failed


async def test_the_end_of_the_slot_is_the_end() -> None:
    """Q2: of a call without a deadline; one in the past asks nobody."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        for node in net:
            node.hang(DATA)
        slot = await world.due(130)
        with pytest.raises(RequestFailed, match="bn1: no answer"):
            await world.calls.attestation_data(slot)
        assert anyio.current_time() == pytest.approx(world.slots.start_of(Slot(131)), abs=0.002)
        await world.until(131.0)
        asked = world.asked(DATA)
        with pytest.raises(DeadlineExceeded, match="no node was asked"):
            await world.calls.attestation_data(slot)
        assert world.asked(DATA) == asked
