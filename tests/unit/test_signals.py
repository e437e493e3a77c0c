"""Signals go to every observer; one that raises is logged and costs nobody (design, rule 4)."""

import dataclasses
import logging

import pytest

from vc_fallback.base import signals
from vc_fallback.base.signals import HeadOutcome, NodeQuarantined, Observers, Signal, StreamReason, StreamState
from vc_fallback.base.types import NodeId

SIGNAL = NodeQuarantined(at=1.0, node_id=NodeId("n1"), generation=1, mismatch="genesis_time differs")


def test_every_observer_gets_every_signal_in_order() -> None:
    """The order of observers, at once."""
    got: list[tuple[str, Signal]] = []
    observers = Observers([lambda signal: got.append(("a", signal)), lambda signal: got.append(("b", signal))])
    observers(SIGNAL)
    assert got == [("a", SIGNAL), ("b", SIGNAL)]
    Observers()(SIGNAL)


def test_an_observer_that_raises_is_logged_and_costs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """The others get the signal, the caller goes on, and the log has the traceback."""
    got: list[Signal] = []

    def broken(signal: Signal) -> None:
        raise RuntimeError("a bug in an observer")

    with caplog.at_level(logging.ERROR):
        Observers([broken, got.append, broken])(SIGNAL)
    assert got == [SIGNAL]
    assert len(caplog.records) == 2
    assert caplog.records[0].name == "vc_fallback.base.signals"
    assert "NodeQuarantined" in caplog.records[0].getMessage()
    assert caplog.records[0].exc_info is not None


def test_an_interrupt_in_an_observer_is_not_swallowed() -> None:
    """Ctrl-C and cancellation are nobody's bug."""

    def interrupted(signal: Signal) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Observers([interrupted])(SIGNAL)


def test_later_changes_of_the_given_list_change_nothing() -> None:
    """An observer that adds observers must not make a loop."""
    given: list[signals.Observer] = []
    observers = Observers(given)
    given.append(lambda _: pytest.fail("called"))
    observers(SIGNAL)


def test_signals_are_frozen_and_all_have_a_time() -> None:
    """An observer cannot change what the next one sees."""
    kinds = [kind for kind in vars(signals).values() if isinstance(kind, type) and issubclass(kind, Signal)]
    assert len(kinds) >= 7
    for kind in kinds:
        assert dataclasses.fields(kind)[0].name == "at"
        assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        SIGNAL.mismatch = ""  # type: ignore[misc]


def test_the_closed_lists_are_closed() -> None:
    """They stand in JSON lines: a new one is a change of the format."""
    assert [str(state) for state in StreamState] == [
        "connecting",
        "requested",
        "open",
        "fresh",
        "stalled",
        "backoff",
        "stopped",
    ]
    assert {str(outcome) for outcome in HeadOutcome} == {
        "delivered",
        "duplicate",
        "behind",
        "optimistic",
        "tier",
        "future",
        "wrong_chain",
        "old",
    }
    assert len({str(reason) for reason in StreamReason}) == len(StreamReason)
