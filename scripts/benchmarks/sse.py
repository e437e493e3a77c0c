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
"""Seconds; each slot is one client's, so one client has a head every third slot."""
ROUND = 25
"""Heads to a round of a ratio."""
HEADS = 500
AIM = 0.7
DECODER_AIM = 100.0

BACKENDS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "asyncio": ("asyncio", {}, ("bare", "aiohttp", "monitor")),
    "uvloop": ("asyncio", {"use_uvloop": True}, ("bare", "aiohttp", "monitor")),
    "trio": ("trio", {}, ("monitor",)),
}


@dataclass(frozen=True, slots=True)
class Latencies:
    """What was measured with one backend, number of nodes and pattern: microseconds in order, by client."""

    backend: str
    nodes: int
    pattern: Pattern
    by_client: dict[str, list[float]]
    lost: int
    """Heads that a client was shown and did not have at the end."""


def measure(backend: str, nodes: int, pattern: Pattern, heads: int, slot: float = SLOT) -> Latencies:
    """Let all clients of a backend follow the same nodes, and show them heads in turn."""
    loop, options, clients = BACKENDS[backend]
    plan = Plan(nodes, dict.fromkeys(clients, nodes), pattern, heads, slot)
    return anyio.run(_measure, backend, plan, backend=loop, backend_options=options)


async def _measure(backend: str, plan: Plan) -> Latencies:
    noted: dict[str, list[tuple[int, bytes, int]]] = {client: [] for client in plan.clients}
    async with serving(plan) as server, anyio.create_task_group() as tasks:
        for client, heads in noted.items():
            tasks.start_soon(CLIENTS[client], server, client, heads)
        first = await server.done()
        await anyio.sleep(0.2)
        tasks.cancel_scope.cancel()
    by_client = {
        client: [(at - moment_of(root)) / 1000 for slot, root, at in heads if slot >= first]
        for client, heads in noted.items()
    }
    lost = sum(server.sent[client] - len(found) for client, found in by_client.items())
    return Latencies(backend, plan.nodes, plan.pattern, by_client, lost)


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
    heads = max(2 * ROUND, int(HEADS * scale))
    report.text(
        "Latencies are from the (first) write of a head in the server's process to the subscriber's task, in "
        f"microseconds, {heads} heads to each client. Ratios are to aiohttp's client: the median over rounds of "
        f"{ROUND} heads of the ratio of the rounds' medians, in brackets the quartiles over the rounds. The clients "
        "run in one process and loop and have their heads in turn."
    )
    for backend in backends:
        for pattern in get_args(Pattern):
            found = [measure(backend, count, pattern, heads) for count in nodes]
            title = "distinct heads, round robin" if pattern == "distinct" else "the same head from all at once"
            report.table(f"{backend}: {title}", ("nodes", "client", "p50", "p99", "ratio", "aim", "lost"), _rows(found))


def _rows(found: Sequence[Latencies]) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = []
    for one in found:
        for client, values in one.by_client.items():
            compared = aim = None
            if "aiohttp" in one.by_client and client != "aiohttp":
                middle, low, high = ratio(values, one.by_client["aiohttp"], ROUND)
                compared = f"{middle:.2f} ({low:.2f}–{high:.2f})"
                aim = f"≤ {AIM}" if client == "monitor" and one.backend == "asyncio" else None
            lost = one.lost if client == "monitor" else None
            rows.append((one.nodes, client, median(values), percentile(values, 0.99), compared, aim, lost))
    return rows


def _decoder(report: Report) -> None:
    rows = []
    for name, value in sse_decoder.run().items():
        aim = f"≥ {DECODER_AIM:.0f}" if name.endswith("ours, MB/s") else None
        rows.append((name, value, aim))
    report.table("the decoder alone, events of 400 bytes", ("pieces of: what", "figure", "aim"), rows)
