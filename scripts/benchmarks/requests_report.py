"""The requests' figures as tables."""

from itertools import groupby

from scripts.benchmarks import requests
from scripts.benchmarks.report import Report


def run(report: Report, *, scale: float = 1.0) -> None:
    """Measure and report. `scale` multiplies how often."""
    results = requests.run(scale=scale)
    for (backend, other), lines in groupby(results, key=lambda result: (result.backend, result.other)):
        report.table(
            f"{backend}: ours beside {other}, medians of the whole operation in microseconds",
            ("what", "ours", other, "ratio", "aim"),
            [(line.case, line.ours, line.theirs, line.ratio, f"≤ {line.aim}") for line in lines],
        )
