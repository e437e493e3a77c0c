"""What a chain holds of the duties that were due, read from the JSON of its blocks. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

SLOTS_PER_EPOCH = 8
"""In the minimal preset. So many slots after its own an attestation can be included, up to Capella."""
ATTESTATION_DUE = 1 / 3
"""Part of the slot after which attesters no longer wait for its block."""


@dataclass(frozen=True)
class Vote:
    """An aggregate in a block: bit by bit who of a committee votes, and for what."""

    slot: int
    committee: int
    bits: tuple[bool, ...]
    head: str
    source: tuple[int, str]
    target: tuple[int, str]


@dataclass(frozen=True)
class Block:
    """A block of the canonical chain, by what counts here. Roots are `0x…`."""

    slot: int
    root: str
    proposer: int
    votes: tuple[Vote, ...]
    sync_bits: tuple[bool, ...]


@dataclass(frozen=True)
class EpochDuties:
    """Who was to do what in an epoch.

    :ivar proposers: validator by slot.
    :ivar committees: for each slot its committees, by their index.
    """

    epoch: int
    proposers: Mapping[int, int]
    committees: Mapping[int, Sequence[Sequence[int]]]


@dataclass
class SlotRecord:
    """What became of the duties of one slot. Lists hold validators. No block can hold a vote with a wrong source.

    :ivar block: whether the chain has its block.
    :ivar shown: seconds into the slot at which the network had that block as its head, where it ever had.
    :ivar headless: whether the network had no block of the slot's epoch when attestations were due.
    :ivar included: for each attester the slot of the block that took the attestation up first.
    :ivar followed: the slot of the first block after this slot, if there is one within the time for inclusion.
    :ivar wrong_head: attesters whose vote is for another block than the chain's newest in that slot.
    :ivar sync_due: bits of the sync aggregate that were to be set; 0 where the next slot has no block for them.
    """

    slot: int
    proposer: int
    block: bool
    shown: float | None
    attesters: list[int]
    followed: int | None
    headless: bool
    included: dict[int, int] = field(default_factory=dict)
    wrong_head: list[int] = field(default_factory=list)
    wrong_target: list[int] = field(default_factory=list)
    sync_due: int = 0
    sync_missed: int = 0

    @property
    def missed(self) -> list[int]:
        """Attesters whose vote no block took up."""
        return [validator for validator in self.attesters if validator not in self.included]

    @property
    def late(self) -> list[int]:
        """Attesters whose vote was taken up, but not by the first block after their slot."""
        return [validator for validator, slot in self.included.items() if slot != self.followed]


def parse_block(answer: Mapping[str, Any], root: str) -> Block:
    """Read `/eth/v2/beacon/blocks/{slot}` of Altair to Deneb."""
    message = answer["data"]["message"]
    body = message["body"]
    return Block(
        slot=int(message["slot"]),
        root=root.lower(),
        proposer=int(message["proposer_index"]),
        votes=tuple(map(_parse_vote, body["attestations"])),
        sync_bits=_bits(body["sync_aggregate"]["sync_committee_bits"]),
    )


def _parse_vote(attestation: Mapping[str, Any]) -> Vote:
    data = attestation["data"]
    bits = _bits(attestation["aggregation_bits"])
    # The highest set bit ends a bit list.
    end = max(index for index, bit in enumerate(bits) if bit)
    return Vote(
        slot=int(data["slot"]),
        committee=int(data["index"]),
        bits=bits[:end],
        head=data["beacon_block_root"].lower(),
        source=_checkpoint(data["source"]),
        target=_checkpoint(data["target"]),
    )


def _checkpoint(checkpoint: Mapping[str, str]) -> tuple[int, str]:
    return int(checkpoint["epoch"]), checkpoint["root"].lower()


def _bits(text: str) -> tuple[bool, ...]:
    return tuple(bool(byte >> shift & 1) for byte in bytes.fromhex(text.removeprefix("0x")) for shift in range(8))


def parse_proposers(answer: Mapping[str, Any]) -> dict[int, int]:
    """Read `/eth/v1/validator/duties/proposer/{epoch}`."""
    return {int(duty["slot"]): int(duty["validator_index"]) for duty in answer["data"]}


def parse_committees(answer: Mapping[str, Any]) -> dict[int, list[list[int]]]:
    """Read `/eth/v1/validator/duties/attester/{epoch}` of all validators: each slot's committees."""
    # Lodestar 1.5.1 mixes up slot and index in `states/{state}/committees`.
    found: dict[int, list[list[int]]] = {}
    for duty in answer["data"]:
        slot, length = int(duty["slot"]), int(duty["committee_length"])
        committees = found.setdefault(slot, [[] for _ in range(int(duty["committees_at_slot"]))])
        committee = committees[int(duty["committee_index"])]
        committee += [-1] * (length - len(committee))
        committee[int(duty["validator_committee_index"])] = int(duty["validator_index"])
    return found


def judge(
    blocks: Iterable[Block],
    duties: Iterable[EpochDuties],
    shown: Mapping[str, float],
    slots: range,
    slot_duration: float = 2,
) -> list[SlotRecord]:
    """Hold what was due in these slots against the blocks, which go on for an epoch after the last slot.

    `shown` says for roots how many seconds into its slot the network had the block as its head.
    """
    by_slot = {block.slot: block for block in blocks}
    by_epoch = {epoch.epoch: epoch for epoch in duties}
    records: dict[int, SlotRecord] = {}
    for slot in slots:
        epoch = by_epoch[slot // SLOTS_PER_EPOCH]
        block = by_slot.get(slot)
        later = (other for other in range(slot + 1, slot + SLOTS_PER_EPOCH + 1) if other in by_slot)
        records[slot] = record = SlotRecord(
            slot=slot,
            proposer=epoch.proposers[slot],
            block=block is not None,
            shown=shown.get(block.root) if block else None,
            attesters=[validator for committee in epoch.committees[slot] for validator in committee],
            followed=next(later, None),
            headless=not any(
                shown.get(by_slot[other].root, inf) <= (slot - other + ATTESTATION_DUE) * slot_duration
                for other in range(slot - slot % SLOTS_PER_EPOCH, slot + 1)
                if other in by_slot
            ),
        )
        if slot + 1 in by_slot:
            bits = by_slot[slot + 1].sync_bits
            record.sync_due, record.sync_missed = len(bits), bits.count(False)
    for slot in sorted(by_slot):
        for vote in by_slot[slot].votes:
            if vote.slot in records:
                _count(records[vote.slot], vote, slot, by_slot, by_epoch)
    return list(records.values())


def _count(
    record: SlotRecord, vote: Vote, slot: int, by_slot: Mapping[int, Block], by_epoch: Mapping[int, EpochDuties]
) -> None:
    epoch = vote.slot // SLOTS_PER_EPOCH
    committee = by_epoch[epoch].committees[vote.slot][vote.committee]
    for validator, bit in zip(committee, vote.bits, strict=True):
        if not bit or validator in record.included:
            continue
        record.included[validator] = slot
        if vote.head != _root_at(by_slot, vote.slot):
            record.wrong_head.append(validator)
        if vote.target != (epoch, _root_at(by_slot, epoch * SLOTS_PER_EPOCH)):
            record.wrong_target.append(validator)


def _root_at(by_slot: Mapping[int, Block], slot: int) -> str:
    """The root of the newest block at a slot; empty where it is older than all that are known."""
    return next((by_slot[earlier].root for earlier in range(slot, -1, -1) if earlier in by_slot), "")
