"""Who is on duty when: committees, proposers, sync committees and payload committees of a simulated chain.

Nothing of the consensus specification's shuffling but its dependencies: the same seed, epoch and dependent root make
the same duties, another dependent root makes others.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from vc_fallback.base.types import Root
from vc_fallback.testing.containers.presets import SYNC_SUBCOMMITTEES, Preset
from vc_fallback.testing.registry import Registry

_KEPT = 64
"""Shufflings that are kept."""

Committee = Sequence[int]


class Shuffling:
    """Works out duties.

    :param slots_per_epoch: of the chain.
    """

    def __init__(self, seed: int, registry: Registry, preset: Preset, slots_per_epoch: int) -> None:
        self._seed = seed
        self._registry = registry
        self._preset = preset
        self._slots = slots_per_epoch
        self._committees: dict[tuple[int, Root], tuple[tuple[Committee, ...], ...]] = {}
        self._proposers: dict[tuple[int, Root], Committee] = {}
        self._sync: dict[int, Committee] = {}

    def committees(self, epoch: int, dependent_root: Root) -> tuple[tuple[Committee, ...], ...]:
        """Return the committees of an epoch, by slot in the epoch and committee index."""
        key = (epoch, dependent_root)
        found = self._committees.get(key)
        if found is None:
            found = self._committees[key] = self._shuffle(epoch, dependent_root)
            _bound(self._committees)
        return found

    def proposer(self, slot: int, dependent_root: Root) -> int:
        """Return who proposes at a slot."""
        key = (slot // self._slots, dependent_root)
        found = self._proposers.get(key)
        if found is None:
            active = self._registry.active(key[0]) or [0]
            numbers = [self._number("proposer", number, *key) for number in range(self._slots)]
            found = self._proposers[key] = tuple([active[number % len(active)] for number in numbers])
            _bound(self._proposers)
        return found[slot % self._slots]

    def payload_committee(self, slot: int, dependent_root: Root) -> Committee:
        """Return the members of a slot's payload timeliness committee, who repeat where there are too few of them."""
        committees = self.committees(slot // self._slots, dependent_root)[slot % self._slots]
        members = [index for committee in committees for index in committee]
        size = self._preset.ptc_size
        return tuple([members[place % len(members)] for place in range(size)]) if members else ()

    def sync_committee(self, epoch: int) -> Committee:
        """Return the members of the sync committee of an epoch, in their order; one may have several places."""
        period = epoch // self._preset.epochs_per_sync_committee_period
        found = self._sync.get(period)
        if found is None:
            active = self._registry.active(period * self._preset.epochs_per_sync_committee_period)
            order = self._ordered(active, "sync", period)
            size = self._preset.sync_committee_size if order else 0
            found = self._sync[period] = tuple([order[place % len(order)] for place in range(size)])
            _bound(self._sync)
        return found

    def sync_subcommittee(self, epoch: int, number: int) -> Committee:
        """Return the members of one part of the sync committee."""
        committee = self.sync_committee(epoch)
        size = len(committee) // SYNC_SUBCOMMITTEES
        return committee[number * size : (number + 1) * size]

    def _shuffle(self, epoch: int, dependent_root: Root) -> tuple[tuple[Committee, ...], ...]:
        order = self._ordered(self._registry.active(epoch), "attesters", epoch, dependent_root)
        preset = self._preset
        wanted = len(order) // self._slots // preset.target_committee_size
        per_slot = max(1, min(preset.max_committees_per_slot, wanted))
        count = per_slot * self._slots
        parts = [tuple(order[len(order) * part // count : len(order) * (part + 1) // count]) for part in range(count)]
        return tuple([tuple(parts[first : first + per_slot]) for first in range(0, count, per_slot)])

    def _ordered(self, indices: Sequence[int], *what: object) -> list[int]:
        salt = repr((self._seed, *what)).encode()
        return sorted(indices, key=lambda index: hashlib.sha256(salt + index.to_bytes(8, "little")).digest())

    def _number(self, *what: object) -> int:
        return int.from_bytes(hashlib.sha256(repr((self._seed, *what)).encode()).digest()[:8], "little")


def _bound(kept: dict[Any, Any]) -> None:
    if len(kept) > _KEPT:
        del kept[next(iter(kept))]
