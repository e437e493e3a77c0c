"""Whose events consumers should follow, on nodes (C7; scenarios 10, 16)."""

import anyio
import pytest

from tests.acceptance.generations import listed
from tests.acceptance.harness import Followed, candidate, known, monitor
from vc_fallback.candidates import Candidate
from vc_fallback.config import CandidateSettings
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

SYNCING = "/eth/v1/node/syncing"


def choice(followed: Followed) -> str:
    """Return the order of the streams."""
    return " ".join(followed.monitor.stream_choice())


async def test_consumers_move_to_a_fresh_node_while_requests_stay_where_they_are() -> None:
    """Scenario 10: polls advance, the stream is frozen: its health stays, the choice goes to the next fresh node."""
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first, second, _ = net
        await followed.until(130.5)
        assert choice(followed) == "bn1 bn2 bn3"
        first.silence()
        await followed.until(131.9)
        assert choice(followed) == "bn1 bn2 bn3", "until it is found out"
        await followed.until(132.5)
        assert followed.healthy(first) is False
        assert choice(followed) == "bn2 bn3 bn1"
        assert not followed.health_turns()
        assert followed.monitor.order() == ("bn1", "bn2", "bn3")
        second.silence()
        await followed.until(134.5)
        assert choice(followed) == "bn3 bn1 bn2"
        assert not followed.health_turns()
        assert followed.monitor.order() == ("bn1", "bn2", "bn3")
        second.resume()
        await followed.until(135.5)
        assert choice(followed) == "bn2 bn3 bn1"
        first.resume()
        await followed.until(138.5)
        assert choice(followed) == "bn1 bn2 bn3"


async def test_primaries_stalled_then_the_fallback_too() -> None:
    """Scenario 16: consumers follow the fallback while it is fresh; all stalled → plain health order."""
    async with simulated_devnet(4) as net, monitor(net, fallbacks=[net[2], net[3]]) as followed:
        first, second, third, fourth = net
        await followed.until(130.5)
        first.silence()
        second.silence()
        await followed.until(132.9)
        assert choice(followed) == "bn3 bn4 bn1 bn2"
        third.silence()
        fourth.silence()
        await followed.until(136.5)
        for node in net:
            assert followed.healthy(node) is False
        assert choice(followed) == "bn1 bn2 bn3 bn4"
        # Plain health order: where a stalled node is not healthy either, it is the last.
        first.answer(SYNCING, 503)
        await followed.until(139.5)
        assert [turn.node_id for turn in followed.health_turns()] == ["bn1"]
        assert choice(followed) == "bn2 bn3 bn4 bn1"


async def test_a_fresh_stream_of_a_node_that_is_not_healthy_is_no_first_choice() -> None:
    """C7, rule 3: fresh *and* healthy; well again, it is the first once more."""
    async with simulated_devnet(2) as net, monitor(net, fallbacks=[net[1]]) as followed:
        primary = net[0]
        await followed.until(130.5)
        primary.answer(SYNCING, 503)
        await followed.until(133.5)
        assert followed.healthy(primary) is True
        assert choice(followed) == "bn2 bn1"
        primary.heal()
        await followed.until(139.5)
        assert choice(followed) == "bn1 bn2"


async def test_nobody_before_the_chain_is_known_and_nobody_of_another_chain() -> None:
    """I1, N7, G6: a node is verified before it is used."""
    async with simulated_devnet(2, into=6) as net, SimulatedNode(SimulatedChain(seed=1), name="alien") as alien:
        first = net[0]
        first.answer("/eth/v1/beacon/genesis", 500, times=3)
        async with monitor([*net, alien], chain=known(net.chain)) as followed:
            assert choice(followed) == ""
            await anyio.sleep(0.1)
            assert choice(followed) == "bn2"
            await followed.until(130.5)
            assert choice(followed) == "bn1 bn2"
        async with monitor(net) as followed:
            assert choice(followed) == ""
            await followed.until(132.5)
            assert choice(followed) == "bn1 bn2"


async def test_the_choice_follows_the_list() -> None:
    """C7, G2: list order, tier and priority as they are now; a node for other roles has no stream to choose."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first, second, third = net
        await followed.until(130.5)
        followed.monitor.update_candidates(listed([third, second, first]))
        assert choice(followed) == "bn3 bn2 bn1"
        settings = [
            candidate(first, fallback=True),
            candidate(second, priority=2),
            candidate(third, priority=3, roles=["duties"]),
        ]
        followed.monitor.update_candidates(of(settings))
        assert choice(followed) == "bn2 bn1"
        followed.monitor.update_candidates([])
        assert choice(followed) == ""


def of(settings: list[dict[str, object]]) -> list[Candidate]:
    """Return a list for `update_candidates`."""
    return [CandidateSettings.model_validate(one).candidate() for one in settings]
