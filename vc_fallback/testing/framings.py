"""How the beacon nodes put events on the wire: head, line ends, comments (cases.md 3, recordings of Lodestar 1.5.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import Literal

FramingName = Literal["lighthouse", "prysm", "lodestar", "nimbus", "teku"]


@dataclass(frozen=True, slots=True)
class Framing:
    """The event stream of one kind of beacon node.

    :param headers: of the response, in order, beside `Date` and the transfer coding.
    :param colon: what is between a field's name and its value.
    :param line_end: of each line.
    :param chunked: chunked transfer coding, else a plain body until close.
    :param opening: bytes sent as the stream opens.
    :param keep_alive: bytes sent after a silence, or empty for a node that never does.
    :param keep_alive_after: seconds of silence, or `None` for one slot.
    :param headers_with_first_event: the response head waits for the first event.
    :param accept: what the request's `Accept` must be for there to be a stream; empty for anything.
    """

    name: FramingName
    headers: tuple[tuple[str, str], ...]
    colon: bytes = b": "
    line_end: bytes = b"\n"
    chunked: bool = True
    opening: bytes = b""
    keep_alive: bytes = b""
    keep_alive_after: float | None = None
    headers_with_first_event: bool = False
    accept: str = ""

    def head(self, unix: float, *, content_type: str | None = None, headers: Sequence[tuple[str, str]] = ()) -> bytes:
        """Return the response head.

        :param unix: Unix time of its `Date`.
        :param content_type: sent in place of the node's own.
        :param headers: sent beside the node's own.
        """
        fields = [
            (name, content_type if content_type is not None and name.lower() == "content-type" else value)
            for name, value in self.headers
        ]
        fields += [*headers, ("Date", formatdate(unix, usegmt=True))]
        if self.chunked:
            fields.append(("Transfer-Encoding", "chunked"))
        # Lighthouse's server writes all names in lower case.
        lower = self.name == "lighthouse"
        lines = [f"{name.lower() if lower else name}: {value}\r\n" for name, value in fields]
        return ("HTTP/1.1 200 OK\r\n" + "".join(lines) + "\r\n").encode("latin-1")

    def event(self, topic: str, data: str) -> bytes:
        """Return an event's bytes; data of several lines becomes several `data` lines."""
        lines = [b"event" + self.colon + topic.encode()]
        lines += [b"data" + self.colon + line.encode() for line in data.split("\n")]
        return b"".join(line + self.line_end for line in lines) + self.line_end

    def comment(self, text: str) -> bytes:
        """Return a comment with an empty line after it."""
        return b":" + text.encode() + self.line_end + self.line_end

    def body(self, data: bytes) -> bytes:
        """Return bytes of the body as they go on the wire: as one chunk, or as they are."""
        return b"%x\r\n%b\r\n" % (len(data), data) if self.chunked else data

    @property
    def end(self) -> bytes:
        """What closes a complete body before the connection is closed."""
        return b"0\r\n\r\n" if self.chunked else b""


FRAMINGS: dict[FramingName, Framing] = {
    framing.name: framing
    for framing in (
        Framing(
            "lighthouse",
            (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")),
            colon=b":",
            keep_alive=b":\n\n",
            keep_alive_after=15.0,
        ),
        Framing(
            "prysm",
            (("Content-Type", "text/event-stream"), ("Connection", "keep-alive")),
            opening=b":\n\n",
            keep_alive=b":\n\n",
        ),
        Framing(
            "lodestar",
            (
                ("Content-Type", "text/event-stream"),
                ("Cache-Control", "no-cache,no-transform"),
                ("Connection", "keep-alive"),
                ("x-no-compression", "1"),
                ("X-Accel-Buffering", "no"),
            ),
            headers_with_first_event=True,
        ),
        Framing(
            "nimbus",
            (("Content-Type", "text/event-stream"), ("Connection", "close")),
            line_end=b"\r\n",
            chunked=False,
        ),
        Framing(
            "teku",
            (
                ("Content-Type", "text/event-stream;charset=utf-8"),
                ("Connection", "close"),
                ("Cache-Control", "no-cache"),
                ("X-Accel-Buffering", "no"),
            ),
            chunked=False,
            opening=b": ready\n",
            keep_alive=b": \n",
            keep_alive_after=30.0,
            accept="text/event-stream",
        ),
    )
}
"""The five framings by name."""
