"""What a request was made of goes when it is over: ten thousand a second leave nothing to the garbage collector."""

import gc
import math
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.routing_script import NEVER, A, B, C, Step, always, running, script, sourced
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.base.watch import Watch
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.broadcast import broadcast
from vc_fallback.routing.first_success import first_success
from vc_fallback.routing.quorum import quorum
from vc_fallback.routing.runner import Runner

pytestmark = pytest.mark.anyio

Request = Callable[[Runner], Awaitable[object]]

NODES = [A, B, C]
OURS = "vc_fallback.routing"


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


def end() -> float:
    return anyio.current_time() + 8.0


async def at_once(runner: Runner) -> object:
    """The first node answers."""
    play = script(a=Step(0.1, "x"), b=Step(0.1, "x"))
    return await first_success(play.op, [A, B], end=end(), delay=always(1.0), runner=runner)


async def late(runner: Runner) -> object:
    """The second node answers, as the first is late."""
    play = script(a=Step(0, NEVER), b=Step(0.1, "x"))
    return await first_success(play.op, [A, B], end=end(), delay=always(1.0), runner=runner)


async def agreed(runner: Runner) -> object:
    """Two of three agree, one after the other; the third is too late."""
    play = script(a=Step(0.1, "x"), b=Step(0.2, "x"), c=Step(0, NEVER))
    watches: dict[NodeId, Watch[None]] = {node_id: Watch(None) for node_id in NODES}
    return await quorum(
        play.op,
        NODES,
        threshold=2,
        key=lambda answer: str(answer.value),
        end=end(),
        again=0.5,
        runner=runner,
        watch=watches.get,
    )


async def published(runner: Runner) -> object:
    """All take it, one after the other."""

    async def send(node_id: NodeId, begun: Callable[[], None]) -> Sourced[Publication]:
        begun()
        await anyio.sleep(0.1 * (1 + NODES.index(node_id)))
        return sourced(node_id, Publication.ACCEPTED)

    result = await broadcast(send, NODES, end=end(), runner=runner)
    await result.settled()
    return len(result.accepted)


@pytest.mark.parametrize("request_", [at_once, late, agreed, published])
async def test_a_request_that_went_well_leaves_no_cycle(request_: Request) -> None:
    """Rule 6: memory is as it was without a collection, which would stop all other calls for as long as it takes."""
    async with running() as runner:
        await request_(runner)
        await anyio.sleep(1)
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                await request_(runner)
            await anyio.sleep(1)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            left = [kind for kind in map(type, gc.garbage) if kind.__module__.startswith(OURS)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        assert left == []
        assert runner._next() == math.inf
