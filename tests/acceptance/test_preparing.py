"""What nodes are told ahead of duties, through the facade: to all of them, off the caller's path (Q2, Q5, Q14)."""

import json
from typing import Any

import anyio
import pytest

from tests.acceptance.held import held, listing, node_id, slot_of, to_next_slot
from tests.acceptance.preparations import (
    COMMITTEES,
    PROPOSERS,
    REGISTRATIONS,
    committee,
    preparation,
    recipients,
    registration,
    told,
)
from vc_fallback import BroadcastResult, Encodings, NoCandidates, SyncCommitteeSubscription
from vc_fallback.base.health import HealthState
from vc_fallback.base.types import Epoch
from vc_fallback.node import failures
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio

SLOT = 12.0
EVENTS_ONLY = {"roles": ["events"]}
BUILDER_MISSING = b'{"code":500,"message":"UNHANDLED_ERROR: BuilderMissing"}'


async def test_all_nodes_of_both_tiers_are_told_and_the_caller_waits_for_none() -> None:
    """Q14: whatever their roles; each within a slot."""
    async with simulated_devnet(4) as net, held(net, fallbacks=net.nodes[2:], more={net[1]: EVENTS_ONLY}) as nodes:
        net[3].hang(PROPOSERS)
        net[0].inject(PROPOSERS, Delay(3.0))
        began = anyio.current_time()
        result = await nodes.prepare_beacon_proposer([preparation(1), preparation(2)])
        assert anyio.current_time() == began
        assert {*result.pending} == {*map(node_id, net)}
        await result.settled()
        assert anyio.current_time() - began == pytest.approx(SLOT, abs=0.01)
        assert {*result.accepted} == {*map(node_id, net.nodes[:3])}
        assert isinstance(result.deliveries[node_id(net[3])].error, failures.RequestTimeout)
        assert recipients(net[0]) == recipients(net[1]) == recipients(net[2]) == {1: 1, 2: 1}


async def test_a_node_on_another_chain_is_told_nothing() -> None:
    """Q14, N7: until it is on ours."""
    async with simulated_devnet(2) as net:
        net[1].override("/eth/v1/beacon/genesis", genesis_validators_root="0x" + "ab" * 32)
        async with held(net, ready=1) as nodes:
            await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
            for _ in range(3):
                await to_next_slot(nodes)
            assert [len(told(node)) for node in net] == [1, 0]
            net[1].override("/eth/v1/beacon/genesis")
            await net[1].kill()
            net[1].restart()
            for _ in range(3):
                await to_next_slot(nodes)
            assert [len(told(node)) for node in net] == [1, 1]


CALLS: dict[str, Any] = {
    "proposers": lambda nodes: nodes.prepare_beacon_proposer([preparation(1)]),
    "registrations": lambda nodes: nodes.register_validators([registration(1)]),
    "preferences": lambda nodes: nodes.submit_proposer_preferences([Encodings(ssz=b"x")], "gloas"),
    "committees": lambda nodes: nodes.subscribe_beacon_committees([committee(1, slot_of(nodes) + 1)]),
    "sync committees": lambda nodes: nodes.subscribe_sync_committees([SyncCommitteeSubscription(1, [0], Epoch(1000))]),
}
EMPTY: dict[str, Any] = {
    "proposers": lambda nodes: nodes.prepare_beacon_proposer([]),
    "registrations": lambda nodes: nodes.register_validators([]),
    "preferences": lambda nodes: nodes.submit_proposer_preferences([], "gloas"),
    "committees": lambda nodes: nodes.subscribe_beacon_committees([]),
    "sync committees": lambda nodes: nodes.subscribe_sync_committees([]),
}


@pytest.mark.parametrize("kind", CALLS)
async def test_every_kind_goes_to_all_nodes_and_again_to_who_has_come_back(kind: str) -> None:
    """Q14: byte for byte the same; an empty list is told nobody."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        for node in net:
            node.manners.checks = "none"
        result: BroadcastResult = await CALLS[kind](nodes)
        await result.settled()
        assert {*result.accepted} == {*map(node_id, net)}
        (first,), (second,) = net[0].prepared, net[1].prepared
        assert (first.body, first.version) == (second.body, second.version)
        net[1].end_streams()
        await anyio.sleep(5)
        assert [submission.body for submission in net[1].prepared] == [first.body] * 2
        assert (await EMPTY[kind](nodes)).complete
        assert len(net[0].prepared) == 1


async def test_a_refusal_says_nothing_of_a_node() -> None:
    """Case 39: a node without a builder answers 500 to registrations; neither its health nor other calls suffer."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        for node in net:
            node.manners.checks = "none"
        net[0].answer(REGISTRATIONS, 500, BUILDER_MISSING)
        for index in range(8):
            result = await nodes.register_validators([registration(index)])
            await result.settled()
            assert (result.refused, result.accepted) == ((node_id(net[0]),), (node_id(net[1]),))
        status = nodes.status().nodes[0]
        assert (status.state, status.suspect) == (HealthState.HEALTHY, "")
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        net[0].end_streams()
        await anyio.sleep(20)
        assert len(told(net[0])) == 2
        # All that is kept at once, and no more of it: what it refused it would refuse again.
        assert net[0].request_counts[REGISTRATIONS] == 8 + 1


async def test_before_there_is_a_node_it_is_kept() -> None:
    """Q14, G6: the caller is told that nobody has heard it; who comes is told."""
    async with simulated_devnet(2) as net, held(net, listed=[], ready=0) as nodes:
        with pytest.raises(NoCandidates, match="the list of nodes is empty"):
            await nodes.prepare_beacon_proposer([preparation(1)])
        nodes.update_candidates(listing(*net))
        await anyio.sleep(SLOT)
        assert [len(told(node)) for node in net] == [1, 1]


async def test_before_a_node_has_said_which_chain_it_is_on_it_is_kept() -> None:
    """Q14, G6: at the start, whoever is known first."""
    async with simulated_devnet(2, latency=0.2) as net, held(net, ready=0) as nodes:
        with pytest.raises(NoCandidates, match="its chain is not known yet"):
            await nodes.prepare_beacon_proposer([preparation(1)])
        await nodes.wait_ready(2, timeout=30)
        await anyio.sleep(SLOT)
        assert [recipients(node) for node in net] == [{1: 1}] * 2


async def test_subscriptions_that_are_not_broadcast_go_to_one_node() -> None:
    """Q5: to the best one, the next where it does not take it; what else is told goes to all."""
    async with simulated_devnet(3) as net, held(net, requests={"broadcast": []}) as nodes:
        await to_next_slot(nodes)
        by_name = {node.name: node for node in net}
        first, second, third = [by_name[name] for name in nodes.plan().nodes]
        result = await nodes.subscribe_beacon_committees([committee(1, slot_of(nodes) + 20)])
        await result.settled()
        assert [len(told(node, COMMITTEES)) for node in (first, second, third)] == [1, 0, 0]
        with first.answer(COMMITTEES, 503):
            result = await nodes.subscribe_beacon_committees([committee(2, slot_of(nodes) + 20)])
            await result.settled()
        assert [len(told(node, COMMITTEES)) for node in (first, second, third)] == [1, 1, 0]
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        for node in (second, third):
            node.end_streams()
        await anyio.sleep(5)
        assert [len(told(node, COMMITTEES)) for node in (second, third)] == [1, 0]
        assert [len(told(node)) for node in (first, second, third)] == [1, 2, 2]


async def test_who_was_told_in_many_calls_is_told_again_in_few() -> None:
    """Q14: some hundred items in a request; the newest of each."""
    async with simulated_devnet(1) as net, held(net) as nodes:
        for fee in (1, 2):
            for start in range(0, 1200, 300):
                await nodes.prepare_beacon_proposer([preparation(index, fee) for index in range(start, start + 300)])
        await anyio.sleep(1)
        assert len(told(net[0])) == 4  # of the first round nothing had been sent yet
        net[0].end_streams()
        await anyio.sleep(5)
        again = told(net[0])[4:]
        assert [submission.items for submission in again] == [500, 500, 200]
        fees = {item["fee_recipient"] for submission in again for item in json.loads(submission.body)}
        assert fees == {"0x" + "02" * 20}


async def test_forms_that_fit_no_list_together_are_told_apart() -> None:
    """Q2a: registrations that were given as SSZ alone, and others as JSON alone."""
    async with simulated_devnet(1) as net, held(net) as nodes:
        net[0].manners.checks = "none"
        for one in (Encodings(ssz=b"a" * 180), Encodings(json=b'{"b":1}'), Encodings(ssz=b"c" * 180, json=b'{"c":1}')):
            await (await nodes.register_validators([one])).settled()
        net[0].end_streams()
        await anyio.sleep(5)
        assert len(net[0].prepared) == 6
