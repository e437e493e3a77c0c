"""Who is sent what is published, and in which turn: topics, cool-downs, roles, lists that change (Q2, Q5, Q11, Q14)."""

from collections.abc import Sequence

import anyio
import pytest

from tests.acceptance.held import SYNC_MESSAGES, held, listing, messages, node_id, sent, slot_of, to_next_slot
from vc_fallback import BroadcastResult, Encodings, NotPublished, Outcome
from vc_fallback.base.health import HealthState
from vc_fallback.base.types import Slot
from vc_fallback.config import FallbackConfig
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.node import failures
from vc_fallback.testing import Delay, Refusal, SimulatedDevnet, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

SLOT = 12.0
SILENCE = SLOT / 8
"""Seconds after which the next are sent it as well."""
EVENTS_ONLY = {"roles": ["events", "duties"]}
ATTESTATIONS = "/eth/v2/beacon/pool/attestations"
EXITS = "/eth/v1/beacon/pool/voluntary_exits"


async def publish(nodes: BeaconNodeFallback, net: SimulatedDevnet, count: int = 1) -> tuple[BroadcastResult, float]:
    """Publish messages; return the result and the seconds until it was there."""
    began = anyio.current_time()
    result = await nodes.publish_sync_committee_messages(messages(nodes, net.chain, count))
    return result, anyio.current_time() - began


def in_order(nodes: BeaconNodeFallback, net: SimulatedDevnet) -> list[SimulatedNode]:
    """Return the nodes in the order in which they are asked."""
    by_name = {node.name: node for node in net}
    return [by_name[name] for name in nodes.plan().nodes]


def asked(nodes: Sequence[SimulatedNode], path: str = SYNC_MESSAGES) -> list[int]:
    return [len(sent(node, path)) for node in nodes]


# --- topics that are not broadcast


async def test_a_topic_that_is_not_broadcast_goes_to_the_best_node_alone() -> None:
    """Q5: other topics go to all, and so does what has no topic."""
    async with simulated_devnet(3) as net, held(net, requests={"broadcast": ["attestations"]}) as nodes:
        for node in net:
            node.manners.checks = "none"
        await to_next_slot(nodes)
        result, _ = await publish(nodes, net)
        await result.settled()
        assert asked(in_order(nodes, net)) == [1, 0, 0]
        assert [*result.deliveries] == [node_id(in_order(nodes, net)[0])]
        await nodes.publish_contributions([Encodings(json=b"{}")])
        assert len([node for node in net if sent(node, "/eth/v1/validator/contribution_and_proofs")]) == 1
        await nodes.publish_block(Encodings(ssz=b"block"), "fulu")
        assert len([node for node in net if sent(node, "/eth/v2/beacon/blocks")]) == 1
        for result in (
            await nodes.publish_attestations([Encodings(ssz=bytes(240))], "fulu"),
            await nodes.publish_voluntary_exit(Encodings(json=b"{}")),
        ):
            await result.settled()
        assert asked([*net], ATTESTATIONS) == asked([*net], EXITS) == [1, 1, 1]


async def test_it_goes_to_one_after_the_other_until_one_takes_it() -> None:
    """Q5: at once where a node refuses it, cannot be reached, or takes only a part."""
    async with simulated_devnet(4) as net, held(net, requests={"broadcast": []}) as nodes:
        await to_next_slot(nodes)
        first, second, third, fourth = in_order(nodes, net)
        await first.kill()
        second.inject(SYNC_MESSAGES, Refusal("unknown block", items=(1,)))
        result, took = await publish(nodes, net, 3)
        await result.settled()
        assert took < 0.01
        assert (result.complete, result.pending) == (True, ())
        assert (result.failed, result.partly, result.accepted) == (
            (node_id(first),),
            (node_id(second),),
            (node_id(third),),
        )
        assert asked([second, third, fourth]) == [1, 1, 0]


async def test_who_is_silent_is_not_waited_for() -> None:
    """Q5: after an eighth of a slot the next is sent it as well; the first may still take it."""
    async with simulated_devnet(3) as net, held(net, requests={"broadcast": []}) as nodes:
        await to_next_slot(nodes)
        first, second, third = in_order(nodes, net)
        first.inject(SYNC_MESSAGES, Delay(3.0))
        second.inject(SYNC_MESSAGES, Delay(0.5))
        result, took = await publish(nodes, net)
        assert took == pytest.approx(SILENCE + 0.5)
        assert (result.accepted, result.pending) == ((node_id(second),), (node_id(first),))
        await result.settled()
        assert {*result.accepted} == {node_id(first), node_id(second)}
        assert asked([third]) == [0]


async def test_where_none_takes_it_all_have_been_asked() -> None:
    """Rule 8: and the error says what each said."""
    async with simulated_devnet(3) as net, held(net, requests={"broadcast": []}) as nodes:
        await to_next_slot(nodes)
        for node in net:
            node.inject(SYNC_MESSAGES, Refusal("no"))
        with pytest.raises(NotPublished) as caught:
            await publish(nodes, net)
        assert len(caught.value.errors) == 3
        assert asked([*net]) == [1, 1, 1]


# --- who is to be left alone


async def test_a_node_that_asked_to_be_left_alone_is() -> None:
    """Q11: not while another one takes it, or is expected to answer; what that refuses goes there as well (Q12)."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        well, tired = net
        tired.answer(SYNC_MESSAGES, 429, headers={"Retry-After": "40"}, times=1)
        result, _ = await publish(nodes, net)
        await result.settled()
        assert asked([*net]) == [1, 1]
        result, _ = await publish(nodes, net, 2)
        await anyio.sleep(2)
        assert asked([*net]) == [2, 1]
        well.inject(SYNC_MESSAGES, Refusal("no"), times=1)
        result, took = await publish(nodes, net)
        assert took < 0.01
        assert result.accepted == (node_id(tired),)
        assert asked([*net]) == [3, 2]


@pytest.mark.parametrize("silent", [False, True])
async def test_nobody_is_left_alone_where_nobody_else_is_there(silent: bool) -> None:
    """Q11: what is published is not lost for a cool-down: at once, or after an eighth of a slot of silence."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        await to_next_slot(nodes)
        first, second, tired = net
        tired.answer(SYNC_MESSAGES, 429, headers={"Retry-After": "40"}, times=1)
        await publish(nodes, net)
        await anyio.sleep(0.1)
        first.hang(SYNC_MESSAGES)
        second.hang(SYNC_MESSAGES) if silent else await second.kill()
        if not silent:
            first.answer(SYNC_MESSAGES, 502)
        result, took = await publish(nodes, net)
        assert result.accepted == (node_id(tired),)
        assert took == pytest.approx(SILENCE if silent else 0.0, abs=0.01)


# --- roles


async def test_who_lacks_the_role_is_sent_nothing() -> None:
    """Q5: also where the one that has it refuses it."""
    async with simulated_devnet(2) as net, held(net, more={net[1]: EVENTS_ONLY}) as nodes:
        await to_next_slot(nodes)
        assert (await publish(nodes, net))[0].complete
        net[0].inject(SYNC_MESSAGES, Refusal("no"), times=1)
        with pytest.raises(NotPublished):
            await publish(nodes, net)
        net[0].inject(SYNC_MESSAGES, Delay(SILENCE - 0.1), times=1)
        await publish(nodes, net)
        await anyio.sleep(1)
        assert asked([*net]) == [3, 0]


@pytest.mark.parametrize("fault", ["down", "failing", "without the route", "silent"])
async def test_a_role_whose_nodes_prove_to_be_away_falls_to_the_others(fault: str) -> None:
    """Q14: in this very call, before health has found out."""
    async with simulated_devnet(2) as net, held(net, more={net[1]: EVENTS_ONLY}) as nodes:
        await to_next_slot(nodes)
        if fault == "down":
            await net[0].kill()
        elif fault == "failing":
            net[0].answer(SYNC_MESSAGES, 500, b"{}")
        elif fault == "without the route":
            net[0].manners.routes_missing = {SYNC_MESSAGES}
        else:
            net[0].hang(SYNC_MESSAGES)
        result, took = await publish(nodes, net)
        assert result.accepted == (node_id(net[1]),)
        assert took == pytest.approx(SILENCE if fault == "silent" else 0.0, abs=0.01)


async def test_nodes_that_are_not_usable_are_sent_it_too_and_strangers_are_not() -> None:
    """Q5, N7: whoever may pass it on; a node on another chain is never sent anything."""
    async with simulated_devnet(4) as net:
        net[3].override("/eth/v1/beacon/genesis", genesis_validators_root="0x" + "ab" * 32)
        async with held(net, ready=3) as nodes:
            net[1].cut_off()
            for _ in range(4):
                await to_next_slot(nodes)
            assert nodes.status().nodes[1].lag == 4
            result, _ = await publish(nodes, net)
            await result.settled()
            assert asked([*net]) == [1, 1, 1, 0]
            assert node_id(net[3]) not in result.deliveries


async def test_when_all_primaries_are_known_to_be_down_fallbacks_take_it_at_once() -> None:
    """N10, Q5: those that are down cost nobody anything, and the first that is back is sent it."""
    async with simulated_devnet(3) as net, held(net, fallbacks=[net[2]]) as nodes:
        for node in (net[0], net[1]):
            await node.kill()
        for _ in range(3):
            await to_next_slot(nodes)
        assert [status.state for status in nodes.status().nodes][:2] == [HealthState.UNHEALTHY] * 2
        result, took = await publish(nodes, net)
        assert took < 0.01
        assert result.accepted == (node_id(net[2]),)
        await result.settled()
        assert {*result.failed} == {node_id(net[0]), node_id(net[1])}


# --- a list that changes, and a caller in a hurry


@pytest.mark.parametrize("under", ["another name", "the same name"])
async def test_where_all_have_left_the_list_it_goes_to_those_that_came(under: str) -> None:
    """G2: a call in flight on a removed node ends as "node removed", and moves on, also to who is to be known first."""
    async with simulated_devnet(2) as net, held(net, listed=[net[0]]) as nodes:
        await to_next_slot(nodes)
        net[0].hang(SYNC_MESSAGES)
        name = net[1].name if under == "another name" else net[0].name
        replaced = FallbackConfig.of({"candidates": [{"url": net[1].url, "name": name}]}).candidate_list()
        results: list[BroadcastResult] = []

        async def call() -> None:
            results.append((await publish(nodes, net))[0])

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await anyio.sleep(0.5)
            nodes.update_candidates(replaced)
        (result,) = results
        assert asked([*net]) == [1, 1]
        assert result.accepted == (name,)
        if under == "another name":
            assert result.failed == (node_id(net[0]),)
            assert "node removed" in result.words
        else:
            assert result.deliveries[node_id(net[0])].attempts == 2


async def test_nodes_that_have_still_to_say_which_chain_they_are_on_are_waited_for() -> None:
    """G6: right after the whole list was replaced nothing that is published is lost."""
    async with simulated_devnet(2) as net, held(net, listed=[net[0]]) as nodes:
        await to_next_slot(nodes)
        net[1].latency = 0.25
        nodes.update_candidates(listing(net[1]))
        result, _ = await publish(nodes, net)
        assert result.accepted == (node_id(net[1]),)


async def test_a_caller_in_a_hurry_is_told_and_what_is_on_its_way_arrives() -> None:
    """Q2: `deadline` is when the caller gets an error; who is slow takes it all the same, and is no worse for it."""
    async with simulated_devnet(1) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[0].inject(SYNC_MESSAGES, Delay(2.0))
        with pytest.raises(NotPublished, match="pending") as caught:
            await nodes.publish_sync_committee_messages(messages(nodes, net.chain), deadline=anyio.current_time() + 0.5)
        await caught.value.result.settled()
        assert caught.value.result.outcome is Outcome.ACCEPTED
        assert nodes.status().nodes[0].suspect == ""


async def test_in_the_last_part_of_a_slot_there_is_time_all_the_same() -> None:
    """Q2: the end of the slot is the end of what is sent within it, not of what has no time left."""
    async with simulated_devnet(1) as net, held(net) as nodes:
        await to_next_slot(nodes, into=0.97)
        slot = slot_of(nodes)
        net[0].inject(SYNC_MESSAGES, Delay(1.0))
        result, _ = await publish(nodes, net)
        assert result.complete
        assert slot_of(nodes) == slot + 1
        net[0].hang(SYNC_MESSAGES)
        with pytest.raises(NotPublished) as caught:
            await publish(nodes, net)
        assert isinstance(next(iter(caught.value.errors.values())), failures.RequestTimeout)
        assert nodes.slots is not None
        assert anyio.current_time() == pytest.approx(nodes.slots.start_of(Slot(slot_of(nodes) + 1)), abs=0.01)
