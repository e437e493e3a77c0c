"""Beacon nodes in a process of their own that do no more than they must, and that can be killed, hung and delayed.

Each node is a port. A killed one resets its connections and refuses new ones; a hung one accepts all and says nothing.
All of them announce the head of a slot when it begins, and to whoever opens a stream.
"""

import asyncio
import multiprocessing
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection as Pipe
from typing import Literal, cast

from scripts.benchmarks.routing_answers import SLOTS_PER_EPOCH, Answers, root_of
from vc_fallback import FallbackConfig
from vc_fallback.base.types import NodeId

_AGO = 100_000
"""Slots since genesis."""

Manner = Literal["well", "dead", "hung"]


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes as the client has them."""

    ports: tuple[int, ...]
    slot_duration: float
    genesis_time: int
    pipe: Pipe

    def urls(self) -> list[str]:
        """Return the base URLs."""
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    def ids(self) -> list[NodeId]:
        """Return the node ids: `a`, `b`, `c` …"""
        return [NodeId(chr(ord("a") + index)) for index in range(len(self.ports))]

    def config(self, **sections: object) -> FallbackConfig:
        """Return a configuration with all nodes, all primaries."""
        return FallbackConfig.of(
            {
                "candidates": [{"name": name, "url": url} for name, url in zip(self.ids(), self.urls(), strict=True)],
                "chain": {
                    "genesis_time": self.genesis_time,
                    "genesis_validators_root": root_of("validators"),
                    "slot_duration": self.slot_duration,
                    "slots_per_epoch": SLOTS_PER_EPOCH,
                },
                **sections,
            }
        )

    def become(self, index: int, manner: Manner, delay: float = 0.0) -> None:
        """Have a node be so from now on: when this returns it is.

        :param delay: seconds that each of its answers takes.
        """
        self.pipe.send((index, manner, delay))
        self.pipe.recv()


@contextmanager
def nodes(count: int, slot_duration: float) -> Iterator[Nodes]:
    """Run so many nodes in another process. Not for an event loop: it waits."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=_serve, args=(count, slot_duration, there), daemon=True)
    server.start()
    try:
        ports, genesis_time = here.recv()
        yield Nodes(ports, slot_duration, genesis_time, here)
    finally:
        here.send(None)
        server.join(5)


def genesis_for(slot_duration: float) -> int:
    """Return a time of genesis in Unix seconds by which a slot has just begun."""
    return int(time.time() - _AGO * slot_duration)


class _Node:
    """One port."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.manner: Manner = "well"
        self.delay = 0.0
        self.connections: set[_Connection] = set()
        self.port = 0
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        """Open the port, the one it had where it had one."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(partial(_Connection, self), "127.0.0.1", self.port, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]

    async def become(self, manner: Manner, delay: float) -> None:
        """Be so from now on."""
        left = [*self.connections] if self.manner == "hung" else []
        self.manner, self.delay = manner, delay
        for connection in left:
            # What came meanwhile was not read.
            connection.reset()
        if manner == "dead" and self._server is not None:
            self._server.close()
            self._server = None
            for connection in [*self.connections]:
                connection.reset()
            # The sockets close in the next round of the loop.
            await asyncio.sleep(0)
        elif manner != "dead" and self._server is None:
            await self.listen()

    def announce(self) -> None:
        """Write the present head to all streams."""
        if self.manner == "well":
            head = self.answers.head()
            for connection in self.connections:
                if connection.streams:
                    connection.transport.write(head)


class _Connection(asyncio.Protocol):
    """One connection to a node."""

    transport: asyncio.Transport

    def __init__(self, node: _Node) -> None:
        self._node = node
        self._buffer = b""
        self._target = b""
        self._missing = -1
        """Bytes of a body still to come; below 0 while it is the head that is to come."""
        self.streams = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._node.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - how it went does not matter
        self._node.connections.discard(self)

    def reset(self) -> None:
        """End as a killed process does whose socket has data that was not read: by RST."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._node.manner != "well":
            return
        self._buffer += data
        if self._missing < 0:
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if not end:
                return
            self._target = head.split(b" ", 2)[1]
            self._buffer, self._missing = rest, 0
            if head[:4] == b"POST":
                lines = head.lower().split(b"\r\n")
                self._missing = next(int(line[15:]) for line in lines if line[:15] == b"content-length:")
        if len(self._buffer) < self._missing:
            return
        self._buffer, self._missing = b"", -1
        if self._target.startswith(b"/eth/v1/events"):
            self.streams = True
            self.transport.write(_STREAM + self._node.answers.head())
        elif self._node.delay:
            answer = self._node.answers.to(self._target)
            asyncio.get_running_loop().call_later(self._node.delay, self.transport.write, answer)
        else:
            self.transport.write(self._node.answers.to(self._target))


_STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def _serve(count: int, slot_duration: float, pipe: Pipe) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        genesis_time = genesis_for(slot_duration)
        answers = Answers(slot_duration, genesis_time)
        served = [_Node(answers) for _ in range(count)]
        for node in served:
            await node.listen()
        ended = asyncio.Event()
        orders: set[asyncio.Task[None]] = set()

        async def obey(order: tuple[int, Manner, float]) -> None:
            index, manner, delay = order
            await served[index].become(manner, delay)
            pipe.send(None)

        def told() -> None:
            order = pipe.recv()
            if order is None:
                ended.set()
                return
            task = loop.create_task(obey(order))
            orders.add(task)
            task.add_done_callback(orders.discard)

        async def announce() -> None:
            while True:
                await asyncio.sleep(answers.starts_in(answers.slot + 1))
                answers.forget()
                for node in served:
                    node.announce()

        announcing = loop.create_task(announce())
        loop.add_reader(pipe.fileno(), told)
        pipe.send((tuple(node.port for node in served), genesis_time))
        await ended.wait()
        announcing.cancel()

    asyncio.run(main())
