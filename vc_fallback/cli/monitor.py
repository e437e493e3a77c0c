"""`vc-fallback monitor`: follow the heads of beacon nodes and say what is seen."""

import logging
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio

from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.signals import Observer, Signal, Started
from vc_fallback.cli.run import Console, run_command
from vc_fallback.observe.jsonl import JsonLines
from vc_fallback.observe.log import FailureLog
from vc_fallback.observe.plain import PlainLines

if TYPE_CHECKING:
    from vc_fallback.cli.screen import Screen

logger = logging.getLogger(__name__)


Lines = JsonLines | PlainLines

Form = Literal["auto", "table", "plain", "jsonl"]
"""How a run is shown; `auto` is a table on a terminal and plain lines elsewhere."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for. `duration` in seconds, `slots` in wall-clock slots, `None` for no limit."""

    urls: Sequence[str] = ()
    fallbacks: Sequence[str] = ()
    config: Path | None = None
    form: Form = "auto"
    duration: float | None = None
    slots: int | None = None
    demo: bool = False
    log_level: str = "info"


def monitor(options: Options) -> int:
    """Run until a limit, a signal or the end of the reader; return 0, or 1 when nothing was delivered.

    :raises ConfigurationError: for options that do not go together, naming the field.
    """
    urls = bool(options.urls or options.fallbacks)
    if options.config is not None and (urls or options.demo):
        raise ConfigurationError("--config", "the nodes stand in the file: no URL, --fallback or --demo goes beside it")
    if options.demo and urls:
        raise ConfigurationError("--demo", "follows simulated nodes of its own and takes no URL beside it")
    if not (options.demo or urls or options.config is not None):
        raise ConfigurationError("candidates", "at least one URL of a beacon node is needed, or --config, or --demo")

    async def body(console: Console) -> int:
        return await _follow(options, console)

    return run_command(body, options.log_level, takes_hangup=options.config is not None)


async def _follow(options: Options, console: Console) -> int:
    # These take their time to load, and by now a signal is heeded.
    from vc_fallback.cli.reload import load, reload_on_hangup
    from vc_fallback.config import FallbackConfig
    from vc_fallback.heads.monitor import HeadMonitor

    clock = Clock()
    limit = anyio.CancelScope()
    async with AsyncExitStack() as stack:
        if options.config is not None:
            config = load(options.config)
        elif options.demo:
            from vc_fallback.testing import demo_devnet

            net = await stack.enter_async_context(demo_devnet(clock=clock, note=_note))
            # Their own names, which the notes of what is done to them use.
            config = FallbackConfig.of({"candidates": [{"name": node.name, "url": node.url} for node in net]})
        else:
            config = FallbackConfig.of(
                {"candidates": [*_in_tier(options.urls), *_in_tier(options.fallbacks, "fallback")]}
            )
        if options.duration is not None:
            limit.deadline = clock.now() + options.duration
        show, observers = _show(options.form, console, clock, stack)
        if options.slots is not None:
            observers.append(_SlotLimit(options.slots, clock, limit))
        monitor = HeadMonitor(config, observers=observers, clock=clock)
        await stack.enter_async_context(monitor)
        if not isinstance(show, Lines):
            await stack.enter_async_context(show.drawing(monitor))
        async with anyio.create_task_group() as tasks:
            if options.config is not None:
                tasks.start_soon(reload_on_hangup, options.config, config, monitor)
            with limit:
                await console.stop.wait()
            tasks.cancel_scope.cancel()
    console.out.write(show.summary(clock.now()), last=True)
    return 0 if show.counts.delivered else 1


def _show(form: Form, console: Console, clock: Clock, stack: AsyncExitStack) -> "tuple[Lines | Screen, list[Observer]]":
    """Return what shows the run, and the observers of it."""
    if form in ("auto", "table") and _is_terminal():
        from vc_fallback.cli.screen import Screen

        screen = Screen(console.out, clock)
        if not os.isatty(2):
            return screen, [screen, FailureLog()]
        # The log would tear the table. What the failure log says of signals, the events below the table say too.
        stack.enter_context(console.logs.diverted(screen.note))
        return screen, [screen]
    if form == "table":
        logger.warning("a table needs a terminal that can be drawn on: plain lines instead")
    lines = (JsonLines if form == "jsonl" else PlainLines)(clock.unix, console.out.write)
    return lines, [lines, FailureLog()]


def _is_terminal() -> bool:
    return os.isatty(1) and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def _in_tier(urls: Sequence[str], tier: str = "primary") -> list[dict[str, str]]:
    return [{"url": url, "tier": tier} for url in urls]


def _note(text: str) -> None:
    logger.info("demo: %s", text)


class _SlotLimit:
    """An observer that ends the run so many wall-clock slots after its start, once the chain says when that is."""

    def __init__(self, slots: int, clock: Clock, limit: anyio.CancelScope) -> None:
        self._slots = slots
        self._clock = clock
        self._limit = limit
        self._begun = clock.unix()

    def __call__(self, signal: Signal) -> None:
        if isinstance(signal, Started) and signal.genesis_time is not None and signal.slot_duration is not None:
            # There are no slots before genesis.
            end = max(self._begun, signal.genesis_time) + self._slots * signal.slot_duration
            self._limit.deadline = min(self._limit.deadline, self._clock.at(end))
