"""Real nodes without faults, followed at the same time by the command, by a program on trio, and by one to which a node
is added while it runs."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import anyio
from anyio.from_thread import start_blocking_portal

from scripts.lodestar.devnet import Devnet
from scripts.lodestar.recorder import Recorder
from tests.devnet.following import Block, Following
from vc_fallback import StreamStatistics
from vc_fallback.base.signals import Signal
from vc_fallback.base.types import NodeId, Slot, root_hex
from vc_fallback.candidates import ListChange
from vc_fallback.config import FallbackConfig
from vc_fallback.heads.monitor import HeadMonitor

LIMIT = 60.0


@dataclass
class Read:
    """What a program read on trio.

    :param times: when each block came, in Unix time.
    :param repeated: blocks that came again.
    :param fresh: when the first one came.
    :param nodes: those of which there is a head in the end.
    """

    times: dict[Block, float] = field(default_factory=dict)
    repeated: list[Block] = field(default_factory=list)
    fresh: float = 0.0
    end: float = 0.0
    nodes: set[str] = field(default_factory=set)


@dataclass
class Joined:
    """What a program saw to whose two nodes a third one was added.

    :param read: the slots of what its subscriber read.
    :param fresh: Unix time from which on both streamed; `end` a second before the end.
    :param changed: loop time just before the change.
    """

    signals: list[Signal]
    read: list[int]
    fresh: float
    changed: float
    end: float
    change: ListChange
    statistics: dict[NodeId, StreamStatistics]
    unix: Callable[[float], float]


@dataclass(frozen=True)
class Calm:
    """All of it: recordings of the three nodes, and what was made of the same heads."""

    devnet: Devnet
    recorders: Sequence[Recorder]
    monitor: Following
    fresh: float
    end: float
    read: Read
    joined: Joined


def calm_of(devnet: Devnet) -> Calm:
    """Follow ten slots and more."""
    devnet.heal()
    urls = devnet.urls
    with ExitStack() as stack:
        recorders = [stack.enter_context(Recorder(url)) for url in urls]
        monitor = stack.enter_context(Following(devnet, *urls))
        on_trio, on_asyncio = (stack.enter_context(start_blocking_portal(loop)) for loop in ("trio", "asyncio"))
        read = on_trio.start_task_soon(reading, urls)
        joined = on_asyncio.start_task_soon(joining, urls, devnet.slot_now())
        fresh = monitor.wait_until_fresh(1, 2, 3)
        monitor.wait_for_slots(8)
        read.result(LIMIT)
        joined.result(LIMIT)
        end = time.time() - 1
        monitor.stop()
    return Calm(devnet, recorders, monitor, fresh, end, read.result(), joined.result())


async def reading(urls: Sequence[str]) -> Read:
    """Read seven heads, as the author of a validator client does."""
    read = Read()
    async with HeadMonitor(FallbackConfig.from_urls(urls)) as heads, heads.subscribe() as subscription:
        with anyio.fail_after(LIMIT):
            async for delivered in subscription:
                block = delivered.head.slot, root_hex(delivered.head.root)
                if block in read.times:
                    read.repeated.append(block)
                read.times[block] = time.time()
                if len(read.times) == 1:
                    read.fresh = time.time()
                if len(read.times) == 7:
                    break
        read.end = time.time() - 1
        read.nodes = set(heads.heads())
    return read


async def joining(urls: Sequence[str], begun: int) -> Joined:
    """Follow two nodes, and from some slot on three."""
    signals: list[Signal] = []
    read: list[int] = []
    async with HeadMonitor(FallbackConfig.from_urls(urls[:2]), observers=[signals.append]) as heads:
        async with anyio.create_task_group() as tasks:

            async def reader() -> None:
                async with heads.subscribe() as subscription:
                    async for delivered in subscription:
                        read.append(delivered.head.slot)  # noqa: PERF401 - read one by one

            tasks.start_soon(reader)
            assert await heads.wait_for_slot(Slot(begun + 1), heads.clock.now() + LIMIT, min_nodes=2) is not None
            fresh = time.time()
            assert await heads.wait_for_slot(Slot(begun + 5), heads.clock.now() + LIMIT) is not None
            changed = heads.clock.now()
            change = heads.update_candidates(FallbackConfig.from_urls(urls).candidate_list())
            assert await heads.wait_for_slot(Slot(begun + 10), heads.clock.now() + LIMIT, min_nodes=3) is not None
            end = time.time() - 1
            tasks.cancel_scope.cancel()
        return Joined(signals, read, fresh, changed, end, change, dict(heads.statistics()), heads.clock.unix)
