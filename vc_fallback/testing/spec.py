"""What a simulated node says at `/eth/v1/config/spec` and `/eth/v1/config/fork_schedule`."""

from vc_fallback.base.types import FAR_FUTURE_EPOCH
from vc_fallback.testing.blocks import SimulatedChain

_DUE_BPS = {
    "ATTESTATION_DUE_BPS": 3333,
    "AGGREGATE_DUE_BPS": 6667,
    "SYNC_MESSAGE_DUE_BPS": 3333,
    "CONTRIBUTION_DUE_BPS": 6667,
    "PROPOSER_REORG_CUTOFF_BPS": 1667,
    "ATTESTATION_DUE_BPS_GLOAS": 2500,
    "AGGREGATE_DUE_BPS_GLOAS": 5000,
    "SYNC_MESSAGE_DUE_BPS_GLOAS": 2500,
    "CONTRIBUTION_DUE_BPS_GLOAS": 5000,
    "PAYLOAD_ATTESTATION_DUE_BPS": 7500,
}
"""Due times in basis points of a slot, as in the consensus specification."""


def spec(chain: SimulatedChain) -> dict[str, object]:
    """Return the configuration: what clients read, and values that are no strings (cases.md 34).

    `SECONDS_PER_SLOT` is left out where a slot is no whole number of seconds.
    """
    identity = chain.identity
    data: dict[str, object] = {
        "PRESET_BASE": identity.preset,
        "CONFIG_NAME": "simulated",
        "MIN_GENESIS_TIME": str(int(identity.genesis_time)),
        "GENESIS_DELAY": "0",
        "GENESIS_FORK_VERSION": "0x" + identity.forks[0].version.hex(),
        "SLOT_DURATION_MS": str(round(identity.slot_duration * 1000)),
        "SLOTS_PER_EPOCH": str(identity.slots_per_epoch),
        "DEPOSIT_CHAIN_ID": "1337",
        "MAX_COMMITTEES_PER_SLOT": "64",
        "TARGET_AGGREGATORS_PER_COMMITTEE": "16",
        "MAX_BLOBS_PER_BLOCK": "6",
        "BLOB_SCHEDULE": [{"EPOCH": "512", "MAX_BLOBS_PER_BLOCK": "12"}],
        "GAS_LIMIT_SCHEDULE": [],
    }
    if identity.slot_duration.is_integer():
        data["SECONDS_PER_SLOT"] = str(int(identity.slot_duration))
    for fork in identity.forks[1:]:
        data[f"{fork.name.upper()}_FORK_VERSION"] = "0x" + fork.version.hex()
        data[f"{fork.name.upper()}_FORK_EPOCH"] = str(fork.epoch)
    data.setdefault("GLOAS_FORK_VERSION", "0x07000001")
    data.setdefault("GLOAS_FORK_EPOCH", str(FAR_FUTURE_EPOCH))
    data.update({name: str(value) for name, value in _DUE_BPS.items()})
    return data


def fork_schedule(chain: SimulatedChain) -> list[object]:
    """Return the forks by rising epoch."""
    schedule: list[object] = []
    previous = chain.identity.forks[0].version
    for fork in chain.identity.forks:
        versions = {"previous_version": "0x" + previous.hex(), "current_version": "0x" + fork.version.hex()}
        schedule.append({**versions, "epoch": str(fork.epoch)})
        previous = fork.version
    return schedule
