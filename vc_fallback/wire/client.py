"""One beacon node over HTTP/1.1: requests over kept connections, streams over their own."""

import math
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import anyio
import httpx

from vc_fallback.base.urls import BaseURL
from vc_fallback.wire import injected
from vc_fallback.wire.connection import Connection
from vc_fallback.wire.dial import Resolver, SystemResolver
from vc_fallback.wire.errors import ClientClosed, StaleConnection
from vc_fallback.wire.http import Response, StreamSink, WireLimits
from vc_fallback.wire.keepalive import Origin, Slots
from vc_fallback.wire.message import RequestWriter
from vc_fallback.wire.receive import Collector, SinkReceiver
from vc_fallback.wire.redirect import MOST, Place, Redirected
from vc_fallback.wire.tls import tls_context

_REPEATABLE = frozenset({"GET", "HEAD"})
_TARGETS = 64
_LIMITS = WireLimits()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of one client: connections open, idle and in use, callers waiting for a slot, streams, and totals.

    :param open: connections that stand, those of streams included.
    :param draining: connections on which the answer to a cancelled request is still to come.
    :param in_use: slots taken by requests, whether they have a connection yet or not.
    :param dials: connections that were begun since the client was made.
    :param stale_repeats: requests written once more because a kept connection had ended (Q10).
    """

    open: int
    idle: int
    draining: int
    in_use: int
    waiting: int
    streams: int
    dials: int
    stale_repeats: int


class HTTPClient:
    """Requests and streams to one beacon node.

    Cheap to make; has no task of its own. Used from one event loop. Proxies of the environment are never looked at.
    Of redirects it follows 307 and 308 to the same host, or to https there (Q16); any other is returned as the answer.
    Time limits are the caller's; only making a connection has its own.
    """

    def __init__(
        self,
        url: BaseURL,
        *,
        headers: Sequence[tuple[str, str]] = (),
        tls: ssl.SSLContext | None = None,
        limits: WireLimits = _LIMITS,
        concurrency: int = 64,
        idle_timeout: float = 60.0,
        resolver: Resolver | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Make a client.

        :param headers: sent with every request and stream; user-info of the URL is sent as `Authorization`.
        :param tls: context for https, shared by clients of equal settings; made when needed where it is not given.
        :param concurrency: how many requests run at once; more wait, first come first served. Streams are not counted.
            A quarter is kept for those that are not patient.
        :param idle_timeout: seconds after which a kept connection is not used any more.
        :param resolver: names to addresses; the system's by default. IP literals never need one.
        :param transport: used in the place of our own connections; it is the caller's to close.
        :raises httpx.LocalProtocolError: for a header that cannot be sent.
        """
        own = [("Authorization", url.authorization)] if url.authorization is not None else []
        self._url = url
        self._headers = [*own, *headers]
        self._tls = tls
        self._limits = limits
        self._idle_timeout = idle_timeout
        self._resolver = resolver or SystemResolver()
        self._transport = transport
        self._slots = Slots(concurrency, reserve=concurrency // 4)
        self._concurrency = concurrency
        self._writers: dict[str, RequestWriter] = {}
        self._targets: dict[tuple[object, ...], str] = {}
        self._origins: dict[str, Origin] = {}
        self._streams = 0
        self._stale_repeats = 0
        self.reset_at = -math.inf
        """When, in loop time, a kept connection was last found to be dead: what is there now may be another server."""
        self._closed = False
        # Most requests go to the base URL itself: they look nothing up.
        self._name = url.origin
        self._writer = self._writer_for(url)
        self._base: Origin | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        repeatable: bool | None = None,
        connect_timeout: float = 1.0,
        begun: Callable[[], None] | None = None,
        deadline: float = math.inf,
        patient: bool = False,
    ) -> Response:
        """Send a request and read its response whole.

        :param path: as in the Beacon API, `/eth/v1/…`; the base URL's path prefix and query are added.
        :param repeatable: whether the request may be written once more, on a new connection, when a kept one ended
            before any byte of the response (Q10). GET and HEAD may, others may not, unless said otherwise.
        :param connect_timeout: seconds for making a connection, TLS included (H2); a kept one costs none.
        :param begun: called right before the first byte may be written, each time that the request is; a request that
            waits for a slot or for a connection has not begun (Q5). An injected transport does not say when it writes:
            it is called before the request is handed over.
        :param deadline: moment in loop time. It costs a sixth of what a cancel scope around the call does.
        :param patient: waits behind all others for a slot, and leaves a quarter of the slots to them.
        :raises TimeoutError: when there is no response by then.
        :raises httpx.PoolTimeout: when there was no slot by then: nothing was sent.
        :raises httpx.LocalProtocolError: for what cannot be sent; nothing was.
        :raises httpx.ConnectTimeout, httpx.ConnectError: no connection; `TLSError` and `CertificateError` among them.
        :raises httpx.TransportError: what else went wrong; see `vc_fallback.wire.errors`.
        """
        url = self._url
        place = Place(url, self._target(path, query) if query or url.query else url.prefix + path)
        if repeatable is None:
            repeatable = method in _REPEATABLE
        slots = self._slots
        if not slots.take_nowait(patient=patient):
            try:
                await _until(deadline, lambda: slots.take(patient=patient))
            except TimeoutError:
                raise httpx.PoolTimeout("too many requests of our own are under way to it") from None
        try:
            response = await self._request(place, method, headers, body, repeatable, connect_timeout, begun, deadline)
            for _ in range(MOST):
                elsewhere = place.follow(response.status, response.headers)
                if elsewhere is None:
                    break
                place = elsewhere
                response = await self._request(
                    place, method, headers, body, repeatable, connect_timeout, begun, deadline
                )
        finally:
            slots.give()
        response.origin = self._name if place.url is self._url else place.url.origin
        return response

    async def stream(
        self,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        headers: Sequence[tuple[str, str]] = (),
        sink: StreamSink,
        connect_timeout: float = 3.0,
    ) -> None:
        """Hold a stream open on a connection of its own, until it ends cleanly; what comes goes to the sink.

        Whatever the status is, the response goes to the sink; the body of an error (400 and above) is bounded.
        An injected transport does not say when a request is written: `sink.sent` is called before it is handed over.

        :raises httpx.TransportError: for every other end, as `request`.
        :raises Exception: what a method of the sink raised, unchanged; the connection is closed.
        """
        place = Place(self._url, self._url.target(path, query))
        self._streams += 1
        try:
            for followed in range(MOST + 1):
                receiver = SinkReceiver(sink, self._limits, place if followed < MOST else None)
                try:
                    await self._stream(place, headers, receiver, sink, connect_timeout)
                except Redirected as redirected:
                    place = redirected.place
                else:
                    return
        finally:
            self._streams -= 1

    def close(self) -> None:
        """Close all connections; calls under way and later ones raise `ClientClosed`. An injected transport stays."""
        self._closed = True
        for origin in self._origins.values():
            origin.close()

    async def aclose(self) -> None:
        """Do as `close`, where something to be awaited is expected."""
        self.close()

    def statistics(self) -> Statistics:
        """Return the present numbers."""
        origins = self._origins.values()
        idle = sum(len(origin.idle) for origin in origins)
        draining = sum(len(origin.draining) for origin in origins)
        return Statistics(
            open=idle + draining + sum(len(origin.busy) for origin in origins),
            idle=idle,
            draining=draining,
            in_use=self._concurrency - self._slots.free,
            waiting=self._slots.waiting,
            streams=self._streams,
            dials=sum(origin.dials for origin in origins),
            stale_repeats=self._stale_repeats,
        )

    async def _request(
        self,
        place: Place,
        method: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        repeatable: bool,
        connect_timeout: float,
        begun: Callable[[], None] | None,
        deadline: float,
    ) -> Response:
        if self._closed:
            raise ClientClosed("the client was closed")
        writer = self._writer if place.url is self._url else self._writer_for(place.url)
        collector = Collector(self._limits)
        if self._transport is not None:
            if begun is not None:
                begun()
            transport, pairs = self._transport, writer.pairs(headers)
            await _until(
                deadline,
                lambda: injected.exchange(transport, place, method, pairs, body, collector, connect_timeout),
            )
            return Response(collector.status, collector.headers, collector.body)
        head = writer.head(method, place.target, headers, body)
        parts = (head, body) if body else (head,)
        origin = self._origin_for(place.url)
        attempts = 1
        connection = origin.take()
        if connection is not None:
            if begun is not None:
                begun()
            if await self._exchange_kept(origin, connection, method, parts, collector, repeatable, deadline):
                return Response(collector.status, collector.headers, collector.body)
            self._stale_repeats += 1
            attempts = 2
            collector = Collector(self._limits)
        connection = await _until(deadline, lambda: origin.connect(connect_timeout))
        if begun is not None:
            begun()
        try:
            await connection.exchange(method, parts, collector, deadline=deadline)
        finally:
            origin.give(connection)
        return Response(collector.status, collector.headers, collector.body, attempts)

    async def _exchange_kept(
        self,
        origin: Origin,
        connection: Connection,
        method: str,
        parts: Sequence[bytes],
        collector: Collector,
        repeatable: bool,
        deadline: float,
    ) -> bool:
        """Use a kept connection; `False` when it proved stale and the request is to be written once more."""
        try:
            await connection.exchange(method, parts, collector, deadline=deadline)
        except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
            self.reset_at = connection.now()
            if connection.decoder.started:
                raise
            if not repeatable:
                raise StaleConnection("a kept connection ended before any byte of the response") from error
            return False
        else:
            # A 408 on a kept connection was on its way before the request was: the server was tired of waiting.
            stale = collector.status == 408 and repeatable
            if stale:
                connection.close()
            return not stale
        finally:
            origin.give(connection)

    async def _stream(
        self,
        place: Place,
        headers: Sequence[tuple[str, str]],
        receiver: SinkReceiver,
        sink: StreamSink,
        connect_timeout: float,
    ) -> None:
        if self._closed:
            raise ClientClosed("the client was closed")
        writer = self._writer_for(place.url)
        if self._transport is not None:
            sink.sent()
            await injected.exchange(
                self._transport, place, "GET", writer.pairs(headers), None, receiver, connect_timeout
            )
            return
        head = writer.head("GET", place.target, headers, None)
        origin = self._origin_for(place.url)
        connection = await origin.connect(connect_timeout)
        connection.in_pieces()
        try:
            await connection.exchange("GET", (head,), receiver, sink.sent)
        finally:
            connection.close()
            origin.give(connection)

    def _target(self, path: str, query: Sequence[tuple[str, str]]) -> str:
        """Return the target of a request: the same question is asked many times in a slot."""
        key = (path, *query)
        target = self._targets.get(key)
        if target is None:
            if len(self._targets) >= _TARGETS:
                self._targets.clear()
            target = self._targets[key] = self._url.target(path, query)
        return target

    def _writer_for(self, url: BaseURL) -> RequestWriter:
        writer = self._writers.get(url.origin)
        if writer is None:
            writer = self._writers[url.origin] = RequestWriter(url.netloc, self._headers)
        return writer

    def _origin_for(self, url: BaseURL) -> Origin:
        if url is self._url and self._base is not None:
            return self._base
        origin = self._origins.get(url.origin)
        if origin is None:
            if url.scheme == "https" and self._tls is None:
                self._tls = tls_context()
            origin = self._origins[url.origin] = Origin(
                url.host,
                url.port,
                self._tls if url.scheme == "https" else None,
                limits=self._limits,
                idle_timeout=self._idle_timeout,
                resolver=self._resolver,
            )
        if url is self._url:
            self._base = origin
        return origin


async def _until(deadline: float, call: Callable[[], Awaitable[T]]) -> T:
    with anyio.CancelScope(deadline=deadline):
        return await call()
    raise TimeoutError
