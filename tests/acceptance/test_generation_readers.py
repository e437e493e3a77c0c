"""What readers get when the candidate list changes: buffers, replay, watches (G3, G4, C8)."""

import anyio
import pytest

from tests.acceptance.generations import drain, listed
from tests.acceptance.harness import monitor
from vc_fallback.base.types import Slot
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio


async def test_unread_heads_of_a_node_that_left_are_dropped_and_counted() -> None:
    """C8, G3: delivered means handed to the reader; what stays is stamped with the new generation."""
    chain = SimulatedChain()
    async with (
        SimulatedNode(chain, name="bn1") as first,
        SimulatedNode(chain, name="bn2", head_delay=1) as second,
        monitor([first, second]) as followed,
    ):
        await followed.until(128.5)
        async with followed.monitor.subscribe() as heads:
            await followed.until(130.5)
            await first.kill()
            await followed.until(132.5)
            assert [head.node_id for head in followed.deliveries(since=129)] == ["bn1", "bn1", "bn2", "bn2"]
            followed.monitor.update_candidates(listed([second]))
            assert [(head.slot, head.node_id, head.generation) for head in drain(heads)] == [
                (131, "bn2", 2),
                (132, "bn2", 2),
            ]
            assert heads.statistics().purged == 2
            assert heads.statistics().dropped == 0


async def test_unread_heads_of_a_node_whose_address_changed_are_dropped() -> None:
    """C8, G3: under one name another node; what the one before it gave is not handed out, not even at one moment."""
    async with simulated_devnet(2) as net, monitor(net, listed=[net[0]]) as followed:
        await followed.until(128.5)
        async with followed.monitor.subscribe() as heads:
            await followed.until(130.0)
            await followed.monitor.latest.watcher().wait()
            followed.monitor.update_candidates(listed([net[1]], name="bn1"))
            await followed.until(132.5)
            assert {head.generation for head in drain(heads)} == {2}
            assert heads.statistics().purged == 2


async def test_subscribers_and_the_watch_live_through_every_change() -> None:
    """G4: no channel is closed by a change; whoever waits goes on waiting and gets the next head."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        watched: list[int] = []
        read: list[int] = []

        async def watch() -> None:
            watcher = followed.monitor.latest.watcher()
            while True:
                head = await watcher.wait()
                assert head is not None
                watched.append(head.head.slot)

        async def subscribe() -> None:
            async with followed.monitor.subscribe() as heads:
                async for head in heads:
                    read.append(head.head.slot)  # noqa: PERF401 - nothing else is read

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            tasks.start_soon(subscribe)
            await followed.until(129.5)
            nodes = list(net)
            for turn in range(4):
                followed.monitor.update_candidates(listed([nodes[turn % 3]]), restart="all")
                await followed.wait_slots(2)
            tasks.cancel_scope.cancel()
        assert list(dict.fromkeys(watched)) == list(dict.fromkeys(read)) == list(range(127, 138))


@pytest.mark.parametrize("heir", [True, False])
async def test_replay_after_the_delivering_node_left(heir: bool) -> None:
    """C8, G3: a newcomer gets the present head from a node that shows it too, and nothing where only one did."""
    chain = SimulatedChain()
    async with (
        SimulatedNode(chain, name="bn1") as first,
        SimulatedNode(chain, name="bn2", head_delay=1 if heir else 9) as second,
        monitor([first, second]) as followed,
    ):
        await followed.until(130.5)
        followed.monitor.update_candidates(listed([second]))
        async with followed.monitor.subscribe(replay_latest=True) as heads:
            replayed = [(head.slot, head.node_id, head.generation) for head in drain(heads)]
            assert replayed == ([(130, "bn2", 2)] if heir else [])
            latest = followed.monitor.latest.value
            assert latest is not None
            assert (latest.head.node_id, latest.head.generation) == (("bn2", 2) if heir else ("bn1", 1))
            with anyio.move_on_after(1):
                waited = await followed.monitor.wait_for_slot(Slot(130), deadline=anyio.current_time() + 0.5)
            assert (waited is not None) is heir
