"""What the tests of the library's use share."""

import gc
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.acceptance.harness import candidate
from vc_fallback.config import FallbackConfig
from vc_fallback.node.client import BeaconNode
from vc_fallback.testing import SimulatedDevnet


class OwnError(Exception):
    """An error of a validator client."""


class OwnStop(BaseException):
    """What no `except Exception` catches."""


def config_of(net: SimulatedDevnet) -> FallbackConfig:
    return FallbackConfig.of({"candidates": [candidate(node) for node in net]})


def tasks_now() -> int:
    """Count the tasks of the event loop."""
    try:
        import trio

        return trio.lowlevel.current_statistics().tasks_living
    except RuntimeError:
        import asyncio

        return len(asyncio.all_tasks())


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - one descriptor less to count


@asynccontextmanager
async def nothing_left(net: SimulatedDevnet) -> AsyncIterator[None]:
    """See that the body leaves no task, no connection and no descriptor behind."""
    await anyio.sleep(0.1)
    before = tasks_now(), descriptors()
    yield
    for node in net:
        node.thaw()
    await anyio.sleep(0.1)
    gc.collect()
    assert [node.connections for node in net] == [0] * len(net)
    assert (tasks_now(), descriptors()) == before


def close_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let closing a node's connections take 0.8 s."""
    close = BeaconNode.aclose

    async def slow(self: BeaconNode) -> None:
        try:
            await anyio.sleep(0.8)
        finally:
            await close(self)

    monkeypatch.setattr(BeaconNode, "aclose", slow)
