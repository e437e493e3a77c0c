"""Three real beacon nodes, one of which fails: what a validator client loses by that, with all three and with that one.

Needs Node.js and npm, and takes five to six minutes.
"""

import math
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from scripts.benchmarks.report import Report
from scripts.benchmarks.validator import LATE, ByAll, ByOne, Call, Pretended, Way
from scripts.lodestar.devnet import Devnet, Execution
from scripts.lodestar.errors import DevnetError
from scripts.lodestar.tether import tethered
from vc_fallback import (
    BeaconNode,
    BeaconNodeFallback,
    DutiesMoved,
    FallbackConfig,
    HeadDelivered,
    NotReadyInTime,
    Signal,
    Slot,
)

VALIDATORS = range(8)
"""All validators of the devnet."""
NODES = {1: "with the duties", 2: "next in line", 3: "the last one"}
"""What each node is before one of them fails."""
BEFORE, HELD, AFTER = 3, 8, 2
"""Slots before the fault, with it, and after duties are where they were. A Lodestar that is 16 slots behind leaves
the gossip of blocks, and would be long in coming back."""
BACK_LIMIT = 25.0
"""Seconds in which duties go back, and most often do within five."""
READY_LIMIT = 30.0
TRIES = 2
REPEAT_LIMIT = 300.0
"""Seconds from the start after which nothing is measured again: a machine may be busy for all of the time."""


@dataclass(frozen=True)
class Fault:
    """How to break a node, and how to mend it; both return when it is done."""

    name: str
    start: Callable[[Devnet, int], object]
    end: Callable[[Devnet, int], object]


def _engine(mode: Execution, devnet: Devnet, number: int) -> None:
    devnet.execution(number, mode)


NONE = Fault("none", lambda _devnet, _number: None, lambda _devnet, _number: None)
FAULTS = (
    Fault("killed (SIGKILL)", Devnet.kill, Devnet.restart),
    Fault("frozen (SIGSTOP)", Devnet.freeze, Devnet.thaw),
    Fault("cut off from its peers", Devnet.isolate, Devnet.rejoin),
    Fault("execution layer syncing", partial(_engine, "syncing"), partial(_engine, "ok")),
    Fault("execution layer unreachable", partial(_engine, "error"), partial(_engine, "ok")),
)


@dataclass
class Episode:
    """One fault from its beginning to the end of all that came of it. Moments are loop time in seconds.

    :ivar heads: the slots of which a head was delivered.
    :ivar back: set once the duties are back.
    """

    fault: Fault
    number: int
    calls: dict[str, list[Call]] = field(default_factory=dict)
    moves: list[DutiesMoved] = field(default_factory=list)
    heads: set[Slot] = field(default_factory=set)
    slots: range = range(0)
    slot_duration: float = 1.0
    broken: float = math.inf
    mended: float = math.inf
    back: anyio.Event = field(default_factory=anyio.Event)

    def __call__(self, signal: Signal) -> None:
        """Take note of where the duties are, and of the chain."""
        if isinstance(signal, DutiesMoved):
            self.moves.append(signal)
            if self.failback is not None:
                self.back.set()
        elif isinstance(signal, HeadDelivered):
            self.heads.add(signal.slot)

    @property
    def failover(self) -> float | None:
        """Seconds from the fault until the duties were elsewhere; `None` where they never went."""
        moved = [move.at for move in self.moves if move.kind == "failover" and move.at >= self.broken]
        return moved[0] - self.broken if moved else None

    @property
    def failback(self) -> float | None:
        """Seconds from the end of the fault until the duties were back."""
        moved = [move.at for move in self.moves if move.kind == "failback" and move.at >= self.mended]
        return moved[0] - self.mended if moved else None

    @property
    def empty(self) -> int:
        """Slots without a head: the devnet itself did not get to it."""
        return sum(Slot(slot) not in self.heads for slot in self.slots)


async def episode(devnet: Devnet, fault: Fault, number: int, *, held: float = HELD) -> Episode:
    """Let a node fail for so many slots, and ask everything meanwhile: of all, of that node, and of one that is well.

    The devnet is to be well, and is that afterwards but for what a node needs to catch up.
    """
    found = Episode(fault, number)
    pretended = Pretended(VALIDATORS)
    config = FallbackConfig.from_urls(devnet.urls)
    nodes = BeaconNodeFallback(config, observers=[found, pretended])
    async with (
        nodes,
        BeaconNode.at(devnet.url(number)) as failing,
        BeaconNode.at(devnet.url(2 if number == 3 else 3)) as well,
        anyio.create_task_group() as tasks,
    ):
        await nodes.wait_ready(len(devnet.urls), READY_LIMIT)
        slots = nodes.slots
        assert slots is not None  # noqa: S101 - nodes are ready, so the chain is known
        found.slot_duration = slots.duration
        first = slots.slot_at(nodes.clock.now()) + 1
        ways: dict[str, Way] = {"all": ByAll(nodes), "failing": ByOne(failing), "well": ByOne(well)}
        tasks.start_soon(pretended.run, nodes, ways)
        await anyio.sleep(BEFORE * slots.duration)
        found.broken = nodes.clock.now()
        await to_thread.run_sync(fault.start, devnet, number)
        await anyio.sleep(found.broken + held * slots.duration - nodes.clock.now())
        found.mended = nodes.clock.now()
        await to_thread.run_sync(fault.end, devnet, number)
        if found.failover is not None:
            with anyio.move_on_after(BACK_LIMIT):
                await found.back.wait()
        await anyio.sleep(AFTER * slots.duration)
        found.slots = range(first, slots.slot_at(nodes.clock.now()))
        tasks.cancel_scope.cancel()
    found.calls = pretended.calls
    return found


def run(report: Report, *, scale: float = 1.0) -> None:
    """Measure and report. `scale` multiplies for how long faults last, up to where a node would be long in coming back;
    it needs slots of 1 s."""
    held = max(5.0, min(HELD * scale, 14.0))
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="devnet-") as folder,
        tethered(Devnet(Path(folder) / "nodes", nodes=len(NODES))) as devnet,
    ):
        devnet.up()
        limit = time.monotonic() + REPEAT_LIMIT
        for fault in (NONE, *FAULTS):
            rows += [_measured(devnet, fault, number, held, limit) for number in (NODES if fault is not NONE else (1,))]
    report.table(
        f"calls while one of three nodes fails for {held:.0f} slots of 1 s",
        (*ALL, "failover, s", "failback, s", *ALONE),
        [_summary([row for row in rows if row.fault is fault]) for fault in (NONE, *FAULTS)],
    )
    report.text(
        "Each node fails in turn, and what is counted is of all three turns. In every slot: duties of attesters and "
        "proposers at its start, attestation data and the head's root at its head, or when they are due without one, "
        f"from {BEFORE} slots before the fault until {AFTER} after the duties are back. *Late* is an answer more than "
        f"{LATE:.2g} of a slot after it is due, a third into the slot; *missed* is none by the end of the slot; *old* "
        "an answer that names an older block than the head that had been announced before it was asked for. "
        "*Failover* is from the fault of the node with the duties until another node has them, *failback* from the "
        "end of the fault, a new start of the process included, until they are back. *Alone* are the same calls by a "
        "client of the failing node alone, in the same slots."
    )
    report.table(
        "the same, one by one",
        ("fault", "of the node", *ALL[1:], "failover, s", "failback, s", *ALONE, *WELL, "empty slots", "repeated"),
        [_line(row) for row in rows],
    )
    report.text(
        "*Another alone* is a client of a node that does not fail: what it misses or has late no node could have "
        "given in time. *Empty slots* are those in which the devnet itself made no block; a row with two of them, or "
        "in which that other client missed anything or had it late, is measured again once, while there is time."
    )


ALL = ("fault", "calls", "late", "missed", "old", "slowest, ms")
ALONE = ("alone: late", "missed", "old")
WELL = ("another alone: late", "missed")


@dataclass(frozen=True)
class Row:
    """What is counted of an episode, and how often it was measured before."""

    found: Episode
    repeated: int

    @property
    def fault(self) -> Fault:
        """What was wrong."""
        return self.found.fault

    def late(self, way: str) -> int:
        """Answers that came late."""
        return sum(call.late(self.found.slot_duration) for call in self.found.calls[way])

    def missed(self, way: str) -> int:
        """Calls without an answer."""
        return sum(call.missed for call in self.found.calls[way])

    def old(self, way: str) -> int:
        """Answers that name an older block than was known."""
        return sum(call.old for call in self.found.calls[way])

    @property
    def slowest(self) -> float:
        """Milliseconds of the slowest call to all."""
        return 1000 * max(call.took for call in self.found.calls["all"])

    @property
    def good(self) -> bool:
        """Whether the devnet itself did its part: the machine may be busy with other things."""
        return self.found.empty <= 1 and not self.missed("well") and not self.late("well")


def _measured(devnet: Devnet, fault: Fault, number: int, held: float, limit: float) -> Row:
    for repeated in range(TRIES):
        last = repeated == TRIES - 1
        try:
            devnet.heal()
            row = Row(anyio.run(partial(episode, devnet, fault, number, held=held)), repeated)
        except (DevnetError, NotReadyInTime) as error:
            print(f"{fault.name}, node {number}: {error}", flush=True)
            if last:
                raise
            continue
        empty, load = row.found.empty, os.getloadavg()[0]
        print(f"{fault.name}, node {number}: {empty} slots without a head, load {load:.1f}", flush=True)
        if row.good or last or time.monotonic() > limit:
            break
    return row


def _summary(rows: Sequence[Row]) -> Sequence[object]:
    def total(count: Callable[[Row], int]) -> int:
        return sum(map(count, rows))

    return (
        *(rows[0].fault.name, total(lambda row: len(row.found.calls["all"]))),
        *(total(lambda row: row.late("all")), total(lambda row: row.missed("all")), total(lambda row: row.old("all"))),
        *(max(row.slowest for row in rows), rows[0].found.failover, rows[0].found.failback),
        *(total(lambda row: row.late("failing")), total(lambda row: row.missed("failing"))),
        total(lambda row: row.old("failing")),
    )


def _line(row: Row) -> Sequence[object]:
    found = row.found
    return (
        *(row.fault.name, "" if row.fault is NONE else NODES[found.number], len(found.calls["all"])),
        *(row.late("all"), row.missed("all"), row.old("all"), row.slowest, found.failover, found.failback),
        *(row.late("failing"), row.missed("failing"), row.old("failing")),
        *(row.late("well"), row.missed("well"), found.empty, row.repeated),
    )
