"""Attestation data by a quorum (Q6, rule 9; case 43)."""

import anyio
import pytest

from tests.acceptance.duties_world import DATA, held, moved, on
from vc_fallback.base.types import Slot
from vc_fallback.routing.outcomes import NoCandidates, QuorumNotReached
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio

AGAIN = 0.5
"""1/24 of a slot."""


async def test_the_majority_of_the_primaries_has_to_agree() -> None:
    """Q6: three of five, whoever is down; fallbacks are not asked where these agree."""
    async with simulated_devnet(7) as net, held(net, fallbacks=net.nodes[5:]) as world:
        await world.settled()
        slot = await world.due(130)
        net[0].hang(DATA)
        net[1].inject(DATA, Delay(0.2))
        net[2].inject(DATA, Delay(0.3))
        began = anyio.current_time()
        agreed = await world.calls.attestation_data_by_quorum(slot)
        assert agreed.voters == ("bn2", "bn4", "bn5")
        assert agreed.answer.value.beacon_block_root == world.root(130)
        assert anyio.current_time() - began == pytest.approx(0.2)
        assert not {"bn6", "bn7"} & world.asked(DATA).keys()


async def test_primaries_that_are_down_are_counted_all_the_same() -> None:
    """Rule 9: two of three have to agree, though two are known to be away; the fallback has the second vote."""
    async with simulated_devnet(4) as net, held(net, fallbacks=[net[3]]) as world:
        await world.settled()
        for node in (net[0], net[1]):
            await node.kill()
        await world.until(133.5)
        slot = await world.due(134)
        assert (await world.calls.attestation_data_by_quorum(slot)).voters == ("bn3", "bn4")
        await net[3].kill()
        with pytest.raises(QuorumNotReached, match="2 nodes have to give the same") as failed:
            await world.calls.attestation_data_by_quorum(slot)
        assert [*failed.value.votes.values()] == [("bn3",)]
        assert anyio.current_time() == pytest.approx(world.slots.start_of(Slot(135)))


async def test_primaries_that_go_at_this_moment_cost_no_vote() -> None:
    """Q6: nobody knew that they are away; the fallback is asked at once, and not when the slot is over."""
    async with simulated_devnet(4) as net, held(net, fallbacks=[net[3]]) as world:
        await world.settled()
        slot = await world.due(130)
        for node in (net[0], net[1]):
            await node.kill()
        began = anyio.current_time()
        assert (await world.calls.attestation_data_by_quorum(slot)).voters == ("bn3", "bn4")
        assert anyio.current_time() == began


async def test_primaries_that_are_silent_cost_a_moment() -> None:
    """Q6: 1/24 of a slot."""
    async with simulated_devnet(4) as net, held(net, fallbacks=[net[3]]) as world:
        await world.settled()
        slot = await world.due(130)
        for node in (net[0], net[1]):
            node.hang(DATA)
        began = anyio.current_time()
        assert (await world.calls.attestation_data_by_quorum(slot)).voters == ("bn3", "bn4")
        assert anyio.current_time() - began == pytest.approx(AGAIN)


async def test_who_differs_is_asked_again_on_its_next_head() -> None:
    """Q6: the block comes to the others half a second later; no clock is waited for."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        net[1].state.head_delay = 0.2
        net[2].state.head_delay = 0.3
        found = await world.calls.heads.wait_for_slot(Slot(130), world.slots.start_of(Slot(131)))
        assert found is not None
        began = anyio.current_time()
        agreed = await world.calls.attestation_data_by_quorum(Slot(130), head=found)
        assert agreed.voters == ("bn1", "bn2")
        assert agreed.answer.value.beacon_block_root == world.root(130)
        assert anyio.current_time() - began == pytest.approx(0.2)


async def test_nodes_that_have_not_got_the_block_agree_on_the_old_one_a_moment_later() -> None:
    """Q6, Q8: the majority is a block behind, and stays so: its vote counts after 1/24 of a slot, and not before."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        net[1].state.head_delay = net[2].state.head_delay = 8.0
        found = await world.calls.heads.wait_for_slot(Slot(130), world.slots.start_of(Slot(131)))
        assert found is not None
        began = anyio.current_time()
        agreed = await world.calls.attestation_data_by_quorum(Slot(130), head=found)
        assert (agreed.voters, agreed.answer.value.beacon_block_root) == (("bn2", "bn3"), world.root(129))
        assert AGAIN <= anyio.current_time() - began <= AGAIN + 0.1


async def test_without_heads_nodes_are_asked_again_by_the_clock() -> None:
    """Q6: a node without a stream has no news."""
    roles = {name: ["duties", "attestation"] for name in ("bn2", "bn3")}
    async with simulated_devnet(3) as net, held(net, roles=roles) as world:
        await world.settled()
        slot = await world.due(130)
        net[1].override(DATA, **on(world.block(129)))
        net[2].hang(DATA)
        async with anyio.create_task_group() as tasks:

            async def catch_up() -> None:
                await anyio.sleep(0.7)
                net[1].override(DATA)

            tasks.start_soon(catch_up)
            began = anyio.current_time()
            assert (await world.calls.attestation_data_by_quorum(slot)).voters == ("bn1", "bn2")
            assert anyio.current_time() - began == pytest.approx(2 * AGAIN)


async def test_where_nobody_agrees_it_raises_with_the_votes() -> None:
    """Rule 9: at the end of the slot, or at the caller's own."""
    async with simulated_devnet(3) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        for number, node in enumerate(net):
            node.override(DATA, **on(world.block(130 - number)))
        with pytest.raises(QuorumNotReached) as failed:
            await world.calls.attestation_data_by_quorum(slot, deadline=anyio.current_time() + 2)
        assert sorted(failed.value.votes.values()) == [("bn1",), ("bn2",), ("bn3",)]
        assert failed.value.threshold == 2
        assert anyio.current_time() == world.slots.attestation_due(slot) + 2


async def test_an_explicit_threshold() -> None:
    """Q6: of all, of one, of more than there are, and of none."""
    async with simulated_devnet(3) as net, held(net, fallbacks=[net[2]]) as world:
        await world.settled()
        slot = await world.due(130)
        by_quorum = world.calls.attestation_data_by_quorum
        assert len((await by_quorum(slot, threshold=3)).voters) == 3
        assert len((await by_quorum(slot, threshold=1)).voters) == 1
        asked = world.asked(DATA)
        with pytest.raises(QuorumNotReached, match="4 nodes have to give the same, and there are 3"):
            await by_quorum(slot, threshold=4)
        with pytest.raises(ValueError, match="threshold"):
            await by_quorum(slot, threshold=0)
        assert world.asked(DATA) == asked


async def test_with_fallbacks_alone_their_majority_counts() -> None:
    """Q6: there is no primary with the role."""
    async with simulated_devnet(3) as net, held(net, fallbacks=net.nodes) as world:
        await world.settled()
        assert len((await world.calls.attestation_data_by_quorum(await world.due(130))).voters) == 2


async def test_the_list_changes_meanwhile() -> None:
    """Rule 9: who left has no vote any more, who has come has one, and who is reached in another way keeps his."""
    async with simulated_devnet(4) as net, held(net, listed=net.nodes[:3]) as world:
        await world.settled()
        slot = await world.due(130)
        for node in (net[0], net[1]):
            node.hang(DATA)
        async with anyio.create_task_group() as tasks:

            async def change() -> None:
                await anyio.sleep(0.25)
                world.calls.update_candidates([moved(net[0], "bn1"), moved(net[2], "bn3"), moved(net[3], "bn2")])

            tasks.start_soon(change)
            began = anyio.current_time()
            agreed = await world.calls.attestation_data_by_quorum(slot)
        assert {*agreed.voters} == {"bn2", "bn3"}
        assert anyio.current_time() - began < 1.5
        world.calls.update_candidates([])
        with pytest.raises(NoCandidates):
            await world.calls.attestation_data_by_quorum(slot)


async def test_all_are_replaced_meanwhile() -> None:
    """G6, rule 9: those who come have still to say which chain they are on, one after the other."""
    async with simulated_devnet(4) as net, held(net, listed=net.nodes[:2]) as world:
        await world.settled()
        slot = await world.due(130)
        for node in (net[0], net[1]):
            node.hang(DATA)
        net[3].inject("/eth/v1/beacon/genesis", Delay(0.7))
        async with anyio.create_task_group() as tasks:

            async def change() -> None:
                await anyio.sleep(0.25)
                world.calls.update_candidates([moved(node, node.name) for node in (net[2], net[3])])

            tasks.start_soon(change)
            began = anyio.current_time()
            agreed = await world.calls.attestation_data_by_quorum(slot)
        assert agreed.voters == ("bn3", "bn4")
        assert anyio.current_time() - began < 2.0


async def test_a_quorum_that_cannot_be_reached_fails_at_once_where_nobody_is_to_come() -> None:
    """Rule 9: and at the end of the slot where a node has not said yet which chain it is on."""
    async with simulated_devnet(2) as net, held(net) as world:
        await world.settled()
        slot = await world.due(130)
        began = anyio.current_time()
        with pytest.raises(QuorumNotReached):
            await world.calls.attestation_data_by_quorum(slot, threshold=3)
        assert anyio.current_time() == began
    async with simulated_devnet(2) as net:
        net[1].refuse()
        async with held(net) as world:
            await world.until(129.5)
            slot = await world.due(130)
            with pytest.raises(QuorumNotReached):
                await world.calls.attestation_data_by_quorum(slot)
            assert anyio.current_time() == pytest.approx(world.slots.start_of(Slot(131)))
            net[1].listen()
            slot = await world.due(135)
            assert len((await world.calls.attestation_data_by_quorum(slot)).voters) == 2
