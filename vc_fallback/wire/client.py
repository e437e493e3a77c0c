"""One beacon node over HTTP/1.1: requests over kept connections, streams over their own."""

import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from socket import AddressFamily
from typing import Any

import httpx

from vc_fallback.base.urls import BaseURL
from vc_fallback.wire.http import Response, StreamSink, WireLimits

Address = tuple[AddressFamily, tuple[Any, ...]]
Resolver = Callable[[str, int], Awaitable[Sequence[Address]]]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of one client: connections open, idle and in use, callers waiting for a slot, streams, and totals."""

    open: int
    idle: int
    in_use: int
    waiting: int
    streams: int
    dials: int
    stale_repeats: int


class HTTPClient:
    """Contract; see the methods."""

    def __init__(
        self,
        url: BaseURL,
        *,
        headers: Sequence[tuple[str, str]] = (),
        tls: ssl.SSLContext | None = None,
        limits: WireLimits = WireLimits(),
        concurrency: int = 64,
        idle_timeout: float = 60.0,
        resolver: Resolver | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None: ...

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
    ) -> Response: ...  # type: ignore[empty-body]

    async def stream(
        self,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        headers: Sequence[tuple[str, str]] = (),
        sink: StreamSink,
        connect_timeout: float = 3.0,
    ) -> None: ...

    async def aclose(self) -> None: ...

    def statistics(self) -> Statistics: ...  # type: ignore[empty-body]
