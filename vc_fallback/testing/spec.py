"""What a simulated node says at `/eth/v1/config/…`."""

from vc_fallback.base.types import FAR_FUTURE_EPOCH
from vc_fallback.testing.blocks import SimulatedChain
from vc_fallback.testing.containers.presets import FORKS, SYNC_SUBCOMMITTEES
from vc_fallback.testing.schedule import fork_version

DEPOSIT_CONTRACT = {"chain_id": "1337", "address": "0x" + "42" * 20}
"""Where deposits are made."""

_DOMAINS = {
    "DOMAIN_BEACON_PROPOSER": 0x00,
    "DOMAIN_BEACON_ATTESTER": 0x01,
    "DOMAIN_RANDAO": 0x02,
    "DOMAIN_DEPOSIT": 0x03,
    "DOMAIN_VOLUNTARY_EXIT": 0x04,
    "DOMAIN_SELECTION_PROOF": 0x05,
    "DOMAIN_AGGREGATE_AND_PROOF": 0x06,
    "DOMAIN_SYNC_COMMITTEE": 0x07,
    "DOMAIN_SYNC_COMMITTEE_SELECTION_PROOF": 0x08,
    "DOMAIN_CONTRIBUTION_AND_PROOF": 0x09,
    "DOMAIN_BLS_TO_EXECUTION_CHANGE": 0x0A,
    "DOMAIN_BEACON_BUILDER": 0x0B,
    "DOMAIN_PTC_ATTESTER": 0x0C,
    "DOMAIN_PROPOSER_PREFERENCES": 0x0D,
}
"""The first byte of each domain; the last three are those of Gloas."""

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
    identity, preset = chain.identity, chain.preset
    data: dict[str, object] = {
        "PRESET_BASE": identity.preset,
        "CONFIG_NAME": "simulated",
        "MIN_GENESIS_TIME": str(int(identity.genesis_time)),
        "GENESIS_DELAY": "0",
        "GENESIS_FORK_VERSION": "0x" + identity.forks[0].version.hex(),
        "SLOT_DURATION_MS": str(round(identity.slot_duration * 1000)),
        "SLOTS_PER_EPOCH": str(identity.slots_per_epoch),
        "DEPOSIT_CHAIN_ID": DEPOSIT_CONTRACT["chain_id"],
        "DEPOSIT_NETWORK_ID": DEPOSIT_CONTRACT["chain_id"],
        "DEPOSIT_CONTRACT_ADDRESS": DEPOSIT_CONTRACT["address"],
        "MAX_COMMITTEES_PER_SLOT": str(preset.max_committees_per_slot),
        "TARGET_COMMITTEE_SIZE": str(preset.target_committee_size),
        "MAX_VALIDATORS_PER_COMMITTEE": str(preset.max_validators_per_committee),
        "TARGET_AGGREGATORS_PER_COMMITTEE": "16",
        "SYNC_COMMITTEE_SIZE": str(preset.sync_committee_size),
        "EPOCHS_PER_SYNC_COMMITTEE_PERIOD": str(preset.epochs_per_sync_committee_period),
        "SYNC_COMMITTEE_SUBNET_COUNT": str(SYNC_SUBCOMMITTEES),
        "TARGET_AGGREGATORS_PER_SYNC_SUBCOMMITTEE": "16",
        "PTC_SIZE": str(preset.ptc_size),
        "DOMAIN_APPLICATION_BUILDER": "0x00000001",
        "MAX_BLOBS_PER_BLOCK": "6",
        "BLOB_SCHEDULE": [{"EPOCH": "512", "MAX_BLOBS_PER_BLOCK": "12"}],
        "GAS_LIMIT_SCHEDULE": [],
    }
    if identity.slot_duration.is_integer():
        data["SECONDS_PER_SLOT"] = str(int(identity.slot_duration))
    epochs = {fork.name: fork.epoch for fork in identity.forks}
    for name in FORKS[1:]:
        data[f"{name.upper()}_FORK_VERSION"] = "0x" + fork_version(name).hex()
        data[f"{name.upper()}_FORK_EPOCH"] = str(epochs.get(name, FAR_FUTURE_EPOCH))
    data.update({name: f"0x{kind:02x}000000" for name, kind in _DOMAINS.items()})
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
