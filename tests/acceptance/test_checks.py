"""Checks of `node/syncing` on nodes: when they come, what they find, and that they are each node's own (N2, N4, N5)."""

from collections.abc import Sequence
from itertools import pairwise

import anyio
import pytest

from tests.acceptance.generations import listed
from tests.acceptance.harness import Followed, monitor
from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.testing import Delay, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

SYNCING = "/eth/v1/node/syncing"

REGULAR = 5 / 6
"""When all nodes are checked, in slots."""
TIMEOUT = 1.5
"""Seconds for a check."""
SOON = 2.0
"""Seconds from a check that found something wrong to the next, ± a fifth."""


def checks(node: SimulatedNode, since: float = 0.0) -> list[float]:
    """Return when a node was asked, in loop time, from a moment on."""
    return [request.received for request in node.requests if request.path == SYNCING and request.received >= since]


def positions(followed: Followed, node: SimulatedNode, *, since: float) -> list[float]:
    """Return when a node was asked, in slots, from a position on."""
    return [at for check in checks(node) if (at := followed.position(check)) >= since]


def assert_waits(moments: Sequence[float], expected: Sequence[float], *, taken: float = 0.0) -> None:
    """Each wait is the expected one ± a fifth, from the end of the check before, which took so long."""
    waits = [after - before - taken for before, after in pairwise(moments)]
    assert len(waits) >= len(expected)
    for wait, about in zip(waits, expected, strict=False):
        assert 0.8 * about - 1e-3 <= wait <= 1.2 * about + 0.05, waits


@pytest.mark.parametrize("slot_duration", [0.5, 2.0, 5.0, 12.0])
async def test_all_nodes_are_checked_together_once_in_each_slot(slot_duration: float) -> None:
    """N2: at 5/6 of the slot, fallbacks too, all at the same moment though each takes a while to answer."""
    async with simulated_devnet(4, slot_duration=slot_duration) as net:
        for node in net:
            node.inject(SYNCING, Delay(slot_duration / 20))
        async with monitor(net, fallbacks=[net[3]]) as followed:
            await followed.until(134.5)
            for node in net:
                found = positions(followed, node, since=129)
                assert found == [pytest.approx(slot + REGULAR, abs=0.02) for slot in range(129, 134)]
            assert not followed.health_turns()


async def test_a_new_node_is_checked_at_once() -> None:
    """N2, G6: and again when its chain is known to be ours: what is known of one that was never asked is nothing."""
    async with simulated_devnet(3) as net, monitor(net, listed=[net[0], net[1]]) as followed:
        await anyio.sleep(0.5)
        assert [len(checks(node)) for node in net] == [2, 2, 0]
        await followed.until(130.5)
        net[2].cut_off()
        net[2].show(net.chain.head_at(110))
        joined = anyio.current_time()
        followed.monitor.update_candidates(listed(net.nodes))
        await anyio.sleep(0.1)
        assert len(checks(net[2], joined)) == 2
        assert followed.health(net[2]).detail == "20 slots behind the tip"
        assert [len(checks(node, joined)) for node in net.nodes[:2]] == [0, 0]


async def test_a_node_that_never_answers_delays_nobody() -> None:
    """Scenario 7, N2: its own check times out after 1.5 s and comes again soon; the others' come on schedule."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        hung, *others = net
        await followed.until(130.5)
        hung.hang(SYNCING)
        await followed.until(138.5)
        for node in others:
            found = positions(followed, node, since=130.5)
            assert found == [pytest.approx(slot + REGULAR, abs=0.01) for slot in range(130, 138)]
        moments = [check for check in checks(hung) if followed.position(check) > 130.5]
        assert followed.position(moments[0]) == pytest.approx(130 + REGULAR, abs=0.001)
        assert_waits(moments, [SOON, SOON, SOON, 4, 8, 16], taken=TIMEOUT)
        (change,) = followed.health_turns()
        assert (change.node_id, change.state.value) == ("bn1", "unhealthy")
        assert change.detail == "3 failed checks in a row: no answer within 1.5 s"
        assert change.at == pytest.approx(moments[2] + TIMEOUT, abs=0.01), "with the third in a row"
        assert followed.monitor.ranking() == ("bn2", "bn3", "bn1")
        # Its stream is alive all the while: one verdict is not the other (rule 3).
        assert followed.healthy(hung) is True


async def test_a_node_that_errs_is_asked_ever_less_often_until_it_answers() -> None:
    """Scenario 2, N2, N4: 2, 2, 2, 4, 8 … 60 s ± a fifth; it recovers at its first good answer, and needs three."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        begun = followed.slots.start_of(followed.slot)
        first.answer(SYNCING, 503)
        await followed.until(154.5)
        moments = checks(first, begun)
        assert_waits(moments, [2, 2, 2, 4, 8, 16, 32, 60, 60])
        assert len(moments) <= 12
        (change,) = followed.health_turns()
        assert (change.node_id, change.state.value, change.reason) == ("bn1", "unhealthy", HealthReason.CHECKS_FAILED)
        assert change.detail == "3 failed checks in a row: 503"
        assert change.at == pytest.approx(moments[2], abs=0.01)
        first.heal()
        await followed.until(162.5)
        good = checks(first, moments[-1] + 1)
        assert_waits(good[:3], [SOON, SOON])
        _, recovering, healthy = followed.health_turns()
        assert recovering.state is HealthState.RECOVERING
        assert recovering.at == pytest.approx(good[0], abs=0.01)
        assert healthy.state is HealthState.HEALTHY
        assert healthy.at == pytest.approx(good[2], abs=0.01)
        # From there on it is one of those that are checked in turn.
        assert [followed.position(at) % 1 for at in good[3:5]] == [pytest.approx(REGULAR, abs=0.01)] * 2


async def test_two_failures_of_three_leave_a_node_healthy_and_a_good_check_starts_the_count_again() -> None:
    """Scenario 6, N4."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        (node,) = net
        for slot in (130, 133):
            await followed.until(slot + 0.5)
            node.answer(SYNCING, 500, times=2)
        await followed.until(136.5)
        assert not followed.health_turns()
        node.answer(SYNCING, 500, times=3)
        await followed.until(139.5)
        assert followed.health_states(node) == "unhealthy recovering healthy"


async def test_the_second_failure_is_looked_for_soon_not_a_slot_later() -> None:
    """N2, N4: the check after the first failed one comes 2 s later, wherever in the slot that is."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        begun = followed.slots.start_of(followed.slot)
        first.answer(SYNCING, 500, times=1)
        await followed.until(132.5)
        failed, again, *regular = checks(first, begun)
        assert again - failed == pytest.approx(SOON, rel=0.21)
        assert [followed.position(at) for at in regular] == [pytest.approx(131 + REGULAR, abs=0.001)]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "not as the API defines it"),
        ('{"data":{}}', "not as the API defines it"),
        ('{"data":{"head_slot":"-1","sync_distance":"0","is_syncing":false}}', "not as the API defines it"),
        ("null", "not as the API defines it"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_a_failed_check(body: str, reason: str) -> None:
    """N3, N4."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        (node,) = net
        await followed.until(130.5)
        node.answer(SYNCING, 200, body)
        await followed.until(132.5)
        (change,) = followed.health_turns()
        assert change.state is HealthState.UNHEALTHY
        assert change.detail.startswith(f"3 failed checks in a row: {reason}")


async def test_an_unreachable_node_is_unhealthy_for_the_reason_that_the_transport_gives() -> None:
    """Scenario 4, N4: its stream has ended too, so it is checked soon; and as soon as it streams again."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first, _ = net
        await followed.until(130.2)
        died = followed.now
        await first.kill()
        await followed.until(132.5)
        (change,) = followed.health_turns()
        assert (change.node_id, change.state.value, change.reason) == ("bn1", "unhealthy", HealthReason.CHECKS_FAILED)
        assert change.detail.startswith("3 failed checks in a row: ConnectError")
        # Checked 2 s after its stream ended, and every 2 s from there on.
        assert followed.position(change.at) - died <= 6 * 1.2 / 12 + 0.01
        first.restart()
        await followed.until(136.5)
        assert followed.health_states(first) == "unhealthy recovering healthy"
        assert {turn.node_id for turn in followed.health_turns()} == {"bn1"}


async def test_a_node_more_than_eight_slots_behind_the_tip_is_unhealthy() -> None:
    """Scenario 3, N4, N5: at nine, not at eight; checked every 2 s from there on, because it does not err."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.cut_off()
        await followed.until(139.5)
        assert not followed.health_turns()
        await followed.until(142.5)
        (change,) = followed.health_turns()
        assert (change.node_id, change.reason) == ("bn1", HealthReason.BEHIND)
        assert change.detail == "9 slots behind the tip"
        assert followed.position(change.at) == pytest.approx(139 + REGULAR, abs=0.001)
        assert_waits(checks(first, change.at - 0.5), [SOON] * 8)
        assert not followed.ends(first), "behind is health's matter: no reconnect"
        first.rejoin()
        back = followed.now
        await followed.until(145.5)
        assert followed.health_states(first) == "unhealthy recovering healthy"
        healthy = followed.health_turns(first)[-1]
        assert followed.position(healthy.at) - back <= 3 * SOON * 1.2 / 12 + 0.01
        assert {turn.node_id for turn in followed.health_turns()} == {"bn1"}


async def test_one_node_that_lies_about_the_tip_makes_nobody_unhealthy() -> None:
    """N5: of three the second highest counts; and what is beyond the clock does not at all."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        liar = net[0]
        await followed.until(130.5)
        for behind in net.nodes[1:]:
            behind.cut_off()
        liar.override(SYNCING, head_slot="1000000")
        await followed.until(142.5)
        assert not followed.health_turns()


async def test_a_chain_without_blocks_makes_nobody_unhealthy() -> None:
    """N5: every node calls itself syncing then; the wall clock demotes nobody."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        net.chain.miss(*range(131, 160))
        await followed.until(155.9)
        assert all(node.state.is_syncing for node in net)
        assert not followed.health_turns()


async def test_optimistic_nodes_and_those_without_an_execution_layer_are_healthy() -> None:
    """N6: they rank lower, which excludes nobody; a field that old nodes leave out is unknown."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        net[0].state.optimistic = True
        net[1].state.el_offline = True
        net[2].state.el_offline = None
        await followed.until(134.5)
        assert not followed.health_turns()


async def test_a_frozen_node_costs_itself_alone() -> None:
    """N2, rule 4: connects succeed and nothing is answered; every other node's checks and heads come on time."""
    async with simulated_devnet(6) as net, monitor(net) as followed:
        *frozen, last = net
        await followed.until(130.5)
        for node in frozen:
            node.freeze()
        await followed.until(134.5)
        found = positions(followed, last, since=130.5)
        assert found == [pytest.approx(slot + REGULAR, abs=0.001) for slot in range(130, 134)]
        followed.assert_every_slot_delivered(129, 134)
        for node in frozen:
            assert followed.health_states(node) == "unhealthy"
        for node in frozen:
            node.thaw()
        await followed.until(141.5)
        for node in frozen:
            assert followed.health_states(node) == "unhealthy recovering healthy"
        assert not followed.health_turns(last)


async def test_a_check_of_a_node_that_has_left_says_nothing() -> None:
    """G3: what comes of it later is nobody's; the node is asked no more, and starts anew when it joins again."""
    async with simulated_devnet(2) as net, monitor(net, health={"check_jitter": 0.0}) as followed:
        first, second = net
        await followed.until(130.5)
        first.answer(SYNCING, 500, times=2)
        await followed.until(131.2)
        first.hang(SYNCING, times=1)
        # It is asked at 131 1/3, for an eighth of a slot.
        await followed.until(131.4)
        followed.monitor.update_candidates(listed([second]))
        asked = len(checks(first))
        await followed.until(134.5)
        assert len(checks(first)) == asked
        followed.monitor.update_candidates(listed([first, second]))
        await followed.until(137.5)
        assert not followed.health_turns()
        assert len(checks(first)) >= asked + 2
