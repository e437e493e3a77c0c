"""The benchmarks run and find what they look for; how fast is measured by `scripts/bench`, not by tests."""

from pathlib import Path

import anyio
import pytest

from scripts.benchmarks import crowd, decisions, health_book, report, sse
from scripts.benchmarks.crowd import Size
from scripts.benchmarks.health_round import rounds
from scripts.benchmarks.report import Report
from scripts.benchmarks.server import Pattern


def test_a_ratio_is_the_median_over_rounds() -> None:
    """A round in which the machine was busy does not count."""
    ours, theirs = [[1.0, 9.0, 1.0], [1.0], [50.0]], [[2.0], [2.0, 2.0], [2.0]]
    assert report.ratio(ours, theirs) == "0.50 (0.50–25.00)"
    assert report.percentile([3.0, 1.0, 2.0], 0.99) == 3.0


def test_a_report_is_kept_without_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is a table that can be read, and names neither the machine nor its paths."""
    monkeypatch.setattr(report, "KEPT", tmp_path)
    kept = Report("sse")
    kept.table("title", ("what", "figure"), [("a", 0.1234), ("b", 1234.5), ("c", None)])
    text = kept.save().read_text()
    assert "| a    | 0.123  |\n| b    | 1234   |\n| c    |        |" in text
    assert str(Path.home()) not in text


@pytest.mark.parametrize("pattern", ["distinct", "same"])
def test_every_client_has_its_heads(pattern: Pattern) -> None:
    """Each in its turn; what a busy machine makes it miss is counted."""
    found = sse.measure("asyncio", 2, pattern, heads=4, slot=0.05)
    assert list(found.rounds) == ["bare", "aiohttp", "monitor"]
    for client, (delays,) in found.rounds.items():
        assert len(delays) + found.overtaken[client] == 4
        assert delays
        assert all(0 < delay < 5e6 for delay in delays)


def test_trio_has_its_client() -> None:
    """The monitor alone: the others are asyncio's."""
    assert sse.measure("trio", 2, "same", heads=3, slot=0.05).rounds["monitor"][0]


def test_a_crowd_is_measured() -> None:
    """Memory, time and deliveries of several nodes and subscribers, and changes of their list."""
    few = anyio.run(crowd.delivery, (Size(3, 2), Size(2, 1)), 3, 0.05)
    assert all(delays for delays in few)
    changed = anyio.run(crowd.changes, 4, 2, 0.05)
    assert len(changed.opened) == 2
    assert changed.otherwise


def test_decisions_are_of_every_kind() -> None:
    """A fallback's head is held back, the first primary's is delivered, the others' are votes."""
    assert set(decisions.decisions(4, 1)) == {"tier", "delivered", "duplicate", "no holder"}
    assert min(anyio.run(decisions.watch, 2, 2) + anyio.run(decisions.event, 2, 2)) > 0


def test_rounds_of_checks_end_with_the_time_out_of_those_that_hang() -> None:
    """Every node is checked in every round; only those that hang take as long."""
    found = anyio.run(rounds, 4, 1, 2, 1)
    assert [len(found.first), len(found.later)] == [1, 1]
    for one in (*found.first, *found.later):
        assert 0 < one.answered < 1.5 <= one.ended
        assert one.held > 0
        assert one.away > 0


def test_the_book_of_health_is_measured() -> None:
    """What is kept of a node is more than of a new one, and comes to an end."""

    async def measure() -> None:
        assert all(times for times in (health_book.ranking(4, 2) | health_book.book(4, 2)).values())
        new, full, later = health_book.memory(4, 60)
        assert new < full
        assert later < full * 1.2

    anyio.run(measure)
