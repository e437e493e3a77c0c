"""A server on one loopback port: listening, refusing, freezing, and connections that can be cut in every way."""

import errno
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
from anyio.abc import SocketStream, TaskGroup

from vc_fallback.testing.http import Answer, BadRequest, Request, RequestReader

_WRITE_LIMIT = 60.0
"""Seconds after which a client that does not read is dropped."""

_BACKLOG = 512


@dataclass(eq=False, slots=True)
class Connection:
    """One accepted connection."""

    number: int
    stream: SocketStream
    reader: RequestReader
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    vanished: bool = False
    """Nothing is written any more, and the connection stays open."""
    reset: bool = False
    """It closes with RST."""
    closed: anyio.Event = field(default_factory=anyio.Event)

    async def close(self) -> None:
        """Close, with RST where that was asked for, else with FIN."""
        if self.reset:
            raw: socket.socket = self.stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610
            with suppress(OSError):  # closed already
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with anyio.CancelScope(shield=True):
            await self.stream.aclose()
        self.closed.set()


class Server:
    """Accepts connections on a port of its own and hands their requests to `respond`.

    :param respond: answers one request; returns whether the connection lives on.
    :param host: IP literal to bind.
    :param port: 0 for a free one, which is then kept.
    """

    def __init__(
        self, respond: Callable[[Connection, Request], Awaitable[bool]], *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._respond = respond
        self._host = host
        self.port = port
        self._socket: socket.socket | None = None
        self._tasks: TaskGroup | None = None
        self._accepting: anyio.CancelScope | None = None
        self._thawed: anyio.Event | None = None
        self._count = 0
        self._beginning = 0
        """Connections that were accepted and are not among `connections` yet."""
        self.connections: set[Connection] = set()

    @property
    def url(self) -> str:
        """`http://host:port`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    @property
    def listening(self) -> bool:
        """Whether the port accepts connections."""
        return self._accepting is not None

    @property
    def accepted(self) -> int:
        """How many connections were ever accepted."""
        return self._count

    def start(self, tasks: TaskGroup) -> None:
        """Bind and listen.

        :raises OSError: where the port cannot be had.
        """
        self._tasks = tasks
        self._bind()
        self.listen()

    def listen(self) -> None:
        """Accept connections (again), on the same port."""
        if self._accepting is not None or self._tasks is None or self._socket is None:
            return
        self._socket.listen(_BACKLOG)
        self._accepting = anyio.CancelScope()
        self._tasks.start_soon(self._accept, self._tasks, self._socket, self._accepting)

    def refuse(self) -> None:
        """Close the port: connects are refused from now on. Open connections live on."""
        if self._accepting is None or self._socket is None:
            return
        self._accepting.cancel()
        self._accepting = None
        anyio.notify_closing(self._socket)
        self._socket.close()
        # Bound but not listening: the kernel refuses connects and gives the port to nobody else.
        self._bind()

    def freeze(self) -> None:
        """Stop like a stopped process: connects succeed, nothing is read, answered or sent until :meth:`thaw`."""
        if self._thawed is None:
            self._thawed = anyio.Event()

    def thaw(self) -> None:
        """Go on, with what has queued up."""
        if self._thawed is not None:
            self._thawed.set()
            self._thawed = None

    @property
    def frozen(self) -> bool:
        """Whether it is stopped."""
        return self._thawed is not None

    async def gate(self, connection: Connection | None = None) -> None:
        """Wait while frozen; for ever on a vanished connection (until the client closes it)."""
        while self._thawed is not None:
            await self._thawed.wait()
        if connection is not None and connection.vanished:
            await connection.reader.wait_closed()
            connection.scope.cancel()
            await anyio.sleep_forever()

    async def write(self, connection: Connection, data: bytes) -> None:
        """Send bytes; a client that does not take them within a minute is dropped."""
        await self.gate(connection)
        try:
            with anyio.fail_after(_WRITE_LIMIT):
                await connection.stream.send(data)
        except TimeoutError:
            connection.reset = True
            raise anyio.BrokenResourceError from None

    def vanish(self) -> None:
        """Let all present connections fall silent for ever, without a close; new ones work."""
        for connection in self.connections:
            connection.vanished = True

    async def cut(self, *, reset: bool = False) -> None:
        """Close all present connections at once, without finishing what they were sending."""
        while self._beginning:
            await anyio.lowlevel.checkpoint()
        present = list(self.connections)
        for connection in present:
            connection.reset = reset
            connection.scope.cancel()
        for connection in present:
            await connection.closed.wait()

    def close(self) -> None:
        """Give the port back, once the tasks are over."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _bind(self) -> None:
        bound = socket.socket(socket.AF_INET6 if ":" in self._host else socket.AF_INET, socket.SOCK_STREAM)
        try:
            bound.setblocking(False)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((self._host, self.port))
        except OSError:
            bound.close()
            raise
        self.port = bound.getsockname()[1]
        self._socket = bound

    async def _accept(self, tasks: TaskGroup, listener: socket.socket, scope: anyio.CancelScope) -> None:
        with scope, suppress(anyio.ClosedResourceError):
            # A refused port's listener is closed, and waiting for it would be an error.
            while listener.fileno() >= 0:
                await anyio.wait_readable(listener)
                await self.gate()
                if listener.fileno() < 0:
                    return
                # Accepted without an await in between, so no cancellation can lose a connection.
                try:
                    accepted, _ = listener.accept()
                except BlockingIOError:
                    continue
                except OSError as error:
                    if error.errno in {errno.EMFILE, errno.ENFILE}:
                        raise
                    continue  # the client was gone already
                self._count += 1
                self._beginning += 1
                tasks.start_soon(self._serve, accepted, self._count)

    async def _serve(self, accepted: socket.socket, number: int) -> None:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with anyio.CancelScope(shield=True):
                stream = await SocketStream.from_socket(accepted)
            connection = Connection(number, stream, RequestReader(stream, number))
            self.connections.add(connection)
        finally:
            self._beginning -= 1
        try:
            with connection.scope:
                await self._converse(connection)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            pass  # the client is gone
        finally:
            await connection.close()
            self.connections.discard(connection)

    async def _converse(self, connection: Connection) -> None:
        lives = True
        while lives:
            try:
                request = await connection.reader.next()
            except BadRequest as error:
                await self.write(
                    connection, Answer(400, str(error), content_type="text/plain").encode(keep_alive=False)
                )
                return
            if request is None:
                return
            await self.gate(connection)
            lives = await self._respond(connection, request)
