"""Draws `docs/table.svg`: the table of a demo's run, as it stands when one node has stalled and another has died.

python -m scripts.table_picture [FILE]
"""

import html
import io
import re
import sys
from pathlib import Path

import anyio
from rich.cells import cell_len
from rich.console import Console
from rich.terminal_theme import MONOKAI

from vc_fallback.base.clock import Clock
from vc_fallback.config import FallbackConfig
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.observe.board import Board
from vc_fallback.observe.table import render
from vc_fallback.observe.view import View
from vc_fallback.observe.vitals import vitals
from vc_fallback.testing import demo_devnet

FILE = Path(__file__).parents[1] / "docs" / "table.svg"
WIDTH = 128
"""Columns of the picture."""
CELL = 12.2
"""Width of a character in rich's template."""
SLOTS = 10.6
"""Slots of the demo until the picture is taken: the second node is back, the third one is away."""


async def run() -> View:
    """Follow the demo and return what the table shows at that moment."""
    clock = Clock()
    board = Board(clock.unix)
    async with demo_devnet(clock=clock) as net:
        config = FallbackConfig.of({"candidates": [{"name": node.name, "url": node.url} for node in net]})
        async with HeadMonitor(config, observers=[board], clock=clock) as monitor:
            # The demo's first cycle starts with the slot after this one.
            start = net.chain.slots.start_of(net.chain.slots.slot_at(clock.now()))
            await anyio.sleep_until(start + (1 + SLOTS) * net.chain.slots.duration)
            listed = [(member.node_id, member.tier) for member in monitor.candidates.current.members.values()]
            return board.view(clock.now(), monitor.slots, listed, vitals(monitor.cache.book, clock.now()))


def picture(view: View) -> str:
    """Return an SVG image that fetches nothing: the fonts that rich's template loads from elsewhere are left out.

    Blanks around texts are put into their places, since not every viewer draws them.
    """
    console = Console(file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor")
    console.print(render(view, WIDTH))
    svg = console.export_svg(title="vc-fallback monitor --demo", theme=MONOKAI, unique_id="table")
    svg = re.sub(r"\s*@font-face \{.*?\}|\s*<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r'(<text class="[^"]*" x=")([0-9.]+)(" y="[^"]*" textLength=")[0-9.]+("[^>]*>)([^<]*)</text>', _placed, svg
    )
    return svg.replace("Fira Code, monospace", "'DejaVu Sans Mono', Menlo, Consolas, monospace")


def _placed(match: re.Match[str]) -> str:
    before, x, between, after, blanks_and_text = match.groups()
    text = html.unescape(blanks_and_text)
    shown = text.strip()
    if not shown:
        return ""
    left = float(x) + CELL * (len(text) - len(text.lstrip()))
    content = html.escape(shown.replace("\N{NO-BREAK SPACE}", " "), quote=False).replace(" ", "&#160;")
    return f"{before}{left:.1f}{between}{CELL * cell_len(shown):.1f}{after}{content}</text>"


def main() -> None:
    """Write the file."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    file.write_text(picture(anyio.run(run)))
    print(f"{file}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
