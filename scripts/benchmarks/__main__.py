"""`scripts/bench`: measures one thing and prints it; `--save` keeps it in `benchmarks/`."""

import argparse
from collections.abc import Sequence

from scripts.benchmarks import api, faults, heads, health, requests_report, routing, sse, topics
from scripts.benchmarks.report import Report

RUNS = {
    "sse": sse,
    "heads": heads,
    "requests": requests_report,
    "api": api,
    "health": health,
    "routing": routing,
    "topics": topics,
    "faults": faults,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "what",
        choices=RUNS,
        help="events, many nodes, requests, typed calls, health, the facade, every attestation, real nodes that fail",
    )
    parser.add_argument("--save", action="store_true", help="keep the result as benchmarks/<what>.md")
    parser.add_argument("--scale", type=float, default=1.0, help="how many times as often everything is measured")
    options = parser.parse_args(arguments)
    report = Report(options.what)
    RUNS[options.what].run(report, scale=options.scale)
    if options.save:
        report.save()


if __name__ == "__main__":
    main()
