"""Sends in turn: who is sent a publish only where those before did not take it (Q5, Q9, Q11, Q14; case 28)."""

import math
from collections.abc import Callable, Collection
from typing import Any

import anyio
import pytest

from tests.routing_script import NEVER, NOT_FOUND, REFUSED, A, B, C, D, Script, Step, error, running, script
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node import failures
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.broadcast import broadcast, start_broadcast
from vc_fallback.routing.broadcast_result import BroadcastResult, NotPublished, Outcome
from vc_fallback.routing.delivery import Delivery, Sending
from vc_fallback.routing.outcomes import NotSent
from vc_fallback.routing.runner import Runner
from vc_fallback.routing.sends import Later
from vc_fallback.routing.turns import nobody_judged, not_all_accepted, producer_not_reached

pytestmark = pytest.mark.anyio

OK = Publication.ACCEPTED
NO = error(failures.BadRequest, "no")


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def publish(
    runner: Runner, play: Script, nodes: list[NodeId], *later: Later, begins: bool = True, **options: Any
) -> BroadcastResult:
    async def send(node_id: NodeId, begun: Callable[[], None]) -> Sourced[Publication]:
        if begins:
            begun()
        return await play.op(node_id)

    return await broadcast(send, nodes, runner=runner, later=later, **{"end": anyio.current_time() + 6, **options})


def then(*nodes: NodeId, silence: float = math.inf, when: Any = not_all_accepted) -> Later:
    return Later(nodes, when, silence)


async def test_the_next_group_is_sent_to_when_those_before_have_not_taken_it() -> None:
    """As soon as none of them is pending; not where all is accepted."""
    async with running() as runner:
        play = script(a=Step(0.2, NO), b=Step(0.5, REFUSED), c=Step(0.1, OK), d=Step(0, OK))
        result = await publish(runner, play, [A, B], then(C), then(D))
        assert sorted(play.asked) == [(A, 0.0), (B, 0.0), (C, 0.5)]
        assert (result.accepted, result.refused, result.failed) == ((C,), (A,), (B,))


async def test_silence_brings_the_next_group_in_and_counts_from_each_group_anew() -> None:
    """Q5: earlier sends go on, and may be first."""
    async with running() as runner:
        play = script(a=Step(2.5, OK), b=Step(0, NEVER), c=Step(0, NEVER))
        result = await publish(runner, play, [A], then(B, silence=1.0), then(C, silence=1.0))
        assert play.asked == [(A, 0.0), (B, 1.0), (C, 2.0)]
        assert anyio.current_time() == 2.5
        assert (result.accepted, result.pending) == ((A,), (B, C))
        await result.settled()


async def test_a_group_may_refuse_to_follow() -> None:
    """Q9: at the end of those before, and after their silence; then it is over."""
    async with running() as runner:
        for after in (0.1, 2.0):
            play = script(a=Step(after, NO), b=Step(0, OK))
            with pytest.raises(NotPublished):
                await publish(runner, play, [A], then(B, when=lambda _: False, silence=1.0))
            assert play.order == [A]


async def test_what_a_group_looks_at_is_all_that_became_of_it() -> None:
    """Those that are pending among it."""
    seen: list[list[tuple[NodeId, Sending]]] = []

    def when(deliveries: Collection[Delivery]) -> bool:
        seen.append([(delivery.node_id, delivery.state) for delivery in deliveries])
        return True

    async with running() as runner:
        play = script(a=Step(0, NEVER), b=Step(0.5, NO), c=Step(0.5, OK))
        result = await publish(runner, play, [A], then(B, when=when, silence=1.0), then(C, when=when))
        await result.settled()
    assert seen == [[(A, Sending.PENDING)], [(A, Sending.PENDING), (B, Sending.REFUSED)]]


async def test_a_caller_that_has_its_answer_brings_nobody_in_any_more() -> None:
    """Nor one that was cancelled, or whose time is over."""
    async with running() as runner:
        play = script(a=Step(0.5, OK), b=Step(0, OK))
        await publish(runner, play, [A], then(B, silence=1.0))
        await anyio.sleep(3)
        with anyio.move_on_after(0.5):
            await publish(runner, script(a=Step(2.0, NO)), [A], then(B, silence=1.0))
        play = script(a=Step(2.0, NO), b=Step(0, OK))
        now = anyio.current_time()
        with pytest.raises(NotPublished):
            await publish(runner, play, [A], then(B, silence=1.0), end=now + 0.5, bound=now + 3)
        await anyio.sleep(9)
        assert play.order == [A]


async def test_off_the_callers_path_the_groups_follow_all_the_same() -> None:
    """Q2: nobody waits for it."""

    async def send(node_id: NodeId, begun: Callable[[], None]) -> Sourced[Publication]:
        begun()
        return await play.op(node_id)

    play = script(a=Step(0.2, REFUSED), b=Step(0, NEVER), c=Step(0.1, OK))
    async with running() as runner:
        later = [then(B, silence=9.0), then(C, silence=1.0)]
        result = start_broadcast(send, [A], bound=4.0, runner=runner, later=later)
        await anyio.sleep(2)
        assert play.asked == [(A, 0.0), (B, 0.2), (C, 1.2)]
        assert result.accepted == (C,)
        assert runner.stragglers == {B: 1}
        await result.settled()
        assert anyio.current_time() == 4.0


async def test_what_was_sent_before_is_part_of_the_result() -> None:
    """G2, rule 8: a list that changed; a node that is sent it once more has both attempts counted."""
    async with running() as runner:
        with pytest.raises(NotPublished) as caught:
            await publish(runner, script(a=Step(0, REFUSED), b=Step(0, REFUSED)), [A, B])
        play = script(a=Step(0, OK), c=Step(0, NOT_FOUND))
        result = await publish(runner, play, [A, C], earlier=caught.value.result.deliveries)
        await result.settled()
    assert (result.accepted, result.failed, result.refused) == ((A,), (B,), (C,))
    assert [delivery.attempts for delivery in result.deliveries.values()] == [2, 1, 1]
    assert result.outcome is Outcome.ACCEPTED


# --- turns at one node


async def test_sends_to_one_node_have_their_turns() -> None:
    """Case 28: no more at once than may be; one that is urgent waits for none."""
    async with running() as runner, anyio.create_task_group() as group:
        play = script(a=Step(1.0, OK))
        for _ in range(70):
            group.start_soon(publish, runner, play, [A])
        await anyio.sleep(0.5)
        assert len(play.order) == 32
        group.start_soon(lambda: publish(runner, play, [A], urgent=True))
        await anyio.sleep(0.25)
        assert len(play.order) == 33
        await anyio.sleep(1.5)
        assert len(play.order) == 71


async def test_a_burst_leaves_no_more_behind_at_a_hung_node_than_the_bound() -> None:
    """Q5, case 28: what waits for its turn there, and for nobody else, is not sent; the node that is well has all."""
    play = script(a=Step(0, NEVER), b=Step(0.1, OK))
    async with running() as runner:
        results: list[BroadcastResult] = []

        async def call() -> None:
            results.append(await publish(runner, play, [A, B]))

        async with anyio.create_task_group() as group:
            for _ in range(200):
                group.start_soon(call)
        assert all(result.accepted == (B,) for result in results)
        assert runner.stragglers[A] <= 64
        assert play.order.count(A) == 32
        await anyio.sleep(0.01)
        crowded = [result.deliveries[A].error for result in results if result.failed]
        assert len(crowded) == 200 - runner.stragglers[A]
        assert all(isinstance(problem, NotSent) for problem in crowded)
        await anyio.sleep(9)
        assert runner.stragglers == {}


# --- who follows


def delivery(error: BaseException | None = None, *, pending: bool = False) -> Delivery:
    made = Delivery(A, 0.0)
    if not pending:
        made.refused_or_failed(error or failures.ConnectError(A, "/x", "refused"), 1)
    return made


@pytest.mark.parametrize(
    ("problem", "judged", "reached"),
    [
        (failures.ConnectError(A, "/x", "refused"), False, False),
        (failures.RequestTimeout(A, "/x", "late"), False, False),
        (failures.Closed(A, "/x", "removed"), False, False),
        (failures.Quarantined(A, "/x", "another chain"), False, False),
        (NotSent(A, "/x", "too many"), False, False),
        (failures.ServerError(A, "/x", "broken", status=500), False, True),
        (failures.ServerError(A, "/x", "bad gateway", status=502), False, False),
        (failures.NotReady(A, "/x", "syncing", status=503), False, False),
        (failures.RateLimited(A, "/x", "", status=429), False, False),
        (failures.UnsupportedEndpoint(A, "/x", "no route", status=404), False, True),
        (failures.UnsupportedMediaType(A, "/x", "", status=415), False, True),
        (failures.BadRequest(A, "/x", "invalid", status=400), True, True),
        (failures.AlreadyKnown(A, "/x", "already seen", status=503), True, True),
        (failures.NotFound(A, "/x", "", status=404), True, True),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_who_has_judged_and_who_was_reached(problem: Exception, judged: bool, reached: bool) -> None:
    """Q9, Q14: the first is what keeps others out of a role, the second what keeps a block with its producer."""
    assert nobody_judged([delivery(problem), delivery(pending=True)]) is not judged
    assert producer_not_reached([delivery(problem)]) is not reached


def test_who_is_pending_has_judged_nothing() -> None:
    assert nobody_judged([delivery(pending=True)])
    assert producer_not_reached([delivery(pending=True)])
