"""What routing costs: over bare calls, beside others' way, with nodes that fail, publishes, and 10,000 calls a second.

Nodes are simulated in another process that does no more than it must; ways take turns, and what counts is the median of
a turn's ratio or difference.
"""

from collections.abc import Sequence
from functools import partial
from statistics import median

import anyio

from scripts.benchmarks import routing_calls, routing_faults
from scripts.benchmarks.report import Report, percentile, ratio
from scripts.benchmarks.routing_answers import VALIDATORS
from scripts.benchmarks.routing_calls import Rounds
from scripts.benchmarks.routing_faults import STAGES, strikes
from scripts.benchmarks.routing_load import WORKERS, Load, load
from scripts.benchmarks.routing_server import Manner, Nodes, nodes

MAINNET_SLOT = 12.0
SHORT_SLOT = 2.0
"""Seconds: with nodes that fail slots are short, so that it is soon known."""
HEDGE = 0.05
"""Seconds: the hedge delay of nodes whose answers are known to be fast."""
TURNS = 250
STRIKES = 12
MINUTE = 60.0
RATE = 10_000.0
TRACED = 5000


def run(report: Report, *, scale: float = 1.0) -> None:
    """Measure and report. `scale` multiplies how often, and how long."""
    turns = _times(TURNS, scale)
    with nodes(3, MAINNET_SLOT) as served:
        for backend in ("asyncio", "trio"):
            _overhead(report, backend, served, turns)
        _together(report, served, turns)
        _broadcasts(report, served, turns)
        _load(report, served, scale)
    with nodes(3, SHORT_SLOT) as served:
        _faults(report, served, scale)


def _times(usual: int, scale: float) -> int:
    return max(3, int(usual * scale))


def _all(turns: Sequence[Sequence[float]]) -> list[float]:
    return [taken for turn in turns for taken in turn]


def _micro(values: Sequence[float], part: float = 0.5) -> float:
    return (median(values) if part == 0.5 else percentile(values, part)) * 1e6


def _over(found: Rounds, way: str, bare: str) -> list[float]:
    return [median(our) - median(their) for our, their in zip(found[way], found[bare], strict=True)]


def _overhead(report: Report, backend: str, served: Nodes, turns: int) -> None:
    found = anyio.run(routing_calls.overhead, served, turns, backend=backend)
    alone = anyio.run(routing_calls.strategy, served, turns, backend=backend)
    rows = []
    for rounds, way, bare in (
        (alone, "the strategy alone", "bare block root"),
        (found, "`first_success`", "bare block root"),
        (found, "`block_root`", "bare block root"),
        (found, "`attestation_data`", "bare attestation data"),
    ):
        over = _over(rounds, way, bare)
        whole = [_micro(_all(rounds[name])) for name in (bare, way)]
        rows.append((way, *whole, _micro(over, 0.1), _micro(over), _micro(over, 0.75), "< 30"))
    report.table(
        f"{backend}: a call through the facade over the same call of one node, microseconds",
        ("what", "bare", "facade", "over bare: best tenth", "p50", "p75", "aim"),
        rows,
    )
    if backend == "trio":
        report.text(
            "Over bare is the difference of the medians of ten calls each in the same round. The bare client is the "
            "facade's own: what it tells health is in both."
        )


def _together(report: Report, served: Nodes, turns: int) -> None:
    found = anyio.run(routing_calls.together, served, turns)
    rows = [
        (
            words,
            _micro(_all(found[ours])),
            _micro(_all(found[ours]), 0.99),
            _micro(_all(found[theirs])),
            _micro(_all(found[theirs]), 0.99),
            ratio(found[ours], found[theirs]),
            aim,
        )
        for words, ours, theirs, aim in (
            ("quorum, two of three", "two of three", "theirs: two of three", "≤ 1"),
            ("quorum, three of three", "three of three", "theirs: three of three", "≤ 1"),
            ("hedge, beside the first of three that are all asked", "hedge", "theirs: first of three", "≤ 1"),
            ("hedge, beside one aiohttp request", "hedge", "theirs: one node", None),
        )
    ]
    report.table(
        "asyncio: attestation data of three nodes, beside gathering over aiohttp with msgspec, microseconds",
        ("what", "p50", "p99", "theirs p50", "p99", "ratio of p50", "aim"),
        rows,
    )
    report.text(
        "The published way of Vero 1.4.1 as one would write it: a task and a session for each node, answers as they "
        "are completed. Who is late is let run on there, and here cancelled and awaited; its answer comes and goes. It "
        "reads JSON into structures with texts, and knows neither health nor heads."
    )


def _broadcasts(report: Report, served: Nodes, turns: int) -> None:
    found = anyio.run(routing_calls.broadcasts, served, turns)
    rows: list[Sequence[object]] = [
        (
            count,
            _micro(_all(found[f"{count}: accepted"])),
            _micro(_all(found[f"{count}: settled"])),
            _micro(_all(found[f"theirs: {count}"])),
            ratio(found[f"{count}: accepted"], found[f"theirs: {count}"]),
            ratio(found[f"{count}: settled"], found[f"theirs: {count}"]),
        )
        for count in (1, 64)
    ]
    rows.append(("64, as SSZ", None, _micro(_all(found["64, as SSZ: settled"])), None, None, None))
    report.table(
        "asyncio: attestations published to three nodes, microseconds",
        ("attestations", "first accept", "all three", "gathered", "ratio of first accept", "ratio of all"),
        rows,
    )


def _faults(report: Report, served: Nodes, scale: float) -> None:
    rows: list[Sequence[object]] = []
    count = _times(STRIKES, scale)
    manners: tuple[Manner, ...] = ("dead", "hung")
    for manner in manners:
        for what in ("first_success", "attestation_data"):
            # To wait until it is known takes seconds where it hangs.
            found = [
                anyio.run(partial(strikes, served, manner, what, known=number < max(1, count // 4)))
                for number in range(count)
            ]
            delay = HEDGE if manner == "hung" else 0.0
            stages = {stage: [one[stage] for one in found if stage in one] for stage in STAGES}
            before = median(stages["before"])
            less = {stage: before + (0.0 if stage == "known" else delay) for stage in STAGES[1:]}
            more = [(median(stages[stage]) - usual) * 1000 if stages[stage] else None for stage, usual in less.items()]
            aim = "< 2" if manner == "dead" else "one round trip"
            rows.append((manner, f"`{what}`", before * 1000, delay * 1000, *more, aim))
    report.table(
        "asyncio: the node that is asked first fails; milliseconds",
        ("it is", "call", "before", "hedge delay", "first call, more", "the next ten, more", "once known, more", "aim"),
        rows,
    )
    over = _over(anyio.run(routing_faults.always_dead, served, _times(TURNS // 4, scale)), "with", "without")
    hung = anyio.run(routing_faults.theirs, served, "hung", _times(TURNS // 4, scale))
    report.text(
        "More is more than before and than the hedge delay. A dead node refuses connections, and has reset those that "
        "it had; it is suspect from the first call on. A node that hangs is known after a check, or when others were "
        f"faster several times. Slots are of {SHORT_SLOT:.0f} s. By the strategy alone, which knows no health, each "
        f"call that meets a dead node first takes {_micro(over):.0f} µs more (best tenth {_micro(over, 0.1):.0f}). The "
        f"published way asks all at once, and so needs no more than {_micro(hung):.0f} µs where one hangs."
    )


def _load(report: Report, served: Nodes, scale: float) -> None:
    run_for = max(2.0, MINUTE * scale)
    traced = _times(TRACED, scale)
    without = load(served, rate=RATE, duration=run_for, interval=run_for / 6, traced=traced, sockets=False)
    most = load(served, rate=0.0, duration=run_for / 6, interval=run_for / 18, traced=0, sockets=False)
    over = load(served, rate=0.0, duration=run_for / 6, interval=run_for / 18, traced=0, sockets=True)
    report.table(
        "asyncio: one facade of three nodes under load, in a process of its own",
        ("seconds", "calls", "calls a second", "memory, MB", "tasks", "timers"),
        _samples(without),
    )
    growth = ", ".join(f"{size:+.1f}" for size in without.traced)
    failed = "; ".join(f"{count} × {kind}" for kind, count in without.failures.items()) or "none"
    report.text(
        f"{RATE:.0f} calls a second are begun by {WORKERS} tasks, answered in the process itself in the place of the "
        "nodes' connections: two cores do not carry as many HTTP requests beside the server. Of ten calls six are for "
        f"attestation data, two for block roots, one for duties of {VALIDATORS} validators, one publishes to three "
        f"nodes. The process had {without.cpu:.2f} of a core. Calls that failed: {failed}. After that {traced} calls "
        f"at a time, while allocations are traced: KiB more than after the {traced} before: {growth}. As many calls as "
        f"there is time for: {_rate(most):.0f} a second with {most.cpu:.2f} of a core, {_rate(most) / most.cpu:.0f} a "
        f"core; over sockets {_rate(over):.0f} a second with {over.cpu:.2f} of a core."
    )


def _samples(found: Load) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = []
    at = calls = 0.0
    for sample in found.samples:
        rate = (sample.calls - calls) / (sample.at - at)
        rows.append((f"{sample.at:.0f}", sample.calls, rate, f"{sample.memory:.1f}", sample.tasks, sample.timers))
        at, calls = sample.at, sample.calls
    return rows


def _rate(found: Load) -> float:
    first, last = found.samples[0], found.samples[-1]
    if first is last:
        return last.calls / last.at
    return (last.calls - first.calls) / (last.at - first.at)
