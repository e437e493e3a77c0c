"""The other process of the benchmarks: beacon nodes that do no more than they must and write heads at known moments.

Several clients follow the same nodes at once, told apart by the path prefix of their base URL. They have their heads in
rounds, one after the other, so that whatever the machine does meanwhile, it does to all. A head's root ends in the
moment of its first write, in nanoseconds of CLOCK_MONOTONIC, which is one clock for all processes of a machine.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, cast

import anyio

ROOT = Path(__file__).parents[2]

SLOTS_PER_EPOCH = 32
GENESIS_AGO = 100_000
"""Genesis is so many seconds ago."""

Pattern = Literal["distinct", "same"]
"""`distinct`: each node in turn announces a new head; `same`: all announce one head at the same instant."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the server does.

    :param clients: path prefix of each client, and how many of the nodes (the first ones) it follows.
    :param heads: how many heads each client is shown, after `warm` ones that are not counted.
    :param slot_duration: seconds; each slot is one client's.
    :param turn: how many heads a client has in a row.
    :param begin: how many streams each client must have open before the first head; by default as many as it has nodes.
    """

    nodes: int
    clients: Mapping[str, int]
    pattern: Pattern
    heads: int
    slot_duration: float
    turn: int = 1
    warm: int = 0
    begin: int | None = None


@dataclass(frozen=True, slots=True)
class Serving:
    """A server at work. `first` is the slot from which heads count."""

    plan: Plan
    process: subprocess.Popen[bytes]
    ports: tuple[int, ...]
    genesis_time: int
    genesis_validators_root: str
    _ready: set[str] = field(default_factory=set)

    def urls(self, client: str) -> list[str]:
        """Return the base URLs of the nodes that a client follows."""
        return [f"http://127.0.0.1:{port}/{client}" for port in self.ports[: self.plan.clients[client]]]

    def ready(self, client: str) -> None:
        """Say that a client waits for heads; when all do, the server begins."""
        self._ready.add(client)
        if len(self._ready) == len(self.plan.clients):
            assert self.process.stdin is not None  # noqa: S101 - it was asked for
            self.process.stdin.close()

    async def done(self) -> int:
        """Wait until every head has been written; return the slot from which heads count."""
        return int((await told_by(self.process))["first"])


@asynccontextmanager
async def serving(plan: Plan) -> AsyncIterator[Serving]:
    """Run a server in another process. It begins to write when all clients are ready and their streams open."""
    command = [sys.executable, "-m", "scripts.benchmarks.server", json.dumps(asdict(plan))]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: ASYNC220 - it is short
        try:
            told = await told_by(process)
            yield Serving(plan, process, tuple(told["ports"]), told["genesis_time"], _root(0))
        finally:
            process.kill()


async def told_by(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """Read what the server says next: one line."""
    assert process.stdout is not None  # noqa: S101 - it was asked for
    line = b""
    while not line.endswith(b"\n"):
        # uvloop makes the pipe one that gives what it has.
        await anyio.wait_readable(process.stdout)
        line += os.read(process.stdout.fileno(), 4096)
    told: dict[str, Any] = json.loads(line)
    return told


def moment_of(root: bytes) -> int:
    """Return when a head was written first, in nanoseconds."""
    return int.from_bytes(root[-8:])


class _Nodes:
    """All nodes of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.genesis_time = int(time.time()) - GENESIS_AGO
        self.streams: dict[str, dict[int, asyncio.Transport]] = {client: {} for client in plan.clients}
        self.changed = asyncio.Event()
        self._start = time.time() - time.monotonic()
        self._old = self.slot_at() - 1
        spec = {
            "PRESET_BASE": "mainnet",
            "SLOTS_PER_EPOCH": str(SLOTS_PER_EPOCH),
            "SLOT_DURATION_MS": str(round(plan.slot_duration * 1000)),
            "GENESIS_FORK_VERSION": "0x00000000",
        }
        genesis = {"genesis_time": str(self.genesis_time), "genesis_validators_root": _root(0)}
        head = {"root": _root(self._old), "header": {"message": {"slot": str(self._old)}}}
        self._answers = {
            "/eth/v1/beacon/genesis": _answer({"data": genesis}),
            "/eth/v1/config/spec": _answer({"data": spec}),
            "/eth/v1/node/version": _answer({"data": {"version": "bench/1"}}),
            "/eth/v1/beacon/headers/head": _answer({"data": head, "execution_optimistic": False}),
        }

    def slot_at(self) -> int:
        """Return the slot now."""
        return int((time.monotonic() + self._start - self.genesis_time) // self.plan.slot_duration)

    def middle_of(self, slot: int) -> float:
        """Return the moment of a slot at which its head is announced: nothing else has its time there."""
        return self.genesis_time + (slot + 0.5) * self.plan.slot_duration - self._start

    def answer(self, path: str) -> bytes:
        """Return the answer to a request that is no subscription."""
        return self._answers.get(path, _NOT_FOUND)

    async def run(self) -> int:
        """Write what is planned; return the slot from which heads count."""
        plan = self.plan
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(sys.stdin, ready.set)
        await ready.wait()
        loop.remove_reader(sys.stdin)
        while any(len(self.streams[client]) < (plan.begin or count) for client, count in plan.clients.items()):
            self.changed.clear()
            await self.changed.wait()
        clients = list(plan.clients)
        slot = self.slot_at() + 2
        first = slot + plan.warm * len(clients)
        shown = dict.fromkeys(clients, 0)
        for count in (plan.warm, plan.heads):
            for begun in range(0, count, plan.turn):
                for client in clients:
                    for _ in range(min(plan.turn, count - begun)):
                        await asyncio.sleep(self.middle_of(slot) - time.monotonic())
                        streams = list(self.streams[client].values())
                        distinct = plan.pattern == "distinct"
                        self._write(slot, [streams[shown[client] % len(streams)]] if distinct else streams)
                        shown[client] += 1
                        slot += 1
        return first

    def _write(self, slot: int, streams: list[asyncio.Transport]) -> None:
        epoch = slot // SLOTS_PER_EPOCH
        before = f'event: head\ndata: {{"slot":"{slot}","block":"{_root(slot)[:-16]}'
        after = (
            f'","state":"{_root(-slot)}","epoch_transition":{str(slot % SLOTS_PER_EPOCH == 0).lower()},'
            f'"previous_duty_dependent_root":"{_root(epoch)}","current_duty_dependent_root":"{_root(epoch + 1)}",'
            '"execution_optimistic":false}\n\n'
        )
        size = f"{len(before) + 16 + len(after):x}\r\n"
        head, tail = (size + before).encode(), after.encode() + b"\r\n"
        event = b"%s%016x%s" % (head, time.monotonic_ns(), tail)
        for stream in streams:
            stream.write(event)


class _Node(asyncio.Protocol):
    """One connection to a node."""

    def __init__(self, nodes: _Nodes, index: int) -> None:
        self._nodes = nodes
        self._index = index
        self._buffer = b""
        self._client: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            request, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            _, client, path = request.split(b" ", 2)[1].decode().partition("?")[0].split("/", 2)
            if path != "eth/v1/events":
                self._transport.write(self._nodes.answer("/" + path))
                continue
            self._transport.write(_STREAM)
            self._client = client
            self._nodes.streams[client][self._index] = self._transport
            self._nodes.changed.set()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - how it went does not matter
        if self._client is not None:
            self._nodes.streams[self._client].pop(self._index, None)


_STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def _answer(value: object) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def _root(seed: int) -> str:
    return "0x" + sha256(str(seed).encode()).hexdigest()


async def _serve(plan: Plan) -> None:
    nodes = _Nodes(plan)
    loop = asyncio.get_running_loop()
    servers = []
    for index in range(plan.nodes):

        def node(index: int = index) -> _Node:
            return _Node(nodes, index)

        servers.append(await loop.create_server(node, "127.0.0.1", 0))
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    print(json.dumps({"ports": ports, "genesis_time": nodes.genesis_time}), flush=True)
    print(json.dumps({"first": await nodes.run()}), flush=True)
    # Until we are killed: ends of streams are no part of what is measured.
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Plan(**json.loads(sys.argv[1]))))
