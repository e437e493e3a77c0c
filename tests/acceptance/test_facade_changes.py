"""Calls under way while the list of nodes changes (G1–G3, G6; scenarios 48, 49, 52 as requests see them)."""

import anyio
import pytest

from tests.acceptance.facade import VERSION, A, B, C, during, holding, listed, moved
from vc_fallback.base.types import NodeId, Root, Sourced
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import Closed, NotFound, ServerError
from vc_fallback.routing.outcomes import AllNodesFailed, DeadlineExceeded, NoCandidates
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio


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


@pytest.mark.parametrize("after", [0.5, 2.5])
async def test_a_node_that_joins_is_asked_as_well_where_all_are_silent(after: float) -> None:
    """G2, Q3: after the delay of the node that was asked last, as if it had been there from the start."""
    async with simulated_devnet(2) as net, holding(net, listed=net.nodes[:1]) as held:
        await held.until(130.2)
        net[0].hang(VERSION)
        began = anyio.current_time()
        assert await during(held.version, lambda: held.calls.update_candidates(listed(*net)), after=after) == B
        assert anyio.current_time() == pytest.approx(began + max(12 / 8, after), abs=0.01)
        await held.assert_idle()


async def test_an_operation_that_says_of_every_node_that_it_has_left() -> None:
    """It uses a client that is closed: each node is asked once more after the change, and then no more."""
    async with simulated_devnet(3) as net, holding(net) as held:
        await held.until(130.2)
        gone = held.calls.scoped(C)
        asked: list[NodeId] = []

        async def op(node: BeaconNode) -> Sourced[str]:
            asked.append(node.node_id)
            await anyio.sleep(0.3)
            return await gone.version()

        error = await during(
            lambda: held.calls.first_success(op),
            lambda: held.calls.update_candidates(listed(*net.nodes[:2])),
            after=0.1,
        )
        assert isinstance(error, AllNodesFailed)
        assert len(asked) <= 5


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
