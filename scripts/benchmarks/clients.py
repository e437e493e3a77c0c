"""What is compared: three ways from many event streams to one task that has each new head, parsed.

Each notes the moment at which that task runs, as its first act. What differs is what they do before: the bare reader
believes everything, the aiohttp one is what one writes in an afternoon, the monitor is the product.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from itertools import cycle
from time import monotonic_ns
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp

from scripts.benchmarks.server import SLOTS_PER_EPOCH, Serving
from vc_fallback import FallbackConfig, HeadMonitor

Noted = list[tuple[int, bytes, int]]
"""A head's slot, its root, and the moment in nanoseconds at which the task had it."""

Client = Callable[[Serving, str, Noted], Coroutine[Any, Any, None]]
"""Follows the heads of a client's nodes and notes each head once, until it is cancelled."""

EVENTS = "/eth/v1/events?topics=head&topics=head_v2&topics=chain_reorg"


async def bare(serving: Serving, name: str, noted: Noted) -> None:
    """Asyncio protocols that look for the data of an event and parse it; one task, woken by an event."""
    loop = asyncio.get_running_loop()
    heads: deque[dict[str, Any]] = deque()
    wake = asyncio.Event()
    for url in serving.urls(name):
        await loop.create_connection(partial(_Bare, url, heads, wake), *_address(url))
    serving.ready(name)
    known = 0
    while True:
        await wake.wait()
        at = monotonic_ns()
        wake.clear()
        while heads:
            head = heads.popleft()
            slot = int(head["slot"])
            if slot > known:
                known = slot
                noted.append((slot, bytes.fromhex(head["block"][2:]), at))


class _Bare(asyncio.Protocol):
    def __init__(self, url: str, heads: deque[dict[str, Any]], wake: asyncio.Event) -> None:
        self._path = urlsplit(url).path
        self._heads = heads
        self._wake = wake
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        request = f"GET {self._path}{EVENTS} HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n"
        cast("asyncio.Transport", transport).write(request.encode())

    def data_received(self, data: bytes) -> None:
        *events, self._buffer = (self._buffer + data).split(b"\n\n")
        for event in events:
            self._heads.append(json.loads(event.partition(b"\ndata: ")[2]))
            self._wake.set()


async def over_aiohttp(serving: Serving, name: str, noted: Noted) -> None:
    """One session, a task for each stream that cuts lines and parses, a queue to one task."""
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session, asyncio.TaskGroup() as tasks:
        for url in serving.urls(name):
            tasks.create_task(_follow(session, url, queue))
        serving.ready(name)
        known = 0
        while True:
            head = await queue.get()
            at = monotonic_ns()
            slot = int(head["slot"])
            if slot > known:
                known = slot
                noted.append((slot, bytes.fromhex(head["block"][2:]), at))


async def _follow(session: aiohttp.ClientSession, url: str, queue: asyncio.Queue[dict[str, Any]]) -> None:
    async with session.get(url + EVENTS, headers={"Accept": "text/event-stream"}) as response:
        buffer = topic = data = b""
        async for chunk in response.content.iter_any():
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                if line.startswith(b"event:"):
                    topic = line[6:].strip()
                elif line.startswith(b"data:"):
                    data = line[5:].strip()
                elif not line.strip():
                    if topic == b"head" and data:
                        queue.put_nowait(json.loads(data))
                    topic = data = b""


async def monitor(serving: Serving, name: str, noted: Noted) -> None:
    """Follow by a `HeadMonitor` with one subscriber."""
    async with HeadMonitor(settings(serving, serving.urls(name), watchdog=False)) as heads, heads.subscribe() as mine:
        await identified(heads)
        serving.ready(name)
        async for delivered in mine:
            at = monotonic_ns()
            noted.append((delivered.head.slot, delivered.head.root, at))


async def identified(monitor: HeadMonitor) -> None:
    """Wait until every node has said which chain it is on: before that nothing is delivered from it."""
    answers = monitor.cache.answers.watcher()
    while any(facts.identity is None for facts in monitor.cache.ledger.nodes.values()):
        await answers.wait()


def settings(
    serving: Serving, urls: Sequence[str], *, fallbacks: bool = False, watchdog: bool = True
) -> FallbackConfig:
    """Return the configuration for nodes of a server.

    :param fallbacks: whether every other node is one.
    :param watchdog: off, no stream is verified for its silence: with slots of milliseconds and streams that take turns,
        all of them are silent for many slots.
    """
    tiers = ("primary", "fallback") if fallbacks else ("primary",)
    off = {"head_silence": None, "hard_clock": None, "transport_silence": None}
    return FallbackConfig.of(
        {
            "candidates": [{"url": url, "tier": tier} for url, tier in zip(urls, cycle(tiers), strict=False)],
            "chain": {
                "genesis_time": serving.genesis_time,
                "genesis_validators_root": serving.genesis_validators_root,
                "slot_duration": serving.plan.slot_duration,
                "slots_per_epoch": SLOTS_PER_EPOCH,
            },
            "streams": {} if watchdog else off,
        }
    )


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None  # noqa: S101 - the server made it
    assert parts.port is not None  # noqa: S101 - the server made it
    return parts.hostname, parts.port


CLIENTS: dict[str, Client] = {"bare": bare, "aiohttp": over_aiohttp, "monitor": monitor}
