"""Subscribers, the watch of the latest head, and waiting for a slot (C8–C10, scenario 38)."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.acceptance.harness import Followed, monitor
from vc_fallback.base.buffered import OnFull
from vc_fallback.base.errors import SubscriptionClosed
from vc_fallback.base.signals import Signal
from vc_fallback.base.types import Slot
from vc_fallback.base.watch import WatchClosed
from vc_fallback.decide.delivery import Delivered
from vc_fallback.heads.subscription import Subscription
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


async def read_all(subscription: Subscription, into: list[tuple[float, int]]) -> None:
    """Read for ever and note when each slot's head came."""
    async for delivered in subscription:
        if not into or into[-1][1] != delivered.head.slot:
            into.append((anyio.current_time(), delivered.head.slot))


def drain(subscription: Subscription) -> list[int]:
    """Read what waits, one entry for each block."""
    slots: list[int] = []
    while (delivered := subscription.receive_nowait()) is not None:
        if not slots or slots[-1] != delivered.head.slot:
            slots.append(delivered.head.slot)
    return slots


# C8: subscribers.


async def test_a_subscriber_that_never_reads_costs_nobody_else_anything() -> None:
    """Scenario 38, C8, rule 7: others get everything at once; its drops are counted, the newest heads are kept."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        await followed.until(129.5)
        sleeper = followed.monitor.subscribe(buffer=4)
        readers: list[list[tuple[float, int]]] = [[] for _ in range(20)]
        async with anyio.create_task_group() as tasks:
            for read in readers:
                tasks.start_soon(read_all, followed.monitor.subscribe(buffer=1), read)
            await followed.until(150.5)
            tasks.cancel_scope.cancel()
        expected = [(net.chain.block_arrival(slot), slot) for slot in range(130, 151)]
        assert readers == [expected] * 20
        assert sleeper.statistics().dropped == 21 - 4
        assert sleeper.statistics().waiting == 4
        assert drain(sleeper) == [147, 148, 149, 150]
        assert sleeper.close_reason is None
        followed.assert_every_slot_delivered(129, 150)


async def test_a_full_buffer_can_close_the_subscription() -> None:
    """C8: `close` with a `close_reason`; what was in the buffer can still be read, in order."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        await followed.until(129.5)
        subscription = followed.monitor.subscribe(buffer=3, on_full="close")
        await followed.until(140.5)
        assert subscription.close_reason == "buffer full"
        assert [(await subscription.receive()).head.slot for _ in range(3)] == [130, 131, 132]
        with pytest.raises(SubscriptionClosed, match="buffer full"):
            await subscription.receive()
        with pytest.raises(SubscriptionClosed, match="buffer full"):
            async for _ in subscription:
                pass
        assert subscription.statistics().dropped == 1


async def test_a_newcomer_can_begin_with_the_present_head() -> None:
    """C8: `replay_latest`; without it the next head is the first."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        early = followed.monitor.subscribe(replay_latest=True)
        await followed.until(130.5)
        with_latest = followed.monitor.subscribe(replay_latest=True)
        without = followed.monitor.subscribe()
        assert drain(with_latest) == [130]
        assert drain(without) == []
        await followed.until(131.5)
        assert drain(with_latest) == drain(without) == [131]
        assert drain(early)[-3:] == [129, 130, 131]


@pytest.mark.parametrize("on_full", ["drop_oldest", "close"])
@pytest.mark.parametrize("buffer", [0, -1])
async def test_a_buffer_holds_one_head_at_least(buffer: int, on_full: OnFull) -> None:
    """Rule 6: a bound of nothing is refused where it is given, and not met by the heads of a node."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        with pytest.raises(ValueError, match="buffer"):
            followed.monitor.subscribe(buffer=buffer, on_full=on_full)
        await followed.until(130.5)
        followed.assert_every_slot_delivered(128, 130)


async def test_a_cancelled_read_loses_no_head() -> None:
    """C8: time-outs of any length around each read, and each head is read once."""
    async with simulated_devnet(1, slot_duration=1) as net, monitor(net) as followed:
        await followed.until(129.5)
        subscription = followed.monitor.subscribe()
        slots = []
        for number in range(400):
            with anyio.move_on_after((number % 7) / 20 + 1 / 12 * (number % 3)):
                slots.append((await subscription.receive()).head.slot)
        assert slots == list(range(130, 130 + len(slots)))
        assert len(slots) > 50


async def test_a_subscription_ends_with_its_block_and_with_the_monitor() -> None:
    """C8: iteration ends; a later read says why."""
    async with simulated_devnet(1) as net:
        async with monitor(net) as followed:
            await followed.until(129.5)
            async with followed.monitor.subscribe() as inner:
                await followed.until(131.5)
            await followed.until(133.5)
            slots = {delivered.head.slot async for delivered in inner}
            assert slots == {130, 131}
            with pytest.raises(SubscriptionClosed):
                await inner.receive()
            outer = followed.monitor.subscribe()
            await followed.until(134.5)
        assert drain(outer) == [134]
        assert [delivered async for delivered in outer] == []
        with pytest.raises(RuntimeError):
            followed.monitor.subscribe()


async def test_one_subscription_can_be_read_by_several_tasks() -> None:
    """C8: each head goes to one of them, none waits for ever."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        await followed.until(129.5)
        subscription = followed.monitor.subscribe()
        taken: list[list[tuple[float, int]]] = [[], [], []]
        async with anyio.create_task_group() as tasks:
            for read in taken:
                tasks.start_soon(read_all, subscription, read)
            await followed.until(140.5)
            subscription.close()
        assert sorted(slot for read in taken for _, slot in read) == list(range(130, 141))


async def test_observers_that_raise_are_logged_and_cost_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Design, "signals": an observer that raises on everything."""

    def broken(signal: Signal) -> None:
        raise RuntimeError("an observer's own mistake")

    async with simulated_devnet(1) as net, monitor(net, observers=[broken], mistakes_of_others=True) as followed:
        await followed.until(131.5)
        followed.assert_every_slot_delivered(128, 131)
        assert "an observer's own mistake" in caplog.text


# C9: the watch.


async def test_the_watch_holds_the_newest_head_and_counts_up() -> None:
    """C9: a waiter that was away sees the newest value only, one that waits misses none; the version counts all."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        latest = followed.monitor.latest
        seen: list[int] = []
        slow: list[int] = []

        async def follow(into: list[int], pause: float) -> None:
            watcher = latest.watcher(seen=False)
            while True:
                value = await watcher.wait()
                if value is not None and into[-1:] != [value.head.slot]:
                    into.append(value.head.slot)
                await anyio.sleep(pause)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, seen, 0.0)
            tasks.start_soon(follow, slow, 40.0)
            await followed.until(139.5)
            tasks.cancel_scope.cancel()
        assert seen[-11:] == list(range(129, 140))
        assert slow == [131, 134, 137]
        assert latest.version == len(followed.deliveries())
        assert latest.value is not None
        assert latest.value.head.slot == 139


async def test_three_hundred_waiters_wake_with_the_head() -> None:
    """C9: all of them at the moment of its coming; those that are cancelled take nothing from the others."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        await followed.until(129.5)
        woken: list[float] = []

        async def wait(limit: float) -> None:
            watcher = followed.monitor.latest.watcher()
            with anyio.move_on_after(limit):
                await watcher.wait()
                woken.append(anyio.current_time())

        async with anyio.create_task_group() as tasks:
            for number in range(400):
                tasks.start_soon(wait, 2.0 if number % 4 == 0 else 60.0)
        assert woken == [net.chain.block_arrival(130)] * 300


# C10: waiting for a slot.


async def answers(*waits: Callable[[], Awaitable[object]]) -> list[tuple[float, object]]:
    """Run waits side by side and return when each was over, and with what."""
    found: list[tuple[float, object]] = [(0.0, None)] * len(waits)

    async def run(number: int, wait: Callable[[], Awaitable[object]]) -> None:
        result = await wait()
        found[number] = (anyio.current_time(), result)

    async with anyio.create_task_group() as tasks:
        for number, wait in enumerate(waits):
            tasks.start_soon(run, number, wait)
    return found


def waiting(followed: Followed, slot: int, deadline: float, min_nodes: int = 1) -> Callable[[], Awaitable[object]]:
    """Return a wait for a slot until a position, which returns the head's slot, whether it is later, and its voters."""

    async def wait() -> object:
        at = followed.slots.start_of(Slot(0)) + deadline * followed.slots.duration
        head = await followed.monitor.wait_for_slot(Slot(slot), at, min_nodes)
        return None if head is None else (head.head.head.slot, head.later, len(head.head.seen_by))

    return wait


async def test_waiting_for_a_slot() -> None:
    """C10: the head of that slot at its coming; a later one, marked, where there is none; `None` at the deadline."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        net.chain.miss(132)
        await followed.until(130.5)
        found = await answers(
            waiting(followed, 131, 131.5),
            waiting(followed, 132, 132.5),
            waiting(followed, 132, 134.5),
            waiting(followed, 130, 130.9),
            waiting(followed, 128, 130.9),
            waiting(followed, 130, 130.1),
            waiting(followed, 135, 120.0),
        )
        times = [round(followed.position(at), 3) for at, _ in found]
        assert [answer for _, answer in found] == [
            (131, False, 1),
            None,
            (133, True, 1),
            (130, False, 1),
            (130, True, 1),
            (130, False, 1),
            None,
        ]
        assert times == [131.083, 132.5, 133.083, 130.5, 130.5, 130.5, 130.5]


async def test_waiting_for_several_nodes() -> None:
    """C10: `min_nodes` nodes have shown the head, whichever they are; a lone one is not enough at the deadline."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        net[1].state.head_delay = 2.0
        net[2].state.head_delay = 4.0
        await followed.until(130.9)
        found = await answers(
            waiting(followed, 131, 131.9),
            waiting(followed, 131, 131.9, 2),
            waiting(followed, 131, 131.9, 3),
            waiting(followed, 131, 131.9, 4),
        )
        assert [round(followed.position(at), 3) for at, _ in found] == [131.083, 131.25, 131.417, 131.9]
        # How many of them there are is read after all of them came.
        assert [answer is not None for _, answer in found] == [True, True, True, False]


async def test_waiting_without_a_node_ends_at_the_deadline() -> None:
    """C10, G6: nobody has said anything yet."""
    async with simulated_devnet(1) as net:
        net[0].refuse()
        async with monitor(net) as followed:
            found = await answers(waiting(followed, 129, 129.5))
            assert found == [(18.0, None)]


async def test_a_wait_ends_with_the_monitor() -> None:
    """C10: nobody waits for what cannot come any more."""
    async with simulated_devnet(1) as net:
        ended: list[float] = []

        async def wait() -> None:
            try:
                await followed.monitor.wait_for_slot(Slot(200), 1e9)
            except WatchClosed:
                ended.append(anyio.current_time())

        async def watch() -> None:
            watcher = followed.monitor.latest.watcher()
            try:
                while True:
                    head: Delivered | None = await watcher.wait()
                    assert head is not None
            except WatchClosed:
                ended.append(anyio.current_time())

        async with anyio.create_task_group() as tasks, monitor(net) as followed:
            tasks.start_soon(wait)
            tasks.start_soon(watch)
            await followed.until(131.5)
        assert len(ended) == 2
