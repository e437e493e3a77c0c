"""The validators of a simulated chain: who they are, what they have, and when they are on duty."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from vc_fallback.base.types import FAR_FUTURE_EPOCH, Epoch

GWEI = 10**9
FULL_BALANCE = 32 * GWEI
"""In Gwei."""

_GENESIS = Epoch(0)

STATUSES = (
    "pending_initialized",
    "pending_queued",
    "active_ongoing",
    "active_exiting",
    "active_slashed",
    "exited_unslashed",
    "exited_slashed",
    "withdrawal_possible",
    "withdrawal_done",
)
"""The statuses of the Beacon API."""


@dataclass(frozen=True, slots=True)
class SimulatedValidator:
    """A validator as states have it; balances in Gwei, epochs that are not set are `FAR_FUTURE_EPOCH`."""

    index: int
    pubkey: bytes
    withdrawal_credentials: bytes
    balance: int = FULL_BALANCE
    effective_balance: int = FULL_BALANCE
    slashed: bool = False
    activation_eligibility_epoch: Epoch = _GENESIS
    activation_epoch: Epoch = _GENESIS
    exit_epoch: Epoch = FAR_FUTURE_EPOCH
    withdrawable_epoch: Epoch = FAR_FUTURE_EPOCH

    def active(self, epoch: int) -> bool:
        """Whether it is on duty in an epoch."""
        return self.activation_epoch <= epoch < self.exit_epoch

    def status(self, epoch: int) -> str:
        """Return its status in an epoch, one of :data:`STATUSES`."""
        if epoch < self.activation_epoch:
            unknown = self.activation_eligibility_epoch == FAR_FUTURE_EPOCH
            return "pending_initialized" if unknown else "pending_queued"
        if epoch < self.exit_epoch:
            if self.exit_epoch == FAR_FUTURE_EPOCH:
                return "active_ongoing"
            return "active_slashed" if self.slashed else "active_exiting"
        if epoch < self.withdrawable_epoch:
            return "exited_slashed" if self.slashed else "exited_unslashed"
        return "withdrawal_possible" if self.effective_balance else "withdrawal_done"


class Registry:
    """The validators of a chain, by index and by public key: `registry[3]`, `registry.find("0x…")`, `len(registry)`.

    All are active from genesis on, with 32 ETH; :meth:`change` makes one differ.
    """

    def __init__(self, seed: int, count: int) -> None:
        self._seed = seed
        self._validators = [self._make(index) for index in range(count)]
        self._by_pubkey = {validator.pubkey: validator.index for validator in self._validators}

    def __len__(self) -> int:
        return len(self._validators)

    def __getitem__(self, index: int) -> SimulatedValidator:
        return self._validators[index]

    def __iter__(self) -> Iterator[SimulatedValidator]:
        return iter(self._validators)

    def find(self, name: str) -> SimulatedValidator | None:
        """Return the validator of an index or a public key, as the Beacon API writes them; `None` where there is none.

        :raises ValueError: for what is neither.
        """
        if name.isascii() and name.isdecimal():
            index = int(name)
            return self._validators[index] if index < len(self) else None
        pubkey = bytes.fromhex(name.removeprefix("0x"))
        if not name.startswith("0x") or len(pubkey) != 48:
            raise ValueError("neither an index nor a public key")
        known = self._by_pubkey.get(pubkey)
        return None if known is None else self._validators[known]

    def change(self, index: int, **fields: Any) -> SimulatedValidator:  # noqa: ANN401 - fields of SimulatedValidator
        """Change fields of a validator: `registry.change(3, exit_epoch=7, slashed=True)`; return it.

        Duties follow from the epoch on for which they had not been worked out.
        """
        validator = replace(self._validators[index], **fields)
        del self._by_pubkey[self._validators[index].pubkey]
        self._validators[index] = validator
        self._by_pubkey[validator.pubkey] = index
        return validator

    def active(self, epoch: int) -> list[int]:
        """Return the indices of those who are on duty in an epoch."""
        return [validator.index for validator in self._validators if validator.active(epoch)]

    def _make(self, index: int) -> SimulatedValidator:
        digest = hashlib.sha512(repr((self._seed, "validator", index)).encode()).digest()
        # The top bits mark a compressed point, as in every real key; nothing else makes it one.
        pubkey = bytes((digest[0] & 0x1F | 0x80,)) + digest[1:48]
        return SimulatedValidator(index, pubkey, b"\x01" + bytes(11) + digest[44:])
