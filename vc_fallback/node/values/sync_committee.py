"""Messages, contributions and selections of sync committees."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from vc_fallback.node.values.containers import Container
from vc_fallback.node.values.fields import VALUE, Hex, RootBytes, Signature, SlotNumber, Uint64, ValidatorIndex

_PRESET_BITS = (16, 1)
"""Bytes of `SYNC_COMMITTEE_SIZE / SYNC_COMMITTEE_SUBNET_COUNT` bits: of 512 / 4, and in the minimal preset 32 / 4."""


def _of_a_preset(bits: bytes) -> bytes:
    if len(bits) not in _PRESET_BITS:
        raise ValueError("bits of no preset")
    return bits


SubcommitteeBits = Annotated[bytes, Hex(most=16), AfterValidator(_of_a_preset)]
"""A bit for each member of a subcommittee: 16 bytes, or 1 in the minimal preset."""


@dataclass(frozen=True, slots=True, config=VALUE)
class SyncCommitteeMessage(Container):
    """A member's signature of a block root."""

    ssz_length: ClassVar[int] = 144

    slot: SlotNumber
    beacon_block_root: RootBytes
    validator_index: ValidatorIndex
    signature: Signature


@dataclass(frozen=True, slots=True, config=VALUE)
class SyncCommitteeContribution(Container):
    """The messages of one subcommittee, put together."""

    ssz_length: ClassVar[int] = 160
    preset_bits: ClassVar[tuple[int, ...]] = _PRESET_BITS

    slot: SlotNumber
    beacon_block_root: RootBytes
    subcommittee_index: Uint64
    aggregation_bits: SubcommitteeBits
    signature: Signature

    @property
    def bit_count(self) -> int:
        """How many members' messages are in it, by which contributions are compared (Q7)."""
        return int.from_bytes(self.aggregation_bits).bit_count()


@dataclass(frozen=True, slots=True, config=VALUE)
class ContributionAndProof(Container):
    """What an aggregator signs."""

    ssz_length: ClassVar[int] = 264
    preset_bits: ClassVar[tuple[int, ...]] = _PRESET_BITS

    aggregator_index: ValidatorIndex
    contribution: SyncCommitteeContribution
    selection_proof: Signature


@dataclass(frozen=True, slots=True, config=VALUE)
class SignedContributionAndProof(Container):
    """What an aggregator publishes."""

    ssz_length: ClassVar[int] = 360
    preset_bits: ClassVar[tuple[int, ...]] = _PRESET_BITS

    message: ContributionAndProof
    signature: Signature
