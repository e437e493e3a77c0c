"""Simulated nodes answer everything that a validator client asks, in the forms of the Beacon API definition."""

import hashlib
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from tests.acceptance.raw_client import fetch, listening
from tests.acceptance.simulated_api import RANDAO, ask, data
from tests.conformance.openapi import JSON, SSZ, operations
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing.api.router import ROUTES
from vc_fallback.testing.containers import operations as signed_values
from vc_fallback.testing.containers.basic import Kind
from vc_fallback.testing.containers.blocks import BLOBS, block_types, signed
from vc_fallback.testing.containers.presets import FORKS, since

pytestmark = pytest.mark.anyio

ROOT = "0x" + "11" * 32


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


def chain_of(fork: str, **options: Any) -> SimulatedChain:
    return SimulatedChain(slots_per_epoch=8, forks={fork: 0}, **options)


def requests(fork: str, slot: int) -> Mapping[str, dict[str, Any]]:
    """Return a request for each operation that reads something, of the fork that holds."""
    block, state = {"block_id": "head"}, {"state_id": "head"}
    epoch = {"epoch": slot // 8}
    found: dict[str, dict[str, Any]] = {
        "getSyncingStatus": {},
        "getNodeVersion": {},
        "getNodeVersionV2": {},
        "getNetworkIdentity": {},
        "getPeerCount": {},
        "getGenesis": {},
        "getSpec": {},
        "getForkSchedule": {},
        "getDepositContract": {},
        "getHealth": {},
        "getBlockHeader": {"place": block},
        "getBlockHeaders": {},
        "getBlockRoot": {"place": block},
        "getBlockV2": {"place": block},
        "getBlobs": {"place": block},
        "getStateRoot": {"place": state},
        "getStateFork": {"place": state},
        "getStateFinalityCheckpoints": {"place": state},
        "getStateValidators": {"place": state},
        "postStateValidators": {"place": state, "body": {"ids": ["1", "2"], "statuses": None}},
        "getStateValidator": {"place": {**state, "validator_id": 3}},
        "getStateValidatorBalances": {"place": state, "query": [("id", 1), ("id", 5)]},
        "postStateValidatorBalances": {"place": state, "body": ["1", "5"]},
        "getEpochCommittees": {"place": state},
        "getStateRandao": {"place": state},
        "getAttesterDuties": {"place": epoch, "body": ["1", "2"]},
        "getProposerDuties": {"place": epoch},
        "getProposerDutiesV2": {"place": epoch},
        "getLiveness": {"place": epoch, "body": ["1", "2"]},
        "produceAttestationData": {"query": [("slot", slot), ("committee_index", 0)]},
    }
    if since(fork, "altair"):
        found["getEpochSyncCommittees"] = {"place": state}
        found["getSyncCommitteeDuties"] = {"place": epoch, "body": ["1", "2"]}
    produce = {"place": {"slot": slot + 1}, "query": [("randao_reveal", RANDAO)]}
    if since(fork, "gloas"):
        found["getPtcDuties"] = {"place": epoch, "body": ["1", "2"]}
        found["producePayloadAttestationData"] = {"query": [("slot", slot)]}
        found["getExecutionPayloadBid"] = {"place": {"slot": slot, "builder_index": 0}}
        found["getSignedExecutionPayloadEnvelope"] = {"place": block}
        found["produceBlockV4"] = {**produce, "query": [*produce["query"], ("include_payload", "true")]}
    else:
        found["produceBlockV3"] = produce
        found["getBlindedBlock"] = {"place": block}
    return found


def kinds(fork: str, chain: SimulatedChain) -> Mapping[str, Kind]:
    """Return what is to be had as SSZ."""
    types = block_types(chain.preset, fork)
    return {
        "getBlockV2": types.signed,
        "getBlindedBlock": types.signed_blinded,
        "getBlobs": BLOBS,
        "getStateValidatorBalances": signed_values.BALANCES,
        "postStateValidatorBalances": signed_values.BALANCES,
        "produceAttestationData": signed_values.ATTESTATION_DATA,
        "producePayloadAttestationData": signed_values.PAYLOAD_ATTESTATION_DATA,
        "getExecutionPayloadBid": types.bid,
        "getSignedExecutionPayloadEnvelope": signed(types.envelope),
        "produceBlockV3": types.contents,
        "produceBlockV4": types.contents,
    }


@pytest.mark.parametrize("fork", FORKS)
async def test_every_answer_is_what_the_definition_says_in_both_forms(fork: str) -> None:
    """Of each fork; SSZ and JSON hold the same, and the version is told where it must be."""
    chain = chain_of(fork, blobs=1)
    async with SimulatedNode(chain) as node:
        await anyio.sleep(12 * 3.9)
        slot = node.head.slot
        asked = requests(fork, slot)
        for operation, request in asked.items():
            reply = await ask(node, operation, **request)
            assert reply.status == 200, (operation, reply.body[:200])
        for operation, kind in kinds(fork, chain).items():
            if operation in asked:
                written = (await ask(node, operation, **asked[operation])).json["data"]
                reply = await ask(node, operation, **asked[operation], accept=SSZ)
                assert reply.headers["content-type"] == SSZ, operation
                assert kind.to_json(kind.decode(reply.body)) == written, operation
                assert kind.from_json(written) == kind.decode(reply.body), operation


def test_every_operation_for_validators_is_there() -> None:
    """All that the definition requires, and what a validator client asks beside it; older routes too."""
    there = {route.operation: route for route in ROUTES}
    for name, operation in operations().items():
        if name in there:
            assert (there[name].method, there[name].template) == (operation.method, operation.template)
            assert there[name].ssz == (SSZ in operation.media_types), name
        else:
            assert not operation.required or name == "eventstream"
    older = {
        "produceBlockV2",
        "publishBlock",
        "publishBlindedBlock",
        "submitPoolAttestations",
        "getAggregatedAttestation",
        "publishAggregateAndProofs",
        "submitPoolAttesterSlashings",
    }
    assert there.keys() - operations().keys() == older


async def test_blocks_hash_to_the_roots_that_headers_tell() -> None:
    """The roots of blocks and of their bodies are real; a blinded block has the same."""
    for fork in FORKS:
        chain = chain_of(fork, blobs=2)
        types = block_types(chain.preset, fork)
        async with SimulatedNode(chain) as node:
            await anyio.sleep(1)
            for block_id in ("head", str(node.head.slot - 3)):
                place = {"block_id": block_id}
                told = await data(node, "getBlockHeader", place=place)
                whole = types.signed.from_json(await data(node, "getBlockV2", place=place))
                assert "0x" + types.block.root(whole["message"]).hex() == told["root"]
                body = types.body.root(whole["message"]["body"])
                assert "0x" + body.hex() == told["header"]["message"]["body_root"]
                if not since(fork, "gloas"):
                    blinded = types.signed_blinded.from_json(await data(node, "getBlindedBlock", place=place))
                    assert types.blinded.root(blinded["message"]) == types.block.root(whole["message"])


async def test_headers_are_listed_by_slot_and_by_parent() -> None:
    chain = SimulatedChain(start_slot=100)
    chain.miss(98)
    chain.branch("other", above=99)
    async with SimulatedNode(chain) as node:
        await anyio.sleep(1)
        (head,) = await data(node, "getBlockHeaders")
        assert head["root"] == "0x" + node.head.root.hex()
        (at_97,) = await data(node, "getBlockHeaders", query=[("slot", 97)])
        assert await data(node, "getBlockHeaders", query=[("slot", 98)]) == []
        assert await data(node, "getBlockHeaders", query=[("slot", 101)]) == []
        (child,) = await data(node, "getBlockHeaders", query=[("parent_root", at_97["root"])])
        assert child["header"]["message"]["slot"] == "99"
        assert await data(node, "getBlockHeaders", query=[("parent_root", at_97["root"]), ("slot", 100)]) == []
        chain.head_at(100, "other")
        rivals = await data(node, "getBlockHeaders", query=[("parent_root", child["root"])])
        assert sorted(rival["canonical"] for rival in rivals) == [False, True]


async def test_nodes_of_one_chain_answer_alike_and_differ_on_cue() -> None:
    """Every value can be made to differ: another branch, a lag, an override, whatever the form of the answer."""
    async with simulated_devnet(3, slots_per_epoch=8) as net:
        first, second, third = net
        net.chain.branch("other", above=25)
        await anyio.sleep(12 * 2 + 3)
        slot = net.chain.slots.slot_at(net.clock.now())
        for operation in ("getAttesterDuties", "getProposerDutiesV2", "getBlockV2", "getStateValidators"):
            request = requests("fulu", slot)[operation]
            assert await data(first, operation, **request) == await data(second, operation, **request)
        second.switch("other")
        third.state.lag = 1
        query: dict[str, Any] = {"query": [("slot", slot)]}
        roots = {(await data(node, "produceAttestationData", **query))["beacon_block_root"] for node in (first, second)}
        assert len(roots) == 2
        path = "/eth/v1/validator/attestation_data"
        first.override(path, beacon_block_root=ROOT)
        in_ssz = await ask(first, "produceAttestationData", **query, accept=SSZ)
        assert signed_values.ATTESTATION_DATA.decode(in_ssz.body)["beacon_block_root"] == b"\x11" * 32
        first.override(path, beacon_block_root="nonsense")
        reply = await fetch(first.url, f"{path}?slot={slot}", headers={"Accept": SSZ})
        assert (reply.headers["content-type"], reply.json["data"]["beacon_block_root"]) == (JSON, "nonsense")
        first.override("/eth/v1/validator/duties/*", dependent_root=ROOT)
        assert (await ask(first, "getAttesterDuties", place={"epoch": 4}, body=["1"])).json["dependent_root"] == ROOT


async def test_the_same_seed_gives_the_same_answers_another_one_others() -> None:
    async def seen(seed: int) -> list[Any]:
        async with SimulatedNode(SimulatedChain(seed=seed, slots_per_epoch=8)) as node:
            asked = requests("fulu", node.head.slot)
            names = ("getBlockV2", "getStateValidators", "getAttesterDuties", "produceBlockV3", "getStateRandao")
            return [await data(node, name, **asked[name]) for name in names]

    one, again, other = await seen(1), await seen(1), await seen(2)
    assert one == again
    assert all(mine != theirs for mine, theirs in zip(one, other, strict=True))


async def test_blobs_come_with_their_blocks() -> None:
    chain = SimulatedChain(blobs=3)
    async with SimulatedNode(chain) as node:
        block = await data(node, "getBlockV2", place={"block_id": "head"})
        commitments = block["message"]["body"]["blob_kzg_commitments"]
        blobs = await data(node, "getBlobs", place={"block_id": "head"}, within=20)
        assert len(commitments) == len(blobs) == len(set(blobs)) == 3
        assert {len(blob) for blob in blobs} == {2 + 2 * 131_072}
        hashes = [versioned_hash(one) for one in commitments]
        query = [("versioned_hashes", hashes[2]), ("versioned_hashes", hashes[0])]
        some = await data(node, "getBlobs", place={"block_id": "head"}, query=query, within=20)
        assert some == [blobs[0], blobs[2]]


def versioned_hash(commitment: str) -> str:
    """By hand: SHA-256 of the commitment, its first byte replaced by 1."""
    return "0x01" + hashlib.sha256(bytes.fromhex(commitment[2:])).hexdigest()[2:]


async def test_health_uses_the_status_that_was_asked_for() -> None:
    async with SimulatedNode(SimulatedChain()) as node:
        node.state.syncing = True
        assert (await fetch(node.url, "/eth/v1/node/health")).status == 206
        assert (await fetch(node.url, "/eth/v1/node/health?syncing_status=299")).status == 299
        assert (await fetch(node.url, "/eth/v1/node/health?syncing_status=99")).status == 400
        async with listening(node.url):
            assert (await fetch(node.url, "/eth/v1/node/health", method="HEAD")).status == 206
