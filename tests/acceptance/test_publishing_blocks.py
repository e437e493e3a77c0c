"""Signed blocks, blinded blocks and envelopes through the facade, on simulated nodes (Q5, Q9; cases 53, 61, 62)."""

import logging
from collections.abc import Sequence

import anyio
import pytest

from tests.acceptance.held import (
    BLINDED_BLOCKS,
    BLOCKS,
    ENVELOPES,
    REVEAL,
    SYNC_MESSAGES,
    held,
    listing,
    messages,
    node_id,
    sent,
    signed,
    signed_bare_envelope,
    signed_envelope,
    to_next_slot,
)
from vc_fallback import BroadcastResult, Encodings, NoCandidates, NotPublished, Outcome
from vc_fallback.base.types import NodeId, Root
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.node import failures
from vc_fallback.testing import Delay, Proposal, Refusal, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

SLOT = 12.0
SILENCE = SLOT / 8
BLINDED = Encodings(ssz=b"a blinded block")


def asked(nodes: Sequence[SimulatedNode], path: str) -> list[int]:
    return [len(sent(node, path)) for node in nodes]


def lenient(nodes: Sequence[SimulatedNode]) -> None:
    """Let nodes take any bytes."""
    for node in nodes:
        node.manners.checks = "none"


async def publish_blinded(nodes: BeaconNodeFallback, producer: NodeId) -> tuple[BroadcastResult, float]:
    began = anyio.current_time()
    result = await nodes.publish_blinded_block(BLINDED, "fulu", producer=producer)
    return result, anyio.current_time() - began


async def test_a_block_goes_to_all_nodes_and_is_known_where_it_has_come_by_gossip() -> None:
    """Q5, rule 8, case 55: "already known" beside one success is success."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        slot = await to_next_slot(nodes, into=0.0)
        made = await nodes.produce_block(slot, REVEAL)
        block = signed(net.chain, made.value)
        await nodes.scoped(node_id(net[0])).publish_block(block, made.value.version)
        net[1].hear(net[0].published[0])
        result = await nodes.publish_block(block, made.value.version)
        await result.settled()
        assert (result.complete, {*result.already_known}) == (True, {node_id(net[0]), node_id(net[1])})
        assert result.accepted == (node_id(net[2]),)
        assert [submission.body for submission in net[2].published] == [block.ssz]


async def test_known_everywhere_is_no_success_of_a_block() -> None:
    """Q5, case 62: it may have been gossiped without its blobs."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        slot = await to_next_slot(nodes, into=0.0)
        made = await nodes.produce_block(slot, REVEAL)
        block = signed(net.chain, made.value)
        assert (await nodes.publish_block(block, "fulu")).complete
        await anyio.sleep(0.1)
        result = await nodes.publish_block(block, "fulu")
        assert (result.outcome, result.complete) == (Outcome.UNCERTAIN, False)


async def test_sent_on_and_not_imported_is_an_outcome_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """Case 53: 200 before 202 before an error; 202 from all is a warning."""
    caplog.set_level(logging.WARNING, "vc_fallback.routing")
    async with simulated_devnet(2) as net, held(net) as nodes:
        lenient([*net])
        net[0].inject(BLOCKS, Refusal("late", status=202))
        net[1].inject(BLOCKS, Delay(0.5), times=1)
        began = anyio.current_time()
        result = await nodes.publish_block(Encodings(ssz=b"block"), "fulu")
        assert anyio.current_time() - began == pytest.approx(0.5)
        assert (result.outcome, result.accepted, result.broadcast) == (
            Outcome.ACCEPTED,
            (node_id(net[1]),),
            (node_id(net[0]),),
        )
        assert not caplog.messages
        net[1].inject(BLOCKS, Refusal("late", status=202))
        result = await nodes.publish_block(Encodings(ssz=b"block"), "fulu")
        assert (result.outcome, result.complete) == (Outcome.BROADCAST, False)
        assert "imported by no node" in caplog.text
        net[1].inject(BLOCKS, Refusal("invalid"))
        result = await nodes.publish_block(Encodings(ssz=b"block"), "fulu")
        assert (result.outcome, result.refused) == (Outcome.BROADCAST, (node_id(net[1]),))


async def test_a_block_waits_for_no_earlier_send() -> None:
    """Case 28: a node that hangs on hundreds of attestations is sent the block all the same, and at once."""
    async with simulated_devnet(2) as net, held(net, requests={"stragglers": 4}) as nodes:
        lenient([*net])
        await to_next_slot(nodes)
        net[1].hang(SYNC_MESSAGES)
        for _ in range(20):
            await nodes.publish_sync_committee_messages(messages(nodes, net.chain))
        net[0].inject(BLOCKS, Refusal("no"))
        began = anyio.current_time()
        result = await nodes.publish_block(Encodings(ssz=b"block"), "fulu")
        assert (result.accepted, result.refused) == ((node_id(net[1]),), (node_id(net[0]),))
        assert anyio.current_time() - began < 0.01


# --- blinded blocks


async def test_a_blinded_block_goes_to_its_producer_alone() -> None:
    """Q9: it is not broadcast, whoever has the best rank; a real one, made and signed."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        for node, value in zip(net, (1, 3, 2), strict=True):
            node.state.proposal = Proposal(blinded=True, execution_value=value)
        slot = await to_next_slot(nodes, into=0.0)
        made = await nodes.produce_block(slot, REVEAL)
        assert (made.node_id, made.value.blinded) == (node_id(net[1]), True)
        block = signed(net.chain, made.value)
        result = await nodes.publish_blinded_block(block, made.value.version, producer=made.node_id)
        assert (result.complete, [*result.deliveries]) == (True, [made.node_id])
        await anyio.sleep(6)
        assert asked([*net], BLINDED_BLOCKS) == [0, 1, 0]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, "BAD_REQUEST: invalid block"),
        (400, "BAD_REQUEST: duplicate block"),
        (404, "Block not found"),
        (500, "INTERNAL_SERVER_ERROR: the builder did not reveal the payload"),
        (202, "late"),
    ],
)
async def test_what_the_producer_says_of_it_brings_nobody_in(status: int, body: str) -> None:
    """Q9, case 61: another node would have a payload of its own; not after the silence either."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        lenient([*net])
        net[2].inject(BLINDED_BLOCKS, Refusal(body, status=status))
        if status == 202 or "duplicate" in body:
            result, _ = await publish_blinded(nodes, node_id(net[2]))
            assert not result.complete
        else:
            with pytest.raises(NotPublished):
                await publish_blinded(nodes, node_id(net[2]))
        await anyio.sleep(6)
        assert asked([*net], BLINDED_BLOCKS) == [0, 0, 1]


@pytest.mark.parametrize("fault", ["down", "cut", 502, 503, 504])
async def test_a_producer_that_cannot_be_reached_brings_the_others_in_at_once(fault: str | int) -> None:
    """Q9: also where a proxy says it for the node, or the node is not able to look at it."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        lenient([*net])
        if fault == "down":
            await net[2].kill()
        elif fault == "cut":
            net[2].inject(BLINDED_BLOCKS, Delay(0.2))
            async with anyio.create_task_group() as group:

                async def cut() -> None:
                    await anyio.sleep(0.1)
                    await net[2].kill(reset=True)

                group.start_soon(cut)
                result, took = await publish_blinded(nodes, node_id(net[2]))
        else:
            net[2].answer(BLINDED_BLOCKS, int(fault), "<html>Bad Gateway</html>", content_type="text/html")
        if fault != "cut":
            result, took = await publish_blinded(nodes, node_id(net[2]))
        assert took < 0.2
        await result.settled()
        assert result.failed == (node_id(net[2]),)
        assert {*result.accepted} == {node_id(net[0]), node_id(net[1])}


async def test_a_producer_that_is_silent_for_an_eighth_of_a_slot_brings_the_others_in() -> None:
    """Q9: it may still take it itself."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        lenient([*net])
        net[2].inject(BLINDED_BLOCKS, Delay(2.0))
        result, took = await publish_blinded(nodes, node_id(net[2]))
        assert took == pytest.approx(SILENCE, abs=0.01)
        await result.settled()
        assert {*result.accepted} == {*map(node_id, net)}
        net[2].inject(BLINDED_BLOCKS, Delay(SILENCE - 0.1))
        result, took = await publish_blinded(nodes, node_id(net[2]))
        assert took == pytest.approx(SILENCE - 0.1)
        assert [*result.deliveries] == [node_id(net[2])]


async def test_a_producer_that_has_left_the_list_is_not_waited_for() -> None:
    """Q9, G2: before the call, and while it is under way."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        lenient([*net])
        rest = listing(net[0], net[1])
        net[2].hang(BLINDED_BLOCKS)
        results: list[BroadcastResult] = []

        async def call() -> None:
            results.append((await publish_blinded(nodes, node_id(net[2])))[0])

        async with anyio.create_task_group() as group:
            began = anyio.current_time()
            group.start_soon(call)
            await anyio.sleep(0.5)
            nodes.update_candidates(rest)
        assert anyio.current_time() - began == pytest.approx(0.5, abs=0.01)
        await call()
        for result in results:
            await result.settled()
            assert {*result.accepted} == {node_id(net[0]), node_id(net[1])}


async def test_where_nobody_else_has_the_role_a_blinded_block_is_not_lost() -> None:
    """Q9, Q14: after its producer's failure it goes to whoever there is; the only node there is is asked once."""
    roles = {"roles": ["events", "duties"]}
    async with simulated_devnet(2) as net, held(net, more={net[0]: roles}) as nodes:
        lenient([*net])
        await net[1].kill()
        result, _ = await publish_blinded(nodes, node_id(net[1]))
        assert result.accepted == (node_id(net[0]),)
        rest = listing(net[1])
        nodes.update_candidates(rest)
        with pytest.raises(NotPublished) as caught:
            await publish_blinded(nodes, node_id(net[1]))
        assert {*caught.value.errors} == {node_id(net[1])}


# --- envelopes


async def test_an_envelope_with_its_blobs_goes_to_all_nodes() -> None:
    """Q9, case 61: payload and blobs came with the block."""
    async with simulated_devnet(2, gloas_epoch=0, blobs=1) as net, held(net) as nodes:
        slot = await to_next_slot(nodes, into=0.0)
        made = await nodes.produce_block(slot, REVEAL)
        assert made.value.included
        assert (await nodes.publish_block(signed(net.chain, made.value), "gloas")).complete
        envelope = signed_envelope(net.chain, made.value)
        result = await nodes.publish_execution_payload_envelope(
            envelope, "gloas", producer=made.node_id, blob_data_included=True
        )
        await result.settled()
        assert {*result.accepted} == {*map(node_id, net)}
        headers = [request.headers for node in net for request in node.requests if request.path == ENVELOPES]
        assert [fields["eth-blob-data-included"] for fields in headers] == ["true", "true"]


async def test_an_envelope_without_its_blobs_is_had_from_and_goes_to_its_producer_alone() -> None:
    """Q9, case 61: whatever becomes of it there; no other node has the blobs."""
    async with simulated_devnet(2, gloas_epoch=0) as net, held(net) as nodes:
        slot = await to_next_slot(nodes, into=0.0)
        made = await nodes.produce_block(slot, REVEAL, include_payload=False)
        assert not made.value.included
        produced = next(node for node in net if node.name == made.node_id)
        other = next(node for node in net if node.name != made.node_id)
        block_root = Root(next(iter(produced.state.pool.produced)))
        envelope = await nodes.execution_payload_envelope(slot, block_root, producer=made.node_id)
        bare = signed_bare_envelope(net.chain, envelope.value)

        async def publish() -> BroadcastResult:
            return await nodes.publish_execution_payload_envelope(
                bare, "gloas", producer=made.node_id, blob_data_included=False
            )

        result = await publish()
        assert (result.complete, [*result.deliveries]) == (True, [made.node_id])
        produced.hang(ENVELOPES)
        began = anyio.current_time()
        with pytest.raises(NotPublished):
            await publish()
        assert anyio.current_time() - began == pytest.approx(SLOT / 2, abs=0.01)
        await produced.kill()
        with pytest.raises(NotPublished):
            await publish()
        with pytest.raises(failures.ConnectError):
            await nodes.execution_payload_envelope(slot, block_root, producer=made.node_id)
        nodes.update_candidates(listing(other))
        with pytest.raises(NoCandidates, match="has left the list"):
            await publish()
        with pytest.raises(failures.Closed):
            await nodes.execution_payload_envelope(slot, block_root, producer=made.node_id)
        assert not sent(other, ENVELOPES)
