"""The sizes that differ between the mainnet and the minimal preset, and what a configuration says of them."""

from dataclasses import dataclass

FORKS = ("phase0", "altair", "bellatrix", "capella", "deneb", "electra", "fulu", "gloas")
"""The forks by age."""

SYNC_SUBCOMMITTEES = 4
"""`SYNC_COMMITTEE_SUBNET_COUNT` of the consensus specification."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Constants of the consensus specification, by its names in small letters."""

    name: str
    slots_per_epoch: int
    max_committees_per_slot: int
    target_committee_size: int
    sync_committee_size: int
    epochs_per_sync_committee_period: int
    max_withdrawals_per_payload: int
    ptc_size: int
    max_validators_per_committee: int = 2048

    @property
    def max_validators_per_slot(self) -> int:
        """`MAX_VALIDATORS_PER_COMMITTEE * MAX_COMMITTEES_PER_SLOT`."""
        return self.max_validators_per_committee * self.max_committees_per_slot


MAINNET = Preset("mainnet", 32, 64, 128, 512, 256, 16, 512)
MINIMAL = Preset("minimal", 8, 4, 4, 32, 8, 4, 16)


def preset(name: str) -> Preset:
    """Return a preset by its name; every one but the mainnet's counts as minimal."""
    return MAINNET if name == MAINNET.name else MINIMAL


def since(fork: str, first: str) -> bool:
    """Whether a fork is this one or a later one."""
    return FORKS.index(fork) >= FORKS.index(first)
