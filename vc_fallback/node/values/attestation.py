"""Attestation data and its checkpoints, and the attestation that one validator makes of it."""

from struct import Struct
from typing import ClassVar, Self

from pydantic.dataclasses import dataclass

from vc_fallback.node.values.adapters import Unreadable
from vc_fallback.node.values.containers import Container
from vc_fallback.node.values.fields import (
    VALUE,
    EpochNumber,
    RootBytes,
    Signature,
    SlotNumber,
    Uint64,
    ValidatorIndex,
    made,
)

DATA_LAYOUT = Struct("<QQ32sQ32sQ32s")
"""Slot, index, beacon block root, epoch and root of the source and of the target: its serialisation."""


@dataclass(frozen=True, slots=True, config=VALUE)
class Checkpoint(Container):
    """A block at the boundary of an epoch."""

    ssz_length: ClassVar[int] = 40

    epoch: EpochNumber
    root: RootBytes


@dataclass(frozen=True, slots=True, config=VALUE)
class AttestationData(Container):
    """What an attester signs: `AttestationData` of the consensus specification.

    Read and written by hand: it is asked for at each slot and compared by its bytes (Q6), and the library needs 20 µs
    for either, which is half of what a call costs.

    :param index: the committee before Electra, 0 in Electra and Fulu, from Gloas on whether the payload is there.
    """

    ssz_length: ClassVar[int] = 128

    slot: SlotNumber
    index: Uint64
    beacon_block_root: RootBytes
    source: Checkpoint
    target: Checkpoint

    @classmethod
    def from_ssz(cls, data: bytes) -> Self:
        """Read it from exactly the 128 bytes of its serialisation.

        :raises ValueError: for any other length.
        """
        if len(data) != DATA_LAYOUT.size:
            raise Unreadable(f"{cls.__name__} of another length")
        slot, index, root, source_epoch, source_root, target_epoch, target_root = DATA_LAYOUT.unpack(data)
        # Whatever the bytes are, they are numbers and roots: there is nothing to check.
        source, target = made(Checkpoint, source_epoch, source_root), made(Checkpoint, target_epoch, target_root)
        return made(cls, slot, index, root, source, target)  # type: ignore[no-any-return]

    def to_ssz(self) -> bytes:
        """Return its serialisation."""
        source, target = self.source, self.target
        return DATA_LAYOUT.pack(
            self.slot, self.index, self.beacon_block_root, source.epoch, source.root, target.epoch, target.root
        )


@dataclass(frozen=True, slots=True, config=VALUE)
class SingleAttestation(Container):
    """What one attester publishes from Electra on; before it is an `Attestation`, which is not of fixed size."""

    ssz_length: ClassVar[int] = 240

    committee_index: Uint64
    attester_index: ValidatorIndex
    data: AttestationData
    signature: Signature
