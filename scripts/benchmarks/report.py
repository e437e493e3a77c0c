"""Figures of a run: percentiles, ratios of interleaved rounds, tables, and the file they are kept in."""

import datetime as dt
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

KEPT = Path(__file__).parents[2] / "benchmarks"


def percentile(values: Iterable[float], part: float) -> float:
    """Return the value below which a part (0 to 1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def ratio(ours: Iterable[Sequence[float]], theirs: Iterable[Sequence[float]]) -> str:
    """Compare two series taken in turn, round by round.

    :returns: the median over the rounds of the ratio of their medians, and the quartiles beside it: how noisy it was.
    """
    ratios = [median(our) / median(their) for our, their in zip(ours, theirs, strict=True) if our and their]
    if not ratios:
        return ""
    return f"{median(ratios):.2f} ({percentile(ratios, 0.25):.2f}–{percentile(ratios, 0.75):.2f})"


class Report:
    """Prints as it goes, and can be kept."""

    def __init__(
        self,
        name: str,
        *,
        command: str = "",
        begun: dt.datetime | None = None,
        load: tuple[float, float] | None = None,
    ) -> None:
        """:param name: of the file, and of what `scripts/bench` measures unless it was another `command`.
        :param begun: when it began, if not now.
        :param load: the load average at the beginning and at the end, if not now's and that of the moment it is kept.
        """
        self._name = name
        self._command = command or f"scripts/bench {name}"
        self._lines: list[str] = []
        self._begun = begun or dt.datetime.now(dt.UTC)
        self._load: tuple[float, float | None] = load or (os.getloadavg()[0], None)

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._add(text, "")

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Add a table; floats are shown with three figures."""
        shown = [list(columns), *([_cell(value) for value in row] for row in rows)]
        widths = [max(len(row[column]) for row in shown) for column in range(len(columns))]
        lines = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
            for row in shown
        ]
        self._add(f"## {title}", "", lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        self._add(*lines[1:], "")

    def save(self) -> Path:
        """Keep it; return where."""
        KEPT.mkdir(exist_ok=True)
        file = KEPT / f"{self._name}.md"
        at_beginning, at_end = self._load
        where = (
            f"{self._begun:%Y-%m-%d %H:%M} UTC, {platform.python_implementation()} {platform.python_version()}, "
            f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, load average {at_beginning:.1f} at the "
            f"beginning and {os.getloadavg()[0] if at_end is None else at_end:.1f} at the end, niceness {os.nice(0)}."
        )
        head = [f"# `{self._command}`", "", where, ""]
        file.write_text("\n".join([*head, *self._lines]).rstrip() + "\n")
        return file

    def _add(self, *lines: str) -> None:
        self._lines += lines
        print("\n".join(lines), flush=True)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")
    return "" if value is None else str(value)
