"""Cases from the field: several nodes, some of them absent or on another chain (cases 36, 37, 43)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.harness import candidate, monitor
from tests.conformance.scripted import AA, BB, CC, root, say_head, scripted
from vc_fallback.base.health_signals import HealthChanged
from vc_fallback.base.signals import HeadOutcome
from vc_fallback.config import CandidateSettings
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


GENESIS = "/eth/v1/beacon/genesis"


@pytest.mark.parametrize("down", [(0,), (1, 2), (0, 1, 2)])
async def test_any_subset_may_be_down_at_the_start(down: tuple[int, ...]) -> None:
    """Case 36, G6: the others are followed; the absent ones join later, and are verified before they count."""
    async with simulated_devnet(3) as net:
        for index in down:
            net[index].refuse()
        async with monitor(net) as followed:
            await followed.until(130.5)
            here = {node.name for node in net} - {net[index].name for index in down}
            assert {head.node_id for head in followed.deliveries()} <= here
            assert followed.delivered_slots()[-3:] == ([128, 129, 130] if here else [])
            for index in down:
                net[index].listen()
            await followed.until(133.5)
            assert all(node.request_counts[GENESIS] for node in net)
            latest = followed.monitor.latest.value
            assert latest is not None
            assert latest.head.slot == 133
            assert sorted(latest.seen_by) == ["bn1", "bn2", "bn3"]


async def test_genesis_not_yet_observed_is_unknown() -> None:
    """Case 36, N7: a 404 before genesis is no mismatch: the node waits unverified, and counts once it answers."""
    body = '{"code":404,"message":"Beacon chain genesis has not yet been observed.","stacktraces":[]}'
    async with simulated_devnet(3) as net:
        young = net[0]
        unborn = young.answer(GENESIS, 404, body)
        async with monitor(net) as followed:
            await followed.until(131.5)
            assert not followed.monitor.cache.ledger.nodes[followed.id(young)].mismatch
            assert {head.node_id for head in followed.deliveries()} <= {"bn2", "bn3"}
            assert all(outcome is HeadOutcome.BEHIND for _, outcome in followed.outcomes(young))
            unborn.remove()
            await followed.until(134.5)
            latest = followed.monitor.latest.value
            assert latest is not None
            assert sorted(latest.seen_by) == ["bn1", "bn2", "bn3"]
            assert len(young.opens) == 1


@pytest.mark.parametrize("absent", [(0,), (0, 1)])
async def test_proxy_that_knows_of_no_node_yet(absent: tuple[int, ...]) -> None:
    """Case 36: Traefik says `404 page not found` for a node that starts; it is believed of nothing."""
    async with simulated_devnet(2) as net:
        for index in absent:
            net[index].answer("*", 404, "404 page not found\n", content_type="text/plain")
        async with monitor(net) as followed:
            await followed.until(130.5)
            for index in absent:
                net[index].heal()
            await followed.until(135.5)
            assert followed.delivered_slots()[-3:] == [133, 134, 135]
            latest = followed.monitor.latest.value
            assert latest is not None
            assert sorted(latest.seen_by) == ["bn1", "bn2"]
            checks = [signal for signal in followed.told(HealthChanged) if signal.node_id in ("bn1", "bn2")]
            assert {signal.node_id: signal.state for signal in checks} == dict.fromkeys(("bn1", "bn2"), "healthy")


async def test_streams_are_tied_to_no_node_and_to_no_start() -> None:
    """Case 37: every node has its own stream, which comes back by itself and ends with its place in the list."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first, second, third = net
        await followed.until(129.5)
        assert [len(node.streams) for node in net] == [1, 1, 1]
        await first.kill()
        await followed.until(131.5)
        first.restart()
        second.end_streams()
        await followed.until(135.5)
        assert [len(node.streams) for node in net] == [1, 1, 1]

        listed = [CandidateSettings.model_validate(candidate(node)).candidate() for node in (second, third)]
        followed.monitor.update_candidates(listed)
        await anyio.sleep(0.5)
        assert [len(node.streams) for node in net] == [0, 1, 1]
        followed.monitor.update_candidates([*listed, CandidateSettings.model_validate(candidate(first)).candidate()])
        await followed.until(138.5)
        assert [len(node.streams) for node in net] == [1, 1, 1]
        assert [node.max_streams for node in net] == [1, 1, 1]
        followed.assert_every_slot_delivered(128, 138)
        latest = followed.monitor.latest.value
        assert latest is not None
        assert sorted(latest.seen_by) == ["bn1", "bn2", "bn3"]


async def test_minority_on_another_branch_is_shown_and_not_followed() -> None:
    """Case 43: of three synced nodes one has another head in each slot: it is shown as its own and never delivered."""
    chain = SimulatedChain()
    chain.branch("other", above=128)
    async with (
        SimulatedNode(chain, name="bn1") as first,
        SimulatedNode(chain, name="bn2") as second,
        SimulatedNode(chain, name="bn3", branch="other", head_delay=0.5) as odd,
        monitor([first, second, odd]) as followed,
    ):
        await followed.until(140.5)
        followed.assert_every_slot_delivered(128, 140)
        entry = followed.entry(odd)
        assert entry is not None
        assert entry.root == followed.block(140, "other").root
        assert {root: set(nodes) for root, nodes in followed.monitor.votes(entry.slot).items()} == {
            followed.block(140).root: {"bn1", "bn2"},
            followed.block(140, "other").root: {"bn3"},
        }
        assert followed.healthy(odd) is True


async def test_minority_that_is_first_gives_way_to_two_and_stays_so() -> None:
    """Case 43, C4: the odd node's head of a slot is replaced when two stand behind another, and does not come back."""
    chain = SimulatedChain(into=1)
    async with (
        scripted(chain, name="bn1") as odd,
        scripted(chain, name="bn2") as second,
        scripted(chain, name="bn3") as third,
        monitor([odd, second, third]) as followed,
    ):
        await anyio.sleep(1)
        for node, block in ((odd, AA), (second, BB), (third, BB), (odd, AA), (odd, CC), (odd, AA)):
            say_head(node, 128, block)
            await anyio.sleep(0.1)
        assert followed.delivered_roots() == [root("a"), root("b")]
