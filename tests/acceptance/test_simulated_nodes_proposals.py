"""Blocks that simulated nodes propose: values, sizes, builders, blobs, Gloas payloads; and publishing them."""

from typing import Any

import anyio
import pytest

from tests.acceptance.raw_client import Reply, fetch
from tests.acceptance.simulated_api import RANDAO, ask, data
from tests.conformance.openapi import JSON, SSZ
from vc_fallback.testing import (
    ETHER,
    Cut,
    Hang,
    Proposal,
    Refusal,
    SimulatedChain,
    SimulatedNode,
    simulated_devnet,
)
from vc_fallback.testing.containers.blocks import BlockTypes, block_types, signed

pytestmark = pytest.mark.anyio

SIGNATURE = bytes(range(96))
BLOCKS = "/eth/v2/beacon/blocks"


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


def chain_of(fork: str, **options: Any) -> SimulatedChain:
    return SimulatedChain(slots_per_epoch=8, forks={fork: 0}, **options)


def types_of(node: SimulatedNode) -> BlockTypes:
    return block_types(node.chain.preset, node.chain.fork_name(node.state.slot))


async def proposed(node: SimulatedNode, operation: str = "produceBlockV3", **request: Any) -> Reply:
    """Have a block made for the present slot."""
    query = [("randao_reveal", RANDAO), *request.pop("query", ())]
    return await ask(node, operation, place={"slot": node.state.slot}, query=query, within=20, **request)


async def publish(node: SimulatedNode, operation: str, fork: str, body: object, **headers: str) -> Reply:
    return await ask(node, operation, body=body, version=fork, headers=headers, within=20)


@pytest.mark.parametrize("fork", ["phase0", "altair", "bellatrix", "capella", "deneb", "electra", "fulu"])
async def test_a_block_is_produced_signed_and_published_in_both_forms(fork: str) -> None:
    """v3 and v2; what was published is on record byte for byte; the other form is then a duplicate."""
    async with SimulatedNode(chain_of(fork)) as node:
        types = types_of(node)
        reply = await proposed(node, accept=SSZ)
        assert reply.headers["eth-execution-payload-blinded"] == "false"
        made = types.contents.decode(reply.body)
        block = made.get("block", made)
        assert (block["slot"], block["body"]["randao_reveal"]) == (32, b"\xab" * 96)
        assert (await proposed(node)).json["data"] == types.contents.to_json(made)
        both = {"message": block, "signature": SIGNATURE}
        value = {**made, "signed_block": both} if "block" in made else both
        body = types.signed_contents.encode(value)
        assert (await publish(node, "publishBlockV2", fork, body)).status == 200
        (kept,) = node.published
        assert (kept.operation, kept.route, kept.version) == ("publishBlockV2", BLOCKS, fork)
        assert (kept.media_type, kept.body, kept.items, kept.status, kept.at) == (SSZ, body, 1, 200, 0.0)
        again = await publish(node, "publishBlockV2", fork, types.signed_contents.to_json(value))
        assert (again.status, again.json["message"]) == (202, "duplicate block")
        older = await fetch(node.url, f"/eth/v2/validator/blocks/32?randao_reveal={RANDAO}")
        assert older.status == (400 if fork in {"electra", "fulu"} else 200)


@pytest.mark.parametrize("fork", ["bellatrix", "capella", "deneb", "electra", "fulu"])
async def test_a_blinded_block_has_the_root_of_the_whole_one_and_is_taken_blinded(fork: str) -> None:
    """A builder's block; none where the boost factor forbids it."""
    async with SimulatedNode(chain_of(fork), proposal=Proposal(blinded=True)) as node:
        types = types_of(node)
        reply = await proposed(node)
        assert reply.json["execution_payload_blinded"] is True
        blinded = types.blinded.from_json(reply.json["data"])
        in_ssz = await proposed(node, accept=SSZ)
        assert in_ssz.headers["eth-execution-payload-blinded"] == "true"
        assert types.blinded.decode(in_ssz.body) == blinded
        own = await proposed(node, query=[("builder_boost_factor", 0)])
        assert own.json["execution_payload_blinded"] is False
        body = types.signed_blinded.to_json({"message": blinded, "signature": SIGNATURE})
        assert (await publish(node, "publishBlindedBlockV2", fork, body)).status == 200
        assert node.published[0].operation == "publishBlindedBlockV2"
        assert (await publish(node, "publishBlockV2", fork, body)).status == 400


async def test_values_and_sizes_are_those_of_the_proposal() -> None:
    """Values in wei, beyond 2^64 too; missing ones and nonsense (Q7); a megabyte and more."""
    async with SimulatedNode(SimulatedChain()) as node:
        for size in (5_000, 100_000, 1_000_000):
            node.state.proposal = Proposal(size=size, consensus_value=3 * ETHER, execution_value=10**21)
            reply = await proposed(node, accept=SSZ)
            assert len(reply.body) == pytest.approx(size, rel=0.01)
            assert reply.headers["eth-consensus-block-value"] == "3000000000000000000"
            assert reply.headers["eth-execution-payload-value"] == "1000000000000000000000"
        node.state.proposal = Proposal(execution_value="much", consensus_value=None)
        path = f"/eth/v3/validator/blocks/128?randao_reveal={RANDAO}"
        reply = await fetch(node.url, path)
        assert reply.headers["eth-execution-payload-value"] == reply.json["execution_payload_value"] == "much"
        assert "eth-consensus-block-value" not in reply.headers
        assert "consensus_block_value" not in reply.json


async def test_blocks_of_different_nodes_differ_and_hold_what_was_asked_for() -> None:
    async with simulated_devnet(2, slots_per_epoch=8) as net:
        blocks = [(await proposed(node, query=[("graffiti", "0x" + "67" * 32)])).json["data"]["block"] for node in net]
        one, other = (block["body"]["execution_payload"]["block_hash"] for block in blocks)
        assert one != other
        assert {block["body"]["graffiti"] for block in blocks} == {"0x" + "67" * 32}
        for query in ([("randao_reveal", "0xc0")], [("randao_reveal", RANDAO), ("graffiti", "hello")]):
            assert (await ask(net[0], "produceBlockV3", place={"slot": 33}, query=query)).status == 400
        factor = [("builder_boost_factor", 2**64)]
        assert (await proposed(net[0], query=factor)).status == 400
        assert (await proposed(net[0], query=[("builder_boost_factor", 2**64 - 1)])).status == 200
        query = [("randao_reveal", RANDAO)]
        assert (await ask(net[0], "produceBlockV3", place={"slot": 35}, query=query)).status == 400


async def test_the_fee_recipient_is_the_one_the_node_was_told() -> None:
    """Without a preparation on the node that proposes, the fees go elsewhere (Q14)."""
    async with simulated_devnet(2, slots_per_epoch=8) as net:
        (duty,) = [d for d in await data(net[0], "getProposerDutiesV2", place={"epoch": 4}) if d["slot"] == "32"]
        preparation = [{"validator_index": duty["validator_index"], "fee_recipient": "0x" + "fe" * 20}]
        await ask(net[0], "prepareBeaconProposer", body=preparation)
        blocks = [(await proposed(node)).json["data"]["block"] for node in net]
        assert [block["body"]["execution_payload"]["fee_recipient"] for block in blocks] == [
            "0x" + "fe" * 20,
            "0x" + "00" * 20,
        ]


async def test_gloas_payloads_come_with_the_block_or_are_fetched_from_its_producer() -> None:
    """Case 61: v4 with the payload; without it the producer alone has the envelope, and takes it without its blobs."""
    async with simulated_devnet(2, slots_per_epoch=8, gloas_epoch=0) as net:
        producer, other = net
        producer.state.proposal = Proposal(size=50_000, blobs=1)
        types = types_of(producer)
        whole = await proposed(producer, "produceBlockV4", query=[("include_payload", "true")], accept=SSZ)
        assert whole.headers["eth-execution-payload-included"] == "true"
        contents = types.contents.decode(whole.body)
        assert len(types.payload.encode(contents["execution_payload_envelope"]["payload"])) > 45_000
        bare = await proposed(producer, "produceBlockV4", query=[("include_payload", "false")])
        assert bare.json["execution_payload_included"] is False
        assert types.block.from_json(bare.json["data"]) == contents["block"]
        root = types.block.root(contents["block"])
        place = {"slot": 32, "beacon_block_root": "0x" + root.hex()}
        envelope = types.envelope.from_json(await data(producer, "getExecutionPayloadEnvelope", place=place))
        assert envelope == contents["execution_payload_envelope"]
        assert envelope["beacon_block_root"] == root
        assert (await ask(other, "getExecutionPayloadEnvelope", place=place)).status == 404
        message = {"message": envelope, "signature": SIGNATURE}
        body = signed(types.envelope).encode(message)
        told = {"Eth-Blob-Data-Included": "false"}
        assert (await publish(other, "publishExecutionPayloadEnvelope", "gloas", body, **told)).status == 400
        assert (await publish(producer, "publishExecutionPayloadEnvelope", "gloas", body, **told)).status == 200
        with_blobs = types.envelope_contents.encode({**contents, "signed_execution_payload_envelope": message})
        told = {"Eth-Blob-Data-Included": "true"}
        assert (await publish(other, "publishExecutionPayloadEnvelope", "gloas", with_blobs, **told)).status == 200
        assert (await publish(other, "publishExecutionPayloadEnvelope", "gloas", with_blobs)).status == 400
        await anyio.sleep(12)
        assert (await ask(producer, "getExecutionPayloadEnvelope", place=place)).status == 404


async def test_a_gloas_block_on_a_builders_bid_comes_without_a_payload() -> None:
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8, gloas_epoch=0)) as node:
        node.state.proposal = Proposal(blinded=True, execution_value=7 * 10**9)
        node.state.builders = {5}
        reply = await proposed(node, "produceBlockV4", query=[("include_payload", "true")])
        assert reply.json["execution_payload_included"] is False
        bid = reply.json["data"]["body"]["signed_execution_payload_bid"]["message"]
        assert (bid["builder_index"], bid["value"]) == ("5", "7")
        place = {"slot": 32, "builder_index": 5}
        assert (await data(node, "getExecutionPayloadBid", place=place))["builder_index"] == "5"
        assert (await ask(node, "getExecutionPayloadBid", place={**place, "builder_index": 0})).status == 404
        assert (await ask(node, "getExecutionPayloadBid", place={**place, "slot": 40})).status == 400
        node.state.proposal = Proposal(included=False)
        own = await proposed(node, "produceBlockV4", query=[("include_payload", "true")])
        assert own.json["execution_payload_included"] is False
        assert (await proposed(node, "produceBlockV4")).status == 400
        assert (await proposed(node)).status == 400


async def test_a_published_block_may_fail_in_every_way() -> None:
    """Refused, sent on and not imported, too early, of an unknown parent, beside another one, unreadable."""
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8)) as node:
        types = types_of(node)
        made = types.contents.decode((await proposed(node, accept=SSZ)).body)

        def body(**changes: Any) -> bytes:
            block = {"message": {**made["block"], **changes}, "signature": SIGNATURE}
            return types.signed_contents.encode({**made, "signed_block": block})

        assert (await publish(node, "publishBlockV2", "fulu", body(parent_root=bytes(32)))).status == 400
        assert (await publish(node, "publishBlockV2", "fulu", body(slot=34))).status == 400
        assert (await publish(node, "publishBlockV2", "electra", body())).status == 400
        assert (await publish(node, "publishBlockV2", "berlin", body())).status == 400
        assert (await publish(node, "publishBlockV2", "fulu", body()[:-1])).status == 400
        assert (await publish(node, "publishBlockV2", "fulu", {"signed_block": None})).status == 400
        assert (await ask(node, "publishBlockV2", body=body())).status == 400
        with node.inject(BLOCKS, Refusal("Invalid block: missing signature")):
            reply = await publish(node, "publishBlockV2", "fulu", body())
            assert (reply.status, reply.json["message"]) == (400, "Invalid block: missing signature")
        node.state.syncing = True
        assert (await publish(node, "publishBlockV2", "fulu", body())).status == 503
        node.state.syncing = None
        assert [one.taken for one in node.published] == [False] * len(node.published)
        node.inject(BLOCKS, Refusal("failed to import", status=202), times=1)
        assert (await publish(node, "publishBlockV2", "fulu", body())).status == 202
        assert node.published[-1].taken
        assert (await publish(node, "publishBlockV2", "fulu", body())).json["message"] == "duplicate block"
        assert (await publish(node, "publishBlockV2", "fulu", body(state_root=bytes(32)))).status == 400


async def test_a_node_that_cuts_its_answer_has_taken_what_it_was_sent_one_that_hangs_has_not() -> None:
    async with SimulatedNode(chain_of("capella")) as node:
        types = types_of(node)
        block = types.block.decode((await proposed(node, accept=SSZ)).body)
        body = types.signed_contents.encode({"message": block, "signature": SIGNATURE})
        node.inject(BLOCKS, Hang(), times=1)
        with pytest.raises(TimeoutError):
            await publish(node, "publishBlockV2", "capella", body)
        assert not node.published
        node.inject(BLOCKS, Cut(after=0, reset=True), times=1)
        with pytest.raises(anyio.BrokenResourceError):
            await publish(node, "publishBlockV2", "capella", body)
        assert [one.status for one in node.published] == [200]


async def test_the_type_of_json_is_told_with_a_parameter_or_without() -> None:
    async with SimulatedNode(chain_of("capella")) as node:
        types = types_of(node)
        block = types.block.from_json((await proposed(node)).json["data"])
        body = types.signed_contents.to_json({"message": block, "signature": SIGNATURE})
        told = {"Content-Type": f"{JSON.upper()}; charset=utf-8"}
        assert (await publish(node, "publishBlockV2", "capella", body, **told)).status == 200
        for media_type in ("text/plain", ""):
            assert (
                await publish(node, "publishBlockV2", "capella", body, **{"Content-Type": media_type})
            ).status == 415
