"""The table is drawn now and then, whole, and never waits for its terminal (rule 7, O4)."""

import fcntl
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import anyio
import pytest

from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import GateChanged, Started
from vc_fallback.base.types import NodeId, Tier
from vc_fallback.cli import screen as module
from vc_fallback.cli.logs import LineHandler
from vc_fallback.cli.output import Output
from vc_fallback.cli.screen import Screen
from vc_fallback.config import FallbackConfig
from vc_fallback.heads.monitor import HeadMonitor

pytestmark = pytest.mark.anyio

ENTER, LEAVE, HIDE, SHOW, HOME = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25l", "\x1b[?25h", "\x1b[H"


@pytest.fixture(autouse=True)
def size(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The terminal's columns and lines; a test may change them."""
    size = [120, 10]
    monkeypatch.setattr(module, "_size", lambda: tuple(size))
    monkeypatch.setattr(module, "SHORTEST_PAUSE", 0.1)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.3)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return size


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe that takes one page before it is full."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    yield read, write
    os.close(read)
    os.close(write)


class Terminal:
    """Reads what is drawn, unless it stalls."""

    def __init__(self, fd: int, screen: Screen, out: Output) -> None:
        self.screen = screen
        self.out = out
        self.text = ""
        self._fd = fd
        self._more = anyio.Event()

    async def read(self) -> None:
        while True:
            await anyio.wait_readable(self._fd)
            self.text += os.read(self._fd, 65536).decode()
            self._more.set()

    async def until(self, text: str, times: int = 1) -> None:
        """Wait until a text was written so many times."""
        with anyio.fail_after(20):
            while self.text.count(text) < times:
                self._more = anyio.Event()
                await self._more.wait()


@asynccontextmanager
async def drawing(pipe: tuple[int, int], *, reads: bool = True) -> AsyncIterator[Terminal]:
    """Draw an empty monitor until the body ends; then everything has been written."""
    clock = Clock()
    out = Output(pipe[1], notice=lambda count: None)
    screen = Screen(out, clock)
    terminal = Terminal(pipe[0], screen, out)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(out.run)
        if reads:
            tasks.start_soon(terminal.read)
        monitor = HeadMonitor(FallbackConfig.of({}), observers=[screen], clock=clock)
        async with monitor, screen.drawing(monitor):
            yield terminal
        out.write("the end", last=True)
        if not reads:
            tasks.start_soon(terminal.read)
        await terminal.until("the end\n")
        tasks.cancel_scope.cancel()


def opened(at: float, reason: str) -> GateChanged:
    return GateChanged(at, True, None, reason)


async def test_the_terminal_is_left_as_it_was_with_the_last_table_on_it(pipe: tuple[int, int]) -> None:
    async with drawing(pipe) as terminal:
        await terminal.until("none delivered yet")
    before, _, after = terminal.text.partition(LEAVE)
    assert before.startswith(ENTER)
    assert HIDE in before
    assert SHOW in terminal.text[terminal.text.rindex(HIDE) :]
    assert "none delivered yet" in after
    assert after.rstrip("\n").endswith("the end")
    assert HOME not in after


async def test_the_terminal_is_left_as_it_was_by_an_error_too(pipe: tuple[int, int]) -> None:
    out = Output(pipe[1], notice=lambda count: None)
    screen = Screen(out, Clock())
    with pytest.raises(ExceptionGroup):
        async with HeadMonitor(FallbackConfig.of({})) as monitor, screen.drawing(monitor):
            raise LookupError
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(out.run)
        out.close()
    text = os.read(pipe[0], 65536).decode()
    assert text.endswith(LEAVE)
    assert SHOW in text


async def test_a_signal_is_drawn_soon_and_many_are_drawn_seldom(pipe: tuple[int, int]) -> None:
    async with drawing(pipe) as terminal:
        await terminal.until(HOME)
        begun = anyio.current_time()
        drawn = terminal.text.count(HOME)
        number = 0
        while anyio.current_time() < begun + 1.0:
            number += 1
            terminal.screen(opened(anyio.current_time(), f"reason {number}"))
            await anyio.sleep(0.002)
        drawn = terminal.text.count(HOME) - drawn
        took = anyio.current_time() - begun
        assert 1 <= drawn <= took / module.SHORTEST_PAUSE + 1
        await terminal.until(f"reason {number}")


async def test_without_signals_it_is_drawn_again_all_the_same(pipe: tuple[int, int]) -> None:
    async with drawing(pipe) as terminal:
        await terminal.until(HOME)
        await terminal.until(HOME, terminal.text.count(HOME) + 2)


async def test_a_change_of_size_is_followed(pipe: tuple[int, int], size: list[int]) -> None:
    async with drawing(pipe) as terminal:
        terminal.screen(opened(anyio.current_time(), "reason " + "x" * 300))
        await terminal.until("xxx")
        size[:] = [30, 5]
        terminal.text = ""
        await terminal.until(HOME, 3)
        frame = terminal.text.split(HOME)[2]
        assert frame.count("\n") == 4
        assert "x" * 31 not in frame


async def test_a_terminal_that_stalls_holds_up_nothing_and_gets_no_old_drawings(pipe: tuple[int, int]) -> None:
    """What waits is never more than one drawing: those that nobody would see in time are not made."""
    async with drawing(pipe, reads=False) as terminal:
        most = 0
        for number in range(30):
            terminal.screen(opened(anyio.current_time(), f"reason {number}"))
            most = max(most, terminal.out.waiting)
            await anyio.sleep(0.05)
        assert not terminal.out.idle
        assert most < 8192
    assert terminal.text.count(HOME) < 10
    assert "reason 29" in terminal.text.partition(LEAVE)[2]


async def test_log_records_are_shown_among_the_events(pipe: tuple[int, int]) -> None:
    """They would tear the table; errors are written to stderr as well when it is over."""
    written: list[str] = []
    handler = LineHandler(written.append)
    log = logging.getLogger("vc_fallback.tests.screen")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        async with drawing(pipe) as terminal:
            with handler.diverted(terminal.screen.note):
                log.info("read\nagain")
                try:
                    raise LookupError("http://u:hunter2@h/")
                except LookupError:
                    log.exception("oh")
                await terminal.until("read again")
                await terminal.until("oh (LookupError)")
                assert written == []
            log.info("after")
    finally:
        log.removeHandler(handler)
    assert len(written) == 2
    assert "Traceback" in written[0]
    assert written[1].endswith("after")
    assert "hunter2" not in "".join(written) + terminal.text


async def test_no_color_is_heeded(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The convention of NO_COLOR: no colours; bold and dim stay."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with drawing(pipe) as terminal:
        terminal.screen(Started(anyio.current_time(), ((NodeId("a"), Tier.PRIMARY),), None, None))
        terminal.screen(opened(anyio.current_time(), "red elsewhere"))
        await terminal.until("red elsewhere")
    for colour in range(30, 50):
        assert f"[{colour}m" not in terminal.text
        assert f";{colour}m" not in terminal.text
