"""How many attesters are in an aggregate, which else stays as it is (Q2a, Q7)."""

from binascii import unhexlify

import msgspec

from vc_fallback.node.values.adapters import Unreadable
from vc_fallback.node.values.encodings import SSZ
from vc_fallback.node.values.opaque import Opaque

_OFFSET = 4
_FIXED = 228
"""Bytes of an attestation before its bits: their offset (4), the data (128), the signature (96)."""
_COMMITTEES = 8
"""Bytes at most of the committees' bits, behind the signature from Electra on: 8, in the minimal preset 1."""
_MOST = 64 * 2048 // 8 + 1
"""Bytes at most of the bits: every member of 64 committees of 2,048, and the bit that ends the list."""


class _Attestation(msgspec.Struct):
    aggregation_bits: str


_DECODER = msgspec.json.Decoder(_Attestation)


def aggregation_bit_count(attestation: Opaque) -> int:
    """Return how many bits are set in an `Attestation` of any fork and either form; nothing else of it is decoded.

    :raises ValueError: when there are no such bits in their place.
    """
    bits = _from_ssz(attestation.body) if attestation.content_type == SSZ else _from_json(attestation.body)
    if not 0 < len(bits) <= _MOST or not bits[-1]:
        raise Unreadable("aggregation_bits: not a list of bits")
    # The highest bit only says where the list ends.
    return int.from_bytes(bits).bit_count() - 1


def _from_ssz(body: bytes) -> bytes:
    # The bits are all that has no fixed length, so they are at the end, wherever the offset says that is.
    offset = int.from_bytes(body[:_OFFSET], "little")
    if not _FIXED <= offset <= _FIXED + _COMMITTEES:
        raise Unreadable("aggregation_bits: not where an attestation has them")
    return body[offset:]


def _from_json(body: bytes) -> bytes:
    try:
        text = _DECODER.decode(body).aggregation_bits
        if text[:2] == "0x":
            return unhexlify(text[2:])
    except (ValueError, RecursionError):
        pass
    raise Unreadable("aggregation_bits: not hexadecimal digits")
