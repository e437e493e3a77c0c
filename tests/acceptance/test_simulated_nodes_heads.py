"""Simulated nodes: heads on time, late, lagging, reorganised, optimistic; many nodes; the same each time."""

from typing import Any

import anyio
import pytest

from tests.acceptance.raw_client import HEADS, Listener, fetch, listening
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing.virtual_time import real_time, run_in_virtual_time

pytestmark = pytest.mark.anyio

SLOT = 12.0
REORGS = HEADS + "&topics=chain_reorg"


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


@pytest.mark.parametrize("slot_duration", [0.05, 1.0, 5.0, 12.0])
async def test_heads_come_once_a_slot_at_any_speed(slot_duration: float) -> None:
    """A twelfth of a slot after its start, from every node, with real roots."""
    async with (
        simulated_devnet(2, slot_duration=slot_duration, slots_per_epoch=8) as net,
        listening(net[0].url) as first,
        listening(net[1].url) as second,
    ):
        await anyio.sleep(slot_duration * 10)
        assert first.slots() == list(range(32, 42))
        assert [event.data for event in first.heard] == [event.data for event in second.heard]
        start = net.chain.slots.start_of
        for event in first.heard:
            assert event.at == pytest.approx(start(net.chain.head_at(event.slot).slot) + slot_duration / 12)
            block = net.chain.block_at(event.slot)
            assert block is not None
            assert event.data["block"] == "0x" + block.root.hex()
            assert event.data["epoch_transition"] is (event.slot % 8 == 0)


async def test_head_and_head_v2_say_the_same_and_v2_is_full_before_gloas() -> None:
    """Cases 7 and 52: two signals for one block; v1 previous = v2 current epoch."""
    chain = SimulatedChain(start_slot=100)
    async with SimulatedNode(chain) as node, listening(node.url, HEADS + "&topics=head_v2") as heard:
        await anyio.sleep(SLOT)
        first, second = (event.data for event in heard.heard)
    assert heard.topics() == ["head", "head_v2"]
    assert second["version"] == "fulu"
    assert second["data"]["payload_status"] == "full"
    assert second["data"]["block"] == first["block"]
    assert second["data"]["current_epoch_dependent_root"] == first["previous_duty_dependent_root"]
    assert second["data"]["next_epoch_dependent_root"] == first["current_duty_dependent_root"]


async def test_a_gloas_head_is_empty_and_then_full() -> None:
    """Case 11: `head_v2` twice for one block, `head` once; a withheld payload never comes."""
    chain = SimulatedChain(start_slot=100, gloas_epoch=0)
    chain.withhold_payload(101)
    async with SimulatedNode(chain) as node, listening(node.url, HEADS + "&topics=head_v2") as heard:
        await anyio.sleep(3 * SLOT)
    statuses = [(e.slot, e.data["data"]["payload_status"], e.at) for e in heard.heard if e.topic == "head_v2"]
    assert statuses == [(100, "empty", 1), (100, "full", 6), (101, "empty", 13), (102, "empty", 25), (102, "full", 30)]
    assert heard.slots() == [100, 101, 102]
    assert heard.heard[1].data["version"] == "gloas"


async def test_missed_slots_have_no_event_and_the_next_block_links_over_them() -> None:
    """Scenario 18, case 1."""
    chain = SimulatedChain(start_slot=100)
    chain.miss(*range(101, 108))
    async with SimulatedNode(chain) as node, listening(node.url) as heard:
        await anyio.sleep(10 * SLOT)
        assert heard.slots() == [100, 108, 109]
        header = (await fetch(node.url, "/eth/v1/beacon/headers/108")).json["data"]["header"]["message"]
        assert header["parent_root"] == heard.heard[0].data["block"]


async def test_a_late_block_comes_late_even_in_the_next_slot() -> None:
    """Case 47: the block of slot 101 fills its slot 20 s after it began."""
    chain = SimulatedChain(start_slot=100)
    chain.delay(101, 20.0)
    async with SimulatedNode(chain) as node, listening(node.url) as heard:
        await anyio.sleep(3 * SLOT)
    assert [(event.slot, event.at) for event in heard.heard] == [(100, 1), (101, 32), (102, 32)]


async def test_a_slow_node_has_its_heads_later_and_a_lagging_one_older_heads() -> None:
    chain = SimulatedChain(start_slot=100)
    async with (
        SimulatedNode(chain, head_delay=2.0) as slow,
        SimulatedNode(chain, lag=3) as lagging,
        listening(slow.url) as slowly,
        listening(lagging.url) as behind,
    ):
        assert (await fetch(lagging.url, "/eth/v1/node/syncing")).json["data"]["sync_distance"] == "4"
        await anyio.sleep(3 * SLOT)
        assert [(event.slot, event.at) for event in slowly.heard] == [(100, 3), (101, 15), (102, 27)]
        assert behind.slots() == [97, 98, 99]
        lagging.state.lag = 0
        await anyio.sleep(SLOT)
        assert behind.slots() == [97, 98, 99, 100, 101, 102, 103]


async def test_a_node_without_peers_keeps_its_head_and_bursts_when_it_has_them_again() -> None:
    """A resyncing node sends a burst of old heads (recordings); scenario 59."""
    chain = SimulatedChain(start_slot=100)
    async with SimulatedNode(chain) as node, listening(node.url) as heard:
        await anyio.sleep(SLOT)
        node.cut_off()
        await anyio.sleep(20 * SLOT)
        assert heard.slots() == [100]
        assert (await fetch(node.url, "/eth/v1/beacon/headers/head")).json["data"]["header"]["message"]["slot"] == "100"
        node.rejoin(interval=0.25)
        await anyio.sleep(SLOT)
        assert heard.slots() == list(range(100, 122))
        assert [event.at - heard.heard[1].at for event in heard.heard[1:4]] == [0, 0.25, 0.5]


@pytest.mark.parametrize("reorg_first", [False, True])
async def test_a_reorg_is_said_by_head_and_chain_reorg_in_either_order(reorg_first: bool) -> None:
    """Case 45; Lodestar says `head` before `chain_reorg`, and the head may go to a lower slot."""
    chain = SimulatedChain(start_slot=100)
    chain.branch("other", above=100)
    chain.miss(102, branch="other")
    async with SimulatedNode(chain) as node, listening(node.url, REORGS) as heard:
        await anyio.sleep(2 * SLOT + 2)
        old = node.head
        node.switch("other", reorg_first=reorg_first)
        await anyio.sleep(SLOT)
        assert heard.slots() == [100, 101, 102, 101, 103]
        reorg = next(event.data for event in heard.heard if event.topic == "chain_reorg")
        assert heard.topics()[3:5] == (["chain_reorg", "head"] if reorg_first else ["head", "chain_reorg"])
        new = chain.head_at(102, "other")
        assert reorg == {
            "slot": "101",
            "depth": "2",
            "old_head_block": "0x" + old.root.hex(),
            "new_head_block": "0x" + new.root.hex(),
            "old_head_state": "0x" + old.state_root.hex(),
            "new_head_state": "0x" + new.state_root.hex(),
            "epoch": "3",
            "execution_optimistic": False,
        }
        found = (await fetch(node.url, f"/eth/v1/beacon/headers/0x{old.root.hex()}")).json["data"]
        assert found["canonical"] is False


async def test_a_reorg_can_come_without_a_head_event_or_without_any() -> None:
    """Case 45: some nodes say only `chain_reorg`, some nothing; REST tells."""
    chain = SimulatedChain(start_slot=100)
    chain.branch("other", above=99)
    async with SimulatedNode(chain) as node, listening(node.url, REORGS) as heard:
        await anyio.sleep(2)
        node.switch("other", head_event=False)
        await anyio.sleep(1)
        assert heard.topics() == ["head", "chain_reorg"]
        node.switch("main", head_event=False, reorg_event=False)
        await anyio.sleep(1)
        assert heard.topics() == ["head", "chain_reorg"]
        root = (await fetch(node.url, "/eth/v1/beacon/blocks/head/root")).json["data"]["root"]
        assert root == heard.heard[0].data["block"]


async def test_an_optimistic_head_becomes_valid_without_an_event() -> None:
    """H12: no event says so, a poll does."""
    chain = SimulatedChain(start_slot=100)
    async with SimulatedNode(chain) as node, listening(node.url) as heard:
        node.state.optimistic = True
        await anyio.sleep(2)
        assert heard.heard[0].data["execution_optimistic"] is True
        assert (await fetch(node.url, "/eth/v1/beacon/headers/head")).json["execution_optimistic"] is True
        node.state.optimistic = False
        await anyio.sleep(2)
        assert len(heard.heard) == 1
        assert (await fetch(node.url, "/eth/v1/beacon/headers/head")).json["execution_optimistic"] is False


async def test_finality_and_payload_events_are_said_to_those_who_ask() -> None:
    topics = "/eth/v1/events?topics=finalized_checkpoint&topics=execution_payload_available"
    chain = SimulatedChain(slots_per_epoch=8, start_slot=39, gloas_epoch=0)
    async with SimulatedNode(chain) as node, listening(node.url, topics) as heard:
        await anyio.sleep(2 * SLOT)
    assert heard.topics() == ["execution_payload_available", "finalized_checkpoint", "execution_payload_available"]
    assert heard.heard[1].data == {
        "block": "0x" + chain.head_at(24).root.hex(),
        "state": "0x" + chain.head_at(24).state_root.hex(),
        "epoch": "3",
        "execution_optimistic": False,
    }


async def test_a_node_that_does_not_follow_shows_what_it_is_told() -> None:
    chain = SimulatedChain(start_slot=100, gloas_epoch=0)
    async with SimulatedNode(chain, follow=False) as node, listening(node.url, HEADS + "&topics=head_v2") as heard:
        await anyio.sleep(5 * SLOT)
        assert heard.heard == []
        for slot in (103, 101, 103):
            node.show(chain.head_at(slot))
        node.reveal_payload()
        await anyio.sleep(1)
        assert heard.slots() == [103, 101, 103]
        assert heard.slots("head_v2") == [103, 101, 103, 103]


async def test_nodes_on_another_network_say_so() -> None:
    """H13, N7: another seed is another genesis; the clock can be shared."""
    chain = SimulatedChain(start_slot=100)
    other = SimulatedChain(start_slot=100, seed=1)
    async with SimulatedNode(chain) as ours, SimulatedNode(other) as theirs:
        genesis = [(await fetch(node.url, "/eth/v1/beacon/genesis")).json["data"] for node in (ours, theirs)]
        assert genesis[0]["genesis_time"] == genesis[1]["genesis_time"]
        assert genesis[0]["genesis_validators_root"] != genesis[1]["genesis_validators_root"]


def test_a_run_with_the_same_seed_is_the_same_on_both_backends() -> None:
    """Deterministic: what is heard, and when."""

    async def run() -> list[tuple[float, str, str]]:
        async with (
            simulated_devnet(1, slots_per_epoch=8, seed=7, gloas_epoch=5) as net,
            listening(net[0].url, REORGS + "&topics=head_v2&topics=block") as heard,
        ):
            net.chain.branch("other", above=40)
            net.chain.miss(37, 38)
            net.chain.delay(39, 7.5)
            await anyio.sleep(8 * SLOT + 2)
            net[0].freeze()
            await anyio.sleep(3 * SLOT)
            net[0].thaw()
            await anyio.sleep(1)
            net[0].switch("other")
            await anyio.sleep(2 * SLOT)
            return [(event.at, event.topic, event.text) for event in heard.heard]

    once = run_in_virtual_time(run, backend="asyncio")
    assert len(once) > 30
    assert run_in_virtual_time(run, backend="asyncio") == once
    assert run_in_virtual_time(run, backend="trio") == once


async def test_fifty_nodes_run_a_hundred_slots_in_one_process() -> None:
    """Any number of nodes in one process, in virtual time."""
    began = real_time()
    async with simulated_devnet(50, slots_per_epoch=8) as net, anyio.create_task_group() as tasks:
        listeners: list[Listener] = []
        stop = anyio.Event()

        async def follow(url: str) -> None:
            async with listening(url) as heard:
                listeners.append(heard)
                await stop.wait()

        for url in net.urls:
            tasks.start_soon(follow, url)
        await anyio.sleep(100 * SLOT)
        stop.set()
    assert len(listeners) == 50
    for listener in listeners:
        assert listener.slots() == list(range(32, 132))
    assert real_time() - began < 30
