"""Nodes that come back are told again what they are to be ready for (Q14): a restarted one has forgotten all of it."""

import json

import anyio
import pytest

from tests.acceptance.held import held, listing, node_id, slot_of, to_next_slot
from tests.acceptance.preparations import (
    COMMITTEES,
    PROPOSERS,
    REGISTRATIONS,
    committee,
    forget,
    preparation,
    recipients,
    registration,
    told,
)
from tests.acceptance.proposals import produce
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio

SLOT = 12.0
WITHOUT_EVENTS = {"roles": ["duties", "attestation", "proposal", "submission"]}


async def slots(nodes: BeaconNodeFallback, count: int) -> None:
    for _ in range(count):
        await to_next_slot(nodes)


async def test_after_a_failover_the_right_fee_recipient_is_paid() -> None:
    """Q14: both nodes have restarted since it was told, one after the other."""
    async with simulated_devnet(2, validators=16) as net, held(net) as nodes:
        everyone = [preparation(index, 7) for index in range(16)]
        await (await nodes.prepare_beacon_proposer(everyone)).settled()
        for node in net:
            await node.kill()
            forget(node)
            await slots(nodes, 2)
            node.restart()
            await slots(nodes, 4)
        await net[0].kill()
        await slots(nodes, 1)
        maker, _ = await produce(nodes)
        assert maker == node_id(net[1])
        assert recipients(net[1]) == dict.fromkeys(range(16), 7)


async def test_a_node_whose_stream_ended_is_told_again_once() -> None:
    """Q14: within seconds, whether it had restarted or not; nobody else is."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        await slots(nodes, 2)
        net[1].end_streams()
        await anyio.sleep(3)
        assert [len(told(node)) for node in net] == [1, 2, 1]
        await net[2].cut_connections(reset=True)
        await slots(nodes, 3)
        assert [len(told(node)) for node in net] == [1, 2, 2]


@pytest.mark.parametrize("fault", ["killed", "frozen"])
@pytest.mark.parametrize("events", [True, False])
async def test_a_node_that_has_recovered_is_told_again(fault: str, events: bool) -> None:
    """Q14: also one that has no stream, whose failed checks or requests tell of it."""
    more = {} if events else WITHOUT_EVENTS
    async with simulated_devnet(2) as net, held(net, more={net[1]: more}) as nodes:
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        if fault == "killed":
            await net[1].kill()
            forget(net[1])
        else:
            net[1].freeze()
        await slots(nodes, 5)
        assert nodes.status().nodes[1].state == "unhealthy", nodes.explain(node_id(net[1]))
        assert len(told(net[1])) == 1
        net[1].heal()
        await slots(nodes, 2 if events else 6)  # until its next check, which come less often the longer it fails
        assert recipients(net[1]) == {1: 1}
        assert len(told(net[1])) == 2


async def test_a_restart_that_one_failed_request_tells_of_is_noticed() -> None:
    """Q14, N4: between two checks, on a node without a stream."""
    async with simulated_devnet(2) as net, held(net, more={net[1]: WITHOUT_EVENTS}) as nodes:
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        await to_next_slot(nodes, into=0.3)
        await net[1].kill()
        forget(net[1])
        await nodes.subscribe_beacon_committees([committee(1, slot_of(nodes) + 30)])
        await anyio.sleep(0.5)
        net[1].restart()
        await slots(nodes, 2)
        assert recipients(net[1]) == {1: 1}


async def test_a_node_that_joins_is_told_and_one_that_leaves_is_not_any_more() -> None:
    """Q14, G1: also one whose URL has changed under the same name."""
    async with simulated_devnet(3) as net, held(net, listed=net.nodes[:2]) as nodes:
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        nodes.update_candidates(listing(net[0], net[2]))
        await slots(nodes, 2)
        assert [len(told(node)) for node in net] == [1, 1, 1]
        await (await nodes.prepare_beacon_proposer([preparation(2)])).settled()
        await net[1].cut_connections()
        await slots(nodes, 2)
        assert [len(told(node)) for node in net] == [2, 1, 2]


async def test_a_node_that_was_away_for_the_call_is_told_when_it_is_back() -> None:
    """Q14: it was never told before."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await net[1].kill()
        await slots(nodes, 1)
        result = await nodes.prepare_beacon_proposer([preparation(1)])
        await result.settled()
        assert result.failed == (node_id(net[1]),)
        net[1].restart()
        await slots(nodes, 3)
        assert recipients(net[1]) == {1: 1}


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_node_that_could_not_hear_it_is_told_again(status: int) -> None:
    """Q14, Q11: without having been away; one that asks for a rest has it first."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        began = anyio.current_time()
        net[1].answer(PROPOSERS, status, headers={"Retry-After": "30"} if status == 429 else {}, times=1)
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        assert recipients(net[1]) == {}
        await slots(nodes, 5)
        (heard,) = told(net[1])
        assert heard.at - began >= (30 if status == 429 else 0)
        assert len(told(net[0])) == 1


@pytest.mark.parametrize("body", ["<html>Please log in</html>", '{"code":502,"message":"bad gateway"}'])
async def test_a_page_is_no_sign_that_a_node_was_told(body: str) -> None:
    """Rule 8: a gateway answers in the place of the node, under the status of a success."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[1].answer(PROPOSERS, 200, body, times=1)
        result = await nodes.prepare_beacon_proposer([preparation(1)])
        await result.settled()
        assert result.failed == (node_id(net[1]),)
        await slots(nodes, 2)
        assert recipients(net[1]) == {1: 1}


async def test_a_node_that_is_not_able_for_long_is_told_as_soon_as_it_is() -> None:
    """Q14: it answers checks and is never away; other nodes are told nothing again for that."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        fault = net[1].answer(PROPOSERS, 503)
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        await slots(nodes, 6)
        fault.remove()
        await slots(nodes, 2)
        assert recipients(net[1]) == {1: 1}
        assert [len(told(node)) for node in net] == [1, 1]


async def test_a_node_that_is_left_alone_during_the_call_is_told_when_that_is_over() -> None:
    """Q11, Q14: the rest it asked for it has; the fee recipient it is told all the same."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[1].answer("/eth/v1/node/version", 429, headers={"Retry-After": "30"}, times=1)
        with pytest.raises(Exception, match="429"):
            await nodes.scoped(node_id(net[1])).version()
        result = await nodes.prepare_beacon_proposer([preparation(1)])
        await result.settled()
        assert [*result.deliveries] == [node_id(net[0])]
        await slots(nodes, 2)
        assert told(net[1]) == []
        await slots(nodes, 2)
        assert len(told(net[1])) == 1


async def test_what_a_node_fails_at_keeps_the_rest_from_nobody() -> None:
    """Q14: it is tried a few times, and then left until the node comes back again."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        for node in net:
            node.manners.checks = "none"
        net[1].answer(REGISTRATIONS, 500, b'{"message":"broken"}')
        await (await nodes.register_validators([registration(1)])).settled()
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        net[1].end_streams()
        await slots(nodes, 12)
        assert len(told(net[1])) >= 2
        tries = net[1].request_counts[REGISTRATIONS]
        assert tries <= 1 + 2 * 4
        await slots(nodes, 6)
        assert net[1].request_counts[REGISTRATIONS] == tries


async def test_what_is_over_is_told_nobody() -> None:
    """Q14: a subscription after its slot, fee recipients after three epochs."""
    async with simulated_devnet(1, slots_per_epoch=4) as net, held(net) as nodes:
        await to_next_slot(nodes)
        now = slot_of(nodes)
        await nodes.subscribe_beacon_committees([committee(1, now + 2), committee(2, now + 40)])
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        await slots(nodes, 3)
        net[0].end_streams()
        await slots(nodes, 1)
        again = told(net[0], COMMITTEES)[1:]
        assert [item["validator_index"] for one in again for item in json.loads(one.body)] == ["2"]
        assert len(told(net[0])) == 2
        await slots(nodes, 10)
        assert nodes.status().remembered == {"committee subscriptions": 1}
        net[0].end_streams()
        await slots(nodes, 1)
        assert (len(told(net[0])), len(told(net[0], COMMITTEES))) == (2, 3)


async def test_a_node_never_ends_with_the_older_of_two() -> None:
    """Q14: the caller changes the fee recipient while a node is told again the one before."""
    async with simulated_devnet(1) as net, held(net) as nodes:
        (node,) = net
        await (await nodes.prepare_beacon_proposer([preparation(index, 1) for index in range(1200)])).settled()
        node.inject(PROPOSERS, Delay(0.5))
        node.end_streams()
        while len(told(node)) < 2:  # noqa: ASYNC110 - the node tells nobody
            await anyio.sleep(0.1)
        # The second part of three is under way.
        await (await nodes.prepare_beacon_proposer([preparation(1199, 2)])).settled()
        await anyio.sleep(10)
        assert recipients(node)[1199] == 2
        assert recipients(node)[0] == 1


async def test_nothing_piles_up_at_a_node_that_comes_and_goes() -> None:
    """Q14, rule 6: one telling at a time, whatever the node does."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        hung = net[1]
        hung.hang(PROPOSERS)
        for turn in range(40):
            await nodes.prepare_beacon_proposer([preparation(turn % 3, turn)], deadline=anyio.current_time() + 4)
            hung.end_streams()
            await anyio.sleep(3)
            assert len(nodes._runner._running) <= 2 + 1
            assert hung.connections <= 2 + 1 + 4
        assert len(told(net[0])) == 40
        hung.heal()
        await slots(nodes, 4)
        assert recipients(hung) == {0: 39, 1: 37, 2: 38}
