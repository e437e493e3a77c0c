"""First success and hedge: best first, the next at once on failure and as well after the delay (Q2, Q3, Q4)."""

import math
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from tests.routing_script import (
    CLOSED,
    NEVER,
    NOT_FOUND,
    REFUSED,
    SYNCING,
    A,
    B,
    C,
    D,
    Reports,
    Script,
    Step,
    always,
    error,
    running,
    script,
    sourced,
)
from vc_fallback.base.errors import FallbackError, NodeError
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node import failures
from vc_fallback.routing.first_success import first_success
from vc_fallback.routing.hedged import hedge_delay, hedged
from vc_fallback.routing.outcomes import AllNodesFailed, DeadlineExceeded, Doubt, NoCandidates, RequestFailed
from vc_fallback.routing.runner import Runner
from vc_fallback.testing.tasks import background_tasks

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def ask(play: Script, nodes: list[NodeId] | None = None, **options: Any) -> Sourced[Any]:
    async with running() as runner:
        options = {"end": 10.0, "delay": always(1.0), "runner": runner, **options}
        try:
            return await first_success(play.op, [*play.steps] if nodes is None else nodes, **options)
        finally:
            assert play.under_way == 0


async def test_the_first_node_answers_and_nobody_else_is_asked() -> None:
    """Q3."""
    play = script(a=Step(0.5, "x"), b=Step(0.1, "y"))
    answer = await ask(play)
    assert (answer.value, answer.node_id) == ("x", A)
    assert play.order == [A]
    assert anyio.current_time() == 0.5


async def test_a_failure_moves_on_at_once() -> None:
    """Q3: without waiting for the delay."""
    play = script(a=Step(0.1, REFUSED), b=Step(0.2, REFUSED), c=Step(0.3, "z"))
    assert (await ask(play)).value == "z"
    assert play.asked == [(A, 0.0), (B, 0.1), (C, pytest.approx(0.3))]
    assert anyio.current_time() == pytest.approx(0.6)


async def test_a_silent_node_costs_the_delay_and_the_next_nodes_time() -> None:
    """Scenario 44, case 27: not the sum of the limits."""
    play = script(a=Step(0, NEVER), b=Step(0.05, "y"))
    assert (await ask(play)).value == "y"
    assert anyio.current_time() == pytest.approx(1.05)
    assert play.ended == [B, A]


async def test_an_earlier_attempt_runs_on_and_may_still_win() -> None:
    """Q2: nothing late is thrown away while it can still count."""
    play = script(a=Step(1.5, "x"), b=Step(2.0, "y"), c=Step(0, "z"))
    assert (await ask(play)).value == "x"
    assert play.asked == [(A, 0.0), (B, 1.0)]
    assert anyio.current_time() == 1.5


async def test_each_node_has_its_own_delay_counted_from_when_it_was_asked() -> None:
    """Q2."""
    delays = {A: 0.5, B: 2.0, C: 0.25}
    play = script(a=Step(0, NEVER), b=Step(0, NEVER), c=Step(0, NEVER), d=Step(0.1, "z"))
    assert (await ask(play, delay=delays.__getitem__)).value == "z"
    assert play.asked == [(A, 0.0), (B, 0.5), (C, 2.5), (D, 2.75)]


async def test_after_a_failure_the_delay_starts_anew() -> None:
    """Q3: the next node gets its whole delay."""
    play = script(a=Step(0.9, REFUSED), b=Step(0.9, "y"), c=Step(0, "z"))
    assert (await ask(play)).value == "y"
    assert play.order == [A, B]


async def test_a_failure_beside_a_silent_node_moves_on_at_once_too() -> None:
    """Q3: also in a task beside the caller's own."""
    play = script(a=Step(0, NEVER), b=Step(0.1, REFUSED), c=Step(0.1, "z"))
    assert (await ask(play)).value == "z"
    assert play.asked == [(A, 0.0), (B, 1.0), (C, pytest.approx(1.1))]


async def test_when_the_callers_attempt_fails_the_others_are_waited_for() -> None:
    """Q2."""
    play = script(a=Step(1.5, REFUSED), b=Step(3.0, "y"))
    assert (await ask(play)).value == "y"
    assert anyio.current_time() == 4.0


async def test_a_delay_of_infinity_never_hedges() -> None:
    """Q2."""
    play = script(a=Step(9.0, "x"), b=Step(0, "y"))
    assert (await ask(play, delay=always(math.inf))).value == "x"
    assert play.order == [A]


async def test_without_a_delay_all_are_asked_at_once() -> None:
    """Q2."""
    play = script(a=Step(3.0, "x"), b=Step(2.0, "y"), c=Step(1.0, "z"))
    assert (await ask(play, delay=always(0.0))).value == "z"
    assert play.times == [0.0, 0.0, 0.0]


async def test_a_fast_not_found_does_not_beat_a_slow_hit() -> None:
    """Scenario 40."""
    play = script(a=Step(0.01, NOT_FOUND), b=Step(0.01, NOT_FOUND), c=Step(2.0, "z"))
    assert (await ask(play)).value == "z"


async def test_not_found_is_the_answer_when_all_say_so_after_one_round() -> None:
    """Scenario 42: the error is the best node's own, and each was asked once."""
    play = script(a=Step(0.1, NOT_FOUND), b=Step(0.1, error(failures.UnknownBlock)), c=Step(0.1, NOT_FOUND))
    with pytest.raises(failures.NotFound) as caught:
        await ask(play)
    assert caught.value.node_id == A
    assert play.order == [A, B, C]
    assert anyio.current_time() == pytest.approx(0.3)


@pytest.mark.parametrize("kind", [failures.Closed, failures.UnsupportedEndpoint, failures.Quarantined])
async def test_who_cannot_be_asked_does_not_stand_against_not_found(kind: type[NodeError]) -> None:
    """Q3: all who have a say."""
    play = script(a=Step(0.1, error(kind)), b=Step(0.1, NOT_FOUND))
    with pytest.raises(failures.NotFound):
        await ask(play)


@pytest.mark.parametrize("other", [REFUSED, SYNCING, error(failures.BadRequest)])
async def test_not_found_is_not_the_answer_where_one_failed(other: Any) -> None:
    """Q3: that one might have known."""
    play = script(a=Step(0.1, NOT_FOUND), b=Step(0.1, other))
    with pytest.raises(AllNodesFailed) as caught:
        await ask(play)
    assert set(caught.value.errors) == {A, B}


async def test_a_400_of_one_node_does_not_stop_a_read() -> None:
    """Q3, case 44: another may know better."""
    play = script(a=Step(0.1, error(failures.BadRequest)), b=Step(0.1, "y"))
    assert (await ask(play)).value == "y"


async def test_a_node_removed_under_way_moves_on() -> None:
    """A call in flight on a node that leaves the list ends there and goes to the next."""
    play = script(a=Step(0.4, CLOSED), b=Step(0.1, "y"))
    assert (await ask(play)).value == "y"
    assert play.asked == [(A, 0.0), (B, 0.4)]


async def test_all_failed_names_every_node_and_its_error() -> None:
    """Errors by node."""
    play = script(a=Step(0.1, REFUSED), b=Step(0.1, SYNCING))
    with pytest.raises(AllNodesFailed) as caught:
        await ask(play, what="duties")
    assert str(caught.value) == "duties: all 2 nodes failed: a: connection refused; b: syncing"
    assert {node_id: type(failed) for node_id, failed in caught.value.errors.items()} == {
        A: failures.ConnectError,
        B: failures.NotReady,
    }
    assert [attempt.semantic for attempt in caught.value.attempts] == [False, False]


async def test_the_end_is_an_error_that_names_who_was_silent() -> None:
    """Q2: the caller gets an error at the end, neither before nor after."""
    play = script(a=Step(0, NEVER), b=Step(0.1, REFUSED), c=Step(0, NEVER), d=Step(0, NEVER))
    with pytest.raises(DeadlineExceeded) as caught:
        await ask(play, end=2.5, delay=lambda node_id: 1.0 if node_id == A else 9.0, what="duties")
    assert anyio.current_time() == 2.5
    assert str(caught.value) == (
        "duties: no answer in time: "
        "a: no answer after 2.5 s; b: connection refused; c: no answer after 1.4 s; d: not asked"
    )
    assert isinstance(caught.value, RequestFailed)


async def test_an_answer_at_the_last_moment_counts() -> None:
    """Q2: nothing that came before the end is lost."""
    play = script(a=Step(9.999, "x"))
    assert (await ask(play)).value == "x"


DOUBTS = {"empty": Doubt("empty"), "old": Doubt("older than the head", usable=True), "good": None}


def accept(answer: Sourced[str]) -> Doubt | None:
    return DOUBTS[answer.value]


async def test_a_doubted_answer_does_not_win_and_does_not_end_the_race() -> None:
    """Q4."""
    play = script(a=Step(1.2, "empty"), b=Step(2.0, "good"), c=Step(5.0, "good"))
    assert (await ask(play, accept=accept)).node_id == B
    assert play.asked == [(A, 0.0), (B, 1.0), (C, 1.2)]


async def test_a_usable_answer_is_taken_once_nothing_better_can_come() -> None:
    """Q8, case 50: that of the best node, after all others were asked."""
    play = script(a=Step(0.1, "empty"), b=Step(0.5, "old"), c=Step(0.1, "old"))
    assert (await ask(play, accept=accept)).node_id == B
    assert play.order == [A, B, C]


async def test_a_usable_answer_is_taken_at_the_end() -> None:
    """Q8, case 50."""
    play = script(a=Step(0.1, "old"), b=Step(0, NEVER))
    assert (await ask(play, accept=accept)).node_id == A
    assert anyio.current_time() == 10.0


async def test_doubts_are_named_where_nothing_can_be_taken() -> None:
    """Q4: and a doubted answer among "not found" is no "not found"."""
    play = script(a=Step(0.1, "empty"), b=Step(0.1, NOT_FOUND))
    with pytest.raises(AllNodesFailed, match="a: not taken: empty; b: not found"):
        await ask(play, accept=accept)


class Own(Exception):
    """An exception of the caller's own."""


class Stop(BaseException):
    """One that is none of `Exception`."""


@pytest.mark.parametrize("own", [Own("mine"), ValueError("x"), Stop("now"), FallbackError("other"), TimeoutError()])
async def test_the_callers_own_exception_comes_out_unchanged(own: BaseException) -> None:
    """It is the very object, in no group; nobody else is asked."""
    play = script(a=Step(0.1, own), b=Step(0.1, "y"))
    with pytest.raises(type(own)) as caught:
        await ask(play)
    assert caught.value is own
    assert play.order == [A]


@pytest.mark.parametrize("own", [Own("mine"), Stop("now"), ExceptionGroup("g", [ValueError()])])
async def test_it_does_so_from_a_task_beside_the_callers_own(own: BaseException) -> None:
    """As above; the caller's attempt is cancelled for it."""
    play = script(a=Step(0, NEVER), b=Step(0.1, own), c=Step(0, "z"))
    with pytest.raises(type(own)) as caught:
        await ask(play)
    assert caught.value is own
    assert anyio.current_time() == pytest.approx(1.1)
    assert sorted(play.ended) == [A, B]


@pytest.mark.parametrize("slow", [0.0, 1.5])
async def test_an_exception_of_accept_or_delay_comes_out_unchanged(slow: float) -> None:
    """Whichever task it is raised in."""

    def raises(_: object) -> Any:
        raise Own

    play = script(a=Step(slow, "x"), b=Step(0.1, "y"))
    with pytest.raises(Own):
        await ask(play, accept=raises)
    play = script(a=Step(slow, "x"), b=Step(0.1, "y"))
    with pytest.raises(Own):
        await ask(play, delay=raises, end=20.0)
    play = script(a=Step(0, NEVER), b=Step(0, NEVER), c=Step(0, "z"))
    with pytest.raises(KeyError):
        await ask(play, delay={A: 0.1}.__getitem__, end=20.0)
    assert play.order == [A]


async def test_an_operation_that_is_none_is_the_callers_own_mistake() -> None:
    """It may raise before there is anything to await, or return what cannot be awaited."""
    async with running() as runner:
        with pytest.raises(TypeError):
            await first_success(lambda _: 1, [A, B], end=9, delay=always(1), runner=runner)  # type: ignore[arg-type, return-value]
        with pytest.raises(ZeroDivisionError):
            await first_success(lambda _: 1 / 0, [A, B], end=9, delay=always(1), runner=runner)  # type: ignore[arg-type, return-value]


async def test_a_loser_that_breaks_when_it_is_cancelled_does_not_cost_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In the caller's own task, and beside it; it is logged."""
    play = script(a=Step(20, "x", breaks=Own("first")), b=Step(20, "y", breaks=Own("second")), c=Step(0.1, "z"))
    assert (await ask(play)).value == "z"
    assert caplog.text.count("an error on being cancelled") == 2


async def test_a_loser_that_answers_when_it_is_cancelled_is_too_late() -> None:
    """The first answer wins, also over one that came while it was being returned."""
    play = script(a=Step(20, "x", answers=True), b=Step(20, "y", answers=True), c=Step(0.1, "z"))
    assert (await ask(play)).value == "z"
    play = script(a=Step(1.5, "x"), b=Step(20, "y", answers=True, lingers=0.5))
    assert (await ask(play, end=20.0)).value == "x"


async def test_a_loser_is_awaited_to_its_end() -> None:
    """Rule 5: cancelled and awaited."""
    play = script(a=Step(0.0, NEVER, lingers=0.5), b=Step(0, NEVER, lingers=0.75), c=Step(0.1, "z"))
    assert (await ask(play)).value == "z"
    assert anyio.current_time() == pytest.approx(2.1 + 0.75)
    assert play.under_way == 0


async def test_a_deadline_in_the_past_is_an_error_at_once() -> None:
    """Bad input: nobody is asked."""
    await anyio.sleep(5)
    play = script(a=Step(0.1, "x"))
    for end in (4.0, 5.0, -1.0):
        with pytest.raises(DeadlineExceeded, match="no node was asked"):
            await ask(play, end=end)
    assert play.asked == []


@pytest.mark.parametrize("end", [math.inf, -math.inf, math.nan])
async def test_a_deadline_that_is_no_moment_is_an_error_at_once(end: float) -> None:
    """Rule 6."""
    with pytest.raises(ValueError, match="a moment in loop time"):
        await ask(script(a=Step(0.1, "x")), end=end)


async def test_an_empty_list_is_an_error_at_once() -> None:
    """Bad input: an empty role set."""
    play = script()
    with pytest.raises(NoCandidates, match="duties: there is no node to ask"):
        await ask(play, nodes=[], what="duties")


async def test_a_node_that_is_there_twice_is_an_error_at_once() -> None:
    """Bad input: errors and votes are by node."""
    play = script(a=Step(0.1, "x"))
    with pytest.raises(ValueError, match="twice"):
        await ask(play, nodes=[A, B, A])
    assert play.asked == []


async def test_every_attempt_is_reported_those_given_up_included() -> None:
    """N3: the digest needs them. A report that raises costs nobody anything; the caller's own mistake is none."""
    reports = Reports()
    play = script(a=Step(0, NEVER), b=Step(0.1, REFUSED), c=Step(0.2, "z"))
    answer = await ask(play, report=reports)
    assert [attempt.node_id for attempt in reports.attempts] == [B, C, A]
    assert [attempt.started for attempt in reports.attempts] == pytest.approx([1.0, 1.1, 0.0])
    assert [attempt.ended for attempt in reports.attempts] == pytest.approx([1.1, 1.3, 1.3])
    assert reports.given_up == [A]
    assert [a.answer for a in reports.attempts if a.answer] == [answer]

    def broken(_: object) -> None:
        raise Own

    assert (await ask(script(a=Step(0.1, "x")), report=broken, end=99)).value == "x"
    reports = Reports()
    with pytest.raises(Own):
        await ask(script(a=Step(0.1, Own())), report=reports, end=99)
    assert reports.attempts == []


tag: ContextVar[str] = ContextVar("tag", default="none")


async def test_an_operation_sees_its_callers_context_whoever_runs_it() -> None:
    """Tracing of the caller's own works in hedged attempts too."""
    seen = {}

    async def op(node_id: NodeId) -> Sourced[str]:
        seen[node_id] = tag.get()
        await anyio.sleep(2 if node_id == A else 0.1)
        return sourced(node_id, "x")

    async with running() as runner:
        tag.set("mine")
        assert (await first_success(op, [A, B], end=9, delay=always(1), runner=runner)).node_id == B
    assert seen == {A: "mine", B: "mine"}


async def test_many_calls_at_once_share_one_runner() -> None:
    """Each gets its own answer at its own time; timers do not pile up."""
    async with running() as runner:

        async def call(number: int) -> None:
            slow = number % 3 == 0
            play = script(a=Step(0, NEVER) if slow else Step(0.001 * number, "x"), b=Step(0.1, "y"))
            await anyio.sleep(0.001 * number)
            asked = anyio.current_time()
            answer = await first_success(
                play.op, [A, B], end=asked + 5, delay=always(0.5 + 0.0001 * (number % 7)), runner=runner
            )
            assert answer.value == ("y" if slow else "x") or number >= 500
            if slow:
                assert anyio.current_time() == pytest.approx(asked + 0.6 + 0.0001 * (number % 7))

        async with anyio.create_task_group() as group:
            for number in range(400):
                group.start_soon(call, number)


async def test_when_the_runner_ends_the_callers_own_attempts_go_on() -> None:
    """Calls of tasks outside the facade's scope: what ran beside ends with it, nothing hangs."""
    play = script(a=Step(3, REFUSED), b=Step(0, NEVER), c=Step(0.5, "z"))
    async with anyio.create_task_group() as outer:
        got = []

        async def call() -> None:
            got.append(await first_success(play.op, [A, B, C], end=9, delay=always(1.5), runner=runner))

        async with background_tasks() as group:
            runner = Runner()
            await group.start(runner.run)
            outer.start_soon(call)
            await anyio.sleep(2)
            assert play.order == [A, B]
        assert anyio.current_time() == 2
        assert play.ended == [B]
    assert [answer.node_id for answer in got] == [C]
    assert play.asked[-1] == (C, 3.0)


async def test_with_a_runner_that_has_ended_nodes_are_asked_one_after_the_other() -> None:
    """There is nobody to ask the next as well; failures move on all the same."""
    async with running() as runner:
        pass
    play = script(a=Step(3, REFUSED), b=Step(0.5, "y"))
    assert (await first_success(play.op, [A, B], end=9, delay=always(1), runner=runner)).value == "y"
    assert play.times == [0.0, 3.0]


@pytest.mark.parametrize(
    ("p90", "delay"), [(None, 0.5), (0.1, 0.1), (0.001, 0.02), (3.0, 0.5)], ids=["unknown", "own", "floor", "most"]
)
def test_the_hedge_delay_is_the_nodes_own_p90_between_a_floor_and_the_dutys_limit(
    p90: float | None, delay: float
) -> None:
    """Q2: 1/24 slot or the node's p90, less of both; not less than the floor."""
    assert hedge_delay(p90, floor=0.02, most=0.5) == delay


async def test_a_hedge_comes_after_the_nodes_own_latency() -> None:
    """Q2, Q4."""
    play = script(a=Step(0, NEVER), b=Step(0, NEVER), c=Step(0.1, "z"))
    async with running() as runner:
        answer = await hedged(
            play.op, [A, B, C], end=12, latency={A: 0.125, B: None}.get, floor=0.02, most=0.5, runner=runner
        )
    assert answer.value == "z"
    assert play.times == [0.0, 0.125, 0.625]


async def test_at_an_epoch_change_slow_nodes_still_answer_before_the_end() -> None:
    """Scenario 46b: every node needs a third of a slot for attestation data."""
    play = script(a=Step(4.0, "x"), b=Step(4.0, "y"), c=Step(4.0, "z"))
    async with running() as runner:
        answer = await hedged(play.op, [A, B, C], end=8, latency=always(0.01), floor=0.02, most=0.5, runner=runner)
    assert answer.node_id == A
    assert anyio.current_time() == 4.0
