"""The example validator client on real beacon nodes that fail one after the other: what the chain lacks in the end."""

from pathlib import Path

import pytest

from scripts.campaign.chain import SLOTS_PER_EPOCH
from scripts.campaign.figures import Loss, figures, is_excused
from scripts.campaign.plan import Kind, plan
from scripts.campaign.run import Recording, campaign
from scripts.lodestar.launch import VALIDATORS

KINDS: tuple[Kind, ...] = ("killed", "frozen", "cut off", "execution layer syncing")
FIRST, CYCLE, HELD, AFTER = 8, 10, 5.0, 3


def told(run: Recording, loss: Loss) -> str:
    """What was lost in a slot, and what the client itself said of its duties there that were not done."""
    lines = [line for line in run.lines if line["slot"] == loss.record.slot and line["outcome"] != "published"]
    return f"{loss}: {lines[:8]}"


@pytest.mark.timeout(240, func_only=True)
def test_it_loses_nothing_that_a_live_node_could_have_carried(tmp_path: Path, node_tools: None) -> None:
    """One of three nodes is killed, frozen, cut off, and without its execution layer; the others carry its duties."""
    faults = plan(len(KINDS), kinds=KINDS, cycle=CYCLE, held=HELD, first=FIRST)
    run = campaign("minimal", faults, CYCLE * len(KINDS), tmp_path / "nodes", first=FIRST, after=AFTER)
    found = figures(run)
    lost = [
        told(run, loss)
        for loss in found.losses
        if (loss.live and not loss.record.block)
        or (loss.record.missed and not is_excused(loss.record, live=bool(loss.live)))
    ]
    assert lost == []
    assert run.status == 0
    assert run.finalized[1] > run.finalized[0]
    assert_nothing_slashable(run)


def assert_nothing_slashable(run: Recording) -> None:
    """Each validator published one block in a slot and one vote in an epoch at most, and the guard has the last."""
    blocks: set[tuple[int, int]] = set()
    votes: set[tuple[int, int]] = set()
    for line in run.lines:
        if line["outcome"] == "published" and line["duty"] in ("block", "attestation"):
            of, mark = (blocks, line["slot"]) if line["duty"] == "block" else (votes, line["slot"] // SLOTS_PER_EPOCH)
            assert (line["validator"], mark) not in of
            of.add((line["validator"], mark))
    assert len(run.guard) == VALIDATORS
    for source, target, _ in run.guard.values():
        assert source < target
    # What was signed last may not have been published when the client was told to end.
    assert max(target for _, target, _ in run.guard.values()) >= max(epoch for _, epoch in votes)
    assert max(slot for _, _, slot in run.guard.values()) >= max(slot for _, slot in blocks)
