"""What is signed and has no class in the library: aggregates and blocks of Capella, read from JSON, hashed by `ssz`.

Newer forks differ. From Deneb on a block is published with its blobs; from Electra on an attester publishes a
`SingleAttestation`, aggregates have `committee_bits`, and bodies execution requests; in Gloas the payload is apart.
"""
# mypy: disable-error-code="attr-defined"
# What the `ssz` library exports it only imports, to a type checker.

import json
from typing import Any

from ssz import Bitlist, Bitvector, ByteList, ByteVector, List, SSZException, Vector
from ssz.sedes import bytes4, bytes32, bytes48, bytes96, uint64, uint256
from ssz.sedes.container import Container
from ssz.sedes.uint import UInt

import vc_fallback as vf


class Fields(Container):
    """A container that knows the names of its fields, of which several may share a kind. Its values are tuples."""

    def __init__(self, kinds: dict[str, Any]) -> None:
        self.fields = {name: kind for names, kind in kinds.items() for name in names.split()}
        super().__init__([*self.fields.values()])


def _signed(message: Any) -> Fields:  # noqa: ANN401 - kinds and values of `ssz`
    return Fields({"message": message, "signature": bytes96})


NUMBER, _ADDRESS = uint64, ByteVector(20)
FORK_DATA = Fields({"current_version": bytes4, "genesis_validators_root": bytes32})
SIGNING_DATA = Fields({"object_root domain": bytes32})
SYNC_SELECTION = Fields({"slot subcommittee_index": uint64})
_CHECKPOINT = Fields({"epoch": uint64, "root": bytes32})
_DATA = Fields({"slot index": uint64, "beacon_block_root": bytes32, "source target": _CHECKPOINT})
ATTESTATION = Fields({"aggregation_bits": Bitlist(2048), "data": _DATA, "signature": bytes96})
AGGREGATE = Fields({"aggregator_index": uint64, "aggregate": ATTESTATION, "selection_proof": bytes96})
_HEADER = _signed(Fields({"slot proposer_index": uint64, "parent_root state_root body_root": bytes32}))
_VOTES = Fields({"attesting_indices": List(uint64, 2048), "data": _DATA, "signature": bytes96})
_DEPOSIT = Fields({"pubkey": bytes48, "withdrawal_credentials": bytes32, "amount": uint64, "signature": bytes96})
_CHANGE = Fields({"validator_index": uint64, "from_bls_pubkey": bytes48, "to_execution_address": _ADDRESS})
_WITHDRAWAL = Fields({"index validator_index": uint64, "address": _ADDRESS, "amount": uint64})


def block(preset: str) -> Fields:
    """Return the kind of blocks; two of its limits are those of the preset, `minimal` or another one."""
    members, withdrawals = (32, 4) if preset == "minimal" else (512, 16)
    payload = {
        "parent_hash": bytes32,
        "fee_recipient": _ADDRESS,
        "state_root receipts_root": bytes32,
        "logs_bloom": ByteVector(256),
        "prev_randao": bytes32,
        "block_number gas_limit gas_used timestamp": uint64,
        "extra_data": ByteList(32),
        "base_fee_per_gas": uint256,
        "block_hash": bytes32,
        "transactions": List(ByteList(2**30), 2**20),
        "withdrawals": List(_WITHDRAWAL, withdrawals),
    }
    body = {
        "randao_reveal": bytes96,
        "eth1_data": Fields({"deposit_root": bytes32, "deposit_count": uint64, "block_hash": bytes32}),
        "graffiti": bytes32,
        "proposer_slashings": List(Fields({"signed_header_1 signed_header_2": _HEADER}), 16),
        "attester_slashings": List(Fields({"attestation_1 attestation_2": _VOTES}), 2),
        "attestations": List(ATTESTATION, 128),
        "deposits": List(Fields({"proof": Vector(bytes32, 33), "data": _DEPOSIT}), 16),
        "voluntary_exits": List(_signed(Fields({"epoch validator_index": uint64})), 16),
        "sync_aggregate": Fields({"sync_committee_bits": Bitvector(members), "sync_committee_signature": bytes96}),
        "execution_payload": Fields(payload),
        "bls_to_execution_changes": List(_signed(_CHANGE), 16),
    }
    return Fields({"slot proposer_index": uint64, "parent_root state_root": bytes32, "body": Fields(body)})


def root(kind: Any, value: Any) -> vf.Root:  # noqa: ANN401 - likewise
    """Return the hash tree root of a value."""
    return vf.Root(kind.get_hash_tree_root(value))


def read(kind: Any, text: bytes) -> Any:  # noqa: ANN401 - likewise
    """Read a value of a kind from JSON as the Beacon API has it; raises `ValueError` for anything else."""
    try:
        return _value(kind, json.loads(text))
    except (SSZException, AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"not as this example knows it ({type(error).__name__})") from error


def _value(kind: Any, written: Any) -> Any:  # noqa: ANN401 - likewise
    if isinstance(kind, Fields):
        return tuple(_value(field, written[name]) for name, field in kind.fields.items())
    if isinstance(written, list):
        return tuple(_value(kind.element_sedes, one) for one in written)
    # Bits and bytes are written as the digits of their serialisation.
    return int(written) if isinstance(kind, UInt) else kind.deserialize(bytes.fromhex(written.removeprefix("0x")))


def signed(message: bytes, signature: bytes) -> vf.Encodings:
    """Return the JSON of a message with its signature, to be published; not a byte of the message is changed."""
    return vf.Encodings(json=b'{"message":%b,"signature":"0x%b"}' % (message, signature.hex().encode()))
