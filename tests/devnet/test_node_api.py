"""Every method of a node's client that Lodestar 1.5.1 supports, called on a real beacon node."""

import json
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from typing import Any

import anyio
import pytest

from scripts.lodestar.devnet import Devnet
from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Epoch, NodeId, Slot, Sourced
from vc_fallback.base.urls import BaseURL
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.look import Looker
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.operations import SignedVoluntaryExit, VoluntaryExit
from vc_fallback.node.values.preparations import (
    BeaconCommitteeSelection,
    BeaconCommitteeSubscription,
    ProposerPreparation,
    SyncCommitteeSelection,
    SyncCommitteeSubscription,
)
from vc_fallback.node.values.publication import Publication
from vc_fallback.node.values.sync_committee import SyncCommitteeMessage
from vc_fallback.wire.client import HTTPClient

pytestmark = pytest.mark.anyio

ABSENT = frozenset(
    {
        "getNodeVersionV2", "getBlindedBlock", "getBlobs", "postStateValidators", "postStateValidatorBalances",
        "getStateRandao", "getProposerDutiesV2", "getPtcDuties", "getLiveness", "getAggregatedAttestationV2",
        "producePayloadAttestationData", "produceBlockV3",
    }
)  # fmt: skip
"""The reading endpoints that this version does not have."""
SIGNATURE = b"\xc0" + bytes(95)
"""The point at infinity: well-formed, and no signature of anybody."""


@pytest.fixture(scope="module")
def url(devnet: Devnet) -> str:
    """A node; nothing is done to it here, so that it is enough to mend it once."""
    devnet.heal()
    return devnet.url(1)


def client(url: str, clock: Clock, looker: Callable[[], Looker] | None = None) -> BeaconNode:
    return BeaconNode(
        NodeId("lodestar"),
        HTTPClient(BaseURL.parse(url)),
        clock=clock,
        slots=lambda: None if looker is None else looker().slots,
    )


def raw(url: str, path: str) -> Any:
    with urllib.request.urlopen(url + path, timeout=5) as answer:  # noqa: S310 - our own node
        return json.load(answer)["data"]


async def test_every_reading_method_is_answered_or_known_to_be_absent(url: str) -> None:
    """Q1, Q13: what Lodestar has is read, by older routes too; what it has not is named and remembered."""
    clock = Clock()
    looker: Looker | None = None
    node = client(url, clock, lambda: looker)  # type: ignore[arg-type, return-value]
    async with aclosing(node):
        looker = Looker(node, now=clock.now, offset=clock.offset, timeout=10, produce=True)
        look = await looker.run()
        assert look.version is not None
        assert look.version.startswith("Lodestar/v1.5.1")
        assert look.chain is not None
        assert [fork.name for fork in look.chain.forks] == ["phase0", "altair", "bellatrix", "capella"]
        assert {lack.capability for lack in look.lacks} == ABSENT
        # Where there is an older route it stands in.
        failed = {asked.route.operation: asked.words for asked in look.asked if not asked.good}
        replaced = {"postStateValidators", "postStateValidatorBalances", "getProposerDutiesV2", "produceBlockV3"}
        # A pool may hold nothing for the head's slot yet, and the node's clock ticks a little later than ours.
        waits = {name: words for name, words in failed.items() if words.startswith(("NotFound", "FutureSlot"))}
        assert waits.keys() <= {
            "getAggregatedAttestationV2", "produceSyncCommitteeContribution", "produceBlockV3", "getProposerDutiesV2",
        }  # fmt: skip
        assert failed.keys() - waits.keys() == ABSENT - replaced - {"getAggregatedAttestationV2"}, failed
        asked = len(look.asked)
        requests = sum(asked.attempts for asked in look.asked)
        assert requests >= asked + len(replaced)
        with pytest.raises(failures.UnsupportedEndpoint):
            await node.liveness(Epoch(0), [0])
        with pytest.raises(failures.UnsupportedEndpoint) as remembered:
            await node.liveness(Epoch(0), [0])
        assert remembered.value.status is None


@pytest.fixture(scope="module")
def validators_url(url: str, devnet: Devnet) -> Iterator[str]:
    """The node that the validators use: it alone keeps what aggregators are to aggregate."""
    devnet.validator_client([1])
    yield url
    devnet.validator_client([0])


async def test_an_aggregate_and_a_contribution_come_when_they_are_there(validators_url: str) -> None:
    """Q1: what the validators attested to in the last slot, as soon as they have."""
    async with aclosing(client(validators_url, Clock())) as node:
        aggregate = contribution = None
        with anyio.fail_after(30):
            while aggregate is None or contribution is None:
                slot = Slot((await node.head()).value.slot)
                data = (await node.attestation_data(slot)).value
                with suppress(failures.NotFound):
                    aggregate = await node.aggregate_attestation(slot, data.hash_tree_root(), data.index)
                    contribution = await node.sync_committee_contribution(slot, 0, data.beacon_block_root)
                await anyio.sleep(0.1)
        assert json.loads(aggregate.value.body)["data"]["slot"] == str(slot)
        assert aggregate.value.content_type == "application/json"
        assert contribution.value.beacon_block_root == data.beacon_block_root
        assert any(contribution.value.aggregation_bits)


async def test_a_block_is_made(url: str) -> None:
    """Q13: by the older route; this node makes one from shortly before its slot on."""
    async with aclosing(client(url, Clock())) as node:
        block = None
        with anyio.fail_after(10):
            while block is None:
                slot = Slot((await node.head()).value.slot + 1)
                with suppress(failures.FutureSlot):
                    block = await node.produce_block(slot, SIGNATURE, skip_randao_verification=True)
        assert (block.value.version, block.value.blinded, block.value.content_type) == (
            "capella",
            False,
            "application/json",
        )
        assert json.loads(block.value.body)["slot"] == str(slot)
        assert node.capabilities.lack("produceBlockV3", None) is not None


async def test_what_was_published_before_is_known(url: str) -> None:
    """Rule 8, Q13: a block and attestations that the node has, by the older routes; a new connection each time."""
    async with aclosing(client(url, Clock())) as node:
        block = json.dumps(raw(url, "/eth/v2/beacon/blocks/head")).encode()
        with pytest.raises(failures.AlreadyKnown) as known:
            await node.publish_block(Encodings(json=block), "capella")
        assert known.value.endpoint == "/eth/v1/beacon/blocks"
        attestations = [Encodings(json=json.dumps(a).encode()) for a in raw(url, "/eth/v1/beacon/pool/attestations")]
        # Aggregated ones are refused one by one; the identical one again is a success there.
        try:
            taken: object = (await node.publish_attestations(attestations[:1], "capella")).value
        except (failures.AlreadyKnown, failures.BadRequest, failures.ServerError) as error:
            taken = error
        assert taken is Publication.ACCEPTED or "ATTESTATION" in str(taken).upper()


async def test_every_other_method_reaches_the_node(url: str) -> None:
    """Publishing what cannot be valid and telling what need not be kept: each is answered, or refused by its name."""
    async with aclosing(client(url, Clock())) as node:
        message = SyncCommitteeMessage(Slot(1), bytes(32), 0, SIGNATURE).encodings()  # type: ignore[arg-type]
        exit_ = SignedVoluntaryExit(VoluntaryExit(Epoch(0), 0), SIGNATURE).encodings()
        block = json.dumps(raw(url, "/eth/v2/beacon/blocks/head")).encode()
        wrong = Encodings(json=block.replace(b'"proposer_index": "', b'"proposer_index": "9'))
        nothing = Encodings(json=b"{}")
        accepted: tuple[type[Exception], ...] = ()
        refused = (failures.BadRequest, failures.ServerError, failures.NotFound)
        absent = (failures.UnsupportedEndpoint,)
        calls: list[tuple[str, Callable[[], Awaitable[Sourced[Any]]], tuple[type[Exception], ...]]] = [
            ("exit", lambda: node.publish_voluntary_exit(exit_), refused),
            ("sync message", lambda: node.publish_sync_committee_messages([message]), refused),
            ("contribution", lambda: node.publish_contributions([nothing]), refused),
            ("aggregate", lambda: node.publish_aggregates([nothing], "capella"), refused),
            ("block", lambda: node.publish_block(wrong, "capella"), (*refused, failures.AlreadyKnown)),
            ("blinded block", lambda: node.publish_blinded_block(wrong, "capella"), (*refused, failures.AlreadyKnown)),
            ("proposer slashing", lambda: node.publish_proposer_slashing(nothing), refused),
            ("attester slashing", lambda: node.publish_attester_slashing(nothing, "capella"), refused),
            ("bls change", lambda: node.publish_bls_to_execution_changes([nothing]), refused),
            ("prepare", lambda: node.prepare_beacon_proposer([ProposerPreparation(0, bytes(20))]), accepted),
            ("register", lambda: node.register_validators([nothing]), refused),
            (
                "subscribe",
                lambda: node.subscribe_beacon_committees([BeaconCommitteeSubscription(0, 0, 1, Slot(1), False)]),
                accepted,
            ),
            (
                "subscribe sync",
                lambda: node.subscribe_sync_committees([SyncCommitteeSubscription(0, [0], Epoch(1))]),
                accepted,
            ),
            (
                "selections",
                lambda: node.beacon_committee_selections([BeaconCommitteeSelection(0, Slot(1), SIGNATURE)]),
                (*absent, *refused),
            ),
            (
                "sync selections",
                lambda: node.sync_committee_selections([SyncCommitteeSelection(0, Slot(1), 0, SIGNATURE)]),
                (*absent, *refused),
            ),
            ("preferences", lambda: node.submit_proposer_preferences([nothing], "gloas"), absent),
            ("payload attestations", lambda: node.publish_payload_attestations([nothing], "gloas"), absent),
            (
                "envelope",
                lambda: node.publish_execution_payload_envelope(nothing, "gloas", blob_data_included=False),
                absent,
            ),
            ("bid", lambda: node.execution_payload_bid(Slot(1), 0), (*absent, failures.NotFound)),
            ("get envelope", lambda: node.execution_payload_envelope(Slot(1), bytes(32)), (*absent, failures.NotFound)),  # type: ignore[arg-type]
            ("client versions", lambda: node.client_versions(), absent),
        ]
        for name, call, expected in calls:
            found: NodeError | None = None
            try:
                await call()
            except NodeError as error:
                found = error
            assert isinstance(found, expected or type(None)), (name, found)
            assert found is None or found.node_id == "lodestar"
        # It is as well as before.
        assert not (await node.syncing()).value.is_syncing
