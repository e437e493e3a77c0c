"""How long a better answer is waited for, once there is one that can be taken (Q8, Q14b)."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.routing_script import A, B, sourced
from vc_fallback.base.clock import Clock
from vc_fallback.base.types import Sourced
from vc_fallback.node.failures import NotFound
from vc_fallback.routing.outcomes import AllNodesFailed, DeadlineExceeded, Doubt
from vc_fallback.routing.patience import Found, Patience

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


def patience(seconds: float = 1.0, worth: Callable[[Found[str]], float] = lambda _: 0.0) -> Patience[str]:
    return Patience(Clock(wall=None), seconds, worth)


async def test_without_an_answer_it_waits_as_long_as_the_race() -> None:
    """It has nothing to take instead."""
    held = patience(0.1)

    async def race() -> Sourced[str]:
        await anyio.sleep(5)
        answer = sourced(A, "x")
        assert held.judge(answer, "") is None
        return answer

    found = await held.run(race)
    assert (found.answer.value, found.words, anyio.current_time()) == ("x", "", 5.0)


async def test_a_usable_answer_is_taken_when_nothing_better_came_in_time() -> None:
    """Q8: from the first one on; others that come do not put it off. The race is over by then."""
    held, ended = patience(), []

    async def race() -> Sourced[str]:
        try:
            await anyio.sleep(2)
            assert held.judge(sourced(A, "old"), "older") == Doubt("older", usable=True)
            await anyio.sleep(0.75)
            held.judge(sourced(B, "old too"), "older, too")
            await anyio.sleep_forever()
        finally:
            ended.append(anyio.current_time())
        raise AssertionError

    found = await held.run(race)
    assert (found.answer.value, found.words, anyio.current_time()) == ("old", "older", 3.0)
    assert ended == [3.0]


async def test_a_better_answer_goes_before_all_that_are_usable() -> None:
    """Also where the race ends at the very moment at which patience is over."""
    held = patience()

    async def race() -> Sourced[str]:
        held.judge(sourced(A, "old"), "older")
        await anyio.sleep(0.5)
        answer = sourced(B, "new")
        assert held.judge(answer, "") is None
        # The others are awaited, which takes a while.
        await anyio.sleep(5)
        return answer

    found = await held.run(race)
    assert (found.answer.value, found.words) == ("new", "")


async def test_of_usable_answers_the_best_is_taken() -> None:
    """Q8: of equals the first one."""
    held = patience(worth=lambda found: {"older": 1.0, "newer": 2.0, "as new": 2.0}[found.answer.value])

    async def race() -> Sourced[str]:
        held.judge(sourced(A, "older"), "older")
        held.judge(sourced(B, "newer"), "old")
        return sourced(A, "as new")

    assert (await held.run(race)).answer.value == "newer"


@pytest.mark.parametrize(
    "error", [AllNodesFailed("x", "all failed"), DeadlineExceeded("x", "late"), NotFound(A, "/x", "not found")]
)
async def test_what_is_kept_survives_the_failure_of_the_race(error: Exception) -> None:
    """Nothing is lost that some node gave; without it the failure comes out."""

    def racing(held: Patience[str], words: str | None) -> Callable[[], Awaitable[Sourced[str]]]:
        async def race() -> Sourced[str]:
            if words is not None:
                held.hold(sourced(A, "x"), words)
            await anyio.sleep(0.25)
            raise error

        return race

    held = patience()
    assert (await held.run(racing(held, "older"))).words == "older"
    assert anyio.current_time() == 0.25
    held = patience()
    with pytest.raises(type(error)) as caught:
        await held.run(racing(held, None))
    assert caught.value is error


async def test_what_is_the_callers_own_comes_out_in_any_case() -> None:
    """An exception of its own, and its cancellation."""
    held = patience()

    async def race() -> Sourced[str]:
        held.hold(sourced(A, "x"), "older")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await held.run(race)
    held = patience()

    async def waiting() -> Sourced[str]:
        held.hold(sourced(A, "x"), "older")
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.CancelScope(deadline=0.5) as scope:
        await held.run(waiting)
    assert scope.cancelled_caught
    assert anyio.current_time() == 0.5


async def test_what_is_held_after_the_end_changes_nothing() -> None:
    """A node may be asked to the end beside, to know how long it takes."""
    held = patience()

    async def race() -> Sourced[str]:
        answer = sourced(A, "x")
        held.judge(answer, "")
        return answer

    before = anyio.current_effective_deadline()
    assert (await held.run(race)).answer.value == "x"
    held.hold(sourced(B, "late"), "older")
    await anyio.sleep(2)
    assert anyio.current_effective_deadline() == before
