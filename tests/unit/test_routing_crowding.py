"""Signed messages wait for their turn at a node for as long as no other took them (Q5, case 28)."""

from typing import Any

import anyio
import pytest

from tests.routing_script import NEVER, A, B, Script, Step, running, script
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.broadcast import broadcast
from vc_fallback.routing.broadcast_result import BroadcastResult, NotPublished
from vc_fallback.routing.outcomes import NotSent
from vc_fallback.routing.runner import Runner
from vc_fallback.routing.sends import Begun

pytestmark = pytest.mark.anyio

OK = Publication.ACCEPTED
BOUND = 12.0


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def publish_many(
    runner: Runner, play: Script, nodes: list[NodeId], count: int, *, hurry: float
) -> list[BroadcastResult]:
    """Publish so many at once, whose callers go on after `hurry` seconds, and return what there is of them then."""
    results: list[BroadcastResult] = []
    began = anyio.current_time()

    async def send(node_id: NodeId, begun: Begun) -> Sourced[Publication]:
        begun()
        return await play.op(node_id)

    async def call() -> None:
        try:
            results.append(await broadcast(send, nodes, runner=runner, end=began + hurry, bound=began + BOUND))
        except NotPublished as error:
            results.append(error.result)

    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(call)
    return results


async def test_what_nobody_took_waits_for_its_turn_until_the_bound() -> None:
    """Only node, slow, and callers in a hurry: all that there is time for is sent, and what comes after it too."""
    async with running() as runner:
        play = script(a=Step(2.9, OK))
        results = await publish_many(runner, play, [A], 100, hurry=2.0)
        assert all(result.pending == (A,) for result in results)
        more = await publish_many(runner, play, [A], 10, hurry=2.0)
        for result in (*results, *more):
            await result.settled()
        assert play.order.count(A) == 110
        assert all(result.accepted == (A,) for result in (*results, *more))
        assert runner.stragglers == {}


async def test_what_another_node_takes_later_makes_room() -> None:
    """At a hung node no more waits than the bound, once it is not needed there."""
    async with running() as runner:
        play = script(a=Step(0, NEVER), b=Step(1.0, OK))
        results = await publish_many(runner, play, [A, B], 200, hurry=0.5)
        assert runner.stragglers[A] == 200
        await anyio.sleep(8.0)
        assert all(result.accepted == (B,) for result in results)
        assert play.order.count(A) == 32
        assert runner.stragglers[A] <= 32 + 32
        crowded = [result for result in results if isinstance(result.deliveries[A].error, NotSent)]
        assert len(crowded) == 200 - runner.stragglers[A]
        await anyio.sleep(BOUND)
        assert runner.stragglers == {}


async def test_there_is_a_bound_all_the_same() -> None:
    """Rule 6: what can never be sent in time does not pile up."""
    async with running(stragglers=64) as runner:
        play = script(a=Step(0, NEVER))
        results = await publish_many(runner, play, [A], 1200, hurry=0.5)
        left = runner.stragglers[A]
        assert 16 * 64 <= left <= 16 * 64 + 32  # those that are being written are under way anyhow
        await anyio.sleep(0.1)
        assert len([result for result in results if result.failed]) == 1200 - left
        await anyio.sleep(BOUND)
