"""Plain lines show a person what matters, one line each, and keep quiet about the rest."""

from dataclasses import replace
from typing import Any

import pytest

from tests.health_told import health, recovered, recovering, suspect, unhealthy, well
from vc_fallback.base.health_signals import (
    AllUnhealthy,
    BranchesDiffer,
    ClockDoubted,
    DutiesMoved,
    FinalityDiffers,
)
from vc_fallback.base.signals import (
    ChainReorged,
    DependentRootChanged,
    GateChanged,
    GenerationChanged,
    HeadDelivered,
    HeadOutcome,
    NodeHeadSeen,
    NodeQuarantined,
    ReorgEvidence,
    Signal,
    Started,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import BlockRef, Epoch, HeadSource, NodeId, PayloadStatus, Root, Slot, Tier
from vc_fallback.observe.plain import PlainLines

A, B = NodeId("a:1"), NodeId("b:1")
ROOT = Root(bytes.fromhex("AB" * 32))


class Lines:
    """A :class:`PlainLines` and what it wrote; loop time 0 is noon."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.observer = PlainLines(lambda at: at + 12 * 3600, self.written.append)

    def of(self, *signals: Signal) -> list[str]:
        for signal in signals:
            self.observer(signal)
        return self.written


def delivered(**changes: Any) -> HeadDelivered:
    values: dict[str, Any] = {
        "at": 10.5,
        "node_id": A,
        "tier": Tier.PRIMARY,
        "slot": Slot(7),
        "root": ROOT,
        "generation": 1,
        "source": HeadSource.STREAM,
        "received": 10.25,
        "delay": 0.25,
        "optimistic": False,
        "payload_status": None,
        "late": False,
        "reorg": False,
        "seen_by": (A, B),
    }
    return HeadDelivered(**values | changes)


def seen(outcome: HeadOutcome, node_id: NodeId = A) -> NodeHeadSeen:
    return NodeHeadSeen(10.5, node_id, Slot(7), ROOT, 1, HeadSource.STREAM, 10.25, outcome)


def stream(state: StreamState, reason: StreamReason, failures: int = 0, retry_in: float | None = None) -> StreamChanged:
    return StreamChanged(11.0, A, 2, state, None, reason, "", failures, retry_in)


def test_a_delivered_head_is_one_line() -> None:
    assert Lines().of(delivered()) == ["12:00:10.500  head    slot 7  0xabababab…  +0.250 s  a:1  seen by 2"]


def test_what_is_special_about_a_head_stands_at_the_end_of_its_line() -> None:
    changes = {
        "late": True,
        "reorg": True,
        "optimistic": True,
        "source": HeadSource.POLL,
        "payload_status": PayloadStatus.FULL,
    }
    (line,) = Lines().of(delivered(**changes))
    assert line.endswith("seen by 2  late  reorg  optimistic  polled  payload full")


def test_duplicates_and_votes_have_no_line() -> None:
    quiet = (HeadOutcome.DELIVERED, HeadOutcome.DUPLICATE, HeadOutcome.BEHIND, HeadOutcome.TIER)
    assert Lines().of(*map(seen, quiet)) == []


def test_a_head_that_is_refused_is_shown_when_the_reason_is_new_for_its_node() -> None:
    lines = Lines().of(
        seen(HeadOutcome.OPTIMISTIC),
        seen(HeadOutcome.OPTIMISTIC),
        seen(HeadOutcome.OPTIMISTIC, B),
        seen(HeadOutcome.DELIVERED),
        seen(HeadOutcome.OPTIMISTIC),
        seen(HeadOutcome.WRONG_CHAIN),
    )
    assert [line.split("  ")[-2:] for line in lines] == [
        [A, "optimistic"],
        [B, "optimistic"],
        [A, "optimistic"],
        [A, "wrong chain"],
    ]


def test_the_steps_of_a_connection_are_left_out_and_failures_thin_out() -> None:
    lines = Lines()
    for failures in range(1, 10):
        lines.of(
            stream(StreamState.CONNECTING, StreamReason.RETRY, failures - 1),
            stream(StreamState.REQUESTED, StreamReason.REQUEST_SENT, failures - 1),
            stream(StreamState.BACKOFF, StreamReason.REFUSED, failures, 4.0),
        )
    assert [line.split(", ")[1] for line in lines.written] == [f"failure {n}" for n in (1, 2, 4, 8)]
    assert lines.written[0] == "12:00:11.000  stream  a:1  backoff: refused, failure 1, next attempt in 4.0 s"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (StreamState.FRESH, StreamReason.CURRENT_HEAD),
        (StreamState.STALLED, StreamReason.HEAD_SILENCE),
        (StreamState.STOPPED, StreamReason.REMOVED),
        (StreamState.OPEN, StreamReason.RESPONSE),
        (StreamState.CONNECTING, StreamReason.TOPICS_REDUCED),
        (StreamState.REQUESTED, StreamReason.QUARANTINED),
    ],
)
def test_changes_worth_knowing_have_a_line(state: StreamState, reason: StreamReason) -> None:
    assert Lines().of(stream(state, reason)) == [f"12:00:11.000  stream  a:1  {state}: {reason.replace('_', ' ')}"]


def test_the_end_of_the_monitor_is_not_told_stream_by_stream() -> None:
    assert Lines().of(stream(StreamState.STOPPED, StreamReason.CLOSED)) == []


def test_a_nodes_words_stay_on_their_line_and_lose_their_secrets() -> None:
    detail = "see\nhttps://u:pw@host/token\x1b[2J"
    (line,) = Lines().of(StreamChanged(1.0, A, 1, StreamState.BACKOFF, False, StreamReason.REFUSED, detail, 1, 1.0))
    assert "pw" not in line
    assert "token" not in line
    assert "://" not in line
    assert line.isprintable()


def test_a_change_of_the_list_names_the_nodes() -> None:
    (line,) = Lines().of(GenerationChanged(3.0, 2, (A,), (), (), (B,)))
    assert line == "12:00:03.000  list    generation 2  added a:1  kept b:1"


def test_quarantine_is_said_with_its_reason_and_its_end() -> None:
    first, second = Lines().of(NodeQuarantined(1.0, A, 1, "genesis_time differs"), NodeQuarantined(2.0, A, 1, ""))
    assert first.endswith("chain   a:1  quarantined: genesis_time differs")
    assert second.endswith("chain   a:1  fits the chain again")


def test_the_gate_says_who_holds_it_or_why_it_is_open() -> None:
    """C5, C6."""
    closed, opened = Lines().of(
        GateChanged(1.0, False, A, "held by a primary"), GateChanged(2.0, True, None, "a:1: stream stalled")
    )
    assert closed == "12:00:01.000  gate    closed, held by a:1"
    assert opened == "12:00:02.000  gate    open, heads of fallbacks are delivered: a:1: stream stalled"


def test_a_changed_dependent_root_is_one_line() -> None:
    """C11."""
    (line,) = Lines().of(DependentRootChanged(1.0, Epoch(3), ROOT, Root(bytes.fromhex("CD" * 32)), (A, B)))
    assert line == "12:00:01.000  roots   epoch 3  0xabababab… became 0xcdcdcdcd…  shown by a:1, b:1"


def test_a_reorg_is_one_line() -> None:
    """C11: what is not known is not in it."""
    reorg = ChainReorged(
        1.0,
        node_id=A,
        generation=1,
        received=1.0,
        old=BlockRef(Slot(9), ROOT),
        new=BlockRef(Slot(9), Root(bytes.fromhex("CD" * 32))),
        epoch=Epoch(0),
        depth=2,
        crosses_epoch=True,
        changed_roots=(),
        touches_current_duties=True,
        touches_next_duties=True,
        evidence=ReorgEvidence.REPORTED,
        reported_by=(A, B),
        nodes=(A, B),
    )
    unknown = replace(reorg, depth=None, crosses_epoch=None, touches_current_duties=None, reported_by=())
    untouched = replace(reorg, crosses_epoch=False, touches_current_duties=False, touches_next_duties=None)
    blocks = "slot 9 0xabababab… left for slot 9 0xcdcdcdcd…"
    all_of_it = "depth 2, crosses an epoch, touches duties of the present and the next epoch"
    assert Lines().of(reorg, unknown, untouched) == [
        f"12:00:01.000  reorg   {blocks}, {all_of_it}, reported by a:1, b:1",
        f"12:00:01.000  reorg   {blocks}, touches duties of the next epoch, reported by no node",
        f"12:00:01.000  reorg   {blocks}, depth 2, reported by a:1, b:1",
    ]


def test_the_turns_of_a_nodes_health_have_a_line_each_with_the_reason() -> None:
    """N1, N4."""
    assert Lines().of(
        well(at=0.0),
        suspect(at=1.0),
        unhealthy(at=3.0),
        recovering(at=9.0),
        recovered(at=10.5),
        health(at=11.0, rank=2),
    ) == [
        "12:00:01.000  health  a:1  suspect: 1 failed check in a row: refused",
        "12:00:03.000  health  a:1  unhealthy: 3 failed checks in a row: refused",
        "12:00:09.000  health  a:1  recovering: 1 of 3 good checks in a row",
        "12:00:10.500  health  a:1  healthy again after 9.5 s: 3 good checks in a row",
    ]


def test_what_a_node_says_of_itself_has_a_line_where_it_changes() -> None:
    """N6."""
    lines = Lines().of(
        health(), health(optimistic=True), health(), health(el_offline=True, suspect=True, detail="x"), health()
    )
    assert [line.split("  ", 3)[3] for line in lines] == [
        "optimistic: it follows blocks that its execution layer has not verified",
        "optimistic no more",
        "suspect: x, its execution layer is offline",
        "healthy again after 0.0 s: answers checks, its execution layer is back",
    ]


def test_a_node_that_flaps_is_told_at_one_two_four_and_eight() -> None:
    """H9; case 31."""
    lines = Lines()
    for at in range(0, 90, 10):
        lines.of(suspect(at=at), well(at=at + 2))
    assert len([line for line in lines.written if "suspect" in line]) == 4
    assert len([line for line in lines.written if "healthy again" in line]) == 4


def test_duties_that_move_say_from_whom_to_whom_and_why() -> None:
    """N9."""
    assert Lines().of(
        DutiesMoved(1.0, "start", None, B, "the first by rank"),
        DutiesMoved(1.5, "start", B, A, "a:1 ranks higher and is steady"),
        DutiesMoved(2.0, "failover", A, B, "a:1: 9 slots behind the tip"),
        DutiesMoved(3.0, "failback", B, A, "a:1 ranks higher and is steady"),
        DutiesMoved(4.0, "failover", A, None, "a:1: left the list"),
    ) == [
        "12:00:01.000  duties  b:1 has the duties: the first by rank",
        "12:00:01.500  duties  a:1 has the duties: a:1 ranks higher and is steady",
        "12:00:02.000  duties  failover from a:1 to b:1: a:1: 9 slots behind the tip",
        "12:00:03.000  duties  failback from b:1 to a:1: a:1 ranks higher and is steady",
        "12:00:04.000  duties  failover from a:1 to no node: a:1: left the list",
    ]


def test_alarms_say_what_is_wrong_and_what_is_well_again() -> None:
    """N3, N8, N10."""
    roots = {ROOT: (A,), Root(bytes(32)): (B,)}
    assert Lines().of(
        AllUnhealthy(1.0, True),
        AllUnhealthy(2.0, False),
        BranchesDiffer(3.0, Slot(9), None, "", roots),
        BranchesDiffer(4.0, Slot(9), B, "2 of 3 nodes have 0xabababab at slot 8", {}),
        BranchesDiffer(5.0, Slot(11), B, "", {}),
        BranchesDiffer(6.0, Slot(12), None, "", {}),
        FinalityDiffers(7.0, Epoch(4), roots),
        ClockDoubted(8.0, A, "a head came 0.31 s before its slot"),
        ClockDoubted(9.0, None, "3 nodes say that our slots are in the future"),
        ClockDoubted(10.0, A, ""),
        ClockDoubted(11.0, None, ""),
        BranchesDiffer(12.0, Slot(40), A, "2 of 3 nodes have 0xabababab at slot 39", {}),
        BranchesDiffer(13.0, None, A, "", {}),
    ) == [
        "12:00:01.000  alarm   no node is healthy any more: requests are still tried, in order of rank",
        "12:00:02.000  alarm   a node is healthy again",
        "12:00:03.000  branch  the nodes are on different branches at slot 9: 0xabababab… (a:1), 0x00000000… (b:1)",
        "12:00:04.000  branch  b:1 is on another branch than the others: 2 of 3 nodes have 0xabababab at slot 8",
        "12:00:05.000  branch  b:1 is on the branch of the others again",
        "12:00:06.000  branch  the nodes are on one branch again",
        "12:00:07.000  alarm   nodes have finalized different blocks for epoch 4: 0xabababab… (a:1), 0x00000000… (b:1)",
        "12:00:08.000  clock   the clock of a:1 is in doubt: a head came 0.31 s before its slot",
        "12:00:09.000  clock   our own clock is in doubt: 3 nodes say that our slots are in the future",
        "12:00:10.000  clock   the clock of a:1 is in doubt no more",
        "12:00:11.000  clock   our own clock is in doubt no more",
        "12:00:12.000  branch  a:1 is on another branch than the others: 2 of 3 nodes have 0xabababab at slot 39",
        "12:00:13.000  branch  a:1 is no longer compared with the others",
    ]


def test_health_holds_no_secrets_of_a_nodes_words() -> None:
    """Rule 11."""
    detail = "see\nhttps://u:pw@host/token\x1b[2J"
    lines = Lines().of(
        unhealthy(detail=detail),
        DutiesMoved(1.0, "failover", A, B, detail),
        ClockDoubted(1.0, A, detail),
        BranchesDiffer(1.0, None, A, detail, {}),
    )
    assert len(lines) == 4
    for line in lines:
        assert line.isprintable()
        assert "<url>" in line
        assert "pw" not in line


def test_the_summary_counts_failovers_and_failbacks() -> None:
    """N9."""
    lines = Lines()
    lines.of(
        DutiesMoved(1.0, "start", None, A, ""),
        DutiesMoved(2.0, "failover", A, B, ""),
        DutiesMoved(3.0, "failback", B, A, ""),
        DutiesMoved(4.0, "failover", A, B, ""),
    )
    first = lines.observer.summary(20.0).splitlines()[0]
    assert first == "12:00:20.000  end     0 heads delivered, 2 failovers, 1 failback"


def test_the_start_names_the_nodes_and_then_the_chain() -> None:
    nodes = ((A, Tier.PRIMARY), (B, Tier.FALLBACK))
    first, second = Lines().of(Started(0.0, nodes, None, None), Started(1.0, nodes, 1_606_824_023.0, 12.0))
    assert first.endswith("start   1970-01-01 UTC, asking for the chain: a:1 (primary), b:1 (fallback)")
    assert "slots of 12 s since 2020-12-01 12:00:23 UTC" in second


def test_a_genesis_beyond_the_calendar_is_shown_as_a_number() -> None:
    (line,) = Lines().of(Started(1.0, (), 1e300, 12.0))
    assert "slots of 12 s since 1" in line


def test_the_summary_is_a_table() -> None:
    lines = Lines()
    lines.of(
        Started(0.0, ((A, Tier.PRIMARY), (NodeId("a-longer-name:5052"), Tier.PRIMARY)), None, None),
        delivered(),
        seen(HeadOutcome.DELIVERED),
    )
    assert lines.observer.summary(20.0).splitlines() == [
        "12:00:20.000  end     1 heads delivered, 0 failovers, 0 failbacks",
        "  node                  heads  reconnects  stalls   last slot",
        "  a:1                       1           0       0           7",
        "  a-longer-name:5052        0           0       0           -",
    ]
