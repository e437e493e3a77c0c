"""What tests of the connection layer share: a client that is checked for leaks, and a sink that keeps everything."""

import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest
import trustme

from tests.rawserver import RawServer
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import TLSSettings
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.dial import Resolver
from vc_fallback.wire.http import Headers, Response, WireLimits


class Authority:
    """A certificate authority, a server's context and the client's settings that trust it."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.ca = trustme.CA()
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*(names or ("127.0.0.1", "localhost"))).configure_cert(self.server)
        self.settings = TLSSettings(ca=folder / "ca.pem")
        self.ca.cert_pem.write_to_path(folder / "ca.pem")


class Deaf:
    """A port that never completes a connection: its backlog is full."""

    def __enter__(self) -> int:
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        port: int = self.listener.getsockname()[1]
        self.fillers = [socket.socket() for _ in range(4)]
        for filler in self.fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        return port

    def __exit__(self, *_: object) -> None:
        for one in (*self.fillers, self.listener):
            one.close()


def descriptors() -> int:
    """How many file descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - one system call less to count


@asynccontextmanager
async def client_of(
    server: RawServer,
    *,
    path: str = "",
    headers: Sequence[tuple[str, str]] = (),
    tls: ssl.SSLContext | None = None,
    limits: WireLimits = WireLimits(),  # noqa: B008 - frozen
    concurrency: int = 64,
    idle_timeout: float = 60.0,
    resolver: Resolver | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[HTTPClient]:
    """Make a client; when the test is through nothing of it may be left but idle connections, and they go with it."""
    client = HTTPClient(
        BaseURL.parse(server.url + path),
        headers=headers,
        tls=tls,
        limits=limits,
        concurrency=concurrency,
        idle_timeout=idle_timeout,
        resolver=resolver,
        transport=transport,
    )
    try:
        yield client
        numbers = client.statistics()
        assert (numbers.in_use, numbers.waiting, numbers.streams) == (0, 0, 0)
        assert numbers.open == numbers.idle + numbers.draining
    finally:
        await client.aclose()
    assert client.statistics().open == 0


async def get(client: HTTPClient, path: str = "/") -> Response:
    """Send a GET that must not take long."""
    with anyio.fail_after(20):
        return await client.request("GET", path)


async def fails(client: HTTPClient, error: type[Exception] = httpx.RemoteProtocolError, path: str = "/") -> Exception:
    """Send a GET that must fail with this error, and leave no connection behind."""
    with pytest.raises(error) as caught:
        await get(client, path)
    assert client.statistics().open == 0
    return caught.value


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something holds, for five seconds at most."""
    with anyio.fail_after(5):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await anyio.sleep(0.002)


class Recorder:
    """A sink that keeps what it is told. `first` is set with the first bytes, `opened` with the head."""

    def __init__(self) -> None:
        self.sent_times = 0
        self.status = 0
        self.headers = Headers()
        self.pieces: list[bytes] = []
        self.written = anyio.Event()
        self.opened = anyio.Event()
        self.first = anyio.Event()

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def sent(self) -> None:
        self.sent_times += 1
        self.written.set()

    def response(self, status: int, headers: Headers) -> None:
        self.status = status
        self.headers = headers
        self.opened.set()

    def data(self, data: bytes) -> None:
        self.pieces.append(data)
        self.first.set()
