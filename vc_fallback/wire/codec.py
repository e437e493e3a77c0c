"""HTTP/1.1 responses out of bytes, without I/O: strict, bounded, one decoder for a connection's whole life.

llhttp (by way of httptools) reads heads and chunks. What it lets through and we do not is checked here: versions other
than 1.0 and 1.1, status lines with control characters, status below 100, an unasked 101, every transfer coding but a
lone `chunked`, and all limits. Bodies of a known length never pass through it.
"""

import re

import httptools
import httpx

from vc_fallback.wire.errors import HeadTooLarge, LimitExceeded, Truncated
from vc_fallback.wire.http import Head, Headers, Receiver, WireLimits

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?\r\n")
_PREFIX = b"HTTP/1."
_HEAD_END = b"\r\n\r\n"
_BARE = (204, 304)
_JOINED = 64 * 1024
"""Bytes of a read whose chunks are handed on as one; more, as of a block, is not copied for that."""

_IDLE, _HEAD, _LENGTH, _CHUNKED, _CLOSE, _DONE = range(6)


class ResponseDecoder:
    """Decodes one response after another. `begin` before each; `reusable` after it says whether another may follow."""

    def __init__(self, limits: WireLimits) -> None:
        self._limits = limits
        self._parser: httptools.HttpResponseParser | None = None
        self._state = _IDLE
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._receiver: Receiver | None = None
        self._method = ""
        self._line: bytes | None = b""
        self._tail = b""
        self._head_size = 0
        self._informational = 0
        self._status = 0
        self._http11 = False
        self._coding = b""
        self._remaining = 0
        self._framing = 0
        self._whole = False
        self._chunk_over = False
        self._surplus = False
        self._keep_alive = True
        self.complete = False
        self.started = False

    def begin(self, method: str, receiver: Receiver) -> None:
        """Get ready for the response to a request with this method."""
        self._method = method
        self._receiver = receiver
        self._state = _HEAD
        self._head_size = 0
        self._informational = 0
        self._coding = b""
        self.complete = False
        self.started = False

    def redirect(self, receiver: Receiver) -> None:
        """Hand what is still to come of the response to another receiver, one that gives no place to read into."""
        self._receiver = receiver

    @property
    def reusable(self) -> bool:
        """Whether the last response is at its end and left the connection fit for another request."""
        return self.complete and self._keep_alive and not self._surplus

    @property
    def headed(self) -> bool:
        """Whether the head of the response came."""
        return self._state > _HEAD

    @property
    def until_close(self) -> bool:
        """Whether the end of the connection is to be the end of the body."""
        return self._state == _CLOSE

    def feed(self, data: bytes) -> None:
        """Take bytes from the connection.

        :raises httpx.RemoteProtocolError: for anything that is not HTTP/1.1, or more than the limits allow.
        """
        state = self._state
        if state == _HEAD:
            self.started = True
            self._feed_head(data)
        elif state == _LENGTH:
            self._feed_length(data)
        elif state == _CHUNKED:
            self._feed_chunks(data)
        elif state == _CLOSE:
            self._target.data(data)
        else:
            self._surplus = True

    def room(self) -> memoryview | None:
        """Return a place to read into instead of `feed`, while a body of known length comes."""
        if self._state != _LENGTH:
            return None
        return self._target.room(self._remaining)

    def filled(self, count: int) -> None:
        """Count bytes that were read into the place of `room`, which has been released since."""
        self._target.filled(count)
        self._remaining -= count
        if not self._remaining:
            self._finish()

    def feed_eof(self) -> None:
        """The connection has ended.

        :raises Truncated: when no response was whole by then.
        """
        state = self._state
        if state == _CLOSE:
            self._finish()
        elif state == _HEAD and not self.started:
            raise Truncated("connection closed before any byte of the response")
        elif state == _HEAD:
            raise Truncated("connection closed inside the head of the response")
        elif state in (_LENGTH, _CHUNKED):
            raise Truncated("connection closed inside the body of the response")

    # Callbacks of the parser. They only take note: an exception of theirs would come out wrapped.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take note of a header, or of a trailer."""
        self._headers.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Take note that the head is whole."""
        self._whole = True

    def on_body(self, data: bytes) -> None:
        """Take note of a part of a chunk; behind the last one it is another response's, which nobody asked for."""
        if self._state == _CHUNKED:
            self._pieces.append(data)

    def on_chunk_complete(self) -> None:
        """Take note of the end of a chunk."""
        self._chunk_over = True

    def on_message_begin(self) -> None:
        """Take note of bytes behind the end of the response."""
        if self._state == _DONE:
            self._surplus = True

    def on_message_complete(self) -> None:
        """Take note of the last chunk."""
        if self._state == _CHUNKED:
            self._state = _DONE

    @property
    def _target(self) -> Receiver:
        assert self._receiver is not None  # noqa: S101 - `begin` comes before everything
        return self._receiver

    def _feed_head(self, data: bytes) -> None:
        while self._state == _HEAD and data:
            tail = self._tail
            end = (tail + data if tail else data).find(_HEAD_END)
            whole = end >= 0
            cut = end + 4 - len(tail) if whole else len(data)
            part, data = data[:cut], data[cut:]
            self._head_size += len(part)
            if self._head_size > self._limits.head:
                raise HeadTooLarge(f"head of the response is larger than {self._limits.head} bytes")
            self._tail = b"" if whole else (tail + part)[-3:]
            if self._line is not None:
                self._check_status_line(part)
            self._whole = False
            self._parse(part)
            if whole != self._whole:
                raise httpx.RemoteProtocolError("malformed response: the head does not end where it should")
            if whole:
                self._head_complete()
        if data:
            self.feed(data)

    def _check_status_line(self, part: bytes) -> None:
        line = self._line + part if self._line else part
        match = _STATUS_LINE.match(line)
        if match is not None:
            self._http11 = match[1] == b"1"
            self._status = int(match[2])
            self._line = None
        elif b"\n" in line or line[:7] != _PREFIX[: len(line)]:
            raise httpx.RemoteProtocolError("malformed response: not an HTTP/1.1 status line")
        else:
            self._line = line

    def _parse(self, data: bytes) -> None:
        parser = self._parser
        if parser is None:
            parser = self._parser = httptools.HttpResponseParser(self)
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self._state == _DONE:
                self._surplus = True
                return
            if self._whole and self._state == _HEAD and self._status == 101:
                raise httpx.RemoteProtocolError("the beacon node switched protocols, which was not asked for") from None
            raise httpx.RemoteProtocolError(f"malformed response: {error}") from None

    def _head_complete(self) -> None:
        status, self._line = self._status, b""
        raw, self._headers = self._headers, []
        if len(raw) > self._limits.header_count:
            raise HeadTooLarge(f"the response has more than {self._limits.header_count} headers")
        if status < 200:
            self._informational += 1
            if self._informational > self._limits.informational:
                raise LimitExceeded(f"more than {self._limits.informational} informational responses")
            return
        length = self._read_framing(status, raw)
        # Only a head without a body, and a chunked body, leave llhttp where the next head may begin.
        if self._state != _CHUNKED:
            self._parser = None
        self._target.head(Head(status, Headers(raw), length, self._coding))
        if length == 0:
            self._finish()

    def _read_framing(self, status: int, raw: list[tuple[bytes, bytes]]) -> int | None:
        """Set the state for the body; return its length if known. llhttp has refused contradictions and bad digits."""
        length: int | None = None
        transfer: list[bytes] = []
        connection: list[bytes] = []
        for name, value in raw:
            size = len(name)
            if size == 14 and name.lower() == b"content-length":
                length = int(value)
            elif size == 10 and name.lower() == b"connection":
                connection += [token.strip() for token in value.lower().split(b",")]
            elif size == 16 and name.lower() == b"content-encoding":
                self._coding = self._coding + b"," + value.lower() if self._coding else value.lower()
            elif size == 17 and name.lower() == b"transfer-encoding":
                transfer.append(value.strip().lower())
        self._keep_alive = b"close" not in connection and (self._http11 or b"keep-alive" in connection)
        if self._method == "HEAD" or status in _BARE:
            if self._method != "HEAD" and (length or transfer):
                self._keep_alive = False  # the body that may not be there may still come
            self._state = _LENGTH
            return 0
        if transfer:
            if transfer != [b"chunked"] or not self._http11:
                raise httpx.RemoteProtocolError("a transfer coding other than chunked")
            self._state = _CHUNKED
            self._framing = 0
            return None
        if length is None:
            self._keep_alive = False
            self._state = _CLOSE
            return None
        self._remaining = length
        self._state = _LENGTH
        return length

    def _feed_length(self, data: bytes) -> None:
        excess = len(data) - self._remaining
        if excess > 0:
            data = data[: self._remaining]
            self._surplus = True
        self._remaining -= len(data)
        self._target.data(data)
        if not self._remaining:
            self._finish()

    def _feed_chunks(self, data: bytes) -> None:
        self._chunk_over = False
        failure: httpx.RemoteProtocolError | None = None
        try:
            self._parse(data)
        except httpx.RemoteProtocolError as error:
            failure = error
        pieces, self._pieces = self._pieces, []
        # What is no data is framing: size, extension, trailers. It is counted anew with each chunk.
        self._framing = 0 if self._chunk_over else self._framing + len(data) - sum(map(len, pieces))
        target = self._target
        if len(pieces) > 1 and len(data) <= _JOINED:
            # At once: with an event to a chunk, and many of them in a read, half of the work is that of handing on.
            pieces = [b"".join(pieces)]
        for piece in pieces:
            target.data(piece)
        if failure is not None:
            raise failure
        if self._framing > self._limits.framing or len(self._headers) > self._limits.header_count:
            raise HeadTooLarge("too much framing around a chunk, or too many trailers")
        if self._state == _DONE:
            self._headers = []
            self._surplus = self._surplus or data.endswith(b"\r\n\r\n\r\n")  # llhttp would swallow that
            self._finish()

    def _finish(self) -> None:
        self._state = _DONE
        self.complete = True
        target, self._receiver = self._target, None  # an idle connection is not to hold on to the last body
        target.end()
