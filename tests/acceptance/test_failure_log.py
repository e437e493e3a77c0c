"""What the log says while a real monitor loses a simulated node and finds it again (H9)."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from vc_fallback import FailureLog, FallbackConfig, HeadMonitor, Observer, Signal, StreamChanged
from vc_fallback.observe import log as log_module
from vc_fallback.testing import SimulatedDevnet, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


class Failures:
    """An observer that waits for a node's ninth failure in a row."""

    def __init__(self, node: SimulatedNode) -> None:
        self.nine = anyio.Event()
        self._node_id = node.url.removeprefix("http://")

    def __call__(self, signal: Signal) -> None:
        if isinstance(signal, StreamChanged) and signal.node_id == self._node_id and signal.failures == 9:
            self.nine.set()


@asynccontextmanager
async def followed() -> AsyncIterator[tuple[SimulatedDevnet, Failures]]:
    """Three nodes that have been followed for two slots, the failures of the third counted."""
    async with simulated_devnet(3, slot_duration=12) as net:
        failures = Failures(net[2])
        observers: list[Observer] = [FailureLog(), failures]
        async with HeadMonitor(FallbackConfig.from_urls(net.urls), observers=observers, clock=net.clock):
            await anyio.sleep(30)
            yield net, failures


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == log_module.__name__ and record.levelno == level
    ]


async def test_nine_failures_warn_at_one_two_four_and_eight_and_the_return_is_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Scenario 51."""
    caplog.set_level(logging.DEBUG)
    async with followed() as (net, failures):
        assert lines(caplog, logging.WARNING) == []
        await net[2].kill()
        begun = anyio.current_time()
        await failures.nine.wait()
        warnings = [text for text in lines(caplog, logging.WARNING) if "stream" in text]
        assert [text.split("failure ")[1].split()[0] for text in warnings] == ["1", "2", "4", "8"]
        net[2].restart()
        loud, before = len(lines(caplog, logging.WARNING)), len(lines(caplog, logging.INFO))
        await anyio.sleep(60)
        gone = anyio.current_time() - begun
        assert len(lines(caplog, logging.WARNING)) == loud
        # Its health and its stream, one line each, in either order.
        back, healthy = sorted(lines(caplog, logging.INFO)[before:])
    assert "healthy again after" in healthy
    assert "fresh again after" in back
    assert 60 < float(back.split("after ")[1].split()[0]) < gone


async def test_a_node_that_ends_its_stream_cleanly_is_not_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with followed() as (net, _):
        net[2].end_streams()
        await anyio.sleep(30)
    assert lines(caplog, logging.WARNING) == []
    assert any("stream lost: ended" in text for text in lines(caplog, logging.DEBUG))


async def test_a_stall_is_one_warning_and_its_end_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with followed() as (net, _):
        net[1].silence()
        await anyio.sleep(100)
        net[1].resume()
        await anyio.sleep(60)
    assert sum("stream stalled" in text for text in lines(caplog, logging.WARNING)) == 1
    assert sum("fresh again after" in text for text in lines(caplog, logging.INFO)) == 1
