"""Cases from the field: events whose contents are odd, doubled, renamed or wrong (cases 9–11, 15, 16, 52)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.harness import monitor
from tests.conformance.scripted import AA, BB, CC, DD, event, head, head_v2, know, root, say_head, scripted
from vc_fallback.base.signals import DependentRootChanged, HeadOutcome
from vc_fallback.base.types import HeadSource, PayloadStatus
from vc_fallback.testing import SimulatedChain, simulated_devnet

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


EE = "0x" + "e" * 64
ZERO = "0x" + "0" * 64

PAYLOAD_ATTRIBUTES = [
    '{"version":"capella","Data":{"proposer_index":"19787","proposal_slot":"314103","payload_attributes_v2":{}}}',
    '{"version":"gloas","data":{"proposal_slot":"129","parent_block_root":"' + AA + '","parent_block_hash":"0x00"}}',
    '{"version":"bellatrix","data":{"proposal_slot":"129","parent_block_number":null}}',
    '{"version":"bellatrix","data":',
    "",
]
"""A capital key, a version suffix, an absent and a null number, JSON that breaks off, and nothing at all."""

GLOAS = [
    (
        "execution_payload",
        f'{{"slot":"10","builder_index":"42","block_hash":"{AA}","block_root":"{BB}","execution_optimistic":false}}',
    ),
    (
        "execution_payload_bid",
        f'{{"message":{{"slot":"168775","value":"471708347","execution_requests_root":"{CC}"}},"signature":"0x00"}}',
    ),
    (
        "execution_payload_bid",
        f'{{"version":"gloas","data":{{"message":{{"slot":"168775","execution_requests_root":"{CC}"}}}}}}',
    ),
]

WRONG = [
    ("block", f'{{"message":{{"slot":"4346322","proposer_index":"1","body":{{"graffiti":"{AA}"}}}},"signature":"0x"}}'),
    ("block", f'{{"slot":"128","block":"{EE}","execution_optimistic":false}}'),
    ("finalized_checkpoint", f'{{"block":"{BB}","state":"{EE}","epoch":"9999"}}'),
    ("finalized_checkpoint", "[]"),
]
"""A whole block where its root was due, a root of another block, a state that matches none, another kind of JSON."""

FOREIGN = [("payload_attributes", data) for data in PAYLOAD_ATTRIBUTES] + GLOAS + WRONG


@pytest.mark.parametrize(("topic", "data"), FOREIGN)
async def test_event_of_another_topic_moves_no_head(topic: str, data: str) -> None:
    """Cases 9, 10, 16, scenario 39: whatever its contents are, it moves nothing and ends nothing."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        say_head(node, 128)
        node.send_raw(event(topic, data))
        await anyio.sleep(0.1)
        before = followed.entry(node)
        await followed.until(129.2)
        assert followed.entry(node) == before
        say_head(node, 129, BB)
        await anyio.sleep(0.1)
        assert followed.delivered_roots() == [root("a"), root("b")]
        numbers = followed.monitor.statistics()[followed.id(node)]
        assert (numbers.opens, numbers.heads, numbers.malformed) == (1, 2, 0)


@pytest.mark.parametrize("bare", [False, True])
async def test_second_form_with_and_without_its_wrapper(bare: bool) -> None:
    """Case 10: some nodes leave the `version` and `data` around an event away; members nobody knows are passed over."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        data = head_v2(128, bare=bare).replace('"slot"', '"execution_requests_root":"0x","slot"', 1)
        node.send_raw(event("head_v2", data))
        await anyio.sleep(0.1)
        (delivered,) = followed.deliveries()
        assert (delivered.slot, delivered.root, delivered.payload_status) == (128, root("a"), PayloadStatus.FULL)


async def test_identical_events_are_one_head() -> None:
    """Case 11: two byte-identical events back to back, then the same from another node: one delivery and a vote."""
    chain = SimulatedChain(start_slot=113, into=1)
    async with scripted(chain) as node, scripted(chain, name="bn2") as other, monitor([node, other]) as followed:
        await anyio.sleep(1)
        node.send_raw(event("head", head(113)) * 2)
        await anyio.sleep(0.1)
        say_head(other, 113)
        await anyio.sleep(0.1)
        assert followed.delivered_slots() == [113]
        assert followed.outcomes(node) == [(113, HeadOutcome.DELIVERED), (113, HeadOutcome.DUPLICATE)]
        assert followed.outcomes(other) == [(113, HeadOutcome.DUPLICATE)]
        latest = followed.monitor.latest.value
        assert latest is not None
        assert latest.seen_by == ("bn1", "bn2")


async def test_payload_that_comes_later_is_news_and_a_slower_node_is_not() -> None:
    """Case 11, H11: full after empty is news, another node's empty is none; full falls when its node says so."""
    chain = SimulatedChain(start_slot=10, into=1)
    async with scripted(chain) as node, scripted(chain, name="bn2") as other, monitor([node, other]) as followed:
        await anyio.sleep(1)
        for sayer, status in ((node, "empty"), (node, "full"), (other, "empty"), (node, "full"), (node, "empty")):
            sayer.send_raw(event("head_v2", head_v2(10, status=status)))
            await anyio.sleep(0.1)
        assert [(head.slot, head.payload_status) for head in followed.deliveries()] == [
            (10, PayloadStatus.EMPTY),
            (10, PayloadStatus.FULL),
            (10, PayloadStatus.EMPTY),
        ]
        assert {head.root for head in followed.deliveries()} == {root("a")}
        assert not any(head.reorg for head in followed.deliveries())


async def test_zero_dependent_roots_are_unknown() -> None:
    """Case 15, C11: zeros for some events and real values after them: unknown first, and never a change."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        for slot, (current, previous) in enumerate([(ZERO, ZERO), (ZERO, ""), (CC, DD), (ZERO, ZERO), (CC, DD)], 128):
            await followed.until(slot + 0.2)
            node.send_raw(event("head", head(slot, current=current, previous=previous)))
            await anyio.sleep(0.1)
            entry = followed.entry(node)
            assert entry is not None
            known = current == CC
            assert entry.next_epoch_dependent_root == (root("c") if known else None)
            assert entry.current_epoch_dependent_root == (root("d") if known else None)
        assert followed.delivered_slots() == [128, 129, 130, 131, 132]
        assert not followed.told(DependentRootChanged)


async def test_node_that_says_no_heads_for_an_epoch_is_left_for_another() -> None:
    """Case 15: synced by its own word and silent for 32 slots: its stream is stalled, another node's heads rule."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        mute, other = net
        await followed.until(129.5)
        mute.silence()
        await followed.until(162.5)
        assert followed.healthy(mute) is False
        assert followed.healthy(other) is True
        followed.assert_every_slot_delivered(128, 162)
        # One attempt each 16 s at most, once the backoff is at its cap.
        assert len(mute.opens) <= 5 + 33 * 12 / 12.8


async def test_sole_node_that_says_no_heads_is_asked() -> None:
    """Case 15: where there is no other node, its polls keep the head within four slots of the node's own."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        (mute,) = net
        await followed.until(129.5)
        mute.silence()
        await followed.until(162.5)
        polled = [head.slot for head in followed.deliveries() if head.source is HeadSource.POLL and head.slot > 129]
        assert polled
        gaps = [after - before for before, after in zip([129, *polled], [*polled, 162], strict=True)]
        assert max(gaps) <= 4


async def test_root_of_one_node_alone_does_not_replace_what_two_say() -> None:
    """Case 16, C4: at one slot the root of a single node is kept as its own, and delivered by no one."""
    chain = SimulatedChain(into=1)
    async with (
        scripted(chain) as first,
        scripted(chain, name="bn2") as second,
        scripted(chain, name="bn3") as liar,
        monitor([first, second, liar]) as followed,
    ):
        await anyio.sleep(1)
        for node in (first, second):
            say_head(node, 128)
            await anyio.sleep(0.1)
        say_head(liar, 128, EE)
        await anyio.sleep(0.1)
        assert followed.delivered_roots() == [root("a")]
        assert followed.outcomes(liar) == [(128, HeadOutcome.BEHIND)]
        assert {key: set(nodes) for key, nodes in followed.monitor.votes(followed.slot).items()} == {
            root("a"): {"bn1", "bn2"},
            root("e"): {"bn3"},
        }


async def test_renamed_dependent_roots_compare_equal() -> None:
    """Case 52: v1's previous and current are v2's current and next epoch's; a mixed fleet shows no difference."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as old, scripted(chain, name="bn2") as new, monitor([old, new]) as followed:
        await anyio.sleep(1)
        old.send_raw(event("head", head(128)))
        new.send_raw(event("head_v2", head_v2(128)))
        await anyio.sleep(0.1)
        mine, theirs = followed.entry(old), followed.entry(new)
        assert mine is not None
        assert theirs is not None
        assert mine.current_epoch_dependent_root == theirs.current_epoch_dependent_root == root("d")
        assert mine.next_epoch_dependent_root == theirs.next_epoch_dependent_root == root("c")
        assert not followed.told(DependentRootChanged)


async def test_poll_does_not_take_the_dependent_roots_away() -> None:
    """Case 52, H14: a poll of the same head has no dependent roots; what the stream said of them stays."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        say_head(node, 128)
        know(node, 128, AA)
        await anyio.sleep(0.1)
        node.comment("error - dropped 3 messages")
        await anyio.sleep(0.1)
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.current_epoch_dependent_root, entry.next_epoch_dependent_root) == (root("d"), root("c"))
        assert followed.delivered_slots() == [128]
