"""The table: a board's view as text for a terminal of any size.

Lines are laid out here and not by rich's own tables: those take 55 ms of the event loop for 40 nodes, these take 6.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from vc_fallback.base.signals import StreamState
from vc_fallback.observe.narration import short
from vc_fallback.observe.view import DeliveredRow, DutiesRow, Event, Row, View, age

_IMPORTANCE: Final = (
    "node", "health", "stream", "slot", "rank", "lag", "delay", "reason", "tier", "fresh", "latency", "peers", "root",
    "reconn.",
)  # fmt: skip
"""The columns by how much they are needed; a narrow terminal shows the first of them."""

WIDE: Final = 80
"""Columns of a terminal from which on two blanks stand between the columns of the table."""

LEAST_REASON: Final = 16
"""Columns below which a reason says nothing."""

GOOD_REASON: Final = 24
"""Columns that the reason keeps before what is nice to know finds room."""

_NICE: Final = frozenset({"latency", "peers", "root", "reconn."})

Piece = tuple[str, str]
"""A text without line breaks, and its style."""

Line = list[Piece]

_GOOD, _BAD, _WAITS, _QUIET, _LABEL = "green", "bold red", "yellow", "dim", "dim"

_HEALTH = {
    "healthy": _GOOD,
    "suspect": _WAITS,
    "recovering": "cyan",
    "unhealthy": _BAD,
    "quarantined": "bold magenta",
    "unknown": _QUIET,
}
_FRESH = {True: ("yes", _GOOD), False: ("no", _BAD), None: ("-", _QUIET)}
_STATES = {
    StreamState.FRESH: _GOOD,
    StreamState.OPEN: "",
    StreamState.STALLED: _BAD,
    StreamState.BACKOFF: _BAD,
    StreamState.STOPPED: _QUIET,
}


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    cell: Callable[[Row], Piece]
    width: int
    right: bool = False
    middle: bool = False
    """What is too long is cut in its middle."""


def render(view: View, width: int, height: int | None = None) -> Text:
    """Lay a view out.

    In a narrow terminal the least important columns are left out, in a low one events and then nodes.

    :param width: columns of the terminal.
    :param height: its lines; `None` for as many as it takes.
    """
    width = max(1, width)
    top = [_clock(view, width), _delivered(view.delivered, width), _duties(view.duties, width)]
    if view.gate:
        top.append(_fit([("gate    ", _LABEL), (view.gate, _WAITS if view.gate.startswith("open") else "")], width))
    top.append([])
    rows, events = _share(len(view.rows), len(view.events), None if height is None else height - len(top) - 1)
    lines = [*top, *_rows(view, width, rows)]
    if events:
        lines += [[], *(_event(event, width) for event in view.events[-events:])]
    text = Text(no_wrap=True, overflow="crop", end="")
    for number, line in enumerate(lines if height is None else lines[: max(1, height)]):
        text.append("\n" if number else "")
        for piece, style in line:
            text.append(piece, style or None)
    return text


def _share(rows: int, events: int, lines: int | None) -> tuple[int, int]:
    """Share the lines below the titles out: how many lines for nodes, and how many events."""
    if lines is None:
        return rows, events
    events = max(0, min(events, lines - rows - 1))
    if not events:
        rows = max(1, min(rows, lines))
    return rows, events


def _rows(view: View, width: int, most: int) -> list[Line]:
    columns = _columns(view, width)
    gap = " " * _gap(width)
    titles: Line = []
    for column, cells in columns:
        titles += [(gap if titles else "", ""), (_cell(column.title, cells, column), "bold")]
    lines = [titles]
    # The last line says how many nodes there is no room for.
    shown = view.rows if len(view.rows) <= most else view.rows[: max(0, most - 1)]
    for row in shown:
        line: Line = []
        for column, cells in columns:
            text, style = column.cell(row)
            line += [(gap if line else "", ""), (_cell(text, cells, column), style)]
        lines.append(line)
    if len(shown) < len(view.rows):
        lines.append(_fit([(f"… and {len(view.rows) - len(shown)} more nodes", _QUIET)], width))
    return lines


def _gap(width: int) -> int:
    return 2 if width >= WIDE else 1


def _columns(view: View, width: int) -> list[tuple[_Column, int]]:
    """Choose the columns that fit, the most important ones first; the reason takes what is left."""
    made = {column.title: column for column in _all_columns(view, width)}
    gap = _gap(width)
    chosen: dict[str, int] = {}
    left = width + gap
    for title in _IMPORTANCE:
        wanted = made[title].width + gap
        kept = GOOD_REASON - LEAST_REASON if title in _NICE and "reason" in chosen else 0
        if wanted + kept <= left:
            chosen[title] = made[title].width
            left -= wanted
        elif "reason" in chosen:
            # What is left is better spent on the reason than on a column that matters less.
            break
    if "reason" in chosen:
        chosen["reason"] += left
    return [(column, chosen[title]) for title, column in made.items() if title in chosen]


def _all_columns(view: View, width: int) -> list[_Column]:
    delivered, rows = view.delivered, view.rows

    def node(row: Row) -> Piece:
        return row.node_id, "bold" if delivered is not None and row.node_id == delivered.node_id else ""

    def root(row: Row) -> Piece:
        if row.root is None:
            return "-", _QUIET
        other = delivered is not None and row.slot == delivered.slot and row.root != delivered.root
        return short(row.root), _WAITS if other else _QUIET

    longest = max((cell_len(row.node_id) for row in rows), default=0)
    return [
        # Node ids are told apart by their ends as well as by their beginnings.
        _Column("node", node, max(4, min(longest, max(9, width // 5))), middle=True),
        _Column("tier", lambda row: (str(row.tier), ""), 8),
        _Column("health", lambda row: (row.health, _HEALTH.get(row.health, "")), 11),
        _Column("rank", _rank, 4, right=True),
        _Column("stream", _state, 10),
        _Column("fresh", lambda row: _FRESH[row.fresh], 5),
        _Column(
            "slot", lambda row: _number(row.slot), max(4, *(len(str(row.slot or 0)) for row in rows), 4), right=True
        ),
        _Column("root", root, 10),
        _Column("delay", lambda row: ("-", _QUIET) if row.delay is None else (_delay(row.delay), ""), 8, right=True),
        _Column("lag", lambda row: _number(row.lag, _WAITS if row.lag else _QUIET), 3, right=True),
        _Column("latency", _latency, 7, right=True),
        _Column("peers", lambda row: _number(row.peers), 5, right=True),
        _Column("reconn.", lambda row: _number(row.reconnects, "" if row.reconnects else _QUIET), 7, right=True),
        _Column("reason", lambda row: (row.reason, ""), LEAST_REASON),
    ]


def _state(row: Row) -> Piece:
    return ("-", _QUIET) if row.state is None else (str(row.state), _STATES.get(row.state, _WAITS))


def _rank(row: Row) -> Piece:
    """Return its place, with a mark on the node that has the duties."""
    if row.rank is None:
        return "-", _QUIET
    return ("*" if row.duties else "") + str(row.rank), "bold" if row.duties else ""


def _latency(row: Row) -> Piece:
    if row.latency is None:
        return "-", _QUIET
    return f"{row.latency * 1000:.0f} ms" if row.latency < 9.9995 else f"{row.latency:.0f} s", ""


def _number(value: int | None, style: str = "") -> Piece:
    return ("-", _QUIET) if value is None else (str(value), style)


def _delay(seconds: float) -> str:
    """Return a delay in at most eight characters."""
    if abs(seconds) < 10:
        return f"{seconds:+.3f} s"
    return f"{seconds:+.1f} s" if abs(seconds) < 100 else f"{'+' if seconds > 0 else '-'}{age(abs(seconds))}"


def _clock(view: View, width: int) -> Line:
    pieces: list[Line] = []
    if view.slot is None or view.into_slot is None:
        pieces.append([("slot    ", _LABEL), ("the chain is not known yet", _WAITS)])
    else:
        pieces.append([("slot    ", _LABEL), (str(view.slot), "bold")])
        pieces.append([(f"+{view.into_slot:.1f} s", "")])
        if view.epoch is not None:
            pieces.append([("epoch ", _LABEL), (str(view.epoch), "")])
    pieces.append([("generation ", _LABEL), (str(view.generation), "")])
    return _join(pieces, width)


def _delivered(delivered: DeliveredRow | None, width: int) -> Line:
    if delivered is None:
        return _fit([("head    ", _LABEL), ("none delivered yet", _WAITS)], width)
    return _join(
        [
            [("head    ", _LABEL), (str(delivered.slot), "bold")],
            [(f"{age(delivered.age)} old", "")],
            [(short(delivered.root), "")],
            [("from ", _LABEL), (delivered.node_id, "bold")],
            [("delay ", _LABEL), (_delay(delivered.delay), "")],
            [("seen by ", _LABEL), (str(delivered.votes), "")],
        ],
        width,
    )


def _duties(duties: DutiesRow | None, width: int) -> Line:
    label = ("duties  ", _LABEL)
    if duties is None:
        return _fit([label, ("no node has them yet", _WAITS)], width)
    pieces: list[Line] = [[label, (duties.node_id, "bold") if duties.node_id is not None else ("no node", _BAD)]]
    if duties.all_unhealthy:
        pieces.append([("no node is healthy", _BAD)])
    pieces.append([("for ", _LABEL), (age(duties.age), "")])
    pieces.append([("failovers ", _LABEL), (str(duties.failovers), "")])
    pieces.append([("failbacks ", _LABEL), (str(duties.failbacks), "")])
    return _join(pieces, width)


def _event(event: Event, width: int) -> Line:
    kind = f"{event.kind:<7}  " if width >= WIDE else ""
    return _fit([(f"{event.time}  {kind}", _QUIET), (event.text, "red" if event.bad else "")], width)


def _join(pieces: Sequence[Line], width: int) -> Line:
    """Put pieces beside each other, leaving out from the first on that finds no room."""
    line: Line = []
    for piece in pieces:
        longer = [*line, ("   ", ""), *piece] if line else piece
        if sum(cell_len(text) for text, _ in longer) > width:
            return line or _fit(piece, width)
        line = longer
    return line


def _fit(line: Line, width: int) -> Line:
    """Cut a line to a width."""
    fitting: Line = []
    left = width
    for text, style in line:
        length = cell_len(text)
        if length > left:
            fitting.append((_cut(text, left), style))
            break
        fitting.append((text, style))
        left -= length
    return fitting


def _cell(text: str, width: int, column: _Column) -> str:
    length = cell_len(text)
    if length > width:
        if not column.middle:
            return _cut(text, width)
        end = text[len(text) - width // 2 :]
        while cell_len(end) > width // 2:
            end = end[1:]
        return _cut(text, width - cell_len(end)) + end
    return " " * (width - length) + text if column.right else text + " " * (width - length)


def _cut(text: str, width: int) -> str:
    return set_cell_size(text, width - 1) + "…" if width > 0 else ""
