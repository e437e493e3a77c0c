"""Waiting for the head of a slot, and who stands behind which root (C4, C10)."""

import anyio
import pytest

from tests.acceptance.generations import listed
from tests.acceptance.harness import Followed, monitor
from vc_fallback.base.types import Slot
from vc_fallback.base.watch import WatchClosed
from vc_fallback.heads.monitor import SlotHead
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


class Wait:
    """A wait under way: what came of it, and when, in slots."""

    def __init__(self, followed: Followed, slot: int, until: float, min_nodes: int = 1) -> None:
        self.result: SlotHead | None = None
        self.ended: float | None = None
        self.closed = False
        self._followed = followed
        self._slot = Slot(slot)
        self._deadline = followed.slots.start_of(Slot(0)) + until * followed.slots.duration
        self._min_nodes = min_nodes

    async def run(self) -> None:
        try:
            self.result = await self._followed.monitor.wait_for_slot(self._slot, self._deadline, self._min_nodes)
        except WatchClosed:
            self.closed = True
        self.ended = round(self._followed.now, 3)


async def test_a_list_change_ends_no_wait() -> None:
    """C10, G4: the node that was waited for leaves, another one comes and answers."""
    async with (
        simulated_devnet(2) as net,
        monitor(net, listed=[net[0]]) as followed,
        anyio.create_task_group() as tasks,
    ):
        await followed.until(130.5)
        wait = Wait(followed, 131, 135)
        tasks.start_soon(wait.run)
        await anyio.sleep(0.1)
        followed.monitor.update_candidates([])
        await followed.until(131.5)
        assert wait.ended is None
        followed.monitor.update_candidates(listed([net[1]]))
        await followed.until(132.5)
        assert wait.result is not None
        # What the new node's poll shows is the head of 131 already (H14).
        assert (wait.result.head.slot, wait.result.head.node_id, wait.result.later) == (131, "bn2", False)
        assert wait.ended == pytest.approx(131.5, abs=0.01)


async def test_nodes_that_left_do_not_count() -> None:
    """C10, G2: `min_nodes` are nodes of the present list; a third one makes up for the one that left."""
    async with simulated_devnet(3) as net:
        _, second, third = net
        second.state.head_delay, third.state.head_delay = 4.0, 6.0
        async with monitor(net) as followed, anyio.create_task_group() as tasks:
            await followed.until(130.9)
            wait = Wait(followed, 131, 132, min_nodes=2)
            tasks.start_soon(wait.run)
            await followed.until(131.2)
            followed.monitor.update_candidates(listed([second, third]))
            await followed.until(131.9)
            assert wait.result is not None
            assert wait.ended == pytest.approx(131 + 7 / 12, abs=0.001)
            assert set(wait.result.head.seen_by) == {"bn2", "bn3"}


async def test_what_the_gate_holds_back_is_no_answer() -> None:
    """C5, C10: a head counts when it is delivered; when the gate opens it answers at once."""
    async with simulated_devnet(2) as net, monitor(net, fallbacks=[net[1]]) as followed:
        primary = net[0]
        primary.state.head_delay = 6.0
        async with anyio.create_task_group() as tasks:
            await followed.until(130.9)
            wait = Wait(followed, 131, 132)
            tasks.start_soon(wait.run)
            await followed.until(131.3)
            assert wait.ended is None
            await primary.kill()
            await followed.until(131.4)
            assert wait.result is not None
            assert wait.result.head.node_id == "bn2"


async def test_a_reorg_while_several_nodes_are_waited_for() -> None:
    """C4, C10: votes count for the delivered head alone; the answer is the block that they agree on."""
    async with simulated_devnet(3) as net:
        _, second, third = net
        second.state.head_delay = third.state.head_delay = 3.0
        net.chain.branch("other", above=130)
        async with monitor(net) as followed, anyio.create_task_group() as tasks:
            await followed.until(130.9)
            second.state.branch = third.state.branch = "other"
            wait = Wait(followed, 131, 132, min_nodes=2)
            tasks.start_soon(wait.run)
            await followed.until(131.2)
            mine, theirs = followed.block(131).root, followed.block(131, "other").root
            assert followed.monitor.votes(Slot(131)) == {mine: ("bn1",)}
            await followed.until(131.5)
            assert wait.result is not None
            assert wait.result.head.root == theirs
            assert set(wait.result.head.seen_by) == {"bn2", "bn3"}
            votes = followed.monitor.votes(Slot(131))
            assert {voted: set(nodes) for voted, nodes in votes.items()} == {mine: {"bn1"}, theirs: {"bn2", "bn3"}}
            assert followed.monitor.votes(Slot(130)) == {}
            assert followed.monitor.votes(Slot(132)) == {}


async def test_votes_are_of_nodes_that_may_be_listened_to() -> None:
    """C4, C5: not of fallbacks that are held back, of optimistic heads, of nodes whose connection ended."""
    async with simulated_devnet(4) as net, monitor(net, fallbacks=[net[3]]) as followed:
        _, optimistic, gone, _ = net
        await followed.until(130.9)
        optimistic.state.optimistic = True
        await followed.until(131.5)
        root = followed.block(131).root
        votes = followed.monitor.votes(Slot(131))
        assert {voted: set(nodes) for voted, nodes in votes.items()} == {root: {"bn1", "bn3"}}
        await gone.kill()
        await followed.until(131.6)
        assert followed.monitor.votes(Slot(131)) == {root: ("bn1",)}


async def test_a_cancelled_wait_costs_nobody() -> None:
    """C9, C10, rule 5: others that wait for the same slot get it; the next wait works."""
    async with simulated_devnet(1) as net, monitor(net) as followed, anyio.create_task_group() as tasks:
        await followed.until(130.5)
        others = [Wait(followed, 131, 133) for _ in range(3)]
        for other in others:
            tasks.start_soon(other.run)
        for _ in range(20):
            with anyio.move_on_after(0.1) as scope:
                await followed.monitor.wait_for_slot(Slot(131), anyio.current_time() + 100)
            assert scope.cancelled_caught
        await followed.until(131.5)
        assert [other.ended for other in others] == [pytest.approx(131 + 1 / 12, abs=0.001)] * 3


async def test_waits_end_with_the_monitor() -> None:
    """C10: `WatchClosed` while it waits and afterwards, at once; a head that is there is still an answer."""
    async with simulated_devnet(1) as net, anyio.create_task_group() as tasks:
        async with monitor(net) as followed:
            await followed.until(131.5)
            waits = [Wait(followed, 140, 150), Wait(followed, 131, 150, min_nodes=2)]
            for wait in waits:
                tasks.start_soon(wait.run)
            await anyio.sleep(0.1)
        await anyio.sleep(0.1)
        assert [wait.closed for wait in waits] == [True, True]
        assert [wait.ended for wait in waits] == [pytest.approx(131.51, abs=0.01)] * 2
        with pytest.raises(WatchClosed):
            await followed.monitor.wait_for_slot(Slot(140), anyio.current_time() + 100)
        there = await followed.monitor.wait_for_slot(Slot(131), anyio.current_time())
        assert there is not None
        assert there.head.slot == 131


async def test_a_deadline_that_has_passed_still_finds_what_is_there() -> None:
    """C10: no wait, and no answer where there is none."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        await followed.until(131.5)
        past = anyio.current_time() - 100
        found = await followed.monitor.wait_for_slot(Slot(131), past, min_nodes=2)
        assert found is not None
        assert not found.later
        before = anyio.current_time()
        assert await followed.monitor.wait_for_slot(Slot(132), past) is None
        assert await followed.monitor.wait_for_slot(Slot(131), past, min_nodes=3) is None
        assert anyio.current_time() == before
