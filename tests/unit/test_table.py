"""The table fits a terminal of any size, with and without colour, and leaves out what is least needed (O4)."""

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import Epoch, NodeId, Root, Slot, Tier
from vc_fallback.observe.board import DeliveredRow, Event, Row, View
from vc_fallback.observe.table import render

A, B, C = NodeId("beacon.example.org:5052"), NodeId("beacon.example.org:5053"), NodeId("c:1")
ROOT, OTHER = Root(b"\xaa" * 32), Root(b"\xbb" * 32)
SLOT = Slot(12_345_678)

VIEW = View(
    slot=SLOT,
    epoch=Epoch(385_802),
    into_slot=3.21,
    generation=4,
    delivered=DeliveredRow(A, SLOT, ROOT, delay=0.312, age=2.9, votes=2),
    gate=f"held by {A}",
    rows=(
        Row(A, Tier.PRIMARY, "healthy", StreamState.FRESH, SLOT, ROOT, 0.312, 0, 0, "current head"),
        Row(
            B,
            Tier.PRIMARY,
            "unhealthy",
            StreamState.BACKOFF,
            Slot(SLOT - 3),
            OTHER,
            11.25,
            3,
            12,
            "again in 4 s: broken",
        ),
        Row(C, Tier.FALLBACK, "quarantined", StreamState.CONNECTING, None, None, None, None, 0, "preset differs"),
    ),
    events=tuple(
        Event("12:00:0" + str(number), "stream", f"event {number} " + "x" * 200, number == 1) for number in range(8)
    ),
)
EMPTY = View(None, None, None, 1, None, "", (), ())

ALL = "node tier health stream slot root delay behind reconn. reason"


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
        (140, ALL),
        (120, "node tier health stream slot root delay behind reason"),
        (100, "node health stream slot delay behind reason"),
        (80, "node tier health stream slot delay behind"),
        (60, "node health stream slot delay behind"),
        (40, "node stream slot behind"),
        (20, "node stream"),
        (4, "node"),
    ],
)
def test_narrow_terminals_show_the_columns_that_matter_most(width: int, expected: str) -> None:
    shown = titles(width).rstrip("…") if width > 9 else "node"
    assert shown == expected


def test_every_row_stands_under_its_titles() -> None:
    head, *rows = (line for line in lines(VIEW, 140) if line.startswith(("node", "beacon", "c:1")))
    for word, cells in (
        ("tier", ("primary", "primary", "fallback")),
        ("health", ("healthy", "unhealthy", "quarantined")),
    ):
        assert [row[head.index(word) :].split()[0] for row in rows] == list(cells)
    for word, numbers in (
        ("slot", ("12345678", "12345675", "-")),
        ("behind", ("0", "3", "-")),
        ("delay", ("s", "s", "-")),
    ):
        end = head.index(word) + len(word)
        assert [row[:end].split()[-1] for row in rows] == list(numbers)
    assert [row[head.index("reason") :].rstrip() for row in rows] == [
        "current head",
        "again in 4 s: broken",
        "preset differs",
    ]


def test_what_is_above_the_table() -> None:
    assert lines(VIEW, 120)[:4] == [
        "slot  12345678   +3.2 s   epoch 385802   generation 4",
        f"head  12345678   2 s old   0xaaaaaaaa   from {A}   delay +0.312 s   seen by 2",
        f"gate  held by {A}",
        "",
    ]
    assert lines(EMPTY, 120)[:2] == [
        "slot  the chain is not known yet   generation 1",
        "head  none delivered yet",
    ]


def test_what_is_above_the_table_is_left_out_piece_by_piece() -> None:
    assert lines(VIEW, 40)[1] == "head  12345678   2 s old   0xaaaaaaaa"
    assert lines(VIEW, 8)[1] == "head  1…"


def test_nodes_whose_names_are_cut_are_still_told_apart() -> None:
    names = [line.split()[0] for line in lines(VIEW, 60) if line.startswith("beac")]
    assert names == ["beaco…g:5052", "beaco…g:5053"]


def test_a_low_terminal_shows_fewer_events_and_then_fewer_nodes() -> None:
    assert [line[:8] for line in lines(VIEW, 80, 11)[-3:]] == ["", "12:00:06", "12:00:07"]
    many = replace(VIEW, rows=tuple(replace(VIEW.rows[0], node_id=NodeId(f"n{number}")) for number in range(50)))
    low = lines(many, 80, 12)
    assert len(low) == 12
    assert low[-2].split()[0] == "n5"
    assert low[-1] == "… and 44 more nodes"
    assert len(lines(many, 80)) == 5 + 50 + 1 + 8


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
    for word in ("healthy", "unhealthy", "quarantined", "fresh", "backoff"):
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
    found = lines(replace(VIEW, rows=(replace(VIEW.rows[0], delay=delay),)), 120)[5]
    assert text in found
    assert len(text) <= 8


def test_another_root_in_the_slot_of_the_delivered_head_stands_out() -> None:
    branch = replace(VIEW, rows=(VIEW.rows[0], replace(VIEW.rows[0], root=OTHER)))
    assert "\x1b[33m0xbbbbbbbb" in drawn(branch, 140)
    assert "\x1b[33m0xaaaaaaaa" not in drawn(branch, 140)
