"""Plain lines show a person what matters, one line each, and keep quiet about the rest."""

from typing import Any

import pytest

from vc_fallback.base.signals import (
    DependentRootChanged,
    GateChanged,
    GenerationChanged,
    HeadDelivered,
    HeadOutcome,
    NodeHeadSeen,
    NodeQuarantined,
    Signal,
    Started,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import Epoch, HeadSource, NodeId, PayloadStatus, Root, Slot, Tier
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
