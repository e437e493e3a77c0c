"""Many nodes, many subscribers: memory, CPU time, delivery, decisions, list changes, wake-ups, imports."""

import subprocess
import sys
from collections.abc import Sequence
from statistics import median

import anyio

from scripts.benchmarks import crowd
from scripts.benchmarks.crowd import Size
from scripts.benchmarks.decisions import decisions, event, watch
from scripts.benchmarks.report import Report, percentile, ratio
from scripts.benchmarks.server import ROOT

LARGE = Size(100, 100)
SMALL = Size(10, 10)
MAINNET_SLOT = 12.0
SLOT = 0.25
"""Seconds: hundred heads at once are worked off in the tenth part of it."""
HEADS = 100
CHANGES = 20
SPREAD = ("best tenth", "p50", "p99")


def run(report: Report, *, scale: float = 1.0, large: Size = LARGE, small: Size = SMALL) -> None:
    """Measure everything and report. `scale` multiplies how often."""
    _cost(report, large, scale)
    _delivery(report, large, small, scale)
    _decisions(report, large, scale)
    _changes(report, large, scale)
    _watch(report, scale)
    _imports(report, scale)


def _times(usual: float, scale: float) -> int:
    return max(3, int(usual * scale))


def _cost(report: Report, size: Size, scale: float) -> None:
    slots = _times(HEADS, scale)
    cost = crowd.cost(size, slots, SLOT)
    share = cost.slot / MAINNET_SLOT
    report.table(
        f"{size.nodes} nodes, half of them fallbacks, {size.subscribers} subscribers: a process of its own",
        ("what", "figure", "aim"),
        [
            ("most memory, MB", cost.peak, "< 150"),
            ("of it when all is imported and nothing has begun, MB", cost.imported, None),
            ("CPU time of a slot, ms", cost.slot * 1000, None),
            (f"share of a core at {MAINNET_SLOT:.0f} s slots, %", share * 100, "< 50"),
            ("CPU time until all streams are open, ms", cost.start * 1000, None),
        ],
    )
    report.text(
        f"All nodes announce the head at the same instant, in {slots} slots of {SLOT} s. The CPU time of a slot is the "
        "process's over those slots, divided by their number; nothing but slots makes work, so that it is the same for "
        f"slots of {MAINNET_SLOT:.0f} s and its share so much smaller."
    )


def _delivery(report: Report, large: Size, small: Size, scale: float) -> None:
    heads = _times(HEADS, scale)
    many, few = anyio.run(crowd.delivery, (large, small), heads, SLOT)
    rows: list[Sequence[object]] = [
        (f"{size.nodes} × {size.subscribers}", median(delays), percentile(delays, 0.99), max(delays))
        for size, delays in ((large, many), (small, few))
    ]
    p99 = percentile(many, 0.99) / percentile(few, 0.99)
    rows.append(("ratio", ratio(_by_head(many, large), _by_head(few, small)), p99, max(many) / max(few)))
    report.table(
        "delivery to every subscriber, microseconds from the first write",
        ("nodes × subscribers", "p50", "p99", "max"),
        rows,
    )
    report.text(
        f"All nodes announce the head at the same instant, {heads} heads to each of the two monitors, which live in "
        "one process and have their heads in turn. The ratio of p50 is that of the medians over subscribers, by heads."
    )


def _by_head(delays: Sequence[float], size: Size) -> list[Sequence[float]]:
    return [delays[at : at + size.subscribers] for at in range(0, len(delays), size.subscribers)]


def _spread(values: Sequence[float]) -> Sequence[float | None]:
    """Say how it was while the machine did little else, and how it was (see :data:`SPREAD`)."""
    return (percentile(values, 0.1), median(values), percentile(values, 0.99)) if values else (None, None, None)


def _decisions(report: Report, size: Size, scale: float) -> None:
    words = {
        "tier": "a fallback's head, held back",
        "delivered": "a head that is delivered",
        "duplicate": "a head that is a vote",
        "no holder": "the gate alone, no primary holds it, and the best head is looked for",
    }
    report.table(
        f"gate and delivery decisions with {size.nodes} nodes, microseconds",
        ("what", *SPREAD, "aim"),
        [
            (words.get(what, what), *_spread(taken), "< 50")
            for what, taken in decisions(size.nodes, _times(50, scale)).items()
        ],
    )
    report.text(
        "The worst case of each: fallbacks show every head first, then the primaries, the first of the list last, so "
        "that it holds the gate by its head of the slot before."
    )


def _changes(report: Report, size: Size, scale: float) -> None:
    found = anyio.run(crowd.changes, size.nodes, _times(CHANGES, scale), SLOT)
    report.table(
        f"{size.nodes // 2} of {size.nodes} nodes replaced by others, milliseconds",
        ("what", *SPREAD, "aim"),
        [
            ("the call of `update_candidates`", *_spread(found.call), None),
            ("old streams ended, new ones begun", *_spread(found.replaced), "< 100"),
            ("all new streams open", *_spread(found.opened), None),
            ("heads of nodes that stayed, meanwhile", *_spread(found.during), None),
            ("heads of nodes that stayed, otherwise", *_spread(found.otherwise), None),
        ],
    )
    report.text(f"Of the heads of nodes that stayed, {found.missed} were never seen.")


def _watch(report: Report, scale: float) -> None:
    rows = [
        (backend, what, waiters, *_spread(anyio.run(wake, waiters, _times(100, scale), backend=backend)), aim)
        for backend in ("asyncio", "trio")
        for waiters in (1, 300)
        for what, wake, aim in (
            ("`Watch`", watch, "< 1000" if waiters == 300 else None),
            ("bare event", event, None),
        )
    ]
    report.table("set until the last waiter runs, microseconds", ("backend", "what", "waiters", *SPREAD, "aim"), rows)


def _imports(report: Report, scale: float) -> None:
    rows = [
        (f"`{statement}`", *_spread([_import(statement) for _ in range(_times(10, scale))]), aim)
        for statement, aim in (
            ("import vc_fallback", "≤ 200"),
            ("from vc_fallback import HeadMonitor", None),
            ("import vc_fallback.cli.main", None),
        )
    ]
    report.table("imports in a fresh process, milliseconds", ("what", *SPREAD, "aim"), rows)


def _import(statement: str) -> float:
    program = f"import time; begun = time.perf_counter(); {statement}; print((time.perf_counter() - begun) * 1000)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return float(done.stdout)
