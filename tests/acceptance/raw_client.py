"""A client for the tests of simulated nodes that shares no code with them: plain sockets, h11, hand-written events."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
import h11
from anyio.abc import SocketStream

HEADS = "/eth/v1/events?topics=head"


@dataclass
class Reply:
    """A whole response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Raw:
    """One connection, byte by byte."""

    stream: SocketStream
    received: bytes = b""
    ended: Literal["eof", "reset"] | None = None

    async def send(self, data: bytes) -> None:
        await self.stream.send(data)

    async def ask(self, target: str, *, accept: str = "text/event-stream", more: str = "") -> None:
        await self.send(f"GET {target} HTTP/1.1\r\nHost: node\r\nAccept: {accept}\r\n{more}\r\n".encode())

    async def read_for(self, seconds: float) -> bytes:
        """Return what arrives in so many seconds; note how the connection ended, if it did."""
        before = len(self.received)
        with anyio.move_on_after(seconds):
            while self.ended is None:
                try:
                    self.received += await self.stream.receive()
                except anyio.EndOfStream:
                    self.ended = "eof"
                except anyio.BrokenResourceError:
                    self.ended = "reset"
        return self.received[before:]


@asynccontextmanager
async def dialled(url: str) -> AsyncIterator[Raw]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    async with await anyio.connect_tcp(host.strip("[]"), int(port)) as stream:
        yield Raw(stream)


async def fetch(
    url: str,
    target: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    within: float = 5.0,
) -> Reply:
    """Make one request on a connection of its own, its answer checked by h11."""
    async with dialled(url) as raw:
        return await exchange(raw.stream, target, method=method, headers=headers, body=body, within=within)


async def exchange(
    stream: SocketStream,
    target: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    within: float = 5.0,
) -> Reply:
    """Make one request on a given connection."""
    protocol = h11.Connection(h11.CLIENT)
    fields = {"Host": "node", "Content-Length": str(len(body)), **(headers or {})}
    data = protocol.send(h11.Request(method=method, target=target, headers=list(fields.items())))
    data += (protocol.send(h11.Data(data=body)) or b"") + (protocol.send(h11.EndOfMessage()) or b"")
    reply = Reply(0, {}, b"")
    with anyio.fail_after(within):
        await stream.send(data)
        while True:
            event = protocol.next_event()
            if event is h11.NEED_DATA:
                try:
                    protocol.receive_data(await stream.receive())
                except anyio.EndOfStream:
                    protocol.receive_data(b"")
            elif isinstance(event, h11.Response):
                reply.status = event.status_code
                reply.headers = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                reply.body += bytes(event.data)
            else:
                assert isinstance(event, h11.EndOfMessage)
                return reply


@dataclass
class Heard:
    """An event as it arrived."""

    at: float
    topic: str
    text: str

    @property
    def data(self) -> Any:
        return json.loads(self.text)

    @property
    def slot(self) -> int:
        return int(self.data.get("data", self.data)["slot"])


@dataclass
class Listener:
    """Follows an event stream in the background."""

    heard: list[Heard] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    opened: float | None = None
    ended: float | None = None
    how: Literal["complete", "cut off", "reset"] | None = None
    reply: Reply | None = None

    def slots(self, topic: str = "head") -> list[int]:
        return [event.slot for event in self.heard if event.topic == topic]

    def topics(self) -> list[str]:
        return [event.topic for event in self.heard]

    def _take(self, text: str) -> str:
        *whole, rest = text.replace("\r\n", "\n").split("\n\n")
        for piece in whole:
            topic, data = "", []
            for line in piece.split("\n"):
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if not name and line:
                    self.comments.append(line[1:])
                elif name == "event":
                    topic = value
                elif name == "data":
                    data.append(value)
            if data:
                self.heard.append(Heard(anyio.current_time(), topic, "\n".join(data)))
        return rest

    async def run(self, raw: Raw, target: str) -> None:
        await raw.ask(target)
        protocol = h11.Connection(h11.CLIENT)
        protocol.send(h11.Request(method="GET", target=target, headers=[("Host", "node")]))
        protocol.send(h11.EndOfMessage())
        rest = ""
        try:
            while True:
                event = protocol.next_event()
                if event is h11.NEED_DATA:
                    try:
                        protocol.receive_data(await raw.stream.receive())
                    except anyio.EndOfStream:
                        protocol.receive_data(b"")
                elif isinstance(event, h11.Response):
                    self.opened = anyio.current_time()
                    self.reply = Reply(event.status_code, {}, b"")
                elif isinstance(event, h11.Data):
                    rest = self._take(rest + bytes(event.data).decode())
                elif isinstance(event, h11.EndOfMessage):
                    self.how = "complete"
                    return
        except h11.RemoteProtocolError:
            self.how = "cut off"
        except anyio.BrokenResourceError:
            self.how = "reset"
        finally:
            self.ended = anyio.current_time()


@asynccontextmanager
async def listening(url: str, target: str = HEADS) -> AsyncIterator[Listener]:
    """Follow an event stream while the body runs."""
    listener = Listener()
    async with dialled(url) as raw, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.run, raw, target)
        yield listener
        tasks.cancel_scope.cancel()
