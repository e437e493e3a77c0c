"""Cases from the field: topics that a node refuses, in its stream, by its status, or by silence (cases 4–7)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.harness import monitor
from tests.conformance.scripted import AA, BB, event, head, head_v2, scripted, stalls
from vc_fallback.base.signals import HeadOutcome, StreamReason
from vc_fallback.base.types import PayloadStatus
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing.events import UnknownTopics

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


ALL = ("head", "head_v2", "chain_reorg")

IN_BAND = (
    b'event: error\ndata: {"status_code":400,"message":"Topic head,block not allowed for event subscriptions"}\n\n'
)


async def test_error_within_the_stream_is_a_failed_subscription() -> None:
    """Case 4, scenario 17: 200 and an `error` event is a refusal: its words are told, attempts are few, never fresh."""
    chain = SimulatedChain(into=1)
    async with scripted(chain, framing="prysm", opening=IN_BAND) as node, monitor([node]) as followed:
        await anyio.sleep(60)
        assert {end.reason for end in followed.ends(node)} == {StreamReason.REFUSED}
        assert {end.detail for end in followed.ends(node)} == {
            "400 Topic head,block not allowed for event subscriptions"
        }
        assert "fresh" not in followed.states(node)
        assert not followed.healthy(node)
        assert not followed.outcomes(node)
        # Smaller sets of topics at once, then 1, 2, 4, 8, 16, 16 s.
        assert [record.topics for record in node.opens][:4] == [
            ALL,
            ("head", "head_v2"),
            ("head", "chain_reorg"),
            ("head",),
        ]
        assert 8 <= len(node.opens) <= 4 + 7
        assert node.opens[0].target == "/eth/v1/events?topics=head&topics=head_v2&topics=chain_reorg"


async def test_200_and_eternal_silence_is_not_health() -> None:
    """Case 5: connected and never a byte, while the node's own head and another node's stream go on: stalled."""
    async with simulated_devnet(2, framings=["prysm"]) as net, monitor(net) as followed:
        mute, _ = net
        mute.silence(comments=False)
        mute.broadcast.framing = SimulatedNode(net.chain).broadcast.framing
        await mute.cut_connections()
        await followed.until(145)
        assert "fresh" not in followed.states(mute)
        assert followed.healthy(mute) is False
        assert {stall.reason for stall in stalls(followed, mute)} == {StreamReason.HEAD_SILENCE}
        assert len(mute.opens) <= 2 + 8
        followed.assert_every_slot_delivered(129, 144)


async def test_invalid_topic_in_the_words_of_lodestar() -> None:
    """Case 5, after its fix: `statusCode` in the place of `code`; the topic that is named is left out."""
    chain = SimulatedChain()
    async with (
        SimulatedNode(chain, name="bn1", unknown_topics="lodestar", topics={"head", "chain_reorg"}) as node,
        monitor([node]) as followed,
    ):
        await followed.until(130.5)
        assert [(record.status, record.topics) for record in node.opens] == [(400, ALL), (200, ("head", "chain_reorg"))]
        reduced = [change for change in followed.changes(node) if change.reason is StreamReason.TOPICS_REDUCED]
        assert reduced[0].detail == "400 Invalid topic: head_v2"
        followed.assert_every_slot_delivered(129, 130)


REFUSALS: dict[UnknownTopics, list[tuple[str, ...]]] = {
    "nimbus": [ALL, ("head", "head_v2"), ("head", "chain_reorg"), ("head",)],
    "grandine": [ALL, ("head", "head_v2"), ("head", "chain_reorg"), ("head",)],
    "prysm": [ALL, ("head", "chain_reorg"), ("head",)],
    "spec": [ALL, ("head", "chain_reorg"), ("head",)],
}
"""What is asked for in turn, by a node's way to refuse; only the last two name the topic."""


@pytest.mark.parametrize("style", REFUSALS)
async def test_one_unknown_topic_does_not_cost_the_subscription(style: UnknownTopics) -> None:
    """Case 6: a node that knows `head` alone is asked for less at once; remembered until its version is another."""
    chain = SimulatedChain()
    async with (
        SimulatedNode(chain, name="bn1", unknown_topics=style, topics={"head", "block"}) as node,
        monitor([node]) as followed,
    ):
        await followed.until(130.5)
        assert [record.topics for record in node.opens] == REFUSALS[style]
        assert [record.status for record in node.opens] == [400] * (len(REFUSALS[style]) - 1) + [200]
        followed.assert_every_slot_delivered(128, 130)

        before = len(node.opens)
        node.end_streams()
        await followed.until(131.5)
        assert [record.topics for record in node.opens][before:] == [("head",)]

        node.state.version = "another/v2"
        node.broadcast.topics.update(ALL)
        node.end_streams()
        await followed.until(132.5)
        assert [record.topics for record in node.opens][before + 1 :] == [ALL]
        followed.assert_every_slot_delivered(128, 132)


@pytest.mark.parametrize("style", REFUSALS)
async def test_node_without_head_v2_falls_back_to_head(style: UnknownTopics) -> None:
    """Case 7: refused with 400, the node is followed by `head`, and `chain_reorg` is kept."""
    chain = SimulatedChain()
    async with (
        SimulatedNode(
            chain, name="bn1", unknown_topics=style, topics={"head", "block", "chain_reorg", "finalized_checkpoint"}
        ) as node,
        monitor([node]) as followed,
    ):
        await followed.until(130.5)
        assert node.opens[-1].topics == ("head", "chain_reorg")
        assert node.opens[-1].status == 200
        followed.assert_every_slot_delivered(128, 130)


async def test_both_forms_of_one_block_are_one_head() -> None:
    """Case 7: `head` and `head_v2` of one block back to back, in one segment and in two: the second form tells more."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        node.send_raw(event("head", head(128)) + event("head_v2", head_v2(128)))
        await followed.until(129.2)
        node.send_raw(event("head", head(129, BB)))
        await anyio.sleep(0.01)
        node.send_raw(event("head_v2", head_v2(129, BB)))
        await anyio.sleep(1)
        assert [(head.slot, head.payload_status) for head in followed.deliveries()] == [
            (128, PayloadStatus.FULL),
            (129, PayloadStatus.FULL),
        ]


@pytest.mark.parametrize("apart", [True, False])
async def test_second_form_that_is_broken_leaves_the_first(apart: bool) -> None:
    """Case 7, rule 4: a `head_v2` that cannot be read costs itself, also in one segment with the block's `head`."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        node.send_raw(event("head", head(128)) + event("head_v2", head_v2(128)))
        for slot in (129, 130, 131, 132):
            await followed.until(slot + 0.2)
            node.send_raw(event("head", head(slot, BB)))
            if apart:
                await anyio.sleep(0.01)
            node.send_raw(event("head_v2", head_v2(slot, BB).replace('"slot"', '"solt"')))
        await followed.until(133.2)
        node.send_raw(event("head", head(133)) + event("head_v2", head_v2(133)))
        await anyio.sleep(1)
        # The first of them was taken for the double of a second form that could be read.
        assert [head.slot for head in followed.blocks()] == [128, 130, 131, 132, 133]
        assert followed.deliveries()[-1].payload_status is PayloadStatus.FULL


async def test_mixed_fleet_feeds_one_cache() -> None:
    """Case 7: one node has the old form and one the new: both stand behind one head, which is delivered once."""
    chain = SimulatedChain(into=1)
    async with (
        scripted(chain) as old,
        scripted(chain, name="bn2") as new,
        monitor([old, new]) as followed,
    ):
        await anyio.sleep(1)
        new.send_raw(event("head_v2", head_v2(128)))
        await anyio.sleep(0.1)
        old.send_raw(event("head", head(128)))
        await anyio.sleep(0.1)
        (delivered,) = followed.deliveries()
        assert (delivered.node_id, delivered.payload_status) == ("bn2", PayloadStatus.FULL)
        assert followed.outcomes(old) == [(128, HeadOutcome.DUPLICATE)]
        latest = followed.monitor.latest.value
        assert latest is not None
        assert latest.seen_by == ("bn2", "bn1")

        await followed.until(129.2)
        old.send_raw(event("head", head(129, AA.replace("a", "e"))))
        await anyio.sleep(0.1)
        assert [(head.node_id, head.slot) for head in followed.deliveries()] == [("bn2", 128), ("bn1", 129)]
