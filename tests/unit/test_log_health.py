"""What the log says of health: turns with their reason, moves of duties, alarms; no chatter (H9, N9)."""

import logging

import pytest

from tests.health_told import health, recovered, recovering, suspect, unhealthy, well
from vc_fallback.base.health_signals import AllUnhealthy, BranchesDiffer, ClockDoubted, DutiesMoved, FinalityDiffers
from vc_fallback.base.signals import Signal
from vc_fallback.base.types import Epoch, NodeId, Root, Slot
from vc_fallback.observe.log import FailureLog

A, B = NodeId("a:1"), NodeId("b:1")
ROOT, OTHER = Root(b"\xaa" * 32), Root(b"\xbb" * 32)
AA, BB = "0x" + "aa" * 32, "0x" + "bb" * 32


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def said(log: pytest.LogCaptureFixture, *signals: Signal, level: int = logging.INFO) -> list[tuple[int, str]]:
    """What a new observer logs from a level on."""
    observer = FailureLog()
    log.clear()
    for signal in signals:
        observer(signal)
    return [(record.levelno, record.getMessage()) for record in log.records if record.levelno >= level]


def test_a_node_that_fails_warns_with_the_reason_and_its_recovery_says_how_long_it_was_gone(
    log: pytest.LogCaptureFixture,
) -> None:
    """H9, N1: the steps on the way back are for debugging."""
    assert said(
        log,
        well(),
        suspect(at=1.0),
        unhealthy(at=3.0),
        recovering(at=9.0),
        recovered(at=10.5),
        health(at=11.0, rank=2),
        level=logging.DEBUG,
    ) == [
        (logging.WARNING, "a:1: suspect: 1 failed check in a row: refused"),
        (logging.WARNING, "a:1: unhealthy: 3 failed checks in a row: refused"),
        (logging.DEBUG, "a:1: recovering: 1 of 3 good checks in a row"),
        (logging.INFO, "a:1: healthy again after 9.5 s: 3 good checks in a row"),
    ]


def test_a_node_that_flaps_warns_at_one_two_four_and_eight_only(log: pytest.LogCaptureFixture) -> None:
    """H9; case 31. What is not said aloud is there for debugging."""
    signals = [signal for at in range(0, 90, 10) for signal in (suspect(at=at), well(at=at + 2))]
    assert [level for level, _ in said(log, *signals)] == [logging.WARNING, logging.INFO] * 4
    assert len(said(log, *signals, level=logging.DEBUG)) == 18
    flags = [health(at=float(at), optimistic=at % 2 == 0) for at in range(18)]
    assert [level for level, _ in said(log, *flags)] == [logging.WARNING, logging.INFO] * 4


def test_optimistic_and_an_execution_layer_offline_warn(log: pytest.LogCaptureFixture) -> None:
    assert [level for level, _ in said(log, health(optimistic=True), health(el_offline=True), health())] == [
        logging.WARNING,
        logging.INFO,
        logging.WARNING,
        logging.INFO,
    ]


def test_failover_and_failback_are_info_with_the_reason(log: pytest.LogCaptureFixture) -> None:
    """N9."""
    assert said(
        log,
        DutiesMoved(0.0, "start", None, A, "the first by rank"),
        DutiesMoved(1.0, "failover", A, B, "a:1: 9 slots behind the tip"),
        DutiesMoved(2.0, "failback", B, A, "a:1 ranks higher and is steady"),
    ) == [
        (logging.INFO, "a:1 has the duties: the first by rank"),
        (logging.INFO, "failover from a:1 to b:1: a:1: 9 slots behind the tip"),
        (logging.INFO, "failback from b:1 to a:1: a:1 ranks higher and is steady"),
    ]


def test_all_unhealthy_is_one_error_line_each_time(log: pytest.LogCaptureFixture) -> None:
    """N10."""
    found = said(log, AllUnhealthy(1.0, True), AllUnhealthy(2.0, False), AllUnhealthy(3.0, True))
    assert [level for level, _ in found] == [logging.ERROR, logging.INFO, logging.ERROR]
    assert found[0][1] == "no node is healthy any more: requests are still tried, in order of rank"


def test_a_conflict_of_finality_is_critical_with_whole_roots(log: pytest.LogCaptureFixture) -> None:
    """N3."""
    assert said(log, FinalityDiffers(1.0, Epoch(7), {ROOT: (A,), OTHER: (B,)})) == [
        (logging.CRITICAL, f"nodes have finalized different blocks for epoch 7: {AA} (a:1), {BB} (b:1)")
    ]


def test_branches_warn_and_their_end_is_info(log: pytest.LogCaptureFixture) -> None:
    """N3: a fork that goes on is told slot by slot, and warned of in slots 1, 2, 4, 8."""
    roots = {ROOT: (A,), OTHER: (B,)}
    found = said(log, *(BranchesDiffer(12.0 * slot, Slot(slot), None, "", roots) for slot in range(1, 10)))
    assert [level for level, _ in found] == [logging.WARNING] * 4
    assert found[0][1] == f"the nodes are on different branches at slot 1: {AA} (a:1), {BB} (b:1)"
    assert said(log, BranchesDiffer(1.0, Slot(1), A, "2 of 3", {}), BranchesDiffer(2.0, Slot(3), A, "", {})) == [
        (logging.WARNING, "a:1 is on another branch than the others: 2 of 3"),
        (logging.INFO, "a:1 is on the branch of the others again"),
    ]
    assert said(log, BranchesDiffer(1.0, Slot(1), None, "", roots), BranchesDiffer(2.0, Slot(3), None, "", {})) == [
        (logging.WARNING, f"the nodes are on different branches at slot 1: {AA} (a:1), {BB} (b:1)"),
        (logging.INFO, "the nodes are on one branch again"),
    ]


def test_a_clock_in_doubt_warns(log: pytest.LogCaptureFixture) -> None:
    """N8."""
    twice = [ClockDoubted(float(at), None, "slow") for at in (1, 2, 3)]
    assert said(log, ClockDoubted(1.0, A, "late"), *twice) == [
        (logging.WARNING, "the clock of a:1 is in doubt: late"),
        (logging.WARNING, "our own clock is in doubt: slow"),
        (logging.WARNING, "our own clock is in doubt: slow"),
    ]
    assert said(log, ClockDoubted(1.0, A, "late"), ClockDoubted(2.0, A, "")) == [
        (logging.WARNING, "the clock of a:1 is in doubt: late"),
        (logging.INFO, "the clock of a:1 is in doubt no more"),
    ]


def test_a_nodes_words_are_logged_on_one_line_without_secrets(log: pytest.LogCaptureFixture) -> None:
    """Rule 11."""
    detail = "gone to\nhttps://u:pw@host/token\x1b[31m"
    found = said(
        log, unhealthy(detail=detail), DutiesMoved(1.0, "failover", A, B, detail), ClockDoubted(1.0, A, detail)
    )
    assert len(found) == 3
    for _, text in found:
        assert text.isprintable()
        assert "<url>" in text
        assert "pw" not in text
