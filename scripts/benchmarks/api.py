"""Typed calls to one beacon node over the bare connection, and beside aiohttp with msgspec: time and memory of each.

One process serves; calls take turns in rounds. What the typed call costs is its median minus the bare request's, and
beside aiohttp stands the ratio of the whole operations. Attestation data, 1,000 attester duties, and a block of 1 MB.
"""

import asyncio
import json
import multiprocessing
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from multiprocessing.connection import Connection as Pipe
from statistics import median
from typing import Any, cast

import aiohttp
import anyio
import msgspec

from scripts.benchmarks.report import Report, percentile, ratio
from vc_fallback.base.clock import Clock
from vc_fallback.base.types import Epoch, NodeId, Slot
from vc_fallback.base.urls import BaseURL
from vc_fallback.node.client import BeaconNode
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.http import WireLimits

_ROOT = "0x" + "ab" * 32
_BLOCK = 10
_BLOCK_SIZE = 1024 * 1024
_REVEAL = bytes(96)
_INDICES = list(range(1_000_000, 1_001_000))

Call = Callable[[], Awaitable[object]]


def _answers() -> dict[str, bytes]:
    checkpoint = {"epoch": "312500", "root": _ROOT}
    data = {"slot": "10000001", "index": "0", "beacon_block_root": _ROOT, "source": checkpoint, "target": checkpoint}
    ssz = (10000001).to_bytes(8, "little") + bytes(8) + bytes(32) + 2 * ((312500).to_bytes(8, "little") + bytes(32))
    duties = [
        {
            "pubkey": f"0x{index:096x}",
            "validator_index": str(index),
            "committee_index": str(index % 64),
            "committee_length": "512",
            "committees_at_slot": "64",
            "validator_committee_index": str(index % 512),
            "slot": str(10_000_000 + index % 32),
        }
        for index in _INDICES
    ]
    block = {
        "Eth-Consensus-Version": "fulu",
        "Eth-Execution-Payload-Blinded": "false",
        "Eth-Execution-Payload-Value": "12345678901234567",
        "Eth-Consensus-Block-Value": "23456789012345678",
    }
    json_block = {"version": "fulu", "execution_payload_blinded": False, "execution_payload_value": "1"}
    json_block |= {"consensus_block_value": "2", "data": {"block": {"body": "0x" + "ab" * (_BLOCK_SIZE // 2)}}}
    return {
        "attestation data, JSON": _answer(json.dumps({"data": data}).encode()),
        "attestation data, SSZ": _answer(ssz, ssz=True),
        "1,000 duties": _answer(
            json.dumps({"dependent_root": _ROOT, "execution_optimistic": False, "data": duties}).encode()
        ),
        "block of 1 MB, SSZ": _answer(bytes(_BLOCK_SIZE), block, ssz=True),
        "block of 1 MB, JSON": _answer(json.dumps(json_block).encode(), block),
    }


def _answer(body: bytes, headers: Mapping[str, str] | None = None, *, ssz: bool = False) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    form = "application/octet-stream" if ssz else "application/json"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {form}\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class _Server(asyncio.Protocol):
    """Answers every request on one port with one answer."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._missing = 0
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._missing:
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if not end:
                return
            lines = head.lower().split(b"\r\n")
            length = next((int(line[15:]) for line in lines if line[:15] == b"content-length:"), 0)
            self._buffer, self._missing = rest, length
        if len(self._buffer) >= self._missing:
            self._buffer, self._missing = b"", 0
            self._transport.write(self._answer)


def _serve(pipe: Pipe) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ports = {}
        for name, answer in _answers().items():
            server = await loop.create_server(partial(_Server, answer), "127.0.0.1", 0)
            ports[name] = server.sockets[0].getsockname()[1]
        pipe.send(ports)
        await loop.run_in_executor(None, pipe.recv)

    asyncio.run(main())


class _Checkpoint(msgspec.Struct):
    epoch: int
    root: str


class _Data(msgspec.Struct):
    slot: int
    index: int
    beacon_block_root: str
    source: _Checkpoint
    target: _Checkpoint


class _Duty(msgspec.Struct):
    pubkey: str
    validator_index: int
    committee_index: int
    committee_length: int
    committees_at_slot: int
    validator_committee_index: int
    slot: int


class _DataAnswer(msgspec.Struct):
    data: _Data


class _DutiesAnswer(msgspec.Struct):
    dependent_root: str
    data: list[_Duty]


class _Calls:
    """One kind of answer asked for in three ways: bare, typed, and by aiohttp with msgspec."""

    def __init__(self, name: str, port: int, session: aiohttp.ClientSession | None) -> None:
        self.http = HTTPClient(BaseURL.parse(f"http://127.0.0.1:{port}"), limits=WireLimits())
        self.node = BeaconNode(NodeId("bench"), self.http, clock=Clock())
        self._session = session
        self._base = f"http://127.0.0.1:{port}"
        duties = name == "1,000 duties"
        self._path = "/eth/v1/validator/duties/attester/312500" if duties else "/eth/v1/validator/attestation_data"
        self._body = json.dumps([str(index) for index in _INDICES]).encode() if duties else None
        self._query = (("slot", "10000001"), ("committee_index", "0"))
        typed: dict[str, Call] = {
            "1,000 duties": lambda: self.node.attester_duties(Epoch(312500), _INDICES),
            "block of 1 MB, SSZ": lambda: self.node.produce_block(Slot(10000001), _REVEAL),
            "block of 1 MB, JSON": lambda: self.node.produce_block(Slot(10000001), _REVEAL),
        }
        self.typed = typed.get(name, lambda: self.node.attestation_data(Slot(10000001)))
        decoders: dict[str, Callable[[bytes], object]] = {
            "1,000 duties": msgspec.json.Decoder(_DutiesAnswer, strict=False).decode,
            "block of 1 MB, SSZ": len,
            "block of 1 MB, JSON": len,
        }
        # Nobody reads attestation data as SSZ there: it is the JSON of the other port that stands beside.
        self._decode = decoders.get(name, msgspec.json.Decoder(_DataAnswer, strict=False).decode)

    async def bare(self) -> object:
        """The request alone."""
        method = "GET" if self._body is None else "POST"
        return await self.http.request(
            method, self._path, query=self._query, headers=(("Accept", "application/json"),), body=self._body
        )

    async def aiohttp(self) -> object:
        """The request and its decoding by others."""
        assert self._session is not None  # noqa: S101 - on asyncio only
        method = "GET" if self._body is None else "POST"
        url = f"{self._base}{self._path}"
        async with self._session.request(method, url, params=self._query, data=self._body) as response:
            return self._decode(await response.read())


async def _peak(call: Call) -> int:
    """Return the most bytes that a warm call had allocated at once, its value included."""
    for _ in range(3):
        await call()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        await call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


async def _measure(ports: Mapping[str, int], backend: str, scale: float) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    async with AsyncExitStack() as stack:
        session = None
        if backend == "asyncio":
            session = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        for name, port in ports.items():
            calls = _Calls(name, port, session)
            stack.push_async_callback(calls.http.aclose)
            ways: dict[str, Call] = {"bare": calls.bare, "typed": calls.typed}
            if session is not None:
                ways["aiohttp"] = calls.aiohttp
            if name == "attestation data, SSZ":
                ways.pop("aiohttp", None)
            for call in ways.values():
                for _ in range(20):
                    await call()
            turns = max(3, int((40 if "1" in name.split()[0] or "block" in name else 200) * scale))
            times: dict[str, list[list[float]]] = {way: [] for way in ways}
            for turn in range(turns):
                order = list(ways.items())
                for way, call in order[turn % len(order) :] + order[: turn % len(order)]:
                    taken = []
                    for _ in range(_BLOCK):
                        begun = time.perf_counter()
                        await call()
                        taken.append(time.perf_counter() - begun)
                    times[way].append(taken)
            over = [median(typed) - median(bare) for typed, bare in zip(times["typed"], times["bare"], strict=True)]
            peaks = {way: await _peak(call) for way, call in ways.items()}
            whole = {way: median(t for part in parts for t in part) * 1e6 for way, parts in times.items()}
            rows.append(
                (
                    name,
                    whole["bare"],
                    whole["typed"],
                    median(over) * 1e6,
                    percentile(over, 0.1) * 1e6,
                    whole.get("aiohttp"),
                    ratio(times["typed"], times["aiohttp"]) if "aiohttp" in times else None,
                    (peaks["typed"] - peaks["bare"]) / 1024,
                )
            )
    return rows


def run(report: Report, *, scale: float = 1.0) -> None:
    """Measure and report. `scale` multiplies how often."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=_serve, args=(there,), daemon=True)
    server.start()
    ports: dict[str, int] = here.recv()
    try:
        for backend in ("asyncio", "trio"):
            rows: list[Any] = anyio.run(_measure, ports, backend, scale, backend=backend)
            report.table(
                f"{backend}: medians of the whole call in microseconds, memory in KiB",
                ("what", "bare", "typed", "over bare", "best tenth", "aiohttp", "typed to aiohttp", "memory over bare"),
                rows,
            )
    finally:
        here.send(None)
        server.join(5)
