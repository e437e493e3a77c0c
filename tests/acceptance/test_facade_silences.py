"""A node that answers its checks and hangs on a kind of requests costs its delay twice, not every time (Q2, N3)."""

import anyio
import pytest

from tests.acceptance.facade import A, B, holding
from vc_fallback import BeaconNode
from vc_fallback.base.types import Epoch, Sourced
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio

DUTIES = "/eth/v2/validator/duties/proposer/{epoch}"
DELAY = 12 / 8


async def test_who_hangs_on_duties_is_asked_for_them_last_after_the_second_time() -> None:
    """It keeps its health and everything else; after eight slots it is tried again."""
    async with simulated_devnet(2) as net, holding(net) as held:
        first, _ = net
        await held.until(130.5)
        first.hang("/eth/v2/validator/duties/proposer/4")
        took = []
        for slot in range(131, 141):
            await held.until(slot + 0.3)
            began = anyio.current_time()
            assert (await held.calls.proposer_duties(Epoch(4))).node_id == B
            took.append(anyio.current_time() - began)
            assert (await held.version()) == A
        assert took == pytest.approx([DELAY, DELAY, 0, 0, 0, 0, 0, 0, 0, 0], abs=0.01)
        first.heal()
        await held.until(142.3)
        assert (await held.calls.proposer_duties(Epoch(4))).node_id == A


async def test_who_hangs_on_requests_of_the_caller_s_own_is_asked_for_them_last() -> None:
    """By the name that the caller gives them; requests of another name are not meant."""
    async with simulated_devnet(2) as net, holding(net) as held:
        await held.until(130.5)

        async def ask(node: BeaconNode) -> Sourced[str]:
            if node.node_id == A and hangs:
                await anyio.sleep_forever()
            return await node.version()

        took = []
        hangs = True
        for slot in range(131, 135):
            await held.until(slot + 0.3)
            began = anyio.current_time()
            assert (await held.calls.first_success(ask, what="rewards")).node_id == B
            took.append(anyio.current_time() - began)
        assert took == pytest.approx([DELAY, DELAY, 0, 0], abs=0.01)
        hangs = False
        assert (await held.calls.first_success(ask, what="other")).node_id == A
        assert (await held.calls.first_success(ask, what="rewards")).node_id == B
