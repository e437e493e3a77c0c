"""A server on loopback whose every byte a test decides: one handler per connection, plain sockets, both event loops."""

import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

_READ = 256 * 1024


class Gone(Exception):
    """The client has ended the connection; a handler may let it pass."""


@dataclass
class Request:
    """A request as it came; names of headers are lower-case, the last of one name stands."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    head: bytes


class RawConnection:
    """One accepted connection. `number` counts from 0 in the order of accepting."""

    def __init__(self, accepted: socket.socket, number: int, tls: ssl.SSLContext | None) -> None:
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = accepted
        self.number = number
        self.closed = False
        self.buffer = b""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = None if tls is None else tls.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def handshake(self) -> None:
        """Agree on TLS, where the server speaks it."""
        if self._tls is None:
            return
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self.send_raw(self._outgoing.read())
                self._feed(await self.receive_raw())
            except ssl.SSLError:
                await self.send_raw(self._outgoing.read())
                raise Gone from None
            else:
                await self.send_raw(self._outgoing.read())
                return

    async def receive(self) -> bytes:
        """Return what came; raises `Gone` at the end."""
        if self._tls is None:
            data = await self.receive_raw()
            if not data:
                raise Gone
            return data
        while True:
            try:
                data = self._tls.read(_READ)
            except ssl.SSLWantReadError:
                self._feed(await self.receive_raw())
            except ssl.SSLError:
                raise Gone from None
            else:
                if not data:
                    raise Gone
                return data

    async def send(self, data: bytes) -> None:
        """Write everything; raises `Gone` when nobody is there any more."""
        if self._tls is None:
            await self.send_raw(data)
            return
        self._tls.write(data)
        await self.send_raw(self._outgoing.read())

    async def request(self) -> Request:
        """Read one request; raises `Gone` when none comes."""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += await self.receive()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        pairs = [line.partition(":") for line in lines[1:]]
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = bytearray(self.buffer)
        length = int(headers.get("content-length", "0"))
        while len(body) < length:
            body += await self.receive()
        self.buffer = bytes(body[length:])
        return Request(method, target, headers, bytes(body[:length]), head)

    async def until_gone(self) -> None:
        """Wait until the client ends the connection."""
        with contextlib.suppress(Gone):
            while True:
                await self.receive()

    def finish(self) -> None:
        """Send FIN and go on listening."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close with RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    async def close_tls(self) -> None:
        """Send close_notify."""
        assert self._tls is not None
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        await self.send_raw(self._outgoing.read())

    def close(self) -> None:
        """Close; FIN, or RST where bytes of the client were not read."""
        if not self.closed:
            self.closed = True
            anyio.notify_closing(self.socket)
            self.socket.close()

    async def receive_raw(self) -> bytes:
        """Return bytes as they are on the wire, empty at the end."""
        while not self.closed:
            try:
                return self.socket.recv(_READ)
            except BlockingIOError:
                try:
                    await anyio.wait_readable(self.socket)
                except anyio.ClosedResourceError:
                    break
            except OSError:
                break
        raise Gone

    async def send_raw(self, data: bytes) -> None:
        """Write bytes as they are to be on the wire."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self.socket.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self.socket)
            except OSError:
                raise Gone from None

    def _feed(self, data: bytes) -> None:
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()


Handler = Callable[[RawConnection], Awaitable[None]]


@dataclass
class RawServer:
    """Where it listens, and what it has seen."""

    host: str
    port: int
    scheme: str
    connections: list[RawConnection] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its base URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def open(self) -> int:
        """How many connections stand from the server's view."""
        return sum(not connection.closed for connection in self.connections)


@asynccontextmanager
async def serve(
    handler: Handler, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", name: str | None = None
) -> AsyncIterator[RawServer]:
    """Listen on a free port; the handler is a task per connection, which is closed when it returns.

    :param name: host name to stand in the URL, in the place of the address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setblocking(False)
        listener.bind((host, 0))
        listener.listen(512)
        server = RawServer(name or host, listener.getsockname()[1], "https" if tls is not None else "http")

        async def handle(connection: RawConnection) -> None:
            try:
                await connection.handshake()
                await handler(connection)
            except Gone:
                pass
            finally:
                connection.close()

        async def accept() -> None:
            while True:
                await anyio.wait_readable(listener)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        accepted, _ = listener.accept()
                        connection = RawConnection(accepted, len(server.connections), tls)
                        server.connections.append(connection)
                        tasks.start_soon(handle, connection)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(accept)
            try:
                yield server
            finally:
                tasks.cancel_scope.cancel()


def answer(body: bytes = b"{}", *, status: str = "200 OK", headers: str = "") -> bytes:
    """Return a plain response with a content-length; `headers` are whole lines."""
    return f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


def replies(*bodies: bytes) -> Handler:
    """Return a handler that answers each request of a connection with the same bytes, whole responses."""

    async def handler(connection: RawConnection) -> None:
        while True:
            await connection.request()
            for body in bodies:
                await connection.send(body)

    return handler
