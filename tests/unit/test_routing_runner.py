"""The runner: one task that watches the time for all, and tasks that cannot end the task group they live in."""

import gc
import math
import weakref
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.routing_script import A, B, Script, Step, always, running, script, tasks
from vc_fallback.routing.first_success import first_success
from vc_fallback.routing.runner import Runner, end_all

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def test_timers_call_at_their_moments_in_any_order() -> None:
    """Set in any order, before and while others are waited for."""
    called: list[tuple[str, float]] = []

    def note(name: str) -> Callable[[], None]:
        return lambda: called.append((name, anyio.current_time()))

    async with running() as runner:
        runner.at(3.0, note("c"))
        runner.at(1.0, note("a"))
        runner.at(2.0, note("b"))
        await anyio.sleep(1.5)
        runner.at(1.75, note("between"))
        runner.at(1.0, note("past"))
        await anyio.sleep(5)
        runner.at(9.0, note("last"))
        runner.at(9.0, note("as well"))
        await anyio.sleep(5)
    assert called == [
        ("a", 1.0),
        ("past", 1.5),
        ("between", 1.75),
        ("b", 2.0),
        ("c", 3.0),
        ("last", 9.0),
        ("as well", 9.0),
    ]


async def test_timers_set_before_it_runs_and_from_a_timer_are_called_too() -> None:
    """No wake-up is lost."""
    called: list[float] = []
    async with anyio.create_task_group() as group:
        runner = Runner()

        def first() -> None:
            called.append(anyio.current_time())
            runner.at(anyio.current_time() + 0.5, lambda: called.append(anyio.current_time()))

        runner.at(1.0, first)
        group.start_soon(runner.run)
        await anyio.sleep(2)
        group.cancel_scope.cancel()
    assert called == [1.0, 1.5]


async def test_a_cancelled_timer_calls_nothing_and_is_not_kept() -> None:
    """10,000 calls a second that are answered at once must not pile up until their hedges would have been due."""
    called: list[int] = []
    async with running() as runner:
        kept = [runner.at(5.0, lambda: called.append(1)) for _ in range(3)]
        for number in range(10_000):
            timer = runner.at(5.0 + number, lambda: called.append(2))
            timer.cancel()
            timer.cancel()
        assert len(runner._timers) < 200
        kept[1].cancel()
        await anyio.sleep(20_000)
        assert called == [1, 1]
        assert runner._timers == []
        kept[0].cancel()
        assert runner._cancelled == 0


async def test_a_timer_that_raises_is_logged_and_costs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Rule 4."""
    called: list[float] = []
    async with running() as runner:
        runner.at(1.0, lambda: 1 / 0)  # type: ignore[arg-type]
        runner.at(1.0, lambda: called.append(anyio.current_time()))
        await anyio.sleep(2)
    assert called == [1.0]
    assert "ZeroDivisionError" in caplog.text


async def test_a_task_that_raises_is_logged_and_costs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """The group is not the request's own."""
    async with running() as runner:

        async def breaks() -> None:
            raise RuntimeError("mine")

        task = runner.start(breaks)
        assert task is not None
        await task.ended()
        await task.ended()
        assert runner.open
    assert "RuntimeError: mine" in caplog.text


async def test_a_task_that_has_not_begun_when_it_is_cancelled_never_does() -> None:
    """And is waited for all the same; whoever asked for it is told."""
    begun: list[int] = []
    told: list[int] = []

    async def begin() -> None:
        begun.append(1)

    async with running() as runner:
        made = [runner.start(begin, on_end=lambda _: told.append(1)) for _ in range(3)]
        started = [task for task in made if task is not None]
        await end_all(started)
        assert [task.over for task in started] == [True] * 3
        await end_all(started)
    assert begun == []
    assert told == [1, 1, 1]


async def test_ending_tasks_takes_as_long_as_the_slowest() -> None:
    """All are cancelled first, then awaited."""

    async def slow(seconds: float) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(seconds)

    async with running() as runner:
        made = [runner.start(lambda seconds=seconds: slow(seconds)) for seconds in (0.5, 1.0, 0.25)]  # type: ignore[misc]
        await anyio.sleep(1)
        assert not any(task is None or task.over for task in made)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await end_all(task for task in made if task is not None)
        assert anyio.current_time() == 2.0


async def test_when_its_group_ends_it_starts_nothing_any_more() -> None:
    """`None` tells; nothing raises, no coroutine is left unawaited."""

    async def begin() -> None:
        raise AssertionError

    async with running() as runner:
        pass
    assert not runner.open
    assert runner.start(begin) is None
    assert Runner().start(begin) is None


async def test_when_it_ends_its_tasks_have_ended_and_its_timers_are_called() -> None:
    """Rule 5: no task outlives it; who waits for a moment learns that it will not come."""
    told: list[str] = []

    async def slow() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.5)
            told.append("ended")

    async with anyio.create_task_group() as group:
        runner = Runner()
        await group.start(runner.run)

        def again() -> None:
            told.append("timer")
            runner.at(99.0, again)

        runner.at(50.0, again)
        runner.at(40.0, lambda: told.append("earlier")).cancel()
        assert runner.start(slow, on_end=lambda _: told.append("told")) is not None
        await anyio.sleep(1)
        group.cancel_scope.cancel()
    assert told == ["timer", "ended", "told"]
    assert anyio.current_time() == 1.5
    assert not runner.open


async def test_a_call_leaves_nothing_in_the_runner() -> None:
    """Without growth of memory: what a call was about is free when it returns, its timers included."""
    async with running() as runner:
        gone: list[weakref.ref[Any]] = []
        for answer in (Step(0.0, 1), Step(2.0, 1)):
            play: Script | None = script(a=answer, b=Step(0.5, 2))
            assert play is not None
            await first_success(play.op, [A, B], end=anyio.current_time() + 9, delay=always(1.0), runner=runner)
            gone.append(weakref.ref(play))
            play = None
        await anyio.lowlevel.checkpoint()
        gc.collect()
        assert [ref() for ref in gone] == [None, None]


async def test_ten_thousand_calls_leave_no_task_and_no_timer() -> None:
    """Many at once, of which some are hedged."""
    async with running() as runner:
        before = tasks()

        async def call(number: int) -> None:
            play = script(a=Step(1.0 + number % 5 / 4, 1), b=Step(0.25, 2))
            end = anyio.current_time() + 9
            await first_success(play.op, [A, B], end=end, delay=always(1.5), runner=runner)

        for _ in range(5):
            async with anyio.create_task_group() as group:
                for number in range(400):
                    group.start_soon(call, number)
            assert tasks() == before
        await anyio.sleep(0.001)
        assert runner._next() == math.inf
