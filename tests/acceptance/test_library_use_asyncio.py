"""The head monitor under asyncio's own cancellation: `task.cancel()`, `asyncio.timeout`, `asyncio.wait_for`."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.acceptance.embedding import OwnError, close_slowly, config_of, nothing_left
from tests.acceptance.generations import drain
from tests.acceptance.harness import monitor
from vc_fallback.base.signals import HeadDelivered, Signal
from vc_fallback.base.types import Slot
from vc_fallback.decide.delivery import Delivered
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.testing import simulated_devnet

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("virtual_time_backend", ["asyncio"], indirect=True)]

WAITS: dict[str, Callable[[HeadMonitor], Awaitable[object]]] = {
    "sleep": lambda heads: asyncio.sleep(3600),
    "receive": lambda heads: heads.subscribe().receive(),
    "wait_for_slot": lambda heads: heads.wait_for_slot(Slot(1000), deadline=3600),
    "watch": lambda heads: heads.latest.watcher().wait(),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=list(WAITS))
async def test_task_cancelled_in_its_block(wait: Callable[[HeadMonitor], Awaitable[object]]) -> None:
    """`task.cancel()` comes out as `CancelledError`, wherever the block waits, and leaves nothing behind."""
    async with simulated_devnet(2) as net, nothing_left(net):

        async def main() -> None:
            async with HeadMonitor(config_of(net), clock=net.clock) as heads:
                await asyncio.sleep(20)
                await wait(heads)

        task = asyncio.create_task(main())
        await asyncio.sleep(21)
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()


@pytest.mark.parametrize("after", [0.0, 0.001, 1.0, 20.0])
async def test_timeout_around_the_block(after: float) -> None:
    """`asyncio.timeout` and `asyncio.wait_for` give their `TimeoutError`, and the task is not marked as cancelled."""
    async with simulated_devnet(2) as net, nothing_left(net):

        async def main() -> None:
            async with HeadMonitor(config_of(net), clock=net.clock):
                await asyncio.sleep(3600)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(after):
                await main()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(main(), after)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(1)


async def test_timeouts_around_reads() -> None:
    """A read that times out loses no head, and the monitor goes on."""
    async with simulated_devnet(2) as net, monitor(net) as followed, followed.monitor.subscribe() as heads:
        await followed.until(128.5)
        drain(heads)
        read: list[int] = []
        while followed.now < 136.5:
            for reader in (_within, asyncio.wait_for):
                try:
                    read.append((await reader(heads.receive(), 0.37)).head.slot)
                except TimeoutError:
                    continue
        assert list(dict.fromkeys(read)) == list(range(129, 137))
        assert len(read) == len(followed.deliveries(since=128.6))


async def _within(read: Awaitable[Delivered], seconds: float) -> Delivered:
    async with asyncio.timeout(seconds):
        return await read


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
async def test_read_cancelled_at_the_very_moment_of_a_head(turns: int) -> None:
    """C8: cancelled so many turns of the loop after the head was handed to the buffer: it was read, or it is there."""
    read: list[int] = []

    def cancel_reader(signal: Signal) -> None:
        if isinstance(signal, HeadDelivered) and signal.slot == 130:
            later(turns)

    def later(rest: int) -> None:
        if rest:
            asyncio.get_running_loop().call_soon(later, rest - 1)
        else:
            task.cancel()

    async with (
        simulated_devnet(1) as net,
        monitor(net, observers=[cancel_reader]) as followed,
        followed.monitor.subscribe() as heads,
    ):
        await followed.until(129.5)
        drain(heads)

        async def reader() -> None:
            while True:
                read.append((await heads.receive()).head.slot)

        task = asyncio.create_task(reader())
        await followed.until(131.5)
        assert task.cancelled()
        read += [head.slot for head in drain(heads)]
        assert list(dict.fromkeys(read)) == [130, 131]


async def test_block_that_swallows_its_cancellation_ends_normally(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that tidies up when it is cancelled, and goes on, is not cancelled again by leaving the monitor."""
    close_slowly(monkeypatch)
    async with simulated_devnet(2) as net, nothing_left(net):
        done = False

        async def main() -> str:
            nonlocal done
            async with HeadMonitor(config_of(net), clock=net.clock):
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    await asyncio.sleep(1)
                    done = True
            return "tidied up"

        task = asyncio.create_task(main())
        await asyncio.sleep(20)
        task.cancel()
        assert await task == "tidied up"
        assert done


async def test_error_in_the_place_of_a_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that answers its cancellation with an error of its own: that error leaves, unchanged."""
    close_slowly(monkeypatch)
    async with simulated_devnet(2) as net, nothing_left(net):
        error = OwnError()

        async def main() -> None:
            async with HeadMonitor(config_of(net), clock=net.clock):
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    raise error from None

        task = asyncio.create_task(main())
        await asyncio.sleep(20)
        task.cancel()
        with pytest.raises(OwnError) as caught:
            await task
        assert caught.value is error


async def test_cancelled_while_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 5: a cancellation during the end waits for the tasks all the same, and comes out then."""
    close_slowly(monkeypatch)
    async with simulated_devnet(2) as net, nothing_left(net):

        async def main() -> None:
            async with HeadMonitor(config_of(net), clock=net.clock):
                await asyncio.sleep(20)

        started = anyio.current_time()
        task = asyncio.create_task(main())
        await asyncio.sleep(20.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert anyio.current_time() == pytest.approx(started + 20.8)


async def test_tasks_of_asyncio_beside_it() -> None:
    """Plain asyncio tasks and a `TaskGroup` of asyncio around and within the block."""
    async with simulated_devnet(2) as net, nothing_left(net):
        slots: list[int] = []

        async def reader(heads: HeadMonitor) -> None:
            async with heads.subscribe() as subscription:
                async for delivered in subscription:
                    slots.append(delivered.head.slot)  # noqa: PERF401 - read one by one

        async with asyncio.TaskGroup() as around, HeadMonitor(config_of(net), clock=net.clock) as heads:
            around.create_task(reader(heads))
            async with asyncio.TaskGroup() as within:
                waited = within.create_task(heads.wait_for_slot(Slot(130), deadline=3600))
            assert (found := waited.result()) is not None
            assert found.head.head.slot == 130
        assert slots[-1] == 130
