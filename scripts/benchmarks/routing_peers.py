"""What is compared: several beacon nodes as one asks them in an afternoon, after the published way of Vero 1.4.1.

One aiohttp session for each node, a task for each request, answers taken as they come and decoded by msgspec into
structures. Whoever is late is let run on, so that its connection is kept; nothing else is decided, and nobody's health
is known.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import aiohttp
import msgspec


class Checkpoint(msgspec.Struct, frozen=True):
    """A checkpoint."""

    epoch: int
    root: str


class Data(msgspec.Struct, frozen=True):
    """Attestation data; what is equal agrees."""

    slot: int
    index: int
    beacon_block_root: str
    source: Checkpoint
    target: Checkpoint


class _Answer(msgspec.Struct):
    data: Data


class Peers:
    """The nodes, by their base URLs."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._sessions: list[aiohttp.ClientSession] = []
        self._stack = AsyncExitStack()
        self._decode = msgspec.json.Decoder(_Answer, strict=False).decode
        self._late: set[asyncio.Task[object]] = set()

    async def __aenter__(self) -> Self:
        for url in self._urls:
            session = aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=0))
            self._sessions.append(await self._stack.enter_async_context(session))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._late:
            task.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)
        await self._stack.aclose()

    async def data_of(self, index: int, slot: int) -> Data:
        """Ask one node."""
        params = {"slot": str(slot), "committee_index": "0"}
        async with self._sessions[index].get("/eth/v1/validator/attestation_data", params=params) as response:
            response.raise_for_status()
            return self._decode(await response.read()).data

    async def quorum(self, slot: int, threshold: int = 2) -> Data:
        """Ask all until so many say the same; return that."""
        while True:
            votes: Counter[Data] = Counter()
            for coming in asyncio.as_completed(self._start(lambda index: self.data_of(index, slot))):
                try:
                    data = await coming
                except (aiohttp.ClientError, TimeoutError):
                    continue
                votes[data] += 1
                if votes[data] >= threshold:
                    return data

    async def first(self, slot: int) -> Data:
        """Ask all, and return the first answer."""
        for coming in asyncio.as_completed(self._start(lambda index: self.data_of(index, slot))):
            try:
                return await coming
            except (aiohttp.ClientError, TimeoutError):
                continue
        raise RuntimeError("no answer")

    async def publish_to(self, index: int, body: bytes) -> None:
        """Send attestations to one node."""
        headers = {"Content-Type": "application/json", "Eth-Consensus-Version": "electra"}
        url = "/eth/v2/beacon/pool/attestations"
        async with self._sessions[index].post(url, data=body, headers=headers) as response:
            response.raise_for_status()
            await response.read()

    async def publish(self, items: Sequence[bytes]) -> None:
        """Send attestations to all, and return when all have answered."""
        body = b"[" + b",".join(items) + b"]"
        await asyncio.gather(*(self.publish_to(index, body) for index in range(len(self._urls))))

    def _start(self, ask: Callable[[int], Awaitable[Data]]) -> list[asyncio.Task[Data]]:
        async def asked(index: int) -> Data:
            return await ask(index)

        tasks = [asyncio.create_task(asked(index)) for index in range(len(self._urls))]
        for task in tasks:
            self._late.add(task)
            task.add_done_callback(self._ended)
        return tasks

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # Whether somebody asks for it or not.
