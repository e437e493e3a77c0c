"""The monitor command over real nodes, as a process whose JSON lines are checked and kept as they come."""

import json
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scripts.lodestar.devnet import Devnet
from scripts.lodestar.recorder import RecordedHead
from tests.json_schema import check_line
from tests.processes import Process

Line = dict[str, Any]
Block = tuple[int, str]
"""Slot and root."""

LATEST = 1.0
"""A head is delivered within so many seconds of the moment at which a node without faults announced it."""

LIMIT = 60.0
"""Seconds until something happens that takes one or two on a machine with nothing else to do."""


def node_id(url: str) -> str:
    """The node id that the monitor derives from a node's URL."""
    return url.removeprefix("http://")


def delays(
    recorded: Iterable[RecordedHead], delivered: Mapping[Block, float], since: float, until: float = float("inf")
) -> list[float]:
    """By how many seconds each head was delivered after its recording; see that each one was.

    `since` and `until` are moments of the recording, in Unix time; `delivered` says when each block was delivered.
    A negative number is a head that another node had announced before.
    """
    wanted = [head for head in recorded if since <= head.time < until]
    assert wanted, "nothing was recorded"
    missed = [head for head in wanted if (head.slot, head.root) not in delivered]
    assert not missed, f"never delivered: {missed}"
    return [delivered[head.slot, head.root] - head.time for head in wanted]


def assert_no_head_missed(
    recorded: Iterable[RecordedHead], delivered: Mapping[Block, float], since: float, until: float = float("inf")
) -> None:
    """For every slot for which a node's own recording has a head, that head is delivered within a second of it."""
    worst = max(delays(recorded, delivered, since, until), key=abs)
    assert abs(worst) <= LATEST, f"a head was delivered {worst:+.2f} s after it was recorded"


def patient_config(
    file: Path,
    devnet: Devnet,
    primaries: Collection[int],
    fallbacks: Collection[int] = (),
    *,
    streams: Collection[str] = (),
    check_timeout: float = 1.5,
) -> Path:
    """Write settings for nodes with slots of 1 s on a busy machine: an answer may take longer than the default, 0.2 s.

    A node that is merely slow to answer would be taken for a silent one. `streams` are more lines of that section.
    """
    tiers = [*((number, "primary") for number in primaries), *((number, "fallback") for number in fallbacks)]
    tables = [f'[[candidates]]\nurl = "{devnet.url(number)}"\ntier = "{tier}"\n' for number, tier in tiers]
    health = ["[health]", f"check_timeout = {check_timeout}", "slow = 1.0"]
    patience = ["[streams]", "verify_timeout = 1.5", *streams, *health, ""]
    file.write_text("\n".join([*patience, *tables]))
    return file


class Following:
    """`vc-fallback monitor` with these arguments, from entering the block to leaving it.

    Nodes of the devnet are known by their numbers, times are Unix times in seconds.
    """

    def __init__(self, devnet: Devnet, *arguments: str) -> None:
        self._genesis, self._slot_duration = devnet.genesis_time, devnet.slot_duration
        self._ids = {number: node_id(devnet.url(number)) for number in devnet.numbers}
        self._process = Process("monitor", "--format", "jsonl", *arguments)
        self._lines: list[Line] = []
        self._grown = threading.Condition()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._read, name="lines of the monitor", daemon=True)

    def __enter__(self) -> Self:
        self._process.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.is_alive():
            self._process.send(signal.SIGKILL)
            self._thread.join()
        self._process.__exit__(kind, error, trace)

    def _read(self) -> None:
        try:
            while not self._lines or self._lines[-1]["type"] != "summary":
                line = check_line(self._process.line(LIMIT))
                with self._grown:
                    self._lines.append(line)
                    self._grown.notify_all()
        except (AssertionError, ValueError) as failure:
            with self._grown:
                self._failure = failure
                self._grown.notify_all()

    # --- what was printed

    def lines(
        self, kind: str, number: int | None = None, *, since: float = 0.0, until: float = float("inf"), **fields: object
    ) -> list[Line]:
        """The lines of a type so far: of one node or of all, between two moments, with these values."""
        with self._grown:
            return [
                line for line in self._lines if since <= line["time"] < until and self._is(line, kind, number, fields)
            ]

    def _is(self, line: Line, kind: str, number: int | None, fields: Mapping[str, object]) -> bool:
        of_node = number is None or line.get("node") == self._ids[number]
        return of_node and line["type"] == kind and fields.items() <= line.items()

    def wait(
        self,
        kind: str,
        number: int | None = None,
        *,
        since: float = 0.0,
        that: Callable[[Line], bool] = lambda _: True,
        count: int = 1,
        limit: float = LIMIT,
        **fields: object,
    ) -> Line:
        """Wait for the line number `count` of a type, as in `lines`, of which `that` holds.

        :raises TimeoutError: it did not come within `limit` seconds.
        """
        deadline = time.monotonic() + limit
        looked = 0
        with self._grown:
            while True:
                for line in self._lines[looked:]:
                    if line["time"] >= since and self._is(line, kind, number, fields) and that(line):
                        count -= 1
                        if count == 0:
                            return line
                looked = len(self._lines)
                if self._failure is not None:
                    raise self._failure
                if not self._grown.wait(deadline - time.monotonic()):
                    last = "\n".join(json.dumps(line) for line in self._lines[-12:])
                    raise TimeoutError(f"no {kind} of node {number} {fields} within {limit} s; the last lines:\n{last}")

    def wait_until_fresh(self, *numbers: int, since: float = 0.0) -> float:
        """Wait until the streams of these nodes have become fresh; return when the last one had."""
        moments: list[float] = [self.wait("stream", number, since=since, state="fresh")["time"] for number in numbers]
        return max(moments)

    def wait_until_well(self, *order: int) -> float:
        """Wait until these nodes stream, have passed a check, and rank in this order, and the first has the duties.

        What is told of that is told before the moment that is returned.
        """
        self.wait_until_fresh(*order)
        for rank, number in enumerate(order, 1):
            self.wait("health", number, rank=rank, suspect=False, reason="check_passed")
        self.wait("failover", to=self._ids[order[0]])
        return time.time()

    def wait_until_moved(self, kind: str, source: int, target: int, since: float) -> Line:
        """Wait until duties have moved from one node to another."""
        wanted = kind, self._ids[source], self._ids[target]
        return self.wait("failover", since=since, that=lambda line: (line["kind"], line["from"], line["to"]) == wanted)

    def wait_for_slots(self, count: int) -> None:
        """Wait until a head is delivered that is so many slots later than now."""
        now = time.time()
        self.wait(
            "head", since=now, that=lambda line: line["slot"] >= self.slot_at(now) + count, limit=LIMIT + 2 * count
        )

    def stop(self) -> Line:
        """End the command by SIGTERM; see that it ends well, with a summary of what it said, and return that."""
        self._process.send(signal.SIGTERM)
        self._thread.join(LIMIT)
        if self._failure is not None:
            raise self._failure
        status, rest, errors = self._process.finish()
        assert (status, rest) == (0, []), errors
        assert "Traceback" not in errors
        summary = self._lines[-1]
        assert summary["type"] == "summary"
        assert summary["delivered"] == len(self.lines("head"))
        return summary

    # --- what it means

    def id(self, number: int) -> str:
        """A node's id."""
        return self._ids[number]

    def slot_at(self, moment: float) -> int:
        """The slot of a moment."""
        return int((moment - self._genesis) // self._slot_duration)

    @property
    def delivered(self) -> dict[Block, float]:
        """When each block was delivered first."""
        return {(line["slot"], line["block"]): line["time"] for line in reversed(self.lines("head"))}

    def assert_each_block_delivered_once(self) -> None:
        """One delivery for each block, and nothing after something newer."""
        slots = [line["slot"] for line in self.lines("head")]
        assert slots == sorted(set(slots)), slots
