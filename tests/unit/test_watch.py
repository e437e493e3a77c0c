"""The watch: newest value wins, no wake-up is lost, a cancelled wait loses nothing (C9, G1, G4)."""

import itertools

import anyio
import anyio.lowlevel
import pytest

from vc_fallback.base.watch import Watch, WatchClosed, Watcher
from vc_fallback.testing.virtual_time import real_time

pytestmark = pytest.mark.anyio


async def settle() -> None:
    """Let every task run that can."""
    for _ in range(5):
        await anyio.lowlevel.checkpoint()


def test_setting_counts_the_version_up_also_when_nobody_watches() -> None:
    """C9, G1: needs no event loop."""
    watch = Watch("a")
    assert (watch.value, watch.version, watch.closed) == ("a", 0, False)
    watch.set("b")
    watch.set("b")
    assert (watch.value, watch.version) == ("b", 2)


async def test_a_waiter_gets_the_next_value() -> None:
    """C9."""
    watch = Watch(0)
    watcher = watch.watcher()
    assert not watcher.changed
    async with anyio.create_task_group() as tasks:
        got: list[int] = []

        async def wait() -> None:
            got.append(await watcher.wait())

        tasks.start_soon(wait)
        await settle()
        assert got == []
        watch.set(1)
    assert got == [1]


async def test_a_slow_waiter_sees_the_newest_value_only() -> None:
    """C9: newest value wins."""
    watch = Watch(0)
    watcher = watch.watcher()
    for value in (1, 2, 3):
        watch.set(value)
    assert await watcher.wait() == 3
    assert not watcher.changed


async def test_a_value_set_between_waking_and_running_is_the_one_that_is_returned() -> None:
    """C9: two sets before the woken waiter runs."""
    watch = Watch(0)
    watcher = watch.watcher()
    async with anyio.create_task_group() as tasks:
        got: list[int] = []

        async def wait() -> None:
            got.append(await watcher.wait())
            got.append(await watcher.wait())

        tasks.start_soon(wait)
        await settle()
        watch.set(1)
        watch.set(2)
        await settle()
        assert got == [2]
        watch.set(3)
    assert got == [2, 3]


async def test_no_wake_up_is_lost_between_two_waits() -> None:
    """C9: what is set while the waiter is busy ends its next wait at once."""
    watch = Watch(0)
    watcher = watch.watcher()
    watch.set(1)
    assert await watcher.wait() == 1
    watch.set(2)
    with anyio.fail_after(1):
        assert await watcher.wait() == 2


async def test_a_newcomer_may_ask_for_the_present_value_first() -> None:
    """C8: `seen=False` answers the first wait at once, whatever the version."""
    watch = Watch("a")
    assert await watch.watcher(seen=False).wait() == "a"
    watch.set("b")
    watcher = watch.watcher(seen=False)
    assert await watcher.wait() == "b"
    with anyio.move_on_after(0.01) as scope:
        await watcher.wait()
    assert scope.cancelled_caught


@pytest.mark.parametrize("turns", range(4))
async def test_a_cancelled_wait_loses_nothing(turns: int) -> None:
    """C9: cancelled at the set or some turns of the loop later; the value is returned exactly once."""
    watch = Watch(0)
    watcher = watch.watcher()
    scope = anyio.CancelScope()
    got: list[int] = []

    async def wait() -> None:
        with scope:
            got.append(await watcher.wait())
            got.append(await watcher.wait())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await settle()
        watch.set(1)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        scope.cancel()
    assert watcher.changed is (got == [])
    if watcher.changed:
        got.append(await watcher.wait())
    assert got == [1]


async def test_a_wait_that_is_cancelled_while_the_value_is_there_has_not_seen_it() -> None:
    """C9: the checkpoint before returning is a place to be cancelled at."""
    watch = Watch(0)
    watcher = watch.watcher(seen=False)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await watcher.wait()
    assert scope.cancelled_caught
    assert watcher.changed
    assert await watcher.wait() == 0


async def test_a_waiter_on_a_watch_that_is_set_all_the_time_lets_others_run() -> None:
    """Rule 7: a checkpoint in every wait."""
    watch = Watch(0)
    watcher = watch.watcher()
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        await settle()
        before = others
        for value in range(20):
            watch.set(value)
            await watcher.wait()
        assert others - before >= 10
        tasks.cancel_scope.cancel()


async def test_an_amended_value_is_no_news() -> None:
    """G2: the head that is stamped anew wakes nobody and is what the next reader gets."""
    watch = Watch("a")
    watcher, newcomer = watch.watcher(), watch.watcher(seen=False)
    watch.amend("b")
    assert (watch.value, watch.version, watcher.changed) == ("b", 0, False)
    assert await newcomer.wait() == "b"
    with anyio.move_on_after(0.01) as scope:
        await watcher.wait()
    assert scope.cancelled_caught
    watch.set("c")
    watch.amend("d")
    assert await watcher.wait() == "d"


async def test_waiters_are_independent() -> None:
    """C9, C8: each has its own version."""
    watch = Watch(0)
    quick, slow = watch.watcher(), watch.watcher()
    seen = []
    for value in (1, 2, 3):
        watch.set(value)
        seen.append(await quick.wait())
    assert seen == [1, 2, 3]
    assert await slow.wait() == 3


async def test_many_waiters_wake_at_once_and_each_once() -> None:
    """C9: 300 waiters; under a millisecond is measured by the benchmarks, this is only far from quadratic."""
    watch = Watch(0)
    got: list[int] = []

    async def wait(watcher: Watcher[int]) -> None:
        got.append(await watcher.wait())

    took = []
    for value in (1, 2, 3):
        got.clear()
        async with anyio.create_task_group() as tasks:
            for _ in range(300):
                tasks.start_soon(wait, watch.watcher())
            await settle()
            began = real_time()
            watch.set(value)
            while len(got) < 300:
                await anyio.lowlevel.checkpoint()
            took.append(real_time() - began)
        assert got == [value] * 300
    assert min(took) < 0.25


async def test_closing_wakes_who_waits() -> None:
    """No value comes any more: the wait ends with an error instead of for ever."""
    watch = Watch(0)
    raised = []

    async def wait() -> None:
        with pytest.raises(WatchClosed):
            await watch.watcher().wait()
        raised.append(True)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(wait)
        await settle()
        watch.close()
    assert len(raised) == 3
    assert watch.closed


async def test_the_last_value_is_handed_out_before_the_end() -> None:
    """A value that was set before closing is not lost, whether one waited or not."""
    watch = Watch(0)
    late = watch.watcher()
    got: list[int] = []

    async def wait() -> None:
        watcher = watch.watcher()
        got.append(await watcher.wait())
        with pytest.raises(WatchClosed):
            await watcher.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await settle()
        watch.set(1)
        watch.close()
        watch.close()
    assert got == [1]
    assert await late.wait() == 1
    with pytest.raises(WatchClosed):
        await late.wait()
    with pytest.raises(WatchClosed):
        await watch.watcher().wait()
    assert watch.value == 1


def test_a_closed_watch_takes_no_value() -> None:
    """Setting after closing is a mistake of the one who sets."""
    watch = Watch(0)
    watch.close()
    with pytest.raises(WatchClosed):
        watch.set(1)
    assert (watch.value, watch.version) == (0, 0)


@pytest.mark.parametrize("order", list(itertools.permutations(["set", "cancel", "wait"])))
async def test_set_cancel_and_wait_in_any_order_lose_no_value(order: tuple[str, ...]) -> None:
    """C9: one watcher, its wait cancelled or not, a set somewhere; in the end the value was returned exactly once."""
    watch = Watch(0)
    watcher = watch.watcher()
    got: list[int] = []
    scope = anyio.CancelScope()

    async def wait() -> None:
        with scope:
            got.append(await watcher.wait())

    async with anyio.create_task_group() as tasks:
        for act in order:
            if act == "set":
                watch.set(7)
            elif act == "cancel":
                scope.cancel()
            else:
                tasks.start_soon(wait)
            await settle()
        scope.cancel()
    if watcher.changed:
        got.append(await watcher.wait())
    assert got == [7]


def test_a_listener_is_called_at_each_set_until_it_ends_that() -> None:
    """C9: where no task is to wait. Not when a value is amended or the watch closed; one may end itself on the way."""
    watch = Watch(0)
    heard: list[tuple[str, int]] = []

    def once() -> None:
        heard.append(("once", watch.value))
        end_once()

    end_once = watch.listen(once)
    end = watch.listen(lambda: heard.append(("each", watch.value)))
    watch.set(1)
    watch.amend(2)
    watch.set(3)
    end()
    watch.set(4)
    watch.close()
    assert heard == [("once", 1), ("each", 1), ("each", 3)]
