"""What a node is asked beside its head stream (H14)."""

import anyio
import pytest

from tests.acceptance.harness import known, monitor
from vc_fallback.base.types import HeadSource
from vc_fallback.testing import Answer, SimulatedChain, SimulatedNode, simulated_devnet

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
