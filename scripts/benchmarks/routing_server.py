"""Beacon nodes in a process of their own that do no more than they must, and that can be killed, hung and delayed.

Each node is a port. A killed one resets its connections and refuses new ones; a hung one accepts all and says nothing.
All of them announce the head of a slot when it begins, and to whoever opens a stream.
"""

import asyncio
import json
import multiprocessing
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from multiprocessing.connection import Connection as Pipe
from typing import Any, Literal, cast

from vc_fallback import FallbackConfig
from vc_fallback.base.types import NodeId

SLOTS_PER_EPOCH = 32
VALIDATORS = 64
"""Validators that have duties."""
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
                    "genesis_validators_root": _root("validators"),
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


class Answers:
    """What every node answers, by request line; heads come by the clock."""

    def __init__(self, slot_duration: float, genesis_time: int) -> None:
        self._slot_duration = slot_duration
        self._genesis_time = genesis_time
        self._made: dict[bytes, bytes] = {}
        spec = {
            "PRESET_BASE": "mainnet",
            "SLOTS_PER_EPOCH": str(SLOTS_PER_EPOCH),
            "SLOT_DURATION_MS": str(round(slot_duration * 1000)),
            "GENESIS_FORK_VERSION": "0x00000000",
        }
        genesis = {"genesis_time": str(genesis_time), "genesis_validators_root": _root("validators")}
        self._fixed: Mapping[str, object] = {
            "/eth/v1/beacon/genesis": {"data": genesis},
            "/eth/v1/config/spec": {"data": spec},
            "/eth/v1/node/version": {"data": {"version": "bench/1"}},
            "/eth/v1/node/peer_count": {
                "data": {"connected": "64", "connecting": "0", "disconnected": "0", "disconnecting": "0"}
            },
        }

    @property
    def slot(self) -> int:
        """The present slot."""
        return int((time.time() - self._genesis_time) // self._slot_duration)

    def starts_in(self, slot: int) -> float:
        """Return the seconds until a slot begins."""
        return self._genesis_time + slot * self._slot_duration - time.time()

    def forget(self) -> None:
        """Make answers anew: a slot has begun."""
        self._made.clear()

    def head(self) -> bytes:
        """Return the event of the present head."""
        slot = self.slot
        epoch = slot // SLOTS_PER_EPOCH
        event = {
            "slot": str(slot),
            "block": _root(slot),
            "state": _root(-slot),
            "epoch_transition": slot % SLOTS_PER_EPOCH == 0,
            "previous_duty_dependent_root": _dependent(epoch),
            "current_duty_dependent_root": _dependent(epoch + 1),
            "execution_optimistic": False,
        }
        text = f"event: head\ndata: {json.dumps(event)}\n\n".encode()
        return b"%x\r\n%s\r\n" % (len(text), text)

    def to(self, target: bytes) -> bytes:
        """Return the response to a request for a target."""
        made = self._made.get(target)
        if made is None:
            path, _, query = target.decode().partition("?")
            found = self._body(path, dict(pair.split("=") for pair in query.split("&") if pair))
            status = "404 Not Found" if found is None else "200 OK"
            body = b"" if found is NOTHING else json.dumps(found).encode()
            head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            made = self._made[target] = head.encode() + body
        return made

    def _body(self, path: str, query: Mapping[str, str]) -> object:
        if path in self._fixed:
            return self._fixed[path]
        if "/pool/" in path or path.endswith(("_subscriptions", "aggregate_and_proofs", "prepare_beacon_proposer")):
            return NOTHING
        slot, sourced = self.slot, {"execution_optimistic": False, "finalized": False}
        if path == "/eth/v1/beacon/headers/head":
            message = {"slot": str(slot), "proposer_index": "1", "parent_root": _root(slot - 1)}
            message |= {"state_root": _root(-slot), "body_root": _root(slot)}
            header = {"message": message, "signature": "0x" + "ab" * 96}
            return {"data": {"root": _root(slot), "canonical": True, "header": header}, **sourced}
        if path == "/eth/v1/node/syncing":
            data: dict[str, Any] = {"head_slot": str(slot), "sync_distance": "0", "is_syncing": False}
            return {"data": data | {"is_optimistic": False, "el_offline": False}}
        if path.endswith("/finality_checkpoints"):
            marks = {name: _checkpoint(0) for name in ("previous_justified", "current_justified", "finalized")}
            return {"data": marks, **sourced}
        if path == "/eth/v1/beacon/blocks/head/root":
            return {"data": {"root": _root(slot)}, **sourced}
        if path == "/eth/v1/validator/attestation_data":
            asked = int(query["slot"])
            epoch = asked // SLOTS_PER_EPOCH
            data = {"slot": str(asked), "index": "0", "beacon_block_root": _root(slot)}
            return {"data": data | {"source": _checkpoint(epoch - 1), "target": _checkpoint(epoch)}}
        if "/validator/duties/attester/" in path:
            epoch = int(path.rpartition("/")[2])
            duties = [
                {
                    "pubkey": f"0x{index:096x}",
                    "validator_index": str(index),
                    "committee_index": str(index % 64),
                    "committee_length": "512",
                    "committees_at_slot": "64",
                    "validator_committee_index": str(index % 512),
                    "slot": str(epoch * SLOTS_PER_EPOCH + index % SLOTS_PER_EPOCH),
                }
                for index in range(VALIDATORS)
            ]
            return {"dependent_root": _dependent(epoch), "execution_optimistic": False, "data": duties}
        return None


class _Nothing:
    """The body of an answer that has none."""


NOTHING = _Nothing()


def _root(seed: object) -> str:
    return "0x" + sha256(str(seed).encode()).hexdigest()


def _dependent(epoch: int) -> str:
    return _root(f"duties of {epoch}")


def _checkpoint(epoch: int) -> dict[str, str]:
    return {"epoch": str(epoch), "root": _root(f"epoch {epoch}")}


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
