"""What an answer says and what a value of ours holds, in one form, to be compared."""

import itertools
import struct
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from tests.conformance.openapi_rows import ROOT
from vc_fallback.base.types import root_hex

Pairs = set[tuple[str, Any]]

_BLOCK = {
    "blinded": "execution_payload_blinded",
    "included": "execution_payload_included",
    "consensus_value": "consensus_block_value",
    "execution_value": "execution_payload_value",
}
RENAMED: Mapping[str, Mapping[str, str]] = {
    "version": {"": "version"},
    "head": {"optimistic": "execution_optimistic"},
    "block_root": {"data": "root"},
    "state_root": {"data": "root"},
    "randao": {"data": "randao"},
    "produce_block": _BLOCK,
}
"""By method: names of ours, and what the definition calls them."""

HEADER = {"finalized", "canonical", "proposer_index", "parent_root", "state_root", "body_root", "signature"}
NOT_KEPT: Mapping[str, AbstractSet[str]] = {
    "head": HEADER,
    "payload_attestation_data": {"version"},
}
"""By method: members that are read over."""

# Members that say which question is answered: methods refuse answers to another.
_ASKED = {"slot": "1", "subcommittee_index": "1", "beacon_block_root": root_hex(ROOT)}


def pairs(value: Any, name: str = "") -> Pairs:
    """Return every leaf of a value with the name of its member; numbers as decimals, bytes as digits in lower case.

    Members of lists have the list's name.
    """
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return set().union(*(pairs(member, key) for key, member in value.items()))
    if isinstance(value, list | tuple):
        return set().union(*(pairs(item, name) for item in value))
    if value is None:
        return set()
    if isinstance(value, bytes):
        value = root_hex(value)
    elif isinstance(value, bool):
        pass
    elif isinstance(value, int):
        value = str(value)
    elif isinstance(value, str):
        value = value.lower() if value.startswith("0x") else str(value)
    return {(name, value)}


def distinct(value: Any) -> Any:
    """Return a value whose every number and every run of digits is another, but for what was asked for."""
    numbers = itertools.count(1000)

    def change(member: Any, name: str) -> Any:
        if name in _ASKED and isinstance(member, str):
            return _ASKED[name]
        if isinstance(member, Mapping):
            return {key: change(inner, key) for key, inner in member.items()}
        if isinstance(member, list):
            return [change(item, name) for item in member]
        if isinstance(member, str) and member.isdecimal():
            return str(next(numbers))
        if isinstance(member, str) and member.startswith("0x") and len(member) >= 10:
            return f"0x{next(numbers):0{len(member) - 2}x}"
        return member

    return change(value, "")


def serialised(operation: str, value: Any) -> bytes:
    """Return an answer's value as SSZ, where it is of fixed size; else some bytes, which nobody reads."""
    data = value["data"]
    if operation == "produceAttestationData":
        return b"".join(
            [
                struct.pack("<QQ", int(data["slot"]), int(data["index"])),
                bytes.fromhex(data["beacon_block_root"][2:]),
                *(struct.pack("<Q", int(data[name]["epoch"])) + bytes.fromhex(data[name]["root"][2:])
                  for name in ("source", "target")),
            ]
        )  # fmt: skip
    if operation == "producePayloadAttestationData":
        root, slot = bytes.fromhex(data["beacon_block_root"][2:]), struct.pack("<Q", int(data["slot"]))
        return root + slot + bytes([data["payload_present"], data["blob_data_available"]])
    if operation.endswith("StateValidatorBalances"):
        return b"".join(struct.pack("<QQ", int(entry["index"]), int(entry["balance"])) for entry in data)
    return b"\x08\x00\x00\x00" + bytes(200)
