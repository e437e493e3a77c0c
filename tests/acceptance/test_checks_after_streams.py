"""A node that failed its checks opens its stream: it is checked at once, however late its next turn would be (N2)."""

import pytest

from tests.acceptance.harness import monitor
from vc_fallback.base.health import HealthState
from vc_fallback.base.health_signals import HealthChanged
from vc_fallback.base.signals import StreamReason
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


async def test_a_node_that_was_long_dead_is_checked_as_soon_as_its_stream_is_open() -> None:
    """N2: its checks come once in 60 s by then and its stream tries every 16 s, so that is what finds it alive."""
    async with simulated_devnet(4) as net, monitor(net) as followed:
        dead = list(net)[1:]
        await followed.until(130.2)
        for node in dead:
            await node.kill()
        await followed.until(160.5)
        restarted = followed.now
        for node in dead:
            node.restart()
        await followed.until(164.5)
        for node in dead:
            opened = next(
                change.at
                for change in followed.changes(node, since=restarted)
                if change.reason is StreamReason.RESPONSE
            )
            back = followed.told(HealthChanged, node, since=restarted)
            recovering = next(change.at for change in back if change.state is HealthState.RECOVERING)
            assert recovering <= opened + 0.1
            assert back[-1].state is HealthState.HEALTHY


async def test_a_node_that_streams_and_fails_its_checks_is_checked_ever_less_often() -> None:
    """N2: a stream that was opened asks for one check, not for one with every head."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.answer("/eth/v1/node/syncing", 503)
        await followed.until(150.5)
        await first.kill()
        first.restart()
        asked = len([request for request in first.requests if request.path == "/eth/v1/node/syncing"])
        await followed.until(160.5)
        assert first.name in followed.monitor.heads()
        asked = len([request for request in first.requests if request.path == "/eth/v1/node/syncing"]) - asked
        # One for the stream, and one every 60 s ± a fifth.
        assert 1 <= asked <= 1 + 120 / 48 + 1
