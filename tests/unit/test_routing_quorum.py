"""Quorum: so many nodes have to give the same; who differs is asked again, and nothing is lowered (Q6, rule 9)."""

import math
from collections.abc import Hashable
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
from vc_fallback.base.watch import Watch
from vc_fallback.node import failures
from vc_fallback.routing.outcomes import DeadlineExceeded, Doubt, NoCandidates, QuorumNotReached
from vc_fallback.routing.quorum import Agreement, majority, quorum
from vc_fallback.routing.runner import Runner
from vc_fallback.testing.tasks import background_tasks

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


def value(answer: Sourced[Any]) -> Hashable:
    key: Hashable = answer.value
    return key


async def vote(play: Script, **options: Any) -> Agreement[Any]:
    async with running() as runner:
        options = {"threshold": 2, "key": value, "end": 8.0, "again": 0.5, "runner": runner, **options}
        try:
            return await quorum(play.op, **{"nodes": [*play.steps], **options})
        finally:
            assert play.under_way == 0


async def test_as_soon_as_enough_agree_their_value_is_the_answer() -> None:
    """Q6: the answer of the first of them in the list, with who voted how."""
    play = script(a=Step(0.2, "x"), b=Step(0.05, "y"), c=Step(0.1, "x"), d=Step(0, NEVER))
    agreed = await vote(play)
    assert (agreed.answer.node_id, agreed.answer.value) == (A, "x")
    assert agreed.voters == (A, C)
    assert agreed.votes == {"x": (A, C), "y": (B,)}
    assert anyio.current_time() == 0.2


async def test_one_node_may_be_enough_where_that_is_asked_for() -> None:
    """Q6: an explicit threshold."""
    play = script(a=Step(0.2, "x"), b=Step(0.1, "y"))
    assert (await vote(play, threshold=1)).voters == (B,)


async def test_the_minority_is_asked_again_until_it_agrees() -> None:
    """Q6: not one shot; every half second after its answer."""
    play = script(a=[Step(0.1, "x")], b=[Step(0.1, "y"), Step(0.1, "y"), Step(0.1, "x")], c=Step(0, NEVER))
    assert (await vote(play)).voters == (A, B)
    assert [when for node_id, when in play.asked if node_id == B] == pytest.approx([0.0, 0.6, 1.2])
    assert anyio.current_time() == pytest.approx(1.3)


async def test_while_none_has_more_votes_all_are_asked_again() -> None:
    """Q6: each is the minority."""
    play = script(
        a=[Step(0.1, "x"), Step(0.1, "z")], b=[Step(0.1, "y"), Step(0.2, "z")], c=[Step(0.1, "w"), Step(0.3, "z")]
    )
    assert (await vote(play, threshold=3)).voters == (A, B, C)
    assert sorted(play.order[:3]) == sorted(play.order[3:]) == [A, B, C]


async def test_who_is_with_the_most_is_not_asked_again_until_it_is_not() -> None:
    """Q6: a and b agree, c and d come to agree on something else; then a and b are asked again."""
    play = script(
        a=[Step(0, "x"), Step(0, "y")],
        b=[Step(0, "x"), Step(0, "y")],
        c=[Step(0, "w"), Step(0.1, "y")],
        d=[Step(0, "v"), Step(0.1, "y")],
    )
    agreed = await vote(play, threshold=3)
    assert agreed.answer.value == "y"
    assert [node_id for node_id, when in play.asked if when == 0.5] in ([C, D], [D, C])
    assert anyio.current_time() == 1.0


async def test_a_node_has_one_vote_that_of_its_last_answer() -> None:
    """Q6: it does not agree with itself, and what it said before counts no more."""
    watch = Watch(0)
    play = script(
        a=[Step(0, "x"), Step(0, "y"), Step(0, NEVER)],
        b=[Step(1.0, "x"), Step(0, NEVER)],
        c=[Step(2.0, "y")],
    )
    async with anyio.create_task_group() as group:
        group.start_soon(news, watch, 0.25)
        agreed = await vote(play, watch={A: watch}.get)
    assert agreed.voters == (A, C)
    assert anyio.current_time() == 2.0


async def news(watch: Watch[int], after: float) -> None:
    await anyio.sleep(after)
    watch.set(1)


async def test_news_has_a_node_asked_again_at_once() -> None:
    """Q6: on its next head, also who is with the most."""
    watches = {A: Watch(0), B: Watch(0), C: Watch(0)}
    play = script(
        a=[Step(0.1, "x"), Step(0.1, "y")], b=[Step(0.1, "x"), Step(0.1, "y")], c=[Step(0.1, "w"), Step(0.1, "y")]
    )

    async with anyio.create_task_group() as group:
        for watch in watches.values():
            group.start_soon(news, watch, 0.2)
        agreed = await vote(play, threshold=3, watch=watches.get)
    assert agreed.answer.value == "y"
    assert anyio.current_time() == pytest.approx(0.3)


async def test_news_that_comes_while_a_node_is_asked_is_not_lost() -> None:
    """Q6: its answer may be older than its head."""
    watches = {A: Watch(0), B: Watch(0)}
    play = script(a=[Step(0.2, "old"), Step(0.1, "new")], b=Step(0.1, "new"))

    async with anyio.create_task_group() as group:
        group.start_soon(news, watches[A], 0.15)
        await vote(play, watch=watches.get)
    assert anyio.current_time() == pytest.approx(0.3)


async def test_news_has_a_node_asked_again_once() -> None:
    """Q6: then it goes by the clock again, and only for who is not with the most."""
    watches = {A: Watch(0), B: Watch(0), C: Watch(0)}
    play = script(a=Step(0.125, "x"), b=Step(0.125, "x"), c=Step(0.125, "y"))
    async with anyio.create_task_group() as group:
        for watch in watches.values():
            group.start_soon(news, watch, 0.25)
        with pytest.raises(QuorumNotReached):
            await vote(play, threshold=3, end=1.125, watch=watches.get)
    assert [when for node_id, when in play.asked if node_id == A] == [0.0, 0.25]
    assert [when for node_id, when in play.asked if node_id == C] == [0.0, 0.25, 0.875]
    assert [watch._listeners for watch in watches.values()] == [[], [], []]


async def test_without_news_or_when_they_end_nodes_are_asked_by_the_clock() -> None:
    """Q6: a node that left the list, or has no stream."""
    watch = Watch(0)
    watch.close()
    play = script(a=[Step(0, "x"), Step(0, "y")], b=[Step(0, "y"), Step(0, NEVER)])
    await vote(play, watch={A: watch}.get)
    assert play.asked[-1][0] in (A, B)
    assert anyio.current_time() == 0.5


async def test_who_failed_is_asked_again() -> None:
    """Q6: until the deadline."""
    play = script(a=Step(0, "x"), b=[Step(0, REFUSED), Step(0, NOT_FOUND), Step(0, "x")])
    assert (await vote(play)).voters == (A, B)
    assert anyio.current_time() == 1.0


async def test_who_asks_to_be_left_alone_is_until_then() -> None:
    """Q11: `Retry-After` holds, whatever news there is."""

    def limited(node_id: NodeId) -> failures.RateLimited:
        return failures.RateLimited(node_id, "/eth/v1/x", "slow down", status=429, retry_after=2.0)

    watch = Watch(0)
    play = script(a=Step(0, "x"), b=[Step(0, limited), Step(0, "x")])
    async with anyio.create_task_group() as group:
        group.start_soon(news, watch, 0.3)
        await vote(play, watch={B: watch}.get)
    assert play.asked[-1] == (B, 2.0)
    play = script(a=Step(0, "x"), b=[Step(0, limited), Step(0, "x")])
    await vote(play, end=20.0)
    assert play.asked[-1] == (B, 4.0)


async def test_a_quorum_that_was_not_reached_raises_with_the_votes() -> None:
    """Rule 9: at the deadline, never a lower one; who says what is named."""
    play = script(a=Step(0, "x"), b=Step(0, "x"), c=Step(0, "y"), d=Step(0.1, REFUSED))
    with pytest.raises(QuorumNotReached) as caught:
        await vote(play, threshold=3, what="attestation data")
    assert anyio.current_time() == 8.0
    assert caught.value.votes == {"x": (A, B), "y": (C,)}
    assert caught.value.threshold == 3
    text = str(caught.value)
    assert text == "attestation data: 3 nodes have to give the same: x by a, b; y by c; d: connection refused"
    assert caught.value.errors.keys() == {D}


async def test_a_root_is_shown_by_its_first_bytes() -> None:
    """Equality is by SSZ root (Q6)."""
    play = script(a=Step(0, b"\xab" * 32), b=Step(0, b"\x01" * 32))
    with pytest.raises(QuorumNotReached, match="0xabababab… by a; 0x01010101… by b"):
        await vote(play, end=1.0)


async def test_without_votes_the_silent_are_named() -> None:
    """Rule 9."""
    with pytest.raises(QuorumNotReached, match="a: no answer after 8 s; b: no answer after 8 s"):
        await vote(script(a=Step(0, NEVER), b=Step(0, NEVER)))


@pytest.mark.parametrize(
    "out", [failures.Closed, failures.UnsupportedEndpoint, failures.Quarantined, failures.Unauthorized]
)
async def test_when_too_few_are_left_it_raises_at_once(out: type[failures.Unreachable]) -> None:
    """There is nothing to wait for; who cannot be asked is not asked again."""
    play = script(a=Step(0.1, "x"), b=Step(0.2, error(out)), c=Step(0.3, error(out)))
    with pytest.raises(QuorumNotReached):
        await vote(play)
    assert anyio.current_time() == 0.3
    assert len(play.order) == 3


async def test_who_leaves_after_its_vote_has_voted() -> None:
    """Its last answer stands."""
    play = script(a=[Step(0, "x"), Step(0, CLOSED)], b=[Step(0.1, "y"), Step(0.9, "x")], c=Step(0, CLOSED))
    assert (await vote(play)).voters == (A, B)


async def test_a_doubted_answer_is_no_vote() -> None:
    """Q8, rule 9: usable or not; the node is asked again."""

    def accept(answer: Sourced[Any]) -> Doubt | None:
        return Doubt("optimistic", usable=True) if answer.value == "o" else None

    play = script(a=[Step(0, "o"), Step(0, "x")], b=Step(0, "o"), c=Step(0, "x"))
    assert (await vote(play, accept=accept)).voters == (A, C)
    play = script(a=Step(0, "o"), b=Step(0, "o"))
    with pytest.raises(QuorumNotReached, match="not taken: optimistic"):
        await vote(play, accept=accept)


@pytest.mark.parametrize("threshold", [3, 100])
async def test_a_threshold_above_the_number_of_nodes_is_an_error_before_anything_is_sent(threshold: int) -> None:
    """Bad input, rule 9."""
    play = script(a=Step(0, "x"), b=Step(0, "x"))
    with pytest.raises(QuorumNotReached, match=f"{threshold} nodes have to give the same, and there are 2"):
        await vote(play, threshold=threshold)
    assert play.asked == []


async def test_bad_input_is_an_error_at_once() -> None:
    """Nothing is sent."""
    play = script(a=Step(0, "x"), b=Step(0, "x"))
    with pytest.raises(NoCandidates):
        await vote(play, nodes=[])
    with pytest.raises(DeadlineExceeded):
        await vote(play, end=0.0)
    with pytest.raises(ValueError, match="twice"):
        await vote(play, nodes=[A, A])
    with pytest.raises(ValueError, match="threshold"):
        await vote(play, threshold=0)
    for again in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="again"):
            await vote(play, again=again)
    assert play.asked == []


class Own(Exception):
    """An exception of the caller's own."""


class Stop(BaseException):
    """One that is none of `Exception`."""


@pytest.mark.parametrize("own", [Own(), Stop(), ValueError("x"), ExceptionGroup("g", [Own()])])
async def test_the_callers_own_exception_comes_out_unchanged(own: BaseException) -> None:
    """It is the very object, in no group, and ends the request."""
    play = script(a=Step(0.2, own), b=Step(0, NEVER), c=Step(0.1, "x"))
    with pytest.raises(type(own)) as caught:
        await vote(play)
    assert caught.value is own


async def test_an_exception_of_key_watch_or_accept_comes_out_unchanged() -> None:
    """Also a key that cannot be compared."""

    def raises(_: object) -> Any:
        raise Own

    for option in ("key", "accept", "watch"):
        with pytest.raises(Own):
            await vote(script(a=Step(0.1, "x"), b=Step(0.1, "x")), **{option: raises})
    with pytest.raises(TypeError):
        await vote(script(a=Step(0.1, []), b=Step(0.1, [])))


async def test_every_attempt_is_reported() -> None:
    """N3."""
    reports = Reports()
    play = script(a=Step(0, "x"), b=[Step(0, REFUSED), Step(0, "x")], c=Step(0, NEVER))
    await vote(play, report=reports)
    assert sorted(attempt.node_id for attempt in reports.attempts) == [A, B, B, C]
    assert reports.given_up == [C]


@pytest.mark.parametrize("answer", ["x", NEVER, REFUSED])
async def test_when_the_runner_ends_there_is_nothing_to_wait_for(answer: Any) -> None:
    """A call of a task outside the facade's scope: it is told at once, whatever its nodes were doing."""
    caught: list[QuorumNotReached] = []

    async def call() -> None:
        with pytest.raises(QuorumNotReached) as raised:
            await quorum(play.op, [A, B, C], threshold=2, key=value, end=8, again=0.75, runner=runner)
        caught.append(raised.value)

    play = script(a=Step(0, "y"), b=Step(0, answer), c=Step(0, NEVER))
    async with anyio.create_task_group() as outer, background_tasks() as group:
        runner = Runner()
        await group.start(runner.run)
        outer.start_soon(call)
        await anyio.sleep(1)
    assert anyio.current_time() == 1
    assert play.under_way == 0
    assert len(caught) == 1
    with pytest.raises(QuorumNotReached, match="the program ends"):
        await quorum(play.op, [A, B, C], threshold=2, key=value, end=8, again=0.75, runner=runner)


def test_a_majority_is_more_than_half() -> None:
    """Q6: the default, of the primaries."""
    assert [majority(count) for count in (1, 2, 3, 4, 5, 6, 7)] == [1, 2, 2, 3, 3, 4, 4]
