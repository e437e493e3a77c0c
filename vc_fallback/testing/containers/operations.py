"""Attestations, sync committee messages and whatever else a validator signs beside blocks."""

from vc_fallback.testing.containers.basic import (
    BYTES4,
    BYTES20,
    BYTES32,
    BYTES48,
    BYTES96,
    FLAG,
    UINT64,
    BitList,
    Bits,
    Kind,
)
from vc_fallback.testing.containers.composite import Container, List
from vc_fallback.testing.containers.presets import SYNC_SUBCOMMITTEES, Preset, since

REGISTRY_LIMIT = 2**40
"""`VALIDATOR_REGISTRY_LIMIT`."""

CHECKPOINT = Container(epoch=UINT64, root=BYTES32)
ATTESTATION_DATA = Container(slot=UINT64, index=UINT64, beacon_block_root=BYTES32, source=CHECKPOINT, target=CHECKPOINT)
SINGLE_ATTESTATION = Container(committee_index=UINT64, attester_index=UINT64, data=ATTESTATION_DATA, signature=BYTES96)
HEADER = Container(slot=UINT64, proposer_index=UINT64, parent_root=BYTES32, state_root=BYTES32, body_root=BYTES32)
SIGNED_HEADER = Container(message=HEADER, signature=BYTES96)
PROPOSER_SLASHING = Container(signed_header_1=SIGNED_HEADER, signed_header_2=SIGNED_HEADER)
SIGNED_EXIT = Container(message=Container(epoch=UINT64, validator_index=UINT64), signature=BYTES96)
SIGNED_BLS_CHANGE = Container(
    message=Container(validator_index=UINT64, from_bls_pubkey=BYTES48, to_execution_address=BYTES20), signature=BYTES96
)
DEPOSIT = Container(
    proof=List(BYTES32, 33, exact=True),
    data=Container(pubkey=BYTES48, withdrawal_credentials=BYTES32, amount=UINT64, signature=BYTES96),
)
SYNC_MESSAGE = Container(slot=UINT64, beacon_block_root=BYTES32, validator_index=UINT64, signature=BYTES96)
PAYLOAD_ATTESTATION_DATA = Container(
    beacon_block_root=BYTES32, slot=UINT64, payload_present=FLAG, blob_data_available=FLAG
)
PAYLOAD_ATTESTATION_MESSAGE = Container(validator_index=UINT64, data=PAYLOAD_ATTESTATION_DATA, signature=BYTES96)
REGISTRATION = Container(
    message=Container(fee_recipient=BYTES20, gas_limit=UINT64, timestamp=UINT64, pubkey=BYTES48), signature=BYTES96
)
PROPOSER_PREFERENCES = Container(
    message=Container(
        dependent_root=BYTES32,
        proposal_slot=UINT64,
        validator_index=UINT64,
        fee_recipient=BYTES20,
        target_gas_limit=UINT64,
    ),
    signature=BYTES96,
)
FORK_VERSIONS = Container(previous_version=BYTES4, current_version=BYTES4, epoch=UINT64)
BALANCES = List(Container(index=UINT64, balance=UINT64), REGISTRY_LIMIT)

# What only JSON has.
PREPARATION = Container(validator_index=UINT64, fee_recipient=BYTES20)
COMMITTEE_SUBSCRIPTION = Container(
    validator_index=UINT64, committee_index=UINT64, committees_at_slot=UINT64, slot=UINT64, is_aggregator=FLAG
)
SYNC_SUBSCRIPTION = Container(validator_index=UINT64, sync_committee_indices=List(UINT64, 2**16), until_epoch=UINT64)
COMMITTEE_SELECTION = Container(validator_index=UINT64, slot=UINT64, selection_proof=BYTES96)
SYNC_SELECTION = Container(validator_index=UINT64, slot=UINT64, subcommittee_index=UINT64, selection_proof=BYTES96)


def attestation(preset: Preset, fork: str) -> Container:
    """Return the `Attestation` of a fork."""
    if not since(fork, "electra"):
        bits: Kind = BitList(preset.max_validators_per_committee)
        return Container(aggregation_bits=bits, data=ATTESTATION_DATA, signature=BYTES96)
    return Container(
        aggregation_bits=BitList(preset.max_validators_per_slot),
        data=ATTESTATION_DATA,
        signature=BYTES96,
        committee_bits=Bits(preset.max_committees_per_slot),
    )


def signed_aggregate(preset: Preset, fork: str) -> Container:
    """Return the `SignedAggregateAndProof` of a fork."""
    message = Container(aggregator_index=UINT64, aggregate=attestation(preset, fork), selection_proof=BYTES96)
    return Container(message=message, signature=BYTES96)


def attester_slashing(preset: Preset, fork: str) -> Container:
    """Return the `AttesterSlashing` of a fork."""
    most = preset.max_validators_per_slot if since(fork, "electra") else preset.max_validators_per_committee
    indexed = Container(attesting_indices=List(UINT64, most), data=ATTESTATION_DATA, signature=BYTES96)
    return Container(attestation_1=indexed, attestation_2=indexed)


def contribution(preset: Preset) -> Container:
    """Return the `SyncCommitteeContribution`."""
    return Container(
        slot=UINT64,
        beacon_block_root=BYTES32,
        subcommittee_index=UINT64,
        aggregation_bits=Bits(preset.sync_committee_size // SYNC_SUBCOMMITTEES),
        signature=BYTES96,
    )


def signed_contribution(preset: Preset) -> Container:
    """Return the `SignedContributionAndProof`."""
    message = Container(aggregator_index=UINT64, contribution=contribution(preset), selection_proof=BYTES96)
    return Container(message=message, signature=BYTES96)


def payload_attestation(preset: Preset) -> Container:
    """Return the `PayloadAttestation` of a block."""
    return Container(aggregation_bits=Bits(preset.ptc_size), data=PAYLOAD_ATTESTATION_DATA, signature=BYTES96)
