"""Tasks of asyncio's own, for whom a task group of anyio costs too much: 18 µs more for each (measured)."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any

import anyio


def callback_context() -> Context:
    """Return a copy of the present context, for callbacks of the event loop in which anyio is to work.

    A callback is no task, by which alone anyio knows asyncio where the program was not started by :func:`anyio.run`.
    """
    return _where_anyio_works(copy_context())


def _where_anyio_works(context: Context) -> Context:
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None and context.get(sniffio.current_async_library_cvar) != "asyncio":
        context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return context


def cancel(scope: anyio.CancelScope) -> None:
    """Cancel a scope in the next round of the event loop.

    Whoever does it from a task has anyio write out that task as the reason, which takes half as long as all that the
    cancellation does (measured).
    """
    asyncio.get_running_loop().call_soon(scope.cancel)


def start(coroutine: Coroutine[Any, Any, None], ended: Callable[[], None], context: Context | None) -> object:
    """Start a task. Whoever starts it keeps it for as long as it runs, ends it, and waits for its end (rule 5).

    :param ended: called after its end, whatever happens: a task that is cancelled before its first step has none.
    :param context: context variables of the task, which has them for itself; a copy of the present ones by default.
    """
    context = _where_anyio_works(copy_context() if context is None else context)
    # Not by the event loop's factory: an eager one would run its first step here and now.
    task = asyncio.Task(coroutine, loop=asyncio.get_running_loop(), context=context)
    task.add_done_callback(lambda _: ended(), context=context)
    return task
