"""A head that was optimistic when it was announced does not stay so by that word alone (H12, Q8)."""

import pytest

from tests.acceptance.duties_world import held
from vc_fallback.base.types import Slot
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio

HEADERS = "/eth/v1/beacon/headers/head"


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("polled", [True, False], ids=["polled", "not polled"])
async def test_a_good_check_ends_the_mark_of_a_head(nodes: int, polled: bool) -> None:
    """H12, Q8: its polls were over when it became valid, and no event says so; missed slots follow."""
    async with simulated_devnet(nodes) as net, held(net) as world:
        await world.settled()
        world.chain.miss(132, 133, 134, 135)
        await world.until(130.9)
        for node in net:
            node.state.optimistic = True
        await world.until(132.2)
        for node in net:
            node.state.optimistic = False
            if not polled:
                node.hang(HEADERS)
        # By the check of slot 132 it is known.
        for slot in (133, 134):
            at = await world.due(slot)
            given = await world.calls.attestation_data(at)
            assert given.value.beacon_block_root == world.root(131)
            assert (await world.calls.sync_message_root(at)).value == world.root(131)
            agreed = await world.calls.attestation_data_by_quorum(at)
            assert agreed.answer.value.beacon_block_root == world.root(131)
        if polled:
            latest = world.calls.heads.latest.value
            assert latest is not None
            assert latest.slot == Slot(131)
