"""Signed operations that a validator, or whoever caught one, sends once: exits, changes of credentials, slashings."""

from typing import ClassVar

from pydantic.dataclasses import dataclass

from vc_fallback.node.values.blocks import SignedBeaconBlockHeader
from vc_fallback.node.values.containers import Container
from vc_fallback.node.values.fields import VALUE, Bytes20, EpochNumber, PublicKey, Signature, ValidatorIndex


@dataclass(frozen=True, slots=True, config=VALUE)
class VoluntaryExit(Container):
    """A wish to leave, from `epoch` on."""

    ssz_length: ClassVar[int] = 16

    epoch: EpochNumber
    validator_index: ValidatorIndex


@dataclass(frozen=True, slots=True, config=VALUE)
class SignedVoluntaryExit(Container):
    """An exit with its validator's signature."""

    ssz_length: ClassVar[int] = 112

    message: VoluntaryExit
    signature: Signature


@dataclass(frozen=True, slots=True, config=VALUE)
class BLSToExecutionChange(Container):
    """A change of withdrawal credentials from a key to an address."""

    ssz_length: ClassVar[int] = 76

    validator_index: ValidatorIndex
    from_bls_pubkey: PublicKey
    to_execution_address: Bytes20


@dataclass(frozen=True, slots=True, config=VALUE)
class SignedBLSToExecutionChange(Container):
    """A change of credentials with the signature of the key that is left."""

    ssz_length: ClassVar[int] = 172

    message: BLSToExecutionChange
    signature: Signature


@dataclass(frozen=True, slots=True, config=VALUE)
class ProposerSlashing(Container):
    """Two headers that one proposer signed for one slot."""

    ssz_length: ClassVar[int] = 416

    signed_header_1: SignedBeaconBlockHeader
    signed_header_2: SignedBeaconBlockHeader
