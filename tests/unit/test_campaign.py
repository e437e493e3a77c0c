"""What `scripts/minimal-vc` counts, and how it ends; the campaigns themselves are in `tests/devnet`."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.campaign.__main__ import main
from scripts.campaign.chain import Block, EpochDuties, Vote, judge, parse_block, parse_committees
from scripts.campaign.figures import figures, live_nodes
from scripts.campaign.jobs import INTERRUPTED, RECORDING, Job, start
from scripts.campaign.page import page
from scripts.campaign.plan import CYCLE, FIRST_SLOT, KINDS, NODES, Fault, plan
from scripts.campaign.run import Held, Recording
from scripts.campaign.witness import Probe

FIRST = 16
SLOTS = range(FIRST, FIRST + 8)
DUTIES = [
    EpochDuties(epoch, {slot: slot % 8 for slot in slots}, {slot: [[slot % 8]] for slot in slots})
    for epoch, slots in ((epoch, range(8 * epoch, 8 * epoch + 8)) for epoch in range(5))
]
"""In each slot one validator proposes and attests."""


def root(slot: int) -> str:
    return f"0x{slot:064x}"


def vote(slot: int, *, head: int | None = None, target: int | None = None) -> Vote:
    epoch = slot // 8
    return Vote(
        slot,
        committee=0,
        bits=(True,),
        head=root(slot if head is None else head),
        source=(epoch - 1, root(8 * (epoch - 1))),
        target=(epoch, root(8 * epoch if target is None else target)),
    )


def block(slot: int, *votes: Vote, sync: int = 32) -> Block:
    return Block(slot, root(slot), slot % 8, votes, (True,) * sync + (False,) * (32 - sync))


def chain(*others: Block, without: Sequence[int] = ()) -> list[Block]:
    """A block in every slot with the vote of the slot before, but for the others, and those that are missing."""
    blocks = {slot: block(slot, vote(slot - 1)) for slot in range(8, 40) if slot not in without}
    return list((blocks | {other.slot: other for other in others}).values())


def recording(blocks: list[Block], faults: Sequence[Held] = (), silent: Sequence[tuple[int, int]] = ()) -> Recording:
    """A run of which only the chain matters, and which nodes were silent in which slots."""
    nodes = range(1, NODES + 1)
    return Recording(
        client="lodestar",
        slot_duration=2,
        first=FIRST,
        last=SLOTS[-1],
        faults=list(faults),
        blocks=blocks,
        duties=DUTIES,
        shown={root(slot): 0.1 for slot in range(40)},
        probes=[
            Probe(slot, node, 0.01, -1 if (slot, node) in silent else slot - 1) for slot in SLOTS for node in nodes
        ],
        finalized=(0, 2),
        version="Lodestar/v1.5.1",
        began=1.8e9,
        load=(0.0, 0.0),
        status=None,
    )


def test_a_chain_that_lacks_nothing() -> None:
    for record in judge(chain(), DUTIES, {}, SLOTS):
        assert record.block
        assert record.included == {record.slot % 8: record.slot + 1}
        assert [record.missed, record.late, record.wrong_head, record.wrong_target] == [[]] * 4
        assert (record.sync_due, record.sync_missed) == (32, 0)


def test_a_vote_that_the_first_block_after_its_slot_lacks_is_late_and_one_that_none_has_is_missed() -> None:
    blocks = chain(block(19), block(20, vote(18), vote(19)), block(21))
    records = {record.slot: record for record in judge(blocks, DUTIES, {}, SLOTS)}
    assert (records[18].late, records[18].missed) == ([2], [])
    assert (records[19].late, records[19].missed) == ([], [])
    assert (records[20].late, records[20].missed) == ([], [4])


def test_a_vote_is_not_late_where_the_next_slot_has_no_block() -> None:
    blocks = chain(block(20, vote(18), vote(19, head=18)), without=[19])
    records = {record.slot: record for record in judge(blocks, DUTIES, {}, SLOTS)}
    assert [slot for slot, record in records.items() if not record.block] == [19]
    assert not any(record.late or record.missed or record.wrong_head for record in records.values())
    assert (records[18].sync_due, records[19].sync_due) == (0, 32)


def test_votes_for_an_old_head_or_another_target_are_wrong() -> None:
    blocks = chain(block(19, vote(18, head=17)), block(20, vote(19, target=15)), block(21, vote(20), sync=20))
    records = {record.slot: record for record in judge(blocks, DUTIES, {}, SLOTS)}
    assert [slot for slot, record in records.items() if record.wrong_head] == [18]
    assert [slot for slot, record in records.items() if record.wrong_target] == [19]
    assert {slot: record.sync_missed for slot, record in records.items() if record.sync_missed} == {20: 12}


def test_a_block_and_committees_are_read_from_what_a_node_says() -> None:
    data = {
        "slot": "9",
        "index": "1",
        "beacon_block_root": "0xAB",
        "source": {"epoch": "0", "root": "0x00"},
        "target": {"epoch": "1", "root": "0x01"},
    }
    body = {
        "attestations": [{"aggregation_bits": "0x0d", "data": data}],
        "sync_aggregate": {"sync_committee_bits": "0xff0f"},
    }
    answer = {"data": {"message": {"slot": "10", "proposer_index": "7", "body": body}}}
    expected = Vote(9, 1, (True, False, True), "0xab", (0, "0x00"), (1, "0x01"))
    assert parse_block(answer, "0xCD") == Block(10, "0xcd", 7, (expected,), (True,) * 12 + (False,) * 4)
    duties = [
        {
            "slot": "9",
            "committees_at_slot": "2",
            "committee_index": str(committee),
            "committee_length": "2",
            "validator_committee_index": str(place),
            "validator_index": str(validator),
        }
        for validator, committee, place in ((5, 1, 1), (6, 0, 0), (3, 1, 0), (4, 0, 1))
    ]
    assert parse_committees({"data": duties}) == {9: [[6, 4], [3, 5]]}


def test_what_is_missing_is_excused_only_where_no_node_was_live() -> None:
    """A node is live unless a fault holds it until it follows the chain again, or it was silent."""
    fault = Held(Fault("killed", 1, 18.3), 18.3, 19.3, 20.6)
    lost = [18, 20, 22]
    blocks = chain(*(block(slot + 1, vote(slot - 1), vote(slot, head=slot - 1)) for slot in lost), without=lost)
    silent = [(slot, node) for slot in (18, 20, 22) for node in (2, 3)]
    found = figures(recording(blocks, [fault], silent))
    assert found.total.blocks_missed == 3
    assert found.total.excused_blocks == 2
    assert [(loss.record.slot, loss.live) for loss in found.losses] == [(18, 0), (20, 0), (22, 1)]


def test_a_node_that_does_not_come_back_is_live_no_more() -> None:
    run = recording(chain(), [Held(Fault("killed", 1, 18.3), 18.3, 19.3, None)])
    assert [sorted(live_nodes(run, slot)) for slot in (17, 18, 23)] == [[1, 2, 3], [2, 3], [2, 3]]


def test_a_vote_that_no_block_followed_is_excused() -> None:
    blocks = [one for one in chain() if one.slot <= FIRST + 1]
    found = figures(recording(blocks))
    assert (found.total.missed, found.total.excused) == (7, 7)
    assert (found.total.blocks_missed, found.total.excused_blocks) == (6, 0)


def test_a_vote_without_a_block_of_its_epoch_is_excused() -> None:
    """Lodestar puts it into no block; a vote that comes later in the epoch is not excused by that."""
    run = recording(chain(block(17), block(18, vote(17)), block(19), block(20, vote(19))))
    run.shown[root(16)] = 0.7
    found = figures(run)
    assert [loss.record.slot for loss in found.losses if loss.record.missed] == [16, 18]
    assert (found.total.missed, found.total.excused, found.total.blocks_late) == (2, 1, 1)


def test_each_fault_has_the_slots_up_to_the_next_one() -> None:
    faults = [Held(Fault("frozen", 2, start), start, start + 1, start + 2) for start in (18.9, 21.1)]
    found = figures(recording(chain(without=[20, 22, 23]), faults))
    assert [tally.slots for _, tally in found.by_fault] == [3, 3]
    assert [tally.blocks_missed for _, tally in found.by_fault] == [1, 2]
    assert (found.before.slots, found.before.blocks_missed, found.total.slots) == (2, 0, 8)


def test_a_block_that_the_network_had_after_attestations_were_due_is_late() -> None:
    run = recording(chain())
    run.shown[root(18)] = 0.7
    del run.shown[root(19)]
    assert figures(run).total.blocks_late == 2


def test_the_plan_has_every_node_in_every_trouble_and_leaves_time_between() -> None:
    faults = plan(NODES * len(KINDS))
    assert {(fault.kind, fault.node) for fault in faults} == {
        (kind, node) for kind in KINDS for node in range(1, NODES + 1)
    }
    assert faults[0].start >= FIRST_SLOT
    for number, fault in enumerate(faults):
        assert FIRST_SLOT + CYCLE * number <= fault.start < fault.start + fault.held < FIRST_SLOT + CYCLE * (number + 1)
    assert plan(3) == faults[:3]


def test_three_kinds_have_every_node_too() -> None:
    faults = plan(9, kinds=KINDS[:3])
    assert len({(fault.kind, fault.node) for fault in faults}) == 9


def test_tables_of_a_kept_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fault = Held(Fault("killed", 1, 18.3), 18.3, 19.3, 20.6)
    run = recording(chain(without=[20]), [fault])
    (tmp_path / "lodestar-faults.json").write_bytes(RECORDING.dump_json(run))
    assert main(["--read", str(tmp_path)]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| killed")]
    assert [cell.strip() for cell in rows[0].split("|")[1:7]] == ["killed", "1", "6", "1", "0", "6"]
    page([recording(chain())], "scripts/minimal-vc --no-faults")


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["--client", "other"], 2, "invalid choice"),
        (["--minutes", "0"], 2, "from 0.5 to 600"),
        (["--together"], 2, "--client both"),
        (["--read", "nowhere"], 1, "nothing was kept in nowhere"),
    ],
)
def test_misuse_and_failure_are_one_line(
    words: list[str], status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found: object = main(words)
    except SystemExit as end:
        found = end.code
    error = capsys.readouterr().err
    assert found == status
    assert error.count("\n") == 1
    assert says in error


@pytest.fixture
def job() -> Job:
    """One that is still waiting for its time."""
    return Job("lodestar", [], 20, 2, int(time.time()) + 3600)


def test_a_campaign_ends_with_the_process_that_wanted_it(job: Job, tmp_path: Path) -> None:
    child = start(job, tmp_path / "recording.json")
    time.sleep(0.3)
    assert child.poll() is None
    child.communicate(timeout=20)
    assert child.returncode == INTERRUPTED
