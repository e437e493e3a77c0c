"""Headers of blocks."""

from typing import ClassVar

from pydantic.dataclasses import dataclass

from vc_fallback.base.types import Root, Slot
from vc_fallback.node.values.containers import Container
from vc_fallback.node.values.fields import VALUE, Flag, RootBytes, Signature, SlotNumber, ValidatorIndex


@dataclass(frozen=True, slots=True, config=VALUE)
class BeaconBlockHeader(Container):
    """`BeaconBlockHeader` of the consensus specification; its hash tree root is the block's."""

    ssz_length: ClassVar[int] = 112

    slot: SlotNumber
    proposer_index: ValidatorIndex
    parent_root: RootBytes
    state_root: RootBytes
    body_root: RootBytes


@dataclass(frozen=True, slots=True, config=VALUE)
class SignedBeaconBlockHeader(Container):
    """A header with its proposer's signature."""

    ssz_length: ClassVar[int] = 208

    message: BeaconBlockHeader
    signature: Signature


@dataclass(frozen=True, slots=True, config=VALUE)
class Header:
    """A header as a node lists it; `canonical` says whether it is on the node's own chain."""

    root: RootBytes
    canonical: Flag
    header: SignedBeaconBlockHeader


@dataclass(frozen=True, slots=True, config=VALUE)
class BlockRoot:
    """The root of a block, as a node answers with it."""

    root: RootBytes


@dataclass(frozen=True, slots=True, config=VALUE)
class _HeadMessage:
    slot: SlotNumber


@dataclass(frozen=True, slots=True, config=VALUE)
class _HeadHeader:
    message: _HeadMessage


@dataclass(frozen=True, slots=True, config=VALUE)
class HeadPosition:
    """Of a header nothing but where it is: what a poll of a node's head needs, whatever the rest holds."""

    root: RootBytes
    header: _HeadHeader


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a node's chain by poll; `optimistic` is `None` where the node does not say."""

    slot: Slot
    root: Root
    optimistic: bool | None
