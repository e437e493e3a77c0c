"""When the example asks for duties: the nodes are made up, and time is virtual."""

from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from examples.minimal_vc.duties import Known
from examples.minimal_vc.turn import Turn
from vc_fallback import (
    ChainIdentity,
    Clock,
    Duties,
    Epoch,
    FallbackError,
    ProposerDuties,
    Root,
    Slot,
    SlotClock,
    Watch,
)

pytestmark = pytest.mark.anyio

A, B = Root(b"A" * 32), Root(b"B" * 32)


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


class Asked:
    """Nodes that name dependent roots, and how they are asked: in slots since genesis, with the epoch."""

    def __init__(self) -> None:
        self.heads = SimpleNamespace(latest=Watch(None), dependent_root=lambda epoch: self.roots.get(epoch))
        self.clock = Clock(wall=None, unix=0.0)
        self.slots = SlotClock(ChainIdentity(0.0, A, 12.0, 8), self.clock.offset)
        self.roots: dict[int, Root] = {}
        self.answer: Duties[str] | None = Duties(["duty"], A)
        self.asked: list[tuple[float, int]] = []
        self.lines: list[str] = []

    def now(self) -> Turn:
        nodes: Any = self
        signer: Any = None
        return Turn(nodes, self.slots, signer, self.lines.append, self.slots.slot_at(self.clock.now()))

    async def fetch(self, turn: Turn, epoch: Epoch) -> Duties[str]:
        self.asked.append((round(self.slots.into_slot(self.clock.now(), Slot(0)) / 12, 3), epoch))
        if self.answer is None:
            raise FallbackError("none")
        return self.answer

    async def until(self, position: float) -> None:
        await anyio.sleep_until(self.slots.start_of(Slot(0)) + 12 * position)


async def test_duties_are_fetched_once_and_those_of_the_next_epoch_ahead() -> None:
    """Half an epoch ahead; nothing is asked again without a reason."""
    nodes = Asked()
    known = Known(nodes.fetch, 4)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(known.keep, nodes.now)
        await nodes.until(20.5)
        assert await known.at(nodes.now(), Slot(24)) == ["duty"]
        tasks.cancel_scope.cancel()
    assert nodes.asked == [(0.0, 0), (4.0, 1), (12.0, 2), (20.0, 3)]


async def test_what_no_node_gives_is_asked_for_eight_times_in_a_slot_and_waited_for_until_its_end() -> None:
    """Each failure is told, and costs nothing else."""
    nodes = Asked()
    nodes.answer = None
    known = Known(nodes.fetch, 0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(known.keep, nodes.now)
        assert await known.at(nodes.now(), Slot(0)) == []
        await nodes.until(1.3)
        nodes.answer = Duties(["duty"], A)
        assert await known.at(nodes.now(), Slot(1)) == ["duty"]
        assert nodes.clock.now() == nodes.slots.start_of(Slot(1)) + 12 * 0.375
        tasks.cancel_scope.cancel()
    assert [at for at, _ in nodes.asked] == [number / 8 for number in range(12)]
    assert len(nodes.lines) == 11


@pytest.mark.parametrize(
    ("duties", "epoch"),
    [
        (Duties(["duty"], A), 0),
        (ProposerDuties(["duty"], A, version=2), 0),  # type: ignore[list-item]
        (ProposerDuties(["duty"], A, version=1), 1),  # type: ignore[list-item]
    ],
)
async def test_duties_that_another_block_fixes_are_fetched_with_the_head_that_says_so(
    duties: Duties[str], epoch: int
) -> None:
    """The epoch whose dependent root counts is the next one for proposers by the first version of the route."""
    nodes = Asked()
    nodes.answer = duties
    known = Known(nodes.fetch, 0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(known.keep, nodes.now)
        await nodes.until(2.2)
        nodes.roots = {epoch: A, 1 - epoch: B}
        nodes.heads.latest.set(None)
        await nodes.until(2.4)
        assert nodes.asked == [(0.0, 0)]
        nodes.roots = {epoch: B}
        nodes.heads.latest.set(None)
        await nodes.until(2.6)
        tasks.cancel_scope.cancel()
    assert nodes.asked == [(0.0, 0), (2.4, 0)]
