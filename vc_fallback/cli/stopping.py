"""Signals of the command: held back while there is nobody to heed them, at the start and at the end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STOPPING: Final = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C and SIGTERM end a command."""

HANGUP: Final = tuple(getattr(signal, name) for name in ("SIGHUP",) if hasattr(signal, name))
"""SIGHUP, where the system has it: has a configuration file read again, and ends a command that has none."""


def hold() -> None:
    """Keep the signals waiting: the modules that would heed them take a moment to load."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, (*STOPPING, *HANGUP))


@contextmanager
def released(*numbers: signal.Signals) -> Iterator[None]:
    """Let signals through, those that wait first; hold them back again at the end, when nobody heeds them any more."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    try:
        yield
    finally:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
