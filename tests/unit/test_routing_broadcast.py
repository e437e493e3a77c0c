"""Broadcast: answered by the first accept of every item; stragglers fill in the result (Q5, Q12, rule 8)."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.routing_script import (
    NEVER,
    NOT_FOUND,
    REFUSED,
    A,
    B,
    C,
    Reports,
    Script,
    Step,
    error,
    running,
    script,
)
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node import failures
from vc_fallback.node.failures import ItemFailure
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.broadcast import broadcast, start_broadcast
from vc_fallback.routing.broadcast_result import BroadcastResult, NotPublished, Outcome
from vc_fallback.routing.outcomes import DeadlineExceeded, NoCandidates, NotSent
from vc_fallback.routing.runner import Runner
from vc_fallback.testing.tasks import background_tasks
from vc_fallback.testing.virtual_time import Backend, run_in_virtual_time

pytestmark = pytest.mark.anyio

OK = Publication.ACCEPTED
SENT_ON = Publication.BROADCAST
KNOWN = error(failures.AlreadyKnown, "already known")


def refuses(*indexes: int, known: tuple[int, ...] = ()) -> Callable[[NodeId], failures.BadRequest]:
    named = [ItemFailure(index, "bad", known=False) for index in indexes]
    named += [ItemFailure(index, "have", known=True) for index in known]
    return lambda node_id: failures.BadRequest(
        node_id, "/eth/v1/x", "some", status=400, failures=named, rest_taken=True
    )


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


@dataclass
class Sends:
    """Sends by a script, which begin after `dialling` seconds; then the node has got it."""

    play: Script
    dialling: dict[NodeId, float] = field(default_factory=dict)
    got: list[NodeId] = field(default_factory=list)

    async def __call__(self, node_id: NodeId, begun: Callable[[], None]) -> Sourced[Publication]:
        await anyio.sleep(self.dialling.get(node_id, 0.0))
        begun()
        self.got.append(node_id)
        return await self.play.op(node_id)


async def publish(runner: Runner, sends: Sends, **options: Any) -> BroadcastResult:
    nodes = options.pop("nodes", [*sends.play.steps])
    end = options.pop("end", 6.0)
    return await broadcast(sends, nodes, runner=runner, **{"end": end, "bound": end, **options})


async def test_it_returns_on_the_first_accept_and_the_report_fills_in() -> None:
    """Scenario 47: one accepts in 20 ms, one takes 5 s, one is down."""
    sends = Sends(script(a=Step(5.0, OK), b=Step(0.02, OK), c=Step(0.0, REFUSED)))
    async with running() as runner:
        result = await publish(runner, sends)
        assert anyio.current_time() == 0.02
        assert (result.accepted, result.failed, result.pending) == ((B,), (C,), (A,))
        assert result.complete
        await result.settled()
        assert anyio.current_time() == 5.0
        assert (result.accepted, result.pending) == ((A, B), ())
        assert sorted(sends.got) == [A, B, C]
        assert runner.stragglers == {}


async def test_late_ones_are_bounded_in_time() -> None:
    """Scenario 47, Q5: a straggler is given up at the bound, and it is said that it may have been taken."""
    sends = Sends(script(a=Step(0, NEVER), b=Step(0.02, OK), c=Step(0, NEVER)), dialling={C: 99.0})
    async with running() as runner:
        result = await publish(runner, sends, end=2.0, bound=3.0)
        await result.settled()
        assert anyio.current_time() == 3.0
    assert result.failed == (A, C)
    a, c = result.deliveries[A], result.deliveries[C]
    assert isinstance(a.error, failures.RequestTimeout)
    assert a.words == "failed: no answer within 3 s; it may have been taken"
    assert c.words == "failed: no answer within 3 s; nothing was sent"
    assert (a.begun, c.begun) == (True, False)


async def test_late_ones_are_bounded_in_number() -> None:
    """Case 28: a hung secondary does not pile up sends over hours; who is well gets every one."""
    steps = script(a=Step(0, NEVER), b=Step(0.01, OK))
    async with running(stragglers=3) as runner:
        sends = Sends(steps)
        results = [await publish(runner, sends, end=anyio.current_time() + 100) for _ in range(10)]
        assert sends.got.count(A) == 3
        assert sends.got.count(B) == 10
        assert runner.stragglers == {A: 3}
        last = results[-1].deliveries[A]
        assert isinstance(last.error, NotSent)
        assert not last.error.blames_node
        assert last.words == "failed: 3 earlier sends are still under way"
        await results[2].settled()
        assert runner.stragglers == {}
        result = await publish(runner, sends, end=anyio.current_time() + 1)
        assert sends.got.count(A) == 4
        await result.settled()


async def test_sends_that_are_waited_for_are_no_stragglers() -> None:
    """Case 28: many publishes at once to nodes that are well all go out."""
    sends = Sends(script(a=Step(0.5, OK)))
    async with running(stragglers=1) as runner, anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(publish, runner, sends)
        await anyio.sleep(0.1)
        assert len(sends.got) == 20


async def test_an_accept_of_every_item_is_waited_for() -> None:
    """Q5, Q12: merged over nodes; a known duplicate says that it is there."""
    sends = Sends(script(a=Step(0.1, refuses(0, 1)), b=Step(0.2, refuses(0, 2, known=(1,))), c=Step(0.3, refuses(1))))
    async with running() as runner:
        result = await publish(runner, sends, items=3)
        assert anyio.current_time() == 0.3
        assert result.complete
        assert result.partly == (A, B, C)


async def test_items_that_no_node_took_are_failures_and_the_rest_is_reported() -> None:
    """Q12: no exception, as something was taken."""
    sends = Sends(script(a=Step(0.1, refuses(1)), b=Step(0.2, refuses(1))))
    async with running() as runner:
        result = await publish(runner, sends, items=3)
    assert result.by_item == (Outcome.ACCEPTED, Outcome.REFUSED, Outcome.ACCEPTED)
    assert result.missed == (1,)
    assert result.reasons(1) == {A: "bad", B: "bad"}


async def test_202_is_an_outcome_of_its_own() -> None:
    """Q5, case 53: waits for a 200, and is neither an error nor a full success."""
    async with running() as runner:
        result = await publish(runner, Sends(script(a=Step(0.1, SENT_ON), b=Step(0.3, OK))))
        assert anyio.current_time() == pytest.approx(0.3)
        assert (result.accepted, result.broadcast, result.outcome) == ((B,), (A,), Outcome.ACCEPTED)
        result = await publish(runner, Sends(script(a=Step(0.1, SENT_ON), b=Step(0.3, REFUSED))))
        assert (result.broadcast, result.outcome, result.complete) == ((A,), Outcome.BROADCAST, False)


async def test_known_everywhere_is_uncertain_and_beside_a_success_a_success() -> None:
    """Rule 8, Q5, case 62."""
    async with running() as runner:
        result = await publish(runner, Sends(script(a=Step(0.1, KNOWN), b=Step(0.2, KNOWN), c=Step(0.3, REFUSED))))
        assert result.outcome is Outcome.UNCERTAIN
        assert not result.complete
        assert anyio.current_time() == pytest.approx(0.3)
        result = await publish(runner, Sends(script(a=Step(0.1, KNOWN), b=Step(0.2, OK), c=Step(0, NEVER))))
        assert (result.outcome, result.already_known) == (Outcome.ACCEPTED, (A,))
        await result.settled()


async def test_an_unknown_error_beside_a_success_is_no_failure_of_the_publish() -> None:
    """Case 55."""
    broken = error(failures.ServerError, "BLOCK_INPUT_ERROR_INVALID_CONSTRUCTION")
    async with running() as runner:
        result = await publish(runner, Sends(script(a=Step(0.1, broken), b=Step(0.2, OK))))
    assert (result.accepted, result.failed, result.complete) == ((B,), (A,), True)


async def test_where_no_node_took_it_an_error_says_what_each_said() -> None:
    """Rule 8: as soon as all have answered."""
    sends = Sends(script(a=Step(0.1, REFUSED), b=Step(0.2, NOT_FOUND)))
    async with running() as runner:
        with pytest.raises(NotPublished) as caught:
            await publish(runner, sends, what="block")
        assert anyio.current_time() == 0.2
    assert str(caught.value) == "block: no node took it: a: failed: connection refused; b: refused: not found"
    assert caught.value.result.refused == (B,)


async def test_at_the_end_an_error_says_who_is_pending_and_its_result_stays_live() -> None:
    """Q2: the caller is told at its end; who is late may still take it."""
    sends = Sends(script(a=Step(3.0, OK), b=Step(0.2, REFUSED)))
    async with running() as runner:
        with pytest.raises(NotPublished, match="a: pending; b: failed") as caught:
            await publish(runner, sends, end=2.0, bound=5.0)
        assert anyio.current_time() == 2.0
        await caught.value.result.settled()
        assert caught.value.result.accepted == (A,)
        assert anyio.current_time() == 3.0


async def test_each_node_is_sent_to_once() -> None:
    """Whatever comes of it."""
    sends = Sends(script(a=Step(0.1, REFUSED), b=Step(0.2, KNOWN), c=Step(0.3, OK)))
    async with running() as runner:
        await publish(runner, sends)
    assert sorted(sends.got) == [A, B, C]


async def test_cancelling_a_publish_cancels_what_has_not_begun_and_lets_the_rest_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Q5: no byte written, nothing sent; what has begun ends within the bound and is logged."""
    caplog.set_level(logging.INFO, "vc_fallback.routing")
    sends = Sends(script(a=Step(1.0, OK), b=Step(1.0, OK), c=Step(0, NEVER)), dialling={B: 2.0})
    reports = Reports()
    settled: list[BroadcastResult] = []
    async with running() as runner:
        with anyio.move_on_after(0.5):
            await publish(runner, sends, bound=4.0, report=reports, on_settled=settled.append, what="block")
        assert anyio.current_time() == 0.5
        assert runner.stragglers == {A: 1, C: 1}
        assert [attempt.node_id for attempt in reports.attempts] == [B]
        await anyio.sleep(9)
        assert sorted(sends.got) == [A, C]
        assert runner.stragglers == {}
    (result,) = settled
    assert result.accepted == (A,)
    assert isinstance(result.deliveries[B].error, NotSent)
    assert result.deliveries[B].words == "failed: cancelled before it began"
    assert caplog.messages == [
        "block: its caller was cancelled; a: accepted",
        "block: its caller was cancelled; c: failed: no answer within 4 s; it may have been taken",
    ]


async def test_cancelling_at_once_sends_nothing() -> None:
    """Q5: nothing is begun for a caller that is cancelled already; so nothing has a result either."""
    settled: list[BroadcastResult] = []
    sends = Sends(script(a=Step(1.0, OK), b=Step(1.0, OK)))
    async with running() as runner:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await publish(runner, sends, on_settled=settled.append)
        assert sends.got == []
        assert runner.stragglers == {}
        assert settled == []


async def test_cancelled_sends_are_awaited() -> None:
    """Rule 5: those that had not begun, however long they take to end."""

    async def send(node_id: NodeId, begun: Callable[[], None]) -> Sourced[Publication]:
        return await play.op(node_id)

    play = script(a=Step(0, NEVER, lingers=0.75), b=Step(0, NEVER, lingers=0.5))
    async with running() as runner:
        with anyio.move_on_after(0.25):
            await broadcast(send, [A, B], end=6, runner=runner)
        assert anyio.current_time() == 1.0
        assert play.under_way == 0


async def test_off_the_callers_path_nothing_is_waited_for() -> None:
    """Q2: subscriptions and preparations."""
    sends = Sends(script(a=Step(0.5, None), b=Step(0, NEVER), c=Step(0.2, REFUSED)))
    settled: list[BroadcastResult] = []
    async with running() as runner:
        result = start_broadcast(sends, [A, B, C], bound=4.0, runner=runner, on_settled=settled.append)
        assert result.pending == (A, B, C)
        assert runner.stragglers == {A: 1, B: 1, C: 1}
        await result.settled()
        assert anyio.current_time() == 4.0
        assert (result.accepted, result.failed) == ((A,), (B, C))
        assert settled == [result]
        with pytest.raises(DeadlineExceeded):
            start_broadcast(sends, [A], bound=4.0, runner=runner)


async def test_when_the_program_ends_what_is_pending_is_told() -> None:
    """The result does not stay pending for ever; begun sends may have been taken."""
    sends = Sends(script(a=Step(0, NEVER), b=Step(0.1, OK), c=Step(0, NEVER)), dialling={C: 9})
    async with background_tasks() as group:
        runner = Runner()
        await group.start(runner.run)
        result = await publish(runner, sends)
    await result.settled()
    assert result.deliveries[A].words == "failed: given up as the program ends; it may have been taken"
    assert result.deliveries[C].words == "failed: cancelled before it began"
    with pytest.raises(NotPublished, match="the program ends"):
        await publish(runner, sends)


class Own(Exception):
    """An exception of the caller's own."""


class Stop(BaseException):
    """One that is none of `Exception`."""


async def test_the_callers_own_exception_comes_out_unchanged_where_no_node_took_it() -> None:
    """Such as a `ValueError` for what can be seen to be wrong before sending: at once, as all raise it."""
    own = ValueError("an empty list")
    async with running() as runner:
        with pytest.raises(ValueError, match="an empty list") as caught:
            await publish(runner, Sends(script(a=Step(0, own), b=Step(0, own))))
        assert caught.value is own
        assert anyio.current_time() == 0


async def test_it_never_hides_that_a_node_took_it(caplog: pytest.LogCaptureFixture) -> None:
    """Rule 8: before, after, and long after the accept; it is logged with its traceback."""
    sends = Sends(script(a=Step(0.1, Own("early")), b=Step(0.2, OK), c=Step(0.3, Own("late"))))
    async with running() as runner:
        result = await publish(runner, sends, what="block")
        assert (result.accepted, result.failed) == ((B,), (A,))
        await result.settled()
    assert isinstance(result.deliveries[C].error, Own)
    logged = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.message for record in logged] == [
        "block: a: an error that is not the node's",
        "block: c: an error that is not the node's",
    ]
    assert all(record.exc_info for record in logged)


async def test_what_nobody_may_hold_back_comes_out_at_once() -> None:
    """An interruption of the program: whatever was taken, and whoever is pending."""
    stop = Stop()
    async with running() as runner:
        sends = Sends(script(a=Step(0.1, refuses(1)), b=Step(0.2, stop), c=Step(0, NEVER)))
        with pytest.raises(Stop) as caught:
            await publish(runner, sends, items=2)
        assert caught.value is stop
        assert anyio.current_time() == 0.2
        await anyio.sleep(9)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_interruption_that_meets_a_straggler_ends_the_program(backend: Backend) -> None:
    """There is no caller any more to hand it to."""

    async def main() -> None:
        async with running() as runner:
            await publish(runner, Sends(script(a=Step(0.1, OK), b=Step(0.2, KeyboardInterrupt()))))
            await anyio.sleep(9)

    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)) as caught:
        run_in_virtual_time(main, backend=backend)
    assert isinstance(caught.value, KeyboardInterrupt) or caught.group_contains(KeyboardInterrupt)


async def test_every_send_is_reported_and_a_report_that_raises_costs_nothing() -> None:
    """N3."""
    reports = Reports()

    def broken(_: object) -> None:
        raise Own

    async with running() as runner:
        result = await publish(runner, Sends(script(a=Step(0.2, REFUSED), b=Step(0.1, OK))), report=reports)
        await result.settled()
        result = await publish(
            runner, Sends(script(a=Step(0.1, OK), b=Step(0.1, OK))), report=broken, on_settled=broken
        )
        await result.settled()
    assert [(a.node_id, a.ended, a.answer is None) for a in reports.attempts] == [(B, 0.1, False), (A, 0.2, True)]


async def test_bad_input_is_an_error_at_once() -> None:
    """Nothing is sent."""
    sends = Sends(script(a=Step(0, OK), b=Step(0, OK)))
    async with running() as runner:
        with pytest.raises(NoCandidates):
            await publish(runner, sends, nodes=[])
        with pytest.raises(DeadlineExceeded, match="no node was asked"):
            await publish(runner, sends, end=0.0)
        with pytest.raises(ValueError, match="twice"):
            await publish(runner, sends, nodes=[A, A])
        with pytest.raises(ValueError, match="0 items"):
            await publish(runner, sends, items=0)
        for end in (math.inf, math.nan):
            with pytest.raises(ValueError, match="moment"):
                await publish(runner, sends, end=end)
            with pytest.raises(ValueError, match="moment"):
                await publish(runner, sends, bound=end)
        await anyio.lowlevel.checkpoint()
        assert sends.got == []


async def test_a_large_list_is_merged_quickly() -> None:
    """Bounds: 10,000 items of which each node refuses many."""
    sends = Sends(script(a=Step(0.1, refuses(*range(0, 10_000, 3))), b=Step(0.1, refuses(*range(1, 10_000, 3)))))
    async with running() as runner:
        result = await publish(runner, sends, items=10_000)
    assert result.complete
    assert len(result.by_item) == 10_000
