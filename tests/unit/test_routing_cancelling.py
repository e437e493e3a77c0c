"""Cancelling requests: native and by scopes, at any moment; what was begun is cancelled and awaited (rule 5)."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.routing_script import NEVER, REFUSED, A, B, C, Script, Step, always, running, script, sourced, tasks
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.best import best
from vc_fallback.routing.broadcast import broadcast
from vc_fallback.routing.first_success import first_success
from vc_fallback.routing.quorum import quorum
from vc_fallback.routing.runner import Runner, end_all
from vc_fallback.testing.virtual_time import VirtualTimeEventLoop, run_in_virtual_time

Way = Callable[[Script, Runner], Awaitable[Any]]
NODES = [A, B, C]


async def in_turn(play: Script, runner: Runner) -> Any:
    return await first_success(play.op, NODES, end=anyio.current_time() + 50, delay=always(1.0), runner=runner)


async def the_best(play: Script, runner: Runner) -> Any:
    now = anyio.current_time()
    return await best(
        play.op, [[A, B], [C]], soft=now + 1, end=now + 50, score=lambda answer: answer.value, runner=runner
    )


async def by_vote(play: Script, runner: Runner) -> Any:
    end = anyio.current_time() + 50
    return await quorum(play.op, NODES, threshold=2, key=lambda answer: answer.value, end=end, again=1.0, runner=runner)


async def to_all(play: Script, runner: Runner) -> Any:
    async def send(node_id: NodeId, begun: Callable[[], None]) -> Sourced[Publication]:
        return await play.op(node_id)

    return await broadcast(send, NODES, end=anyio.current_time() + 50, runner=runner)


WAYS = {"first_success": in_turn, "best": the_best, "quorum": by_vote, "broadcast": to_all}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = WAYS[request.param]
    return found


def silent(*, lingers: float = 0.0) -> Script:
    return script(**{name: Step(0, NEVER, lingers=lingers) for name in "abc"})


class TestByScopes:
    """By anyio's scopes, on both backends."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self, virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
        return virtual_time_backend

    @pytest.mark.parametrize("after", [0.0, 0.5, 1.0, 1.5, 2.5])
    async def test_a_scope_of_the_caller_ends_the_call_when_it_says(self, way: Way, after: float) -> None:
        """Rule 5."""
        async with running() as runner:
            play = silent()
            with anyio.move_on_after(after) as scope:
                await way(play, runner)
            assert scope.cancelled_caught
            assert anyio.current_time() == after
            assert play.under_way == 0
            assert sorted(play.ended) == sorted(play.order)
            with pytest.raises(TimeoutError), anyio.fail_after(1.5):
                await way(play, runner)

    async def test_what_takes_its_time_to_end_is_awaited(self, way: Way) -> None:
        """Rule 5: all of it at the same time."""
        async with running() as runner:
            play = silent(lingers=0.5)
            with anyio.move_on_after(2.5):
                await way(play, runner)
            assert play.under_way == 0
            # The attempt in the caller's own task ends first, then those beside it.
            assert anyio.current_time() <= 3.5

    async def test_a_thousand_calls_cancelled_at_random_points_leave_nothing(self, way: Way) -> None:
        """Scenario 45: no task is left, the next call works."""
        chance = random.Random(45)
        async with running() as runner:
            plays = [
                script(
                    **{
                        name: Step(chance.choice([0.0, 0.5, 1.0, 2.0]), chance.choice([1, 2, REFUSED, NEVER]))
                        for name in "abc"
                    }
                )
                for _ in range(1000)
            ]

            async def call(play: Script, begins: float, lasts: float) -> None:
                await anyio.sleep(begins)
                with anyio.move_on_after(lasts):
                    try:
                        await way(play, runner)
                    except Exception as error:  # noqa: BLE001
                        outcomes.add(type(error).__name__)
                assert play.under_way == 0 or way is to_all

            outcomes: set[str] = set()
            async with anyio.create_task_group() as group:
                for play in plays:
                    group.start_soon(call, play, chance.random(), chance.choice([0, 0.25, 0.5, 1.0, 1.25, 2.0, 3.0]))
            assert outcomes <= {"AllNodesFailed", "NotPublished"}
            await anyio.sleep(60)
            assert all(play.under_way == 0 for play in plays)
            assert runner.stragglers == {}
            good = script(a=Step(0.1, 1), b=Step(0.1, 1), c=Step(0.1, 1))
            assert await way(good, runner)
            await anyio.sleep(1)

    async def test_a_cancelled_call_beside_others_costs_them_nothing(self, way: Way) -> None:
        """Rule 4, in a manner of speaking."""
        async with running() as runner:
            got: list[Any] = []

            async def call(play: Script) -> None:
                got.append(await way(play, runner))

            async with anyio.create_task_group() as group:
                group.start_soon(call, script(a=Step(0, NEVER), b=Step(3.0, 1), c=Step(3.0, 1)))
                with anyio.move_on_after(1.25):
                    await way(silent(), runner)
            await anyio.sleep(60)
            assert len(got) == 1


class TestNative:
    """By what asyncio has of its own, in virtual time."""

    def run(self, test: Callable[[Runner], Awaitable[None]]) -> None:
        async def main() -> None:
            async with running() as runner:
                await test(runner)

        run_in_virtual_time(main)

    @pytest.mark.parametrize("after", [0.0, 0.5, 1.0, 1.5, 2.5])
    def test_a_task_that_is_cancelled_has_cancelled_and_awaited_everything(self, way: Way, after: float) -> None:
        """Rule 5: `task.cancel()`."""

        async def test(runner: Runner) -> None:
            play = silent(lingers=0.25)
            call = asyncio.ensure_future(way(play, runner))
            await asyncio.sleep(after)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert call.cancelled()
            assert play.under_way == 0

        self.run(test)

    def test_a_time_out_of_asyncio_is_its_time_out(self, way: Way) -> None:
        """`asyncio.timeout` and `wait_for`."""

        async def test(runner: Runner) -> None:
            play = silent()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.5):
                    await way(play, runner)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(way(play, runner), 1.5)
            assert play.under_way == 0
            assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
            assert anyio.current_time() == 3.0

        self.run(test)

    def test_cancelled_again_while_it_cleans_up(self, way: Way) -> None:
        """Rule 5: it still awaits what it has begun."""

        async def test(runner: Runner) -> None:
            play = silent(lingers=1.0)
            call = asyncio.ensure_future(way(play, runner))
            await asyncio.sleep(1.5)
            for _ in range(5):
                call.cancel()
                await asyncio.sleep(0.1)
            with pytest.raises(asyncio.CancelledError):
                await call
            assert play.under_way == 0

        self.run(test)

    @pytest.mark.parametrize("winner", ["a", "b", "c"])
    def test_cancelled_at_the_very_moment_of_the_answer(self, way: Way, winner: str) -> None:
        """It ends as one or as the other, never hangs, and `cancelled` tells the truth."""

        async def test(runner: Runner) -> None:
            for early in (True, False):
                if way is in_turn:
                    play = script(**{name: Step(1.0, 1) if name == winner else Step(0, NEVER) for name in "abc"})
                    answered = 1.0 + "abc".index(winner)
                else:
                    play, answered = script(a=Step(1.0, 1), b=Step(1.0, 1), c=Step(1.0, 1)), 1.0
                call = asyncio.ensure_future(way(play, runner))
                if early:
                    # The timer is older than that of the answer, so it is called first.
                    asyncio.get_running_loop().call_at(anyio.current_time() + answered, call.cancel)
                await asyncio.sleep(answered)
                if not early:
                    call.cancel()
                await asyncio.wait([call])
                if not call.cancelled():
                    assert call.result()
                await asyncio.sleep(1)
                assert play.under_way == 0

        self.run(test)

    @pytest.mark.parametrize("broken", ["a", "b"])
    def test_a_cancellation_of_the_operations_own_is_its_own(
        self, way: Way, broken: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It awaits a task that somebody cancels: as if it were awaited directly. The runner's group lives on."""

        async def test(runner: Runner) -> None:
            async def op(node_id: NodeId) -> Sourced[int]:
                if node_id == broken:
                    inner = asyncio.ensure_future(asyncio.sleep(9))
                    asyncio.get_running_loop().call_later(0.25, inner.cancel)
                    await inner
                await asyncio.sleep(20)
                return sourced(node_id, 1)

            play = script(a=Step(0, NEVER))
            play.op = op  # type: ignore[method-assign]
            call = asyncio.ensure_future(way(play, runner))
            await asyncio.wait([call], timeout=10)
            if way is to_all:
                # What another node takes must not be hidden by it.
                assert (await call).complete
                await asyncio.sleep(30)
                assert f"publish: {broken}: an error that is not the node's" in caplog.messages
            else:
                assert call.cancelled()
            await self._hedges(runner)

        self.run(test)

    def test_a_loser_that_turns_its_cancellation_into_another_is_still_only_a_loser(self) -> None:
        """As libraries do that cancel tasks of their own; the runner's group lives on."""

        async def test(runner: Runner) -> None:
            async def op(node_id: NodeId) -> Sourced[int]:
                if node_id == C:
                    await asyncio.sleep(0.5)
                    return sourced(node_id, 1)
                try:
                    await asyncio.sleep(99)
                except asyncio.CancelledError:
                    error = asyncio.CancelledError("mine")
                    error.__context__ = None
                    raise error from None
                raise AssertionError

            answer = await first_success(op, NODES, end=9, delay=always(1.0), runner=runner)
            assert answer.node_id == C
            await self._hedges(runner)

        self.run(test)

    def test_a_task_that_is_cancelled_before_its_first_step_has_ended(self) -> None:
        """As a loop does that ends: none of its own code runs, and whoever waits for it is told all the same."""

        async def test(runner: Runner) -> None:
            async def begin() -> None:
                raise AssertionError

            told: list[bool] = []
            beside = runner.start(begin, on_end=lambda beside: told.append(beside.over))
            assert beside is not None
            assert isinstance(beside.task, asyncio.Task)
            beside.task.cancel()
            await end_all([beside])
            assert told == [True]

        self.run(test)

    def test_a_loop_that_ends_does_not_wait_for_ever(self, way: Way) -> None:
        """`asyncio.run` cancels all tasks natively, begun or not; with a call under way, and one that just hedges."""
        for after in (0.0, 0.5, 1.0, 1.5, 2.0):
            play, kept = silent(), []

            async def main(play: Script, after: float) -> list[Any]:
                started: asyncio.Future[Runner] = asyncio.get_running_loop().create_future()
                facade = asyncio.ensure_future(self._facade(started))
                call = asyncio.ensure_future(way(play, await started))
                await asyncio.sleep(after)
                return [facade, call]

            with asyncio.Runner(loop_factory=VirtualTimeEventLoop) as loop:
                kept = loop.run(main(play, after))
            assert all(task.done() for task in kept)
            assert play.under_way == 0

    async def _facade(self, started: "asyncio.Future[Runner]") -> None:
        async with anyio.create_task_group() as group:
            runner = Runner()
            await group.start(runner.run)
            started.set_result(runner)

    async def _hedges(self, runner: Runner) -> None:
        """See that the runner is as good as new."""
        assert runner.open
        before = tasks()
        play = script(a=Step(0, NEVER), b=Step(0.5, 1), c=Step(0, 1))
        answer = await in_turn(play, runner)
        assert answer.node_id == B
        assert tasks() == before
