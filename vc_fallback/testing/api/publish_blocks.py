"""Publishing blocks, blinded blocks, and the envelopes of Gloas payloads."""

from dataclasses import replace

from vc_fallback.base.types import Root, root_hex
from vc_fallback.testing.api.call import ApiError, Call
from vc_fallback.testing.api.submissions import Item, Received, Sent, epoch_of, slot_problem
from vc_fallback.testing.containers.basic import Kind
from vc_fallback.testing.containers.blocks import block_types, signed


def _signed_contents(call: Call, fork: str) -> Kind:
    return block_types(call.chain.preset, fork).signed_contents


def _signed_blinded(call: Call, fork: str) -> Kind:
    return block_types(call.chain.preset, fork).signed_blinded


def _message(item: Item) -> Item:
    """Return the block in what is published, with its blobs or without."""
    message: Item = item.get("signed_block", item)["message"]
    return message


def _block_root(call: Call, fork: str, message: Item) -> Root:
    types = block_types(call.chain.preset, fork)
    kind = types.blinded if "execution_payload_header" in message["body"] else types.block
    return Root(kind.root(message))


def _block_identity(one: Received) -> object:
    return ("block", _block_root(one.call, one.fork, _message(one.value)))


def _block_problem(one: Received) -> str:
    message = _message(one.value)
    if one.call.known(message["parent_root"]) is None:
        return str(one.call.says("unknown parent", root=root_hex(message["parent_root"])))
    if ("proposal", message["slot"], message["proposer_index"]) in one.call.state.pool.known:
        return "another block of this proposer is known at this slot"
    return slot_problem(one, message["slot"])


def _take_block(one: Received) -> None:
    message = _message(one.value)
    one.call.state.pool.known["proposal", message["slot"], message["proposer_index"]] = True
    one.call.state.pool.saw(epoch_of(one.call, message["slot"]), message["proposer_index"])


def _blob_data_included(call: Call) -> bool:
    said = call.request.headers.get("eth-blob-data-included", "").lower()
    if said not in {"true", "false"}:
        raise ApiError(400, "missing Eth-Blob-Data-Included header")
    return said == "true"


def _envelope_kind(call: Call, fork: str) -> Kind:
    types = block_types(call.chain.preset, fork)
    return types.envelope_contents if _blob_data_included(call) else signed(types.envelope)


def _envelope(item: Item) -> Item:
    message: Item = item.get("signed_execution_payload_envelope", item)["message"]
    return message


def _envelope_identity(one: Received) -> object:
    return ("envelope", _envelope(one.value)["beacon_block_root"])


def _envelope_problem(one: Received) -> str:
    root = _envelope(one.value)["beacon_block_root"]
    if not _blob_data_included(one.call) and root not in one.call.state.pool.produced:
        return "no cached blobs and KZG proofs for this envelope: its block was not produced here"
    return ""


BLOCK = Sent(
    _signed_contents,
    many=False,
    ssz=True,
    versioned=True,
    block=True,
    identity=_block_identity,
    problem=_block_problem,
    take=_take_block,
)
BLINDED_BLOCK = replace(BLOCK, kind=_signed_blinded)
ENVELOPE = Sent(
    _envelope_kind,
    many=False,
    ssz=True,
    versioned=True,
    block=True,
    identity=_envelope_identity,
    problem=_envelope_problem,
)
