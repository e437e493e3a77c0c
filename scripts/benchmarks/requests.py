"""Requests over warm connections, beside aiohttp and httpx: one process serves, the other asks, interleaved.

Prints the median of the whole operation in microseconds and its ratio to the other client's. The ratios hold on a noisy
machine, the absolutes do not.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection as Pipe
from typing import Any, cast

import aiohttp
import anyio
import httpx

from vc_fallback.base.urls import BaseURL
from vc_fallback.wire.client import HTTPClient

_SMALL = 600
_MB = 1024 * 1024
_NODES = 30
_BLOCK = 10

Operation = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Result:
    """One line: medians in microseconds, and ours divided by the other's."""

    backend: str
    case: str
    other: str
    ours: float
    theirs: float
    ratio: float
    aim: float


class _Server(asyncio.BufferedProtocol):
    """Answers `/size` with a body of that size, any request with a body with two bytes; does no more than it must."""

    bodies: dict[bytes, bytes] = {}  # noqa: RUF012 - shared on purpose
    place = memoryview(bytearray(_MB))

    def __init__(self) -> None:
        self.buffer = b""
        self.missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - one place for all
        return self.place

    def buffer_updated(self, nbytes: int) -> None:
        if self.missing:
            self.missing -= nbytes
            if self.missing <= 0:
                self.missing = 0
                self.transport.write(self._response(b"2"))
            return
        head, end, rest = (self.buffer + self.place[:nbytes]).partition(b"\r\n\r\n")
        self.buffer = b"" if end else head
        if not end:
            return
        length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"), 0)
        self.missing = length - len(rest)
        if self.missing <= 0:
            self.missing = 0
            self.transport.write(self._response(b"2" if length else head.split(b" ", 2)[1][1:]))

    def _response(self, size: bytes) -> bytes:
        response = self.bodies.get(size)
        if response is None:
            body = b"x" * int(size)
            response = self.bodies[size] = (
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nServer: bench\r\n"
                b"Date: Mon, 30 Nov 2026 00:00:00 GMT\r\nContent-Length: %d\r\n\r\n" % len(body)
            ) + body
        return response


def _serve(count: int, pipe: Pipe) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        servers = [await loop.create_server(_Server, "127.0.0.1", 0) for _ in range(count)]
        pipe.send([server.sockets[0].getsockname()[1] for server in servers])
        await loop.run_in_executor(None, pipe.recv)

    asyncio.run(main())


async def _together(*operations: Operation) -> None:
    async with anyio.create_task_group() as tasks:
        for operation in operations:
            tasks.start_soon(operation)


async def _gather(*operations: Operation) -> None:
    await asyncio.gather(*(operation() for operation in operations))


@dataclass(frozen=True)
class _Client:
    """What a case needs of a client: GET of so many bytes from a node, POST of so many to it."""

    get: Callable[[int, int], Coroutine[Any, Any, None]]
    post: Callable[[int, bytes], Coroutine[Any, Any, None]]


async def _ours(stack: AsyncExitStack, ports: Sequence[int]) -> _Client:
    clients = [HTTPClient(BaseURL.parse(f"http://127.0.0.1:{port}"), concurrency=128) for port in ports]
    for client in clients:
        stack.push_async_callback(client.aclose)

    async def get(node: int, size: int) -> None:
        response = await clients[node].request("GET", f"/{size}", headers=(("Accept", "application/json"),))
        _check(len(response.body) == size)

    async def post(node: int, body: bytes) -> None:
        response = await clients[node].request("POST", "/2", body=body)
        _check(response.status == 200)

    return _Client(get, post)


async def _aiohttp(stack: AsyncExitStack, ports: Sequence[int]) -> _Client:
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
    bases = [f"http://127.0.0.1:{port}" for port in ports]

    async def get(node: int, size: int) -> None:
        async with session.get(f"{bases[node]}/{size}", headers={"Accept": "application/json"}) as response:
            _check(len(await response.read()) == size)

    async def post(node: int, body: bytes) -> None:
        async with session.post(f"{bases[node]}/2", data=body) as response:
            await response.read()
            _check(response.status == 200)

    return _Client(get, post)


async def _httpx(stack: AsyncExitStack, ports: Sequence[int]) -> _Client:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    client = await stack.enter_async_context(httpx.AsyncClient(trust_env=False, limits=limits, timeout=30))
    bases = [f"http://127.0.0.1:{port}" for port in ports]

    async def get(node: int, size: int) -> None:
        response = await client.get(f"{bases[node]}/{size}", headers={"Accept": "application/json"})
        _check(len(response.content) == size)

    async def post(node: int, body: bytes) -> None:
        response = await client.post(f"{bases[node]}/2", content=body)
        _check(response.status_code == 200)

    return _Client(get, post)


def _check(right: bool) -> None:
    if not right:
        raise RuntimeError("a wrong answer: the figures would mean nothing")


_CLIENTS = {"ours": _ours, "aiohttp": _aiohttp, "httpx": _httpx}


def _cases(client: _Client, backend: str) -> dict[str, Operation]:
    together = _gather if backend == "asyncio" else _together
    megabyte, ten = bytes(_MB), bytes(10 * _MB)

    def many(count: int, *, nodes: bool) -> Operation:
        operations = [lambda node=(i if nodes else 0): client.get(node, _SMALL) for i in range(count)]
        return lambda: together(*operations)

    return {
        "GET 600 B": lambda: client.get(0, _SMALL),
        "to 3 nodes": many(3, nodes=True),
        "to 6 nodes": many(6, nodes=True),
        "to 30 nodes": many(30, nodes=True),
        "8 at once": many(8, nodes=False),
        "32 at once": many(32, nodes=False),
        "100 at once": many(100, nodes=False),
        "GET 1 MB": lambda: client.get(0, _MB),
        "GET 10 MB": lambda: client.get(0, 10 * _MB),
        "POST 1 MB": lambda: client.post(0, megabyte),
        "POST 10 MB": lambda: client.post(0, ten),
    }


def _rounds(case: str, scale: float) -> int:
    weights = {"GET 600 B": 3000, "to 3 nodes": 1200, "to 6 nodes": 800, "8 at once": 600, "to 30 nodes": 200}
    weights |= {"32 at once": 200, "100 at once": 80, "GET 1 MB": 200, "POST 1 MB": 200}
    return max(3, int(weights.get(case, 40) * scale / _BLOCK))


def _aim(case: str, backend: str) -> float:
    if backend == "trio":
        return 0.25
    return 0.8 if case == "GET 600 B" or "at once" in case else 0.6 if "nodes" in case else 1.0


async def _compare(name: str, other: str, ports: Sequence[int], scale: float, only: str) -> list[Result]:
    results = []
    backend = "trio" if name == "trio" else "asyncio"
    async with AsyncExitStack() as stack:
        ours = _cases(await _ours(stack, ports), backend)
        theirs = _cases(await _CLIENTS[other](stack, ports), backend)
        for case in ours:
            if only not in case:
                continue
            times: tuple[list[float], list[float]] = ([], [])
            for operation in (ours[case], theirs[case]):
                await operation()  # warm
            for turn in range(_rounds(case, scale)):
                for which in (0, 1) if turn % 2 else (1, 0):
                    operation = (ours, theirs)[which][case]
                    for _ in range(_BLOCK):
                        begun = time.perf_counter()
                        await operation()
                        times[which].append(time.perf_counter() - begun)
            a, b = (statistics.median(taken) * 1e6 for taken in times)
            results.append(Result(name, case, other, round(a, 1), round(b, 1), round(a / b, 3), _aim(case, backend)))
            print(f"{name:8} {case:12} ours {a:9.0f}  {other:8} {b:9.0f}  ratio {a / b:5.2f}", flush=True)
    return results


def run(*, scale: float = 1.0, only: str = "", backends: Sequence[str] = ("asyncio", "uvloop", "trio")) -> list[Result]:
    """Measure and print; return the lines. `scale` multiplies how often, `only` picks cases whose name holds it."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=_serve, args=(_NODES, there), daemon=True)
    server.start()
    ports = here.recv()
    results: list[Result] = []
    options: dict[str, Any] = {"uvloop": {"use_uvloop": True}}
    try:
        for backend in backends:
            loop = "trio" if backend == "trio" else "asyncio"
            for other in ("httpx",) if loop == "trio" else ("aiohttp",):
                results += anyio.run(
                    _compare, backend, other, ports, scale, only, backend=loop, backend_options=options.get(backend, {})
                )
    finally:
        here.send(None)
        server.join(5)
    return results


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: `--scale`, `--only`, `--backend`, `--json FILE`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--backend", action="append", choices=("asyncio", "uvloop", "trio"))
    parser.add_argument("--json", type=argparse.FileType("w"))
    options = parser.parse_args(arguments)
    results = run(scale=options.scale, only=options.only, backends=options.backend or ("asyncio", "trio"))
    if options.json is not None:
        json.dump([asdict(result) for result in results], options.json, indent=1)


if __name__ == "__main__":
    main()
