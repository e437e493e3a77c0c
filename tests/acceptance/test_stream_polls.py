"""What a node is asked beside its head stream, and that a poll never looks like a reorg (H14)."""

import anyio
import pytest

from tests.acceptance.harness import known, monitor
from vc_fallback.base.signals import NodeHeadSeen
from vc_fallback.base.types import HeadSource, root_hex
from vc_fallback.testing import Answer, SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing import events as said

pytestmark = pytest.mark.anyio

HEAD = "/eth/v1/beacon/headers/head"


async def test_the_head_known_by_poll_is_taken_at_each_connect() -> None:
    """H14: marked as a poll's, without dependent roots; the stream's head replaces it."""
    async with simulated_devnet(1, into=6) as net, monitor(net) as followed:
        node = net[0]
        await anyio.sleep(0.1)
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.slot, entry.source) == (128, HeadSource.POLL)
        assert entry.current_epoch_dependent_root is entry.next_epoch_dependent_root is None
        await followed.until(130.5)
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.slot, entry.source) == (130, HeadSource.STREAM)
        assert entry.current_epoch_dependent_root == net.chain.duty_roots(followed.block(130)).current_epoch
        asked = node.request_counts[HEAD]
        node.end_streams()
        await anyio.sleep(3)
        assert node.request_counts[HEAD] == asked + 1
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.slot, entry.source) == (130, HeadSource.POLL)


async def test_a_comment_on_dropped_messages_triggers_a_poll() -> None:
    """H14: `error - dropped N messages` → the head is asked for and taken; other comments ask nothing."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.2)
        node.broadcast.silence(comments=False)
        await followed.until(131.2)
        asked = node.request_counts[HEAD]
        node.comment("all is well")
        await anyio.sleep(0.1)
        assert node.request_counts[HEAD] == asked
        node.comment(" error - dropped 5 messages")
        await anyio.sleep(0.1)
        assert node.request_counts[HEAD] == asked + 1
        assert followed.delivered_slots()[-1] == 131
        assert followed.deliveries()[-1].source is HeadSource.POLL


async def test_a_flood_of_dropped_messages_comments_is_no_flood_of_polls() -> None:
    """Rule 6: a node that says so again and again is asked by one poll at a time."""
    async with simulated_devnet(1, latency=0.5) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.2)
        asked = node.request_counts[HEAD]
        for _ in range(500):
            node.comment("error - dropped 1 messages")
        await anyio.sleep(6)
        assert node.request_counts[HEAD] - asked <= 3


async def test_a_reorg_event_moves_the_nodes_head() -> None:
    """H14, case 45: `chain_reorg` without a `head` is the node's new head, without dependent roots; it is delivered."""
    chain = SimulatedChain(start_slot=128)
    chain.branch("other", above=129)
    async with SimulatedNode(chain, name="bn1") as node, monitor([node]) as followed:
        await followed.until(130.5)
        node.switch("other", head_event=False)
        await anyio.sleep(0.1)
        entry = followed.entry(node)
        assert entry is not None
        assert entry.root == followed.block(130, "other").root
        assert entry.current_epoch_dependent_root is None
        assert followed.delivered_roots()[-2:] == [followed.block(130).root, followed.block(130, "other").root]
        assert followed.deliveries()[-1].reorg


@pytest.mark.parametrize("path", [HEAD, "*"])
@pytest.mark.parametrize(
    "body",
    [
        Answer(200, b"not br", {"Content-Encoding": "br"}),
        Answer(200, b"not gzip", {"Content-Encoding": "gzip"}),
        Answer(200, "[" * 100_000),
        Answer(200, '{"data":null}'),
        Answer(204),
    ],
    ids=["br", "gzip", "deep", "no data", "no content"],
)
async def test_answers_to_polls_that_cannot_be_read_cost_nothing_but_themselves(path: str, body: Answer) -> None:
    """Rules 4, 10: what a stream's node is asked beside it may be answered with anything."""
    async with simulated_devnet(2) as net:
        for node in net:
            node.inject("/eth/v1/[!e]*" if path == "*" else path, body)
        async with monitor(net, chain=known(net.chain)) as followed:
            await followed.until(131.5)
            assert [len(node.opens) for node in net] == [1, 1]
            if path == HEAD:
                followed.assert_every_slot_delivered(128, 131)
            for node in net:
                node.heal()
            await followed.until(134.5)
            assert [len(node.opens) for node in net] == [1, 1]
            followed.assert_every_slot_delivered(133, 134)


async def test_requests_that_hang_never_hold_a_stream_back() -> None:
    """Streams and requests never share a limit."""
    async with simulated_devnet(1) as net, monitor(net, wire={"concurrency": 1}) as followed:
        node = net[0]
        await followed.until(130.5)
        node.hang("/eth/v1/beacon/*")
        node.hang("/eth/v1/config/*")
        node.end_streams()
        await followed.until(134.5)
        assert len(node.opens) == 2
        followed.assert_every_slot_delivered(128, 134)


async def test_a_poll_that_the_stream_overtook_is_no_reorg() -> None:
    """H14: the node answered with 130 before it announced 131, and the answer came after the event."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.5)
        await followed.until(131 + 0.5 / 12)
        # What it would answer now is kept for the next poll, which takes a second.
        answer = _header(node)
        node.answer(HEAD, 200, answer, times=1)
        node.latency = 1.0
        node.comment("error - dropped 1 messages")
        await followed.until(131.5)
        node.latency = 0
        assert followed.delivered_slots(since=130) == [130, 131]
        assert not [head for head in followed.deliveries() if head.reorg]
        entry = followed.entry(node)
        assert entry is not None
        assert entry.slot == 131


async def test_a_poll_that_lags_behind_the_events_is_no_reorg() -> None:
    """H14, case 51: an endpoint that is some seconds behind the node's own events, asked after the event."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(131 + 0.5 / 12)
        answer = _header(node)
        await followed.until(131.2)
        node.answer(HEAD, 200, answer)
        node.comment("error - dropped 1 messages")
        await followed.until(131.4)
        assert followed.delivered_slots(since=130) == [130, 131]
        entry = followed.entry(node)
        assert entry is not None
        assert entry.slot == 131


async def test_a_slow_poll_that_a_quick_one_overtook_is_no_reorg() -> None:
    """H14: two polls of one silent node come back in the other order than they went out."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        net.chain.delay(132, 0.6 * 12)
        await followed.until(130.5)
        node.silence()
        await followed.until(132.55)
        # The verification at 132 7/12 is answered with 131, and for 1.4 s under way.
        node.answer(HEAD, 200, _header(node), times=1)
        node.latency = 1.4
        await followed.until(132.59)
        node.latency = 0.0
        node.end_streams()
        await followed.until(132.95)
        assert [seen.slot for seen in followed.told(NodeHeadSeen, since=132.6)][:1] == [132]
        # 131 was found when its silent slot was over.
        assert followed.delivered_slots(since=130) == [130, 131, 132]
        assert not [head for head in followed.deliveries() if head.reorg]


async def test_a_poll_adds_nothing_that_the_stream_knew_better() -> None:
    """C1, H14: a poll of the same block keeps dependent roots and payload status, and is no delivery."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.2)
        told = len(followed.deliveries())
        node.comment("error - dropped 1 messages")
        await followed.until(130.3)
        entry = followed.entry(node)
        assert entry is not None
        assert entry.current_epoch_dependent_root is not None
        assert entry.payload_status is not None
        assert len(followed.deliveries()) == told


def _header(node: SimulatedNode) -> str:
    """What a node answers to a poll of its head, as of now."""
    block = node.head
    message = {
        "slot": str(block.slot),
        "proposer_index": str(block.proposer_index),
        "parent_root": root_hex(block.parent_root),
        "state_root": root_hex(block.state_root),
        "body_root": root_hex(block.body_root),
    }
    header = {"message": message, "signature": "0x" + "00" * 96}
    return said.dumps(
        {
            "execution_optimistic": False,
            "finalized": False,
            "data": {"root": root_hex(block.root), "canonical": True, "header": header},
        }
    )
