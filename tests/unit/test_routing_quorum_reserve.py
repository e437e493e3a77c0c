"""Quorum: who votes where the others cannot be enough, or do not agree (Q6)."""

from typing import Any

import anyio
import pytest

from tests.routing_script import CLOSED, NEVER, REFUSED, A, B, C, D, Script, Step, running, script
from vc_fallback.base.watch import Watch
from vc_fallback.routing.outcomes import DeadlineExceeded, NoCandidates, QuorumNotReached
from vc_fallback.routing.quorum import Agreement, quorum

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def vote(play: Script, nodes: str, reserve: str, **options: Any) -> Agreement[Any]:
    async with running() as runner:
        end = anyio.current_time() + 8
        options = {"threshold": 2, "key": lambda answer: answer.value, "end": end, "again": 0.5, **options}
        try:
            return await quorum(play.op, [*nodes], reserve=[*reserve], runner=runner, **options)
        finally:
            assert play.under_way == 0


async def test_the_reserve_is_not_asked_while_the_others_agree() -> None:
    """Primaries have the vote."""
    play = script(a=Step(0.2, "x"), b=Step(0.4, "x"), c=Step(0, "x"), d=Step(0, "x"))
    assert (await vote(play, "ab", "cd")).voters == (A, B)
    assert sorted(play.order) == [A, B]


async def test_the_reserve_is_asked_at_once_where_too_few_of_the_others_answer() -> None:
    """Two of three are down, which nobody knew: a quorum of two is to be had with the fallbacks."""
    play = script(a=Step(0.1, "x"), b=Step(0.2, REFUSED), c=Step(0.25, CLOSED), d=Step(0.1, "x"))
    assert (await vote(play, "abc", "d")).voters == (A, D)
    assert play.asked[-1] == (D, 0.25)
    assert anyio.current_time() == pytest.approx(0.35)


async def test_the_reserve_is_asked_where_the_others_are_silent_or_differ() -> None:
    """After the time until a node is asked again."""
    for second in (Step(0, NEVER), Step(0, "y")):
        play = script(a=Step(0.1, "x"), b=second, c=Step(0.1, "x"))
        began = anyio.current_time()
        agreed = await vote(play, "ab", "c")
        assert agreed.voters == (A, C)
        assert [when for node_id, when in play.asked if node_id == C] == [began + 0.5]


async def test_the_reserve_is_asked_at_once_where_there_are_too_few_others() -> None:
    """Also where there is nobody else."""
    play = script(a=Step(0.1, "x"), b=Step(0.1, "x"), c=Step(0.1, "x"))
    assert (await vote(play, "a", "bc", threshold=3)).voters == (A, B, C)
    assert {when for _, when in play.asked} == {0.0}
    play = script(a=Step(0.1, "x"), b=Step(0.1, "x"))
    assert (await vote(play, "", "ab")).voters == (A, B)


async def test_of_the_reserve_one_is_asked_again_too() -> None:
    """Q6: on its news, and by the clock."""
    watches = {C: Watch(0), D: Watch(0)}
    play = script(
        a=Step(0.0, "x"),
        b=Step(0, REFUSED),
        c=[Step(0, "old"), Step(0, "older"), Step(0, "x")],
        d=Step(0, NEVER),
    )
    async with anyio.create_task_group() as group:

        async def news() -> None:
            await anyio.sleep(0.75)
            watches[C].set(1)

        group.start_soon(news)
        assert (await vote(play, "ab", "cd", watch=watches.get)).voters == (A, C)
    assert [when for node_id, when in play.asked if node_id == C] == [0.0, 0.5, 0.75]
    assert [watch._listeners for watch in watches.values()] == [[], []]


async def test_a_quorum_is_not_lowered_for_the_reserve() -> None:
    """Rule 9: its votes count like all others, and it counts as one that may still vote."""
    play = script(a=Step(0, CLOSED), b=Step(0, CLOSED), c=Step(0.5, "x"), d=Step(1.0, "y"))
    with pytest.raises(QuorumNotReached, match="x by c; y by d"):
        await vote(play, "ab", "cd")
    play = script(a=Step(0, CLOSED), b=Step(0, "x"), c=Step(0.5, CLOSED))
    with pytest.raises(QuorumNotReached):
        await vote(play, "ab", "c")
    assert anyio.current_time() == 8.5
    with pytest.raises(QuorumNotReached, match="5 nodes have to give the same, and there are 4"):
        await vote(play, "ab", "cd", threshold=5)


async def test_bad_input() -> None:
    """Nothing is sent."""
    play = script(a=Step(0, "x"), b=Step(0, "x"))
    with pytest.raises(NoCandidates):
        await vote(play, "", "")
    with pytest.raises(ValueError, match="twice"):
        await vote(play, "ab", "b")
    with pytest.raises(DeadlineExceeded):
        await vote(play, "a", "b", end=0.0)
    assert play.asked == []
