"""The tables of runs, and what their words mean."""

import datetime as dt
from collections.abc import Sequence
from importlib.metadata import version

from scripts.benchmarks.report import Report
from scripts.campaign.chain import SLOTS_PER_EPOCH
from scripts.campaign.clients import TITLES
from scripts.campaign.figures import Figures, Loss, Tally, figures, summed
from scripts.campaign.plan import KINDS
from scripts.campaign.run import Recording

COLUMNS = (
    *("slots", "blocks missed", "late", "attestations", "missed", "late", "wrong head"),
    *("sync bits", "missed"),
)
MOST_LOSSES = 60


def page(recordings: Sequence[Recording], command: str) -> Report:
    """Print the tables of these runs; the report can be saved."""
    first = recordings[0]
    report = Report(
        "minimal_vc",
        command=command,
        begun=dt.datetime.fromtimestamp(min(run.began for run in recordings), dt.UTC),
        load=(first.load[0], recordings[-1].load[1]),
    )
    report.text(_setting(recordings))
    made = [(run, figures(run)) for run in recordings]
    report.table("all slots", ("validator client", "faults", *COLUMNS), [_whole(run, found) for run, found in made])
    report.text(MEANING)
    if any(run.client == "lodestar" for run in recordings):
        report.text(LODESTAR)
    for run, found in made:
        if run.faults:
            report.table(f"fault by fault: {TITLES[run.client]}", ("fault", "of node", *COLUMNS), _by_fault(found))
    for run, found in made:
        if found.losses:
            report.table(f"one by one: {_title(run)}", LOSS_COLUMNS, list(map(_loss, found.losses[:MOST_LOSSES])))
    return report


MEANING = (
    "Read from the chain of a fourth node that no validator client was told of and that nothing happened to. "
    "*Blocks missed*: slots without a block on the chain; *late*: blocks that this node did not have as its head when "
    "attestations were due, a third into their slot. *Attestations missed*: not in any block; *late*: in a block, but "
    f"not in the first one after their slot, which has to come within {SLOTS_PER_EPOCH} slots; *wrong head*: for "
    "another block than the newest of the chain in their slot. What is in a block has the right source, and the right "
    "target unless it is said. *Sync bits*: those of the block of the next slot; where there is none, a block was "
    "missed and its bits are not counted. In brackets, of what was missed: what *no live node could have carried*. A "
    "node was live in a slot if no fault held it in any part of the slot, from the moment it was broken until it "
    "followed the chain again, and if it said in the first third of the slot what its head was and that it was "
    "verified. A block or an attestation is in brackets only if no node was live in its slot, or, an attestation, if "
    f"no block came in the {SLOTS_PER_EPOCH} slots after it, or if the network had no block of its epoch when it was "
    "due, be it because the client itself missed its blocks: Lodestar 1.5.1 puts no vote into a block whose head is "
    "from an earlier epoch than its target. What else is missing a live node could have carried. A fault has "
    "the slots from the one it begins in up to the next fault."
)

LODESTAR = (
    "Lodestar's validator client sends everything to its first node alone as long as that one has not failed; the "
    "others are asked after an error or a time-out. So a fault of the first node is the one that it feels. While "
    "that node is cut off, the blocks that it makes are on no other: in a chain of the client's own validators "
    "they are late, among others' they would be lost. It begins with a slot when its duties of the slot before "
    "are done, for which slots of 2 s leave a sixth of the time that those of 12 s do."
)


def _setting(recordings: Sequence[Recording]) -> str:
    run = recordings[0]
    held = next((held for one in recordings for held in one.faults), None)
    text = (
        f"Three beacon nodes ({run.version}) and a fourth one on one chain with slots of {run.slot_duration} s, one "
        "validator client with all eight validators and the three nodes, in the same order for each client. The "
        f"example uses vc-fallback {version('vc-fallback')}."
    )
    if held:
        text += (
            f" One node at a time fails for {held.fault.held * run.slot_duration:.0f} s, at the same moment since "
            "genesis for each client: killed (SIGKILL) and started again, frozen (SIGSTOP), cut off from all peers, "
            "its execution layer syncing, or unreachable; the next one when it follows the chain again."
        )
    return text


def _title(run: Recording) -> str:
    return f"{TITLES[run.client]}, {'with' if run.faults else 'without'} faults"


def _cells(tally: Tally) -> tuple[object, ...]:
    return (
        tally.slots,
        _bracketed(tally.blocks_missed, tally.excused_blocks),
        tally.blocks_late,
        tally.attestations,
        _bracketed(tally.missed, tally.excused),
        tally.late,
        _with_target(tally),
        tally.sync_bits,
        tally.sync_missed,
    )


def _bracketed(missed: int, excused: int) -> str:
    return f"{missed} ({excused})" if excused else str(missed)


def _with_target(tally: Tally) -> str:
    return f"{tally.wrong_head}, target {tally.wrong_target}" if tally.wrong_target else str(tally.wrong_head)


def _whole(run: Recording, found: Figures) -> Sequence[object]:
    return (TITLES[run.client], len(run.faults) or "none", *_cells(found.total))


def _by_fault(found: Figures) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = []
    for kind in KINDS:
        mine = sorted(
            ((held.fault.node, tally) for held, tally in found.by_fault if held.fault.kind == kind),
            key=lambda row: row[0],
        )
        rows += [
            (kind, node, *_cells(summed([tally for other, tally in mine if other == node])))
            for node in sorted({node for node, _ in mine})
        ]
        if len({node for node, _ in mine}) > 1:
            rows.append((kind, "all", *_cells(summed([tally for _, tally in mine]))))
    if found.before.slots:
        rows.append(("before the first", "", *_cells(found.before)))
    return rows


LOSS_COLUMNS = (
    *("slot", "fault", "of node", "slots since", "block", "seen after, s", "attestations missed", "late", "wrong head"),
    *("sync bits missed", "live nodes"),
)


def _loss(loss: Loss) -> Sequence[object]:
    record = loss.record
    return (
        record.slot,
        loss.held.fault.kind if loss.held else "",
        loss.held.fault.node if loss.held else "",
        record.slot - int(loss.held.broken) if loss.held else "",
        "there" if record.block else "missed",
        record.shown,
        len(record.missed),
        len(record.late),
        len(record.wrong_head),
        record.sync_missed,
        loss.live,
    )
