"""What a simulated node says of itself and of its network."""

from vc_fallback.base.types import root_hex
from vc_fallback.testing.api.call import ApiError, Call, Reply, get
from vc_fallback.testing.spec import DEPOSIT_CONTRACT, fork_schedule, spec

_CODES = {"lighthouse": "LH", "prysm": "PM", "teku": "TK", "nimbus": "NB", "lodestar": "LS"}


def _syncing(call: Call) -> Reply:
    state = call.state
    data: dict[str, object] = {
        "head_slot": str(state.head.slot),
        "sync_distance": str(max(0, state.distance)),
        "is_syncing": state.is_syncing,
        "is_optimistic": state.optimistic,
    }
    if state.el_offline is not None:
        data["el_offline"] = state.el_offline
    return Reply(data)


def _health(call: Call) -> Reply:
    state = call.state
    asked = call.query("syncing_status")
    if asked is not None and not (asked.isdecimal() and 100 <= int(asked) <= 599):
        raise ApiError(400, "Invalid syncing_status")
    if state.el_offline:
        return Reply(status=503, bare=True)
    troubled = state.is_syncing or state.optimistic
    return Reply(status=int(asked or 206) if troubled else 200, bare=True)


def _version(call: Call) -> Reply:
    return Reply({"version": call.state.version})


def _version_v2(call: Call) -> Reply:
    name, _, version = call.state.version.partition("/")
    client = {
        "code": _CODES[call.state.manners.client],
        "name": name,
        "version": version.partition("/")[0],
        "commit": "0x51f3e1a7",
    }
    execution = {"code": "GE", "name": "Geth", "version": "v1.17.0", "commit": "0x51f3e1a7"}
    return Reply({"beacon_node": client, "execution_client": execution})


def _identity(call: Call) -> Reply:
    return Reply(
        {
            "peer_id": f"simulated-{call.state.name}",
            "enr": "enr:-",
            "p2p_addresses": [],
            "discovery_addresses": [],
            "metadata": {"seq_number": "0", "attnets": "0x" + "00" * 8, "syncnets": "0x00"},
        }
    )


def _peer_count(call: Call) -> Reply:
    counts = {"disconnected": 0, "connecting": 0, "connected": call.state.peers, "disconnecting": 0}
    return Reply({name: str(count) for name, count in counts.items()})


def _genesis(call: Call) -> Reply:
    identity = call.chain.identity
    return Reply(
        {
            "genesis_time": str(int(identity.genesis_time)),
            "genesis_validators_root": root_hex(identity.genesis_validators_root),
            "genesis_fork_version": root_hex(identity.forks[0].version),
        }
    )


def _spec(call: Call) -> Reply:
    return Reply(spec(call.chain))


def _fork_schedule(call: Call) -> Reply:
    return Reply(fork_schedule(call.chain))


def _deposit_contract(_: Call) -> Reply:
    return Reply(DEPOSIT_CONTRACT)


ROUTES = (
    get("getSyncingStatus", "/eth/v1/node/syncing", _syncing),
    get("getHealth", "/eth/v1/node/health", _health),
    get("getNodeVersion", "/eth/v1/node/version", _version),
    get("getNodeVersionV2", "/eth/v2/node/version", _version_v2),
    get("getNetworkIdentity", "/eth/v1/node/identity", _identity),
    get("getPeerCount", "/eth/v1/node/peer_count", _peer_count),
    get("getGenesis", "/eth/v1/beacon/genesis", _genesis),
    get("getSpec", "/eth/v1/config/spec", _spec),
    get("getForkSchedule", "/eth/v1/config/fork_schedule", _fork_schedule),
    get("getDepositContract", "/eth/v1/config/deposit_contract", _deposit_contract),
)
