"""Calls under way while the list of nodes changes (G1–G3, G6; scenarios 48, 49, 52 as requests see them)."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.acceptance.facade import VERSION, A, B, C, D, holding, listed, moved
from vc_fallback.base.types import NodeId, Role, Root, Slot, Sourced
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import Closed, NotFound, ServerError
from vc_fallback.routing.outcomes import AllNodesFailed, DeadlineExceeded, NoCandidates
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio


async def during(call: Callable[[], Awaitable[Any]], change: Callable[[], object], *, after: float = 0.5) -> Any:
    """Make a call, change something while it is under way, and return what the call returns."""
    found = None

    async def make() -> None:
        nonlocal found
        try:
            found = await call()
        except Exception as error:  # noqa: BLE001 - it is looked at
            found = error

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(make)
        await anyio.sleep(after)
        assert found is None
        change()
    return found


async def test_a_call_on_a_node_that_leaves_moves_on_at_once() -> None:
    """Scenario 48: the next node is asked at the moment of the change; the one that left is none the worse for it."""
    async with simulated_devnet(3) as net, holding(net) as held:
        await held.until(130.2)
        net[0].hang(VERSION)
        began = anyio.current_time()
        answer = await during(held.version, lambda: held.calls.update_candidates(listed(*net.nodes[1:])))
        assert answer == B
        assert anyio.current_time() == began + 0.5
        assert [held.asked(node) for node in net] == [1, 1, 0]
        assert not held.health_turns()
        await held.assert_idle()


async def test_who_was_not_asked_yet_and_has_left_is_not_asked() -> None:
    """G3: the plan of a call is as old as the call; who has left since gets no request."""
    async with simulated_devnet(3) as net, holding(net) as held:
        first, second, third = net
        await held.until(130.2)

        async def call() -> NodeId:
            return (await held.calls.first_success(late)).node_id

        async def late(node: BeaconNode) -> Sourced[str]:
            answer = await node.version()
            if node.node_id == A:
                await anyio.sleep(1.0)
                raise ServerError(A, VERSION, "down", status=500)
            return answer

        assert await during(call, lambda: held.calls.update_candidates(listed(first, third))) == C
        assert held.asked(second) == 0


@pytest.mark.parametrize("together", [True, False])
async def test_a_call_whose_only_node_is_replaced_goes_on_at_the_new_one(together: bool) -> None:
    """Scenario 48, G6: as soon as the new one has said which chain it is on; not before."""
    async with simulated_devnet(2) as net, holding(net, listed=net.nodes[:1]) as held:
        first, second = net
        await held.until(130.2)
        first.hang(VERSION)
        second.inject("/eth/v1/config/spec", Delay(0.3))
        began = anyio.current_time()

        def change() -> None:
            held.calls.update_candidates(listed(second) if together else [])
            if not together:
                held.calls.update_candidates(listed(second))

        assert await during(held.version, change) == B
        assert anyio.current_time() == pytest.approx(began + 0.5 + 0.3, abs=0.01)
        await held.assert_idle()


async def test_a_call_whose_nodes_all_leave_ends_at_once() -> None:
    """Scenario 48: nobody is about to come, so nothing is waited for."""
    async with simulated_devnet(2) as net, holding(net) as held:
        await held.until(130.2)
        net[0].hang(VERSION)
        began = anyio.current_time()
        error = await during(held.version, lambda: held.calls.update_candidates([]))
        assert isinstance(error, AllNodesFailed)
        assert str(error) == (
            "request: all 2 nodes failed: bn1: node removed from the list; bn2: node removed from the list"
        )
        assert all(isinstance(failed, Closed) for failed in error.errors.values())
        assert anyio.current_time() == began + 0.5
        with pytest.raises(NoCandidates, match="the list of nodes is empty"):
            await held.version()
        assert anyio.current_time() == began + 0.5


async def test_a_replacement_that_never_comes_is_waited_for_until_the_end() -> None:
    """G6, rule 6: bounded by the call's own end; the error says who left, and who did not come."""
    async with simulated_devnet(2) as net, holding(net, listed=net.nodes[:1]) as held:
        first, second = net
        await held.until(130.2)
        first.hang(VERSION)
        second.refuse()
        began = anyio.current_time()
        error = await during(held.version, lambda: held.calls.update_candidates(listed(second)))
        assert isinstance(error, DeadlineExceeded)
        assert str(error) == "request: no answer in time: bn1: node removed from the list"
        assert anyio.current_time() == pytest.approx(began + 6)
        began = anyio.current_time()
        with pytest.raises(NoCandidates, match="there is no node to ask: bn2: its chain is not known yet"):
            await held.version()
        assert anyio.current_time() == pytest.approx(began + 6)
        await held.assert_idle()


async def test_a_replacement_of_another_chain_ends_the_wait() -> None:
    """N7: as soon as it says so."""
    async with simulated_devnet(1) as net, simulated_devnet(1, seed=9) as other, holding(net) as held:
        await held.until(130.2)
        net[0].hang(VERSION)
        began = anyio.current_time()
        error = await during(held.version, lambda: held.calls.update_candidates([moved(other[0], "else")]))
        assert isinstance(error, AllNodesFailed)
        assert anyio.current_time() < began + 1


async def test_a_node_that_joins_is_asked_as_well_where_all_are_silent() -> None:
    """G2, Q3: after the delay of the node that was asked last, as if it had been there from the start."""
    async with simulated_devnet(2) as net, holding(net, listed=net.nodes[:1]) as held:
        await held.until(130.2)
        net[0].hang(VERSION)
        began = anyio.current_time()
        assert await during(held.version, lambda: held.calls.update_candidates(listed(*net))) == B
        assert anyio.current_time() == pytest.approx(began + 12 / 8)
        await held.assert_idle()


async def test_not_found_does_not_wait_for_who_may_join() -> None:
    """Q3: who could be asked said so."""
    async with simulated_devnet(3) as net, holding(net, listed=net.nodes[:2]) as held:
        first, second, third = net
        await held.until(130.2)
        first.hang("/eth/v1/beacon/headers/*")
        third.refuse()
        began = anyio.current_time()
        error = await during(
            lambda: held.calls.header(Root(bytes(32))), lambda: held.calls.update_candidates(listed(second, third))
        )
        assert isinstance(error, NotFound)
        assert anyio.current_time() == began + 0.5


async def test_a_node_that_is_reached_in_another_way_is_asked_there() -> None:
    """Scenario 49: the same name, another address; the call under way goes on at the new one."""
    async with simulated_devnet(2) as net, holding(net, listed=net.nodes[:1]) as held:
        first, second = net
        await held.until(130.2)
        first.hang(VERSION)
        began = anyio.current_time()
        change = [moved(second, "bn1")]
        assert await during(held.version, lambda: held.calls.update_candidates(change)) == A
        assert anyio.current_time() == pytest.approx(began + 0.5, abs=0.01)
        assert (held.asked(first), held.asked(second)) == (1, 1)


async def test_a_call_on_a_node_that_stays_goes_on() -> None:
    """Scenario 48, G2: tier, role, priority and place in the list restart nothing."""
    async with simulated_devnet(2) as net, holding(net) as held:
        first, second = net
        await held.until(130.2)
        first.inject(VERSION, Delay(1.0))
        changed = [*listed(second), *listed(first, fallbacks=[first], priority=7, roles=["events"])]
        assert await during(held.version, lambda: held.calls.update_candidates(changed)) == A
        assert (held.asked(first), held.asked(second)) == (1, 0)


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
