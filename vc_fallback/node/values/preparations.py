"""What a node is told ahead of duties: fee recipients, registrations, preferences, subnets, selections."""

from typing import ClassVar

from pydantic.dataclasses import dataclass

from vc_fallback.node.values.containers import Container
from vc_fallback.node.values.fields import (
    VALUE,
    Bytes20,
    EpochNumber,
    Flag,
    PublicKey,
    RootBytes,
    Signature,
    SlotNumber,
    Uint64,
    ValidatorIndex,
)


@dataclass(frozen=True, slots=True, config=VALUE)
class ProposerPreparation:
    """Who gets the fees of a validator's blocks; a node keeps it for this epoch and two more."""

    validator_index: ValidatorIndex
    fee_recipient: Bytes20


@dataclass(frozen=True, slots=True, config=VALUE)
class ValidatorRegistration(Container):
    """What a validator signs for the builder network (`ValidatorRegistrationV1` of the builder specification).

    :param timestamp: Unix time in seconds.
    """

    ssz_length: ClassVar[int] = 84

    fee_recipient: Bytes20
    gas_limit: Uint64
    timestamp: Uint64
    pubkey: PublicKey


@dataclass(frozen=True, slots=True, config=VALUE)
class SignedValidatorRegistration(Container):
    """A registration with its validator's signature."""

    ssz_length: ClassVar[int] = 180

    message: ValidatorRegistration
    signature: Signature


@dataclass(frozen=True, slots=True, config=VALUE)
class ProposerPreferences(Container):
    """What a proposer wants of the payload of its block (Gloas).

    :param dependent_root: block root that fixes the proposers of the slot's epoch.
    """

    ssz_length: ClassVar[int] = 76

    dependent_root: RootBytes
    proposal_slot: SlotNumber
    validator_index: ValidatorIndex
    fee_recipient: Bytes20
    target_gas_limit: Uint64


@dataclass(frozen=True, slots=True, config=VALUE)
class SignedProposerPreferences(Container):
    """Preferences with their proposer's signature."""

    ssz_length: ClassVar[int] = 172

    message: ProposerPreferences
    signature: Signature


@dataclass(frozen=True, slots=True, config=VALUE)
class BeaconCommitteeSubscription:
    """A duty to attest, for which the node is to look for peers of its subnet; one for each validator."""

    validator_index: ValidatorIndex
    committee_index: Uint64
    committees_at_slot: Uint64
    slot: SlotNumber
    is_aggregator: Flag


@dataclass(frozen=True, slots=True, config=VALUE)
class SyncCommitteeSubscription:
    """A validator's places in a sync committee.

    :param sync_committee_indices: its places in the whole committee, as its duty names them.
    :param until_epoch: the first epoch that is not subscribed any more.
    """

    validator_index: ValidatorIndex
    sync_committee_indices: list[Uint64]
    until_epoch: EpochNumber


@dataclass(frozen=True, slots=True, config=VALUE)
class BeaconCommitteeSelection:
    """A selection proof of one validator for aggregating at a slot: a part of it as sent, the whole as answered."""

    validator_index: ValidatorIndex
    slot: SlotNumber
    selection_proof: Signature


@dataclass(frozen=True, slots=True, config=VALUE)
class SyncCommitteeSelection:
    """A selection proof of one validator for contributing at a slot: a part of it as sent, the whole as answered."""

    validator_index: ValidatorIndex
    slot: SlotNumber
    subcommittee_index: Uint64
    selection_proof: Signature
