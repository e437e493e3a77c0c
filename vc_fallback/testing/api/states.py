"""States of the simulated chain: forks, finality, validators, committees."""

import json

from vc_fallback.base.types import Epoch, root_hex
from vc_fallback.testing.api.call import ApiError, Call, Reply, get, post
from vc_fallback.testing.blocks import SimulatedBlock
from vc_fallback.testing.containers.operations import BALANCES
from vc_fallback.testing.containers.presets import SYNC_SUBCOMMITTEES, since
from vc_fallback.testing.events import finalized, justified
from vc_fallback.testing.registry import GWEI, STATUSES, SimulatedValidator

_GROUPS = ("active", "pending", "exited", "withdrawal")
_MOST_IDS = 64


def checkpoint(found: tuple[int, bytes]) -> dict[str, object]:
    """Return a checkpoint as the API writes it."""
    return {"epoch": str(found[0]), "root": root_hex(found[1])}


def _state(call: Call) -> SimulatedBlock:
    return call.find_state(call.place["state_id"])


def _root(call: Call) -> Reply:
    block = _state(call)
    return Reply({"root": root_hex(block.state_root)}, members=call.about(block))


def _fork(call: Call) -> Reply:
    block = _state(call)
    forks = [fork for fork in call.chain.identity.forks if fork.epoch <= _epoch(call, block)]
    held, before = forks[-1], forks[-2] if len(forks) > 1 else forks[-1]
    data = {
        "previous_version": root_hex(before.version),
        "current_version": root_hex(held.version),
        "epoch": str(held.epoch),
    }
    return Reply(data, members=call.about(block))


def _finality(call: Call) -> Reply:
    block, chain = _state(call), call.chain
    data = {
        "previous_justified": checkpoint(chain.checkpoint(_epoch(call, block) - 2, block.branch)),
        "current_justified": checkpoint(justified(chain, block)),
        "finalized": checkpoint(finalized(chain, block)),
    }
    return Reply(data, members=call.about(block))


def _validators(call: Call) -> Reply:
    block = _state(call)
    ids, statuses = call.listed("id"), call.listed("status")
    if len(ids) > _MOST_IDS:
        raise ApiError(414, "Too many validator IDs in request")
    return _listed(call, block, ids, statuses)


def _post_validators(call: Call) -> Reply:
    block = _state(call)
    body = read_json(call)
    if not isinstance(body, dict):
        raise ApiError(400, "not an object")
    return _listed(call, block, _texts(body.get("ids")), _texts(body.get("statuses")))


def _listed(call: Call, block: SimulatedBlock, ids: list[str], statuses: list[str]) -> Reply:
    if any(status not in (*STATUSES, *_GROUPS) for status in statuses):
        raise ApiError(400, "Invalid validator status")
    epoch = _epoch(call, block)
    data = [
        _validator(one, epoch)
        for one in _named(call, ids)
        if not statuses or (status := one.status(epoch)) in statuses or status.partition("_")[0] in statuses
    ]
    return Reply(data, members=call.about(block))


def _one_validator(call: Call) -> Reply:
    block = _state(call)
    found = _named(call, [call.place["validator_id"]])
    if not found:
        raise ApiError(404, "Validator not found")
    return Reply(_validator(found[0], _epoch(call, block)), members=call.about(block))


def _balances(call: Call) -> Reply:
    block, ids = _state(call), call.listed("id")
    if len(ids) > _MOST_IDS:
        raise ApiError(414, "Too many validator IDs in request")
    return _balances_of(call, block, ids)


def _post_balances(call: Call) -> Reply:
    return _balances_of(call, _state(call), _texts(read_json(call) if call.request.body else None))


def _balances_of(call: Call, block: SimulatedBlock, ids: list[str]) -> Reply:
    epoch = _epoch(call, block)
    found = tuple({"index": one.index, "balance": _balance(one, epoch)} for one in _named(call, ids))
    return Reply(value=(BALANCES, found), members=call.about(block))


def _committees(call: Call) -> Reply:
    block, chain = _state(call), call.chain
    epoch = call.number("epoch", default=_epoch(call, block))
    if epoch > _epoch(call, block) + 1:
        raise ApiError(400, "Epoch is too far in the future")
    per_epoch = chain.identity.slots_per_epoch
    slot, index = call.number("slot", default=-1), call.number("index", default=-1)
    if slot >= 0 and slot // per_epoch != epoch:
        raise ApiError(400, "Slot does not belong in epoch")
    root = chain.dependent_root(epoch, block.branch)
    data = [
        {"index": str(place), "slot": str(first + epoch * per_epoch), "validators": [str(one) for one in committee]}
        for first, committees in enumerate(chain.shuffling.committees(epoch, root))
        for place, committee in enumerate(committees)
        if slot in (-1, first + epoch * per_epoch) and index in (-1, place)
    ]
    return Reply(data, members=call.about(block))


def _sync_committees(call: Call) -> Reply:
    block, chain = _state(call), call.chain
    own = _epoch(call, block)
    if not since(call.fork(block.slot), "altair"):
        raise ApiError(400, "There are no sync committees before Altair")
    epoch, period = call.number("epoch", default=own), chain.preset.epochs_per_sync_committee_period
    if abs(epoch // period - own // period) > 1:
        raise ApiError(400, "Epoch is outside the sync committee period of the state")
    parts = [chain.shuffling.sync_subcommittee(epoch, number) for number in range(SYNC_SUBCOMMITTEES)]
    data = {
        "validators": [str(one) for one in chain.shuffling.sync_committee(epoch)],
        "validator_aggregates": [[str(one) for one in part] for part in parts],
    }
    return Reply(data, members=call.about(block))


def _randao(call: Call) -> Reply:
    block = _state(call)
    own = _epoch(call, block)
    epoch = call.number("epoch", default=own)
    if not own - 65_536 < epoch <= own:
        raise ApiError(400, "Epoch is out of range for the `randao_mixes` of the state")
    # Blocks of the epoch mix in, so that of the present one moves with the head.
    root = block.root if epoch == own else call.chain.dependent_root(epoch + 1, block.branch, lookahead=0)
    return Reply({"randao": root_hex(call.chain.made_up("mix", epoch, root))}, members=call.about(block))


def _epoch(call: Call, block: SimulatedBlock) -> Epoch:
    return call.chain.identity.epoch_of(block.slot)


def _named(call: Call, ids: list[str]) -> list[SimulatedValidator]:
    """Return the validators of identifiers, those that there are; without any, all of them."""
    registry = call.chain.registry
    if not ids:
        return list(registry)
    try:
        return [found for name in dict.fromkeys(ids) if (found := registry.find(name)) is not None]
    except ValueError:
        raise ApiError(400, "Invalid validator ID") from None


def _balance(one: SimulatedValidator, epoch: int) -> int:
    """Return a balance with some rewards on it."""
    return one.balance + (epoch * 9_973 + one.index * 31) % GWEI if one.balance else 0


def _validator(one: SimulatedValidator, epoch: int) -> dict[str, object]:
    return {
        "index": str(one.index),
        "balance": str(_balance(one, epoch)),
        "status": one.status(epoch),
        "validator": {
            "pubkey": root_hex(one.pubkey),
            "withdrawal_credentials": root_hex(one.withdrawal_credentials),
            "effective_balance": str(one.effective_balance),
            "slashed": one.slashed,
            "activation_eligibility_epoch": str(one.activation_eligibility_epoch),
            "activation_epoch": str(one.activation_epoch),
            "exit_epoch": str(one.exit_epoch),
            "withdrawable_epoch": str(one.withdrawable_epoch),
        },
    }


def read_json(call: Call) -> object:
    """Return the body of a request.

    :raises ApiError: where it is no JSON.
    """
    try:
        return json.loads(call.request.body)
    except (ValueError, RecursionError):
        raise ApiError(400, "body is not JSON") from None


def _texts(written: object) -> list[str]:
    if written is None:
        return []
    if not isinstance(written, list) or not all(isinstance(one, str) for one in written):
        raise ApiError(400, "not a list of texts")
    return written


ROUTES = (
    get("getStateRoot", "/eth/v1/beacon/states/{state_id}/root", _root),
    get("getStateFork", "/eth/v1/beacon/states/{state_id}/fork", _fork),
    get("getStateFinalityCheckpoints", "/eth/v1/beacon/states/{state_id}/finality_checkpoints", _finality),
    get("getStateValidators", "/eth/v1/beacon/states/{state_id}/validators", _validators),
    post("postStateValidators", "/eth/v1/beacon/states/{state_id}/validators", _post_validators),
    get("getStateValidator", "/eth/v1/beacon/states/{state_id}/validators/{validator_id}", _one_validator),
    get("getStateValidatorBalances", "/eth/v1/beacon/states/{state_id}/validator_balances", _balances, ssz=True),
    post("postStateValidatorBalances", "/eth/v1/beacon/states/{state_id}/validator_balances", _post_balances, ssz=True),
    get("getEpochCommittees", "/eth/v1/beacon/states/{state_id}/committees", _committees),
    get("getEpochSyncCommittees", "/eth/v1/beacon/states/{state_id}/sync_committees", _sync_committees),
    get("getStateRandao", "/eth/v1/beacon/states/{state_id}/randao", _randao),
)
