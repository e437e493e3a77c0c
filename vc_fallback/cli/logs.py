"""Logging of the command: to stderr through an :class:`Output`, secrets taken out of every line."""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from vc_fallback.base.redact import redact_text

KEPT: Final = 50
"""So many errors are kept for the time after a table."""


class LineHandler(logging.Handler):
    """Hands each record, as text, to a writer that does not wait."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write_line = write
        self._show: Callable[[logging.LogRecord], None] | None = None
        self._kept: deque[str] = deque(maxlen=KEPT)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        if self._show is not None:
            self._show(record)
            if record.levelno < logging.ERROR:
                return
        # The package redacts what it logs; this is for the words of others, tracebacks included.
        text = redact_text(self.format(record))
        if self._show is not None:
            self._kept.append(text)
        else:
            self._write_line(text)

    @contextmanager
    def diverted(self, show: Callable[[logging.LogRecord], None]) -> Iterator[None]:
        """Have records shown by somebody who has the terminal; errors are written whole as well, when that is over."""
        self._show = show
        try:
            yield
        finally:
            self._show = None
            while self._kept:
                self._write_line(self._kept.popleft())


@contextmanager
def logging_to(handler: logging.Handler, level: str) -> Iterator[None]:
    """Log this package at `level` and everything else from warnings up, for as long as the context lasts."""
    root, package = logging.getLogger(), logging.getLogger("vc_fallback")
    before = package.level
    root.addHandler(handler)
    package.setLevel(level.upper())
    try:
        yield
    finally:
        package.setLevel(before)
        root.removeHandler(handler)
