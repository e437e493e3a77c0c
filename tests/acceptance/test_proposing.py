"""Blocks to be signed through the facade, on simulated nodes: which it takes, and when (Q2, Q7)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.held import REVEAL, held, node_id, sent, slot_of, to_next_slot
from tests.acceptance.proposals import ANY_BLOCK, END, SOFT, asked, in_list_order, late, produce, worth
from vc_fallback import AllNodesFailed, DeadlineExceeded
from vc_fallback.base.types import Slot
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


# --- the best


async def test_the_block_with_the_highest_value_is_taken_as_soon_as_all_are_there() -> None:
    """Q7: consensus and execution together."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        worth(net[0], 10, 10)
        worth(net[1], 5, 16)
        worth(net[2], 19, 0)
        late(net[2], 0.5)
        maker, took = await produce(nodes)
        assert maker == node_id(net[1])
        assert took == pytest.approx(0.5, abs=0.01)


async def test_at_the_soft_deadline_the_best_of_what_has_come_is_taken() -> None:
    """Q2, Q7: an eighth of a slot; who hangs costs no more than that."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        worth(net[0], 10)
        worth(net[1], 20)
        worth(net[2], 90)
        late(net[2], SOFT + 0.1)
        late(net[1], SOFT - 0.1)
        maker, took = await produce(nodes)
        assert maker == node_id(net[1])
        assert took == pytest.approx(SOFT, abs=0.01)


@pytest.mark.parametrize("unknown", [{"execution": None}, {"execution": "much"}, {"execution": 99, "consensus": None}])
async def test_a_value_that_is_not_known_loses_to_any_that_is(unknown: dict[str, Any]) -> None:
    """Q7: missing or unreadable; where none is known the rank decides."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await in_list_order(nodes)
        first, second = net
        worth(first, **unknown)
        worth(second, 1)
        assert (await produce(nodes))[0] == node_id(second)
        worth(second, **unknown)
        assert (await produce(nodes))[0] == node_id(first)


@pytest.mark.parametrize(("value", "taken"), [(105, 0), (106, 1)])
async def test_the_first_node_is_left_for_an_improvement_that_is_worth_it(value: int, taken: int) -> None:
    """Q7: `block_min_improvement`."""
    async with simulated_devnet(2) as net, held(net, requests={"block_min_improvement": 0.05}) as nodes:
        await in_list_order(nodes)
        worth(net[0], 100)
        worth(net[1], value)
        assert (await produce(nodes))[0] == node_id(net[taken])


async def test_values_are_compared_within_a_tier_only() -> None:
    """Q7: a fallback is not even asked where a primary has answered in time."""
    async with simulated_devnet(2) as net, held(net, fallbacks=[net[1]]) as nodes:
        worth(net[0], 1)
        worth(net[1], 1000)
        late(net[0], SOFT - 0.1)
        maker, took = await produce(nodes)
        assert (maker, asked(net[1])) == (node_id(net[0]), 0)
        assert took == pytest.approx(SOFT - 0.1, abs=0.01)


@pytest.mark.parametrize("fault", ["hang", "down", "failing"])
async def test_fallbacks_are_asked_where_no_primary_has_answered_by_the_soft_deadline(fault: str) -> None:
    """Q7: at once where all primaries have failed."""
    async with simulated_devnet(3) as net, held(net, fallbacks=[net[2]]) as nodes:
        for node in net.nodes[:2]:
            if fault == "hang":
                node.hang(ANY_BLOCK)
            elif fault == "down":
                await node.kill()
            else:
                node.answer(ANY_BLOCK, 500, b"{}")
        maker, took = await produce(nodes)
        assert maker == node_id(net[2])
        assert took == pytest.approx(SOFT if fault == "hang" else 0.0, abs=0.02)


async def test_after_the_soft_deadline_the_first_answer_is_taken_until_the_end() -> None:
    """Q2: also that of a primary that was late; an error comes after half a slot."""
    async with simulated_devnet(2) as net, held(net, fallbacks=[net[1]]) as nodes:
        late(net[0], 3.0)
        late(net[1], 2.5)
        maker, took = await produce(nodes)
        assert maker == node_id(net[0])
        assert took == pytest.approx(3.0, abs=0.01)
        for node in net:
            node.hang(ANY_BLOCK)
        slot = await to_next_slot(nodes, into=0.0)
        began = anyio.current_time()
        with pytest.raises((AllNodesFailed, DeadlineExceeded), match="no answer"):
            await nodes.produce_block(slot, REVEAL)
        assert anyio.current_time() - began == pytest.approx(END, abs=0.01)


# --- the first, and by rank


async def test_the_first_is_taken_one_after_the_other() -> None:
    """Q2: `block_choice = "first"`, or as the call wants it."""
    async with simulated_devnet(3) as net, held(net, requests={"block_choice": "first"}) as nodes:
        await in_list_order(nodes)
        first, second, third = net
        worth(third, 10**18)
        assert (await produce(nodes))[0] == node_id(first)
        assert [asked(second), asked(third)] == [0, 0]
        first.hang(ANY_BLOCK)
        maker, took = await produce(nodes)
        assert maker == node_id(second)
        assert took == pytest.approx(SOFT, abs=0.01)
        assert (await produce(nodes, choice="best"))[0] == node_id(third)


async def test_from_gloas_on_the_rank_decides_and_waits_for_nobody() -> None:
    """Q7: no node says what a payload is worth; what the first by rank makes is taken when it is there."""
    async with simulated_devnet(3, gloas_epoch=0) as net, held(net) as nodes:
        await in_list_order(nodes)
        first, second, third = net
        worth(third, None, 10**18)
        late(third, 3.0)
        late(first, 0.5)
        maker, took = await produce(nodes)
        assert maker == node_id(first)
        assert took == pytest.approx(0.5, abs=0.01)
        first.answer(ANY_BLOCK, 503, b"{}")
        late(second, 0.25)
        maker, took = await produce(nodes)
        assert maker == node_id(second)
        assert took == pytest.approx(0.25, abs=0.01)


async def test_from_gloas_on_a_silent_first_node_costs_no_more_than_the_soft_deadline() -> None:
    """Q2, Q7: the others were asked beside it."""
    async with simulated_devnet(2, gloas_epoch=0) as net, held(net) as nodes:
        await in_list_order(nodes)
        first, second = net
        first.hang(ANY_BLOCK)
        late(second, SOFT - 0.1)
        maker, took = await produce(nodes)
        assert maker == node_id(second)
        assert took == pytest.approx(SOFT, abs=0.01)
        assert {request.path for node in net for request in node.requests if "blocks/" in request.path} == {
            f"/eth/v4/validator/blocks/{slot_of(nodes)}"
        }


async def test_a_slot_that_is_over_asks_nobody() -> None:
    """Q2: the deadline is in slot time."""
    async with simulated_devnet(1) as net, held(net) as nodes:
        slot = await to_next_slot(nodes)
        with pytest.raises(DeadlineExceeded, match="no node was asked"):
            await nodes.produce_block(Slot(slot - 1), REVEAL)
        with pytest.raises(DeadlineExceeded):
            await nodes.produce_block(slot, REVEAL, deadline=anyio.current_time())
        with pytest.raises(ValueError, match="96 bytes"):
            await nodes.produce_block(slot, REVEAL[1:])
        assert asked(net[0]) == 0
        assert not sent(net[0])
