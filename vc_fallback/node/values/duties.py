"""Duties of validators in an epoch, and whether validators were seen to be live."""

from dataclasses import dataclass as plain_dataclass
from typing import Any, Literal

from pydantic.dataclasses import dataclass

from vc_fallback.node.values.adapters import Unreadable, adapter
from vc_fallback.node.values.answers import Duties
from vc_fallback.node.values.fields import VALUE, Flag, ValidatorIndex
from vc_fallback.node.values.rows import Key, Number, Row, SlotOfRow, read_plain


class AttesterDuty(Row, frozen=True, gc=False):
    """When and where a validator attests.

    :param pubkey: 48 bytes.
    :param committee_length: number of validators in the committee.
    :param committees_at_slot: number of committees in the slot.
    :param validator_committee_index: the validator's place in the committee.
    """

    pubkey: Key
    validator_index: Number
    committee_index: Number
    committee_length: Number
    committees_at_slot: Number
    validator_committee_index: Number
    slot: SlotOfRow


class ProposerDuty(Row, frozen=True, gc=False):
    """Who proposes the block of a slot."""

    pubkey: Key
    validator_index: Number
    slot: SlotOfRow


class SyncCommitteeDuty(Row, frozen=True, gc=False):
    """The places of a validator in the sync committee; one validator may have several."""

    pubkey: Key
    validator_index: Number
    validator_sync_committee_indices: list[Number]


class PtcDuty(Row, frozen=True, gc=False):
    """When a validator attests the timeliness of a payload (Gloas)."""

    pubkey: Key
    validator_index: Number
    slot: SlotOfRow


@dataclass(frozen=True, slots=True, config=VALUE)
class Liveness:
    """Whether the node saw a validator do anything in an epoch. "Not live" means little of a young node (Q14a)."""

    index: ValidatorIndex
    is_live: Flag


@plain_dataclass(frozen=True, slots=True)
class ProposerDuties(Duties[ProposerDuty]):
    """All proposals of an epoch E.

    :param version: of the route, on which it depends what `dependent_root` is (Q14b): the last block before E with 1,
        before E − 1 with 2. Roots of different versions are never to be compared.
    """

    version: Literal[1, 2] = 2


def read_duties(kind: type[Row], body: bytes, *, rooted: bool = True) -> Duties[Any]:
    """Read an answer that holds duties of a kind.

    :param rooted: whether the API has it name a dependent root: then it must.
    :raises ValueError: when it is anything else.
    """
    found: Any = read_plain(list[kind], body)  # type: ignore[valid-type]  # it is a type at run time
    if found is None:
        found = adapter(Duties[kind]).validate_json(body)  # type: ignore[valid-type]  # likewise
    if rooted and found.dependent_root is None:
        raise Unreadable("dependent_root: missing")
    return Duties(found.data, found.dependent_root, found.execution_optimistic)
