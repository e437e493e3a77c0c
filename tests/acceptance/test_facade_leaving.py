"""Calls of other tasks when a facade is left: they end, with a clear error, at once (design, "Public face"; rule 5)."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.acceptance.embedding import close_slowly, config_of, nothing_left
from tests.acceptance.facade import CALLS, VERSION, A, B, version
from vc_fallback.base.errors import FallbackError
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.routing.outcomes import AllNodesFailed
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
async def test_calls_under_way_in_other_tasks_end_when_it_is_left(
    call: Callable[[BeaconNodeFallback], Awaitable[Any]],
) -> None:
    """They end with a clear error, at that moment; nothing hangs, and nothing is left."""
    async with simulated_devnet(2) as net, nothing_left(net):
        ended: list[object] = []
        started, over = anyio.Event(), anyio.Event()
        nodes = BeaconNodeFallback(config_of(net), clock=net.clock)

        async def outside() -> None:
            await started.wait()
            try:
                ended.append(await call(nodes))
            except Exception as error:  # noqa: BLE001 - it is looked at
                ended.append(error)
            over.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outside)
            await anyio.sleep(0.1)
            async with nodes:
                await nodes.wait_ready(2, timeout=30)
                for node in net:
                    node.hang("/eth/v*/validator/*")
                    node.hang("/eth/v*/beacon/pool/*")
                    node.hang("/eth/v1/beacon/genesis")
                    node.hang(VERSION)
                started.set()
                await anyio.sleep(0.2)
                left = anyio.current_time()
            await over.wait()
            assert anyio.current_time() - left < 0.1
        (end,) = ended
        if isinstance(end, Exception):
            assert any(words in str(end) for words in ("the nodes were left", "the program ends", "closed")), end
            assert isinstance(end, (RuntimeError, FallbackError)), end
        else:
            assert "given up" in str(end) or "before it began" in str(end) or "the program ends" in str(end)


async def test_calls_do_not_wait_for_streams_that_close_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving waits for everything; a call in another task ends at once, and so does one that is made meanwhile."""
    close_slowly(monkeypatch)
    async with simulated_devnet(2) as net, nothing_left(net):
        nodes = BeaconNodeFallback(config_of(net), clock=net.clock)
        ends: list[float] = []

        async def ask(after: float) -> None:
            await anyio.sleep(after)
            with pytest.raises(AllNodesFailed, match="bn1: the nodes were left"):
                await nodes.first_success(version, prefer=A)
            ends.append(anyio.current_time())

        async with anyio.create_task_group() as tasks:
            async with nodes:
                await nodes.wait_ready(2, timeout=30)
                for node in net:
                    node.hang(VERSION)
                tasks.start_soon(ask, 0.0)
                tasks.start_soon(ask, 1.3)
                await anyio.sleep(1)
                left = anyio.current_time()
            assert anyio.current_time() - left == pytest.approx(0.8)
        assert ends == [pytest.approx(left), pytest.approx(left + 0.3)]


async def test_a_call_that_is_made_while_it_is_left() -> None:
    """It has its answer, or the error; whichever, at once."""
    async with simulated_devnet(2, latency=0.01) as net, nothing_left(net):
        ends: list[object] = []
        nodes = BeaconNodeFallback(config_of(net), clock=net.clock)

        async def ask() -> None:
            with anyio.CancelScope(shield=True):
                while True:
                    try:
                        ends.append((await nodes.first_success(version)).node_id)
                    except Exception as error:  # noqa: BLE001 - it is looked at
                        ends.append(error)
                        return

        async with anyio.create_task_group() as tasks, nodes:
            await nodes.wait_ready(2, timeout=30)
            for _ in range(5):
                tasks.start_soon(ask)
            await anyio.sleep(0.055)
        errors = [end for end in ends if isinstance(end, Exception)]
        assert len(errors) == 5
        assert all(isinstance(error, (RuntimeError, AllNodesFailed)) for error in errors), errors


async def test_calls_from_tasks_that_were_there_before_and_that_outlive_it() -> None:
    """The facade belongs to no task: whoever has it calls it."""
    async with simulated_devnet(3) as net, nothing_left(net):
        net[0].hang(VERSION)
        nodes = BeaconNodeFallback(config_of(net), clock=net.clock)
        entered, left = anyio.Event(), anyio.Event()
        answers: list[object] = []

        async def before_and_after() -> None:
            await entered.wait()
            answers.append((await nodes.first_success(version)).node_id)
            await left.wait()
            with pytest.raises(RuntimeError):
                await nodes.first_success(version)

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(before_and_after)
            await anyio.sleep(1)
            async with nodes:
                await nodes.wait_ready(3, timeout=30)
                entered.set()
                while len(answers) < 10:  # noqa: ASYNC110
                    await anyio.sleep(0.1)
            left.set()
        assert answers == [B] * 10
