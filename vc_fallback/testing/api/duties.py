"""Who is on duty, with the roots it depends on; and who was seen."""

from vc_fallback.base.types import root_hex
from vc_fallback.testing.api.call import ApiError, Call, Reply, get, post
from vc_fallback.testing.api.states import read_json
from vc_fallback.testing.containers.presets import since


def _attester(call: Call) -> Reply:
    epoch = _epoch(call)
    wanted = set(_indices(call))
    root = call.dependent_root(epoch)
    slots = call.chain.shuffling.committees(epoch, root)
    data = [
        {
            "pubkey": _pubkey(call, one),
            "validator_index": str(one),
            "committee_index": str(index),
            "committee_length": str(len(committee)),
            "committees_at_slot": str(len(committees)),
            "validator_committee_index": str(place),
            "slot": str(call.first_slot(epoch) + offset),
        }
        for offset, committees in enumerate(slots)
        for index, committee in enumerate(committees)
        for place, one in enumerate(committee)
        if one in wanted
    ]
    return Reply(data, members=_members(call, root_hex(root)))


def _proposer(call: Call, *, lookahead: int) -> Reply:
    epoch = _epoch(call)
    # The two versions of the route name different roots for the same duties (Q14b).
    named, root = call.dependent_root(epoch, lookahead=lookahead), call.dependent_root(epoch)
    first = call.first_slot(epoch)
    proposers = [
        (slot, call.chain.shuffling.proposer(slot, root))
        for slot in range(first, first + call.chain.identity.slots_per_epoch)
    ]
    data = [{"pubkey": _pubkey(call, one), "validator_index": str(one), "slot": str(slot)} for slot, one in proposers]
    return Reply(data, members=_members(call, root_hex(named)))


def _proposer_v1(call: Call) -> Reply:
    return _proposer(call, lookahead=0)


def _proposer_v2(call: Call) -> Reply:
    return _proposer(call, lookahead=1)


def _sync(call: Call) -> Reply:
    epoch, period = call.number("epoch"), call.chain.preset.epochs_per_sync_committee_period
    call.synced()
    if epoch // period > call.epoch // period + 1:
        raise ApiError(400, "Epoch is beyond the next sync committee period")
    if not since(call.fork(call.first_slot(epoch)), "altair"):
        raise ApiError(400, "There are no sync committees before Altair")
    committee = call.chain.shuffling.sync_committee(epoch)
    data = []
    for one in dict.fromkeys(_indices(call)):
        places = [str(place) for place, member in enumerate(committee) if member == one]
        if places:
            data.append(
                {
                    "pubkey": _pubkey(call, one),
                    "validator_index": str(one),
                    "validator_sync_committee_indices": places,
                }
            )
    return Reply(data, members=_members(call))


def _payload(call: Call) -> Reply:
    epoch = _epoch(call)
    first = call.first_slot(epoch)
    if not since(call.fork(first), "gloas"):
        raise ApiError(400, "There are no payload timeliness committees before Gloas")
    wanted, root = set(_indices(call)), call.dependent_root(epoch)
    data = [
        {"pubkey": _pubkey(call, one), "validator_index": str(one), "slot": str(slot)}
        for slot in range(first, first + call.chain.identity.slots_per_epoch)
        for one in dict.fromkeys(call.chain.shuffling.payload_committee(slot, root))
        if one in wanted
    ]
    return Reply(data, members=_members(call, root_hex(root)))


def _liveness(call: Call) -> Reply:
    epoch = call.number("epoch")
    call.synced()
    if abs(epoch - call.epoch) > 1:
        raise ApiError(400, "Epoch is neither the current one nor beside it")
    seen = call.state.pool.seen.get(epoch, ())
    return Reply([{"index": str(one), "is_live": one in seen} for one in _indices(call)])


def _epoch(call: Call) -> int:
    epoch = call.number("epoch")
    call.synced()
    if epoch > call.epoch + 1:
        raise ApiError(400, "Cannot get duties for epoch more than one ahead")
    return epoch


def _indices(call: Call) -> list[int]:
    written = read_json(call)
    if not isinstance(written, list):
        raise ApiError(400, "not a list of validator indices")
    found = []
    for one in written:
        if not isinstance(one, str) or not (one.isascii() and one.isdecimal()) or int(one) >= 2**64:
            raise ApiError(400, "Invalid validator index")
        found.append(int(one))
    return found


def _pubkey(call: Call, index: int) -> str:
    return root_hex(call.chain.registry[index].pubkey)


def _members(call: Call, dependent_root: str | None = None) -> dict[str, object]:
    members: dict[str, object] = {} if dependent_root is None else {"dependent_root": dependent_root}
    return {**members, "execution_optimistic": call.state.optimistic}


ROUTES = (
    post("getAttesterDuties", "/eth/v1/validator/duties/attester/{epoch}", _attester),
    get("getProposerDuties", "/eth/v1/validator/duties/proposer/{epoch}", _proposer_v1),
    get("getProposerDutiesV2", "/eth/v2/validator/duties/proposer/{epoch}", _proposer_v2),
    post("getSyncCommitteeDuties", "/eth/v1/validator/duties/sync/{epoch}", _sync),
    post("getPtcDuties", "/eth/v1/validator/duties/ptc/{epoch}", _payload),
    post("getLiveness", "/eth/v1/validator/liveness/{epoch}", _liveness),
)
