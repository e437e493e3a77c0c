"""Ctrl-C and SIGTERM: held back while there is nobody to heed them, at the start and at the end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


def hold() -> None:
    """Keep the signals waiting: the modules that would heed them take a moment to load."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)


@contextmanager
def released() -> Iterator[None]:
    """Let the signals through, those that wait first; hold them back again at the end, when nothing is left to stop."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    try:
        yield
    finally:
        hold()
