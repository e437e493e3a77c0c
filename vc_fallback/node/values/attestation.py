"""Attestation data and its checkpoints, and the attestation that one validator makes of it."""

from typing import ClassVar

from pydantic.dataclasses import dataclass

from vc_fallback.node.values.containers import Container
from vc_fallback.node.values.fields import VALUE, EpochNumber, RootBytes, Signature, SlotNumber, Uint64, ValidatorIndex


@dataclass(frozen=True, slots=True, config=VALUE)
class Checkpoint(Container):
    """A block at the boundary of an epoch."""

    ssz_length: ClassVar[int] = 40

    epoch: EpochNumber
    root: RootBytes


@dataclass(frozen=True, slots=True, config=VALUE)
class AttestationData(Container):
    """What an attester signs: `AttestationData` of the consensus specification.

    :param index: the committee before Electra, 0 in Electra and Fulu, from Gloas on whether the payload is there.
    """

    ssz_length: ClassVar[int] = 128

    slot: SlotNumber
    index: Uint64
    beacon_block_root: RootBytes
    source: Checkpoint
    target: Checkpoint


@dataclass(frozen=True, slots=True, config=VALUE)
class SingleAttestation(Container):
    """What one attester publishes from Electra on; before it is an `Attestation`, which is not of fixed size."""

    ssz_length: ClassVar[int] = 240

    committee_index: Uint64
    attester_index: ValidatorIndex
    data: AttestationData
    signature: Signature
