"""An injected `httpx.AsyncBaseTransport` (a proxy, a mock, an ASGI application) in the place of our own connections."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable

import anyio
import httpx

from vc_fallback.wire.http import Head, Headers, Receiver
from vc_fallback.wire.redirect import Place

_CLOSING = 1.0


async def exchange(
    transport: httpx.AsyncBaseTransport,
    place: Place,
    method: str,
    headers: list[tuple[str, str]],
    body: bytes | None,
    receiver: Receiver,
    connect_timeout: float,
) -> None:
    """Send one request and give its response to a receiver, with the same limits as on our own connections.

    :raises httpx.TransportError: what the transport raises; what the receiver raises comes out as it is.
    """
    request = httpx.Request(
        method,
        httpx.URL(
            scheme=place.url.scheme, host=place.url.host, port=place.url.port, raw_path=place.target.encode("ascii")
        ),
        headers=headers,
        content=body,
        extensions={"timeout": {"connect": connect_timeout, "pool": None, "read": None, "write": None}},
    )
    response = await transport.handle_async_request(request)
    stream = response.stream
    pieces = aiter(stream if isinstance(stream, httpx.AsyncByteStream) else _each(stream))
    try:
        coding = response.headers.get("content-encoding", "").lower().encode("latin-1", "replace")
        bare = method == "HEAD" or response.status_code in (204, 304)
        receiver.head(Head(response.status_code, Headers(response.headers.raw), 0 if bare else None, coding))
        async for piece in pieces:
            if piece and not bare:
                receiver.data(piece)
        receiver.end()
    finally:
        with anyio.move_on_after(_CLOSING, shield=True):
            # A generator that was left early would otherwise be finalised whenever it is found.
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
            await response.aclose()


async def _each(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
