"""Attestation data and its checkpoints."""

from typing import ClassVar

from pydantic.dataclasses import dataclass

from vc_fallback.node.values.containers import Container
from vc_fallback.node.values.fields import VALUE, EpochNumber, RootBytes, SlotNumber, Uint64


@dataclass(frozen=True, slots=True, config=VALUE)
class Checkpoint(Container):
    """A block at the boundary of an epoch."""

    ssz_length: ClassVar[int] = 40

    epoch: EpochNumber
    root: RootBytes


@dataclass(frozen=True, slots=True, config=VALUE)
class AttestationData(Container):
    """What an attester signs: `AttestationData` of the consensus specification."""

    ssz_length: ClassVar[int] = 128

    slot: SlotNumber
    index: Uint64
    beacon_block_root: RootBytes
    source: Checkpoint
    target: Checkpoint
