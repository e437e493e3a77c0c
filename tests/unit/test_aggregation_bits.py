"""Counting the bits of an aggregate at their place, whatever else is in it (Q2a, Q7)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.node.values.aggregation_bits import aggregation_bit_count
from vc_fallback.node.values.opaque import Opaque

SSZ, JSON = "application/octet-stream", "application/json"
LAYOUTS = {"phase0": (228, b""), "electra": (236, b"\xff" * 8), "electra, minimal": (229, b"\x0f")}
"""By the specification: offset, data, signature, and from Electra on the bits of 64 committees, or of 4."""


def bitlist(bits: list[bool]) -> bytes:
    """Serialise a list of bits: the highest one ends it."""
    return sum(1 << place for place, bit in enumerate([*bits, True]) if bit).to_bytes(len(bits) // 8 + 1, "little")


def in_ssz(bits: bytes, layout: str) -> Opaque:
    offset, committees = LAYOUTS[layout]
    # All that is not to be looked at is full of ones.
    return Opaque(layout[:7], SSZ, offset.to_bytes(4, "little") + b"\xff" * 224 + committees + bits)


def in_json(bits: bytes) -> Opaque:
    body = {"data": {"aggregation_bits": "0xff"}, "aggregation_bits": "0x" + bits.hex(), "committee_bits": "0xff"}
    return Opaque("fulu", JSON, json.dumps(body).encode())


@pytest.mark.parametrize("layout", LAYOUTS)
@given(bits=st.lists(st.booleans(), max_size=300))
def test_bits_are_counted_in_either_form_and_any_layout(layout: str, bits: list[bool]) -> None:
    assert aggregation_bit_count(in_ssz(bitlist(bits), layout)) == sum(bits)
    assert aggregation_bit_count(in_json(bitlist(bits))) == sum(bits)


@pytest.mark.parametrize("version", [None, "heze"])
def test_a_fork_that_is_not_known_has_them_in_the_same_place(version: str | None) -> None:
    """Case 58."""
    known = in_ssz(bitlist([True] * 5), "electra")
    assert aggregation_bit_count(Opaque(version, SSZ, known.body)) == 5


def test_as_many_as_there_can_be() -> None:
    most = bitlist([True] * (64 * 2048))
    assert aggregation_bit_count(in_ssz(most, "electra")) == 64 * 2048
    assert aggregation_bit_count(in_json(most)) == 64 * 2048
    for too_many in (in_ssz(most + b"\1", "electra"), in_json(most + b"\1")):
        with pytest.raises(ValueError, match="not a list of bits"):
            aggregation_bit_count(too_many)


BAD = {
    "nothing": Opaque("fulu", SSZ, b""),
    "half an offset": Opaque("fulu", SSZ, b"\xe4\0"),
    "an offset alone": Opaque("fulu", SSZ, b"\xe4\0\0\0"),
    "no bits": in_ssz(b"", "electra"),
    "no end of the list": in_ssz(b"\xff\0", "electra"),
    "offset too low": Opaque("fulu", SSZ, b"\0" * 300),
    "offset too high": Opaque("fulu", SSZ, b"\xff" * 300),
    "JSON as SSZ": Opaque("fulu", SSZ, in_json(b"\3").body),
    "SSZ as JSON": Opaque("fulu", JSON, in_ssz(b"\3", "electra").body),
    "no member": Opaque("fulu", JSON, b'{"data":{"aggregation_bits":"0x03"}}'),
    "null": Opaque("fulu", JSON, b'{"aggregation_bits":null}'),
    "a number": Opaque("fulu", JSON, b'{"aggregation_bits":3}'),
    "no digits": Opaque("fulu", JSON, b'{"aggregation_bits":"0x"}'),
    "digits of another base": Opaque("fulu", JSON, b'{"aggregation_bits":"0xzz"}'),
    "digits without 0x": Opaque("fulu", JSON, b'{"aggregation_bits":"0303"}'),
    "half a byte": Opaque("fulu", JSON, b'{"aggregation_bits":"0x3"}'),
    "digits of other scripts": Opaque("fulu", JSON, '{"aggregation_bits":"0x\u0663\u0663"}'.encode()),
    "blanks between digits": Opaque("fulu", JSON, b'{"aggregation_bits":"0x03 03"}'),
    "a list": Opaque("fulu", JSON, b'["0x03"]'),
    "depth": Opaque("fulu", JSON, b'{"a":' * 100_000),
}


@pytest.mark.parametrize("attestation", BAD.values(), ids=BAD.keys())
def test_what_is_no_attestation_has_no_count(attestation: Opaque) -> None:
    with pytest.raises(ValueError, match="aggregation_bits: not"):
        aggregation_bit_count(attestation)
