"""The table fits a terminal of any size, with and without colour, and leaves out what is least needed (O4)."""

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import Epoch, NodeId, Root, Slot, Tier
from vc_fallback.observe.table import render
from vc_fallback.observe.view import DeliveredRow, DutiesRow, Event, Row, View

A, B, C = NodeId("beacon.example.org:5052"), NodeId("beacon.example.org:5053"), NodeId("c:1")
ROOT, OTHER = Root(b"\xaa" * 32), Root(b"\xbb" * 32)
SLOT = Slot(12_345_678)

VIEW = View(
    slot=SLOT,
    epoch=Epoch(385_802),
    into_slot=3.21,
    generation=4,
    delivered=DeliveredRow(A, SLOT, ROOT, delay=0.312, age=2.9, votes=2),
    duties=DutiesRow(A, 61.0, failovers=2, failbacks=1, all_unhealthy=False),
    gate=f"held by {A}",
    rows=(
        Row(
            A,
            Tier.PRIMARY,
            "healthy",
            1,
            duties=True,
            state=StreamState.FRESH,
            fresh=True,
            slot=SLOT,
            root=ROOT,
            delay=0.312,
            lag=0,
            latency=0.0123,
            peers=87,
            reconnects=0,
            reason="current head",
        ),
        Row(
            B,
            Tier.PRIMARY,
            "unhealthy",
            2,
            state=StreamState.BACKOFF,
            fresh=False,
            slot=Slot(SLOT - 3),
            root=OTHER,
            delay=11.25,
            lag=3,
            latency=11.6,
            peers=3,
            reconnects=12,
            reason="3 failed checks in a row: refused",
        ),
        Row(C, Tier.FALLBACK, "quarantined", state=StreamState.CONNECTING, reason="preset differs"),
    ),
    events=tuple(
        Event("12:00:0" + str(number), "stream", f"event {number} " + "x" * 200, number == 1) for number in range(8)
    ),
)
EMPTY = View(None, None, None, 1, None, None, "", (), ())

ALL = "node tier health rank stream fresh slot root delay lag latency peers reconn. reason"


def drawn(view: View, width: int, height: int | None = None, *, no_color: bool = False) -> str:
    """Draw as on a terminal, escape sequences included."""
    file = io.StringIO()
    console = Console(
        file=file,
        force_terminal=True,
        color_system="256",
        no_color=no_color,
        _environ={},
        width=width,
        height=height or 200,
    )
    console.print(render(view, width, height))
    return file.getvalue()


def lines(view: View, width: int, height: int | None = None) -> list[str]:
    return render(view, width, height).plain.split("\n")


def titles(width: int, view: View = VIEW) -> str:
    (line,) = (line for line in lines(view, width) if line.startswith("node"))
    return " ".join(line.split())


@pytest.mark.parametrize("view", [VIEW, EMPTY, replace(VIEW, rows=()), replace(VIEW, slot=Slot(-5), epoch=None)])
def test_no_line_is_wider_than_the_terminal(view: View) -> None:
    for width in range(1, 200):
        for line in lines(view, width):
            assert cell_len(line) <= width, (width, line)


@pytest.mark.parametrize("view", [VIEW, EMPTY])
def test_there_are_no_more_lines_than_the_terminal_has(view: View) -> None:
    for height in range(1, 40):
        assert len(lines(view, 100, height)) <= height


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (160, ALL),
        (150, "node tier health rank stream fresh slot root delay lag latency peers reason"),
        (145, "node tier health rank stream fresh slot delay lag latency peers reason"),
        (125, "node tier health rank stream fresh slot delay lag reason"),
        (100, "node health rank stream slot delay lag reason"),
        (80, "node health rank stream fresh slot delay lag"),
        (60, "node health rank stream fresh slot lag"),
        (40, "node health rank stream"),
        (20, "node stream"),
        (4, "node"),
    ],
)
def test_narrow_terminals_show_the_columns_that_matter_most(width: int, expected: str) -> None:
    shown = titles(width).rstrip("…") if width > 9 else "node"
    assert shown == expected


def test_every_row_stands_under_its_titles() -> None:
    head, *rows = (line for line in lines(VIEW, 170) if line.startswith(("node", "beacon", "c:1")))
    for word, cells in (
        ("tier", ("primary", "primary", "fallback")),
        ("health", ("healthy", "unhealthy", "quarantined")),
        ("stream", ("fresh", "backoff", "connecting")),
        ("fresh", ("yes", "no", "-")),
    ):
        assert [row[head.index(word) :].split()[0] for row in rows] == list(cells)
    for word, numbers in (
        ("slot", ("12345678", "12345675", "-")),
        ("rank", ("*1", "2", "-")),
        ("lag", ("0", "3", "-")),
        ("peers", ("87", "3", "-")),
        ("delay", ("s", "s", "-")),
    ):
        end = head.index(word) + len(word)
        assert [row[:end].split()[-1] for row in rows] == list(numbers)
    assert [row[head.index("reason") :].rstrip() for row in rows] == [
        "current head",
        "3 failed checks in a row: refused",
        "preset differs",
    ]


def test_what_is_above_the_table() -> None:
    assert lines(VIEW, 120)[:5] == [
        "slot    12345678   +3.2 s   epoch 385802   generation 4",
        f"head    12345678   2 s old   0xaaaaaaaa   from {A}   delay +0.312 s   seen by 2",
        f"duties  {A}   for 1 min   failovers 2   failbacks 1",
        f"gate    held by {A}",
        "",
    ]
    assert lines(EMPTY, 120)[:3] == [
        "slot    the chain is not known yet   generation 1",
        "head    none delivered yet",
        "duties  no node has them yet",
    ]


def test_that_nobody_has_the_duties_or_is_healthy_stands_out() -> None:
    """N9, N10: requests go on to be tried in rank order."""
    nobody = replace(VIEW, duties=DutiesRow(None, 3.0, failovers=1, failbacks=0, all_unhealthy=False))
    assert lines(nobody, 120)[2] == "duties  no node   for 3 s   failovers 1   failbacks 0"
    alarm = replace(VIEW, duties=DutiesRow(C, 3.0, failovers=1, failbacks=0, all_unhealthy=True))
    assert lines(alarm, 120)[2] == "duties  c:1   no node is healthy   for 3 s   failovers 1   failbacks 0"
    assert lines(alarm, 32)[2] == "duties  c:1   no node is healthy"
    assert "\x1b[1;31mno node is healthy" in drawn(alarm, 120)


def test_what_is_above_the_table_is_left_out_piece_by_piece() -> None:
    assert lines(VIEW, 40)[1] == "head    12345678   2 s old   0xaaaaaaaa"
    assert lines(VIEW, 10)[1] == "head    1…"


def test_nodes_whose_names_are_cut_are_still_told_apart() -> None:
    names = [line.split()[0] for line in lines(VIEW, 60) if line.startswith("beac")]
    assert names == ["beaco…g:5052", "beaco…g:5053"]


def test_a_low_terminal_shows_fewer_events_and_then_fewer_nodes() -> None:
    assert [line[:8] for line in lines(VIEW, 80, 12)[-3:]] == ["", "12:00:06", "12:00:07"]
    many = replace(VIEW, rows=tuple(replace(VIEW.rows[0], node_id=NodeId(f"n{number}")) for number in range(50)))
    low = lines(many, 80, 13)
    assert len(low) == 13
    assert low[-2].split()[0] == "n5"
    assert low[-1] == "… and 44 more nodes"
    assert len(lines(many, 80)) == 6 + 50 + 1 + 8


def test_events_stand_below_cut_to_the_width() -> None:
    wide, narrow = lines(VIEW, 80)[-1], lines(VIEW, 60)[-1]
    assert wide.startswith("12:00:07  stream   event 7 xxx")
    assert narrow.startswith("12:00:07  event 7 xxx")
    assert wide.endswith("x…")
    assert (cell_len(wide), cell_len(narrow)) == (80, 60)


def test_wide_characters_keep_the_columns_in_place() -> None:
    named = replace(
        VIEW,
        rows=tuple(replace(row, node_id=NodeId("北京北京北京北京北京北京" + row.node_id[-1])) for row in VIEW.rows),
    )
    for width in range(1, 150):
        for line in lines(named, width):
            assert cell_len(line) <= width
    first, second = [line for line in lines(named, 120) if line.startswith("北")][:2]
    assert cell_len(first[: first.index("primary")]) == cell_len(second[: second.index("primary")])


def test_colour_is_only_a_second_way_to_say_it() -> None:
    """What a colour says stands there as a word, so without colour nothing is lost."""
    coloured, plain = drawn(VIEW, 120), drawn(VIEW, 120, no_color=True)
    assert "\x1b[32m" in coloured
    assert "\x1b[1;31m" in coloured
    for colour in range(30, 50):
        assert f"{colour}m" not in plain
    for word in ("healthy", "unhealthy", "quarantined", "fresh", "backoff", "*1", "yes", "no"):
        assert word in plain


@pytest.mark.parametrize(
    ("delay", "text"),
    [
        (0.0, "+0.000 s"),
        (-0.5, "-0.500 s"),
        (9.9994, "+9.999 s"),
        (11.25, "+11.2 s"),
        (-99.0, "-99.0 s"),
        (100.0, "+1 min"),
        (-400.0, "-6 min"),
        (1e9, "+11574 d"),
    ],
)
def test_delays_fit_their_column(delay: float, text: str) -> None:
    found = lines(replace(VIEW, rows=(replace(VIEW.rows[0], delay=delay),)), 120)[6]
    assert text in found
    assert len(text) <= 8


def test_another_root_in_the_slot_of_the_delivered_head_stands_out() -> None:
    branch = replace(VIEW, rows=(VIEW.rows[0], replace(VIEW.rows[0], root=OTHER)))
    assert "\x1b[33m0xbbbbbbbb" in drawn(branch, 170)
    assert "\x1b[33m0xaaaaaaaa" not in drawn(branch, 170)


@pytest.mark.parametrize(
    ("health", "style"),
    [
        ("healthy", "32"),
        ("suspect", "33"),
        ("recovering", "36"),
        ("unhealthy", "1;31"),
        ("quarantined", "1;35"),
        ("unknown", "2"),
    ],
)
def test_each_verdict_on_a_node_has_its_colour(health: str, style: str) -> None:
    one = replace(VIEW, rows=(replace(VIEW.rows[0], health=health),))
    assert f"\x1b[{style}m{health}" in drawn(one, 120)


@pytest.mark.parametrize(
    ("latency", "text"),
    [(0.0004, "0 ms"), (0.0123, "12 ms"), (1.5, "1500 ms"), (9.9994, "9999 ms"), (11.6, "12 s"), (None, "-")],
)
def test_latencies_fit_their_column(latency: float | None, text: str) -> None:
    head, row = lines(replace(VIEW, rows=(replace(VIEW.rows[0], latency=latency),)), 170)[5:7]
    end = head.index("latency") + len("latency")
    assert row[end - 7 : end].strip() == text
