"""Every attestation of a network from three nodes, each told once, and heads beside them: the cost, the delay.

Nodes and clients are processes of their own; clients take turns, a slot each.
"""

from collections.abc import Sequence
from statistics import median

from scripts.benchmarks.report import Report, percentile, ratio
from scripts.benchmarks.topics_clients import Found, measure
from scripts.benchmarks.topics_server import NODES, Plan

SLOT = 12.0
ATTESTATIONS = 30_000
ROUNDS = 3
LONG = 6
"""Slots over which memory is looked at."""
CLIENTS = ("facade", "aiohttp")
MOST_BUSY = 0.5
HEADS_LATE = 20.0


def run(report: Report, *, scale: float = 1.0, slot: float = SLOT, attestations: int = ATTESTATIONS) -> None:
    """Measure everything and report. `scale` multiplies how often."""
    report.text(
        f"{NODES} nodes tell of {attestations} attestations in each slot of {slot:.0f} s, each node in its own "
        "spelling and framing, and of a head twice a second. Each client is a process of its own with one event loop, "
        "and its reading task has each attestation and each head once. Delays are from the write in the nodes' process "
        "to that task."
    )
    rounds = max(1, int(ROUNDS * scale))
    for title, within, together in (
        ("evenly over the slot, each written by itself", slot, False),
        ("evenly over the slot, those of 20 ms in one write", slot, True),
        ("all in the first third of the slot, each written by itself", slot / 3, False),
    ):
        plan = Plan(1, slot, attestations, within, together)
        found: dict[str, list[Found]] = {client: [] for client in CLIENTS}
        for _ in range(rounds):
            for client, runs in found.items():
                runs.append(measure(client, plan))
        report.table(f"{title}; {rounds} slots of each client", _COLUMNS, _rows(found))
    report.text(
        f"The ratio is that of processor time to aiohttp's client, the median over {rounds} rounds, in brackets the "
        "quartiles. That client believes what it parses, checks no field, and keeps what it saw for ever."
    )
    _memory(report, Plan(max(2, int(LONG * scale)), slot, attestations, slot, together=False))


_COLUMNS = ("what", *CLIENTS, "aim")


def _rows(found: dict[str, list[Found]]) -> list[Sequence[object]]:
    def row(what: str, values: dict[str, object], aim: str | None = None) -> Sequence[object]:
        return (what, *(values.get(client) for client in CLIENTS), aim)

    def each(what: str, figure: str, part: float, aim: str | None = None) -> Sequence[object]:
        return row(
            what,
            {
                client: percentile([delay / 1000 for one in runs for delay in getattr(one, figure)] or [0.0], part)
                for client, runs in found.items()
            },
            aim,
        )

    busy = {client: [one.busy for one in runs] for client, runs in found.items()}
    per_event = {
        client: median(one.busy * one.lasted / max(1, one.received) * 1e6 for one in runs)
        for client, runs in found.items()
    }
    return [
        row(
            "share of a core, %",
            {client: median(shares) * 100 for client, shares in busy.items()},
            f"< {MOST_BUSY * 100:.0f}",
        ),
        row("processor time of an event of a node, µs", dict(per_event)),
        row("ratio", {"facade": ratio([[one] for one in busy["facade"]], [[one] for one in busy["aiohttp"]])}),
        each("head, p50, ms", "heads", 0.5),
        each("head, p99, ms", "heads", 0.99, f"< {HEADS_LATE:.0f}"),
        each("attestation, p50, ms", "votes", 0.5),
        each("attestation, p99, ms", "votes", 0.99),
        row("events of nodes", {client: sum(one.received for one in runs) for client, runs in found.items()}),
        row("of them told", {client: sum(one.told for one in runs) for client, runs in found.items()}),
        row(
            "attestations that were not told",
            {client: sum(one.sent - one.told for one in runs) for client, runs in found.items()},
            "0",
        ),
    ]


def _memory(report: Report, plan: Plan) -> None:
    found = {client: measure(client, plan) for client in CLIENTS}
    report.table(
        "memory of the process, MB",
        _COLUMNS,
        [
            ("before the first event" if slot == 0 else f"after slot {slot}", *values, None)
            for slot, values in enumerate(zip(*(one.memory for one in found.values()), strict=True))
        ],
    )
    facade = found["facade"]
    report.text(
        f"In these {plan.slots} slots the facade had {facade.received} events of nodes, told {facade.told}, dropped "
        f"{facade.dropped}, and took {facade.busy * 100:.0f} % of a core. It knows an attestation again for four slots."
    )
