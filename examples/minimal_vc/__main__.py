"""Do all duties of validators of a devnet, and write one JSON line for each, until Ctrl-C."""

import argparse
import logging
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio

import vc_fallback as vf
from examples.minimal_vc.client import run
from examples.minimal_vc.keys import Key, interop_key
from examples.minimal_vc.slashing_guard import GuardError, SlashingGuard


def _interop_keys(text: str) -> list[Key]:
    first, _, last = text.partition("..")
    try:
        keys = [interop_key(number) for number in range(int(first), int(last or first) + 1)]
    except ValueError:
        keys = []
    if not keys:
        raise argparse.ArgumentTypeError("numbers of keys are given as A..B, such as 0..7")
    return keys


async def _run(config: vf.FallbackConfig, keys: Sequence[Key], guard: SlashingGuard) -> None:
    observers = [vf.FailureLog()]
    async with vf.BeaconNodeFallback(config, observers=observers) as nodes, anyio.create_task_group() as tasks:
        tasks.start_soon(run, nodes, keys, guard, partial(print, flush=True))
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                tasks.cancel_scope.cancel()


def main() -> None:
    """Read the command line and run until a signal comes."""
    parser = argparse.ArgumentParser(prog="python -m examples.minimal_vc", description=__doc__)
    parser.add_argument("urls", nargs="*", metavar="URL", help="beacon nodes, best first")
    parser.add_argument("--fallback", action="append", default=[], metavar="URL", help="one for when these all fail")
    parser.add_argument("--config", type=Path, help="the library's configuration file, in the place of URLs")
    parser.add_argument("--interop", type=_interop_keys, required=True, metavar="A..B", help="numbers of the keys")
    parser.add_argument("--guard", type=Path, required=True, metavar="DIR", help="keeps what was signed last")
    given = parser.parse_args()
    if not (given.config or given.urls or given.fallback):
        parser.error("beacon nodes are needed: a URL, or --config")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    nodes = [{"url": url} for url in given.urls] + [{"url": url, "tier": "fallback"} for url in given.fallback]
    try:
        config = vf.FallbackConfig.load(given.config) if given.config else vf.FallbackConfig.of({"candidates": nodes})
        guard = SlashingGuard(given.guard)
    except (vf.ConfigurationError, GuardError) as error:
        parser.error(str(error))
    anyio.run(_run, config, given.interop, guard)


if __name__ == "__main__":
    main()
