"""Many nodes and many subscribers in one monitor: memory, CPU time, delivery, and a change of the whole list."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from time import monotonic_ns

import anyio

from scripts.benchmarks.clients import identified, settings
from scripts.benchmarks.server import ROOT, Plan, Serving, moment_of, serving
from vc_fallback import HeadMonitor, HeadSource, NodeHeadSeen, NodeId, Signal, StreamChanged, StreamReason, Subscription


@dataclass(frozen=True, slots=True)
class Size:
    """So many nodes, every other one a fallback, and so many subscribers."""

    nodes: int
    subscribers: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a monitor takes, in a process that does nothing else.

    :param imported: MB of memory when everything was imported and nothing had begun.
    :param peak: most MB that the process ever held.
    :param start: seconds of CPU time until every stream was open and the chain verified.
    :param slot: seconds of CPU time for each slot after that.
    """

    imported: float
    peak: float
    start: float
    slot: float


def cost(size: Size, slots: int, slot_duration: float) -> Cost:
    """Run a monitor in a process of its own for so many slots, in each of which every node announces its head."""
    arguments = json.dumps([asdict(size), slots, slot_duration])
    command = [sys.executable, "-m", "scripts.benchmarks.crowd", arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return Cost(**json.loads(done.stdout))


async def _cost(size: Size, slots: int, slot_duration: float) -> Cost:
    imported = _peak()
    begun = time.process_time()
    plan = Plan(size.nodes, {"crowd": size.nodes}, "same", slots, slot_duration, warm=3)
    async with serving(plan) as server, _crowd(server, "crowd", size) as noted:
        started = time.process_time()
        await server.done()
        # The last head's work is over well before the next would come.
        await anyio.sleep(slot_duration / 2)
        spent = time.process_time() - started
        seen = len(noted) / size.subscribers
    return Cost(imported, _peak(), started - begun, spent / seen)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@asynccontextmanager
async def _crowd(server: Serving, name: str, size: Size) -> AsyncIterator[list[tuple[int, float]]]:
    """Run a monitor and its subscribers, which note a head's slot and microseconds from its first write."""
    noted: list[tuple[int, float]] = []

    async def read(subscription: Subscription) -> None:
        async for delivered in subscription:
            at = monotonic_ns()
            noted.append((delivered.head.slot, (at - moment_of(delivered.head.root)) / 1000))

    config = settings(server, server.urls(name), fallbacks=True)
    async with HeadMonitor(config) as monitor, anyio.create_task_group() as tasks:
        for _ in range(size.subscribers):
            tasks.start_soon(read, monitor.subscribe())
        await identified(monitor)
        server.ready(name)
        yield noted
        tasks.cancel_scope.cancel()


async def delivery(sizes: Sequence[Size], heads: int, slot_duration: float) -> list[list[float]]:
    """Let monitors of several sizes live in one process, and show them heads in turn.

    :returns: for each size, microseconds from a head's first write to each subscriber, in order.
    """
    names = [f"{size.nodes}x{size.subscribers}" for size in sizes]
    plan = Plan(
        max(size.nodes for size in sizes),
        {name: size.nodes for name, size in zip(names, sizes, strict=True)},
        "same",
        heads,
        slot_duration,
        warm=3,
    )
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(plan))
        crowds = [
            await stack.enter_async_context(_crowd(server, name, size)) for name, size in zip(names, sizes, strict=True)
        ]
        first = await server.done()
        await anyio.sleep(slot_duration)
        return [[delay for slot, delay in noted if slot >= first] for noted in crowds]


@dataclass(slots=True)
class Changes:
    """What changes of the list took, in milliseconds, each time; and the delays of heads of nodes that stayed."""

    call: list[float] = field(default_factory=list)
    """Until `update_candidates` returned: from there on no head of a node that left is delivered."""
    replaced: list[float] = field(default_factory=list)
    """Until the last old stream had ended and the last new one had begun."""
    opened: list[float] = field(default_factory=list)
    """Until the last new stream was open."""
    during: list[float] = field(default_factory=list)
    otherwise: list[float] = field(default_factory=list)
    missed: int = 0
    """Heads of nodes that stayed that were never seen."""


async def changes(nodes: int, times: int, slot_duration: float) -> Changes:
    """Replace half of a list by other nodes, again and again, while all of them announce heads."""
    half = nodes // 2
    plan = Plan(nodes + half, {"list": nodes + half}, "same", 10**6, slot_duration, begin=nodes)
    seen: list[tuple[float, NodeHeadSeen]] = []
    told: list[tuple[float, StreamChanged]] = []
    opened = anyio.Event()

    def observe(signal: Signal) -> None:
        if isinstance(signal, NodeHeadSeen):
            seen.append((time.monotonic(), signal))
        elif isinstance(signal, StreamChanged):
            told.append((time.monotonic(), signal))
            if signal.reason is StreamReason.RESPONSE and len(_when(told, StreamReason.RESPONSE)) == half:
                opened.set()

    found = Changes()
    spans: list[tuple[float, float]] = []
    async with serving(plan) as server:
        everyone = settings(server, server.urls("list")).candidate_list()
        lists = [everyone[:half] + everyone[half : 2 * half], everyone[:half] + everyone[2 * half :]]
        async with HeadMonitor(settings(server, server.urls("list")[:nodes]), observers=[observe]) as monitor:
            kept = set(list(monitor.candidates.current.members)[:half])
            await identified(monitor)
            server.ready("list")
            for turn in range(times):
                await anyio.sleep(slot_duration * 4)
                told.clear()
                opened = anyio.Event()
                begun = time.monotonic()
                monitor.update_candidates(lists[(turn + 1) % 2])
                found.call.append((time.monotonic() - begun) * 1000)
                await opened.wait()
                # The last of them is told within the wait.
                spans.append((begun, max(_when(told, StreamReason.RESPONSE).values())))
                replaced = [*_when(told, StreamReason.REMOVED).values(), *_when(told, StreamReason.STARTED).values()]
                found.replaced.append((max(replaced) - begun) * 1000)
                found.opened.append((spans[-1][1] - begun) * 1000)
            await anyio.sleep(slot_duration * 4)
    slots: dict[NodeId, list[int]] = {}
    for at, head in seen:
        sent = moment_of(head.root) / 1e9
        if head.node_id not in kept or head.source is not HeadSource.STREAM:
            continue
        within = any(begun <= at and sent <= end for begun, end in spans)
        (found.during if within else found.otherwise).append((at - sent) * 1000)
        slots.setdefault(head.node_id, []).append(head.slot)
    found.missed = sum(known[-1] - known[0] + 1 - len(known) for known in slots.values())
    return found


def _when(told: Sequence[tuple[float, StreamChanged]], reason: StreamReason) -> dict[NodeId, float]:
    return {change.node_id: at for at, change in told if change.reason is reason}


if __name__ == "__main__":
    _size, _slots, _slot_duration = json.loads(sys.argv[1])
    print(json.dumps(asdict(anyio.run(_cost, Size(**_size), _slots, _slot_duration))))
