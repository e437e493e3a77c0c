"""Everyone: all nodes are asked, and all answers waited for (Q14a)."""

from typing import Any

import anyio
import pytest

from tests.routing_script import CLOSED, NEVER, REFUSED, A, B, C, Reports, Script, Step, running, script, tasks
from vc_fallback.base.errors import NodeError
from vc_fallback.routing.everyone import everyone
from vc_fallback.routing.outcomes import Attempt, DeadlineExceeded, NoCandidates, NotSent
from vc_fallback.routing.runner import Runner
from vc_fallback.testing.tasks import background_tasks

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def ask(play: Script, **options: Any) -> list[Attempt[Any]]:
    async with running() as runner:
        try:
            return await everyone(play.op, **{"nodes": [*play.steps], "end": 8.0, "runner": runner, **options})
        finally:
            assert play.under_way == 0


async def test_all_are_asked_at_once_and_the_last_is_waited_for() -> None:
    """In the given order, whoever answered first."""
    play = script(a=Step(3.0, "x"), b=Step(0.5, REFUSED), c=Step(1.0, "y"))
    attempts = await ask(play)
    assert [attempt.node_id for attempt in attempts] == [A, B, C]
    assert [attempt.answer.value if attempt.answer else None for attempt in attempts] == ["x", None, "y"]
    assert isinstance(attempts[1].error, NodeError)
    assert {when for _, when in play.asked} == {0.0}
    assert anyio.current_time() == 3.0


@pytest.mark.parametrize("silent", [A, B])
async def test_at_the_end_those_that_have_not_answered_are_given_up(silent: str) -> None:
    """Also where that is the one that is asked in the caller's own task."""
    reports = Reports()
    play = script(a=Step(1.0, "x"), b=Step(1.0, "x"))
    play.steps[silent] = [Step(0, NEVER)]  # type: ignore[index]
    attempts = await ask(play, report=reports)
    assert [attempt.given_up for attempt in attempts] == [node_id == silent for node_id in (A, B)]
    assert reports.given_up == [silent]
    assert anyio.current_time() == 8.0


async def test_that_all_failed_is_an_answer() -> None:
    """What is made of it is the caller's."""
    attempts = await ask(script(a=Step(0, REFUSED), b=Step(0, CLOSED)))
    assert [type(attempt.error).__name__ for attempt in attempts] == ["ConnectError", "Closed"]


async def test_the_callers_own_exception_comes_out_unchanged() -> None:
    """It ends the request, whoever it came from."""
    own = ZeroDivisionError()
    for play in (script(a=Step(0.1, own), b=Step(0, NEVER)), script(a=Step(0, NEVER), b=Step(0.1, own))):
        with pytest.raises(ZeroDivisionError) as caught:
            await ask(play, end=50.0)
        assert caught.value is own
    assert anyio.current_time() == pytest.approx(0.2)


async def test_when_the_caller_leaves_nothing_is_left() -> None:
    """Rule 5: those that take time to end are waited for."""
    play = script(a=Step(0, NEVER, lingers=0.25), b=Step(0, NEVER, lingers=0.5), c=Step(0, "x"))
    with anyio.CancelScope(deadline=1.0) as scope:
        await ask(play)
    assert scope.cancelled_caught
    assert anyio.current_time() == 1.5


async def test_bad_input_is_an_error_at_once() -> None:
    """Nothing is sent."""
    play = script(a=Step(0, "x"), b=Step(0, "x"))
    with pytest.raises(NoCandidates):
        await ask(play, nodes=[])
    with pytest.raises(DeadlineExceeded):
        await ask(play, end=0.0)
    with pytest.raises(ValueError, match="twice"):
        await ask(play, nodes=[A, A])
    assert play.asked == []


async def test_when_the_runner_ends_so_does_the_request() -> None:
    """A call of a task outside the facade's scope; and one that begins after the end."""
    found: list[list[Attempt[Any]]] = []

    async def call() -> None:
        found.append(await everyone(play.op, [A, B], end=8.0, runner=runner))

    play = script(a=Step(2.0, "x"), b=Step(0, NEVER))
    before = tasks()
    async with anyio.create_task_group() as outer:
        async with background_tasks() as group:
            runner = Runner()
            await group.start(runner.run)
            outer.start_soon(call)
            await anyio.sleep(1)
        assert play.under_way == 1
    ((first, second),) = found
    assert (first.answer is not None, second.given_up) == (True, True)
    late = await everyone(play.op, [A, B], end=anyio.current_time() + 8, runner=runner)
    assert late[0].answer is not None
    assert isinstance(late[1].error, NotSent)
    assert tasks() == before
