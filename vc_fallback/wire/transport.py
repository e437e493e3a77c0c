"""The httpx seam: our connections as an `httpx.AsyncBaseTransport`, for an `httpx.AsyncClient` of the user's own."""

import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable

import anyio
import httpx

from vc_fallback.wire.connection import Connection
from vc_fallback.wire.dial import Resolver
from vc_fallback.wire.errors import ClientClosed
from vc_fallback.wire.http import Head, WireLimits
from vc_fallback.wire.keepalive import Origin, Slots
from vc_fallback.wire.message import FRAMING, RequestWriter
from vc_fallback.wire.tls import tls_context

_LIMITS = WireLimits()
# A body that nobody takes is left in the socket from here on (hazard 19).
_AHEAD = 256 * 1024


class VCTransport(httpx.AsyncBaseTransport):
    """Carries an `httpx.AsyncClient`'s requests over the same connections that the library itself uses.

    Response bodies are pulled, with backpressure; their size is the caller's to bound, as is their content coding. A
    request's body is collected before it is sent. The time-outs of httpx (`connect`, `read`, `write`, `pool`) hold.
    """

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        limits: WireLimits = _LIMITS,
        concurrency: int = 64,
        idle_timeout: float = 60.0,
        resolver: Resolver | None = None,
    ) -> None:
        """Make a transport; parameters as of `HTTPClient`, `concurrency` being per origin."""
        self._tls = tls
        self._limits = limits
        self._concurrency = concurrency
        self._idle_timeout = idle_timeout
        self._resolver = resolver
        self._origins: dict[tuple[str, str, int], tuple[Origin, Slots]] = {}
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return when the head of its response came.

        :raises httpx.TransportError: what went wrong; see `vc_fallback.wire.errors`.
        """
        if self._closed:
            raise ClientClosed("the transport was closed")
        parts = await _message(request)
        timeouts: dict[str, float | None] = request.extensions.get("timeout", {})
        origin, slots = self._origin_for(request.url)
        if not slots.take_nowait():
            with anyio.move_on_after(timeouts.get("pool")) as scope:
                await slots.take()
            if scope.cancelled_caught:
                raise httpx.PoolTimeout("no free slot in time")
        try:
            body = await self._open(origin, request.method, parts, timeouts)
        except BaseException:
            slots.give()
            raise
        assert body.received is not None  # noqa: S101 - `open` returns with the head
        body.release = slots.give
        head = body.received
        extensions = {"http_version": b"HTTP/1.1"}
        return httpx.Response(head.status, headers=head.headers.raw, stream=body, extensions=extensions)

    async def aclose(self) -> None:
        """Close all connections; calls under way raise `ClientClosed`."""
        self._closed = True
        for origin, _ in self._origins.values():
            origin.close()

    async def _open(
        self, origin: Origin, method: str, parts: list[bytes], timeouts: dict[str, float | None]
    ) -> "PulledBody":
        repeatable = method in ("GET", "HEAD")
        connection = origin.take()
        while True:
            if connection is None:
                connection = await origin.connect(timeouts.get("connect"))
            kept = connection.reused
            body = PulledBody(origin, connection, timeouts.get("read"))
            try:
                with anyio.move_on_after(_longest(timeouts)) as scope:
                    await connection.open(method, parts, body)
                if scope.cancelled_caught:
                    raise httpx.ReadTimeout("no response in time")
            except BaseException as error:
                origin.give(connection)
                stale = kept and repeatable and not connection.decoder.started
                if not stale or not isinstance(error, (httpx.NetworkError, httpx.RemoteProtocolError)):
                    raise
                connection = None
                continue
            if kept and repeatable and body.received is not None and body.received.status == 408:
                connection.close()
                await body.aclose()
                connection = None
                continue
            return body

    def _origin_for(self, url: httpx.URL) -> tuple[Origin, Slots]:
        if url.scheme not in ("http", "https"):
            raise httpx.UnsupportedProtocol("only http and https are spoken here")
        secure = url.scheme == "https"
        host = url.raw_host.decode("ascii")
        port = url.port or (443 if secure else 80)
        found = self._origins.get((url.scheme, host, port))
        if found is None:
            if secure and self._tls is None:
                self._tls = tls_context()
            origin = Origin(
                host,
                port,
                self._tls if secure else None,
                limits=self._limits,
                idle_timeout=self._idle_timeout,
                resolver=self._resolver,
            )
            found = self._origins[url.scheme, host, port] = origin, Slots(self._concurrency)
        return found


class PulledBody(httpx.AsyncByteStream):
    """A response's body on its way. Taking from it may be cancelled and tried again; nothing is lost (hazard 18)."""

    def __init__(self, origin: Origin, connection: Connection, timeout: float | None) -> None:
        self._origin = origin
        self._connection = connection
        self._timeout = timeout
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._closed = False
        self.received: Head | None = None
        self.release: Callable[[], None] = _nothing

    def head(self, head: Head) -> None:
        """Note the head."""
        self.received = head

    def data(self, data: bytes) -> None:
        """Keep a piece until it is taken; stop reading when too many lie here."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _AHEAD:
            self._connection.pause()

    def room(self, remaining: int) -> memoryview | None:  # noqa: ARG002 - pieces are handed on as they come
        """Give no place."""
        return None

    def filled(self, count: int) -> None:
        """Never called, as there is no place."""

    def end(self) -> None:
        """Nothing is to be done."""

    @property
    def waiting(self) -> int:
        """Bytes that were read and not yet taken."""
        return self._size

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if self._closed:
                raise StopAsyncIteration
            if self._connection.decoder.complete:
                await self.aclose()
                raise StopAsyncIteration
            with anyio.move_on_after(self._timeout) as scope:
                await self._connection.pump()
            if scope.cancelled_caught and not self._pieces and not self._connection.decoder.complete:
                raise httpx.ReadTimeout("no more of the body in time")
        piece = self._pieces.popleft()
        self._size -= len(piece)
        return piece

    async def aclose(self) -> None:
        """Give the connection back: kept where the body is at its end, else closed."""
        if self._closed:
            return
        self._closed = True
        if self._connection.decoder.complete:
            self._connection.settle()
        else:
            self._connection.close()
        self._origin.give(self._connection)
        self.release()


async def _message(request: httpx.Request) -> list[bytes]:
    body = bytearray()
    if isinstance(request.stream, httpx.AsyncByteStream):
        async for piece in request.stream:
            body += piece
    else:
        for piece in request.stream:
            body += piece
    pairs = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in request.headers.raw
        if name.lower() not in FRAMING
    ]
    writer = RequestWriter("", pairs)
    framed = body or b"content-length" in [name.lower() for name, _ in request.headers.raw]
    target = request.url.raw_path.decode("latin-1")
    head = writer.head(request.method, target, (), bytes(body) if framed else None)
    return [head, bytes(body)] if body else [head]


def _longest(timeouts: dict[str, float | None]) -> float | None:
    """The time until the head: httpx counts writing and reading apart, each anew with every byte."""
    read, write = timeouts.get("read"), timeouts.get("write")
    return None if read is None or write is None else read + write


def _nothing() -> None:
    pass
