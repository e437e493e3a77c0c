"""Answers of a beacon node as values; unknown members are ignored, used ones are checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from vc_fallback.base.types import FAR_FUTURE_EPOCH, Epoch, Root, Slot, parse_root
from vc_fallback.chain import ChainIdentity, Fork
from vc_fallback.node.scalars import flag, uint64

JSON = Mapping[str, Any]

_PRESET_SLOTS_PER_EPOCH = {"mainnet": 32, "minimal": 8, "gnosis": 16}


@dataclass(frozen=True, slots=True)
class Genesis:
    """`/eth/v1/beacon/genesis`; `genesis_time` is Unix time in seconds."""

    genesis_time: int
    genesis_validators_root: Root


@dataclass(frozen=True, slots=True)
class HeadHeader:
    """What `/eth/v1/beacon/headers/{block_id}` says of a block; `optimistic` is `None` where it does not say."""

    slot: Slot
    root: Root
    optimistic: bool | None


@dataclass(frozen=True, slots=True)
class Syncing:
    """`/eth/v1/node/syncing`; distance in slots, missing flags are unknown (`None`)."""

    head_slot: Slot
    sync_distance: int
    is_syncing: bool
    is_optimistic: bool | None
    el_offline: bool | None


def parse_syncing(data: JSON) -> Syncing:
    """Read the `data` of a syncing answer.

    :raises ValueError, KeyError, TypeError: when it does not follow the API.
    """
    return Syncing(
        head_slot=Slot(uint64(data["head_slot"])),
        sync_distance=uint64(data["sync_distance"]),
        is_syncing=bool(flag(data["is_syncing"])),
        is_optimistic=flag(data.get("is_optimistic")),
        el_offline=flag(data.get("el_offline")),
    )


def parse_genesis(data: JSON) -> Genesis:
    """Read the `data` of a genesis answer.

    :raises ValueError, KeyError, TypeError: when it does not follow the API.
    """
    return Genesis(uint64(data["genesis_time"]), parse_root(data["genesis_validators_root"]))


def parse_header(answer: JSON) -> HeadHeader:
    """Read a whole header answer.

    :raises ValueError, KeyError, TypeError: when it does not follow the API.
    """
    data = answer["data"]
    return HeadHeader(
        slot=Slot(uint64(data["header"]["message"]["slot"])),
        root=parse_root(data["root"]),
        optimistic=flag(answer.get("execution_optimistic")),
    )


def chain_identity(genesis: Genesis, spec: JSON) -> ChainIdentity:
    """Put an identity together from a genesis and the `data` of `/eth/v1/config/spec`.

    Keys that are not used may hold anything (case 34); a fork whose epoch or version cannot be read is left out.

    :raises ValueError, KeyError, TypeError: when slot duration or slots per epoch cannot be read.
    """
    preset = spec.get("PRESET_BASE")
    preset = preset.lower() if isinstance(preset, str) else ""
    if "SLOT_DURATION_MS" in spec:
        slot_duration = uint64(spec["SLOT_DURATION_MS"]) / 1000
    else:
        slot_duration = float(uint64(spec["SECONDS_PER_SLOT"]))
    given = spec.get("SLOTS_PER_EPOCH")
    slots_per_epoch = _PRESET_SLOTS_PER_EPOCH[preset] if given is None else uint64(given)
    if not slot_duration or not slots_per_epoch:
        raise ValueError("a slot or an epoch of no length")
    return ChainIdentity(
        genesis_time=float(genesis.genesis_time),
        genesis_validators_root=genesis.genesis_validators_root,
        slot_duration=slot_duration,
        slots_per_epoch=slots_per_epoch,
        preset=preset,
        forks=_forks(spec),
        due_bps=MappingProxyType(_due(spec)),
    )


def _forks(spec: JSON) -> tuple[Fork, ...]:
    forks = []
    version = _version(spec.get("GENESIS_FORK_VERSION"))
    if version is not None:
        forks.append(Fork("phase0", version, Epoch(0)))
    for key, value in spec.items():
        if not key.endswith("_FORK_EPOCH"):
            continue
        name = key.removesuffix("_FORK_EPOCH")
        version = _version(spec.get(f"{name}_FORK_VERSION"))
        try:
            epoch = Epoch(uint64(value))
        except ValueError:
            continue
        if version is not None and epoch != FAR_FUTURE_EPOCH:
            forks.append(Fork(name.lower(), version, epoch))
    # Forks of one epoch are ordered by their versions, which rise with each fork on every known network.
    return tuple(sorted(forks, key=lambda fork: (fork.epoch, fork.version)))


def _version(value: object) -> bytes | None:
    if not isinstance(value, str) or len(value) != 10 or not value.startswith("0x"):
        return None
    try:
        return bytes.fromhex(value[2:])
    except ValueError:
        return None


def _due(spec: JSON) -> dict[str, int]:
    due = {}
    for key, value in spec.items():
        if "_DUE_BPS" in key:
            try:
                due[key] = uint64(value)
            except ValueError:
                continue
    return due
