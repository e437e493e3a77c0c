"""Counts of head streams and of subscriptions, as they are documented."""

import pytest

from tests.acceptance.harness import monitor
from vc_fallback.base.buffered import SubscriptionStatistics
from vc_fallback.heads.statistics import StreamStatistics
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


async def test_counts_of_a_stream_over_all_its_connections() -> None:
    """Opens, heads, comments, malformed events; failures are those in a row, and a head ends them."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first, second = net
        await followed.until(130.5)
        before = followed.monitor.statistics()[followed.id(first)]
        assert before == StreamStatistics(opens=1, heads=before.heads)
        assert before.heads >= 2
        first.comment("one")
        first.comment("two")
        first.publish("head_v2", "{not json")
        first.end_streams()
        await followed.until(130.55)
        assert followed.monitor.statistics()[followed.id(first)].failures == 1
        await followed.until(132.5)
        after = followed.monitor.statistics()[followed.id(first)]
        assert after == StreamStatistics(opens=2, heads=after.heads, malformed=1, comments=2)
        assert after.heads > before.heads
        assert followed.monitor.statistics()[followed.id(second)].opens == 1


async def test_counts_of_a_subscription() -> None:
    """C8: read, dropped because the buffer was full, and waiting; purged ones are in test_generation_readers."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        await followed.until(129.5)
        async with followed.monitor.subscribe(buffer=2) as heads:
            assert heads.statistics() == SubscriptionStatistics(read=0, dropped=0, purged=0, waiting=0)
            await followed.until(131.5)
            assert heads.statistics() == SubscriptionStatistics(read=0, dropped=0, purged=0, waiting=2)
            assert (await heads.receive()).slot == 130
            await followed.until(134.5)
            assert heads.statistics() == SubscriptionStatistics(read=1, dropped=2, purged=0, waiting=2)
            assert [(await heads.receive()).slot for _ in range(2)] == [133, 134]
            assert heads.statistics() == SubscriptionStatistics(read=3, dropped=2, purged=0, waiting=0)
