"""Blocks of every fork: whole, blinded, signed, with their blobs, and the payload envelopes of Gloas."""

from dataclasses import dataclass
from functools import cache

from vc_fallback.testing.containers import operations
from vc_fallback.testing.containers.basic import (
    BYTES20,
    BYTES32,
    BYTES48,
    BYTES96,
    UINT64,
    UINT256,
    Bits,
    ByteList,
    Bytes,
)
from vc_fallback.testing.containers.composite import Container, List
from vc_fallback.testing.containers.presets import Preset, since

BLOB_SIZE = 131_072
"""Bytes of a blob: 4,096 field elements of 32 bytes."""

CELL_PROOFS = 128
"""KZG proofs for each blob from Fulu on: one for each column of the extended blob."""

_ETH1_DATA = Container(deposit_root=BYTES32, deposit_count=UINT64, block_hash=BYTES32)
_TRANSACTIONS = List(ByteList(2**30), 2**20)
_COMMITMENTS = List(BYTES48, 4096)
_REQUESTS = Container(
    deposits=List(
        Container(pubkey=BYTES48, withdrawal_credentials=BYTES32, amount=UINT64, signature=BYTES96, index=UINT64),
        8192,
    ),
    withdrawals=List(Container(source_address=BYTES20, validator_pubkey=BYTES48, amount=UINT64), 16),
    consolidations=List(Container(source_address=BYTES20, source_pubkey=BYTES48, target_pubkey=BYTES48), 2),
)
BLOBS = List(Bytes(BLOB_SIZE), 4096)
_BID = Container(
    parent_block_hash=BYTES32,
    parent_block_root=BYTES32,
    block_hash=BYTES32,
    prev_randao=BYTES32,
    fee_recipient=BYTES20,
    gas_limit=UINT64,
    builder_index=UINT64,
    slot=UINT64,
    value=UINT64,
    execution_payment=UINT64,
    blob_kzg_commitments=_COMMITMENTS,
    execution_requests_root=BYTES32,
)


@dataclass(frozen=True, slots=True)
class BlockTypes:
    """The types of one fork. What a fork has not got is as before it: before Bellatrix nothing is blinded, before Deneb
    contents are the block alone.

    :param payload: from Bellatrix on; of blocks until Fulu, of the envelope in Gloas.
    :param contents: what a node produces and is sent to publish, `signed_contents`, where the payload comes along.
    """

    block: Container
    body: Container
    blinded: Container
    payload: Container
    payload_header: Container
    requests: Container
    contents: Container
    signed_contents: Container
    bid: Container
    envelope: Container
    envelope_contents: Container

    @property
    def signed(self) -> Container:
        """`SignedBeaconBlock`."""
        return signed(self.block)

    @property
    def signed_blinded(self) -> Container:
        """`SignedBlindedBeaconBlock`."""
        return signed(self.blinded)


def signed(message: Container) -> Container:
    """Return a container with its signature."""
    return Container(message=message, signature=BYTES96)


@cache
def block_types(preset: Preset, fork: str) -> BlockTypes:
    """Return the types of a fork."""
    payload = _payload(preset, fork)
    header = _payload_header(payload)
    body = _body(preset, fork, payload)
    blinded = body
    if "execution_payload" in body.fields:
        fields = {
            ("execution_payload_header" if name == "execution_payload" else name): kind
            for name, kind in body.fields.items()
        }
        blinded = Container(**{**fields, "execution_payload_header": header})
    block = _block(body)
    envelope = Container(
        payload=payload,
        execution_requests=_REQUESTS,
        builder_index=UINT64,
        beacon_block_root=BYTES32,
        parent_beacon_block_root=BYTES32,
    )
    proofs = List(BYTES48, 2**25 if since(fork, "fulu") else 4096)
    contents, signed_contents = block, signed(block)
    if since(fork, "gloas"):
        contents = Container(block=block, execution_payload_envelope=envelope, kzg_proofs=proofs, blobs=BLOBS)
    elif since(fork, "deneb"):
        contents = Container(block=block, kzg_proofs=proofs, blobs=BLOBS)
        signed_contents = Container(signed_block=signed(block), kzg_proofs=proofs, blobs=BLOBS)
    return BlockTypes(
        block=block,
        body=body,
        blinded=_block(blinded),
        payload=payload,
        payload_header=header,
        requests=_REQUESTS,
        contents=contents,
        signed_contents=signed_contents,
        bid=_BID,
        envelope=envelope,
        envelope_contents=Container(signed_execution_payload_envelope=signed(envelope), kzg_proofs=proofs, blobs=BLOBS),
    )


def _block(body: Container) -> Container:
    return Container(slot=UINT64, proposer_index=UINT64, parent_root=BYTES32, state_root=BYTES32, body=body)


def _body(preset: Preset, fork: str, payload: Container) -> Container:
    electra = since(fork, "electra")
    body = Container(
        randao_reveal=BYTES96,
        eth1_data=_ETH1_DATA,
        graffiti=BYTES32,
        proposer_slashings=List(operations.PROPOSER_SLASHING, 16),
        attester_slashings=List(operations.attester_slashing(preset, fork), 1 if electra else 2),
        attestations=List(operations.attestation(preset, fork), 8 if electra else 128),
        deposits=List(operations.DEPOSIT, 16),
        voluntary_exits=List(operations.SIGNED_EXIT, 16),
    )
    if since(fork, "altair"):
        bits = Bits(preset.sync_committee_size)
        aggregate = Container(sync_committee_bits=bits, sync_committee_signature=BYTES96)
        body = body.with_fields(sync_aggregate=aggregate)
    if since(fork, "bellatrix") and not since(fork, "gloas"):
        body = body.with_fields(execution_payload=payload)
    if since(fork, "capella"):
        body = body.with_fields(bls_to_execution_changes=List(operations.SIGNED_BLS_CHANGE, 16))
    if since(fork, "gloas"):
        return body.with_fields(
            signed_execution_payload_bid=signed(_BID),
            payload_attestations=List(operations.payload_attestation(preset), 4),
            parent_execution_requests=_REQUESTS,
        )
    if since(fork, "deneb"):
        body = body.with_fields(blob_kzg_commitments=_COMMITMENTS)
    if electra:
        body = body.with_fields(execution_requests=_REQUESTS)
    return body


def _payload(preset: Preset, fork: str) -> Container:
    payload = Container(
        parent_hash=BYTES32,
        fee_recipient=BYTES20,
        state_root=BYTES32,
        receipts_root=BYTES32,
        logs_bloom=Bytes(256),
        prev_randao=BYTES32,
        block_number=UINT64,
        gas_limit=UINT64,
        gas_used=UINT64,
        timestamp=UINT64,
        extra_data=ByteList(32),
        base_fee_per_gas=UINT256,
        block_hash=BYTES32,
        transactions=_TRANSACTIONS,
    )
    if since(fork, "capella"):
        withdrawal = Container(index=UINT64, validator_index=UINT64, address=BYTES20, amount=UINT64)
        payload = payload.with_fields(withdrawals=List(withdrawal, preset.max_withdrawals_per_payload))
    if since(fork, "deneb"):
        payload = payload.with_fields(blob_gas_used=UINT64, excess_blob_gas=UINT64)
    if since(fork, "gloas"):
        payload = payload.with_fields(block_access_list=ByteList(2**30), slot_number=UINT64)
    return payload


def _payload_header(payload: Container) -> Container:
    """Return the header of a payload: each list by its root."""
    lists = {"transactions": "transactions_root", "withdrawals": "withdrawals_root"}
    fields = {lists.get(name, name): BYTES32 if name in lists else kind for name, kind in payload.fields.items()}
    return Container(**fields)
