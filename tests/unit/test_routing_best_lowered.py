"""Best: the answer of a node that has fallen behind meanwhile is not compared, and not lost either (Q7)."""

from typing import Any

import anyio
import pytest

from tests.routing_script import NEVER, REFUSED, A, B, C, Step, script
from tests.unit.test_routing_best import choose
from vc_fallback.base.types import NodeId

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


def only(*nodes: NodeId) -> dict[str, Any]:
    return {"lowered": lambda node_id: node_id in nodes}


async def test_a_lowered_answer_does_not_win_by_its_value() -> None:
    """Q7: it would be for an old head."""
    play = script(a=Step(0.1, 10), b=Step(0.2, 90))
    assert (await choose(play, **only(B))).node_id == A
    play = script(a=Step(0.1, 90), b=Step(0.2, 10))
    assert (await choose(play, **only(A))).node_id == B


async def test_it_is_judged_when_the_answer_is_chosen() -> None:
    """Q7: the head that the others have may come while nodes are at it."""
    play = script(a=Step(0.1, 10), b=Step(0.2, 90), c=Step(0.3, 20))
    chosen = await choose(play, lowered=lambda node_id: node_id == B and anyio.current_time() > 0.25)
    assert chosen.node_id == C


async def test_where_there_is_nothing_else_it_is_taken() -> None:
    """Q7: a proposal is not lost for it; at once where nobody else can give one."""
    play = script(a=Step(0.1, REFUSED), b=Step(0.2, 20), c=Step(0.3, 30))
    assert (await choose(play, **only(B, C))).node_id == C
    assert anyio.current_time() == pytest.approx(0.3)


async def test_the_next_tier_is_asked_before_it_is_taken() -> None:
    """Q7: until the soft deadline."""
    play = script(a=Step(0.1, 90), b=Step(0.2, 10))
    assert (await choose(play, [A], [B], **only(A))).node_id == B
    assert play.times == [0.0, pytest.approx(0.1)]


async def test_the_next_tier_is_not_waited_for_beyond_the_soft_deadline() -> None:
    """Q7."""
    play = script(a=Step(0.1, 90), b=Step(0, NEVER))
    assert (await choose(play, [A], [B], **only(A))).node_id == A
    assert anyio.current_time() == 1.5


async def test_by_rank_it_is_passed_over() -> None:
    """Q7: from Gloas on, where no value is known."""
    play = script(a=Step(0.1, 1), b=Step(0.2, 1), c=Step(0, NEVER))
    assert (await choose(play, score=None, **only(A))).node_id == B
    assert anyio.current_time() == pytest.approx(0.2)
