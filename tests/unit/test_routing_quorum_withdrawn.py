"""Quorum: a vote counts while its node stands by it (Q6)."""

from typing import Any

import anyio
import pytest

from tests.routing_script import NOT_FOUND, REFUSED, SYNCING, A, B, Step, error, running, script
from vc_fallback.base.types import NodeId
from vc_fallback.base.watch import Watch
from vc_fallback.node.failures import Quarantined
from vc_fallback.routing.outcomes import Doubt, QuorumNotReached
from vc_fallback.routing.quorum import quorum

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


@pytest.mark.parametrize(
    ("gives", "counts"),
    [("optimistic", False), (NOT_FOUND, False), (SYNCING, False), (error(Quarantined), False), (REFUSED, True)],
    ids=["doubted", "not found", "syncing", "of another chain", "not reached"],
)
async def test_a_vote_that_its_node_withdraws_is_not_counted(gives: Any, counts: bool) -> None:
    """Q6: asked again for it has news, it says something else; where it cannot be reached it has said nothing."""
    play = script(a=[Step(0, "x"), Step(0, gives)], b=Step(0.4, "x"))
    watches: dict[NodeId, Watch[None]] = {A: Watch(None), B: Watch(None)}
    async with running() as runner, anyio.create_task_group() as tasks:

        async def news() -> None:
            await anyio.sleep(0.2)
            watches[A].set(None)

        tasks.start_soon(news)
        options: dict[str, Any] = {"threshold": 2, "key": lambda answer: answer.value, "end": 0.45, "again": 1.0}

        def accept(answer: Any) -> Doubt | None:
            return Doubt("optimistic") if answer.value == "optimistic" else None

        asked = quorum(play.op, [A, B], runner=runner, watch=watches.get, accept=accept, **options)
        if counts:
            assert (await asked).voters == (A, B)
        else:
            with pytest.raises(QuorumNotReached) as raised:
                await asked
            # Where its node cannot have another, too few are left: nobody else is waited for.
            gone = isinstance(raised.value.errors.get(A), Quarantined)
            assert raised.value.votes == ({} if gone else {"x": (B,)})
    assert play.order == [A, B, A]
