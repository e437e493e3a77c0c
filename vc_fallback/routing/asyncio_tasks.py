"""Tasks on asyncio itself: a third of what one costs in a task group of anyio. Whoever starts one ends it."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any


def start(coroutine: Coroutine[Any, Any, None], ended: Callable[[], None], context: Context | None) -> object:
    """Start a task; it has to be kept by whoever starts it for as long as it runs.

    :param ended: called after its end, whatever happens: a task that is cancelled before its first step has none.
    :param context: context variables of the task, a copy of the present ones by default.
    """
    # Not by the event loop's factory: an eager one would run its first step here and now.
    task = asyncio.Task(coroutine, loop=asyncio.get_running_loop(), context=context)
    task.add_done_callback(lambda _: ended())
    return task
