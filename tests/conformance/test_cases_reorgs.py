"""Cases from the field: heads that go back, come late, or that the node itself contradicts (cases 45–47, 50, 51)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.harness import monitor
from tests.conformance.scripted import AA, BB, CC, DD, HEAD_HEADER, event, head, know, root, say_head, scripted
from vc_fallback.base.signals import ChainReorged, DependentRootChanged, HeadOutcome
from vc_fallback.base.types import HeadSource
from vc_fallback.testing import SimulatedChain

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


EE, FF = "0x" + "e" * 64, "0x" + "f" * 64

REORG = (
    f'{{"slot":"100","depth":"1","old_head_block":"{AA}","new_head_block":"{BB}","old_head_state":"{CC}",'
    f'"new_head_state":"{DD}","epoch":"3","execution_optimistic":false}}'
)


async def test_reorg_without_a_head_event_and_a_lower_slot() -> None:
    """Case 45, H7, H14: `chain_reorg` alone moves the head, its dependent roots unknown; so does a head below it."""
    chain = SimulatedChain(start_slot=100, into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        say_head(node, 100)
        node.send_raw(event("chain_reorg", REORG))
        await anyio.sleep(1)
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.slot, entry.root) == (100, root("b"))
        assert entry.current_epoch_dependent_root is None
        assert entry.next_epoch_dependent_root is None

        say_head(node, 99, CC)
        await anyio.sleep(1)
        assert followed.monitor.latest.value is not None
        assert followed.monitor.latest.value.head.slot == 99
        await followed.until(101.2)
        say_head(node, 101, DD)
        await anyio.sleep(1)
        assert [(delivered.slot, delivered.root, delivered.reorg) for delivered in followed.deliveries()] == [
            (100, root("a"), False),
            (100, root("b"), True),
            (99, root("c"), True),
            (101, root("d"), False),
        ]
        assert not followed.told(DependentRootChanged)


async def test_reorg_that_nothing_announces_is_found_by_a_poll() -> None:
    """Case 45: a late block wins at the next tick and no event says so: the poll of a silent stream finds it."""
    chain = SimulatedChain(start_slot=100, into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        say_head(node, 100)
        know(node, 100, BB)
        await followed.until(103)
        assert [(delivered.root, delivered.source) for delivered in followed.deliveries()] == [
            (root("a"), HeadSource.STREAM),
            (root("b"), HeadSource.POLL),
        ]
        assert len(node.opens) == 1


async def test_each_slot_that_passes_in_silence_is_followed_by_one_poll() -> None:
    """Case 45, H14: what no event says is known when the next slot is over; slots with heads cost no poll."""
    chain = SimulatedChain(start_slot=100, into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        say_head(node, 100)
        await followed.until(100.9)
        know(node, 99, BB)
        await followed.until(101.9)
        asked = node.request_counts[HEAD_HEADER]
        assert followed.delivered_roots() == [root("a")]
        await followed.until(102.1)
        assert node.request_counts[HEAD_HEADER] == asked + 1
        assert [(head.slot, head.root, head.source) for head in followed.deliveries()[1:]] == [
            (99, root("b"), HeadSource.POLL)
        ]
        (reorg,) = followed.told(ChainReorged)
        assert (reorg.old, reorg.new) == ((100, root("a")), (99, root("b")))
        say_head(node, 102, CC)
        await followed.until(103.1)
        assert node.request_counts[HEAD_HEADER] == asked + 1
        assert followed.healthy(node) is True
        assert len(node.opens) == 1


async def test_syncing_node_never_replaces_what_a_synced_one_says() -> None:
    """Case 46: heads of a node far behind keep its own dependent roots to itself and are delivered by nobody."""
    chain = SimulatedChain(into=1)
    async with (
        scripted(chain) as synced,
        scripted(chain, name="bn2") as syncing,
        monitor([synced, syncing]) as followed,
    ):
        await anyio.sleep(1)
        synced.send_raw(event("head", head(128)))
        await anyio.sleep(0.1)
        for slot in (60, 95, 96, 127):
            syncing.send_raw(event("head", head(slot, EE, current=EE, previous=FF)))
            await anyio.sleep(1)
        assert followed.delivered_roots() == [root("a")]
        assert followed.outcomes(syncing) == [
            (60, HeadOutcome.OLD),
            (95, HeadOutcome.OLD),
            (96, HeadOutcome.BEHIND),
            (127, HeadOutcome.BEHIND),
        ]
        own = followed.entry(syncing)
        assert own is not None
        assert own.next_epoch_dependent_root == root("e")
        latest = followed.monitor.latest.value
        assert latest is not None
        assert latest.head.next_epoch_dependent_root == root("c")
        assert not followed.told(DependentRootChanged)


async def test_late_block_in_the_last_slot_of_an_epoch() -> None:
    """Case 47: 20 s late, its slot has become the last of the epoch: delivered, marked late, with its own roots."""
    chain = SimulatedChain(start_slot=158, into=1)  # slots 158 and 159 end epoch 4
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(3.5)
        node.send_raw(event("head", head(158, AA, current=CC, previous=DD)))
        await anyio.sleep(20)
        node.send_raw(event("head", head(159, BB, current=EE, previous=DD)))
        await followed.until(160.2)
        node.send_raw(event("head", head(160, CC, current=FF, previous=EE)))
        await anyio.sleep(1)
        assert [(delivered.slot, delivered.late) for delivered in followed.deliveries()] == [
            (158, False),
            (159, True),
            (160, False),
        ]
        latest = followed.monitor.latest.value
        assert latest is not None
        assert latest.head.current_epoch_dependent_root == root("e")
        assert latest.head.next_epoch_dependent_root == root("f")
        # The head has moved by one slot, and the duties of epoch 5 are others now.
        (change,) = followed.told(DependentRootChanged)
        assert (change.epoch, change.old, change.new, change.nodes) == (5, root("c"), root("e"), ("bn1",))


async def test_poll_that_lags_behind_the_event_is_not_taken() -> None:
    """Case 50: an endpoint that still gives the head before the one just announced takes nothing back."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        say_head(node, 127, AA)
        say_head(node, 128, BB)
        know(node, 127, AA)
        await anyio.sleep(0.1)
        node.comment("error - dropped 2 messages")
        await anyio.sleep(1)
        assert node.requests[-1].path == HEAD_HEADER
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.slot, entry.root) == (128, root("b"))
        assert followed.delivered_slots() == [127, 128]


async def test_404_right_after_the_event_costs_nothing() -> None:
    """Case 51: the node does not find the block it has just announced: no verdict, no reconnect, the head stands."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        say_head(node, 128)
        node.comment("error - dropped 1 messages")
        await anyio.sleep(1)
        assert node.requests[-1].path == HEAD_HEADER
        assert followed.healthy(node) is True
        assert followed.entry(node) is not None
        assert len(node.opens) == 1
        assert followed.delivered_slots() == [128]
