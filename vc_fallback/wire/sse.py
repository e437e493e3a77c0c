"""Server-sent events, decoded as they come: bytes in, events out, no I/O.

The rules are those of the HTML standard, section 9.2.6 ("Interpreting an event stream"). What they leave open is
settled here: a line and an event have a bound, comments are counted and handed out, and an event carries the `retry`
of its own block, as `httpx_sse` has it.
"""

from collections.abc import Callable

from httpx_sse import ServerSentEvent

SIZE_LIMIT = 16 * 2**20
"""Most bytes of one line and of the data of one event (Q15)."""

COMMENT_LIMIT = 1024
"""Bytes of a comment that are handed out; the rest of a longer one is left away."""

_BOM = b"\xef\xbb\xbf"
_CR = 0x0D  # as a number: `in` with a number is several times as fast on a short piece as with bytes
_PIECE = 64 * 2**10
_RETRY_DIGITS = 18


class SSEDecoder:
    """Decodes the event stream of one connection.

    The bytes may be cut anywhere: the events are the same. The cost is linear in the bytes whatever they are, and what
    is kept between two calls is at most one line and the data of one event. The bytes are always UTF-8; invalid ones
    become U+FFFD. An event that the end of the connection cuts off is none, so there is nothing to call at the end.

    :ivar comments: comments seen.
    :ivar dropped: events given up because they, or a line of theirs, were over a bound. Counted as soon as it is known,
        which may be long before the event ends.
    :ivar retry: the last valid `retry` of the stream, in milliseconds.
    :ivar last_event_id: the `id` in force at the end of the last block.
    """

    __slots__ = (
        "_after_cr",
        "_data",
        "_dropping",
        "_event_limit",
        "_event_type",
        "_id",
        "_line_limit",
        "_on_comment",
        "_piece",
        "_retry",
        "_skipping",
        "_start",
        "_tail",
        "comments",
        "dropped",
        "last_event_id",
        "retry",
    )

    def __init__(
        self,
        *,
        line_limit: int = SIZE_LIMIT,
        event_limit: int = SIZE_LIMIT,
        on_comment: Callable[[str], None] | None = None,
    ) -> None:
        """
        :param line_limit: most bytes of one line, without its end.
        :param event_limit: most bytes of the data of one event, its inner line ends included.
        :param on_comment: called with the text of each comment (see :data:`COMMENT_LIMIT`; one leading space is taken
            off, as from a value) before `feed` returns. It must not raise.
        :raises ValueError: if a limit is below 1.
        """
        if line_limit < 1 or event_limit < 1:
            raise ValueError("line_limit and event_limit must be at least 1")
        self.comments = 0
        self.dropped = 0
        self.retry: int | None = None
        self.last_event_id = ""

        self._line_limit = line_limit
        self._event_limit = event_limit
        self._on_comment = on_comment
        # No piece is longer than a line may be, so only a line begun in an earlier piece can be too long.
        self._piece = min(_PIECE, line_limit)

        self._start: bytes | None = b""  # held back while it may become a BOM; None once past the start
        self._after_cr = False  # an LF that comes now belongs to the CR before it
        self._tail = bytearray()  # the begun line
        self._skipping = False  # the begun line was too long; its rest is passed over

        self._event_type = ""
        self._data: bytes | bytearray | None = None
        self._id = ""
        self._retry: int | None = None
        self._dropping = False  # the begun event is over a bound

    def feed(self, data: bytes | bytearray | memoryview) -> list[ServerSentEvent]:
        """Take the next bytes, of any length and cut anywhere, and return the events they complete, in order.

        Nothing of `data` is referred to after the call, so a buffer can be used again.
        """
        events: list[ServerSentEvent] = []
        if self._start is not None:
            data = self._after_bom(self._start + data)
        size = len(data)
        if size <= self._piece:
            self._decode(bytes(data), events)
        else:
            view = memoryview(data)
            for start in range(0, size, self._piece):
                self._decode(bytes(view[start : start + self._piece]), events)
        return events

    def _after_bom(self, start: bytes) -> bytes:
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(_BOM)

    def _decode(self, piece: bytes, events: list[ServerSentEvent]) -> None:
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        if _CR in piece:
            self._after_cr = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = piece.split(b"\n")
        begun = lines.pop()
        if lines:
            if self._skipping:
                self._skipping = False
                del lines[0]
            elif self._tail:
                self._complete(lines)
            self._interpret(lines, events)
        if begun and not self._skipping:
            self._tail += begun
            if len(self._tail) > self._line_limit:
                self._give_up_line()
                self._skipping = True

    def _complete(self, lines: list[bytes]) -> None:
        """Put the begun line before the first of `lines`, which is its end."""
        self._tail += lines[0]
        if len(self._tail) > self._line_limit:
            self._give_up_line()
            del lines[0]
        else:
            lines[0] = bytes(self._tail)
            self._tail = bytearray()

    def _give_up_line(self) -> None:
        if self._tail.startswith(b":"):
            self._comment(self._tail)
        else:
            self._drop()
        self._tail = bytearray()

    def _drop(self) -> None:
        """Give up the data of the begun event. Its other fields still count, as if it had been dispatched."""
        self._data = None
        if not self._dropping:
            self._dropping = True
            self.dropped += 1

    def _comment(self, line: bytes | bytearray) -> None:
        self.comments += 1
        if self._on_comment is not None:
            text = line[1 : COMMENT_LIMIT + 1].removeprefix(b" ")
            self._on_comment(text.decode("utf-8", "replace"))

    def _interpret(self, lines: list[bytes], events: list[ServerSentEvent]) -> None:
        for line in lines:
            if not line:
                self.last_event_id = self._id
                if self._data is not None:
                    events.append(
                        ServerSentEvent(self._event_type, self._data.decode("utf-8", "replace"), self._id, self._retry)
                    )
                    self._data = None
                self._event_type = ""
                self._retry = None
                self._dropping = False
            # The usual spellings first, without a search for the colon. A slice that is compared beats startswith().
            elif line[:6] == b"data: ":
                self._append(line[6:])
            elif line[:7] == b"event: ":
                self._event_type = line[7:].decode("utf-8", "replace")
            elif line[:5] == b"data:":
                self._append(line[5:])
            elif line.startswith(b":"):
                self._comment(line)
            else:
                name, _, value = line.partition(b":")
                self._field(name, value.removeprefix(b" "))

    def _append(self, value: bytes) -> None:
        if self._dropping:
            return
        if self._data is None:
            self._data = value
        elif isinstance(self._data, bytes):
            # One growing array, not a list of lines: many short lines must not take many times their bytes.
            self._data = bytearray(b"\n").join((self._data, value))
        else:
            self._data += b"\n"
            self._data += value
        if len(self._data) > self._event_limit:
            self._drop()

    def _field(self, name: bytes, value: bytes) -> None:
        if name == b"data":
            self._append(value)
        elif name == b"event":
            self._event_type = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        # bytes.isdigit() knows ASCII digits only and is false for nothing. A number that nobody could wait for is
        # ignored, so that none is too long for int().
        elif name == b"retry" and value.isdigit() and len(value.lstrip(b"0")) <= _RETRY_DIGITS:
            self.retry = self._retry = int(value.lstrip(b"0") or b"0")
