"""A node that answers its checks and hangs on a kind of requests costs its delay twice, not every time (Q2, N3)."""

import anyio
import pytest

from tests.acceptance.facade import A, B, holding
from vc_fallback.base.types import Epoch
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
