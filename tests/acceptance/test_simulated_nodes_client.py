"""The client and the simulated nodes understand each other, though they share no code for what they say."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from inspect import getmembers, isfunction, signature
from typing import Any

import anyio
import pytest

from vc_fallback.base.types import Epoch, NodeId, Root, Slot
from vc_fallback.base.urls import BaseURL
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.preparations import ProposerPreparation
from vc_fallback.node.values.publication import Publication
from vc_fallback.testing import MISSING_IN_LODESTAR_1_5, Proposal, SimulatedChain, SimulatedNode
from vc_fallback.testing.containers import operations as signed_values
from vc_fallback.testing.containers.basic import Kind
from vc_fallback.testing.containers.blocks import block_types, signed
from vc_fallback.testing.containers.composite import Container
from vc_fallback.testing.containers.presets import FORKS, since
from vc_fallback.wire.client import HTTPClient

pytestmark = pytest.mark.anyio

RANDAO, SIGNATURE = b"\xab" * 96, bytes(range(96))
INDICES = list(range(64))


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


@asynccontextmanager
async def client_of(node: SimulatedNode) -> AsyncIterator[BeaconNode]:
    chain = node.chain
    client = BeaconNode(
        NodeId(node.name), HTTPClient(BaseURL.parse(node.url)), clock=chain.clock, slots=lambda: chain.slots
    )
    try:
        yield client
    finally:
        await client.aclose()


def chain_of(fork: str) -> SimulatedChain:
    return SimulatedChain(slots_per_epoch=8, forks={fork: 0})


def reads(fork: str) -> Mapping[str, tuple[Any, ...]]:
    """Return the arguments of every method that asks for something that is there."""
    calls: dict[str, tuple[Any, ...]] = {
        "attestation_data": (Slot(32), 1),
        "attester_duties": (Epoch(4), INDICES),
        "block": ("head",),
        "block_root": ("head",),
        "blobs": ("head",),
        "client_versions": (),
        "committees": ("head",),
        "deposit_contract": (),
        "finality_checkpoints": ("head",),
        "fork_schedule": (),
        "genesis": (),
        "head": (),
        "header": ("head",),
        "headers": (),
        "health": (),
        "identity": (),
        "liveness": (Epoch(4), INDICES),
        "network_identity": (),
        "peer_count": (),
        "produce_block": (Slot(33), RANDAO),
        "proposer_duties": (Epoch(5),),
        "randao": ("head",),
        "spec": (),
        "state_fork": ("head",),
        "state_root": ("head",),
        "syncing": (),
        "validator": ("head", 3),
        "validator_balances": ("head", [1, 2]),
        "validators": ("head", [1, 2]),
        "version": (),
    }
    if since(fork, "altair"):
        calls["sync_committees"] = ("head",)
        calls["sync_committee_duties"] = (Epoch(4), INDICES)
    if since(fork, "gloas"):
        calls["ptc_duties"] = (Epoch(4), INDICES)
        calls["payload_attestation_data"] = (Slot(32),)
        calls["execution_payload_bid"] = (Slot(32), 0)
    else:
        calls["blinded_block"] = ("head",)
    return calls


# What needs something to be signed or produced before; tested one by one below, or by the tests of publishing.
_AFTERWARDS = {"aggregate_attestation", "execution_payload_envelope", "sync_committee_contribution"}


def test_every_method_that_reads_is_called() -> None:
    calls = [name for name, call in getmembers(BeaconNode, isfunction) if "timeout" in signature(call).parameters]
    names = {name for name in calls if not name.startswith("_")}
    sends = {name for name in names if name.startswith(("publish_", "submit_", "subscribe_", "prepare_", "register_"))}
    asked = {*reads("fulu"), *reads("gloas"), *_AFTERWARDS}
    assert names - sends - asked == {"beacon_committee_selections", "sync_committee_selections"}


@pytest.mark.parametrize("ssz", [True, False])
@pytest.mark.parametrize("fork", FORKS)
async def test_the_client_reads_what_the_nodes_say(fork: str, ssz: bool) -> None:
    """Every method, in every fork, in both forms."""
    async with SimulatedNode(chain_of(fork), ssz=ssz) as node, client_of(node) as client:
        await anyio.sleep(2)
        for name, args in reads(fork).items():
            found = await getattr(client, name)(*args, timeout=20)
            assert found.node_id == "node", name
        assert not client.capabilities.any
        data = (await client.attestation_data(Slot(32), 1)).value
        assert data.beacon_block_root == node.head.root
        duties = (await client.proposer_duties(Epoch(4))).value
        assert (await client.header("head")).value.data.header.message.proposer_index == duties.data[0].validator_index
        block = (await client.block("head")).value
        types = block_types(node.chain.preset, fork)
        assert types.block.root(read(types.signed, block.body, block.content_type)["message"]) == node.head.root


def read(kind: Kind, body: bytes, content_type: str) -> Any:
    return kind.decode(body) if content_type == "application/octet-stream" else kind.from_json(json.loads(body))


def encodings(kind: Kind, value: Any, *, ssz: bool = True) -> Encodings:
    written = json.dumps(kind.to_json(value)).encode()
    return Encodings(ssz=kind.encode(value) if ssz else None, json=written)


@pytest.mark.parametrize("ssz", [True, False])
@pytest.mark.parametrize("fork", ["phase0", "deneb", "electra", "fulu"])
async def test_a_slot_of_a_validator_client_works(fork: str, ssz: bool) -> None:
    """Block, attestations, aggregate: what one side writes the other reads; roots are the same on both sides."""
    async with SimulatedNode(chain_of(fork), ssz=ssz) as node, client_of(node) as client:
        preset, types = node.chain.preset, block_types(node.chain.preset, fork)
        produced = (await client.produce_block(Slot(32), RANDAO)).value
        assert (produced.version, produced.blinded, produced.included) == (fork, False, True)
        contents = read(types.contents, produced.body, produced.content_type)
        both = {"message": contents.get("block", contents), "signature": SIGNATURE}
        value = {**contents, "signed_block": both} if "block" in contents else both
        block = encodings(types.signed_contents, value)
        assert (await client.publish_block(block, fork)).value is Publication.ACCEPTED
        with pytest.raises(failures.AlreadyKnown):
            await client.publish_block(block, fork)
        await anyio.sleep(2)
        mine = next(duty for duty in (await client.attester_duties(Epoch(4), INDICES)).value.data if duty.slot == 32)
        data = (await client.attestation_data(Slot(32), mine.committee_index)).value
        read_data = signed_values.ATTESTATION_DATA.from_json(json.loads(data.to_json()))
        kind: Container = signed_values.SINGLE_ATTESTATION
        vote: dict[str, Any] = {"committee_index": mine.committee_index, "attester_index": mine.validator_index}
        if not since(fork, "electra"):
            kind = signed_values.attestation(preset, fork)
            bits = 1 << mine.validator_committee_index | 1 << mine.committee_length
            vote = {"aggregation_bits": bits.to_bytes(bits.bit_length() // 8 + 1, "little")}
        attestation = encodings(kind, {**vote, "data": read_data, "signature": SIGNATURE})
        await client.publish_attestations([attestation], fork)
        found = await client.aggregate_attestation(Slot(32), data.hash_tree_root(), mine.committee_index)
        aggregate = read(signed_values.attestation(preset, fork), found.value.body, found.value.content_type)
        assert aggregate["data"] == read_data
        message = {"aggregator_index": mine.validator_index, "aggregate": aggregate, "selection_proof": SIGNATURE}
        proof = encodings(signed_values.signed_aggregate(preset, fork), {"message": message, "signature": SIGNATURE})
        await client.publish_aggregates([proof], fork)
        assert [one.media_type == "application/octet-stream" for one in node.published] == [ssz] * 4
        assert {live.index for live in (await client.liveness(Epoch(4), INDICES)).value if live.is_live} == {
            both["message"]["proposer_index"],
            mine.validator_index,
        }
        with pytest.raises(failures.NotFound):
            await client.aggregate_attestation(Slot(32), Root(bytes(32)), 0)


async def test_a_gloas_block_and_its_envelope_are_published() -> None:
    chain = SimulatedChain(slots_per_epoch=8, gloas_epoch=0)
    async with SimulatedNode(chain, proposal=Proposal(blobs=1)) as node, client_of(node) as client:
        types = block_types(chain.preset, "gloas")
        produced = (await client.produce_block(Slot(32), RANDAO, include_payload=False)).value
        assert (produced.version, produced.included) == ("gloas", False)
        block = types.block.decode(produced.body)
        root = Root(types.block.root(block))
        await client.publish_block(encodings(types.signed, {"message": block, "signature": SIGNATURE}), "gloas")
        found = (await client.execution_payload_envelope(Slot(32), root)).value
        message = {"message": types.envelope.decode(found.body), "signature": SIGNATURE}
        envelope = encodings(signed(types.envelope), message)
        await client.publish_execution_payload_envelope(envelope, "gloas", blob_data_included=False)
        assert [one.status for one in node.published] == [200, 200]
        with pytest.raises(failures.NotFound):
            await client.execution_payload_envelope(Slot(32), Root(bytes(32)))


async def test_an_old_lodestar_is_spoken_to_by_its_older_routes() -> None:
    """Q13: blocks by v2, published by v1, validators by GET; remembered."""
    chain = chain_of("capella")
    node = SimulatedNode(chain, framing="lodestar", ssz=False, routes_missing=MISSING_IN_LODESTAR_1_5)
    node.manners.version_header = None
    async with node, client_of(node) as client:
        await anyio.sleep(2)
        types = block_types(chain.preset, "capella")
        for _ in range(2):
            block = types.block.from_json(json.loads((await client.produce_block(Slot(33), RANDAO)).value.body))
        assert len((await client.validators("head", [1, 2])).value.data) == 2
        await anyio.sleep(12)
        await client.publish_block(encodings(types.signed, {"message": block, "signature": SIGNATURE}), "capella")
        with pytest.raises(failures.AlreadyKnown):
            await client.publish_block(encodings(types.signed, {"message": block, "signature": SIGNATURE}), "capella")
        with pytest.raises(failures.UnsupportedEndpoint):
            await client.liveness(Epoch(4), [1])
        assert node.request_counts["/eth/v3/validator/blocks/33"] == 1
        assert node.request_counts["/eth/v2/validator/blocks/33"] == 2
        assert [one.operation for one in node.published] == ["publishBlock", "publishBlock"]
        node.state.optimistic = True
        with pytest.raises(failures.Optimistic):
            await client.attestation_data(Slot(33))


@pytest.mark.parametrize("framing", ["lighthouse", "prysm", "teku", "nimbus", "lodestar"])
async def test_troubles_are_told_apart_in_the_words_of_every_client(framing: Any) -> None:
    async with SimulatedNode(chain_of("fulu"), framing=framing) as node, client_of(node) as client:
        await client.prepare_beacon_proposer([ProposerPreparation(1, bytes(20))])
        assert node.prepared[0].items == 1
        node.state.syncing = True
        with pytest.raises(failures.NotReady):
            await client.attestation_data(Slot(32))
        node.state.syncing = None
        node.state.optimistic = True
        with pytest.raises(failures.NotReady):
            await client.attestation_data(Slot(32))
        node.state.optimistic = False
        with pytest.raises(failures.FutureSlot):
            await client.attestation_data(Slot(35))
        with pytest.raises(failures.NotFound):
            await client.aggregate_attestation(Slot(32), Root(bytes(32)), 0)
        node.manners.routes_missing = {"getLiveness": 404}
        with pytest.raises(failures.UnsupportedEndpoint):
            await client.liveness(Epoch(4), [1])
