"""Health of simulated nodes, as the acceptance scenarios have it (N1–N8; scenarios 1–7a, 10, 16, 53, 53a).

Checks that come in turn are at 5/6 of a slot; blocks come a twelfth into theirs.
"""

from itertools import pairwise

import anyio
import pytest

from tests.acceptance.harness import Followed, announce, candidate, known, monitor
from vc_fallback.base.errors import NodeError
from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.base.health_signals import DutiesMoved, HealthChanged
from vc_fallback.base.types import Slot
from vc_fallback.testing import Delay, Hang, SimulatedChain, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

SYNCING = "/eth/v1/node/syncing"
HEADER = "/eth/v1/beacon/headers/head"
TIMEOUT = 1.5
"""Seconds for a check."""


def checked(node: SimulatedNode) -> int:
    """Return how often a node was checked."""
    return node.request_counts[SYNCING]


async def next_check(node: SimulatedNode) -> None:
    """Wait until a node has been checked once more."""
    before = checked(node)
    while checked(node) == before:  # noqa: ASYNC110 - the node tells nobody
        await anyio.sleep(0.1)
    await anyio.sleep(0.1)


async def asked(followed: Followed, node: SimulatedNode) -> bool:
    """Ask a node for its version, as a request would, and say whether it answered."""
    try:
        await followed.client(node).version(timeout=1.0)
    except NodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("behind", "max_lag", "state"),
    [
        pytest.param(2, 3, HealthState.HEALTHY, id="1: two behind, limit 3"),
        pytest.param(3, 3, HealthState.HEALTHY, id="three behind, limit 3"),
        pytest.param(4, 3, HealthState.UNHEALTHY, id="four behind, limit 3"),
        pytest.param(8, 8, HealthState.HEALTHY, id="eight behind, limit 8"),
        pytest.param(10, 8, HealthState.UNHEALTHY, id="3: ten behind, limit 8"),
    ],
)
async def test_a_node_behind_the_tip(behind: int, max_lag: int, state: HealthState) -> None:
    """Scenarios 1 and 3, N5: healthy within the limit, demoted from two slots on; the lag is shown."""
    async with simulated_devnet(3) as net, monitor(net, health={"max_lag": max_lag}) as followed:
        first = net[0]
        await followed.until(130.5)
        first.cut_off()
        await followed.until(130.95 + behind)
        verdict = followed.health(first)
        assert (verdict.state, verdict.lag, verdict.sync_distance) == (state, behind, behind)
        assert followed.monitor.ranking() == ("bn2", "bn3", "bn1")
        reason = f"{behind} slots behind the tip"
        assert reason in followed.monitor.explain(followed.id(first))
        if state is HealthState.UNHEALTHY:
            assert verdict.reason is HealthReason.BEHIND
        ((kind, source, target),) = followed.moves()
        assert (kind, source, target) == ("failover", "bn1", "bn2")


async def test_of_three_heights_the_one_beyond_the_clock_is_discarded() -> None:
    """Scenario 5, N5: of the two that are left the higher one is the tip, since its node serves the header."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first, liar, third = net
        await followed.until(130.5)
        third.cut_off()
        await followed.until(131.5)
        wall = 133
        liar.override(SYNCING, head_slot=str(wall + 4))
        liar.answer(HEADER, 404)
        liar.silence()
        await followed.until(wall + 0.2)
        liar.resume()
        announce(liar, liar.head, slot=str(wall + 4))
        await followed.until(wall + 0.95)
        assert [followed.health(node).lag for node in (first, third)] == [0, 3]
        assert followed.health(liar).lag is None
        assert followed.monitor.ranking() == ("bn1", "bn3", "bn2")
        assert "its head is beyond the clock" in followed.monitor.explain(followed.id(liar))
        assert not followed.health_turns()


async def test_two_failures_of_three_and_the_third() -> None:
    """Scenarios 2 and 6, N4: suspect, suspect, unhealthy; each wherever it stands in the ranking."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.8)
        first.answer(SYNCING, 503)
        for failures in (1, 2, 3):
            await next_check(first)
            verdict = followed.health(first)
            assert bool(verdict.suspect) is (failures < 3)
            assert verdict.state is (HealthState.HEALTHY if failures < 3 else HealthState.UNHEALTHY)
            assert verdict.detail.startswith(f"{failures} failed check")
            assert verdict.detail.endswith("in a row: 503")
            assert followed.monitor.ranking() == ("bn2", "bn1")
            assert followed.moves() == ([] if failures < 3 else [("failover", "bn1", "bn2")])


async def test_one_node_that_never_answers_is_last_and_the_ranking_is_current() -> None:
    """Scenario 7, N2: the others are checked on schedule while it hangs, and one that falls behind meanwhile falls."""
    async with simulated_devnet(4) as net, monitor(net) as followed:
        hung, second, third, fourth = net
        await followed.until(130.5)
        hung.inject(SYNCING, Hang())
        second.cut_off()
        await followed.until(133.95)
        assert followed.monitor.ranking() == ("bn3", "bn4", "bn2", "bn1")
        assert followed.health(hung).detail.endswith("failed checks in a row: no answer within 1.5 s")
        for node in (second, third, fourth):
            at = followed.health(node).checked
            assert at is not None
            assert followed.position(at) == pytest.approx(133 + 5 / 6, abs=0.01)


async def test_wrong_network_answers_first_and_is_never_asked() -> None:
    """Scenario 7a, N7: the three rule; the one is left out, with the reason, whatever its health is."""
    async with simulated_devnet(3) as net:
        start = net.chain.slots.slot_at(anyio.current_time())
        other = SimulatedChain(seed=99, clock=net.chain.clock, start_slot=start)
        async with SimulatedNode(other, name="wrong") as wrong, monitor([wrong, *net]) as followed:
            await followed.until(131.5)
            assert followed.monitor.order() == ("bn1", "bn2", "bn3")
            verdict = followed.health(wrong)
            assert verdict.rank is None
            assert verdict.excluded.startswith("genesis_validators_root differs")
            words = followed.monitor.explain(followed.id(wrong))
            assert words.startswith("wrong is left out: genesis_validators_root differs")
            assert verdict.state is HealthState.HEALTHY, "it answers its checks, which go on"
            assert checked(wrong) >= 3
            assert followed.told(DutiesMoved)[-1].target == "bn1"


async def test_the_full_cycle() -> None:
    """Scenario 53, N4: unhealthy, recovering, a failed recovery, recovering, healthy: by three good checks in a row."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.answer(SYNCING, 500, times=4)
        for _ in range(5):
            await next_check(first)
        assert followed.health(first).detail == "1 of 3 good checks in a row"
        await next_check(first)
        assert followed.health(first).detail == "2 of 3 good checks in a row"
        first.answer(SYNCING, 500, times=1)
        await followed.until(135.5)
        states = [turn.state.value for turn in followed.health_turns()]
        assert states == ["unhealthy", "recovering", "unhealthy", "recovering", "healthy"]
        reasons = [turn.reason for turn in followed.health_turns()]
        assert reasons == [
            HealthReason.CHECKS_FAILED,
            HealthReason.CHECK_PASSED,
            HealthReason.CHECKS_FAILED,
            HealthReason.CHECK_PASSED,
            HealthReason.RECOVERED,
        ]
        # At the end it is as told, and every transition is kept with its time and reason.
        verdict = followed.health(first)
        kept = [transition for transition in verdict.history if transition.moved]
        assert [(one.after, one.reason, one.at) for one in kept] == [
            (turn.state, turn.reason, turn.at) for turn in followed.health_turns()
        ]
        assert verdict.since == kept[-1].at
        recovery = [one.at for one in kept[-2:]]
        assert recovery[1] - recovery[0] == pytest.approx(4.0, rel=0.21)


@pytest.mark.parametrize("fault", ["refused", "broken off", "timed out"])
async def test_one_refused_connection_makes_suspect_and_a_good_check_clears_it(fault: str) -> None:
    """Scenario 53a, N4: requests go to the next at once, for two seconds; nothing fails over, nothing storms."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.2)
        assert followed.monitor.order() == ("bn1", "bn2", "bn3")
        begun = followed.now
        for _ in range(5):
            before = checked(first)
            if fault == "refused":
                first.refuse()
                await first.cut_connections()
                first.broadcast.resume()
            elif fault == "broken off":
                first.answer("/eth/v1/node/version", 200, headers={"Content-Length": "9999"}, times=1)
            else:
                first.hang("/eth/v1/node/version", times=1)
            assert not await asked(followed, first)
            first.listen()
            assert followed.monitor.order()[0] == "bn2"
            verdict = followed.health(first)
            assert verdict.state is HealthState.HEALTHY
            assert verdict.suspect
            assert verdict.reason is HealthReason.REQUEST_FAILED
            await anyio.sleep(2.5)
            assert checked(first) > before, "two seconds later"
            assert not followed.health(first).suspect
            assert followed.monitor.order() == ("bn1", "bn2", "bn3")
            await anyio.sleep(14.0)
        assert followed.moves() == []
        assert not followed.health_turns()
        marks = [change.suspect for change in followed.told(HealthChanged, first, since=begun)]
        assert [after for before, after in pairwise([False, *marks]) if after is not before] == [True, False] * 5


async def test_five_breaks_in_a_minute_are_too_many_although_every_check_is_good() -> None:
    """N3: such a node is judged by the window, where one that is down is judged by its checks."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        for count in range(5):
            assert followed.health(first).state is HealthState.HEALTHY, count
            first.hang("/eth/v1/node/version", times=1)
            assert not await asked(followed, first)
            await anyio.sleep(8.0)
        (turn,) = [turn for turn in followed.health_turns() if turn.state is HealthState.UNHEALTHY]
        assert (turn.node_id, turn.reason, turn.detail) == ("bn1", HealthReason.ERRORS, "5 errors in 60 s")
        # It recovers when the oldest of them are a minute old, and it has made no more.
        await followed.until(137.5)
        assert followed.health_states(first) == "unhealthy recovering healthy"
        assert followed.health_turns()[1].at >= turn.at + 60.0 - 5 * 9.1


async def test_slow_answers_of_either_kind() -> None:
    """N3: nine of ten above a quarter of a slot; `node/syncing` is fast, attestation data is not."""
    async with simulated_devnet(2) as net, monitor(net, health={"slow": 0.25}) as followed:
        first, second = net
        path = "/eth/v1/validator/attestation_data"
        for slot in range(130, 136):
            await followed.until(slot + 0.4)
            for node, seconds in ((first, 3.5), (second, 0.5)):
                with node.inject(path, Delay(seconds)):
                    await followed.client(node).attestation_data(Slot(slot), timeout=6.0)
        (turn,) = followed.health_turns()
        assert (turn.node_id, turn.reason) == ("bn1", HealthReason.SLOW)
        assert turn.detail == "nine of ten answers of attestation data take up to 3.50 s"
        assert followed.health(second).duty_latency == pytest.approx(0.5, abs=0.01)
        assert followed.health(first).latency == pytest.approx(0.0, abs=0.01)


async def test_a_frozen_stream_moves_no_request_however_long_and_whatever_slots_are_missed() -> None:
    """Scenarios 10 and 16, rule 3: its polls advance, so its health and its place stay; its stream is no choice."""
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first = net[0]
        net.chain.miss(134, 137, 138, 141)
        await followed.until(130.5)
        first.silence()
        for slot in range(131, 150):
            for part in (0.05, 0.2, 0.5, 0.9):
                await followed.until(slot + part)
                assert followed.monitor.order() == ("bn1", "bn2", "bn3"), followed.now
        assert followed.healthy(first) is False
        assert followed.monitor.stream_choice()[0] == "bn2"
        assert not followed.health_turns()
        assert followed.moves() == []


async def test_nodes_without_a_head_stream_are_checked_identified_and_ranked_like_others() -> None:
    """N2, N7, G6: active or not, whatever their roles; also those of another chain, and back again."""
    genesis = "/eth/v1/beacon/genesis"
    async with simulated_devnet(3) as net:
        first, second, third = net
        second.override(genesis, genesis_validators_root="0x" + "ee" * 32)
        extra = [candidate(node, roles=["duties", "attestation"]) for node in (second, third)]
        async with monitor(net, listed=[first], extra=extra) as followed:
            await followed.until(130.95)
            assert not second.opens
            assert not third.opens
            assert followed.monitor.ranking() == ("bn1", "bn3")
            assert followed.health(second).excluded.startswith("genesis_validators_root differs")
            assert followed.health(third).peers == 50
            assert checked(third) >= 3
            second.override(genesis)
            third.cut_off()
            await followed.until(137.5)
            assert followed.monitor.ranking() == ("bn1", "bn2", "bn3")
            assert followed.health(third).lag == 5, "at its last check, by what two others had shown by then"
            await third.kill()
            await followed.until(139.5)
            assert followed.health_states(third) == "unhealthy"


async def test_a_list_of_nodes_without_head_streams_finds_its_chain() -> None:
    """I1, N7: primaries decide which chain it is, whatever their roles; asked again until they answer."""
    async with simulated_devnet(2) as net:
        for node in net:
            node.answer("/eth/v1/beacon/genesis", 500, times=3)
        extra = [candidate(node, roles=["duties"]) for node in net]
        async with monitor(net, listed=[], extra=extra) as followed:
            await followed.until(131.95)
            assert followed.monitor.slots is not None
            assert followed.monitor.ranking() == ("bn1", "bn2")
            assert not followed.health_turns()


async def test_a_node_that_changes_its_network_under_one_url() -> None:
    """N7, H15: found out at the next connection, or where the stream goes on within an epoch; it comes back."""
    genesis, other = "/eth/v1/beacon/genesis", "0x" + "ee" * 32
    async with simulated_devnet(2, slots_per_epoch=8) as net, monitor(net, chain=known(net.chain)) as followed:
        first, second = net
        await followed.until(41.5)
        first.override(genesis, genesis_validators_root=other)
        await first.kill()
        first.restart()
        await followed.until(42.5)
        assert followed.monitor.order() == ("bn2",)
        assert followed.moves() == [("failover", "bn1", "bn2")]
        # Its stream goes on when it is itself again: asked every four slots where it is quarantined.
        first.override(genesis)
        await followed.until(48.5)
        assert followed.monitor.ranking() == ("bn1", "bn2")
        assert followed.health(first).excluded == ""
        # And as seldom as once in an epoch where not.
        second.override(genesis, genesis_validators_root=other)
        await followed.until(58.5)
        assert followed.monitor.ranking() == ("bn1",)
        assert len(second.opens) == 1
        second.override(genesis)
        await followed.until(70.5)
        assert followed.monitor.ranking() == ("bn1", "bn2")
