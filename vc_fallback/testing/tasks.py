"""Background tasks that end with the body of their `async with`, whose own exception leaves unchanged."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskGroup]:
    """Run tasks beside the body; cancel and await them at its end.

    A task group by itself would wrap an exception of the body in an `ExceptionGroup`.

    :raises ExceptionGroup: of errors in the tasks.
    """
    failed: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised again below, outside the task group
            failed = error
        tasks.cancel_scope.cancel()
    if failed is not None:
        raise failed
