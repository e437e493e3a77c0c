"""The clients of `topics`, each in a process of its own: heads and every attestation of three nodes, each once.

`facade` is the product, one subscription. `aiohttp` is what one writes in an afternoon: a task for each node that cuts
lines and parses JSON, a set of what was seen, a queue; it believes everything, keeps what it saw for ever, and knows no
copies of an event but by attester and slot.
"""

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from scripts.benchmarks.routing_answers import SLOTS_PER_EPOCH, root_of
from scripts.benchmarks.server import ROOT
from scripts.benchmarks.topics_server import NODES, Plan, Serving, telling
from vc_fallback import BeaconNodeFallback, FallbackConfig
from vc_fallback.base.types import NodeId, root_hex
from vc_fallback.node.events import HeadEvent

BUFFER = 2**15
"""Events that may wait for the reading task: as many as there are attestations in a slot."""
SAMPLED = 16
"""Of so many attestations one has its delay noted."""


@dataclass(slots=True)
class Found:
    """What a client found.

    :param busy: share of a core that its process had, from the first event to the last.
    :param lasted: seconds from the first event to the last.
    :param sent: attestations that each node told of.
    :param received: events of attestations that came, of all nodes.
    :param told: those that the reading task had.
    :param dropped: those that were dropped as the task did not read them in time.
    :param heads: microseconds from the write of a head to the task; the task has each head once.
    :param votes: the same of some attestations.
    :param memory: resident, in MB, before the first event and at the end of each slot.
    """

    busy: float = 0.0
    lasted: float = 0.0
    sent: int = 0
    received: int = 0
    told: int = 0
    dropped: int = 0
    heads: list[float] = field(default_factory=list)
    votes: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    def head(self, root: bytes) -> None:
        """Note a head that came."""
        self.heads.append((time.monotonic_ns() - int.from_bytes(root[-8:])) / 1000)

    def vote(self, signature: Callable[[], bytes]) -> None:
        """Note an attestation that came."""
        self.told += 1
        if not self.told % SAMPLED:
            self.votes.append((time.monotonic_ns() - int.from_bytes(signature()[-8:])) / 1000)


def measure(client: str, plan: Plan) -> Found:
    """Run a client in a process of its own, and nodes in another."""
    command = [sys.executable, "-m", "scripts.benchmarks.topics_clients", client, json.dumps(asdict(plan))]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return Found(**json.loads(done.stdout))


async def _watch(serving: Serving, found: Found) -> None:
    """Wait for the end, and note what the process took."""
    # Garbage of the beginning is none of what is measured.
    gc.collect()
    begin = await serving.begun()
    found.memory.append(_resident())
    spent = time.process_time()
    for slot in range(serving.plan.slots):
        await asyncio.sleep(begin + (slot + 1) * serving.plan.slot_duration - time.monotonic())
        found.memory.append(_resident())
    found.sent = await serving.done()
    found.lasted = time.monotonic() - begin
    found.busy = (time.process_time() - spent) / found.lasted
    # What is under way comes.
    await asyncio.sleep(1)


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def _facade(serving: Serving, found: Found) -> None:
    ids = [NodeId(chr(ord("a") + index)) for index in range(NODES)]
    config = FallbackConfig.of(
        {
            "candidates": [{"name": name, "url": url} for name, url in zip(ids, serving.urls(), strict=True)],
            "chain": {
                "genesis_time": serving.genesis_time,
                "genesis_validators_root": root_of("validators"),
                "slot_duration": serving.plan.slot_duration,
                "slots_per_epoch": SLOTS_PER_EPOCH,
            },
        }
    )
    async with (
        BeaconNodeFallback(config) as nodes,
        nodes.subscribe("single_attestation", "head", buffer=BUFFER) as events,
    ):

        async def read() -> None:
            async for event in events:
                value: Any = event.value
                if isinstance(value, HeadEvent):
                    # One that was asked for bears no moment: it is none that was written to a stream.
                    if root_hex(value.block) != root_of(value.slot):
                        found.head(value.block)
                else:
                    found.vote(lambda value=value: value.signature)  # type: ignore[misc]  # bound, as it must be

        reading = asyncio.create_task(read())
        await _watch(serving, found)
        counts = nodes.topic_statistics().values()
        found.received = sum(count.told + count.copies for count in counts)
        found.dropped = events.statistics().dropped
        reading.cancel()
        await asyncio.wait([reading])


async def _aiohttp(serving: Serving, found: Found) -> None:
    seen: dict[tuple[str, str], bool] = {}
    queue: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()

    async def follow(session: aiohttp.ClientSession, url: str) -> None:
        async for topic, text in _events(session, url):
            data = json.loads(text)
            if topic == "head":
                about = "head", data["block"]
            else:
                found.received += 1
                about = data["data"]["slot"], data["attester_index"]
            if about not in seen:
                seen[about] = True
                queue.put_nowait((topic, data))

    async def read() -> None:
        while True:
            topic, data = await queue.get()
            if topic == "head":
                found.head(bytes.fromhex(data["block"][2:]))
            else:
                found.vote(lambda data=data: bytes.fromhex(data["signature"][2:]))  # type: ignore[misc]

    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        tasks = [asyncio.create_task(follow(session, url)) for url in serving.urls()]
        tasks.append(asyncio.create_task(read()))
        await _watch(serving, found)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _events(session: aiohttp.ClientSession, url: str) -> AsyncIterator[tuple[str, bytes]]:
    async with session.get(
        f"{url}/eth/v1/events?topics=head&topics=single_attestation", headers={"Accept": "text/event-stream"}
    ) as response:
        buffer = topic = data = b""
        async for chunk in response.content.iter_any():
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                if line.startswith(b"event:"):
                    topic = line[6:].strip()
                elif line.startswith(b"data:"):
                    data = line[5:].strip()
                elif not line.strip():
                    if data:
                        yield topic.decode(), data
                    topic = data = b""


async def _run(client: str, plan: Plan) -> Found:
    found = Found()
    async with telling(plan) as serving:
        await {"facade": _facade, "aiohttp": _aiohttp}[client](serving, found)
    return found


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(_run(sys.argv[1], Plan(**json.loads(sys.argv[2])))))))
