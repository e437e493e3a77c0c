"""Requests after the system clock was stepped: they follow it at once where they would be refused else (I2, Q2)."""

import anyio
import pytest

from tests.acceptance.embedding import config_of
from vc_fallback.base.clock import Clock
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.routing.outcomes import DeadlineExceeded
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


async def test_a_clock_that_is_put_right_within_a_slot_costs_no_attestation() -> None:
    """It was 40 s fast, so the slot that is now seems to be over until clocks are paired again, at the next slot."""
    fast = 40.0
    async with simulated_devnet(1) as net:
        offset, chain = net.clock.offset, net.chain.slots
        clock = Clock(wall=lambda: anyio.current_time() + offset + fast)
        async with BeaconNodeFallback(config_of(net), clock=clock) as nodes:
            await nodes.wait_ready(timeout=30)
            slot = chain.slot_at(anyio.current_time())
            await anyio.sleep_until(chain.start_of(slot) + 4 + chain.duration)
            slot = chain.slot_at(anyio.current_time())
            fast = 0.0
            assert (await nodes.attestation_data(slot)).value.slot == slot
            # One that is over is over.
            with pytest.raises(DeadlineExceeded):
                await nodes.attestation_data(type(slot)(slot - 1))
