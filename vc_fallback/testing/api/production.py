"""Blocks that a simulated node makes on request, with their payloads, bids and envelopes."""

from dataclasses import replace
from typing import Any

from vc_fallback.testing import bodies
from vc_fallback.testing.api.call import ApiError, Call, Reply, get
from vc_fallback.testing.containers.basic import BYTES32, BYTES96, Kind
from vc_fallback.testing.containers.blocks import block_types
from vc_fallback.testing.containers.presets import since

_TRANSACTION, _OFFSET = 4096, 4
"""Bytes of each transaction, and of its place in the list."""


def _v2(call: Call) -> Reply:
    """The route before there were blinded blocks in its answer: always a block of the node's own."""
    slot, fork = _asked(call)
    if since(fork, "electra"):
        raise ApiError(400, "Use the v3 endpoint from Electra on")
    content = _content(call, slot, blinded=False)
    block = _block(call, fork, content)
    return Reply(value=_contents(call, fork, content, block), version=fork)


def _v3(call: Call) -> Reply:
    slot, fork = _asked(call)
    if since(fork, "gloas"):
        raise ApiError(400, "Use the v4 endpoint from Gloas on")
    proposal = call.state.proposal
    blinded = _from_builder(call) and since(fork, "bellatrix")
    content = _content(call, slot, blinded=blinded)
    block = _block(call, fork, content)
    value = _contents(call, fork, content, block)
    if blinded:
        types = block_types(call.chain.preset, fork)
        value = (types.blinded, bodies.blinded(call.chain.preset, fork, block))
    members: dict[str, object] = {"execution_payload_blinded": blinded}
    headers = {"Eth-Execution-Payload-Blinded": "true" if blinded else "false"}
    if proposal.execution_value is not None:
        members["execution_payload_value"] = headers["Eth-Execution-Payload-Value"] = str(proposal.execution_value)
    if proposal.consensus_value is not None:
        members["consensus_block_value"] = headers["Eth-Consensus-Block-Value"] = str(proposal.consensus_value)
    return Reply(value=value, version=fork, members=members, headers=headers)


def _v4(call: Call) -> Reply:
    slot, fork = _asked(call)
    if not since(fork, "gloas"):
        raise ApiError(400, "Use the v3 endpoint before Gloas")
    wanted = call.query("include_payload")
    if wanted not in {"true", "false"}:
        raise ApiError(400, "Invalid include_payload")
    proposal, types, preset = call.state.proposal, block_types(call.chain.preset, fork), call.chain.preset
    external = _from_builder(call)
    content = _content(call, slot, blinded=external)
    block = _block(call, fork, content)
    value: tuple[Kind, Any] = (types.block, block)
    included = False
    if not external:
        root = types.block.root(block)
        envelope = bodies.envelope(preset, fork, content, root)
        call.state.pool.produced[root] = {"slot": slot, "envelope": envelope}
        included = wanted == "true" and proposal.included
        if included:
            contents = {
                "block": block,
                "execution_payload_envelope": envelope,
                "kzg_proofs": bodies.proofs(fork, content),
                "blobs": bodies.blobs(content),
            }
            value = (types.contents, contents)
    members: dict[str, object] = {"execution_payload_included": included}
    headers = {"Eth-Execution-Payload-Included": "true" if included else "false"}
    if proposal.consensus_value is not None:
        members["consensus_block_value"] = headers["Eth-Consensus-Block-Value"] = str(proposal.consensus_value)
    return Reply(value=value, version=fork, members=members, headers=headers)


def _envelope(call: Call) -> Reply:
    slot, root = call.number("slot"), call.root("beacon_block_root")
    fork, found = call.fork(slot), call.state.pool.produced.get(root)
    # Nodes keep that of the current slot alone.
    if found is None or found["slot"] != slot or slot < call.state.slot:
        raise ApiError(404, "Execution payload envelope not available for slot")
    return Reply(value=(block_types(call.chain.preset, fork).envelope, found["envelope"]), version=fork)


def _bid(call: Call) -> Reply:
    slot, builder = call.number("slot"), call.number("builder_index")
    fork = call.fork(slot)
    if slot not in {call.state.slot, call.state.slot + 1} or not since(fork, "gloas"):
        raise ApiError(400, "Invalid slot: must be current slot or next slot")
    if builder not in call.state.builders:
        raise ApiError(404, "Execution payload bid not available for slot and builder")
    content = _content(call, slot, blinded=True, builder=builder)
    value = bodies.bid(call.chain.preset, fork, content)
    return Reply(value=(block_types(call.chain.preset, fork).bid, value), version=fork)


def _asked(call: Call) -> tuple[int, str]:
    """Return slot and fork of the block that is asked for, once everything about the request is right."""
    slot = call.number("slot")
    try:
        BYTES96.from_json(call.query("randao_reveal"))
        BYTES32.from_json(call.query("graffiti") or "0x" + "00" * 32)
    except ValueError:
        raise ApiError(400, "Invalid randao_reveal or graffiti") from None
    call.number("builder_boost_factor", default=0)
    call.verified()
    if slot > call.state.slot + 1:
        raise call.says("future", slot=slot)
    return slot, call.fork(slot)


def _from_builder(call: Call) -> bool:
    return call.state.proposal.blinded and call.number("builder_boost_factor", default=100) != 0


def _content(call: Call, slot: int, *, blinded: bool, builder: int | None = None) -> bodies.Content:
    state, chain, proposal = call.state, call.chain, call.state.proposal
    # Where the node has a block of that slot already, this one stands beside it.
    parent = chain.head_at(min(slot - 1, call.head.slot), call.head.branch)
    reveal, graffiti = call.query("randao_reveal"), call.query("graffiti")
    if builder is None:
        builder = min(state.builders, default=0) if blinded else bodies.SELF_BUILT
    made = bodies.Content(
        slot=slot,
        parent_root=parent.root,
        timestamp=int(chain.identity.genesis_time + slot * chain.identity.slot_duration),
        salt=chain.made_up("proposal", state.name, slot, parent.root, blinded, builder),
        randao_reveal=None if reveal is None else BYTES96.from_json(reveal),
        graffiti=bytes(32) if graffiti is None else BYTES32.from_json(graffiti),
        fee_recipient=state.pool.fee_recipients.get(_proposer(call, slot), state.fee_recipient),
        extra_data=state.name.encode()[:32],
        blobs=proposal.blobs if since(call.fork(slot), "deneb") else 0,
        builder=builder,
        value=proposal.execution_value // 10**9 if blinded and isinstance(proposal.execution_value, int) else 0,
    )
    if not proposal.size:
        return made
    fork, preset = call.fork(slot), chain.preset
    types = block_types(preset, fork)
    if since(fork, "gloas"):
        so_far = types.payload.encode(bodies.payload(preset, fork, made))
    else:
        so_far = types.block.encode(_block(call, fork, made))
    rest = max(0, proposal.size - len(so_far))
    return replace(made, transaction_bytes=rest * _TRANSACTION // (_TRANSACTION + _OFFSET))


def _block(call: Call, fork: str, content: bodies.Content) -> bodies.Body:
    chain = call.chain
    return {
        "slot": content.slot,
        "proposer_index": _proposer(call, content.slot),
        "parent_root": content.parent_root,
        "state_root": chain.made_up("state", content.salt),
        "body": bodies.body(chain.preset, fork, content),
    }


def _contents(call: Call, fork: str, content: bodies.Content, block: bodies.Body) -> tuple[Kind, Any]:
    types = block_types(call.chain.preset, fork)
    if not since(fork, "deneb"):
        return types.block, block
    value = {"block": block, "kzg_proofs": bodies.proofs(fork, content), "blobs": bodies.blobs(content)}
    return types.contents, value


def _proposer(call: Call, slot: int) -> int:
    epoch = slot // call.chain.identity.slots_per_epoch
    return call.chain.shuffling.proposer(slot, call.dependent_root(epoch))


ROUTES = (
    get("produceBlockV2", "/eth/v2/validator/blocks/{slot}", _v2, ssz=True),
    get("produceBlockV3", "/eth/v3/validator/blocks/{slot}", _v3, ssz=True),
    get("produceBlockV4", "/eth/v4/validator/blocks/{slot}", _v4, ssz=True),
    get(
        "getExecutionPayloadEnvelope",
        "/eth/v1/validator/execution_payload_envelopes/{slot}/{beacon_block_root}",
        _envelope,
        ssz=True,
    ),
    get("getExecutionPayloadBid", "/eth/v1/validator/execution_payload_bids/{slot}/{builder_index}", _bid, ssz=True),
)
