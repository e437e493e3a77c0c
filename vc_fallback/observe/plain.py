"""Plain lines, for people: delivered heads, turns of streams and health worth knowing, and a table at the end."""

from collections.abc import Callable

from vc_fallback.base.signals import Signal
from vc_fallback.observe.counts import Counts
from vc_fallback.observe.narration import Narration, time_of_day


class PlainLines:
    """An observer that writes a readable line for what a person wants to see (:class:`Narration`).

    :param unix: turns loop time into Unix time in seconds (:meth:`Clock.unix`). Times are shown in UTC.
    :param write: takes one line without its line break; it must not wait and may not fail.
    """

    def __init__(self, unix: Callable[[float], float], write: Callable[[str], None]) -> None:
        self.counts = Counts()
        self._unix = unix
        self._narration = Narration(unix)
        self._write = write

    def __call__(self, signal: Signal) -> None:
        """Write the line of a signal, where it has one."""
        self.counts(signal)
        told = self._narration(signal)
        if told is not None:
            kind, text = told
            self._write(f"{time_of_day(self._unix(signal.at))}  {kind:<6}  {text}".rstrip())

    def summary(self, at: float) -> str:
        """Return the table of the end, in several lines; `at` is loop time."""
        return summary(self.counts, time_of_day(self._unix(at)))


def summary(counts: Counts, time: str) -> str:
    """Return what was counted, as a table of several lines for people; `time` is a time of day."""
    names = [str(node_id) for node_id in counts.nodes]
    width = max([len("node"), *map(len, names)])
    moves = f"{_many(counts.failovers, 'failover')}, {_many(counts.failbacks, 'failback')}"
    rows = [
        f"{time}  end     {counts.delivered} heads delivered, {moves}",
        f"  {'node':<{width}}  {'heads':>7}  {'reconnects':>10}  {'stalls':>6}  {'last slot':>10}",
    ]
    for name, node in zip(names, counts.nodes.values(), strict=True):
        last = "-" if node.last_slot is None else str(node.last_slot)
        rows.append(f"  {name:<{width}}  {node.heads:>7}  {node.reconnects:>10}  {node.stalls:>6}  {last:>10}")
    return "\n".join(rows)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
