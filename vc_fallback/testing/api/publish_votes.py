"""Publishing attestations and their aggregates, sync committee messages, contributions, payload attestations."""

from dataclasses import replace

from vc_fallback.base.types import root_hex
from vc_fallback.testing.api.call import ApiError, Call
from vc_fallback.testing.api.submissions import Item, Received, Sent, epoch_of, slot_problem
from vc_fallback.testing.containers import operations
from vc_fallback.testing.containers.basic import Kind
from vc_fallback.testing.containers.presets import SYNC_SUBCOMMITTEES, since
from vc_fallback.testing.pool import Votes


def _attestation_kind(call: Call, fork: str) -> Kind:
    if since(fork, "electra"):
        return operations.SINGLE_ATTESTATION
    return operations.attestation(call.chain.preset, fork)


def _v1_kind(call: Call, fork: str) -> Kind:
    if since(fork, "electra"):
        raise ApiError(400, "Use the v2 endpoint from Electra on")
    return operations.attestation(call.chain.preset, fork)


def _committee_index(item: Item) -> int:
    index: int = item.get("committee_index", item["data"]["index"])
    return index


def _attestation_identity(one: Received) -> object:
    data = one.value["data"]
    who = one.value.get("attester_index", (data["slot"], data["index"], one.value.get("aggregation_bits")))
    return ("attestation", data["target"]["epoch"], who)


def _attestation_problem(one: Received) -> str:
    problem = _data_problem(one, one.value["data"])
    if problem:
        return problem
    committee = _committee(one.call, one.value["data"]["slot"], _committee_index(one.value))
    if "attester_index" in one.value:
        return "" if one.value["attester_index"] in committee else "AttesterNotInCommittee"
    bits = int.from_bytes(one.value["aggregation_bits"], "little")
    if bits.bit_length() - 1 != len(committee) or bits.bit_count() != 2:
        return "not one bit of the committee"
    return ""


def _take_attestation(one: Received) -> None:
    data, index, pool = one.value["data"], _committee_index(one.value), one.call.state.pool
    committee = _committee(one.call, data["slot"], index)
    if "attester_index" in one.value:
        length, seen = len(committee), [one.value["attester_index"]]
        bits = sum(1 << place for place, member in enumerate(committee) if member in seen)
    else:
        whole = int.from_bytes(one.value["aggregation_bits"], "little")
        length = whole.bit_length() - 1
        bits = whole ^ 1 << length
        seen = [member for place, member in enumerate(committee) if bits >> place & 1]
    key = (operations.ATTESTATION_DATA.root(data), index)
    if key not in pool.votes:
        pool.votes[key] = Votes(data, length)
    pool.votes[key].bits |= bits & (1 << pool.votes[key].length) - 1
    for validator in seen:
        pool.saw(data["target"]["epoch"], validator)


def _aggregate_kind(call: Call, fork: str) -> Kind:
    return operations.signed_aggregate(call.chain.preset, fork)


def _aggregate_v1_kind(call: Call, fork: str) -> Kind:
    _v1_kind(call, fork)
    return operations.signed_aggregate(call.chain.preset, fork)


def _aggregate_identity(one: Received) -> object:
    data = one.value["message"]["aggregate"]["data"]
    return ("aggregate", data["target"]["epoch"], one.value["message"]["aggregator_index"])


def _aggregate_problem(one: Received) -> str:
    return _data_problem(one, one.value["message"]["aggregate"]["data"])


def _take_aggregate(one: Received) -> None:
    message = one.value["message"]
    one.call.state.pool.saw(message["aggregate"]["data"]["target"]["epoch"], message["aggregator_index"])


def _sync_identity(one: Received) -> object:
    return ("sync message", one.value["slot"], one.value["validator_index"])


def _sync_problem(one: Received) -> str:
    if abs(one.value["slot"] - one.call.state.slot) > 1:
        return "the slot is not the current one"
    committee = one.call.chain.shuffling.sync_committee(epoch_of(one.call, one.value["slot"]))
    return "" if one.value["validator_index"] in committee else "UnknownValidatorIndex: not in the sync committee"


def _take_sync(one: Received) -> None:
    epoch, pool = epoch_of(one.call, one.value["slot"]), one.call.state.pool
    for number in range(SYNC_SUBCOMMITTEES):
        part = one.call.chain.shuffling.sync_subcommittee(epoch, number)
        bits = sum(1 << place for place, member in enumerate(part) if member == one.value["validator_index"])
        if bits:
            key = (one.value["slot"], one.value["beacon_block_root"], number)
            pool.sync_votes[key] = pool.sync_votes.get(key, 0) | bits
    pool.saw(epoch, one.value["validator_index"])


def _contribution_identity(one: Received) -> object:
    message = one.value["message"]
    contribution = message["contribution"]
    return ("contribution", contribution["slot"], message["aggregator_index"], contribution["subcommittee_index"])


def _contribution_problem(one: Received) -> str:
    contribution = one.value["message"]["contribution"]
    if contribution["subcommittee_index"] >= SYNC_SUBCOMMITTEES:
        return "InvalidSubcommittee"
    return "the slot is not the current one" if abs(contribution["slot"] - one.call.state.slot) > 1 else ""


def _payload_identity(one: Received) -> object:
    return ("payload attestation", one.value["data"]["slot"], one.value["validator_index"])


def _payload_problem(one: Received) -> str:
    slot = one.value["data"]["slot"]
    if slot != one.call.state.slot:
        return "the slot is not the current one"
    if one.call.known(one.value["data"]["beacon_block_root"]) is None:
        return "unknown block"
    members = one.call.chain.shuffling.payload_committee(slot, one.call.dependent_root(epoch_of(one.call, slot)))
    return "" if one.value["validator_index"] in members else "not in the payload timeliness committee"


def _take_payload(one: Received) -> None:
    one.call.state.pool.saw(epoch_of(one.call, one.value["data"]["slot"]), one.value["validator_index"])


def _data_problem(one: Received, data: Item) -> str:
    call, slot, epoch = one.call, data["slot"], epoch_of(one.call, data["slot"])
    if data["target"]["epoch"] != epoch:
        return "InvalidTargetEpoch"
    if epoch < call.epoch - 1:
        return "PastSlot"
    if call.known(data["beacon_block_root"]) is None:
        return str(call.says("unknown head", root=root_hex(data["beacon_block_root"])))
    return slot_problem(one, slot)


def _committee(call: Call, slot: int, index: int) -> tuple[int, ...]:
    epoch = epoch_of(call, slot)
    committees = call.chain.shuffling.committees(epoch, call.dependent_root(epoch))
    found = committees[slot - call.first_slot(epoch)]
    return tuple(found[index]) if index < len(found) else ()


ATTESTATIONS = Sent(
    _attestation_kind,
    ssz=True,
    versioned=True,
    identity=_attestation_identity,
    problem=_attestation_problem,
    take=_take_attestation,
)
AGGREGATES = Sent(
    _aggregate_kind,
    ssz=True,
    versioned=True,
    identity=_aggregate_identity,
    problem=_aggregate_problem,
    take=_take_aggregate,
)
SYNC_MESSAGES = Sent(operations.SYNC_MESSAGE, identity=_sync_identity, problem=_sync_problem, take=_take_sync)
CONTRIBUTIONS = Sent(
    lambda call, _: operations.signed_contribution(call.chain.preset),
    identity=_contribution_identity,
    problem=_contribution_problem,
)
PAYLOAD_ATTESTATIONS = Sent(
    operations.PAYLOAD_ATTESTATION_MESSAGE,
    ssz=True,
    versioned=True,
    identity=_payload_identity,
    problem=_payload_problem,
    take=_take_payload,
)
ATTESTATIONS_V1 = replace(ATTESTATIONS, kind=_v1_kind, versioned=False)
AGGREGATES_V1 = replace(AGGREGATES, kind=_aggregate_v1_kind, versioned=False)
