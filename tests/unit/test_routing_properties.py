"""For any schedule of delays and failures: nothing is lost that came in time, no task survives, each node once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.routing_script import NEVER, Script, Step, error, running
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node import failures
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.best import best
from vc_fallback.routing.broadcast import broadcast
from vc_fallback.routing.broadcast_result import BroadcastResult, NotPublished, Outcome
from vc_fallback.routing.first_success import first_success
from vc_fallback.routing.outcomes import AllNodesFailed, DeadlineExceeded, Doubt, QuorumNotReached
from vc_fallback.routing.quorum import quorum
from vc_fallback.testing.virtual_time import Backend, run_in_virtual_time

EXAMPLES = 100

GOOD, DOUBTED, USABLE = "good", "doubted", "usable"
ABSENT, DOWN = failures.NotFound, failures.ConnectError
GIVEN = [GOOD, GOOD, DOUBTED, USABLE, ABSENT, ABSENT, DOWN, failures.BadRequest, failures.Closed, NEVER]


@pytest.fixture(params=["asyncio", "trio"], scope="module")
def backend(request: pytest.FixtureRequest) -> Backend:
    name: Backend = request.param
    return name


@dataclass(frozen=True)
class Plan:
    """What a node does: when asked, after so many seconds it gives this; the next is asked after `delay`."""

    node_id: NodeId
    after: float
    gives: Any
    delay: float


@st.composite
def plans(draw: st.DrawFn, gives: Sequence[Any] = GIVEN, most: int = 5) -> list[Plan]:
    """Times are eighths of a second and a part of each node's own, so that no two things happen at one moment."""
    count = draw(st.integers(1, most))
    return [
        Plan(
            NodeId("abcde"[number]),
            draw(st.integers(0, 24)) / 8 + 2.0 ** -(11 + number),
            draw(st.sampled_from(gives)),
            draw(st.sampled_from([0.125, 0.25, 0.5, 1.0, 2.0, math.inf])),
        )
        for number in range(count)
    ]


ends = st.integers(1, 48).map(lambda eighths: eighths / 8 + 2.0**-9)


def play_of(made: list[Plan], values: Callable[[Plan], Any] = lambda plan: plan.gives) -> Script:
    def step(plan: Plan) -> Step:
        gives = values(plan)
        return Step(plan.after, error(gives) if isinstance(gives, type) else gives)

    return Script({plan.node_id: [step(plan)] for plan in made})


def accept(answer: Sourced[Any]) -> Doubt | None:
    return {GOOD: None, DOUBTED: Doubt("empty"), USABLE: Doubt("old", usable=True)}[answer.value]


@dataclass
class Ended:
    """How a call ended, and when."""

    at: float
    answer: Any = None
    error: Exception | None = None


async def observe(call: Callable[[], Any]) -> Ended:
    try:
        answer = await call()
    except Exception as problem:  # noqa: BLE001
        return Ended(anyio.current_time(), error=problem)
    return Ended(anyio.current_time(), answer)


def expected_in_turn(made: list[Plan], end: float) -> tuple[list[tuple[NodeId, float]], float | None, NodeId | None]:
    """Reckon, one event after the other, who is asked when, and when who wins."""
    asked: list[tuple[NodeId, float]] = []
    due: list[tuple[float, Plan]] = []
    next_ask, left = 0.0, [*made]
    while True:
        ending = min(due, default=(math.inf, None), key=lambda entry: entry[0])
        if left and next_ask < ending[0] and next_ask < end:
            plan = left.pop(0)
            asked.append((plan.node_id, next_ask))
            due.append((math.inf if plan.gives is NEVER else next_ask + plan.after, plan))
            next_ask += plan.delay
            continue
        when, ended = ending
        if ended is None or when >= end:
            return asked, None, None
        due.remove((when, ended))
        if ended.gives == GOOD:
            return asked, when, ended.node_id
        next_ask = when


@settings(max_examples=EXAMPLES)
@given(made=plans(), end=ends)
def test_first_success_asks_and_answers_when_it_should(backend: Backend, made: list[Plan], end: float) -> None:
    """Q2, Q3, Q4, against a model: the first good answer before the end wins; every node is asked at most once."""
    play = play_of(made)
    plan_of = {plan.node_id: plan for plan in made}
    nodes = [*plan_of]

    async def main() -> Ended:
        async with running() as runner:
            ended = await observe(
                lambda: first_success(
                    play.op, nodes, end=end, delay=lambda n: plan_of[n].delay, runner=runner, accept=accept
                )
            )
            assert play.under_way == 0
            return ended

    ended = run_in_virtual_time(main, backend=backend)
    asked, when, winner = expected_in_turn(made, end)
    assert play.asked == asked
    gave = {node_id: plan_of[node_id].gives for node_id, _ in asked}
    over = {n: t + plan_of[n].after for n, t in asked if gave[n] is not NEVER}
    over = {n: t for n, t in over.items() if t < end}
    usable = [node_id for node_id in nodes if node_id in over and gave[node_id] == USABLE]
    if winner is not None:
        assert (ended.answer.node_id, ended.at) == (winner, when)
        return
    all_over = len(over) == len(nodes)
    assert ended.at == (max(over.values()) if all_over else end)
    if usable:
        assert ended.answer.node_id == usable[0]
        return
    said = [gave[node_id] for node_id in nodes if node_id in over and gave[node_id] is not failures.Closed]
    if not all_over:
        assert isinstance(ended.error, DeadlineExceeded)
    elif said and all(word is ABSENT for word in said):
        assert isinstance(ended.error, failures.NotFound)
    else:
        assert isinstance(ended.error, AllNodesFailed)
        assert ended.error.errors.keys() == {n for n in nodes if isinstance(gave[n], type)}


@settings(max_examples=EXAMPLES)
@given(
    made=plans([1, 2, 3, 5, None, ABSENT, DOWN, NEVER]),
    primaries=st.integers(0, 5),
    soft=st.integers(0, 16).map(lambda eighths: eighths / 8 + 2.0**-10),
    end=ends,
)
def test_best_takes_the_best_of_what_came_in_time(
    backend: Backend, made: list[Plan], primaries: int, soft: float, end: float
) -> None:
    """Q7: by the soft deadline the best of one tier, then the first; whoever could have given one was asked once."""
    play = play_of(made)
    nodes = [plan.node_id for plan in made]
    tiers = [nodes[:primaries], nodes[primaries:]]

    async def main() -> Ended:
        def score(answer: Sourced[Any]) -> float | None:
            value: float | None = answer.value
            return value

        async with running() as runner:
            ended = await observe(lambda: best(play.op, tiers, soft=soft, end=end, score=score, runner=runner))
            assert play.under_way == 0
            return ended

    ended = run_in_virtual_time(main, backend=backend)
    assert len(play.order) == len({*play.order})
    gives = {plan.node_id: plan.gives for plan in made}
    after = {plan.node_id: plan.after for plan in made}
    came = {n: t + after[n] for n, t in play.asked if gives[n] is not NEVER and not isinstance(gives[n], type)}
    in_time = [n for n in nodes if n in came and came[n] < min(soft, end)]
    late = {n: t for n, t in came.items() if t < end}
    first_tier = next(tier for tier in tiers if tier)
    assert {*first_tier} <= {*play.order}
    if in_time:
        known = [n for n in in_time if gives[n] is not None]
        best_of = max(known, key=lambda n: (gives[n], -nodes.index(n))) if known else in_time[0]
        assert ended.answer.node_id == best_of
        assert ended.at <= min(soft, end)
    elif late:
        assert ended.at == min(late.values())
        assert ended.at == came[ended.answer.node_id]
    else:
        assert isinstance(ended.error, (AllNodesFailed, DeadlineExceeded, failures.NotFound))
        assert ended.at <= end
        if ended.at < end:
            assert {*play.order} == {*nodes}
    # Nobody of the other tier was asked in vain.
    others = [(n, t) for n, t in play.asked if n not in first_tier]
    assert all(t >= soft or all(isinstance(gives[n], type) for n in first_tier) for _, t in others)


@settings(max_examples=EXAMPLES)
@given(made=plans(["x", "x", "y", "z", DOWN, NEVER]), threshold=st.integers(1, 5), end=ends)
def test_a_quorum_is_reached_as_soon_as_it_can_and_never_lowered(
    backend: Backend, made: list[Plan], threshold: int, end: float
) -> None:
    """Q6, rule 9: nodes that stay with what they say; at the moment of the vote that completes it, or not at all."""
    play = play_of(made)
    nodes = [plan.node_id for plan in made]

    async def main() -> Ended:
        async with running() as runner:
            ended = await observe(
                lambda: quorum(
                    play.op, nodes, threshold=threshold, key=lambda a: a.value, end=end, again=0.25, runner=runner
                )
            )
            assert play.under_way == 0
            return ended

    ended = run_in_virtual_time(main, backend=backend)
    votes: dict[str, list[float]] = {}
    for plan in made:
        if isinstance(plan.gives, str) and plan.after < end:
            votes.setdefault(plan.gives, []).append(plan.after)
    complete = {key: sorted(times)[threshold - 1] for key, times in votes.items() if len(times) >= threshold}
    if complete:
        key = min(complete, key=complete.__getitem__)
        assert (ended.at, ended.answer.answer.value) == (complete[key], key)
        assert len(ended.answer.voters) == threshold
        return
    assert isinstance(ended.error, QuorumNotReached)
    if threshold > len(nodes):
        assert play.asked == []
    else:
        assert ended.at == end
        assert {node_id: key for key, voters in ended.error.votes.items() for node_id in voters} == {
            plan.node_id: plan.gives for plan in made if isinstance(plan.gives, str) and plan.after < end
        }


@settings(max_examples=EXAMPLES)
@given(
    made=plans([Publication.ACCEPTED, Publication.BROADCAST, failures.AlreadyKnown, failures.BadRequest, DOWN, NEVER]),
    end=ends,
    more=st.sampled_from([0.0, 1.0, 5.0]),
    cancelled=st.none() | ends,
)
def test_a_broadcast_reaches_each_node_once_and_tells_the_truth(
    backend: Backend, made: list[Plan], end: float, more: float, cancelled: float | None
) -> None:
    """Rule 8, Q5: returns on the first accept; what each node said by the bound is in the result, cancelled or not."""
    play = play_of(made)
    nodes = [plan.node_id for plan in made]
    bound = end + more
    settled: list[BroadcastResult] = []
    sent: list[NodeId] = []

    async def send(node_id: NodeId, begun: Callable[[], None]) -> Sourced[Publication]:
        begun()
        sent.append(node_id)
        return await play.op(node_id)

    async def main() -> Ended | None:
        async with running() as runner:
            ended = None
            with anyio.CancelScope(deadline=math.inf if cancelled is None else cancelled):
                ended = await observe(
                    lambda: broadcast(send, nodes, end=end, bound=bound, runner=runner, on_settled=settled.append)
                )
            assert ended is not None or anyio.current_time() == cancelled
            await anyio.sleep_until(bound + 0.001)
            assert play.under_way == 0
            assert not runner.stragglers
            return ended

    ended = run_in_virtual_time(main, backend=backend)
    assert sorted(sent) == nodes
    (result,) = settled
    said = {plan.node_id: plan.gives for plan in made if plan.gives is not NEVER and plan.after < bound}
    by_word = {
        Publication.ACCEPTED: result.accepted,
        Publication.BROADCAST: result.broadcast,
        failures.AlreadyKnown: result.already_known,
        failures.BadRequest: result.refused,
    }
    for word, found in by_word.items():
        assert [*found] == [node_id for node_id in nodes if said.get(node_id) is word]
    assert [*result.failed] == [n for n in nodes if said.get(n, DOWN) is DOWN]
    if ended is None:
        return
    accepts = [plan.after for plan in made if plan.gives is Publication.ACCEPTED and plan.after < end]
    in_time = [plan for plan in made if plan.gives is not NEVER and plan.after < min(end, bound)]
    if accepts:
        assert ended.at == min(accepts)
        assert ended.answer is result
        assert result.outcome is Outcome.ACCEPTED
        return
    assert ended.at == (max(plan.after for plan in in_time) if len(in_time) == len(made) else end)
    good = any(plan.gives in (Publication.BROADCAST, failures.AlreadyKnown) for plan in in_time)
    assert (ended.answer is result) if good else isinstance(ended.error, NotPublished)


@settings(max_examples=EXAMPLES)
@given(made=plans(), leaves=ends, which=st.sampled_from(["first", "best", "quorum"]))
def test_whenever_the_caller_leaves_nothing_is_left_behind(
    backend: Backend, made: list[Plan], leaves: float, which: str
) -> None:
    """Rule 5: at that very moment."""
    play = play_of(made)
    plan_of = {plan.node_id: plan for plan in made}
    nodes = [*plan_of]

    async def main() -> None:
        async with running() as runner:
            calls: dict[str, Callable[[], Any]] = {
                "first": lambda: first_success(
                    play.op, nodes, end=50, delay=lambda n: plan_of[n].delay, runner=runner, accept=accept
                ),
                "best": lambda: best(
                    play.op, [nodes], soft=2.0, end=50, score=lambda _: None, accept=accept, runner=runner
                ),
                "quorum": lambda: quorum(
                    play.op, nodes, threshold=2, key=lambda a: a.value, end=50, again=0.5, accept=accept, runner=runner
                ),
            }
            with anyio.CancelScope(deadline=leaves) as scope:
                await observe(calls[which])
            assert not scope.cancelled_caught or anyio.current_time() == leaves
            assert play.under_way == 0

    run_in_virtual_time(main, backend=backend)


def test_the_model_knows_every_kind_of_failure_that_is_used() -> None:
    """A slip in the list above would make the properties vacuous."""
    assert all(issubclass(word, NodeError) for word in GIVEN if isinstance(word, type))
