"""Ten thousand calls a second through one facade: how many there are, and whether memory, tasks and timers grow.

In a process of its own, which holds nothing else. Of ten calls six are for attestation data, two for the root of the
head, one for duties of 64 validators, and one publishes an attestation to all three nodes.
"""

import asyncio
import gc
import multiprocessing
import os
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import anyio

from scripts.benchmarks.routing_answers import VALIDATORS, Answers
from scripts.benchmarks.routing_calls import ATTESTATION, Call, ready, slot_now, soon
from scripts.benchmarks.routing_server import Nodes
from vc_fallback import BeaconNodeFallback, Epoch
from vc_fallback.node.client import BeaconNode
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.http import Headers, Response

WORKERS = 50
"""Tasks that call: as many as there are committees, nearly."""
TICK = 0.02
"""Seconds between two beginnings of a worker's calls."""
_HEAD = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Sample:
    """How it was at a moment.

    :param at: seconds since the beginning.
    :param calls: so far.
    :param memory: resident, in MB.
    :param tasks: of the event loop.
    :param timers: of the facade that are set, or were and are not cleared away.
    """

    at: float
    calls: int
    memory: float
    tasks: int
    timers: int


@dataclass(frozen=True, slots=True)
class Load:
    """What was found.

    :param cpu: share of a core that this process had.
    :param failures: how many calls failed, by the class of what they raised.
    :param traced: of each further part of the calls by how many KiB it left more allocated, by `tracemalloc`.
    """

    samples: list[Sample]
    cpu: float
    failures: Mapping[str, int]
    traced: list[float]


class _NoSocket(HTTPClient):
    """In the place of a node's connections: answers at once, with what the server would have answered."""

    def __init__(self, real: HTTPClient, answers: Answers, slot: Callable[[], int]) -> None:
        self._real = real
        self._answers = answers
        self._slot_now = slot
        self._slot = 0
        self._kept: dict[tuple[str, Sequence[tuple[str, str]]], Response] = {}

    async def request(
        self,
        method: str,  # noqa: ARG002 - a path has one here
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        **_: Any,  # noqa: ANN401 - not looked at
    ) -> Response:
        """Answer, after everybody else has had a turn."""
        await asyncio.sleep(0)
        slot = self._slot_now()
        if slot != self._slot:
            self._slot = slot
            self._kept.clear()
            self._answers.forget()
        key = path, tuple(query)
        kept = self._kept.get(key)
        if kept is None:
            text = "&".join(f"{name}={value}" for name, value in query)
            head, _end, body = self._answers.to(f"{path}?{text}".encode()).partition(_HEAD)
            headers = Headers([(b"Content-Type", b"application/json")])
            kept = self._kept[key] = Response(int(head.split(b" ", 2)[1]), headers, body)
        return kept

    def close(self) -> None:
        """Close the connections that were there before."""
        self._real.close()


def _without_sockets(nodes: BeaconNodeFallback, served: Nodes) -> None:
    for node_id in served.ids():
        node: BeaconNode = nodes.scoped(node_id)
        answers = Answers(served.slot_duration, served.genesis_time)
        node.http = _NoSocket(node.http, answers, lambda: slot_now(nodes))


class _Duties:
    """The calls of a validator client."""

    def __init__(self, nodes: BeaconNodeFallback) -> None:
        self._nodes = nodes
        self._indices = range(VALIDATORS)
        self.calls = 0
        self.failures: Counter[str] = Counter()
        data: Call = lambda: nodes.attestation_data(slot_now(nodes), deadline=soon(nodes))  # noqa: E731
        root: Call = lambda: nodes.block_root("head")  # noqa: E731
        self._order = (data, root, data, data, self._duties, data, root, data, data, self._publish)

    async def _duties(self) -> object:
        epoch = Epoch(slot_now(self._nodes) // 32)
        return await self._nodes.attester_duties(epoch, self._indices)

    async def _publish(self) -> object:
        return await self._nodes.publish_attestations([ATTESTATION], "electra", deadline=soon(self._nodes))

    async def call(self, number: int) -> None:
        """Make one call."""
        self.calls += 1
        try:
            await self._order[number % len(self._order)]()
        except Exception as error:  # noqa: BLE001 - counted, and shown
            self.failures[type(error).__name__] += 1

    async def work(self, first: int, rate: float, until: float) -> None:
        """Call so many times a second, or as often as there is time for."""
        number, begun = first, time.perf_counter()
        made = 0
        while (now := time.perf_counter()) < until:
            due = int((now - begun) * rate) if rate else made + 1
            if due <= made:
                await anyio.sleep(TICK)
                continue
            # What was missed is not made up for: the rate is what it is.
            made = max(made, due - max(1, int(rate * TICK)))
            while made < due:
                await self.call(number)
                number, made = number + 1, made + 1


def _sample(nodes: BeaconNodeFallback, duties: _Duties, begun: float) -> Sample:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    runner = nodes._runner  # noqa: SLF001 - whether it is emptied is what is to be seen
    return Sample(
        time.perf_counter() - begun,
        duties.calls,
        pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        len(asyncio.all_tasks()),
        len(runner._timers),  # noqa: SLF001 - as above
    )


async def _load(served: Nodes, rate: float, duration: float, interval: float, traced: int, *, sockets: bool) -> Load:
    async with ready(served) as nodes:
        if not sockets:
            _without_sockets(nodes, served)
        duties = _Duties(nodes)
        samples = []
        begun, used = time.perf_counter(), time.process_time()
        until = begun + duration
        async with anyio.create_task_group() as tasks:
            for worker in range(WORKERS):
                tasks.start_soon(duties.work, worker, rate / WORKERS, until)
            while time.perf_counter() < until - interval / 2:
                await anyio.sleep(interval)
                samples.append(_sample(nodes, duties, begun))
        cpu = (time.process_time() - used) / (time.perf_counter() - begun)
        return Load(samples, cpu, dict(duties.failures), await _traced(duties, traced))


async def _traced(duties: _Duties, calls: int, parts: int = 4) -> list[float]:
    """Make so many calls in parts, and return by how many KiB each part after the first left more allocated."""
    if not calls:
        return []
    sizes = []
    tracemalloc.start()
    try:
        for part in range(parts):
            for number in range(part * calls, (part + 1) * calls):
                await duties.call(number)
            await anyio.sleep(0.05)
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0] / 1024)
    finally:
        tracemalloc.stop()
    return [after - before for before, after in pairwise(sizes)]


def _main(pipe: Pipe, served: Nodes, rate: float, duration: float, interval: float, traced: int, sockets: bool) -> None:
    async def main() -> Load:
        return await _load(served, rate, duration, interval, traced, sockets=sockets)

    pipe.send(anyio.run(main))


def load(served: Nodes, *, rate: float, duration: float, interval: float, traced: int, sockets: bool) -> Load:
    """Call for so many seconds in another process, and look at it after every interval.

    :param rate: calls a second; 0 for as many as there is time for.
    :param traced: calls of each of four parts that are made afterwards, while allocations are traced.
    :param sockets: whether the nodes are asked over sockets; else they are answered for in the process itself.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(
        target=_main, args=(there, served, rate, duration, interval, traced, sockets), daemon=True
    )
    process.start()
    there.close()
    found: Load = here.recv()
    process.join()
    return found
