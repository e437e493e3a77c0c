"""The failure log is loud about failures 1, 2, 4, 8, … and says when a node is back (H9)."""

import logging

import pytest

from vc_fallback.base.signals import (
    ChainReorged,
    DependentRootChanged,
    GateChanged,
    GenerationChanged,
    HeadOutcome,
    NodeHeadSeen,
    NodeQuarantined,
    ReorgEvidence,
    Started,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import BlockRef, Epoch, HeadSource, NodeId, Root, Slot, Tier
from vc_fallback.observe.log import FailureLog

A = NodeId("a:1")


class Log:
    """A :class:`FailureLog`, and what it logged as (level, text)."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        self.observer = FailureLog()
        self._caplog = caplog
        self._at = 0.0

    def stream(self, state: StreamState, reason: StreamReason, failures: int = 0, at: float | None = None) -> None:
        self._at = self._at + 1 if at is None else at
        retry_in = 4.0 if state is StreamState.BACKOFF and failures else None
        self.observer(StreamChanged(self._at, A, 1, state, None, reason, "", failures, retry_in))

    def fail(self, failures: int, reason: StreamReason = StreamReason.CONNECT_FAILED, at: float | None = None) -> None:
        self.stream(StreamState.CONNECTING, StreamReason.RETRY, failures - 1)
        self.stream(StreamState.BACKOFF, reason, failures, at)

    def head(self, outcome: HeadOutcome, source: HeadSource = HeadSource.STREAM, at: float = 0.0) -> None:
        self.observer(NodeHeadSeen(at, A, Slot(1), Root(bytes(32)), 1, source, at, outcome))

    def records(self, level: int = logging.INFO) -> list[tuple[int, str]]:
        return [(record.levelno, record.getMessage()) for record in self._caplog.records if record.levelno >= level]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Log:
    return Log(caplog)


def test_nine_straight_failures_warn_at_one_two_four_and_eight_only(log: Log) -> None:
    """Scenario 51."""
    for failures in range(1, 10):
        log.fail(failures)
    warned = log.records()
    assert [text.split("failure ")[1].split()[0] for _, text in warned] == ["1", "2", "4", "8"]
    assert {level for level, _ in warned} == {logging.WARNING}
    assert warned[0][1] == "a:1: stream lost: connect_failed, failure 1 in a row, next attempt in 4.0 s"
    quiet = [text for level, text in log.records(logging.DEBUG) if "stream lost" in text and level == logging.DEBUG]
    assert len(quiet) == 5


def test_a_verdict_that_changes_while_the_stream_waits_is_no_failure(log: Log) -> None:
    """Scenario 51: the grace of a node that is down from the start runs out between two attempts."""
    log.fail(1)
    log.stream(StreamState.BACKOFF, StreamReason.START_GRACE_OVER)
    log.stream(StreamState.CONNECTING, StreamReason.HEAD_SILENCE)
    assert len(log.records()) == 1


def test_a_clean_end_is_quiet_but_counts_as_a_failure_in_a_row(log: Log) -> None:
    log.fail(1, StreamReason.ENDED)
    assert log.records() == []
    log.fail(2)
    assert [level for level, _ in log.records()] == [logging.WARNING]


def test_recovery_is_one_info_line_with_how_long_the_node_was_gone(log: Log) -> None:
    log.stream(StreamState.FRESH, StreamReason.CURRENT_HEAD)
    log.fail(1, at=100.0)
    log.fail(2, at=101.0)
    log.fail(3, at=103.0)
    log.stream(StreamState.FRESH, StreamReason.CURRENT_HEAD, at=112.5)
    log.stream(StreamState.FRESH, StreamReason.CURRENT_HEAD)
    log.head(HeadOutcome.DELIVERED)
    info = [text for level, text in log.records() if level == logging.INFO]
    assert info == ["a:1: fresh again after 12.5 s (3 failures)"]


def test_the_first_head_of_a_node_that_never_failed_is_no_recovery(log: Log) -> None:
    log.stream(StreamState.CONNECTING, StreamReason.STARTED)
    log.stream(StreamState.OPEN, StreamReason.RESPONSE)
    log.stream(StreamState.FRESH, StreamReason.CURRENT_HEAD)
    log.head(HeadOutcome.DELIVERED)
    assert log.records() == []


def test_a_short_absence_ends_with_a_head_and_not_with_an_answer(log: Log) -> None:
    """A node that answers and ends its stream again and again, fresh all the while by H6, has not recovered."""
    for failures in range(1, 10):
        log.stream(StreamState.FRESH, StreamReason.RESPONSE)
        log.head(HeadOutcome.DUPLICATE, HeadSource.POLL)
        log.head(HeadOutcome.BEHIND)
        log.fail(failures, StreamReason.BROKEN, at=float(failures))
    assert {level for level, _ in log.records()} == {logging.WARNING}
    log.stream(StreamState.FRESH, StreamReason.RESPONSE)
    log.head(HeadOutcome.DUPLICATE, at=11.0)
    assert log.records()[-1] == (logging.INFO, "a:1: fresh again after 10.0 s (9 failures)")


def test_a_stall_warns_once_until_the_stream_is_fresh(log: Log) -> None:
    log.stream(StreamState.STALLED, StreamReason.HEAD_SILENCE, at=10.0)
    log.stream(StreamState.STALLED, StreamReason.HEAD_SILENCE)
    log.stream(StreamState.FRESH, StreamReason.CURRENT_HEAD, at=14.0)
    log.stream(StreamState.STALLED, StreamReason.HEAD_SILENCE)
    levels, texts = zip(*log.records(), strict=True)
    assert levels == (logging.WARNING, logging.INFO, logging.WARNING)
    assert texts[0] == "a:1: stream stalled: head_silence"
    assert "fresh again after 4.0 s" in texts[1]


def test_a_node_that_stands_without_a_head_from_the_start_is_warned_about(log: Log) -> None:
    log.stream(StreamState.OPEN, StreamReason.RESPONSE)
    log.stream(StreamState.OPEN, StreamReason.START_GRACE_OVER)
    assert log.records() == [(logging.WARNING, "a:1: stream stalled: start_grace_over")]


def test_a_refused_topic_is_a_visible_warning(log: Log) -> None:
    """Scenario 17."""
    log.stream(StreamState.REQUESTED, StreamReason.TOPICS_REDUCED)
    assert log.records() == [(logging.WARNING, "a:1: asks for fewer topics: topics_reduced")]


def test_quarantine_is_an_error_once_for_each_mismatch(log: Log) -> None:
    for mismatch in ("genesis_time differs", "genesis_time differs", "preset differs", "", "preset differs"):
        log.observer(NodeQuarantined(1.0, A, 1, mismatch))
    errors = [text for level, text in log.records() if level == logging.ERROR]
    assert [text.rpartition(": ")[2] for text in errors] == ["genesis_time differs", "preset differs", "preset differs"]
    assert (logging.INFO, "a:1: fits the chain again") in log.records()


def test_a_gate_that_opens_is_a_warning_and_one_that_closes_is_not(log: Log) -> None:
    """C5, C6."""
    log.observer(GateChanged(1.0, False, A, "held by a primary"))
    log.observer(GateChanged(2.0, True, None, "a:1: stream stalled"))
    assert log.records() == [
        (logging.INFO, "tier gate closed, held by a:1"),
        (logging.WARNING, "tier gate open, heads of fallbacks are delivered: a:1: stream stalled"),
    ]


def test_a_reorg_is_info(log: Log) -> None:
    """C11."""
    log.observer(
        ChainReorged(
            1.0,
            node_id=A,
            generation=1,
            received=1.0,
            old=BlockRef(Slot(9), Root(bytes(32))),
            new=BlockRef(Slot(8), Root(b"\x01" * 32)),
            epoch=Epoch(0),
            depth=2,
            crosses_epoch=None,
            changed_roots=(),
            touches_current_duties=None,
            touches_next_duties=None,
            evidence=ReorgEvidence.REPORTED,
            reported_by=(A,),
            nodes=(A,),
        )
    )
    text = f"reorg: slot 9 0x{'00' * 32} left for slot 8 0x{'01' * 32}, depth 2, reported by {A}"
    assert log.records() == [(logging.INFO, text)]


def test_a_changed_dependent_root_is_info(log: Log) -> None:
    """C11."""
    log.observer(DependentRootChanged(1.0, Epoch(3), Root(bytes(32)), Root(b"\x01" * 32), (A,)))
    ((level, text),) = log.records()
    assert level == logging.INFO
    assert text == f"dependent root of epoch 3: 0x{'00' * 32} became 0x{'01' * 32}, shown by [a:1]"


def test_a_new_generation_is_info(log: Log) -> None:
    log.observer(GenerationChanged(1.0, 2, (NodeId("b"), NodeId("c")), (A,), (), ()))
    assert log.records() == [(logging.INFO, "generation 2: added [b, c], removed [a:1], changed [], kept []")]


def test_a_node_that_comes_back_into_the_list_begins_anew(log: Log) -> None:
    log.fail(1)
    log.observer(GenerationChanged(1.0, 2, (), (A,), (), ()))
    log.stream(StreamState.STOPPED, StreamReason.REMOVED)
    log.stream(StreamState.FRESH, StreamReason.CURRENT_HEAD)
    assert not [text for _, text in log.records() if "fresh again" in text]


def test_the_start_is_info(log: Log) -> None:
    nodes = ((A, Tier.PRIMARY),)
    log.observer(Started(0.0, nodes, None, None))
    log.observer(Started(0.0, nodes, 0.0, 12.0))
    assert [level for level, _ in log.records()] == [logging.INFO, logging.INFO]


def test_a_nodes_words_are_logged_on_one_line_without_secrets(log: Log) -> None:
    detail = "gone to\nhttps://u:pw@host/token\x1b[31m"
    log.observer(StreamChanged(1.0, A, 1, StreamState.BACKOFF, False, StreamReason.REFUSED, detail, 1, 1.0))
    ((_, text),) = log.records()
    assert "pw" not in text
    assert "token" not in text
    assert "://" not in text
    assert text.isprintable()
