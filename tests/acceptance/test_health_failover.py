"""Which node has the duties, on simulated nodes (N9–N11; scenarios 9, 21, 54; case 31).

Slots are of 12 s: a node that took over keeps its place for 48 s, and a recovery takes three checks, 2 s apart.
"""

import anyio
import pytest

from tests.acceptance.generations import listed
from tests.acceptance.harness import Followed, monitor
from tests.acceptance.test_tier_gate import tiers
from vc_fallback.base.health import HealthState
from vc_fallback.base.health_signals import AllUnhealthy, DutiesMoved, HealthChanged
from vc_fallback.base.types import NodeId
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio

SYNCING = "/eth/v1/node/syncing"
GENESIS = "/eth/v1/beacon/genesis"
DWELL = 4.0
"""Slots for which a node that took over keeps its place."""


def active(followed: Followed) -> str | None:
    """Return the node that has the duties."""
    return followed.monitor.cache.book.active


def last_move(followed: Followed) -> DutiesMoved:
    """Return how duties moved last."""
    return followed.told(DutiesMoved)[-1]


# To another node, and back.


async def test_all_primaries_down_a_fallback_serves_and_one_that_is_restored_takes_back() -> None:
    """Scenario 9, N9: the failover waits for nothing; the failback for three good checks and the dwell."""
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first, second, _ = net
        await followed.until(130.5)
        assert followed.monitor.order() == ("bn1", "bn2", "bn3")
        await first.kill()
        await followed.until(131.2)
        await second.kill()
        await followed.until(132.5)
        assert followed.moves() == [("failover", "bn1", "bn2"), ("failover", "bn2", "bn3")]
        taken = last_move(followed)
        assert taken.reason.startswith("bn2: 3 failed checks in a row: ConnectError")
        down = followed.health_turns(second)[0]
        assert taken.at == down.at, "at once"
        assert followed.monitor.order() == ("bn3", "bn1", "bn2")
        second.restart()
        await followed.until(134.5)
        assert followed.health_states(second) == "unhealthy recovering healthy"
        assert followed.monitor.ranking()[0] == "bn2"
        assert followed.monitor.order() == ("bn3", "bn2", "bn1"), "it is preferred again, not yet given the duties"
        await followed.until(138.5)
        assert followed.moves()[2:] == [("failback", "bn3", "bn2")]
        back = last_move(followed)
        assert back.reason == "bn2 ranks higher and is steady"
        assert back.at - taken.at == pytest.approx(DWELL * 12, abs=0.1)
        first.restart()
        await followed.until(144.5)
        assert followed.moves()[3:] == [("failback", "bn2", "bn1")]


async def test_a_node_that_recovers_after_the_dwell_takes_back_with_its_third_good_check() -> None:
    """N9, N4."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.answer(SYNCING, 500)
        await followed.until(140.5)
        assert followed.moves() == [("failover", "bn1", "bn2")]
        first.heal()
        # By now it is checked once a minute, give or take a fifth, and then every 2 s.
        await followed.until(148.5)
        *_, recovering, healthy = followed.health_turns(first)
        assert recovering.state is HealthState.RECOVERING
        assert followed.moves()[1:] == [("failback", "bn2", "bn1")]
        assert last_move(followed).at == pytest.approx(healthy.at, abs=0.01)


async def test_failback_can_be_off() -> None:
    """N9: duties stay where they are while that node is usable, and go to the best when it is not."""
    health = {"prefer_higher_priority": False}
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]], health=health) as followed:
        first, second, _ = net
        await followed.until(130.5)
        await first.kill()
        await followed.until(132.5)
        first.restart()
        await followed.until(150.5)
        assert followed.moves() == [("failover", "bn1", "bn2")]
        assert followed.monitor.ranking() == ("bn1", "bn2", "bn3")
        assert followed.monitor.order() == ("bn2", "bn1", "bn3")
        second.state.optimistic = True
        await followed.until(152.5)
        assert followed.moves()[1:] == [("failover", "bn2", "bn1")]


async def test_a_node_back_with_few_peers_is_given_nothing() -> None:
    """N9, case 29: it reports them; they are asked anew after it was down, and again from then on."""
    async with simulated_devnet(2) as net, monitor(net, health={"min_peers": 15}) as followed:
        first = net[0]
        await followed.until(130.5)
        assert followed.health(first).peers == 50
        await first.kill()
        await followed.until(135.5)
        first.state.peers = 2
        first.restart()
        await followed.until(145.5)
        assert followed.health(first).state is HealthState.HEALTHY
        assert followed.health(first).peers == 2
        assert followed.moves() == [("failover", "bn1", "bn2")]
        first.state.peers = 15
        await followed.until(150.5)
        assert followed.moves()[1:] == [("failback", "bn2", "bn1")]


@pytest.mark.parametrize("answer", [404, 500])
async def test_a_node_that_does_not_tell_its_peers_is_believed(answer: int) -> None:
    """N9: only where the node reports peers, at least the floor."""
    async with simulated_devnet(2) as net:
        first = net[0]
        first.answer("/eth/v1/node/peer_count", answer)
        async with monitor(net, health={"min_peers": 15}) as followed:
            await followed.until(130.5)
            assert followed.health(first).peers is None
            await first.kill()
            await followed.until(132.5)
            first.restart()
            await followed.until(140.5)
            assert followed.moves() == [("failover", "bn1", "bn2"), ("failback", "bn2", "bn1")]


# No back and forth.


@pytest.mark.parametrize("flips", ["optimistic", "sync", "checks", "connections"])
async def test_a_node_that_flaps_does_not_take_duties_back_and_forth(flips: str) -> None:
    """Case 31, N9: every few seconds for ten minutes; duties move once, and go back when it has been steady.

    Of checks that fail and pass in turn no three come together, so the node is suspect now and then, and no more.
    """
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        if flips == "sync":
            first.cut_off()
        well = True
        while followed.now < 180:
            well = not well
            if flips == "optimistic":
                first.state.optimistic = not well
            elif flips == "sync":
                first.show(net.chain.head_at(followed.slot - (0 if well else 3)))
            elif flips == "checks":
                if well:
                    first.heal()
                else:
                    first.answer(SYNCING, 500)
            elif well:
                first.restart()
            else:
                await first.kill()
            await anyio.sleep(2.7)
        assert followed.moves() == ([("failover", "bn1", "bn2")] if flips in ("optimistic", "sync") else [])
        first.heal()
        await followed.until(195.5)
        assert followed.moves()[1:] == ([("failback", "bn2", "bn1")] if flips in ("optimistic", "sync") else [])


async def test_what_only_checks_show_may_move_duties_once_in_a_dwell_at_most() -> None:
    """Case 31, N9: an execution layer that comes and goes is seen once in a slot, and may seem well three times."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        while followed.now < 190:
            first.state.el_offline = not first.state.el_offline
            await anyio.sleep(2.7)
        at = [followed.position(move.at) for move in followed.told(DutiesMoved) if move.kind != "start"]
        assert len(at) > 2
        for before, after in zip(at, at[2:], strict=False):
            assert after - before >= DWELL - 0.01
        assert not followed.health_turns()


# At the start.


async def test_a_fallback_that_answers_first_has_no_claim() -> None:
    """N9: until the primary has said which chain it is on, a moment; no failback is counted for it."""
    async with simulated_devnet(3) as net:
        first, second, _ = net
        for node in (first, second):
            node.inject(GENESIS, Delay(0.8))
        async with monitor(net, fallbacks=[net[2]], chain=None) as followed:
            await anyio.sleep(3.0)
            assert active(followed) == "bn1"
            assert followed.moves() == []
            assert followed.monitor.order() == ("bn1", "bn2", "bn3")


async def test_nodes_that_are_down_at_the_start_join_later() -> None:
    """Case 36, G6, N10: the alarm at the start too; whoever comes first is asked, and the better one when it comes."""
    async with simulated_devnet(3) as net:
        first, _, third = net
        for node in net:
            node.refuse()
        async with monitor(net, fallbacks=[third]) as followed:
            await followed.until(131.5)
            assert followed.monitor.order() == ()
            assert [alarm.begins for alarm in followed.told(AllUnhealthy)] == [True]
            for node in net:
                assert followed.health(node).state is HealthState.UNHEALTHY
            third.listen()
            await followed.until(136.5)
            first.listen()
            await followed.until(150.5)
            assert followed.monitor.order()[0] == "bn1"
            assert [alarm.begins for alarm in followed.told(AllUnhealthy)] == [True, False]


# All unhealthy.


async def test_all_unhealthy_is_one_alarm_and_every_node_is_still_asked_in_rank_order() -> None:
    """Scenario 54, N10: requests try them all, checks go on; the alarm ends with the first that is healthy again."""
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first, second, third = net
        await followed.until(130.5)
        for node in net:
            node.answer(SYNCING, 503)
        await followed.until(133.5)
        (alarm,) = followed.told(AllUnhealthy)
        assert alarm.begins
        assert followed.monitor.cache.book.all_unhealthy
        assert sorted(followed.monitor.order()) == ["bn1", "bn2", "bn3"]
        for node_id in followed.monitor.order():
            node = followed.nodes[node_id]
            await followed.client(node).version(timeout=1.0)
        checks = [node.request_counts[SYNCING] for node in net]
        await followed.until(145.5)
        assert all(node.request_counts[SYNCING] > before for node, before in zip(net, checks, strict=True))
        third.heal()
        await followed.until(152.5)
        assert [alarm.begins for alarm in followed.told(AllUnhealthy)] == [True, False]
        assert followed.told(AllUnhealthy)[-1].at == pytest.approx(followed.health_turns(third)[-1].at, abs=0.01)
        assert active(followed) == "bn3"
        first.heal()
        second.heal()
        await followed.until(165.5)
        assert active(followed) == "bn1"


# Drained.


async def test_a_drained_node_is_last_and_comes_back_by_itself() -> None:
    """N11: live; its stream goes on, and so do its checks; a change of the list that keeps it changes nothing."""
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first, second, third = net
        await followed.until(130.5)
        followed.monitor.drain(followed.id(first), 60.0)
        assert followed.monitor.order() == ("bn2", "bn3", "bn1")
        assert followed.moves() == [("failover", "bn1", "bn2")]
        assert last_move(followed).reason == "bn1: drained: for maintenance"
        assert followed.health(first).state is HealthState.HEALTHY
        assert followed.health(first).drained == 60.0
        followed.monitor.update_candidates(tiers([first, second], [third]))
        await followed.until(135.4)
        assert followed.monitor.order() == ("bn2", "bn3", "bn1")
        assert not followed.ends(first)
        assert followed.health(first).drained == pytest.approx(1.2, abs=0.01)
        await followed.until(135.6)
        assert followed.monitor.order() == ("bn1", "bn2", "bn3")
        assert followed.position(last_move(followed).at) == pytest.approx(135.5, abs=0.01)
        assert last_move(followed).kind == "failback"


async def test_a_drain_is_ended_by_hand_and_for_what_is_no_node() -> None:
    """N11."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = followed.id(net[0])
        await followed.until(130.5)
        followed.monitor.drain(first, 3600.0)
        assert followed.monitor.order() == ("bn2", "bn1")
        followed.monitor.drain(first, 0)
        assert followed.monitor.ranking() == ("bn1", "bn2")
        with pytest.raises(KeyError):
            followed.monitor.drain(NodeId("nobody"), 1.0)
        for never in (-1.0, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="a drain lasts"):
                followed.monitor.drain(first, never)


# Observers, and the list.


async def test_an_observer_may_change_the_list_when_duties_move() -> None:
    """G3, N9: the node that fell leaves the list from within the telling; nothing is told of it afterwards."""
    followed: Followed
    left: list[float] = []

    def observe(signal: object) -> None:
        if isinstance(signal, DutiesMoved) and signal.kind == "failover" and not left:
            left.append(signal.at)
            followed.monitor.update_candidates(listed([second, third]))

    async with simulated_devnet(3) as net, monitor(net, observers=[observe]) as followed:
        first, second, third = net
        await followed.until(130.5)
        await first.kill()
        await followed.until(135.5)
        assert len(left) == 1
        assert followed.monitor.order() == ("bn2", "bn3")
        assert [change for change in followed.told(HealthChanged, first) if change.at > left[0]] == []
        assert followed.told(HealthChanged, second)[-1].rank == 1
        followed.assert_every_slot_delivered(129, 135)


async def test_tier_and_priority_are_ranked_by_as_they_are_now() -> None:
    """G2, N6: at the change itself, without a new start."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first, second, third = net
        await followed.until(131.5)
        followed.monitor.update_candidates(tiers([third, second], [first]))
        assert followed.monitor.ranking() == ("bn3", "bn2", "bn1")
        assert followed.monitor.order() == ("bn3", "bn2", "bn1"), "the dwell is of a failover"
        followed.monitor.update_candidates([*listed([third], priority=5), *listed([second, first])])
        assert followed.monitor.ranking() == ("bn2", "bn1", "bn3")
        assert not followed.health_turns()
        assert [len(node.opens) for node in net] == [1, 1, 1]
