"""Tasks beside the head streams: a mistake of our own in one costs nobody anything but time."""

import logging
from collections.abc import Awaitable, Callable

import anyio

from vc_fallback.base.backoff import Backoff, BackoffPolicy

logger = logging.getLogger(__name__)

Run = Callable[[], Awaitable[None]]


async def for_ever(run: Run, policy: Callable[[], BackoffPolicy]) -> None:
    """Run a task until it ends by itself: an unexpected error is logged, and it starts again with backoff."""
    backoff: Backoff | None = None
    while True:
        try:
            await run()
        except Exception:
            logger.exception("background task %s", getattr(run, "__qualname__", run))
        else:
            return
        backoff = backoff or Backoff(policy())
        await anyio.sleep(backoff.failed())


async def once(run: Run) -> None:
    """Run a task: an unexpected error is logged, and it is over."""
    try:
        await run()
    except Exception:
        logger.exception("background task")
