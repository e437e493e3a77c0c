"""Rounds of checks over real sockets: how long they take, and how long they hold the event loop at a time."""

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
from anyio.lowlevel import checkpoint

from scripts.benchmarks.health_nodes import checked_nodes
from vc_fallback import BaseURL, Candidate, NodeId, Root, Tier
from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import Observers
from vc_fallback.candidates import Candidates
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.health.book import HealthBook
from vc_fallback.health.checker import Checker
from vc_fallback.health.outcomes import outcomes
from vc_fallback.node.factory import NodeFactory
from vc_fallback.node.pool import NodePool
from vc_fallback.settings import HealthSettings, WireSettings

SLOT = 12.0
PAUSE = 0.2
"""Seconds between two rounds: nodes that hang are not due again by then."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round of checks, in seconds from its beginning.

    :param answered: until the last node that answers was checked.
    :param ended: until the last check of all had timed out.
    :param held: the longest step of the event loop, by processor time; `away` by the clock on the wall.
    """

    answered: float
    ended: float
    held: float
    away: float


@dataclass(slots=True)
class Rounds:
    """The first round, in which every connection is made, and those after it."""

    first: list[Round] = field(default_factory=list)
    later: list[Round] = field(default_factory=list)


async def rounds(nodes: int, hanging: int, count: int, times: int, *, collect: bool = True) -> Rounds:
    """Check nodes, some of which accept and never answer, in so many rounds; all of it several times anew.

    :param collect: whether Python collects garbage meanwhile, as it does.
    """
    found = Rounds()
    async with checked_nodes(nodes, hanging) as urls:
        for _ in range(times):
            gc.collect()
            if not collect:
                gc.disable()
            try:
                first, *later = await _rounds(urls, hanging, count)
            finally:
                gc.enable()
            found.first.append(first)
            found.later += later
    return found


async def _rounds(urls: Sequence[str], hanging: int, count: int) -> list[Round]:
    clock = Clock()
    candidates = Candidates(
        [
            Candidate(BaseURL.parse(url), f"bn{index}", tier=Tier.FALLBACK if index % 2 else Tier.PRIMARY)
            for index, url in enumerate(urls)
        ]
    )
    book = HealthBook(HealthSettings(), candidates, clock, Observers([lambda _: None]))
    # No slot has its turn while rounds are made by hand: genesis is yet to come.
    slots = SlotClock(ChainIdentity(clock.unix() + 86400.0, Root(bytes(32)), SLOT), clock.offset)
    book.start()
    book.pin(slots)
    for node_id in candidates.current.members:
        book.identified(node_id, "")
    pool = NodePool(
        candidates,
        NodeFactory(WireSettings(), None, None),
        clock,
        slots=lambda: slots,
        quarantined=lambda _: "",
        outcomes=lambda node_id: outcomes(book, node_id),
    )
    checker = Checker(book, pool, clock, troubled=lambda _: False, on_good=lambda _: None, on_identity=lambda *_: None)
    hung = {NodeId(f"bn{index}") for index in range(hanging)}
    found = []
    async with anyio.create_task_group() as tasks:
        steps = _Steps()
        tasks.start_soon(steps.run)
        for number in range(count):
            await anyio.sleep(PAUSE)
            begun = clock.now()
            for record in book.records.values():
                record.check_now = True
            with steps.measured():
                if number:
                    checker.wake()
                else:
                    tasks.start_soon(checker.run)
                while any((record.health.checked or 0.0) < begun for record in book.records.values()):  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            checked = {node_id: (record.health.checked or 0.0) - begun for node_id, record in book.records.items()}
            answered = max(at for node_id, at in checked.items() if node_id not in hung)
            found.append(Round(answered, max(checked.values()), steps.held, steps.away))
        tasks.cancel_scope.cancel()
    pool.close()
    return found


class _Steps:
    """Runs in every step of the event loop and notes the longest time since the one before."""

    def __init__(self) -> None:
        self.held = self.away = 0.0

    async def run(self) -> None:
        """Run for ever."""
        while True:
            worked, was = time.thread_time_ns(), time.perf_counter_ns()
            await checkpoint()
            self.held = max(self.held, (time.thread_time_ns() - worked) / 1e9)
            self.away = max(self.away, (time.perf_counter_ns() - was) / 1e9)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Begin anew; what is noted when the body has ended was in it."""
        self.held = self.away = 0.0
        yield
