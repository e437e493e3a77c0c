"""Faults of single requests: what a node does instead of, or before, its proper answer."""

import gzip
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Self

from vc_fallback.testing.http import Answer, Request

EVENTS = "/eth/v1/events"
"""The path of the event stream."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Never answer.

    :param after_headers: send the head of a proper answer first (200, its media type) and nothing after it.
    """

    after_headers: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """Send the first bytes of the proper answer and close the connection. Not for event streams.

    What was published has been taken by then.

    :param after: how many bytes, the head's included.
    :param reset: close with RST, else with FIN.
    """

    after: int = 0
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Delay:
    """Answer properly, so many seconds late."""

    seconds: float


@dataclass(frozen=True, slots=True)
class StreamHeaders:
    """Open the event stream with another media type, or with further response headers."""

    content_type: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Do not take what is published, or not all of it; for the routes that publish and prepare.

    :param message: what is wrong, in the words that the answer has.
    :param items: places in the list of what is not taken, while the rest is; `None`: nothing is taken.
    :param status: of the answer; with 202 a block counts as sent on, and not imported (cases.md 53).
    """

    message: str = "refused"
    items: Collection[int] | None = None
    status: int = 400


Fault = Answer | Hang | Cut | Delay | StreamHeaders | Refusal


def gzipped(body: bytes | str, *, status: int = 200, content_type: str = "application/json") -> Answer:
    """Return an answer in a content coding nobody asked for."""
    data = gzip.compress(body.encode() if isinstance(body, str) else body, mtime=0)
    return Answer(status, data, {"Content-Encoding": "gzip"}, content_type)


def redirect(location: str, *, status: int = 307) -> Answer:
    """Return a redirect."""
    return Answer(status, b"", {"Location": location})


@dataclass(eq=False, slots=True)
class Injection:
    """A fault at work on a path; as a context manager, for the time of its body.

    :param path: exact, or a pattern with `*`.
    :param times: how many requests it meets, or `None` for all.
    """

    path: str
    fault: Fault
    times: int | None
    _remove: Callable[["Injection"], None]
    met: int = field(default=0, init=False)
    """How many requests have met it."""

    def remove(self) -> None:
        """Heal it; without effect when it was healed before."""
        self._remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()


class Faults:
    """The faults of one node by path; the one injected last is met first."""

    def __init__(self) -> None:
        self._injections: list[Injection] = []

    def inject(self, path: str, fault: Fault, times: int | None = None) -> Injection:
        """Put a fault to work."""
        injection = Injection(path, fault, times, self._remove)
        self._injections.append(injection)
        return injection

    def meet(self, request: Request) -> Fault | None:
        """Return the fault that meets a request."""
        for injection in reversed(self._injections):
            if fnmatchcase(request.path, injection.path):
                injection.met += 1
                if injection.times is not None and injection.met >= injection.times:
                    injection.remove()
                return injection.fault
        return None

    def clear(self) -> None:
        """Heal all."""
        self._injections.clear()

    def _remove(self, injection: Injection) -> None:
        if injection in self._injections:
            self._injections.remove(injection)
