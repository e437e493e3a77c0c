"""Duties under way while the list of nodes changes (scenarios 48 and 52; G2, Q6, Q14)."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.acceptance.facade import VERSION, A, B, C, D, during, holding, listed, moved
from vc_fallback.base.types import NodeId, Role, Root, Slot
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.node.failures import Closed
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.routing.broadcast_result import NotPublished
from vc_fallback.testing import Answer, Delay, simulated_devnet

pytestmark = pytest.mark.anyio

AGGREGATE = "/eth/v2/validator/aggregate_attestation"
ATTESTATIONS = "/eth/v2/beacon/pool/attestations"


async def attestation_data(nodes: BeaconNodeFallback, slot: Slot) -> object:
    return (await nodes.attestation_data(slot)).node_id


async def block(nodes: BeaconNodeFallback, slot: Slot) -> object:
    return (await nodes.produce_block(slot, bytes(96))).node_id


@pytest.mark.parametrize("call", [attestation_data, block], ids=["hedge", "best"])
@pytest.mark.parametrize("others", [0, 1], ids=["the only node", "another one"])
async def test_duties_survive_the_replacement_of_their_node(
    call: Callable[[BeaconNodeFallback, Slot], Awaitable[object]], others: int
) -> None:
    """Scenario 48: hedge and best alike; the duty is done by who has come."""
    async with simulated_devnet(3) as net, holding(net, listed=net.nodes[: 1 + others]) as held:
        first, second, third = net
        await held.until(130.2)
        for node in (first, second):
            node.hang("/eth/v*/validator/*")
        change = listed(third)
        began = anyio.current_time()
        found = await during(
            lambda: call(held.calls, held.slot), lambda: held.calls.update_candidates(change), after=0.2
        )
        assert found == C
        assert anyio.current_time() == pytest.approx(began + 0.2, abs=0.1)
        await held.assert_idle()


async def test_a_quorum_goes_on_with_the_nodes_of_the_new_list() -> None:
    """Rule 9, scenario 48: the majority is of the nodes that there are."""
    async with simulated_devnet(4) as net, holding(net, listed=net.nodes[:3]) as held:
        await held.until(130.2)
        for node in net.nodes[:3]:
            node.hang("/eth/v1/validator/*")
        began = anyio.current_time()
        agreed = await during(
            lambda: held.calls.attestation_data_by_quorum(held.slot),
            lambda: held.calls.update_candidates(listed(net[3])),
        )
        assert agreed.voters == (D,)
        assert anyio.current_time() == pytest.approx(began + 0.5, abs=0.1)
        await held.assert_idle()


async def test_the_client_of_a_node_that_left_is_closed() -> None:
    """G2: `scoped` is of the present list."""
    async with simulated_devnet(2) as net, holding(net) as held:
        scoped = held.calls.scoped(A)
        assert (await scoped.version()).node_id == A
        net[0].hang(VERSION)
        error = await during(scoped.version, lambda: held.calls.update_candidates(listed(net[1])))
        assert isinstance(error, Closed)
        with pytest.raises(Closed):
            await scoped.version()
        with pytest.raises(KeyError):
            held.calls.scoped(A)


async def test_a_role_that_leaves_with_its_node_is_taken_over() -> None:
    """Q14: who has the role has left; the call goes on at a node without it."""
    async with simulated_devnet(2) as net, holding(net, each={"roles": ["events", "attestation"]}) as held:
        first, second = net
        await held.until(130.2)
        change = listed(second, roles=["events", "duties"])
        first.hang(VERSION)

        async def call() -> NodeId:
            return await held.version(role=Role.ATTESTATION)

        assert await during(call, lambda: held.calls.update_candidates(change)) == B


@pytest.mark.parametrize("turn", range(2))
async def test_ten_changes_in_a_second_lose_no_call(turn: int) -> None:
    """Scenario 52: nodes leave, join and move ten times a second for four seconds, and no
    call takes no time at all; every call has its answer."""
    async with simulated_devnet(4) as net, holding(net) as held:
        await held.until(130.2)
        for node in net:
            node.inject(VERSION, Delay(0.05))
        made = 0
        over = False

        async def ask() -> None:
            nonlocal made
            while not over:
                await held.version()
                made += 1

        async def change() -> None:
            nonlocal over
            for number in range(40):
                some = [net[(number + place) % 4] for place in range(1 + (number + turn) % 3)]
                moves = [moved(net[(number + 3) % 4], "moves")] if number % 2 else []
                held.calls.update_candidates([*listed(*some), *moves])
                await anyio.sleep(0.1)
            held.calls.update_candidates(listed(*net))
            over = True

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(change)
            for number in range(8):
                tasks.start_soon(ask)
                await anyio.sleep(0.007 * number)
        assert made > 60
        await held.assert_idle()
        await anyio.sleep(5)
        assert held.calls.status().generation == 42
        assert await held.version()
        assert sum(len([record for record in node.opens if record.closed is None]) for node in net) == 4


async def test_a_second_change_is_followed_as_the_first() -> None:
    """Scenario 48: one node fails, and the other of each list leaves; who comes last has what is asked for."""
    async with simulated_devnet(4) as net, holding(net, listed=net.nodes[:2]) as held:
        await held.until(130.7)
        first, second, third, last = net
        first.answer(AGGREGATE, 500, '{"code": 500, "message": "no"}')
        for node in (second, third):
            node.hang(AGGREGATE)
        last.inject(AGGREGATE, Answer(200, '{"version": "fulu", "data": {"aggregation_bits": "0x0301"}}'))

        async def change() -> None:
            await anyio.sleep(0.2)
            held.calls.update_candidates(listed(first, third))
            await anyio.sleep(0.4)
            held.calls.update_candidates(listed(first, last))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(change)
            answer = await held.calls.aggregate_attestation(Slot(130), Root(bytes(32)), 0)
        assert answer.node_id == last.name
        await held.assert_idle()


async def test_what_was_sent_is_told_where_others_come_too_late() -> None:
    """Rule 8: at the end one node has it and is silent, one has left, one has come: it was not "no node was asked"."""
    async with simulated_devnet(3) as net, holding(net, listed=net.nodes[:2]) as held:
        await held.until(130.2)
        for node in net.nodes[:2]:
            node.hang(ATTESTATIONS)
        end = anyio.current_time() + 1.0
        error = await during(
            lambda: held.calls.publish_attestations([Encodings(json=b"{}")], "fulu", deadline=end),
            lambda: held.calls.update_candidates(listed(net[0], net[2])),
        )
        assert isinstance(error, NotPublished)
        assert (error.result.pending, error.result.failed) == ((A,), (B,))
        assert held.asked(net[2], ATTESTATIONS) == 0
