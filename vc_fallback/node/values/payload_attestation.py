"""What members of the payload timeliness committee say of a payload (Gloas)."""

from typing import ClassVar

from pydantic.dataclasses import dataclass

from vc_fallback.node.values.containers import Container
from vc_fallback.node.values.fields import VALUE, Flag, RootBytes, Signature, SlotNumber, ValidatorIndex


@dataclass(frozen=True, slots=True, config=VALUE)
class PayloadAttestationData(Container):
    """What a member signs.

    :param payload_present: whether the node has seen an envelope of this block.
    :param blob_data_available: whether the node has the block's blobs.
    """

    ssz_length: ClassVar[int] = 42

    beacon_block_root: RootBytes
    slot: SlotNumber
    payload_present: Flag
    blob_data_available: Flag


@dataclass(frozen=True, slots=True, config=VALUE)
class PayloadAttestationMessage(Container):
    """What a member publishes."""

    ssz_length: ClassVar[int] = 146

    validator_index: ValidatorIndex
    data: PayloadAttestationData
    signature: Signature
