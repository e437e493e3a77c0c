"""One table of example calls: which method asks which operation, with which arguments."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tests.conformance.openapi import JSON, Schema, component, operations
from tests.conformance.openapi_calls import Row
from tests.conformance.openapi_examples import branches, example, fork_of
from vc_fallback.base.types import Epoch, Root, Slot
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.preparations import (
    BeaconCommitteeSelection,
    BeaconCommitteeSubscription,
    ProposerPreparation,
    SyncCommitteeSelection,
    SyncCommitteeSubscription,
)

# What the definition's own examples hold, so that their answers are answers to these calls.
SLOT = Slot(1)
EPOCH = Epoch(1)
ROOT = Root(bytes.fromhex(example(component("Root"))[2:]))
SIGNATURE = bytes.fromhex(example(component("Signature"))[2:])
PUBKEY = bytes.fromhex(example(component("AttesterDuty"))["pubkey"][2:])
INFINITY = b"\xc0" + bytes(95)
MOST = 2**64 - 1


def encodings(operation: str, fork: str, name: str = "") -> Encodings:
    """Return a value that an operation takes, in JSON as defined, in SSZ as some bytes.

    :param name: the schema that it is of, where one fork has several.
    """
    return Encodings(ssz=b"\x01" * 240, json=json.dumps(example(_body(operation, fork, name))).encode())


def _body(operation: str, fork: str, name: str) -> Schema:
    for branch in branches(operations()[operation].bodies[JSON]):
        schema: Schema = branch.get("items", branch)
        if fork_of(branch) == fork and name in schema.get("x-name", ""):
            return schema
    raise LookupError(f"{operation} takes nothing of {fork}")


def json_only(value: Encodings) -> Encodings:
    """Return a value without its SSZ."""
    return Encodings(json=value.json)


FORKS = ("phase0", "altair", "bellatrix", "capella", "deneb", "electra", "fulu", "gloas")


@cache
def rows() -> tuple[Row, ...]:
    """Return all example calls."""
    groups = (_about, _blocks, _states, _duties, _signing, _proposals, _publishing, _preparations)
    return tuple(row for group in groups for row in group())


def plain_calls() -> list[Row]:
    """Return one call for each operation and method: with what it is asked does not change how answers are read."""
    first: dict[tuple[str, str], Row] = {}
    for row in rows():
        first.setdefault((row.operation, row.method), row)
    return list(first.values())


def _about() -> list[Row]:
    return [
        Row("getNodeVersion", "version"),
        Row("getNodeVersionV2", "client_versions"),
        Row("getHealth", "health"),
        Row("getSyncingStatus", "syncing"),
        Row("getNetworkIdentity", "network_identity"),
        Row("getPeerCount", "peer_count"),
        Row("getGenesis", "genesis"),
        Row("getSpec", "spec"),
        Row("getForkSchedule", "fork_schedule"),
        Row("getDepositContract", "deposit_contract"),
    ]


def _blocks() -> list[Row]:
    ids: dict[str, Any] = {"head": "head", "slot": Slot(MOST), "root": ROOT, "finalized": "finalized"}
    one = [
        ("getBlockHeader", "header"),
        ("getBlockRoot", "block_root"),
        ("getBlockV2", "block"),
        ("getBlindedBlock", "blinded_block"),
        ("getBlobs", "blobs"),
    ]
    return [
        Row("getBlockHeader", "head"),
        *(Row(operation, method, (block,), what=what) for operation, method in one for what, block in ids.items()),
        Row("getBlobs", "blobs", ("head",), {"versioned_hashes": [ROOT, bytes(32)]}, what="hashes"),
        Row("getBlockHeaders", "headers"),
        Row("getBlockHeaders", "headers", (), {"slot": SLOT, "parent_root": ROOT}, what="both"),
    ]


def _states() -> list[Row]:
    ids: dict[str, Any] = {"head": "head", "slot": Slot(MOST), "root": ROOT, "justified": "justified"}
    one = [
        ("getStateRoot", "state_root"),
        ("getStateFork", "state_fork"),
        ("getStateFinalityCheckpoints", "finality_checkpoints"),
        ("postStateValidators", "validators"),
        ("postStateValidatorBalances", "validator_balances"),
        ("getEpochCommittees", "committees"),
        ("getEpochSyncCommittees", "sync_committees"),
        ("getStateRandao", "randao"),
    ]
    some, statuses = [0, PUBKEY, MOST], ["active", "pending_queued"]
    return [
        *(Row(operation, method, (state,), what=what) for operation, method in one for what, state in ids.items()),
        Row("getStateValidators", "validators", ("head",)),
        Row("getStateValidators", "validators", ("head", some, statuses), what="both"),
        Row("getStateValidators", "validators", ("head", range(64)), what="64"),
        Row("postStateValidators", "validators", ("head", some, statuses), what="both"),
        Row("postStateValidators", "validators", ("head", range(1000)), what="1000"),
        Row("getStateValidator", "validator", ("head", MOST), what="index"),
        Row("getStateValidator", "validator", ("head", PUBKEY), what="key"),
        Row("getStateValidatorBalances", "validator_balances", ("head",)),
        Row("getStateValidatorBalances", "validator_balances", ("head", some), what="ids"),
        Row("postStateValidatorBalances", "validator_balances", ("head", some), what="ids"),
        Row("getEpochCommittees", "committees", ("head",), {"epoch": EPOCH, "index": 1, "slot": SLOT}, what="all"),
        Row("getEpochSyncCommittees", "sync_committees", ("head",), {"epoch": EPOCH}, what="epoch"),
        Row("getStateRandao", "randao", ("head",), {"epoch": EPOCH}, what="epoch"),
    ]


def _duties() -> list[Row]:
    several = (Epoch(MOST), [0, 1, 1, MOST])
    return [
        Row("getAttesterDuties", "attester_duties", several),
        Row("getAttesterDuties", "attester_duties", (Epoch(0), [1]), fork="fulu", what="known"),
        Row("getProposerDutiesV2", "proposer_duties", (EPOCH,)),
        Row("getProposerDuties", "proposer_duties", (EPOCH,)),
        Row("getSyncCommitteeDuties", "sync_committee_duties", several),
        Row("getPtcDuties", "ptc_duties", several),
        Row("getLiveness", "liveness", several),
    ]


def _proposals() -> list[Row]:
    everything = {
        "graffiti": bytes(32),
        "builder_boost_factor": MOST,
        "skip_randao_verification": True,
    }
    found = [
        Row("produceBlockV3", "produce_block", (SLOT, SIGNATURE)),
        Row("produceBlockV3", "produce_block", (SLOT, INFINITY), everything, fork="fulu", what="all"),
        Row("produceBlockV2", "produce_block", (SLOT, SIGNATURE), fork="deneb"),
        Row("produceBlockV4", "produce_block", (SLOT, SIGNATURE), {"fork": "gloas"}),
        Row("produceBlockV4", "produce_block", (SLOT, INFINITY), everything, fork="gloas", what="all"),
        Row(
            "produceBlockV4", "produce_block", (SLOT, SIGNATURE), {"include_payload": False}, fork="gloas", what="bare"
        ),
        Row("getExecutionPayloadBid", "execution_payload_bid", (SLOT, 1)),
        Row("getExecutionPayloadEnvelope", "execution_payload_envelope", (SLOT, ROOT)),
    ]
    for fork in FORKS:
        block = encodings("publishBlockV2", fork)
        found += _both_forms("publishBlockV2", "publish_block", block, (fork,), what=fork)
        if fork in ("bellatrix", "capella", "deneb", "electra", "fulu"):
            # What Fulu changed is not in a blinded block.
            blinded = encodings("publishBlindedBlockV2", "electra" if fork == "fulu" else fork)
            found += _both_forms("publishBlindedBlockV2", "publish_blinded_block", blinded, (fork,), what=fork)
    validation = {"broadcast_validation": "consensus_and_equivocation"}
    block, blinded = encodings("publishBlockV2", "deneb"), encodings("publishBlindedBlockV2", "deneb")
    operation, method = "publishExecutionPayloadEnvelope", "publish_execution_payload_envelope"
    for what, included in (("EnvelopeContents", True), ("Envelope", False)):
        envelope = encodings(operation, "gloas", what)
        kwargs = {"blob_data_included": included, "broadcast_validation": "gossip"}
        found += _both_forms(operation, method, envelope, ("gloas",), kwargs, what=what)
    return [
        *found,
        Row("publishBlockV2", "publish_block", (block, "deneb"), validation, what="validated"),
        Row("publishBlindedBlockV2", "publish_blinded_block", (blinded, "deneb"), validation, what="validated"),
        Row("publishBlock", "publish_block", (block, "deneb")),
        Row("publishBlindedBlock", "publish_blinded_block", (blinded, "deneb")),
    ]


def _both_forms(
    operation: str,
    method: str,
    value: Encodings | Sequence[Encodings],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    what: str,
) -> list[Row]:
    """Return a call with both forms, which sends SSZ, and one with JSON alone."""
    text = json_only(value) if isinstance(value, Encodings) else [json_only(item) for item in value]
    return [
        Row(operation, method, (given, *args), kwargs or {}, what=f"{what}-{form}")
        for form, given in (("ssz", value), ("json", text))
    ]


def _signing() -> list[Row]:
    aggregate = (SLOT, ROOT, 1)
    return [
        Row("produceAttestationData", "attestation_data", (SLOT,)),
        Row("produceAttestationData", "attestation_data", (SLOT, 1), fork="deneb", what="committee"),
        Row("produceAttestationData", "attestation_data", (SLOT,), fork="gloas", what="gloas"),
        Row("getAggregatedAttestationV2", "aggregate_attestation", aggregate),
        Row("getAggregatedAttestation", "aggregate_attestation", aggregate, fork="deneb"),
        Row("produceSyncCommitteeContribution", "sync_committee_contribution", (SLOT, 1, ROOT)),
        Row("producePayloadAttestationData", "payload_attestation_data", (SLOT,)),
    ]


def _publishing() -> list[Row]:
    found = []
    for fork in FORKS:
        for operation, method in (
            ("submitPoolAttestationsV2", "publish_attestations"),
            ("publishAggregateAndProofsV2", "publish_aggregates"),
        ):
            item = _shared(operation, fork)
            found += _both_forms(operation, method, [item, item], (fork,), what=fork)
        slashing = _shared("submitPoolAttesterSlashingsV2", fork)
        found.append(Row("submitPoolAttesterSlashingsV2", "publish_attester_slashing", (slashing, fork), what=fork))
    votes = [encodings("submitPayloadAttestationMessages", "gloas")] * 2
    found += _both_forms(
        "submitPayloadAttestationMessages", "publish_payload_attestations", votes, ("gloas",), what="gloas"
    )
    attestation = _shared("submitPoolAttestationsV2", "deneb")
    aggregate = _shared("publishAggregateAndProofsV2", "deneb")
    slashing = _shared("submitPoolAttesterSlashingsV2", "deneb")
    return [
        *found,
        Row("submitPoolAttestations", "publish_attestations", ([attestation] * 2, "deneb")),
        Row("publishAggregateAndProofs", "publish_aggregates", ([aggregate] * 2, "deneb")),
        Row("submitPoolAttesterSlashings", "publish_attester_slashing", (slashing, "deneb")),
        _json_row("submitPoolSyncCommitteeSignatures", "publish_sync_committee_messages", listed=True),
        _json_row("publishContributionAndProofs", "publish_contributions", listed=True),
        _json_row("submitPoolVoluntaryExit", "publish_voluntary_exit"),
        _json_row("submitPoolBLSToExecutionChange", "publish_bls_to_execution_changes", listed=True),
        _json_row("submitPoolProposerSlashings", "publish_proposer_slashing"),
    ]


def _shared(operation: str, fork: str) -> Encodings:
    """Return a value whose form changed with Electra and else never."""
    return encodings(operation, "phase0" if FORKS.index(fork) < FORKS.index("electra") else "electra")


def _json_row(operation: str, method: str, *, listed: bool = False) -> Row:
    value = Encodings(json=json.dumps(example(_item(operation))).encode())
    return Row(operation, method, ([value, value] if listed else value,))


def _item(operation: str) -> Schema:
    schema = operations()[operation].bodies[JSON]
    item: Schema = schema.get("items", schema)
    return item


def _preparations() -> list[Row]:
    registration = Encodings(ssz=b"\x01" * 180, json=json.dumps(example(_item("registerValidator"))).encode())
    preference = Encodings(ssz=b"\x01" * 172, json=json.dumps(example(_item("submitProposerPreferences"))).encode())
    preparations = [ProposerPreparation(MOST, bytes(20)), ProposerPreparation(0, b"\xff" * 20)]
    subscriptions = [
        BeaconCommitteeSubscription(1, 2, 64, SLOT, True),
        BeaconCommitteeSubscription(3, 2, 64, SLOT, False),
    ]
    sync = [SyncCommitteeSubscription(1, [0, 511], EPOCH)]
    return [
        Row("prepareBeaconProposer", "prepare_beacon_proposer", (preparations,)),
        *_both_forms("registerValidator", "register_validators", [registration] * 2, what="two"),
        *_both_forms(
            "submitProposerPreferences", "submit_proposer_preferences", [preference] * 2, ("gloas",), what="two"
        ),
        Row("prepareBeaconCommitteeSubnet", "subscribe_beacon_committees", (subscriptions,)),
        Row("prepareSyncCommitteeSubnets", "subscribe_sync_committees", (sync,)),
        Row(
            "submitBeaconCommitteeSelections",
            "beacon_committee_selections",
            ([BeaconCommitteeSelection(1, SLOT, SIGNATURE)],),
        ),
        Row(
            "submitSyncCommitteeSelections",
            "sync_committee_selections",
            ([SyncCommitteeSelection(1, SLOT, 1, SIGNATURE)],),
        ),
    ]
