"""`vc-fallback devnet`: simulated beacon nodes as a process of their own."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from vc_fallback.base.errors import ConfigurationError
from vc_fallback.cli.run import Console, run_command

FAULTY = 3
"""Nodes that the faults need: one stalls, one dies, one freezes, each while the others serve on."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for; `slot_duration` in seconds, no ports for free ones."""

    count: int
    slot_duration: float
    host: str = "127.0.0.1"
    ports: Sequence[int] = ()
    framings: Sequence[str] = ("lighthouse",)
    faults: bool = False
    log_level: str = "info"


def devnet(options: Options) -> int:
    """Serve until a signal or the end of the reader; return 0.

    :raises ConfigurationError: for options that do not go together, naming the field.
    """
    if options.ports and len(options.ports) != options.count:
        raise ConfigurationError("--port", "one for each node is needed, or none")
    if options.faults and options.count < FAULTY:
        raise ConfigurationError("--faults", f"at least {FAULTY} nodes are needed")

    async def body(console: Console) -> int:
        await _serve(options, console)
        return 0

    return run_command(body, options.log_level)


async def _serve(options: Options, console: Console) -> None:
    from vc_fallback.testing import FRAMINGS, serve_devnet
    from vc_fallback.testing.demo import play

    failure: OSError | None = None

    async def serve() -> None:
        nonlocal failure
        try:
            await serve_devnet(
                options.count,
                slot_duration=options.slot_duration,
                host=options.host,
                ports=options.ports or None,
                framings=[name for wanted in options.framings for name in FRAMINGS if name == wanted],
                announce=console.out.write,
                script=play if options.faults else None,
            )
        except OSError as error:
            failure = error
            console.stop.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        await console.stop.wait()
        tasks.cancel_scope.cancel()
    if failure is not None:
        problem = os.strerror(failure.errno) if failure.errno else "cannot listen"
        raise ConfigurationError("--port" if options.ports else "--host", f"cannot listen there: {problem}")
