"""Best, where there is nothing to compare, and where there are many tiers (Q2, Q7)."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from tests.routing_script import NEVER, REFUSED, A, B, C, D, Script, Step, running, script
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.routing.best import best
from vc_fallback.routing.outcomes import AllNodesFailed, Doubt

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def choose(play: Script, *tiers: Sequence[NodeId], **options: Any) -> tuple[NodeId, float]:
    """Return who won, and when."""
    async with running() as runner:
        began = anyio.current_time()
        options = {"soft": began + 1.5, "end": began + 6.0, "score": None, "runner": runner, **options}
        found = await best(play.op, tiers or [[*play.steps]], **options)
        return found.node_id, anyio.current_time() - began


async def test_the_first_by_rank_wins_as_soon_as_it_is_there() -> None:
    """Q7: nobody behind it is waited for."""
    assert await choose(script(a=Step(0.5, "x"), b=Step(0.1, "x"), c=Step(0, NEVER))) == (A, 0.5)


async def test_the_next_wins_when_all_before_it_have_failed() -> None:
    """Q7: whichever came first; one that is doubted has failed."""
    assert await choose(script(a=Step(0.5, REFUSED), b=Step(0.1, "x"), c=Step(0, NEVER))) == (B, 0.5)

    def accept(answer: Sourced[Any]) -> Doubt | None:
        return Doubt("wrong") if answer.value == "wrong" else None

    play = script(a=Step(0.2, "wrong"), b=Step(0.1, REFUSED), c=Step(0.25, "x"), d=Step(0, NEVER))
    found, took = await choose(play, accept=accept)
    assert (found, round(took, 6)) == (C, 0.25)


async def test_at_the_soft_deadline_the_first_by_rank_of_what_has_come_wins() -> None:
    """Q2: then the first answer."""
    play = script(a=Step(0, NEVER), b=Step(1.0, "x"), c=Step(0.1, "x"))
    assert await choose(play) == (B, 1.5)
    play = script(a=Step(0, NEVER), b=Step(2.0, "x"), c=Step(2.5, "x"))
    found, took = await choose(play)
    assert (found, round(took, 6)) == (B, 2.0)


@pytest.mark.parametrize("score", [None, lambda answer: answer.value])
async def test_each_tier_has_as_long_as_the_first_before_the_next_is_asked_as_well(score: Any) -> None:
    """Q7, N6: the block of a node that is behind is not asked for because fallbacks are a little slow."""
    play = script(a=Step(0, NEVER), b=Step(0, NEVER), c=Step(0, NEVER), d=Step(0.5, 1))
    found, took = await choose(play, [A], [B], [C], [D], score=score)
    assert (found, round(took, 6)) == (D, 5.0)
    assert play.times == [0.0, 1.5, 3.0, 4.5]
    play = script(a=Step(0, NEVER), b=Step(0, REFUSED), c=Step(0.5, 1), d=Step(0, NEVER))
    found, took = await choose(play, [A], [B], [C], [D], score=score)
    assert (found, round(took, 6)) == (C, 3.5)
    assert play.order == [A, B, C]


async def test_a_tier_that_has_failed_gives_way_at_once() -> None:
    """Q3: however many."""
    play = script(a=Step(0.1, REFUSED), b=Step(0.2, REFUSED), c=Step(0.3, REFUSED), d=Step(0.4, "x"))
    found, took = await choose(play, [A], [B], [C], [D])
    assert (found, round(took, 6)) == (D, 1.0)
    with pytest.raises(AllNodesFailed):
        await choose(script(a=Step(0.1, REFUSED), b=Step(0.2, REFUSED)), [A], [B])
