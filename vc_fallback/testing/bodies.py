"""What is in the blocks of a simulated chain: bodies of every fork, made up, complete, and right in their form."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from vc_fallback.testing.containers.blocks import BLOB_SIZE, CELL_PROOFS, block_types
from vc_fallback.testing.containers.composite import Container
from vc_fallback.testing.containers.presets import Preset, since

Body = dict[str, Any]

INFINITY = b"\xc0" + bytes(95)
"""The point at infinity, as a signature."""

SELF_BUILT = 2**64 - 1
"""`BUILDER_INDEX_SELF_BUILD` of Gloas: the proposer's own node built the payload."""


@dataclass(frozen=True, slots=True)
class Content:
    """What makes one block differ from another.

    :param salt: of everything that is made up.
    :param transaction_bytes: the bytes that the transactions have together.
    :param blobs: how many blobs come with it.
    :param builder: of a Gloas bid.
    :param value: of that bid, in Gwei.
    """

    slot: int
    parent_root: bytes
    timestamp: int
    salt: bytes
    randao_reveal: bytes | None = None
    graffiti: bytes = b"simulated".ljust(32, b"\0")
    fee_recipient: bytes = bytes(20)
    gas_limit: int = 36_000_000
    extra_data: bytes = b"simulated"
    transaction_bytes: int = 0
    blobs: int = 0
    builder: int = SELF_BUILT
    value: int = 0


def body(preset: Preset, fork: str, content: Content) -> Body:
    """Return a whole body: with its payload, or in Gloas with the bid for it."""
    made: Body = {**_empty(block_types(preset, fork).body)}
    made["randao_reveal"] = content.randao_reveal or _made_up(content, "randao", 96)
    made["graffiti"] = content.graffiti
    if "execution_payload" in made:
        made["execution_payload"] = payload(preset, fork, content)
    if "blob_kzg_commitments" in made:
        made["blob_kzg_commitments"] = commitments(content)
    if "signed_execution_payload_bid" in made:
        made["signed_execution_payload_bid"] = {"message": bid(preset, fork, content), "signature": INFINITY}
    return made


def body_root(preset: Preset, fork: str, made: Body) -> bytes:
    """Return the root of a body; what is empty in every block is hashed once."""
    types = block_types(preset, fork)
    known = _known_roots(types.body, made)
    if "execution_payload" in made:
        inside = made["execution_payload"]
        known["execution_payload"] = types.payload.root(inside, _known_roots(types.payload, inside))
    return types.body.root(made, known)


def payload(preset: Preset, fork: str, content: Content) -> Body:
    """Return an execution payload."""
    types = block_types(preset, fork)
    made = {
        **_empty(types.payload),
        "parent_hash": _made_up(content, "parent"),
        "fee_recipient": content.fee_recipient,
        "state_root": _made_up(content, "execution state"),
        "receipts_root": _made_up(content, "receipts"),
        "prev_randao": _made_up(content, "mix"),
        "block_number": content.slot,
        "gas_limit": content.gas_limit,
        "gas_used": 21_000,
        "timestamp": content.timestamp,
        "extra_data": content.extra_data[:32],
        "base_fee_per_gas": 7,
        "block_hash": _made_up(content, "block hash"),
        "transactions": _transactions(content),
    }
    if "blob_gas_used" in made:
        made["blob_gas_used"] = content.blobs * BLOB_SIZE
    if "slot_number" in made:
        made["slot_number"] = content.slot
    return made


def blinded(preset: Preset, fork: str, block: Body) -> Body:
    """Return a block with the header of its payload in the payload's place; as it is where it has none."""
    whole = block["body"]
    if "execution_payload" not in whole:
        return block
    kinds, inside = block_types(preset, fork).payload.fields, whole["execution_payload"]
    header = {name: value for name, value in inside.items() if name not in {"transactions", "withdrawals"}}
    header["transactions_root"] = kinds["transactions"].root(inside["transactions"])
    if "withdrawals" in inside:
        header["withdrawals_root"] = kinds["withdrawals"].root(inside["withdrawals"])
    return {**block, "body": {**whole, "execution_payload_header": header}}


def bid(preset: Preset, fork: str, content: Content) -> Body:
    """Return the message of a Gloas bid."""
    requests = block_types(preset, fork).requests
    return {
        "parent_block_hash": _made_up(content, "parent"),
        "parent_block_root": content.parent_root,
        "block_hash": _made_up(content, "block hash"),
        "prev_randao": _made_up(content, "mix"),
        "fee_recipient": content.fee_recipient,
        "gas_limit": content.gas_limit,
        "builder_index": content.builder,
        "slot": content.slot,
        "value": content.value,
        "execution_payment": 0,
        "blob_kzg_commitments": commitments(content),
        "execution_requests_root": requests.root(requests.default()),
    }


def envelope(preset: Preset, fork: str, content: Content, block_root: bytes) -> Body:
    """Return the message of the envelope that reveals the payload of a Gloas block."""
    types = block_types(preset, fork)
    return {
        "payload": payload(preset, fork, content),
        "execution_requests": types.requests.default(),
        "builder_index": content.builder,
        "beacon_block_root": block_root,
        "parent_beacon_block_root": content.parent_root,
    }


def commitments(content: Content) -> tuple[bytes, ...]:
    """Return the KZG commitments of a block's blobs."""
    return tuple([_point(content, "commitment", number) for number in range(content.blobs)])


def proofs(fork: str, content: Content) -> tuple[bytes, ...]:
    """Return the KZG proofs of a block's blobs: one for each blob, from Fulu on one for each of its cells."""
    count = content.blobs * (CELL_PROOFS if since(fork, "fulu") else 1)
    return (_point(content, "proof"),) * count


def blobs(content: Content) -> tuple[bytes, ...]:
    """Return a block's blobs: field elements below the modulus."""
    return tuple([(b"\0" + _made_up(content, f"blob {number}")[1:]) * 4096 for number in range(content.blobs)])


def versioned_hash(commitment: bytes) -> bytes:
    """Return the versioned hash by which the execution layer names a blob."""
    return b"\x01" + hashlib.sha256(commitment).digest()[1:]


def _made_up(content: Content, what: str, size: int = 32) -> bytes:
    return hashlib.shake_256(content.salt + what.encode()).digest(size)


def _point(content: Content, what: str, number: int = 0) -> bytes:
    return b"\x80" + _made_up(content, f"{what} {number}", 47)


def _transactions(content: Content) -> tuple[bytes, ...]:
    # Of 4 KiB at most each: about as many as a real block of that size has.
    whole, rest = divmod(content.transaction_bytes, 4096)
    pattern = _made_up(content, "transaction") * 128
    return (*((b"\x02" + pattern[1:],) * whole), *((b"\x02" + pattern[1:rest],) if rest else ()))


@cache
def _empty(fields: Container) -> Mapping[str, Any]:
    return {name: kind.default() for name, kind in fields.fields.items()}


@cache
def _empty_roots(fields: Container) -> Mapping[str, bytes]:
    return {name: kind.root(kind.default()) for name, kind in fields.fields.items()}


def _known_roots(fields: Container, made: Body) -> dict[str, bytes]:
    empty, roots = _empty(fields), _empty_roots(fields)
    return {name: roots[name] for name, value in made.items() if value == empty[name]}
