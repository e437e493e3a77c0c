"""The words of an exchange over HTTP: limits, headers, a response, and what responses are delivered to."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class WireLimits:
    """Bounds of what a beacon node may send (Q15), in bytes unless said otherwise; more is an error of that answer.

    :param body: body of a request's answer; the decoded size where it came with a content coding.
    :param error_body: body of an answer whose status is 400 or above, of streams too.
    :param head: status line and headers, informational (1xx) responses before it included.
    :param header_count: number of headers, likewise.
    :param framing: what stands between two chunks: size, extensions; and the trailers.
    :param informational: number of 1xx responses before the real one.
    """

    body: int = 64 * 1024 * 1024
    error_body: int = 1024 * 1024
    head: int = 64 * 1024
    header_count: int = 256
    framing: int = 16 * 1024
    informational: int = 16


class Headers:
    """Headers as they came, in order. Reading is case-insensitive; nothing is decoded until it is asked for."""

    __slots__ = ("raw",)

    def __init__(self, raw: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self.raw: list[tuple[bytes, bytes]] = raw if isinstance(raw, list) else list(raw)

    def get(self, name: str) -> str | None:
        """Return the value of a header, several of one name joined by `", "`, or `None`."""
        values = self.get_all(name)
        if len(values) == 1:
            return values[0]
        return ", ".join(values) if values else None

    def get_all(self, name: str) -> list[str]:
        """Return the values of all headers of a name, in order."""
        wanted = name.lower().encode("latin-1")
        size = len(wanted)
        return [value.decode("latin-1") for key, value in self.raw if len(key) == size and key.lower() == wanted]

    def __contains__(self, name: str) -> bool:
        return bool(self.get_all(name))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((key.decode("latin-1"), value.decode("latin-1")) for key, value in self.raw)

    def __len__(self) -> int:
        return len(self.raw)

    def __repr__(self) -> str:
        # Values may hold cookies and tokens (rule 11).
        return f"Headers({[key.decode('latin-1') for key, _ in self.raw]})"


@dataclass(slots=True, repr=False)
class Response:
    """An answer, whole: the body is read to its end and its content coding undone.

    :param attempts: how often the request was written: 2 where a stale connection made it be repeated (Q10).
    :param origin: scheme, host and port that answered; differs from the base URL's after a redirect (Q16).
    """

    status: int
    headers: Headers
    body: bytes
    attempts: int = 1
    origin: str = ""

    def __repr__(self) -> str:
        return f"<Response {self.status}, {len(self.body)} bytes>"


class Head:
    """The head of a response: what a receiver needs to know of it.

    :param length: length of the body where it is known; 0 where there is none.
    :param coding: value of `Content-Encoding`, lower-case, or empty.
    """

    __slots__ = ("coding", "headers", "length", "status")

    def __init__(self, status: int, headers: Headers, length: int | None, coding: bytes) -> None:
        self.status = status
        self.headers = headers
        self.length = length
        self.coding = coding


class Receiver(Protocol):
    """What a decoded response goes to. An exception out of it ends the connection and surfaces as it is."""

    def head(self, head: Head) -> None:
        """The final head; informational ones are swallowed."""

    def data(self, data: bytes) -> None:
        """Bytes of the body, as they came."""

    def room(self, remaining: int) -> memoryview | None:
        """Give a place for bytes of a body of known length to be read into, or `None` to have them by `data`."""

    def filled(self, count: int) -> None:
        """That many bytes were put into the place that `room` gave last."""

    def end(self) -> None:
        """The body is at its end."""


class StreamSink(Protocol):
    """What a stream is delivered to. All methods return at once; they are called from the socket's own callback.

    One that raises ends the stream: the connection is aborted and that exception comes out of `stream()`, once.
    """

    def sent(self) -> None:
        """The connection stands and the request is written. Called once more for each redirect that is followed."""

    def response(self, status: int, headers: Headers) -> None:
        """The head of the response came; this may be minutes after `sent` (H2)."""

    def data(self, data: bytes) -> None:
        """Bytes of the body, framing and content coding removed."""
