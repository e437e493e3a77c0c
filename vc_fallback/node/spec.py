"""The chain's identity out of what a node is configured with (I1, case 34)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from vc_fallback.base.types import FAR_FUTURE_EPOCH, Epoch
from vc_fallback.chain import ChainIdentity, Fork
from vc_fallback.node.scalars import uint64
from vc_fallback.node.values.about import Genesis

Spec = Mapping[str, Any]
"""`data` of `/eth/v1/config/spec`: keys in capitals to texts, or lists and whatever else a node sends."""

_PRESET_SLOTS_PER_EPOCH = {"mainnet": 32, "minimal": 8, "gnosis": 16}


def chain_identity(genesis: Genesis, spec: Spec) -> ChainIdentity:
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


def _forks(spec: Spec) -> tuple[Fork, ...]:
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


def _due(spec: Spec) -> dict[str, int]:
    due = {}
    for key, value in spec.items():
        if "_DUE_BPS" in key:
            try:
                due[key] = uint64(value)
            except ValueError:
                continue
    return due
