"""The table on a terminal: drawn at signals and once a second, without ever waiting for the terminal (rule 7)."""

import io
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from rich.console import Console
from rich.live import Live

from vc_fallback.base.clock import Clock
from vc_fallback.base.redact import printable
from vc_fallback.base.signals import Signal
from vc_fallback.cli.output import Output
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.observe.board import Board
from vc_fallback.observe.counts import Counts
from vc_fallback.observe.narration import time_of_day
from vc_fallback.observe.plain import summary
from vc_fallback.observe.table import render
from vc_fallback.observe.view import View
from vc_fallback.observe.vitals import vitals

SHORTEST_PAUSE: Final = 0.25
"""Seconds between two drawings at least: a person reads no faster."""

LONGEST_PAUSE: Final = 1.0
"""Seconds between two drawings at most: ages are shown in seconds."""


class Screen:
    """An observer that keeps a board and draws it.

    It takes the terminal's alternate screen, on which every drawing replaces the whole of the one before: it survives
    a change of the terminal's size, and what stood in the terminal comes back at the end, with the last table below.

    :param look: returns what is to be shown now.
    """

    def __init__(self, out: Output, clock: Clock) -> None:
        self._board = Board(clock.unix)
        self._out = out
        self._clock = clock
        self._changed = anyio.Event()
        self._console = Console(file=_Sink(out), force_terminal=True, force_interactive=True, highlight=False)

    @property
    def counts(self) -> Counts:
        """What was counted."""
        return self._board.counts

    def summary(self, at: float) -> str:
        """Return the table of the end, in several lines; `at` is loop time."""
        return summary(self.counts, time_of_day(self._clock.unix(at)))

    def __call__(self, told: Signal) -> None:
        """Take a signal."""
        self._board(told)
        self._changed.set()

    def note(self, record: logging.LogRecord) -> None:
        """Show a log record among the events."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            text += f" ({record.exc_info[0].__name__})"
        bad = record.levelno >= logging.WARNING
        self._board.note(self._clock.now(), record.levelname.lower(), printable(text), bad=bad)
        self._changed.set()

    @asynccontextmanager
    async def drawing(self, monitor: HeadMonitor) -> AsyncIterator[None]:
        """Draw for as long as the context lasts; then leave the last table behind, and the terminal as it was."""
        live = Live(
            console=self._console, auto_refresh=False, screen=True, redirect_stdout=False, redirect_stderr=False
        )
        async with anyio.create_task_group() as tasks:
            live.start()
            try:
                tasks.start_soon(self._draw, live, monitor)
                tasks.start_soon(self._follow_size)
                yield
                view = self._look(monitor)
            finally:
                tasks.cancel_scope.cancel()
                live.stop()
        self._console.size = _size()
        self._console.print(render(view, self._console.width), end="\n\n")

    async def _draw(self, live: Live, monitor: HeadMonitor) -> None:
        while True:
            # Drawing for a terminal that has not taken the last drawing yet would only make it later still.
            if self._out.idle:
                self._changed = anyio.Event()
                width, height = self._console.size = _size()
                live.update(render(self._look(monitor), width, height), refresh=True)
            await anyio.sleep(SHORTEST_PAUSE)
            with anyio.move_on_after(LONGEST_PAUSE - SHORTEST_PAUSE):
                await self._changed.wait()

    def _look(self, monitor: HeadMonitor) -> View:
        listed = [(member.node_id, member.tier) for member in monitor.candidates.current.members.values()]
        now = self._clock.now()
        return self._board.view(now, monitor.slots, listed, vitals(monitor.cache.book, now))

    async def _follow_size(self) -> None:
        with anyio.open_signal_receiver(signal.SIGWINCH) as received:
            async for _ in received:
                self._changed.set()


class _Sink(io.StringIO):
    """What rich writes to: collects until a flush, and hands on whole drawings."""

    def __init__(self, out: Output) -> None:
        super().__init__()
        self._out = out

    def flush(self) -> None:
        """Hand on what was written."""
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        if text:
            self._out.write(text, end="", last=True)


def _size() -> tuple[int, int]:
    try:
        columns, lines = os.get_terminal_size(1)
    except OSError:
        columns = lines = 0
    # Some terminals do not know their size.
    return columns or 80, lines or 24
