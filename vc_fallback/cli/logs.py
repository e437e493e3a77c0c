"""Logging of the command: to stderr through an :class:`Output`, secrets taken out of every line."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vc_fallback.base.redact import redact_text


class LineHandler(logging.Handler):
    """Hands each record, as text, to a writer that does not wait."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write_line = write
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        # The package redacts what it logs; this is for the words of others, tracebacks included.
        self._write_line(redact_text(self.format(record)))


@contextmanager
def logging_to(write: Callable[[str], None], level: str) -> Iterator[None]:
    """Log this package at `level` and everything else from warnings up, for as long as the context lasts."""
    root, package = logging.getLogger(), logging.getLogger("vc_fallback")
    handler = LineHandler(write)
    before = package.level
    root.addHandler(handler)
    package.setLevel(level.upper())
    try:
        yield
    finally:
        package.setLevel(before)
        root.removeHandler(handler)
