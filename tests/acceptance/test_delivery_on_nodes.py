"""What is delivered of the heads of several nodes, and how often (C1–C4, H7, H11, H13)."""

import pytest

from tests.acceptance.harness import monitor
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


async def test_eight_nodes_with_one_head_at_one_instant_make_one_delivery() -> None:
    """Scenario 29, C3: one delivery, eight in `seen_by`."""
    async with simulated_devnet(8) as net, monitor(net) as followed:
        await followed.until(133.5)
        followed.assert_every_slot_delivered(128, 133)
        latest = followed.monitor.latest.value
        assert latest is not None
        assert sorted(latest.seen_by) == [f"bn{number}" for number in range(1, 9)]
