"""Nodes that are slow with attestation data alone: others are faster, so nobody waits for them (N3, Q2, case 27)."""

import anyio
import pytest

from tests.acceptance.facade import A, B, Held, holding
from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.base.types import Slot
from vc_fallback.testing import Delay, Hang, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

ATTESTATION_DATA = "/eth/v1/validator/attestation_data"


async def attest(held: Held, slots: int, *, at: float = 0.4) -> list[float]:
    """Ask for attestation data in each of so many slots, for the head that A announced; return how long it took."""
    took = []
    first = held.slot + 1
    for slot in range(first, first + slots):
        await held.until(slot + at)
        began = anyio.current_time()
        head = held.monitor.latest.value
        assert head is not None
        await held.calls.attestation_data(Slot(slot), head=head)
        took.append(anyio.current_time() - began)
    return took


def first_of_all(node: SimulatedNode) -> float:
    """Let other nodes hear of blocks later, so that the head is this one's."""
    return 0.0 if node.name == "bn1" else 0.2


async def test_a_node_that_hangs_with_attestation_data_becomes_known_as_slow() -> None:
    """N3: its checks are good all the time, and it only ever loses hedges; after some slots its duties move."""
    async with simulated_devnet(2) as net:
        for node in net:
            node.state.head_delay = first_of_all(node)
        async with holding(net) as held:
            await held.until(130.2)
            net[0].inject(ATTESTATION_DATA, Hang())
            took = await attest(held, 8)
            # Each call is answered, after the delay of the hedge at most, until the node is known.
            assert max(took) == pytest.approx(0.5, abs=0.02)
            assert took[-1] == 0
            verdict = held.health(net[0])
            assert verdict.state is not HealthState.HEALTHY
            assert verdict.reason is HealthReason.SLOW
            assert verdict.duty_latency is not None
            assert verdict.duty_latency > 3
            assert held.calls.plan().nodes[0] == B
            assert [move[2] for move in held.moves()] == ["bn2"]
            await held.until(held.slot + 2)
            await held.assert_idle()


async def test_it_is_asked_to_the_end_one_at_a_time() -> None:
    """Sixty-four committees ask in one slot: the slow node is not asked twice as often for it."""
    async with simulated_devnet(2) as net:
        for node in net:
            node.state.head_delay = first_of_all(node)
        async with holding(net) as held:
            await held.until(130.4)
            net[0].inject(ATTESTATION_DATA, Hang())
            head = held.monitor.latest.value
            assert head is not None

            async def ask() -> None:
                await held.calls.attestation_data(Slot(130), head=head)

            async with anyio.create_task_group() as tasks:
                for _ in range(64):
                    tasks.start_soon(ask)
            assert held.asked(net[0], ATTESTATION_DATA) == 64 + 1
            assert held.tasks() == 1
            assert held.asked(net[1], ATTESTATION_DATA) == 64
            await anyio.sleep(4)
            await held.assert_idle()
            assert held.health(net[0]).suspect == "" or "no answer within" in held.health(net[0]).suspect


async def test_a_hiccup_costs_no_further_request() -> None:
    """Once is not outrun: the node is asked again only when others were faster twice in a row."""
    async with simulated_devnet(2) as net:
        for node in net:
            node.state.head_delay = first_of_all(node)
        async with holding(net) as held:
            await held.until(130.2)
            for _ in range(3):
                net[0].inject(ATTESTATION_DATA, Delay(1.0), times=1)
                assert await attest(held, 1) == [0.5]
                assert await attest(held, 1) == [0]
            assert held.asked(net[0], ATTESTATION_DATA) == 6
            assert held.health(net[0]).state is HealthState.HEALTHY


async def test_a_node_that_is_slow_and_not_too_slow_stays_healthy() -> None:
    """N3: its latency is known as it is, a second, which is below the limit of a quarter of a slot."""
    async with simulated_devnet(2) as net:
        for node in net:
            node.state.head_delay = first_of_all(node)
        async with holding(net) as held:
            await held.until(130.2)
            net[0].inject(ATTESTATION_DATA, Delay(1.0))
            await attest(held, 8)
            verdict = held.health(net[0])
            assert verdict.state is HealthState.HEALTHY
            assert verdict.duty_latency == pytest.approx(1.0)
            assert not held.moves()


async def test_switched_off_with_the_limit() -> None:
    """N3: who does not want to know what is slow asks nobody for it."""
    async with simulated_devnet(2) as net:
        for node in net:
            node.state.head_delay = first_of_all(node)
        async with holding(net, health={"slow": False}) as held:
            await held.until(130.2)
            net[0].inject(ATTESTATION_DATA, Hang())
            await attest(held, 4)
            assert held.asked(net[0], ATTESTATION_DATA) == 4
            assert held.health(net[0]).state is HealthState.HEALTHY


async def test_a_long_wait_that_its_caller_gave_up_counts() -> None:
    """Q2: a validator client that gives up after four seconds has waited long enough to know."""
    async with simulated_devnet(1) as net, holding(net) as held:
        net[0].inject(ATTESTATION_DATA, Hang())
        for slot in (130, 131, 132):
            await held.until(slot + 0.4)
            with anyio.move_on_after(4):
                await held.calls.attestation_data(Slot(slot))
        verdict = held.health(net[0])
        assert verdict.reason is HealthReason.SLOW
        assert verdict.duty_latency == pytest.approx(4)
        assert held.calls.plan().nodes == (A,)
