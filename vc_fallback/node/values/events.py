"""What events of topics other than the head's say; those that are signed messages are in the modules of these."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.dataclasses import dataclass

from vc_fallback.node.scalars import uint64
from vc_fallback.node.values.attestation import AttestationData
from vc_fallback.node.values.blocks import BeaconBlockHeader
from vc_fallback.node.values.fields import (
    VALUE,
    Bytes20,
    Bytes32,
    EpochNumber,
    Flag,
    Gwei,
    Hex,
    RootBytes,
    Signature,
    SlotNumber,
    Uint64,
    ValidatorIndex,
)

MOST_BITS = 64 * 2048 // 8 + 1
"""Bytes at most of the bits of an attestation: of 64 committees of 2,048 members, and the bit that ends the list."""
_NUMBERS = list[Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]]


def _some(bits: bytes) -> bytes:
    if not bits or not bits[-1]:
        raise ValueError("not a list of bits")
    return bits


def committees(bits: bytes) -> bytes:
    """Check the bits of the committees of a slot, of which there are 64, or 4 in the minimal preset."""
    if len(bits) not in (8, 1):
        raise ValueError("bits of no preset")
    return bits


def _members(bits: bytes) -> bytes:
    if len(bits) not in (64, 4):
        raise ValueError("bits of no preset")
    return bits


def _numbers(value: object) -> object:
    """Read a list of uint64: a slashing may name 130,000 validators, which is 50 ms when each is checked in Python."""
    if type(value) is not list:
        raise ValueError("not a list")
    try:
        joined = "".join(value)
        if joined.isascii() and joined.isdecimal():
            return msgspec.convert(value, _NUMBERS, strict=False)
    except (TypeError, ValueError):
        pass
    return [uint64(number) for number in value]


Bits = Annotated[bytes, Hex(most=MOST_BITS), AfterValidator(_some)]
"""A list of bits, the last of which only says where it ends."""
CommitteeBits = Annotated[bytes, Hex(most=8), AfterValidator(committees)]
"""A bit for each committee of a slot: 8 bytes, or 1 in the minimal preset."""
Numbers = Annotated[list[int], BeforeValidator(_numbers), Field(strict=True)]
Commitment = Annotated[bytes, Hex(48)]


@dataclass(frozen=True, slots=True, config=VALUE)
class BlockEvent:
    """Of `block`, a block that the node imported, and `block_gossip`, one that passed the rules of gossip.

    :param execution_optimistic: `None` where the node does not say, as always of `block_gossip`.
    """

    slot: SlotNumber
    block: RootBytes
    execution_optimistic: Flag | None = None


@dataclass(frozen=True, slots=True, config=VALUE)
class AttestationEvent:
    """Of `attestation`: an aggregate, or before Electra also an attestation with one bit.

    Some nodes have sent single attestations on that topic too: these are `SingleAttestation` there as well.

    :param committee_bits: `None` before Electra, where `data.index` is the committee.
    """

    aggregation_bits: Bits
    data: AttestationData
    signature: Signature
    committee_bits: CommitteeBits | None = None


@dataclass(frozen=True, slots=True, config=VALUE)
class IndexedAttestation:
    """An attestation with the indices of its attesters."""

    attesting_indices: Numbers
    data: AttestationData
    signature: Signature


@dataclass(frozen=True, slots=True, config=VALUE)
class AttesterSlashing:
    """Of `attester_slashing`: two attestations that nobody may sign both."""

    attestation_1: IndexedAttestation
    attestation_2: IndexedAttestation


@dataclass(frozen=True, slots=True, config=VALUE)
class FinalizedCheckpointEvent:
    """Of `finalized_checkpoint`."""

    block: RootBytes
    state: RootBytes
    epoch: EpochNumber
    execution_optimistic: Flag | None = None


@dataclass(frozen=True, slots=True, config=VALUE)
class PayloadAttributesEvent:
    """Of `payload_attributes`: what a payload at `proposal_slot` on this parent is to be built with.

    :param parent_block_number: `None` from Gloas on.
    :param payload_attributes: `PayloadAttributesV<N>` of the fork, as the node wrote it; nothing of it is checked.
    :param version: the fork at `proposal_slot`, which says what attributes there are; `None` where it is not told.
    """

    proposer_index: ValidatorIndex
    proposal_slot: SlotNumber
    parent_block_root: RootBytes
    parent_block_hash: Bytes32
    payload_attributes: Mapping[str, Any]
    parent_block_number: Uint64 | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True, config=VALUE)
class DataColumnSidecarEvent:
    """Of `data_column_sidecar`; before Fulu's final form nodes sent more with it."""

    block_root: RootBytes
    index: Uint64
    slot: SlotNumber


@dataclass(frozen=True, slots=True, config=VALUE)
class PayloadEvent:
    """Of `execution_payload`, an envelope that was imported, and `execution_payload_gossip`, one that passed gossip.

    :param execution_optimistic: `None` where the node does not say, as always of gossip.
    """

    slot: SlotNumber
    builder_index: Uint64
    block_hash: Bytes32
    block_root: RootBytes
    execution_optimistic: Flag | None = None


@dataclass(frozen=True, slots=True, config=VALUE)
class PayloadAvailableEvent:
    """Of `execution_payload_available`: the payload and the blobs of a block are there to be attested to."""

    slot: SlotNumber
    block_root: RootBytes


@dataclass(frozen=True, slots=True, config=VALUE)
class FastConfirmationEvent:
    """Of `fast_confirmation`, at each run of the algorithm: the newest block that is confirmed at `current_slot`."""

    block: RootBytes
    slot: SlotNumber
    current_slot: SlotNumber


@dataclass(frozen=True, slots=True, config=VALUE)
class ExecutionPayloadBid:
    """What a builder offers (Gloas). What devnets left away or named otherwise is `None`.

    :param value: gwei, as is `execution_payment`.
    """

    slot: SlotNumber
    builder_index: Uint64
    parent_block_root: RootBytes
    parent_block_hash: Bytes32
    block_hash: Bytes32
    value: Gwei
    fee_recipient: Bytes20
    gas_limit: Uint64
    prev_randao: Bytes32 | None = None
    execution_payment: Gwei | None = None
    blob_kzg_commitments: list[Commitment] | None = None


@dataclass(frozen=True, slots=True, config=VALUE)
class SignedExecutionPayloadBid:
    """Of `execution_payload_bid`: a bid with its builder's signature."""

    message: ExecutionPayloadBid
    signature: Signature


@dataclass(frozen=True, slots=True, config=VALUE)
class LightClientHeader:
    """The block that an update of the light client protocol is about; the rest of the header is in the update."""

    beacon: BeaconBlockHeader


@dataclass(frozen=True, slots=True, config=VALUE)
class SyncAggregate:
    """Who of the sync committee signed: a bit for each member, and their signatures in one."""

    sync_committee_bits: Annotated[bytes, Hex(most=64), AfterValidator(_members)]
    sync_committee_signature: Signature


@dataclass(frozen=True, slots=True, config=VALUE)
class LightClientOptimisticUpdate:
    """Of `light_client_optimistic_update`.

    :param version: its fork; `None` where the node says nothing.
    :param body: the whole update in JSON, byte by byte as the node wrote it, branches and execution headers included.
    """

    attested_header: LightClientHeader
    sync_aggregate: SyncAggregate
    signature_slot: SlotNumber
    version: str | None = None
    body: bytes = Field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, config=VALUE)
class LightClientFinalityUpdate:
    """Of `light_client_finality_update`; parameters as of the optimistic one."""

    attested_header: LightClientHeader
    finalized_header: LightClientHeader
    sync_aggregate: SyncAggregate
    signature_slot: SlotNumber
    version: str | None = None
    body: bytes = Field(default=b"", repr=False)
