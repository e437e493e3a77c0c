"""The test kit's own SSZ: against the `ssz` library, against a real node's block, and strict where that is not."""

import hashlib
import json
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recordings import RECORDINGS
from vc_fallback.testing.containers.basic import (
    BYTES32,
    BYTES48,
    BYTES96,
    FLAG,
    UINT8,
    UINT64,
    UINT256,
    BitList,
    Bits,
    ByteList,
    Bytes,
    Kind,
)
from vc_fallback.testing.containers.blocks import block_types
from vc_fallback.testing.containers.composite import Container, List
from vc_fallback.testing.containers.merkle import merkle_root
from vc_fallback.testing.containers.operations import ATTESTATION_DATA, HEADER, SINGLE_ATTESTATION, attestation
from vc_fallback.testing.containers.presets import FORKS, MAINNET, MINIMAL

# Without annotations that mypy could read.
LIBRARY: Any = import_module("ssz")
SEDES: Any = import_module("ssz.sedes")

# Each kind, the library's for the same values, and values for both: bit fields are bytes here and flags there.
UINT = st.integers(0, 2**64 - 1)


def bits_of(flags: tuple[bool, ...], *, end: bool) -> bytes:
    whole = (*flags, True) if end else flags
    number = sum(1 << place for place, flag in enumerate(whole) if flag)
    return number.to_bytes((len(whole) + 7) // 8, "little")


CASES: list[tuple[Kind, Any, st.SearchStrategy[Any], Callable[[Any], Any]]] = [
    (UINT8, SEDES.uint8, st.integers(0, 255), lambda value: value),
    (UINT64, SEDES.uint64, UINT, lambda value: value),
    (UINT256, SEDES.uint256, st.integers(0, 2**256 - 1), lambda value: value),
    (FLAG, SEDES.boolean, st.booleans(), lambda value: value),
    (BYTES32, SEDES.bytes32, st.binary(min_size=32, max_size=32), lambda value: value),
    (BYTES48, SEDES.bytes48, st.binary(min_size=48, max_size=48), lambda value: value),
    (BYTES96, SEDES.bytes96, st.binary(min_size=96, max_size=96), lambda value: value),
    (Bytes(256), SEDES.ByteVector(256), st.binary(min_size=256, max_size=256), lambda value: value),
    (ByteList(100), SEDES.ByteList(100), st.binary(max_size=100), lambda value: value),
    (
        Bits(20),
        SEDES.Bitvector(20),
        st.lists(st.booleans(), min_size=20, max_size=20).map(tuple),
        lambda flags: bits_of(flags, end=False),
    ),
    (
        BitList(300),
        SEDES.Bitlist(300),
        st.lists(st.booleans(), max_size=300).map(tuple),
        lambda flags: bits_of(flags, end=True),
    ),
    (List(UINT64, 50), SEDES.List(SEDES.uint64, 50), st.lists(UINT, max_size=50), tuple),
    (
        List(BYTES32, 5, exact=True),
        SEDES.Vector(SEDES.bytes32, 5),
        st.lists(st.binary(min_size=32, max_size=32), min_size=5, max_size=5),
        tuple,
    ),
    (
        List(ByteList(40), 9),
        SEDES.List(SEDES.ByteList(40), 9),
        st.lists(st.binary(max_size=40), max_size=9),
        tuple,
    ),
    (
        Container(a=UINT64, b=ByteList(9), c=Container(d=FLAG, e=UINT8), f=List(UINT64, 4)),
        SEDES.Container(
            [
                SEDES.uint64,
                SEDES.ByteList(9),
                SEDES.Container([SEDES.boolean, SEDES.uint8]),
                SEDES.List(SEDES.uint64, 4),
            ]
        ),
        st.tuples(
            UINT, st.binary(max_size=9), st.tuples(st.booleans(), st.integers(0, 255)), st.lists(UINT, max_size=4)
        ),
        lambda value: {
            "a": value[0],
            "b": value[1],
            "c": {"d": value[2][0], "e": value[2][1]},
            "f": tuple(value[3]),
        },
    ),
]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
@given(st.data())
def test_bytes_and_roots_are_those_of_the_library(case: Any, drawn: st.DataObject) -> None:
    kind, theirs, values, ours = case
    value = drawn.draw(values)
    data = kind.encode(ours(value))
    assert data == LIBRARY.encode(value, theirs)
    assert kind.decode(data) == ours(value)
    assert kind.root(ours(value)) == LIBRARY.get_hash_tree_root(value, theirs)
    assert kind.from_json(kind.to_json(ours(value))) == ours(value)


def test_a_real_nodes_block_has_the_root_that_the_node_says() -> None:
    """The header of a real Lodestar 1.5.1 hashes to its root."""
    recorded = (RECORDINGS / "http_probe.txt").read_text()
    (found,) = re.findall(r"headers/head\n.*?\n\n(\{.*?\})\n", recorded, re.DOTALL)
    header = json.loads(found)["data"]
    assert "0x" + HEADER.root(HEADER.from_json(header["header"]["message"])).hex() == header["root"]


@pytest.mark.parametrize("preset", [MAINNET, MINIMAL], ids=lambda preset: preset.name)
@pytest.mark.parametrize("fork", FORKS)
def test_every_type_of_every_fork_is_written_and_read(fork: str, preset: Any) -> None:
    types = block_types(preset, fork)
    for name in ("signed", "signed_blinded", "payload", "contents", "signed_contents", "envelope", "envelope_contents"):
        kind = getattr(types, name)
        value = kind.default()
        assert kind.decode(kind.encode(value)) == value
        assert kind.from_json(kind.to_json(value)) == value
        assert len(kind.root(value)) == 32


def test_well_known_sizes() -> None:
    """By the consensus specification; sizes of what has no list."""
    assert (ATTESTATION_DATA.size, SINGLE_ATTESTATION.size) == (128, 240)
    assert attestation(MAINNET, "deneb").size is None
    assert len(attestation(MAINNET, "deneb").encode(attestation(MAINNET, "deneb").default())) == 4 + 128 + 96 + 1
    assert len(attestation(MAINNET, "electra").encode(attestation(MAINNET, "electra").default())) == 237


LISTED = Container(a=UINT64, b=ByteList(9), c=ByteList(9))


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (UINT64, b"\0" * 7),
        (FLAG, b"\x02"),
        (BYTES32, b"\0" * 33),
        (ByteList(3), b"\0" * 4),
        (Bits(4), b"\x10"),
        (Bits(4), b"\0\0"),
        (BitList(8), b""),
        (BitList(8), b"\x01\x00"),
        (BitList(3), b"\x10"),
        (List(UINT64, 2), b"\0" * 12),
        (List(UINT64, 2), b"\0" * 24),
        (List(UINT64, 2, exact=True), b"\0" * 8),
        (List(ByteList(3), 2), b"\x02\0\0\0"),
        (List(ByteList(3), 2), b"\x08\0\0\0\x04\0\0\0"),
        (List(ByteList(3), 2), b"\x08\0\0\0\xff\0\0\0"),
        (List(ByteList(3), 2), b"\0\0\0\0"),
        (LISTED, b"\0" * 8 + b"\x10\0\0\0\x11\0\0\0"),
        (LISTED, b"\0" * 8 + b"\x11\0\0\0\x11\0\0\0 "),
        (LISTED, b"\0" * 15),
        (Container(a=UINT64), b"\0" * 9),
    ],
)
def test_bytes_that_are_no_serialisation_are_refused(kind: Kind, data: bytes) -> None:
    """The library takes some of these."""
    with pytest.raises(ValueError):  # noqa: PT011 - the words are of no account
        kind.decode(data)


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (UINT64, 1),
        (UINT64, "01"),
        (UINT64, "-1"),
        (UINT64, "1.0"),
        (UINT64, str(2**64)),
        (UINT64, "9" * 100),
        (UINT64, "١"),
        (UINT64, None),
        (FLAG, "true"),
        (BYTES32, "11" * 32),
        (BYTES32, "0x" + "11" * 31),
        (BYTES32, "0x" + "1 " * 32),
        (BYTES32, "0x" + "zz" * 32),
        (BYTES32, 5),
        (List(UINT64, 2), {}),
        (List(UINT64, 2), ["1", "2", "3"]),
        (LISTED, {"a": "1", "b": "0x"}),
        (LISTED, []),
        (LISTED, None),
    ],
)
def test_json_that_is_something_else_is_refused(kind: Kind, written: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are of no account
        kind.from_json(written)


def test_a_tree_is_filled_up_with_zeros() -> None:
    """By hand: three leaves of four, none of four, one of one."""

    def pair(left: bytes, right: bytes) -> bytes:
        return hashlib.sha256(left + right).digest()

    a, b, c, zero = b"a" * 32, b"b" * 32, b"c" * 32, bytes(32)
    assert merkle_root([a, b, c], 4) == pair(pair(a, b), pair(c, zero))
    assert merkle_root([], 4) == pair(pair(zero, zero), pair(zero, zero))
    assert merkle_root([a], 1) == a
    assert merkle_root([a], 3) == pair(pair(a, zero), pair(zero, zero))
