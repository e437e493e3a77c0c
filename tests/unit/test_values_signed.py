"""Values that validators sign: their bytes, their roots and their JSON, worked out here by the rules of SSZ."""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pytest

from vc_fallback.node.values.attestation import AttestationData, Checkpoint, SingleAttestation
from vc_fallback.node.values.containers import Container
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.operations import (
    BLSToExecutionChange,
    ProposerSlashing,
    SignedBLSToExecutionChange,
    SignedVoluntaryExit,
    VoluntaryExit,
)
from vc_fallback.node.values.payload_attestation import PayloadAttestationData, PayloadAttestationMessage
from vc_fallback.node.values.preparations import (
    ProposerPreferences,
    SignedProposerPreferences,
    SignedValidatorRegistration,
    ValidatorRegistration,
)
from vc_fallback.node.values.sync_committee import (
    ContributionAndProof,
    SignedContributionAndProof,
    SyncCommitteeContribution,
    SyncCommitteeMessage,
)

MOST = 2**64 - 1


@dataclass
class Part:
    """A value by hand: its JSON, its SSZ bytes, its hash tree root."""

    json: Any
    ssz: bytes
    root: bytes


def merkle(leaves: list[bytes]) -> bytes:
    """Hash leaves pairwise, zero leaves added up to a power of two."""
    while len(leaves) & (len(leaves) - 1):
        leaves = [*leaves, bytes(32)]
    while len(leaves) > 1:
        leaves = [sha256(leaves[i] + leaves[i + 1]).digest() for i in range(0, len(leaves), 2)]
    return leaves[0]


def number(value: int) -> Part:
    data = value.to_bytes(8, "little")
    return Part(str(value), data, data.ljust(32, b"\0"))


def flag(value: bool) -> Part:
    return Part(value, bytes([value]), bytes([value]).ljust(32, b"\0"))


def data(length: int, first: int) -> Part:
    value = bytes((first + i) % 256 for i in range(length))
    return Part("0x" + value.hex(), value, merkle([value[i : i + 32].ljust(32, b"\0") for i in range(0, length, 32)]))


def box(**parts: Part) -> Part:
    return Part(
        {name: part.json for name, part in parts.items()},
        b"".join(part.ssz for part in parts.values()),
        merkle([part.root for part in parts.values()]),
    )


def signed(message: Part) -> Part:
    return box(message=message, signature=data(96, 200))


ROOT = data(32, 1)
CHECKPOINTS = box(epoch=number(4), root=data(32, 2)), box(epoch=number(MOST), root=data(32, 3))
ATTESTATION = box(
    slot=number(161), index=number(1), beacon_block_root=ROOT, source=CHECKPOINTS[0], target=CHECKPOINTS[1]
)
SIGNATURE = data(96, 5)


def contribution(bits: Part) -> Part:
    return box(
        slot=number(2**53 + 1),
        beacon_block_root=ROOT,
        subcommittee_index=number(3),
        aggregation_bits=bits,
        signature=SIGNATURE,
    )


def proof(bits: Part) -> Part:
    return box(aggregator_index=number(77), contribution=contribution(bits), selection_proof=data(96, 6))


PAYLOAD = box(beacon_block_root=ROOT, slot=number(300), payload_present=flag(True), blob_data_available=flag(False))
EXIT = box(epoch=number(9), validator_index=number(8))
CHANGE = box(validator_index=number(8), from_bls_pubkey=data(48, 7), to_execution_address=data(20, 9))
REGISTRATION = box(
    fee_recipient=data(20, 9), gas_limit=number(60_000_000), timestamp=number(1_700_000_000), pubkey=data(48, 7)
)
PREFERENCES = box(
    dependent_root=ROOT,
    proposal_slot=number(301),
    validator_index=number(8),
    fee_recipient=data(20, 9),
    target_gas_limit=number(60_000_000),
)
HEADERS = [
    signed(
        box(
            slot=number(5),
            proposer_index=number(6),
            parent_root=data(32, 10),
            state_root=data(32, 11),
            body_root=data(32, body),
        )
    )
    for body in (12, 13)
]
MAINNET, MINIMAL = data(16, 0xA5), data(1, 0xA5)

VALUES: dict[str, tuple[type[Container], Part]] = {
    "Checkpoint": (Checkpoint, CHECKPOINTS[1]),
    "AttestationData": (AttestationData, ATTESTATION),
    "SingleAttestation": (
        SingleAttestation,
        box(committee_index=number(63), attester_index=number(MOST), data=ATTESTATION, signature=SIGNATURE),
    ),
    "SyncCommitteeMessage": (
        SyncCommitteeMessage,
        box(slot=number(7), beacon_block_root=ROOT, validator_index=number(8), signature=SIGNATURE),
    ),
    "SyncCommitteeContribution": (SyncCommitteeContribution, contribution(MAINNET)),
    "SyncCommitteeContribution, minimal": (SyncCommitteeContribution, contribution(MINIMAL)),
    "ContributionAndProof": (ContributionAndProof, proof(MAINNET)),
    "ContributionAndProof, minimal": (ContributionAndProof, proof(MINIMAL)),
    "SignedContributionAndProof": (SignedContributionAndProof, signed(proof(MAINNET))),
    "SignedContributionAndProof, minimal": (SignedContributionAndProof, signed(proof(MINIMAL))),
    "PayloadAttestationData": (PayloadAttestationData, PAYLOAD),
    "PayloadAttestationMessage": (
        PayloadAttestationMessage,
        box(validator_index=number(8), data=PAYLOAD, signature=SIGNATURE),
    ),
    "VoluntaryExit": (VoluntaryExit, EXIT),
    "SignedVoluntaryExit": (SignedVoluntaryExit, signed(EXIT)),
    "BLSToExecutionChange": (BLSToExecutionChange, CHANGE),
    "SignedBLSToExecutionChange": (SignedBLSToExecutionChange, signed(CHANGE)),
    "ProposerSlashing": (ProposerSlashing, box(signed_header_1=HEADERS[0], signed_header_2=HEADERS[1])),
    "ValidatorRegistration": (ValidatorRegistration, REGISTRATION),
    "SignedValidatorRegistration": (SignedValidatorRegistration, signed(REGISTRATION)),
    "ProposerPreferences": (ProposerPreferences, PREFERENCES),
    "SignedProposerPreferences": (SignedProposerPreferences, signed(PREFERENCES)),
}

every_value = pytest.mark.parametrize(("kind", "part"), VALUES.values(), ids=VALUES.keys())


def written(value: Any) -> bytes:
    return json.dumps(value).encode()


@every_value
def test_bytes_root_and_json_are_those_worked_out_by_hand(kind: type[Container], part: Part) -> None:
    """Q6, Q17: exact beyond 2^53, up to 2^64−1 (case 65)."""
    value = kind.from_json(written(part.json))
    assert value.to_ssz() == part.ssz
    assert value.hash_tree_root() == part.root
    assert json.loads(value.to_json()) == part.json
    assert kind.from_ssz(part.ssz) == value
    assert kind.from_ssz(memoryview(part.ssz)) == value  # type: ignore[arg-type]
    assert value.encodings() == Encodings(ssz=value.to_ssz(), json=value.to_json())


@every_value
def test_a_container_has_one_length(kind: type[Container], part: Part) -> None:
    for wrong in (b"", part.ssz[:-1], part.ssz + b"\0", part.ssz * 2):
        with pytest.raises(ValueError, match="of another length"):
            kind.from_ssz(wrong)


@every_value
def test_one_changed_byte_is_another_value_with_another_root(kind: type[Container], part: Part) -> None:
    for place in range(0, len(part.ssz), 5):
        changed = bytearray(part.ssz)
        changed[place] ^= 1
        value = kind.from_ssz(bytes(changed))
        assert value.to_ssz() == changed
        assert value.hash_tree_root() != part.root


def leaves(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all members that have none of their own."""
    if not isinstance(value, dict):
        return [path]
    return [found for name, member in value.items() for found in leaves(member, (*path, name))]


def with_member(value: Any, path: tuple[str, ...], new: Any) -> Any:
    """Return a copy with one member changed."""
    return {**value, path[0]: with_member(value[path[0]], path[1:], new)} if path else new


def without(value: Any, path: tuple[str, ...]) -> Any:
    """Return a copy without one member."""
    copy = dict(value)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = without(copy[path[0]], path[1:])
    return copy


def numbers(part: Part) -> list[tuple[str, ...]]:
    def at(path: tuple[str, ...]) -> Any:
        found = part.json
        for name in path:
            found = found[name]
        return found

    return [path for path in leaves(part.json) if isinstance(at(path), str) and not at(path).startswith("0x")]


BAD_NUMBERS: list[Any] = [
    1.0, 1e3, 18446744073709552000, 2**64, -1, True, None, [], {}, "",
    "-1", "+1", " 1", "1 ", "1_0", "01", "0x1", "1e3", "1.0", str(2**64), "18446744073709552000", "\u0661", "secret",
]  # fmt: skip
NOTHING_OF_A_KIND: list[Any] = [None, [], {}]


@every_value
def test_numbers_are_exact_or_refused(kind: type[Container], part: Part) -> None:
    """Q17, case 63: integers pass as decimal strings do; what a float has been through is refused."""
    for path in numbers(part):
        as_integer = kind.from_json(written(with_member(part.json, path, 7)))
        assert as_integer == kind.from_json(written(with_member(part.json, path, "7")))
        for bad in BAD_NUMBERS:
            with pytest.raises(ValueError, match="not as the API defines it") as caught:
                kind.from_json(written(with_member(part.json, path, bad)))
            assert "secret" not in str(caught.value)


@every_value
def test_members_are_there_and_of_their_type(kind: type[Container], part: Part) -> None:
    """Case 67."""
    for path in leaves(part.json):
        with pytest.raises(ValueError, match="not as the API defines it"):
            kind.from_json(written(without(part.json, path)))
        for bad in (*NOTHING_OF_A_KIND, 1.5, "secret", "0x", "0xzz", "0x" + "ab" * 200, "ab" * 32):
            with pytest.raises(ValueError, match="not as the API defines it") as caught:
                kind.from_json(written(with_member(part.json, path, bad)))
            assert "secret" not in str(caught.value)
    for whole in (b"", b"null", b"[]", b"5", b'"x"', b"{}", written(part.json)[:-1], b"<html>", b"\xff"):
        with pytest.raises(ValueError, match="not as the API defines it"):
            kind.from_json(whole)


@every_value
def test_members_that_are_not_known_are_ignored(kind: type[Container], part: Part) -> None:
    """Case 67: the API may add members without a new version."""
    assert kind.from_json(written({**part.json, "new": [1]})).to_ssz() == part.ssz


def test_flags_are_0_or_1() -> None:
    for place in (40, 41):
        for byte in (2, 0x80, 0xFF):
            changed = bytearray(PAYLOAD.ssz)
            changed[place] = byte
            with pytest.raises(ValueError, match="out of range"):
                PayloadAttestationData.from_ssz(bytes(changed))
    for bad in ("true", 1, 0, "1"):
        with pytest.raises(ValueError, match="not as the API defines it"):
            PayloadAttestationData.from_json(written({**PAYLOAD.json, "payload_present": bad}))


@pytest.mark.parametrize("length", [0, 2, 8, 15, 17])
def test_bits_of_a_contribution_are_those_of_a_preset(length: int) -> None:
    with pytest.raises(ValueError, match="aggregation_bits"):
        SyncCommitteeContribution.from_json(
            written({**contribution(MAINNET).json, "aggregation_bits": "0x" + "01" * length})
        )
    with pytest.raises(ValueError, match="of another length"):
        SyncCommitteeContribution.from_ssz(bytes(144 + length))


def test_contributions_are_compared_by_their_bits() -> None:
    """Q7."""
    for bits, count in ((bytes(16), 0), (b"\xff" * 16, 128), (b"\x01" + bytes(14) + b"\x80", 2), (b"\xff", 8)):
        value = SyncCommitteeContribution(1, b"\1" * 32, 0, bits, bytes(96))  # type: ignore[arg-type]
        assert value.bit_count == count
