"""The REST answers of a simulated node, made from its state."""

from collections.abc import Callable

from vc_fallback.base.types import Root, parse_root, root_hex
from vc_fallback.testing import events
from vc_fallback.testing.blocks import SimulatedBlock
from vc_fallback.testing.http import Answer, Request
from vc_fallback.testing.spec import fork_schedule, spec
from vc_fallback.testing.state import REMOVED, NodeState

Data = dict[str, object]


class ApiError(Exception):
    """An error answer of the Beacon API."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def answer(state: NodeState, request: Request) -> Answer:
    """Answer a request for anything but the event stream."""
    try:
        body = _route(state, request)
    except ApiError as error:
        return Answer(error.code, events.dumps({"code": error.code, "message": str(error)}))
    if body is None:
        return Answer(_health(state))
    overrides = state.overrides.get(request.path)
    if overrides:
        body = {**body, "data": _overridden(body["data"], overrides)}
    return Answer(200, events.dumps(body))


def _route(state: NodeState, request: Request) -> Data | None:
    if request.method not in {"GET", "HEAD"}:
        raise ApiError(404, "Route not found")
    if (fixed := _FIXED.get(request.path)) is not None:
        return fixed(state)
    match request.path.split("/"):
        case ["", "eth", "v1", "node", "health"]:
            return None
        case ["", "eth", "v1", "beacon", "headers", block_id]:
            return _header(state, _find(state, block_id))
        case ["", "eth", "v1", "beacon", "blocks", block_id, "root"]:
            return _about(state, _find(state, block_id), {"root": root_hex(_find(state, block_id).root)})
        case ["", "eth", "v1", "beacon", "states", state_id, "finality_checkpoints"]:
            return _finality(state, _find(state, state_id))
        case ["", "eth", "v1", "validator", "attestation_data"]:
            return _attestation_data(state, dict(request.query))
    raise ApiError(404, "Route not found")


def _syncing(state: NodeState) -> Data:
    data: Data = {
        "head_slot": str(state.head.slot),
        "sync_distance": str(max(0, state.distance)),
        "is_syncing": state.is_syncing,
        "is_optimistic": state.optimistic,
    }
    if state.el_offline is not None:
        data["el_offline"] = state.el_offline
    return {"data": data}


def _health(state: NodeState) -> int:
    if state.el_offline:
        return 503
    return 206 if state.is_syncing or state.optimistic else 200


def _identity(state: NodeState) -> Data:
    return {
        "data": {
            "peer_id": f"simulated-{state.name}",
            "enr": "enr:-",
            "p2p_addresses": [],
            "discovery_addresses": [],
            "metadata": {"seq_number": "0", "attnets": "0x" + "00" * 8, "syncnets": "0x00"},
        }
    }


def _peer_count(state: NodeState) -> Data:
    counts = {"disconnected": 0, "connecting": 0, "connected": state.peers, "disconnecting": 0}
    return {"data": {name: str(count) for name, count in counts.items()}}


def _genesis(state: NodeState) -> Data:
    identity = state.chain.identity
    return {
        "data": {
            "genesis_time": str(int(identity.genesis_time)),
            "genesis_validators_root": root_hex(identity.genesis_validators_root),
            "genesis_fork_version": root_hex(identity.forks[0].version),
        }
    }


_FIXED: dict[str, Callable[[NodeState], Data]] = {
    "/eth/v1/node/syncing": _syncing,
    "/eth/v1/node/version": lambda state: {"data": {"version": state.version}},
    "/eth/v1/node/identity": _identity,
    "/eth/v1/node/peer_count": _peer_count,
    "/eth/v1/beacon/genesis": _genesis,
    "/eth/v1/config/spec": lambda state: {"data": spec(state.chain)},
    "/eth/v1/config/fork_schedule": lambda state: {"data": fork_schedule(state.chain)},
}


def _find(state: NodeState, block_id: str) -> SimulatedBlock:
    """Return the block of an identifier that is on the node's own chain, up to its head, or known by root."""
    chain, head = state.chain, state.head
    if block_id == "head":
        return head
    if block_id in {"finalized", "justified"}:
        pick = events.finalized if block_id == "finalized" else events.justified
        found = chain.block(pick(chain, head)[1])
    elif block_id == "genesis":
        found = chain.first_block if chain.first_block.slot == 0 else None
    elif block_id.isdecimal():
        found = chain.block_at(int(block_id), head.branch) if int(block_id) <= head.slot else None
    else:
        try:
            found = chain.block(parse_root(block_id))
        except ValueError:
            raise ApiError(400, f"Invalid block ID: {block_id}") from None
        if found is not None and found.slot > head.slot:
            found = None
    if found is None:
        raise ApiError(404, "Block not found")
    return found


def _about(state: NodeState, block: SimulatedBlock, data: Data) -> Data:
    finalized = block.slot <= events.finalized(state.chain, state.head)[0] * state.chain.identity.slots_per_epoch
    return {"execution_optimistic": state.optimistic and not finalized, "finalized": finalized, "data": data}


def _header(state: NodeState, block: SimulatedBlock) -> Data:
    message = {
        "slot": str(block.slot),
        "proposer_index": str(block.proposer_index),
        "parent_root": root_hex(block.parent_root),
        "state_root": root_hex(block.state_root),
        "body_root": root_hex(block.body_root),
    }
    canonical = state.chain.head_at(block.slot, state.head.branch).root == block.root
    header = {"message": message, "signature": "0x" + "00" * 96}
    return _about(state, block, {"root": root_hex(block.root), "canonical": canonical, "header": header})


def _checkpoint(checkpoint: tuple[int, bytes]) -> Data:
    return {"epoch": str(checkpoint[0]), "root": root_hex(checkpoint[1])}


def _finality(state: NodeState, block: SimulatedBlock) -> Data:
    chain, epoch = state.chain, state.chain.identity.epoch_of(block.slot)
    return _about(
        state,
        block,
        {
            "previous_justified": _checkpoint(chain.checkpoint(epoch - 2, block.branch)),
            "current_justified": _checkpoint(events.justified(chain, block)),
            "finalized": _checkpoint(events.finalized(chain, block)),
        },
    )


def _attestation_data(state: NodeState, query: dict[str, str]) -> Data:
    text = query.get("slot", "")
    if not text.isdecimal():
        raise ApiError(400, "Invalid slot")
    slot, chain = int(text), state.chain
    if slot > state.slot + 1:
        raise ApiError(500, "Requested slot is in the future")
    if state.optimistic:
        raise ApiError(503, "Node is syncing: the head is optimistic")
    if state.is_syncing:
        raise ApiError(503, f"Node is syncing: {state.distance} slots behind")
    head = state.head if state.head.slot <= slot else chain.head_at(slot, state.head.branch)
    epoch = slot // chain.identity.slots_per_epoch
    first = epoch * chain.identity.slots_per_epoch
    target: Root = chain.head_at(first, head.branch).root if head.slot >= first else head.root
    return {
        "data": {
            "slot": str(slot),
            "index": query.get("committee_index", "0"),
            "beacon_block_root": root_hex(head.root),
            "source": _checkpoint(chain.checkpoint(epoch - 1, head.branch)),
            "target": {"epoch": str(epoch), "root": root_hex(target)},
        }
    }


def _overridden(data: object, overrides: dict[str, object]) -> object:
    if not isinstance(data, dict):
        return data
    merged = {**data, **overrides}
    return {key: value for key, value in merged.items() if value is not REMOVED}
