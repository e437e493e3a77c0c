"""What validators sign beside blocks: attestation data, aggregates, contributions, payload attestation data."""

from vc_fallback.base.types import Slot, root_hex
from vc_fallback.testing.api.call import ApiError, Call, Reply, get
from vc_fallback.testing.containers import operations
from vc_fallback.testing.containers.presets import SYNC_SUBCOMMITTEES, since
from vc_fallback.testing.pool import Votes


def _attestation_data(call: Call) -> Reply:
    slot, state, chain = call.number("slot"), call.state, call.chain
    index = call.number("committee_index", default=0)
    if slot > state.slot:
        raise call.says("future", slot=slot)
    call.verified()
    head = state.head if state.head.slot <= slot else chain.head_at(slot, state.head.branch)
    epoch = chain.identity.epoch_of(Slot(slot))
    first, fork = call.first_slot(epoch), call.fork(slot)
    if since(fork, "gloas"):
        # The index says whether the payload of an earlier slot's block is there.
        index = int(head.slot < slot and state.has_payload(head))
    elif since(fork, "electra"):
        index = 0
    source = chain.checkpoint(epoch - 1, head.branch)
    target = chain.head_at(first, head.branch) if head.slot >= first else head
    data = {
        "slot": slot,
        "index": index,
        "beacon_block_root": head.root,
        "source": {"epoch": source[0], "root": source[1]},
        "target": {"epoch": epoch, "root": target.root},
    }
    return Reply(value=(operations.ATTESTATION_DATA, data))


def _aggregate(call: Call) -> Reply:
    root, slot, index = call.root("attestation_data_root"), call.number("slot"), call.number("committee_index")
    return _aggregated(call, slot, root, index, call.state.pool.votes.get((root, index)))


def _aggregate_v1(call: Call) -> Reply:
    root, slot = call.root("attestation_data_root"), call.number("slot")
    if since(call.fork(slot), "electra"):
        raise ApiError(400, "Use the v2 endpoint from Electra on")
    # Before there were committee bits, the data's own index told the committee.
    found = [votes for (known, _), votes in call.state.pool.votes.items() if known == root]
    return _aggregated(call, slot, root, 0, found[0] if found else None)


def _aggregated(call: Call, slot: int, root: bytes, index: int, votes: Votes | None) -> Reply:
    if votes is None or votes.data["slot"] != slot:
        raise call.says("no aggregate", slot=slot, root=root_hex(root))
    call.verified()
    fork = call.fork(slot)
    value = {
        "aggregation_bits": _bytes(votes.bits | 1 << votes.length, votes.length + 1),
        "data": votes.data,
        "signature": call.chain.made_up("aggregate", root, votes.bits, size=96),
    }
    if since(fork, "electra"):
        value["committee_bits"] = _bytes(1 << index, call.chain.preset.max_committees_per_slot)
    return Reply(value=(operations.attestation(call.chain.preset, fork), value), version=fork)


def _contribution(call: Call) -> Reply:
    slot, number, root = call.number("slot"), call.number("subcommittee_index"), call.root("beacon_block_root")
    if number >= SYNC_SUBCOMMITTEES:
        raise ApiError(400, "Invalid subcommittee_index")
    call.verified()
    bits = call.state.pool.sync_votes.get((slot, root, number))
    if bits is None:
        raise call.says("no contribution")
    value = {
        "slot": slot,
        "beacon_block_root": root,
        "subcommittee_index": number,
        "aggregation_bits": _bytes(bits, call.chain.preset.sync_committee_size // SYNC_SUBCOMMITTEES),
        "signature": call.chain.made_up("contribution", root, bits, size=96),
    }
    # The API has it as JSON alone.
    return Reply(operations.contribution(call.chain.preset).to_json(value))


def _payload_attestation_data(call: Call) -> Reply:
    slot, state = call.number("slot"), call.state
    fork = call.fork(slot)
    if not since(fork, "gloas"):
        raise ApiError(400, "There are no payload attestations before Gloas")
    call.synced()
    block = call.chain.block_at(slot, call.head.branch) if slot <= call.head.slot else None
    if block is None:
        return Reply(status=204, bare=True, version=fork)
    there = state.has_payload(block)
    value = {
        "beacon_block_root": block.root,
        "slot": slot,
        "payload_present": there,
        "blob_data_available": there,
    }
    return Reply(value=(operations.PAYLOAD_ATTESTATION_DATA, value), version=fork)


def _bytes(bits: int, count: int) -> bytes:
    return bits.to_bytes((count + 7) // 8, "little")


ROUTES = (
    get("produceAttestationData", "/eth/v1/validator/attestation_data", _attestation_data, ssz=True),
    get("getAggregatedAttestationV2", "/eth/v2/validator/aggregate_attestation", _aggregate, ssz=True),
    get("getAggregatedAttestation", "/eth/v1/validator/aggregate_attestation", _aggregate_v1, ssz=True),
    get("produceSyncCommitteeContribution", "/eth/v1/validator/sync_committee_contribution", _contribution),
    get(
        "producePayloadAttestationData",
        "/eth/v1/validator/payload_attestation_data",
        _payload_attestation_data,
        ssz=True,
    ),
)
