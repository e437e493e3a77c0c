"""Reading what waits: quick where much waits, and never at the cost of everyone else."""

import anyio
import anyio.lowlevel
import pytest

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
