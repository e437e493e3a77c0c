"""Receivers of a response: one collects a body whole, one hands a stream on to its sink."""

from io import BytesIO

from vc_fallback.wire.coding import ContentDecoder, content_decoder
from vc_fallback.wire.errors import BodyTooLarge
from vc_fallback.wire.http import Head, Headers, StreamSink, WireLimits
from vc_fallback.wire.redirect import Place, Redirected

# Smaller bodies come with their head or in few pieces; a place of their own gains nothing.
_DIRECT = 64 * 1024
# What is reserved on the word of a header alone; then as many times what really came.
_FIRST = 1024 * 1024
_GROWTH = 16
_UNWANTED = "an answer that nobody waits for is too large to be read"


class Collector:
    """Collects a body, bounded by the limits for its status (Q15)."""

    __slots__ = ("_coding", "_first", "_limit", "_limits", "_more", "_place", "headers", "status")

    def __init__(self, limits: WireLimits) -> None:
        self._limits = limits
        self._limit = 0
        self._coding: ContentDecoder | None = None
        self._first = b""
        self._more: BytesIO | None = None
        self._place: _Place | None = None
        self.status = 0
        self.headers = _NO_HEADERS

    def head(self, head: Head) -> None:
        """Note the head; refuse a body that is announced to be too large."""
        self.status = head.status
        self.headers = head.headers
        self._limit = self._limits.error_body if head.status >= 400 else self._limits.body
        length = head.length
        if length is not None and length > self._limit:
            raise BodyTooLarge(f"a body of {length} bytes is announced; the limit is {self._limit}")
        if head.coding and length != 0:
            self._coding = content_decoder(head.coding)
        if length is not None and length > _DIRECT and self._coding is None:
            self._place = _Place(length)

    def data(self, data: bytes) -> None:
        """Keep a part of the body."""
        if self._coding is not None:
            for piece in self._coding.feed(data):
                self._keep(piece)
        elif self._place is not None:
            self._place.put(data)
        else:
            self._keep(data)

    def room(self, remaining: int) -> memoryview | None:
        """Give a place for the rest of the body, or for a good part of it."""
        return None if self._place is None else self._place.room(remaining)

    def filled(self, count: int) -> None:
        """Count what was read into the place."""
        if self._place is not None:
            self._place.size += count

    def end(self) -> None:
        """Check the coding's end."""
        if self._coding is not None:
            self._coding.end()

    @property
    def body(self) -> bytes:
        """The body as it stands."""
        if self._place is not None:
            return self._place.value()
        return self._first if self._more is None else self._more.getvalue()

    def _keep(self, data: bytes) -> None:
        if self._more is not None:
            self._more.write(data)
        elif self._first:
            # Not a list of pieces: with one byte to a chunk it would take forty times the body.
            self._more = BytesIO()
            self._more.write(self._first)
            self._more.write(data)
            self._first = b""
        else:
            self._first = data
        if (len(self._first) if self._more is None else self._more.tell()) > self._limit:
            raise BodyTooLarge(f"the body is larger than {self._limit} bytes")


class _Place:
    """Where a body of known length is read into. A `BytesIO` gives its bytes away without a copy, a `bytearray` not."""

    __slots__ = ("_buffer", "_length", "_reserved", "size")

    def __init__(self, length: int) -> None:
        self._length = length
        self._reserved = min(length, _FIRST)
        self._buffer = BytesIO(bytes(self._reserved))
        self.size = 0

    def put(self, data: bytes) -> None:
        """Copy what came together with the head."""
        rest = memoryview(data)
        while rest:
            with self.room(len(rest)) as room:
                count = len(room)
                room[:] = rest[:count]
            self.size += count
            rest = rest[count:]

    def room(self, remaining: int) -> memoryview:
        """Return the free part, at most `remaining` bytes of it; it is to be released before anything else here."""
        if self.size == self._reserved:
            self._reserved = min(self._length, _GROWTH * self.size)
            grown = BytesIO(bytes(self._reserved))
            grown.write(self._buffer.getbuffer())
            self._buffer = grown
        return self._buffer.getbuffer()[self.size : self.size + remaining]

    def value(self) -> bytes:
        """Return what is there."""
        return self._buffer.getvalue() if self.size == self._reserved else self._buffer.getvalue()[: self.size]


class Discard:
    """Takes what is left of a response that nobody waits for."""

    __slots__ = ("_left",)

    def __init__(self, limit: int) -> None:
        self._left = limit

    def head(self, head: Head) -> None:
        """Refuse a body that is announced to be too large."""
        if head.length is not None and head.length > self._left:
            raise BodyTooLarge(_UNWANTED)

    def data(self, data: bytes) -> None:
        """Count a part of the body."""
        self._left -= len(data)
        if self._left < 0:
            raise BodyTooLarge(_UNWANTED)

    def room(self, remaining: int) -> memoryview | None:  # noqa: ARG002 - nothing is kept
        """Give no place."""
        return None

    def filled(self, count: int) -> None:
        """Never called, as there is no place."""

    def end(self) -> None:
        """It is at its end."""


class SinkReceiver:
    """Hands a stream on to a sink."""

    __slots__ = ("_coding", "_limit", "_limits", "_place", "_sink", "_size")

    def __init__(self, sink: StreamSink, limits: WireLimits, place: Place | None = None) -> None:
        """Take the sink; `place` is where the request went, if a redirect may be followed from there."""
        self._sink = sink
        self._place = place
        self._limits = limits
        self._limit: int | None = None
        self._size = 0
        self._coding: ContentDecoder | None = None

    def head(self, head: Head) -> None:
        """Tell the sink of the response; only an error's body has a limit here.

        :raises Redirected: where the call is to go on elsewhere; the sink hears nothing of that.
        """
        elsewhere = None if self._place is None else self._place.follow(head.status, head.headers)
        if elsewhere is not None:
            raise Redirected(elsewhere)
        if head.status >= 400:
            self._limit = self._limits.error_body
        if head.coding and head.length != 0:
            self._coding = content_decoder(head.coding, stream=True)
        self._sink.response(head.status, head.headers)

    def data(self, data: bytes) -> None:
        """Hand on a part of the body."""
        if self._limit is not None:
            self._count(len(data))
        if self._coding is None:
            self._sink.data(data)
            return
        for piece in self._coding.feed(data):
            if self._limit is not None:
                self._count(len(piece))
            self._sink.data(piece)

    def room(self, remaining: int) -> memoryview | None:  # noqa: ARG002 - a stream takes bytes as they come
        """Give no place."""
        return None

    def filled(self, count: int) -> None:
        """Never called, as there is no place."""

    def end(self) -> None:
        """Check the coding's end."""
        if self._coding is not None:
            self._coding.end()

    def _count(self, size: int) -> None:
        assert self._limit is not None  # noqa: S101 - only called with a limit
        self._size += size
        if self._size > self._limit:
            raise BodyTooLarge(f"the body of an error is larger than {self._limit} bytes")


_NO_HEADERS = Headers()
