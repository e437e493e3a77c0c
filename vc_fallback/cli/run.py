"""What every long-running command shares: its output, its logs, and how it is stopped."""

import logging
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio
from anyio.abc import TaskStatus

from vc_fallback.base.errors import ConfigurationError
from vc_fallback.cli.logs import LineHandler, logging_to
from vc_fallback.cli.output import Output
from vc_fallback.cli.stopping import HANGUP, STOPPING, released

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Console:
    """Where a command writes its lines, and the event that asks it to end: Ctrl-C, SIGTERM, or a reader that left."""

    out: Output
    logs: LineHandler
    stop: anyio.Event


def run_command(body: Callable[[Console], Awaitable[int]], log_level: str, *, takes_hangup: bool = False) -> int:
    """Run a command on asyncio and return its exit status: what `body` returns, or 2 for a bad configuration.

    :param takes_hangup: `body` heeds SIGHUP, which is held back until it does; else that has its default effect.
    """
    return anyio.run(_run, body, log_level, takes_hangup, backend="asyncio")


async def _run(body: Callable[[Console], Awaitable[int]], log_level: str, takes_hangup: bool) -> int:
    def dropped_logs(count: int) -> None:
        err.write(f"stderr is read too slowly: {count} lines dropped")

    def dropped_lines(count: int) -> None:
        logger.warning("stdout is read too slowly: %d lines dropped", count)

    err, out = Output(2, notice=dropped_logs), Output(1, notice=dropped_lines)
    stop = anyio.Event()
    async with anyio.create_task_group() as watchers:
        await watchers.start(_stop_on_signal, stop, STOPPING if takes_hangup else (*STOPPING, *HANGUP))
        watchers.start_soon(_stop_when_broken, out, stop)
        async with anyio.create_task_group() as logs:
            logs.start_soon(err.run)
            try:
                handler = LineHandler(err.write)
                with logging_to(handler, log_level):
                    status = await _with_output(body, Console(out, handler, stop))
                    if out.error is not None:
                        logger.error("stdout: %s", os.strerror(out.error.errno or 0))
                        status = 1
            except ConfigurationError as error:
                err.write(str(error))
                status = 2
            finally:
                err.close()
        watchers.cancel_scope.cancel()
    return status


async def _with_output(body: Callable[[Console], Awaitable[int]], console: Console) -> int:
    # The error of a body is taken out of the group, which would wrap it.
    failure: ConfigurationError | None = None
    status = 2
    async with anyio.create_task_group() as output:
        output.start_soon(console.out.run)
        try:
            status = await body(console)
        except ConfigurationError as error:
            failure = error
        finally:
            console.out.close()
    if failure is not None:
        raise failure
    return status


async def _stop_on_signal(
    stop: anyio.Event, let_through: Sequence[signal.Signals], *, task_status: TaskStatus[None]
) -> None:
    with anyio.open_signal_receiver(*STOPPING) as received, released(*let_through):
        task_status.started()
        async for _ in received:
            stop.set()


async def _stop_when_broken(out: Output, stop: anyio.Event) -> None:
    await out.wait_broken()
    stop.set()
