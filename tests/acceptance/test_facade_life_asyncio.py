"""The facade under asyncio's own cancellation: `task.cancel()`, `asyncio.timeout`, `asyncio.wait_for`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.acceptance.embedding import OwnError, config_of, nothing_left
from tests.acceptance.facade import CALLS, VERSION, A, B, holding, version
from vc_fallback.base.types import NodeId
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.node.client import BeaconNode
from vc_fallback.testing import SimulatedDevnet, simulated_devnet

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("virtual_time_backend", ["asyncio"], indirect=True)]

WAITING = {name: call for name, call in CALLS.items() if name != "preparation"}


def hang(net: SimulatedDevnet) -> None:
    for node in net:
        for path in ("/eth/v*/validator/*", "/eth/v*/beacon/pool/*", "/eth/v1/beacon/genesis", VERSION):
            node.hang(path)


@pytest.mark.parametrize("call", WAITING.values(), ids=list(WAITING))
async def test_a_block_is_cancelled_within_a_call(call: Callable[[BeaconNodeFallback], Awaitable[Any]]) -> None:
    """`task.cancel()` comes out as `CancelledError`, wherever the block waits, and leaves nothing behind."""
    async with simulated_devnet(3) as net, nothing_left(net):

        async def main() -> None:
            async with BeaconNodeFallback(config_of(net), clock=net.clock) as nodes:
                await nodes.wait_ready(3, timeout=30)
                hang(net)
                await call(nodes)

        task = asyncio.create_task(main())
        await asyncio.sleep(2)
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()


@pytest.mark.parametrize("call", WAITING.values(), ids=list(WAITING))
async def test_a_call_is_cancelled_in_every_way(call: Callable[[BeaconNodeFallback], Awaitable[Any]]) -> None:
    """`asyncio.timeout` and `wait_for` give their `TimeoutError`; nothing of the call is left, the next one works."""
    async with simulated_devnet(3) as net, holding(net) as held:
        await held.until(131.2)
        hang(net)
        nodes = held.calls
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await call(nodes)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call(nodes), 0.9)
        task = asyncio.ensure_future(call(nodes))
        await asyncio.sleep(0.8)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        own = asyncio.current_task()
        assert own is not None
        assert own.cancelling() == 0
        for node in net:
            node.heal()
        if held.tasks():
            # Publishes that have begun run on, bounded by their own time (Q5); nothing else does.
            assert call is CALLS["broadcast"]
            await held.until(132)
        await held.assert_idle()
        assert await held.version()


@pytest.mark.parametrize("after", [0.0, 0.001, 0.5, 20.0])
async def test_a_timeout_around_the_block(after: float) -> None:
    """Whether it is entered yet, or not."""
    async with simulated_devnet(2) as net, nothing_left(net):

        async def main() -> None:
            async with BeaconNodeFallback(config_of(net), clock=net.clock) as nodes:
                await nodes.wait_ready(99)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(after):
                await main()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(main(), after)
        await asyncio.sleep(1)


async def test_an_operation_that_is_cancelled_by_itself() -> None:
    """What an operation awaits is cancelled natively, the call is not: it comes out, as any exception does."""
    async with simulated_devnet(2) as net, holding(net) as held:
        inner = asyncio.get_running_loop().create_future()

        async def op(node: BeaconNode) -> object:
            if node.node_id == A:
                await asyncio.sleep(0.1)
                inner.cancel()
            return await inner

        task = asyncio.ensure_future(held.calls.first_success(op, prefer=A))
        await asyncio.sleep(1)
        with pytest.raises(asyncio.CancelledError):
            await task
        own = asyncio.current_task()
        assert own is not None
        assert own.cancelling() == 0
        await held.assert_idle()
        assert await held.version()


async def test_an_operation_that_is_cancelled_by_itself_beside() -> None:
    """The same in the second attempt, which another task runs; the first, that hangs, is ended with it."""
    async with simulated_devnet(2) as net, holding(net) as held:
        await held.until(130.2)
        ended: list[NodeId] = []

        async def op(node: BeaconNode) -> object:
            try:
                if node.node_id == A:
                    await asyncio.sleep(3600)
                future = asyncio.get_running_loop().create_future()
                future.cancel()
                return await future
            finally:
                ended.append(node.node_id)

        with pytest.raises(asyncio.CancelledError):
            await held.calls.first_success(op, prefer=A, next_after=0.1)
        assert sorted(ended) == [A, B]
        await held.assert_idle()


async def test_calls_within_a_task_group_of_asyncio() -> None:
    """Its errors cancel the calls beside, natively, and reach the program as they are; the facade is left as usual."""
    async with simulated_devnet(2) as net, nothing_left(net):
        done = False

        async def fail() -> None:
            await asyncio.sleep(0.7)
            raise OwnError

        async def main() -> None:
            nonlocal done
            async with BeaconNodeFallback(config_of(net), clock=net.clock) as nodes:
                await nodes.wait_ready(2, timeout=30)
                hang(net)
                try:
                    async with asyncio.TaskGroup() as tasks:
                        for _ in range(5):
                            tasks.create_task(_made(nodes.first_success(version)))
                        tasks.create_task(fail())
                except* OwnError:
                    # Python 3.11 leaves the task marked as cancelled here (cancelling() is 1).
                    await asyncio.sleep(1)
            done = True

        await asyncio.create_task(main())
        assert done


async def _made(call: Awaitable[object]) -> None:
    await call


async def test_cancelled_again_and_again_while_a_loser_tidies_up() -> None:
    """Rule 5: an operation that tidies up when it is cancelled is waited for, however often its caller is cancelled."""
    async with simulated_devnet(2) as net, holding(net) as held:
        await held.until(130.2)
        tidied: list[NodeId] = []

        async def op(node: BeaconNode) -> object:
            try:
                await asyncio.sleep(3600)
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(0.5)
                tidied.append(node.node_id)
            return node

        task = asyncio.ensure_future(held.calls.first_success(op, prefer=A, next_after=0.1))
        await asyncio.sleep(0.3)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.1)
        with pytest.raises(asyncio.CancelledError):
            await task
        # The attempt in its caller's own task is cut short by the second cancellation, which is for that task.
        assert tidied == [B]
        await held.assert_idle()
