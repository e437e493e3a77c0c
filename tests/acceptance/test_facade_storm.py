"""Scenario 45 through the facade: a thousand calls are cancelled at random points, on real sockets and in real time."""

import asyncio
import contextlib
import gc
import random
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.acceptance.embedding import config_of, descriptors, tasks_now
from tests.acceptance.facade import Held, version
from vc_fallback.base.errors import FallbackError
from vc_fallback.base.types import Epoch, NodeId, Slot
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.testing import Cut, Delay, SimulatedDevnet, simulated_devnet

pytestmark = pytest.mark.anyio

COUNT = 1000
AT_ONCE = 20


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Real time: what is cancelled is in every state that a socket knows."""
    return request.param, {}


Call = Callable[[], Awaitable[Any]]


def calls_of(nodes: BeaconNodeFallback, slot: Slot) -> list[Call]:
    """Calls of each way to send; the deadlines are such that none ends by itself first."""
    end = nodes.clock.now() + 60
    message = [Encodings(json=b'{"slot":"1"}')]
    return [
        lambda: nodes.attestation_data(slot, deadline=end),
        lambda: nodes.first_success(version, next_after=0.001, deadline=end),
        lambda: nodes.first_success(version, prefer=NodeId("bn2"), next_after=0.002, deadline=end),
        lambda: nodes.attestation_data_by_quorum(slot, threshold=2, deadline=end),
        lambda: nodes.produce_block(slot, bytes(96), deadline=end),
        lambda: nodes.liveness(Epoch(3), [1, 2], deadline=end),
        lambda: nodes.publish_sync_committee_messages(message, deadline=end),
        lambda: nodes.attester_duties(Epoch(4), [1, 2, 3], deadline=end),
    ]


def trouble(net: SimulatedDevnet, chance: random.Random) -> None:
    """Let nodes be slow, fail and break off, each in its own way."""
    net[0].inject("/eth/v*", Delay(chance.uniform(0, 0.01)))
    net[0].inject("/eth/v1/node/version", Cut(after=10), times=100)
    net[1].inject("/eth/v1/validator/*", Delay(0.004))
    net[2].answer("/eth/v1/validator/liveness/*", 503, times=50)
    net[2].inject("/eth/v1/beacon/pool/*", Delay(0.005))


async def cancelled(call: Call, after: float, way: str) -> bool:
    """Make a call and cancel it; return whether it was cancelled."""
    if way == "scope":
        with anyio.move_on_after(after) as scope:
            await _made(call)
        return scope.cancelled_caught
    if way == "timeout":
        try:
            async with asyncio.timeout(after):
                await _made(call)
        except TimeoutError:
            return True
        return False
    task = asyncio.ensure_future(_made(call))
    await asyncio.sleep(after)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


async def _made(call: Call) -> None:
    with contextlib.suppress(FallbackError):  # nodes fail here
        await call()


@pytest.mark.timeout(300)
async def test_a_thousand_cancelled_calls_leave_nothing(anyio_backend_name: str) -> None:
    """No task, no socket, no slot of a client, no timer; the next call of each way works."""
    chance = random.Random(45)
    ways = ["scope"] if anyio_backend_name == "trio" else ["scope", "task", "timeout"]
    async with simulated_devnet(3, slot_duration=60.0) as net:
        await anyio.sleep(0.1)
        before = tasks_now(), descriptors()
        nodes = BeaconNodeFallback(config_of(net), clock=net.clock)
        async with nodes:
            await nodes.wait_ready(3, timeout=30)
            held = Held(net)
            held.calls = nodes
            assert nodes.slots is not None
            slot = nodes.slots.slot_at(nodes.clock.now())
            calls = calls_of(nodes, slot)
            for call in calls:
                await _made(call)
            trouble(net, chance)
            count = 0

            async def some() -> None:
                nonlocal count
                for _ in range(COUNT // AT_ONCE):
                    after = chance.uniform(0, chance.choice((0.0005, 0.005, 0.02)))
                    was = await cancelled(chance.choice(calls), after, chance.choice(ways))
                    count += was

            async with anyio.create_task_group() as tasks:
                for _ in range(AT_ONCE):
                    tasks.start_soon(some)
            assert count > COUNT * 0.3
            for node in net:
                node.heal()
            # Publishes that have begun run on to their answers (Q5).
            with anyio.fail_after(60):
                while held.tasks():  # noqa: ASYNC110
                    await anyio.sleep(0.02)
            await held.assert_idle()
            assert not nodes._runner.stragglers
            for call in (calls[0], calls[1], calls[3], calls[4], calls[7]):
                with anyio.fail_after(60):
                    await call()
            await held.assert_idle()
        with anyio.fail_after(60):
            while any(node.connections for node in net):  # noqa: ASYNC110
                await anyio.sleep(0.02)
        gc.collect()
        await anyio.sleep(0.1)
        assert (tasks_now(), descriptors()) == before
