"""From a head's write in another process to the task that has it: beside a bare reader and beside aiohttp."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, get_args

import anyio

from scripts.benchmarks import sse_decoder
from scripts.benchmarks.clients import CLIENTS
from scripts.benchmarks.report import Report, percentile, ratio
from scripts.benchmarks.server import Pattern, Plan, moment_of, serving

NODES = (1, 8, 32)
SLOT = 0.02
"""Seconds between two heads."""
ROUND = 25
"""Heads that a client has in a row; the ratio is that of such rounds."""
HEADS = 500
WARM = 10
"""Heads that do not count."""
AIM = 0.7
DECODER_AIM = 100.0

BACKENDS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "asyncio": ("asyncio", {}, ("bare", "aiohttp", "monitor")),
    "uvloop": ("asyncio", {"use_uvloop": True}, ("bare", "aiohttp", "monitor")),
    "trio": ("trio", {}, ("monitor",)),
}


@dataclass(frozen=True, slots=True)
class Latencies:
    """What was measured with one backend, number of nodes and pattern: microseconds by client and round."""

    backend: str
    nodes: int
    pattern: Pattern
    rounds: dict[str, list[list[float]]]
    overtaken: dict[str, int]
    """Heads of which the client had the next one first, or none: the machine was away for more than a slot."""


def measure(backend: str, nodes: int, pattern: Pattern, heads: int, slot: float = SLOT) -> Latencies:
    """Let all clients of a backend follow the same nodes, and show them heads in turn."""
    loop, options, clients = BACKENDS[backend]
    plan = Plan(
        nodes, dict.fromkeys(clients, nodes), pattern, heads, slot, turn=min(ROUND, heads), warm=min(WARM, heads)
    )
    return anyio.run(_measure, backend, plan, backend=loop, backend_options=options)


async def _measure(backend: str, plan: Plan) -> Latencies:
    noted: dict[str, list[tuple[int, bytes, int]]] = {client: [] for client in plan.clients}
    async with serving(plan) as server, anyio.create_task_group() as tasks:
        for client, heads in noted.items():
            tasks.start_soon(CLIENTS[client], server, client, heads)
        first = await server.done()
        await anyio.sleep(0.2)
        tasks.cancel_scope.cancel()
    rounds: dict[str, list[list[float]]] = {}
    for client, heads in noted.items():
        rounds[client] = [[] for _ in range(plan.heads // plan.turn)]
        for slot, root, at in heads:
            if slot >= first:
                rounds[client][(slot - first) // (plan.turn * len(plan.clients))].append((at - moment_of(root)) / 1000)
    overtaken = {client: plan.heads - sum(map(len, found)) for client, found in rounds.items()}
    return Latencies(backend, plan.nodes, plan.pattern, rounds, overtaken)


def run(
    report: Report,
    *,
    scale: float = 1.0,
    backends: Sequence[str] = tuple(BACKENDS),
    nodes: Sequence[int] = NODES,
    decoder: bool = True,
) -> None:
    """Measure everything and report. `scale` multiplies how often."""
    if decoder:
        _decoder(report)
    heads = ROUND * max(2, int(HEADS / ROUND * scale))
    report.text(
        "Latencies are from the (first) write of a head in the server's process to the subscriber's task, in "
        f"microseconds, {heads} heads to each client. Ratios are to aiohttp's client: the median over rounds of "
        f"{ROUND} heads of the ratio of the rounds' medians, in brackets the quartiles over the rounds. The clients "
        "run in one process and loop and have their rounds in turn."
    )
    for backend in backends:
        for pattern in get_args(Pattern):
            found = [measure(backend, count, pattern, heads) for count in nodes]
            title = "distinct heads, round robin" if pattern == "distinct" else "the same head from all at once"
            report.table(
                f"{backend}: {title}", ("nodes", "client", "p50", "p99", "ratio", "aim", "overtaken"), _rows(found)
            )


def _rows(found: Sequence[Latencies]) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = []
    for one in found:
        for client, rounds in one.rounds.items():
            compared = aim = None
            if "aiohttp" in one.rounds and client != "aiohttp":
                compared = ratio(rounds, one.rounds["aiohttp"])
                aim = f"≤ {AIM}" if client == "monitor" and one.backend == "asyncio" else None
            values = [delay for delays in rounds for delay in delays]
            rows.append(
                (one.nodes, client, median(values), percentile(values, 0.99), compared, aim, one.overtaken[client])
            )
    return rows


def _decoder(report: Report) -> None:
    rows = []
    for name, value in sse_decoder.run().items():
        aim = f"≥ {DECODER_AIM:.0f}" if name.endswith("ours, MB/s") else None
        rows.append((name, value, aim))
    report.table("the decoder alone, events of 400 bytes", ("pieces of: what", "figure", "aim"), rows)
