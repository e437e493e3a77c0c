"""What states of the chain hold: validators, their balances, committees, checkpoints."""

from collections.abc import Sequence
from enum import StrEnum
from struct import iter_unpack
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from vc_fallback.node.values.adapters import Unreadable, adapter
from vc_fallback.node.values.answers import OnChain
from vc_fallback.node.values.attestation import Checkpoint
from vc_fallback.node.values.containers import Container
from vc_fallback.node.values.fields import (
    VALUE,
    Bytes32,
    EpochNumber,
    Flag,
    Gwei,
    PublicKey,
    RootBytes,
    ValidatorIndex,
)
from vc_fallback.node.values.rows import Number, Row, SlotOfRow, read_plain


class ValidatorStatus(StrEnum):
    """Statuses that are known. Each equals its text, so one that is not known is compared like these."""

    PENDING_INITIALIZED = "pending_initialized"
    PENDING_QUEUED = "pending_queued"
    ACTIVE_ONGOING = "active_ongoing"
    ACTIVE_EXITING = "active_exiting"
    ACTIVE_SLASHED = "active_slashed"
    EXITED_UNSLASHED = "exited_unslashed"
    EXITED_SLASHED = "exited_slashed"
    WITHDRAWAL_POSSIBLE = "withdrawal_possible"
    WITHDRAWAL_DONE = "withdrawal_done"


_OtherStatus = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9_]{1,64}$")]
Status = Annotated[ValidatorStatus | _OtherStatus, Field(union_mode="left_to_right")]
"""A status that is known, or the text of one that is not: letters, digits and underscores, 64 at most."""


@dataclass(frozen=True, slots=True, config=VALUE)
class Validator(Container):
    """`Validator` of the consensus specification; epochs that are not fixed yet are `FAR_FUTURE_EPOCH`."""

    ssz_length: ClassVar[int] = 121

    pubkey: PublicKey
    withdrawal_credentials: Bytes32
    effective_balance: Gwei
    slashed: Flag
    activation_eligibility_epoch: EpochNumber
    activation_epoch: EpochNumber
    exit_epoch: EpochNumber
    withdrawable_epoch: EpochNumber


@dataclass(frozen=True, slots=True, config=VALUE)
class ListedValidator:
    """A validator as a node lists it.

    :param index: in the validator registry.
    :param balance: in gwei; what its duties weigh is `validator.effective_balance`.
    :param status: of the state that was asked for, so of its epoch. A text that is no member of `ValidatorStatus` is a
        status made after this version.
    """

    index: ValidatorIndex
    balance: Gwei
    status: Status
    validator: Validator


@dataclass(frozen=True, slots=True, config=VALUE)
class ValidatorBalance:
    """A balance in gwei."""

    index: ValidatorIndex
    balance: Gwei


class Committee(Row, frozen=True, gc=False):
    """The validators that attest in a slot with one committee index, by their indices, in the committee's order."""

    index: Number
    slot: SlotOfRow
    validators: list[Number]


class SyncCommittees(Row, frozen=True, gc=False):
    """A sync committee, by validators' indices: a validator may be in it more than once.

    :param validator_aggregates: the same in parts, one for each subcommittee.
    """

    validators: list[Number]
    validator_aggregates: list[list[Number]]


@dataclass(frozen=True, slots=True, config=VALUE)
class FinalityCheckpoints:
    """Checkpoints of a state; before there is one of a kind it has epoch 0 and a root of zeros."""

    previous_justified: Checkpoint
    current_justified: Checkpoint
    finalized: Checkpoint


@dataclass(frozen=True, slots=True, config=VALUE)
class StateRoot:
    """The root of a state, as the API wraps it."""

    root: RootBytes


@dataclass(frozen=True, slots=True, config=VALUE)
class Randao:
    """A RANDAO mix, as the API wraps it."""

    randao: Bytes32


def read_rows(kind: Any, body: bytes) -> OnChain[Any]:  # noqa: ANN401 - a type made of rows
    """Read an answer about a state whose `data` is made of rows.

    :raises ValueError: when it is anything else.
    """
    found: Any = read_plain(kind, body)
    if found is None:
        found = adapter(OnChain[kind]).validate_json(body)
    return OnChain(found.data, found.execution_optimistic, found.finalized)


def balances_from_ssz(data: bytes) -> list[ValidatorBalance]:
    """Read an SSZ list of containers of index and balance.

    :raises ValueError: when it is not made of whole ones.
    """
    if len(data) % 16:
        raise Unreadable("balances that are not 16 bytes each")
    return [ValidatorBalance(index, balance) for index, balance in iter_unpack("<QQ", data)]


def merged(parts: Sequence[OnChain[Any]]) -> OnChain[Any]:
    """Put answers about parts of one list together; what was asked for twice, by index and by key, is there once.

    What rests on anything unverified in part does so as a whole, and only what is finalized in all parts is finalized.
    """
    items: dict[int, Any] = {}
    for part in parts:
        for item in part.data:
            items.setdefault(item.index, item)
    optimistic = [part.execution_optimistic for part in parts]
    finalized = [part.finalized for part in parts]
    return OnChain(
        [*items.values()],
        True if True in optimistic else None if None in optimistic else False,
        False if False in finalized else None if None in finalized else True,
    )
