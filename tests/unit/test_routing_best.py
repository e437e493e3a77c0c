"""Best: what has come by the soft deadline is compared, then the first answer counts (Q2, Q7)."""

import math
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from tests.routing_script import (
    CLOSED,
    NEVER,
    NOT_FOUND,
    REFUSED,
    A,
    B,
    C,
    D,
    Reports,
    Script,
    Step,
    error,
    running,
    script,
)
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node import failures
from vc_fallback.routing.best import best
from vc_fallback.routing.outcomes import AllNodesFailed, DeadlineExceeded, Doubt, NoCandidates
from vc_fallback.routing.runner import Runner
from vc_fallback.testing.tasks import background_tasks

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


def value(answer: Sourced[Any]) -> float | None:
    worth: float | None = answer.value
    return worth


async def choose(play: Script, *tiers: Sequence[NodeId], **options: Any) -> Sourced[Any]:
    async with running() as runner:
        options = {"soft": 1.5, "end": 6.0, "score": value, "runner": runner, **options}
        try:
            return await best(play.op, tiers or [[*play.steps]], **options)
        finally:
            assert play.under_way == 0


async def test_all_are_asked_at_once_and_the_best_answer_is_taken() -> None:
    """Q7: as soon as all have answered."""
    play = script(a=Step(0.2, 10), b=Step(0.5, 30), c=Step(0.1, 20))
    assert (await choose(play)).node_id == B
    assert play.times == [0.0, 0.0, 0.0]
    assert anyio.current_time() == 0.5


async def test_at_the_soft_deadline_the_best_of_what_has_come_is_taken() -> None:
    """Q2, Q7: who is late is cancelled."""
    play = script(a=Step(0.2, 10), b=Step(1.4, 30), c=Step(1.6, 90), d=Step(0, NEVER))
    assert (await choose(play)).node_id == B
    assert anyio.current_time() == 1.5


async def test_after_the_soft_deadline_the_first_answer_is_taken() -> None:
    """Q2, Q7."""
    play = script(a=Step(2.5, 90), b=Step(2.0, 10), c=Step(0.1, REFUSED))
    assert (await choose(play)).node_id == B
    assert anyio.current_time() == 2.0


async def test_fallbacks_are_asked_when_no_primary_answered_by_the_soft_deadline() -> None:
    """Q7: as well; a primary may still be first."""
    play = script(a=Step(0, NEVER), b=Step(3.0, 10), c=Step(0.5, 5))
    assert (await choose(play, [A, B], [C])).node_id == C
    assert play.asked[-1] == (C, 1.5)
    play = script(a=Step(0, NEVER), b=Step(1.7, 10), c=Step(0.5, 50))
    now = anyio.current_time()
    assert (await choose(play, [A, B], [C], soft=now + 1.5, end=now + 6)).node_id == B


async def test_fallbacks_are_not_asked_where_a_primary_answered() -> None:
    """Q7: whatever they would offer."""
    play = script(a=Step(0, NEVER), b=Step(1.0, 10), c=Step(0, 99))
    assert (await choose(play, [A, B], [C])).node_id == B
    assert C not in play.order


async def test_fallbacks_are_asked_at_once_when_all_primaries_failed() -> None:
    """Q3, Q7: and then compared among themselves, in what is left of the time."""
    play = script(a=Step(0.1, REFUSED), b=Step(0.2, CLOSED), c=Step(0.3, 5), d=Step(0.4, 7))
    assert (await choose(play, [A, B], [], [C, D])).node_id == D
    assert sorted(play.asked[2:]) == [(C, 0.2), (D, 0.2)]
    assert anyio.current_time() == pytest.approx(0.6)


async def test_without_primaries_fallbacks_are_asked_at_once() -> None:
    """Q14: a role left without primaries."""
    play = script(a=Step(0.1, 5))
    assert (await choose(play, [], [A])).node_id == A
    assert anyio.current_time() == 0.1


@pytest.mark.parametrize(
    ("first", "second", "improvement", "taken"),
    [
        (100, 104, 0.05, A),
        (100, 105, 0.05, A),
        (100, 106, 0.05, B),
        (100, 100, 0.0, A),
        (100, 101, 0.0, B),
        (2**70 + 1, 2**70 + 2, 0.0, B),
        (2**70 + 2, 2**70 + 1, 0.0, A),
        (0, 1, 0.5, B),
        (-100, -99, 0.0, B),
        (-100, -99, 0.05, A),
        (None, 0, 0.5, B),
        (0, None, 0.0, A),
        (None, None, 0.0, A),
        (math.nan, 1, 0.0, B),
        (1, math.nan, 0.0, A),
        (math.inf, math.inf, 0.0, A),
    ],
)
async def test_the_first_node_is_left_only_for_the_minimum_improvement(
    first: float | None, second: float | None, improvement: float, taken: NodeId
) -> None:
    """Q7: ties to the first; an unknown value loses to any known one."""
    play = script(a=Step(0.2, first), b=Step(0.1, second))
    assert (await choose(play, min_improvement=improvement)).node_id == taken


async def test_among_better_ones_the_best_is_taken_and_ties_go_to_the_order() -> None:
    """Q7: the improvement is measured against the first that answered."""
    play = script(a=Step(0, REFUSED), b=Step(0.4, 10), c=Step(0.3, 20), d=Step(0.2, 20))
    assert (await choose(play, min_improvement=0.5)).node_id == C


def accept(answer: Sourced[Any]) -> Doubt | None:
    if answer.value == 0:
        return Doubt("empty", usable=True)
    return Doubt("of another slot") if answer.value < 0 else None


async def test_a_doubted_answer_never_wins_and_is_no_answer_at_the_soft_deadline() -> None:
    """Q4, Q8."""
    play = script(a=Step(0.1, 0), b=Step(0.1, -5), c=Step(1.0, 3))
    assert (await choose(play, [A, B], [C], accept=accept)).node_id == C
    assert play.asked[-1] == (C, 0.1)


async def test_a_usable_one_is_taken_when_nothing_better_can_come() -> None:
    """Q8: that of the first node, of whatever tier."""
    play = script(a=Step(0.1, -1), b=Step(0.2, 0), c=Step(0.1, 0))
    assert (await choose(play, [A, B], [C], accept=accept)).node_id == B


async def test_the_errors_are_those_of_first_success() -> None:
    """Q3."""
    with pytest.raises(failures.NotFound) as absent:
        await choose(script(a=Step(0.2, NOT_FOUND), b=Step(0.1, NOT_FOUND), c=Step(0, CLOSED)), [A, B], [C])
    assert absent.value.node_id == A
    with pytest.raises(AllNodesFailed, match="not taken: of another slot"):
        await choose(script(a=Step(0.1, -1), b=Step(0.1, REFUSED)), accept=accept, soft=9, end=19)
    now = anyio.current_time()
    with pytest.raises(DeadlineExceeded, match="a: no answer after 6 s"):
        await choose(script(a=Step(0, NEVER), b=Step(0.1, REFUSED)), [A], [B], soft=now + 1, end=now + 6)
    assert anyio.current_time() == now + 6


async def test_bad_input_is_an_error_at_once() -> None:
    """Deadlines in the past, empty role sets, a node in two tiers."""
    play = script(a=Step(0, 1), b=Step(0, 1))
    with pytest.raises(NoCandidates):
        await choose(play, [], [])
    with pytest.raises(DeadlineExceeded):
        await choose(play, end=0.0)
    with pytest.raises(ValueError, match="twice"):
        await choose(play, [A, B], [A])
    with pytest.raises(ValueError, match="moment"):
        await choose(play, end=math.inf)
    assert play.asked == []


@pytest.mark.parametrize("soft", [0.0, -1.0])
async def test_a_soft_deadline_in_the_past_takes_the_first_answer_of_all(soft: float) -> None:
    """Q7: there is no time to compare."""
    play = script(a=Step(0.3, 90), b=Step(0.2, 50), c=Step(0.1, 10))
    assert (await choose(play, [A, B], [C], soft=soft)).node_id == C


@pytest.mark.parametrize("soft", [6.0, 99.0, math.inf, math.nan])
async def test_a_soft_deadline_that_never_comes_compares_all(soft: float) -> None:
    """Bad input: it is as late as the end, and what has come by then is not lost."""
    play = script(a=Step(0.3, 10), b=Step(5.0, 50))
    assert (await choose(play, soft=soft)).node_id == B
    now = anyio.current_time()
    play = script(a=Step(0.3, 10), b=Step(0.2, 20), c=Step(0, NEVER))
    assert (await choose(play, soft=now + soft, end=now + 6)).node_id == B
    assert anyio.current_time() == now + 6


class Own(Exception):
    """An exception of the caller's own."""


class Stop(BaseException):
    """One that is none of `Exception`."""


@pytest.mark.parametrize("own", [Own(), Stop(), ValueError("x"), ExceptionGroup("g", [Own()])])
async def test_the_callers_own_exception_comes_out_unchanged(own: BaseException) -> None:
    """It is the very object, in no group, and ends the request."""
    play = script(a=Step(0.2, own), b=Step(0, NEVER), c=Step(0.1, 5))
    with pytest.raises(type(own)) as caught:
        await choose(play)
    assert caught.value is own
    assert anyio.current_time() == 0.2


@pytest.mark.parametrize("soft", [0.0, 1.5])
async def test_an_exception_of_score_or_accept_comes_out_unchanged(soft: float) -> None:
    """Wherever it is called."""

    def raises(_: object) -> Any:
        raise Own

    with pytest.raises(Own):
        await choose(script(a=Step(0.1, 1), b=Step(0.1, 1), c=Step(0, NEVER)), score=raises)
    with pytest.raises(Own):
        await choose(script(a=Step(0.1, 1), b=Step(0, NEVER)), accept=raises, soft=soft)


async def test_a_loser_that_breaks_when_it_is_cancelled_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged."""
    play = script(a=Step(0.1, 1), b=Step(9, 2, breaks=Own(), lingers=0.25))
    assert (await choose(play)).node_id == A
    assert anyio.current_time() == 1.75
    assert "an error on being cancelled" in caplog.text


async def test_a_loser_that_answers_when_it_is_cancelled_is_too_late() -> None:
    """What was decided stays so."""
    play = script(a=Step(9, 90, answers=True), b=Step(0.1, 1), c=Step(9, 99, answers=True))
    assert (await choose(play)).node_id == B


async def test_every_attempt_is_reported() -> None:
    """N3."""
    reports = Reports()
    play = script(a=Step(0.1, 1), b=Step(0, NEVER), c=Step(0.2, error(failures.BadRequest)))
    await choose(play, report=reports)
    assert [attempt.node_id for attempt in reports.attempts] == [A, C, B]
    assert [attempt.semantic for attempt in reports.attempts] == [False, True, False]
    assert reports.given_up == [B]
    assert reports.attempts[-1].duration == 1.5


@pytest.mark.parametrize(("own", "taken"), [(Step(0.1, 5), A), (Step(3, 5), A), (Step(0.1, REFUSED), None)])
async def test_when_the_runner_ends_what_has_come_counts(own: Step, taken: NodeId | None) -> None:
    """A call of a task outside the facade's scope: nothing hangs, nothing is lost."""
    got: list[Any] = []

    async def call() -> None:
        try:
            got.append(await best(play.op, [[A, B], [C]], soft=5, end=9, score=value, runner=runner))
        except AllNodesFailed as error:
            got.append(error)

    play = script(a=own, b=Step(0, NEVER), c=Step(0, NEVER))
    async with anyio.create_task_group() as outer, background_tasks() as group:
        runner = Runner()
        await group.start(runner.run)
        outer.start_soon(call)
        await anyio.sleep(1)
    assert anyio.current_time() == max(1.0, own.after)
    assert play.under_way == 0
    assert [getattr(answer, "node_id", None) for answer in got] == [taken]
