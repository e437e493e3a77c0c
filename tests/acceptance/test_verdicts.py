"""Whether a head stream is to be relied on: fresh, not fresh, or unknown (H6; scenario 38b)."""

import anyio
import pytest

from tests.acceptance.harness import known, monitor
from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import HeadSource
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


async def test_the_verdict_is_unknown_for_the_grace_and_then_false() -> None:
    """H6: `null` before the first current head for 3 slots from the start, then `false`; told once."""
    async with simulated_devnet(2, into=6) as net:
        first = net[0]
        first.refuse()
        async with monitor(net, chain=known(net.chain)) as followed:
            await followed.until(131.45)
            assert followed.healthy(first) is None
            await followed.until(131.55)
            assert followed.healthy(first) is False
            assert followed.reasons(first).count("start_grace_over") == 1


async def test_a_short_absence_leaves_the_verdict_and_a_long_one_takes_it() -> None:
    """H6: the time of the last current head survives a reconnect, and 2½ slots away are as good as silent."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.end_streams()
        await followed.until(130.8)
        assert len(first.opens) == 2
        assert followed.healthy(first) is True
        await first.kill()
        await followed.until(132.5)
        assert followed.healthy(first) is True
        await followed.until(132.7)
        assert followed.healthy(first) is False
        gone = [change for change in followed.changes(first) if change.subscription_healthy is False]
        assert followed.position(gone[0].at) == pytest.approx(130 + 1 / 12 + 2.5, abs=0.6)
        first.restart()
        await followed.until(135.5)
        assert followed.healthy(first) is True


async def test_a_node_that_was_away_for_long_is_stalled_until_its_next_current_head() -> None:
    """H6: its new connection is open, and the time of its last head has survived."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        await first.kill()
        await followed.until(134.2)
        first.restart()
        await followed.until(135.9)
        if not first.streams:
            await followed.until(136.9)
        begun = next(change for change in followed.changes(first, since=134.2) if change.reason.value == "response")
        assert begun.subscription_healthy is False
        assert begun.state is StreamState.OPEN
        await followed.until(137.5)
        assert followed.healthy(first) is True


async def test_a_node_that_wakes_up_is_asked_for_its_head_at_once() -> None:
    """H14: its connection was requested while it was frozen, and its polls of then were given up."""
    async with simulated_devnet(1, framings=["prysm"], into=3) as net:
        node = net[0]
        node.freeze()
        async with monitor(net, chain=known(net.chain)) as followed:
            await followed.until(129.5)
            assert followed.entry(node) is None
            assert len(node.opens) == 0
            node.thaw()
            await followed.until(129.51)
            entry = followed.entry(node)
            assert entry is not None
            assert (entry.slot, entry.source) == (129, HeadSource.POLL)
            assert len(node.opens) == 1


async def test_a_burst_of_old_heads_of_a_resyncing_node_is_not_fresh() -> None:
    """Scenario 38b, H6, H13: 50 old heads renew nothing and are not delivered; the first current head does."""
    async with simulated_devnet(2) as net:
        first = net[0]
        first.state.lag = 52
        first.show(net.chain.head_at(128 - 52))
        first.cut_off()
        async with monitor(net) as followed:
            await followed.until(131.5)
            assert followed.healthy(first) is False
            begun = followed.now
            first.state.lag = 1_000
            for slot in range(77, 127):
                first.show(net.chain.head_at(slot))
            await followed.until(131.9)
            assert followed.healthy(first) is False
            assert not followed.deliveries(since=begun)
            assert [slot for slot, _ in followed.outcomes(first, since=begun)][-1] == 126
            first.show(net.chain.head_at(131))
            await anyio.sleep(0.01)
            assert followed.healthy(first) is True
            assert not followed.deliveries(since=begun)
            await followed.until(134.5)
            followed.assert_every_slot_delivered(129, 134)
