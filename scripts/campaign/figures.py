"""Counts what was lost, fault by fault, and what of it no node could have carried. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from scripts.campaign.chain import ATTESTATION_DUE, SlotRecord, judge
from scripts.campaign.plan import NODES
from scripts.campaign.run import Held, Recording


@dataclass
class Tally:
    """Sums over slots.

    :ivar blocks_late: blocks that the network had as its head when attestations were due already, or never.
    :ivar late: attestations that the first block after their slot does not have, but a later one.
    :ivar excused: duties missed that no live node could have carried; they are in the other figures too.
    """

    slots: int = 0
    blocks_missed: int = 0
    blocks_late: int = 0
    attestations: int = 0
    missed: int = 0
    late: int = 0
    wrong_head: int = 0
    wrong_target: int = 0
    sync_bits: int = 0
    sync_missed: int = 0
    excused_blocks: int = 0
    excused: int = 0

    def add(self, record: SlotRecord, duration: float, *, live: bool) -> None:
        """Count a slot; `live` says whether there was a node in it that could have carried its duties."""
        self.slots += 1
        self.blocks_missed += not record.block
        self.blocks_late += is_late(record, duration)
        self.attestations += len(record.attesters)
        self.missed += len(record.missed)
        self.late += len(record.late)
        self.wrong_head += len(record.wrong_head)
        self.wrong_target += len(record.wrong_target)
        self.sync_bits += record.sync_due
        self.sync_missed += record.sync_missed
        self.excused_blocks += not record.block and not live
        self.excused += len(record.missed) if is_excused(record, live=live) else 0


def is_excused(record: SlotRecord, *, live: bool) -> bool:
    """Whether no node could have carried a slot's attestations.

    No node was live in it; or no block followed in which they could be; or the network had no block of their epoch when
    they were due. Lodestar 1.5.1 puts no vote into a block whose head is from an earlier epoch than its target.
    """
    return not live or record.followed is None or record.headless


def is_late(record: SlotRecord, duration: float) -> bool:
    """Whether a block is there that the network did not have when attestations were due."""
    return record.block and (record.shown is None or record.shown > ATTESTATION_DUE * duration)


@dataclass(frozen=True)
class Loss:
    """One slot in which something was lost, with the fault it is counted for and how many nodes were live."""

    record: SlotRecord
    held: Held | None
    live: int


@dataclass
class Figures:
    """What came of a run.

    :ivar total: over all of its slots.
    :ivar by_fault: for each fault its slots, from the one it begins in to the next fault.
    :ivar before: the slots before the first fault.
    """

    total: Tally = field(default_factory=Tally)
    before: Tally = field(default_factory=Tally)
    by_fault: list[tuple[Held, Tally]] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)


def figures(recording: Recording) -> Figures:
    """Make a recording's figures.

    :raises KeyError: the duties of an epoch are not known.
    """
    found = Figures(by_fault=[(held, Tally()) for held in recording.faults])
    slots = range(recording.first, recording.last + 1)
    for record in judge(recording.blocks, recording.duties, recording.shown, slots, recording.slot_duration):
        begun = [row for row in found.by_fault if int(row[0].broken) <= record.slot]
        live = live_nodes(recording, record.slot)
        for tally in (found.total, begun[-1][1] if begun else found.before):
            tally.add(record, recording.slot_duration, live=bool(live))
        if _lost(record, recording.slot_duration):
            found.losses.append(Loss(record, begun[-1][0] if begun else None, len(live)))
    return found


def live_nodes(recording: Recording, slot: int) -> set[int]:
    """The nodes that could carry duties of a slot.

    No fault holds them in any part of it, from its beginning until the node follows the chain again, and they said in
    the first third of the slot what their head is, and that it is verified.
    """
    broken = {
        held.fault.node
        for held in recording.faults
        if held.broken < slot + 1 and (held.recovered is None or held.recovered > slot)
    }
    answered = {probe.node for probe in recording.probes if probe.slot == slot and probe.head_slot >= 0}
    optimistic = {probe.node for probe in recording.probes if probe.slot == slot and probe.optimistic}
    return (set(range(1, NODES + 1)) & answered) - broken - optimistic


def _lost(record: SlotRecord, duration: float) -> bool:
    wrong = record.missed or record.late or record.wrong_head or record.wrong_target or record.sync_missed
    return not record.block or bool(wrong) or is_late(record, duration)


def summed(rows: Sequence[Tally]) -> Tally:
    """Add tallies up."""
    names = Tally.__dataclass_fields__
    return Tally(**{name: sum(getattr(row, name) for row in rows) for name in names})
