"""Health of a hundred nodes: rounds of checks over sockets, the rank, the book, and what is kept of each node."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import median

import anyio

from scripts.benchmarks import health_book
from scripts.benchmarks.health_round import Round, rounds
from scripts.benchmarks.report import Report, percentile

NODES = 100
HANGING = 10
COLUMNS = ("best tenth", "p50", "p99", "most")
AIMS = {"all nodes ranked": "< 1000"}


def run(report: Report, *, scale: float = 1.0, nodes: int = NODES, hanging: int = HANGING) -> None:
    """Measure everything and report. `scale` multiplies how often."""
    _rounds(report, nodes, hanging, scale)
    anyio.run(_without_sockets, report, nodes, scale)


async def _without_sockets(report: Report, nodes: int, scale: float) -> None:
    ranked = health_book.ranking(nodes, _times(500, scale))
    _micros(report, f"the rank of {nodes} nodes, microseconds of processor time", ranked)
    _micros(
        report,
        f"the book with {nodes} nodes, microseconds of processor time",
        health_book.book(nodes, _times(50, scale)),
    )
    report.text(
        "With an observer. A head is taken, measured against the tip, and the ranking made anew where it changes "
        "anything of it; half of the nodes are fallbacks."
    )
    _memory(report, nodes, scale)


def _times(usual: float, scale: float) -> int:
    return max(2, int(usual * scale))


def _rounds(report: Report, nodes: int, hanging: int, scale: float) -> None:
    rows: list[Sequence[object]] = []
    for backend in ("asyncio", "trio"):
        many = nodes, hanging, _times(6, scale), _times(3, scale)
        found = anyio.run(partial(rounds, *many), backend=backend)
        bare = anyio.run(partial(rounds, *many, collect=False), backend=backend)
        rows += _round_rows(backend, "first", found.first, bare.first)
        rows += _round_rows(backend, "later", found.later, bare.later)
    report.table(
        f"a round of checks of {nodes} nodes, {hanging} of which hang, milliseconds",
        ("backend", "round", "what", *COLUMNS, "aim"),
        rows,
    )
    report.text(
        "Nodes are in another process, each on a port of its own. In the first round every connection is made, and "
        "each node is asked for its peers and what it has finalized besides. A check that finds no answer ends after "
        "1.5 s. Steps of the event loop are measured by a task that runs in each of them, so that it is never idle."
    )


def _round_rows(backend: str, which: str, made: Sequence[Round], bare: Sequence[Round]) -> Iterable[Sequence[object]]:
    for what, values, aim in (
        ("all that answer are checked", [one.answered for one in made], None),
        ("the round has ended", [one.ended for one in made], "1500"),
        ("longest step of the event loop, processor", [one.held for one in made], "< 5"),
        ("the same while no garbage is collected", [one.held for one in bare], "< 5"),
        ("longest step of the event loop, wall", [one.away for one in made], None),
    ):
        yield backend, which, what, *_spread([value * 1000 for value in values]), aim


def _micros(report: Report, title: str, times: Mapping[str, Sequence[float]]) -> None:
    rows = [(what, *_spread(taken), AIMS.get(what)) for what, taken in times.items()]
    report.table(title, ("what", *COLUMNS, "aim"), rows)


def _memory(report: Report, nodes: int, scale: float) -> None:
    new, full, later = health_book.memory(nodes, _times(60, scale))
    report.table(
        f"memory of each of {nodes} nodes, kB",
        ("what", "figure"),
        [
            ("new, its settings included", new / 1000),
            ("all is kept that can be: its own, and its part of what is kept of all", full / 1000),
            ("after twice that time", later / 1000),
        ],
    )


def _spread(values: Sequence[float]) -> Sequence[float]:
    return percentile(values, 0.1), median(values), percentile(values, 0.99), max(values)
