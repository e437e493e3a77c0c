"""What a proposer would lose: nodes that are down, behind, silent, new, or wrong (Q2, Q7, Q11, Q14, N6)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.held import REVEAL, held, listing, node_id, to_next_slot
from tests.acceptance.proposals import ANY_BLOCK, NO_PROPOSALS, SOFT, asked, late, produce, worth
from vc_fallback import AllNodesFailed, Doubt
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node.values.opaque import ProducedBlock
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


async def test_when_all_primaries_are_known_to_be_down_a_fallback_is_asked_at_once() -> None:
    """Q7, N6: nothing is waited for that is known not to come."""
    async with simulated_devnet(3) as net, held(net, fallbacks=[net[2]]) as nodes:
        for node in net.nodes[:2]:
            node.freeze()
        for _ in range(4):
            await to_next_slot(nodes)
        assert not any(status.state == "healthy" for status in nodes.status().nodes[:2])
        maker, took = await produce(nodes)
        assert maker == node_id(net[2])
        assert took < 0.01


async def test_the_block_of_a_node_that_is_behind_is_not_compared() -> None:
    """N6, Q7: it would be for an old head, whatever it says of it; the block of a usable fallback goes before."""
    async with simulated_devnet(4) as net, held(net, fallbacks=[net[3]]) as nodes:
        behind = net[0]
        worth(behind, 10**18)
        behind.cut_off()
        for _ in range(4):
            await to_next_slot(nodes)
        assert nodes.status().nodes[0].lag == 4
        late(net[1], 0.5)
        maker, _ = await produce(nodes)
        assert maker in (node_id(net[1]), node_id(net[2]))
        assert asked(behind) == 0
        for node in net.nodes[1:3]:
            node.hang(ANY_BLOCK)
        maker, took = await produce(nodes)
        assert (maker, asked(behind)) == (node_id(net[3]), 0)
        net[3].hang(ANY_BLOCK)
        maker, took = await produce(nodes)
        assert maker == node_id(behind)
        assert took == pytest.approx(2 * SOFT, abs=0.01)


@pytest.mark.parametrize("choice", ["best", "first"])
@pytest.mark.parametrize("fault", ["hang", "down"])
async def test_when_the_only_node_for_proposals_does_not_answer_another_makes_the_block(
    choice: Any, fault: str
) -> None:
    """Q14: a role whose nodes prove to be away falls to the others; not while it answers in time."""
    async with simulated_devnet(2) as net, held(net, more={net[1]: NO_PROPOSALS}) as nodes:
        late(net[0], SOFT - 0.1)
        assert (await produce(nodes, choice=choice))[0] == node_id(net[0])
        assert asked(net[1]) == 0
        if fault == "hang":
            net[0].hang(ANY_BLOCK)
        else:
            await net[0].kill()
        maker, took = await produce(nodes, choice=choice)
        assert maker == node_id(net[1])
        assert took == pytest.approx(SOFT if fault == "hang" else 0.0, abs=0.02)


async def test_a_block_for_another_slot_does_not_win() -> None:
    """Rule 12: nothing here decodes a block; who signs it looks, and another one wins."""
    looked: list[NodeId] = []
    async with simulated_devnet(2) as net, held(net) as nodes:
        worth(net[0], 90)
        worth(net[1], 10)

        def accept(made: Sourced[ProducedBlock]) -> Doubt | None:
            looked.append(made.node_id)
            return Doubt("it is for another slot") if made.node_id == node_id(net[0]) else None

        assert (await produce(nodes, accept=accept))[0] == node_id(net[1])
        assert {*looked} == {*map(node_id, net)}
        assert (await produce(nodes, accept=accept, choice="first"))[0] == node_id(net[1])
        await net[1].kill()
        with pytest.raises(AllNodesFailed, match="it is for another slot"):
            await produce(nodes, accept=accept)


async def test_who_is_to_be_left_alone_is_asked_where_nobody_else_answers() -> None:
    """Q11: a block is worth more than a rest."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        net[1].answer(ANY_BLOCK, 429, headers={"Retry-After": "60"}, times=1)
        worth(net[1], 10**18)
        for _ in range(2):
            assert (await produce(nodes))[0] == node_id(net[0])
        assert asked(net[1]) == 1
        net[0].hang(ANY_BLOCK)
        maker, took = await produce(nodes)
        assert maker == node_id(net[1])
        assert took == pytest.approx(SOFT, abs=0.01)


async def test_a_list_that_is_replaced_meanwhile_costs_no_block() -> None:
    """G2: a call in flight on a removed node moves on to those that have come."""
    async with simulated_devnet(2) as net, held(net, listed=[net[0]]) as nodes:
        net[0].hang(ANY_BLOCK)
        both = listing(net[0], net[1])
        makers: list[NodeId] = []

        async def call() -> None:
            makers.append((await produce(nodes))[0])

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await to_next_slot(nodes, into=0.02)
            nodes.update_candidates(both)
            await nodes.wait_ready(2, timeout=5)
            nodes.update_candidates(both[1:])
        assert makers == [node_id(net[1])]


async def test_what_was_not_taken_is_cancelled_and_awaited() -> None:
    """Rule 5: with the answer, and when the caller is cancelled."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        for node in net.nodes[1:]:
            node.hang(ANY_BLOCK)
        await produce(nodes)
        assert not nodes._runner._running
        net[0].hang(ANY_BLOCK)
        slot = await to_next_slot(nodes, into=0.0)
        with anyio.move_on_after(2.0):
            await nodes.produce_block(slot, REVEAL)
        assert not nodes._runner._running
