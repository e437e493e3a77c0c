"""A node that comes back on another chain is asked nothing before that is known (N7, H15)."""

import anyio
import pytest

from tests.acceptance.facade import A, B, during, holding
from vc_fallback.base.types import NodeId
from vc_fallback.node.failures import Quarantined
from vc_fallback.routing.outcomes import AllNodesFailed
from vc_fallback.testing import Delay, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

GENESIS = "/eth/v1/beacon/genesis"
DATA = "/eth/v1/validator/attestation_data"


def change_chain(node: SimulatedNode) -> None:
    node.override(GENESIS, genesis_validators_root="0x" + "ee" * 32)


async def test_a_node_that_is_back_before_its_stream_says_first_which_chain_it_is_on() -> None:
    """Its stream connects again after a second; four calls of that second were answered by the other chain."""
    async with simulated_devnet(2) as net, holding(net, fallbacks=[net[1]]) as held:
        first = net[0]
        await held.until(130.4)
        await first.kill()
        await anyio.sleep(0.05)
        change_chain(first)
        first.restart()
        asked = held.asked(first, GENESIS)
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(held.calls.attestation_data, held.slot)
        assert (await held.calls.attestation_data(held.slot)).node_id == B
        assert (held.asked(first, DATA), held.asked(first, GENESIS)) == (0, asked + 1)
        await held.assert_idle()


async def test_the_sole_node_that_is_back_on_its_chain_is_asked_at_once() -> None:
    """Nothing is lost by the question, which is asked once; where it is not answered soon the rest is all the same."""
    async with simulated_devnet(1) as net, holding(net) as held:
        (node,) = net
        await held.until(130.4)
        for hangs in (False, True):
            if hangs:
                node.hang(GENESIS)
            await node.kill()
            await anyio.sleep(0.05)
            node.restart()
            asked, began = held.asked(node, GENESIS), anyio.current_time()
            for _ in range(2):
                assert (await held.calls.attestation_data(held.slot)).node_id == A
            assert hangs or held.asked(node, GENESIS) == asked + 1
            assert anyio.current_time() - began < (1.1 if hangs else 0.1)
            assert held.calls.status().nodes[0].suspect == ""
            await held.wait_slots(2)


async def test_an_answer_of_a_node_that_is_found_on_another_chain_meanwhile_is_not_taken() -> None:
    """N7: neither for what it was asked before."""
    async with simulated_devnet(1) as net, holding(net) as held:
        (node,) = net
        await held.until(130.4)
        node.inject(DATA, Delay(3.0))

        def found_out() -> None:
            change_chain(node)
            node.end_streams()

        error = await during(lambda: held.calls.attestation_data(held.slot), found_out, after=0.1)
        assert isinstance(error, AllNodesFailed)
        assert isinstance(error.errors[NodeId(A)], Quarantined)
