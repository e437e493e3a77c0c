"""`vc-fallback monitor`: follow the heads of beacon nodes and say what is seen."""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import anyio

from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.signals import Observer, Signal, Started
from vc_fallback.cli.run import Console, run_command
from vc_fallback.observe.jsonl import JsonLines
from vc_fallback.observe.log import FailureLog
from vc_fallback.observe.plain import PlainLines

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for. `duration` in seconds, `slots` in wall-clock slots, `None` for no limit."""

    urls: Sequence[str]
    jsonl: bool = False
    duration: float | None = None
    slots: int | None = None
    demo: bool = False
    log_level: str = "info"


def monitor(options: Options) -> int:
    """Run until a limit, a signal or the end of the reader; return 0, or 1 when nothing was delivered.

    :raises ConfigurationError: for options that do not go together, naming the field.
    """
    if options.demo and options.urls:
        raise ConfigurationError("--demo", "follows simulated nodes of its own and takes no URL beside it")
    if not options.demo and not options.urls:
        raise ConfigurationError("candidates", "at least one URL of a beacon node is needed, or --demo")

    async def body(console: Console) -> int:
        return await _follow(options, console)

    return run_command(body, options.log_level)


async def _follow(options: Options, console: Console) -> int:
    # These take their time to load, and by now a signal is heeded.
    from vc_fallback.config import FallbackConfig
    from vc_fallback.heads.monitor import HeadMonitor

    clock = Clock()
    lines = (JsonLines if options.jsonl else PlainLines)(clock.unix, console.out.write)
    limit = anyio.CancelScope()
    observers: list[Observer] = [lines, FailureLog()]
    async with AsyncExitStack() as stack:
        urls = options.urls
        if options.demo:
            from vc_fallback.testing import demo_devnet

            net = await stack.enter_async_context(demo_devnet(clock=clock, note=_note))
            urls = net.urls
        if options.duration is not None:
            limit.deadline = clock.now() + options.duration
        if options.slots is not None:
            observers.append(_SlotLimit(options.slots, clock, limit))
        monitor = HeadMonitor(FallbackConfig.from_urls(urls), observers=observers, clock=clock)
        await stack.enter_async_context(monitor)
        with limit:
            await console.stop.wait()
    console.out.write(lines.summary(clock.now()), last=True)
    return 0 if lines.counts.delivered else 1


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
