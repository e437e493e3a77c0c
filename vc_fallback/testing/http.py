"""The server's side of HTTP/1.1: requests read strictly and within bounds, answers written as bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

import anyio
from anyio.abc import ByteReceiveStream

_MAX_HEAD = 65536
_MAX_BODY = 64 * 1024 * 1024


class BadRequest(Exception):
    """The bytes of the client are no request."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came.

    `query` keeps order and repeats; header names are in lower case, and of a repeated header the last one counts.
    `received` is in loop time; `connection` numbers the node's connections from 1.
    """

    method: str
    target: str
    version: str
    headers: Mapping[str, str]
    body: bytes
    received: float
    connection: int
    path: str = field(init=False)
    query: tuple[tuple[str, str], ...] = field(init=False)

    def __post_init__(self) -> None:
        path, _, query = self.target.partition("?")
        object.__setattr__(self, "path", unquote(path))
        object.__setattr__(self, "query", tuple(parse_qsl(query, keep_blank_values=True)))

    @property
    def keep_alive(self) -> bool:
        """Whether the client wants the connection to live on."""
        connection = self.headers.get("connection", "").lower()
        return connection == "keep-alive" if self.version == "HTTP/1.0" else connection != "close"


class RequestReader:
    """Reads the requests of one connection, one after the other.

    :param stream: the connection.
    :param connection: its number, for the requests.
    """

    def __init__(self, stream: ByteReceiveStream, connection: int) -> None:
        self._stream = stream
        self._connection = connection
        self._buffer = bytearray()

    async def next(self) -> Request | None:
        """Return the next request, or `None` where the client closed between requests.

        :raises BadRequest: for bytes that are none, or too many.
        :raises anyio.BrokenResourceError: when the connection was reset.
        """
        head = await self._until(b"\r\n\r\n")
        if head is None:
            return None
        received = anyio.current_time()
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise BadRequest(f"request line {lines[0][:100]!r}")
        headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise BadRequest(f"header line {line[:100]!r}")
            headers[name.lower()] = value.strip(" \t")
        body = await self._body(headers)
        return Request(words[0], words[1], words[2], headers, body, received, self._connection)

    async def wait_closed(self) -> None:
        """Read on, within bounds, until the client closes or resets its side."""
        taken = 0
        try:
            while taken < _MAX_BODY:
                taken += len(await self._stream.receive())
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        coding = headers.get("transfer-encoding")
        if coding is None:
            length = headers.get("content-length", "0")
            if not length.isdecimal() or int(length) > _MAX_BODY:
                raise BadRequest("content-length")
            return await self._exactly(int(length))
        if coding.lower() != "chunked":
            raise BadRequest("transfer-encoding")
        body = bytearray()
        while True:
            line = await self._until(b"\r\n")
            try:
                size = int((line or b"").split(b";")[0], 16)
            except ValueError:
                raise BadRequest("chunk size") from None
            if size < 0 or len(body) + size > _MAX_BODY:
                raise BadRequest("chunk size")
            if size == 0:
                while await self._until(b"\r\n"):
                    pass  # trailers
                return bytes(body)
            body += await self._exactly(size)
            if await self._exactly(2) != b"\r\n":
                raise BadRequest("chunk end")

    async def _until(self, mark: bytes) -> bytes | None:
        searched = 0
        while (found := self._buffer.find(mark, max(0, searched - len(mark)))) < 0:
            searched = len(self._buffer)
            if searched > _MAX_HEAD:
                raise BadRequest("head too large")
            if not await self._more():
                if self._buffer:
                    raise BadRequest("cut off")
                return None
        taken = bytes(self._buffer[:found])
        del self._buffer[: found + len(mark)]
        return taken

    async def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            if not await self._more():
                raise BadRequest("cut off")
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    async def _more(self) -> bool:
        try:
            self._buffer += await self._stream.receive(262144)
        except anyio.EndOfStream:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is not an event stream.

    :param status: three digits.
    :param body: bytes, or text in UTF-8.
    :param headers: beside `Content-Length` (which may be given here to be wrong) and `Connection`.
    :param content_type: media type; empty for none.
    """

    status: int = 200
    body: bytes | str = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    def encode(self, *, method: str = "GET", keep_alive: bool = True) -> bytes:
        """Return the bytes on the wire; of the answer to HEAD without the body."""
        body = self.body.encode() if isinstance(self.body, str) else self.body
        fields = dict(self.headers)
        if self.content_type and body:
            fields.setdefault("Content-Type", self.content_type)
        if "Transfer-Encoding" not in fields:
            fields.setdefault("Content-Length", str(len(body)))
        fields.setdefault("Connection", "keep-alive" if keep_alive else "close")
        try:
            reason = HTTPStatus(self.status).phrase
        except ValueError:
            reason = "Unknown"
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        head = f"HTTP/1.1 {self.status} {reason}\r\n{lines}\r\n".encode("latin-1")
        return head if method == "HEAD" else head + body
