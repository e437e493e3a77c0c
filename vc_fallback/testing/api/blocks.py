"""Headers, blocks, blobs and payload envelopes of the simulated chain."""

from typing import Any

from vc_fallback.base.types import root_hex
from vc_fallback.testing import bodies
from vc_fallback.testing.api.call import ApiError, Call, Reply, get
from vc_fallback.testing.blocks import SimulatedBlock
from vc_fallback.testing.containers.blocks import BLOBS, block_types, signed
from vc_fallback.testing.containers.presets import since


def _header(call: Call) -> Reply:
    block = call.find(call.place["block_id"])
    return Reply(_listed(call, block), members=call.about(block))


def _headers(call: Call) -> Reply:
    head, chain = call.head, call.chain
    parent = None if call.query("parent_root") is None else call.root("parent_root")
    slot = head.slot if call.query("slot") is None and parent is None else call.number("slot", default=-1)
    if slot > head.slot:
        found = []
    elif slot >= 0:
        at = chain.block_at(slot, head.branch)
        found = [] if at is None else [at]
    else:
        found = [block for block in chain.children(parent or b"") if block.slot <= head.slot]
    if parent is not None:
        found = [block for block in found if block.parent_root == parent]
    about = call.about(found[0] if found else head)
    return Reply([_listed(call, block) for block in found], members=about)


def _root(call: Call) -> Reply:
    block = call.find(call.place["block_id"])
    return Reply({"root": root_hex(block.root)}, members=call.about(block))


def _block(call: Call) -> Reply:
    block = call.find(call.place["block_id"])
    fork = call.fork(block.slot)
    kind = block_types(call.chain.preset, fork).signed
    return Reply(value=(kind, _signed(call, block)), version=fork, members=call.about(block))


def _blinded_block(call: Call) -> Reply:
    block = call.find(call.place["block_id"])
    fork = call.fork(block.slot)
    value = _signed(call, block)
    value["message"] = bodies.blinded(call.chain.preset, fork, value["message"])
    kind = block_types(call.chain.preset, fork).signed_blinded
    return Reply(value=(kind, value), version=fork, members=call.about(block))


def _blobs(call: Call) -> Reply:
    block = call.find(call.place["block_id"])
    content = _content(call, block) if since(call.fork(block.slot), "deneb") else None
    if content is None:
        return Reply(value=(BLOBS, ()), members=call.about(block))
    wanted = {name.lower() for name in call.listed("versioned_hashes")}
    kept = tuple(
        blob
        for blob, commitment in zip(bodies.blobs(content), bodies.commitments(content), strict=True)
        if not wanted or root_hex(bodies.versioned_hash(commitment)) in wanted
    )
    return Reply(value=(BLOBS, kept), members=call.about(block))


def _envelope(call: Call) -> Reply:
    block = call.find(call.place["block_id"])
    fork, preset = call.fork(block.slot), call.chain.preset
    if not since(fork, "gloas") or not call.state.has_payload(block):
        raise ApiError(404, "Execution payload envelope not found")
    message = bodies.envelope(preset, fork, _content(call, block), block.root)
    kind = signed(block_types(preset, fork).envelope)
    value = {"message": message, "signature": bodies.INFINITY}
    return Reply(value=(kind, value), version=fork, members=call.about(block))


def _content(call: Call, block: SimulatedBlock) -> bodies.Content:
    return call.chain.content(block.slot, block.parent_root, block.branch)


def _signed(call: Call, block: SimulatedBlock) -> dict[str, Any]:
    message = {
        "slot": block.slot,
        "proposer_index": block.proposer_index,
        "parent_root": block.parent_root,
        "state_root": block.state_root,
        "body": call.chain.body(block),
    }
    return {"message": message, "signature": bytes(96)}


def _listed(call: Call, block: SimulatedBlock) -> dict[str, object]:
    message = {
        "slot": str(block.slot),
        "proposer_index": str(block.proposer_index),
        "parent_root": root_hex(block.parent_root),
        "state_root": root_hex(block.state_root),
        "body_root": root_hex(block.body_root),
    }
    canonical = call.chain.head_at(block.slot, call.head.branch).root == block.root
    header = {"message": message, "signature": root_hex(bytes(96))}
    return {"root": root_hex(block.root), "canonical": canonical, "header": header}


ROUTES = (
    get("getBlockHeader", "/eth/v1/beacon/headers/{block_id}", _header),
    get("getBlockHeaders", "/eth/v1/beacon/headers", _headers),
    get("getBlockRoot", "/eth/v1/beacon/blocks/{block_id}/root", _root),
    get("getBlockV2", "/eth/v2/beacon/blocks/{block_id}", _block, ssz=True),
    get("getBlindedBlock", "/eth/v1/beacon/blinded_blocks/{block_id}", _blinded_block, ssz=True),
    get("getBlobs", "/eth/v1/beacon/blobs/{block_id}", _blobs, ssz=True),
    get(
        "getSignedExecutionPayloadEnvelope",
        "/eth/v1/beacon/execution_payload_envelopes/{block_id}",
        _envelope,
        ssz=True,
    ),
)
