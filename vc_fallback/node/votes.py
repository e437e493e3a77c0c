"""Attestations, whose events come by the ten thousand in a slot, and slashings of as many attesters (case 14).

They are read by msgspec, and made into values when asked for.

As with rows (`vc_fallback.node.values.rows`) only the plainest form is read so: flat, numbers below 2^63, no members
but those that are known. All of it is checked as strictly as elsewhere, in half the time; and of two in three, which
are copies, nobody wants more than the key.
"""

from binascii import unhexlify
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import msgspec

from vc_fallback.node.meaning import pack, slashing_meaning
from vc_fallback.node.values.attestation import DATA_LAYOUT, AttestationData, SingleAttestation
from vc_fallback.node.values.events import (
    MOST_BITS,
    AttestationEvent,
    AttesterSlashing,
    IndexedAttestation,
    committees,
)
from vc_fallback.node.values.fields import made
from vc_fallback.node.values.rows import is_plain

_Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Root = Annotated[str, msgspec.Meta(min_length=66, max_length=66)]
_Signature = Annotated[str, msgspec.Meta(min_length=194, max_length=194)]
_Bits = Annotated[str, msgspec.Meta(min_length=4, max_length=2 + 2 * MOST_BITS)]
_CommitteeBits = Annotated[str, msgspec.Meta(min_length=2, max_length=18)]


class Vote(NamedTuple):
    """A vote that is right.

    :param key: as `vc_fallback.node.meaning` has it of the same vote.
    :param make: makes the value.
    """

    key: bytes
    make: Callable[[], AttestationEvent | SingleAttestation | AttesterSlashing]


class _Checkpoint(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    epoch: _Number
    root: _Root


class _Data(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    slot: _Number
    index: _Number
    beacon_block_root: _Root
    source: _Checkpoint
    target: _Checkpoint


class _Single(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    committee_index: _Number
    attester_index: _Number
    data: _Data
    signature: _Signature


class _Attestation(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    aggregation_bits: _Bits
    data: _Data
    signature: _Signature
    committee_bits: _CommitteeBits | None = None


class _Indexed(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    attesting_indices: list[_Number]
    data: _Data
    signature: _Signature


class _Slashing(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    attestation_1: _Indexed
    attestation_2: _Indexed


def _single(found: _Single) -> Vote:
    data, signature = _checked(found.data, found.signature)
    committee, attester = found.committee_index, found.attester_index

    def make() -> SingleAttestation:
        return made(SingleAttestation, committee, attester, _data(data), signature)  # type: ignore[no-any-return]

    return Vote(pack((attester, committee, data)), make)


def _attestation(found: _Attestation) -> Vote:
    data, signature = _checked(found.data, found.signature)
    bits = _bytes(found.aggregation_bits)
    committee_bits = None if found.committee_bits is None else committees(_bytes(found.committee_bits))
    if not bits[-1]:
        raise ValueError

    def make() -> AttestationEvent:
        return made(AttestationEvent, bits, _data(data), signature, committee_bits)  # type: ignore[no-any-return]

    return Vote(pack((data, bits, committee_bits)), make)


def _slashing(found: _Slashing) -> Vote:
    both = [
        (*_checked(one.data, one.signature), one.attesting_indices)
        for one in (found.attestation_1, found.attestation_2)
    ]

    def make() -> AttesterSlashing:
        votes = [made(IndexedAttestation, indices, _data(data), signature) for data, signature, indices in both]
        return made(AttesterSlashing, *votes)  # type: ignore[no-any-return]

    return Vote(pack(slashing_meaning(*((data, indices) for data, _, indices in both))), make)


@lru_cache(maxsize=256)
def _data(packed: bytes) -> AttestationData:
    """Return the data of a serialisation: ten thousand attesters of a slot vote for the same, and share one value."""
    return AttestationData.from_ssz(packed)


def _checked(data: _Data, signature: str) -> tuple[bytes, bytes]:
    """Return the serialisation of data, and a signature."""
    root, source, target = data.beacon_block_root, data.source, data.target
    if not root[:2] == source.root[:2] == target.root[:2] == signature[:2] == "0x":
        raise ValueError
    # At once, as four calls are a microsecond; their lengths were looked at.
    found = unhexlify(root[2:] + source.root[2:] + target.root[2:] + signature[2:])
    packed = DATA_LAYOUT.pack(data.slot, data.index, found[:32], source.epoch, found[32:64], target.epoch, found[64:96])
    return packed, found[96:]


def _bytes(text: str) -> bytes:
    if text[:2] != "0x":
        raise ValueError
    return unhexlify(text[2:])


# Not strict, it takes numbers in strings. Of what else that allows, bounds and `is_plain` leave nothing.
_SINGLE = msgspec.json.Decoder(_Single, strict=False).decode
_SLASHINGS = msgspec.json.Decoder(_Slashing, strict=False).decode
_AGGREGATE = msgspec.json.Decoder(_Attestation, strict=False).decode
_Reader = tuple[Callable[[bytes], Any], Callable[[Any], Vote]]
_READERS: Mapping[str, tuple[_Reader, ...]] = {
    "single_attestation": ((_SINGLE, _single),),
    "attester_slashing": ((_SLASHINGS, _slashing),),
    "attestation": ((_AGGREGATE, _attestation), (_SINGLE, _single)),
}


def read_vote(topic: str, data: str) -> Vote | None:
    """Read an event with a vote, if it is in the plainest form; else, and of other topics, return `None`."""
    readers = _READERS.get(topic)
    if readers is None:
        return None
    try:
        body = data.encode()
    except ValueError:
        return None
    if not is_plain(body):
        return None
    for decode, check in readers:
        try:
            return check(decode(body))
        except (ValueError, RecursionError):
            continue
    return None
