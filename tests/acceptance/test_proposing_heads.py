"""Blocks for the head: one that is worth more for being on an old head, or on another branch, is not taken (Q7)."""

import anyio
import pytest

from tests.acceptance.held import held, node_id, slot_of, to_next_slot
from tests.acceptance.proposals import ANY_BLOCK, SOFT, asked, late, produce, worth
from vc_fallback.testing import SimulatedDevnet, simulated_devnet

pytestmark = pytest.mark.anyio


def the_odd_one_is_worth_most(net: SimulatedDevnet, odd: int) -> None:
    for number, node in enumerate(net):
        worth(node, 90 if number == odd else 10)


@pytest.mark.parametrize("choice", ["best", "first"])
async def test_a_block_on_an_older_head_does_not_win_by_its_value(choice: str) -> None:
    """Q7, N5: a node that is one slot behind is usable; its block takes once more what the missing one took."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        net[0].state.lag = 1
        the_odd_one_is_worth_most(net, 0)
        for _ in range(8):
            await to_next_slot(nodes)
        assert nodes.heads.cache.book.usable(node_id(net[0]))
        for _ in range(3):
            maker, took = await produce(nodes, choice=choice)
            assert maker != node_id(net[0])
            assert took < 0.01
        assert asked(net[0]) == 0


async def test_a_block_on_the_branch_of_a_minority_does_not_win_by_its_value() -> None:
    """Q7, N3: its node is known to be inconsistent."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        net.chain.branch("other", above=slot_of(nodes))
        await to_next_slot(nodes, into=0.5)
        net[2].switch("other")
        the_odd_one_is_worth_most(net, 2)
        for _ in range(8):
            await to_next_slot(nodes)
        assert nodes.heads.health(node_id(net[2])).inconsistent
        for _ in range(3):
            maker, _ = await produce(nodes)
            assert maker in (node_id(net[0]), node_id(net[1]))
        assert asked(net[2]) == 0


async def test_a_node_that_has_not_got_a_late_block_yet_loses_to_one_that_has() -> None:
    """Q7: judged when the answer comes, as the block came after the nodes were asked."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        slot = await to_next_slot(nodes, into=0.5)
        the_odd_one_is_worth_most(net, 2)
        net.chain.delay(slot + 1, 12.1)
        net[2].state.head_delay = 1.0
        for node in net:
            late(node, 0.3)
        await to_next_slot(nodes)
        maker, took = await produce(nodes)
        assert maker in (node_id(net[0]), node_id(net[1]))
        assert took == pytest.approx(0.3, abs=0.01)
        assert asked(net[2]) == 1


async def test_a_block_on_an_old_head_is_taken_where_nobody_makes_another() -> None:
    """Q7: it comes in as fallbacks do, when those before it fail, or are silent until the soft deadline."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        net[1].state.lag = 1
        for _ in range(6):
            await to_next_slot(nodes)
        late(net[0], SOFT + 2)
        maker, took = await produce(nodes)
        assert maker == node_id(net[1])
        assert took == pytest.approx(SOFT, abs=0.01)
        net[0].answer(ANY_BLOCK, 500)
        maker, took = await produce(nodes)
        assert maker == node_id(net[1])
        assert took == pytest.approx(0, abs=0.01)


async def test_where_nobody_is_on_the_delivered_head_blocks_are_compared_as_ever() -> None:
    """Q7: a proposal is not lost for it: the node that announced the head is gone, the others are behind."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        for node in net.nodes[1:]:
            node.state.lag = 1
        the_odd_one_is_worth_most(net, 2)
        for _ in range(6):
            await to_next_slot(nodes)
        await anyio.sleep(6)
        await net[0].kill()
        maker, took = await produce(nodes)
        assert maker == node_id(net[2])
        assert took == pytest.approx(0, abs=0.01)
