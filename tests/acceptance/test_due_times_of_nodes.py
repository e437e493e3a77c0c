"""Due times of a network that is configured come from its nodes (I1, I2, case 33)."""

import pytest

from tests.acceptance.duties_world import held
from tests.acceptance.harness import Followed, monitor
from vc_fallback.base.types import Slot
from vc_fallback.testing import Delay, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

SPEC = "/eth/v1/config/spec"


def due(world: Followed, slot: int) -> float:
    """Return how many seconds into its slot an attestation is due."""
    slots = world.monitor.slots
    assert slots is not None
    return slots.attestation_due(Slot(slot)) - slots.start_of(Slot(slot))


def say(node: SimulatedNode, bps: int) -> None:
    node.override(SPEC, ATTESTATION_DUE_BPS=str(bps))


async def test_a_configured_network_takes_its_due_times_from_the_first_node_that_has_any() -> None:
    """I2: in the order of the list, whoever answers first; the configuration names none."""
    async with simulated_devnet(3) as net:
        for node, bps in zip(net, (2000, 3000, 4000), strict=True):
            say(node, bps)
        net[0].hang(SPEC, times=1)
        net[2].inject(SPEC, Delay(0.1))
        async with held(net) as world:
            assert due(world, 130) == pytest.approx(3.9996)
            await world.settled()
            # The second was first; that the first has others later moves nothing any more.
            assert due(world, 130) == pytest.approx(3.6)
            await world.until(135.5)
            assert due(world, 136) == pytest.approx(3.6)


async def test_a_node_on_another_chain_says_nothing_of_due_times() -> None:
    """N7."""
    async with simulated_devnet(2) as net:
        for node, bps in zip(net, (2000, 4000), strict=True):
            say(node, bps)
        net[0].override("/eth/v1/beacon/genesis", genesis_validators_root="0x" + "ab" * 32)
        async with held(net) as world:
            await world.until(129.5)
            assert world.calls.heads.ranking() == ("bn2",)
            assert due(world, 130) == pytest.approx(4.8)


async def test_a_fork_that_nodes_schedule_later_brings_its_due_times() -> None:
    """I1, I2: nodes are updated while we run; by the slot's own fork, not by which keys are there."""
    async with simulated_devnet(2, gloas_epoch=5) as net, held(net) as world:
        assert due(world, 160) == pytest.approx(3.9996)
        await world.settled()
        assert [due(world, slot) for slot in (159, 160)] == pytest.approx([3.9996, 3.0])


async def test_a_chain_that_the_nodes_agree_on_has_their_due_times() -> None:
    """I1: with nothing configured."""
    async with simulated_devnet(2) as net:
        for node in net:
            say(node, 2500)
        async with monitor(net) as followed:
            await followed.until(129.5)
            assert due(followed, 130) == pytest.approx(3.0)
