"""Lines to a descriptor never hold up the event loop, and a slow or absent reader hurts only itself (rule 7)."""

import errno
import os
import pty
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from vc_fallback.cli import output
from vc_fallback.cli.output import Output

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["own description", "polled"])
def pipe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """A pipe's two ends, where the system can open its write end anew and where it cannot."""
    if request.param == "polled":
        monkeypatch.setattr(output, "_own_description", lambda fd: None)
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[int]:
    """A device, open for writing."""
    with Path(request.param).open("wb", buffering=0) as file:
        yield file.fileno()


@asynccontextmanager
async def running(fd: int, buffer: int = output.BUFFER, notices: list[int] | None = None) -> AsyncIterator[Output]:
    """An output whose task runs until the body ends and everything is written."""
    out = Output(fd, notice=(notices if notices is not None else []).append, buffer=buffer)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(out.run)
        yield out
        out.close()


async def read_all(fd: int, until: bytes) -> bytes:
    data = b""
    while not data.endswith(until):
        await anyio.wait_readable(fd)
        data += os.read(fd, 65536)
    return data


async def test_lines_arrive_whole_and_in_order(pipe: tuple[int, int]) -> None:
    lines = [f"{number} " + "x" * (number * 37 % 9000) for number in range(100)]
    async with running(pipe[1]) as out:
        for line in lines:
            out.write(line)
        out.write("end")
        data = await read_all(pipe[0], b"end\n")
    assert data.decode().splitlines() == [*lines, "end"]


async def test_a_line_is_written_at_once(pipe: tuple[int, int]) -> None:
    async with running(pipe[1]) as out:
        for text in ("one", "two"):
            out.write(text)
            assert await read_all(pipe[0], b"\n") == text.encode() + b"\n"


async def test_a_reader_that_stalls_loses_whole_lines_and_is_told_how_many(pipe: tuple[int, int]) -> None:
    notices: list[int] = []
    line = "x" * 99
    async with running(pipe[1], buffer=100_000, notices=notices) as out:
        turns = 0
        for _ in range(5_000):
            out.write(line)
            if _ % 100 == 0:
                await anyio.lowlevel.checkpoint()
                turns += 1
        assert turns == 50
        assert notices == []
        out.write("end", last=True)
        data = await read_all(pipe[0], b"end\n")
    lines = data.decode().splitlines()
    assert lines[-1] == "end"
    assert set(lines[:-1]) == {line}
    assert len(lines) - 1 + sum(notices) == 5_000
    assert len(notices) == 1


async def test_the_end_waits_for_a_slow_reader_only_so_long(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "LAST_CHANCE", 0.05)
    with anyio.fail_after(5):
        async with running(pipe[1]) as out:
            out.write("x" * 500_000)


async def test_a_reader_that_left_is_noticed_and_is_no_error(pipe: tuple[int, int]) -> None:
    read, write = os.pipe()
    os.close(read)
    with anyio.fail_after(5):
        async with running(write) as out:
            out.write("x")
            await out.wait_broken()
            out.write("y")
    os.close(write)
    assert out.error is None


async def test_the_descriptor_itself_stays_as_it_was(pipe: tuple[int, int]) -> None:
    """Its flags are shared with the shell and with whoever else holds the pipe."""
    async with running(pipe[1]) as out:
        out.write("x")
        await read_all(pipe[0], b"\n")
        assert os.get_blocking(pipe[1])
    assert os.get_blocking(pipe[1])


async def test_a_stopped_terminal_stops_nobody_else() -> None:
    """A terminal takes some 64 KiB that nobody reads, and then no more."""
    master, terminal = pty.openpty()
    try:
        notices: list[int] = []
        async with running(terminal, buffer=50_000, notices=notices) as out:
            with anyio.fail_after(5):
                for _ in range(3_000):
                    out.write("x" * 99)
                    await anyio.lowlevel.checkpoint()
            out.write("end", last=True)
            await read_all(master, b"end\r\n")
        assert sum(notices) > 0
    finally:
        os.close(master)
        os.close(terminal)


async def test_a_file_takes_everything(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("before\n")
    with path.open("a") as file:
        async with running(file.fileno()) as out:
            out.write("one")
            out.write("broken \udcff")
    assert path.read_text() == "before\none\nbroken \\udcff\n"


@pytest.mark.parametrize("device", [os.devnull], indirect=True)
async def test_the_null_device_takes_everything(device: int) -> None:
    async with running(device) as out:
        out.write("x")
    assert out.error is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("device", ["/dev/full"], indirect=True)
async def test_a_full_disk_is_an_error_that_is_kept(device: int) -> None:
    async with running(device) as out:
        out.write("x")
        with anyio.fail_after(5):
            await out.wait_broken()
    assert out.error is not None
    assert out.error.errno == errno.ENOSPC
