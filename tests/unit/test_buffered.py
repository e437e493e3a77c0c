"""Reading what waits: quick where much waits, and never at the cost of everyone else."""

import anyio
import anyio.lowlevel
import pytest

from vc_fallback.base import buffered as base_buffered
from vc_fallback.base.buffered import RUN, Buffered

pytestmark = pytest.mark.anyio


def numbers(count: int) -> Buffered[int]:
    buffered = Buffered[int](buffer=count, on_full="drop_oldest", readable=lambda item: item, closed=lambda _: None)
    for number in range(count):
        buffered.tell(number)
    return buffered


async def test_others_run_while_somebody_reads_what_waits() -> None:
    """C8: a reader that waits for nothing else lets others run after some items, though not after each."""
    buffered, turns = numbers(10 * RUN), 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        for number in range(10 * RUN):
            assert await buffered.receive() == number
        tasks.cancel_scope.cancel()
    assert 5 <= turns <= 30


async def test_a_cancelled_read_loses_nothing() -> None:
    """C8: what was not returned still waits."""
    buffered, read = numbers(3 * RUN), []
    with anyio.CancelScope() as scope:
        scope.cancel()
        while True:
            read.append(await buffered.receive())
    assert len(read) < RUN
    assert [buffered.receive_nowait() for _ in range(3 * RUN - len(read))] == [*range(len(read), 3 * RUN)]


async def test_large_items_fill_a_buffer_before_many_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 6: a thousand events may wait, and each of them may have megabytes."""
    monkeypatch.setattr(base_buffered, "WEIGHT", 100)
    buffered = Buffered[int](
        buffer=1000, on_full="drop_oldest", readable=lambda item: item, closed=lambda _: None, weigh=lambda item: item
    )
    for item in (40, 50, 10):
        buffered.tell(item)
    assert buffered.statistics().dropped == 0
    buffered.tell(1)
    assert buffered.statistics().dropped == 1
    assert [buffered.receive_nowait() for _ in range(4)] == [50, 10, 1, None]
    # What has been read weighs nothing any more; one that is larger than all may wait alone.
    for item in (99, 1, 500):
        buffered.tell(item)
    assert [buffered.receive_nowait() for _ in range(2)] == [500, None]
