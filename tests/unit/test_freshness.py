"""The clocks of a head stream and what a verification means, as tables (H5, H6; scenarios 10, 11, 13, 18, 38b).

Times are written in slots after genesis; a stream is described by what is known of it.
"""

import math
from dataclasses import replace
from typing import Any

import pytest

from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import NodeId, Root, Slot
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.freshness import (
    Action,
    Verdict,
    announced,
    away_too_long,
    is_current,
    judge,
    state_of,
    subscription_healthy,
    unknown_start,
    verdict_ends,
    watchdog,
)
from vc_fallback.decide.ledger import NodeHead, StreamFacts
from vc_fallback.settings import StreamSettings
from vc_fallback.times import StreamTimes

SLOT = 12.0
CHAIN = ChainIdentity(genesis_time=1_000_000.0, genesis_validators_root=Root(b"g" * 32), slot_duration=SLOT)
SLOTS = SlotClock(CHAIN, offset=1_000_000.0)  # loop time 0 is genesis
TIMES = StreamTimes.of(StreamSettings(), SLOT)

VERIFY, REPLACE, RECONNECT = Action.VERIFY, Action.REPLACE, Action.RECONNECT
STALLED, NODE_BEHIND, MISSED = Verdict.STALLED, Verdict.BEHIND, Verdict.MISSED

_MOMENTS = ("started", "requested", "opened", "last_byte", "last_head_at", "last_current_at", "verified")


def stream(*, head: int | None = None, **facts: Any) -> StreamFacts:
    """Describe an open stream that began 10 slots after genesis; moments in slots, `head` is the last head's slot."""
    described: dict[str, Any] = {"started": 10.0, "requested": 10.0, "state": StreamState.OPEN, **facts}
    if head is not None:
        at = described.setdefault("last_head_at", head + 1 / 3)
        described["last_head"] = NodeHead(NodeId("n"), Slot(head), Root(b"h" * 32), received=at * SLOT)
        described.setdefault("last_current_at", at)
    for name in _MOMENTS:
        if described.get(name) is not None:
            described[name] *= SLOT
    return StreamFacts(**described)


def look(facts: StreamFacts, elsewhere: int | None, at: float, times: StreamTimes = TIMES) -> Action | None:
    newest = None if elsewhere is None else Slot(elsewhere)
    return watchdog(facts, newest, at * SLOT, SLOTS, times).due


def healthy(facts: StreamFacts, at: float, times: StreamTimes = TIMES) -> bool | None:
    return subscription_healthy(facts, at * SLOT, SLOTS, times)


@pytest.mark.parametrize(
    ("slot", "current"),
    [(98, False), (99, True), (100, True), (101, True), (102, False), (2**64 - 1, False), (2**80, False), (0, False)],
)
def test_a_current_head_is_of_this_slot_or_the_one_before(slot: int, current: bool) -> None:
    """H6, H13: an early head counts too; one that is refused keeps no stream fresh."""
    for into in (0.0, 0.5, 0.999):
        assert is_current(Slot(slot), (100 + into) * SLOT, SLOTS) is current


@pytest.mark.parametrize(
    ("facts", "at", "verdict"),
    [
        pytest.param(stream(), 10.0, None, id="unknown at the start"),
        pytest.param(stream(), 12.999, None, id="unknown within 3 slots"),
        pytest.param(stream(), 13.0, False, id="after the grace it is not fresh"),
        pytest.param(stream(state=StreamState.BACKOFF, requested=None), 12.9, None, id="the grace needs no connection"),
        pytest.param(stream(state=StreamState.BACKOFF, requested=None), 13.1, False, id="nor does its end"),
        pytest.param(stream(head=11), 11.4, True, id="a current head makes it fresh"),
        pytest.param(stream(head=11), 18.4, True, id="18: seven missed slots are no verdict"),
        pytest.param(stream(head=11), 40.0, True, id="nor are more: a verdict needs a verification"),
        pytest.param(stream(head=11, stalled=True), 11.4, False, id="10: stalled is stalled"),
        pytest.param(stream(head=11, stalled=True, requested=15.0), 15.1, False, id="also on the next connection"),
        pytest.param(stream(head=5, last_head_at=11.0, last_current_at=None), 13.5, False, id="38b: old heads only"),
        pytest.param(stream(head=5, last_head_at=11.0, last_current_at=None), 12.5, None, id="38b: in the grace too"),
        pytest.param(
            stream(head=11, state=StreamState.BACKOFF, requested=None), 13.8, True, id="an end is not a stall at once"
        ),
        pytest.param(
            stream(head=11, state=StreamState.BACKOFF, requested=None), 13.9, False, id="away for 2½ slots is"
        ),
        pytest.param(
            stream(head=11, state=StreamState.CONNECTING, requested=None), 14.0, False, id="connecting helps nothing"
        ),
        pytest.param(stream(started=-5.0, requested=-5.0), -1.0, None, id="before genesis it is unknown"),
        pytest.param(stream(started=-5.0, requested=-5.0), 2.9, None, id="the grace begins at genesis"),
        pytest.param(stream(started=-5.0, requested=-5.0), 3.0, False, id="and ends 3 slots after it"),
    ],
)
def test_the_verdict_on_a_stream(facts: StreamFacts, at: float, verdict: bool | None) -> None:
    """H6: fresh from a current head on, not once stalled, unknown before the first one for a grace of 3 slots."""
    assert healthy(facts, at) is verdict


def test_with_the_watchdog_off_there_is_no_verdict() -> None:
    """Scenario 13: `null`, whatever is known."""
    off = replace(TIMES, head_silence=None)
    for facts in (stream(), stream(head=11), stream(head=11, stalled=True)):
        assert healthy(facts, 50.0, off) is None
        assert look(facts, 49, 18.0, off) is None
    assert away_too_long(stream(head=11, state=StreamState.BACKOFF, requested=None), 9e9, off) is False


@pytest.mark.parametrize(
    ("facts", "ends"),
    [
        pytest.param(stream(), 13.0, id="with the start-up grace"),
        pytest.param(stream(started=-5.0, requested=-5.0), 3.0, id="which begins at genesis"),
        pytest.param(stream(head=11), math.inf, id="not while a connection stands"),
        pytest.param(stream(head=11, state=StreamState.BACKOFF, requested=None), 11 + 1 / 3 + 2.5, id="2½ slots away"),
        pytest.param(stream(head=11, stalled=True), math.inf, id="it is false already"),
    ],
)
def test_when_a_verdict_ends_with_time_alone(facts: StreamFacts, ends: float) -> None:
    """H6: then it is told, not at the next slot; and the watchdog is looked at by then."""
    moment = verdict_ends(facts, SLOTS, TIMES)
    assert moment == pytest.approx(ends * SLOT)
    if moment == math.inf:
        assert healthy(facts, 1e6) is healthy(facts, 12.0)
        return
    before = moment - 0.001
    assert subscription_healthy(facts, before, SLOTS, TIMES) is not False
    assert subscription_healthy(facts, moment, SLOTS, TIMES) is False
    assert watchdog(facts, None, before, SLOTS, TIMES).again <= moment


def test_until_the_chain_is_known_there_is_no_verdict() -> None:
    """I1, H6."""
    assert subscription_healthy(stream(head=11), 1e6, None, TIMES) is None


@pytest.mark.parametrize(
    ("verdict", "state"), [(True, StreamState.FRESH), (False, StreamState.OPEN), (None, StreamState.OPEN)]
)
def test_an_open_connection_is_shown_as_open_or_fresh(verdict: bool | None, state: StreamState) -> None:
    """Words of the design: fresh has delivered a head within its limit."""
    assert state_of(verdict) is state


COMMENTING = stream(head=20, comments=3, last_byte=20.5)


@pytest.mark.parametrize(
    ("facts", "elsewhere", "at", "due"),
    [
        pytest.param(stream(head=20), 20, 20.5, None, id="a head has just come"),
        pytest.param(stream(head=20), 20, 22.8, None, id="less than 2½ slots of silence"),
        pytest.param(stream(head=20), 20, 22.9, VERIFY, id="2½ slots of silence"),
        pytest.param(stream(head=20), None, 22.9, VERIFY, id="also for the only node"),
        pytest.param(stream(), None, 12.4, None, id="before a head the silence counts from the request"),
        pytest.param(stream(), None, 12.5, VERIFY, id="H2: headers or not"),
        pytest.param(stream(opened=12.0), None, 12.5, None, id="from the response where there is one"),
        pytest.param(stream(head=20), 21, 21.9, None, id="another has slot 21, which is not over"),
        pytest.param(stream(head=20), 21, 22.0, VERIFY, id="another has slot 21, and it is over"),
        pytest.param(stream(head=21), 21, 22.0, None, id="this one has it too"),
        pytest.param(stream(head=20), 22, 21.9, None, id="another is a slot early: slot 21 is not over"),
        pytest.param(stream(requested=21.5), 21, 22.1, None, id="opened within slot 21: it may have missed its head"),
        pytest.param(stream(requested=21.0), 21, 22.0, VERIFY, id="opened with the start of slot 21"),
        pytest.param(stream(head=20, verified=22.9), 20, 23.8, None, id="verified less than a slot ago"),
        pytest.param(stream(head=20, verified=22.9), 20, 23.9, VERIFY, id="and again a slot later"),
        pytest.param(stream(head=20), 20, 28.8, VERIFY, id="18: the hard clock has not run out after 8 slots"),
        pytest.param(stream(head=20), 20, 28.9, REPLACE, id="18: after 8½ it has"),
        pytest.param(stream(), None, 18.5, REPLACE, id="8½ slots after the request, without any head"),
        pytest.param(stream(head=20, requested=25.0), 20, 28.9, VERIFY, id="a new connection has its own 8½ slots"),
        pytest.param(
            stream(head=5, last_head_at=20.0, last_current_at=None),
            None,
            20.1,
            VERIFY,
            id="38b: old heads of a burst renew no silence",
        ),
        pytest.param(
            stream(head=5, last_head_at=20.0, last_current_at=None, verified=20.05),
            None,
            28.4,
            VERIFY,
            id="but any head renews the hard clock",
        ),
        pytest.param(replace(COMMENTING), 20, 26.9, VERIFY, id="60 s or 6½ slots, the longer, are not over"),
        pytest.param(replace(COMMENTING), 20, 27.0, RECONNECT, id="6½ slots without a byte"),
        pytest.param(replace(COMMENTING, comments=0), 20, 27.0, VERIFY, id="a node that sends no comments is spared"),
        pytest.param(
            stream(head=20, comments=3, last_byte=28.85), 20, 28.9, REPLACE, id="11: comments hide no silence of heads"
        ),
        pytest.param(stream(head=20, comments=9, last_byte=22.99), 22, 23.0, VERIFY, id="11: not beside others either"),
        pytest.param(
            stream(state=StreamState.BACKOFF, requested=None), 99, 50.0, None, id="no clock without a request"
        ),
        pytest.param(stream(state=StreamState.CONNECTING, requested=None), 99, 50.0, None, id="none while connecting"),
        pytest.param(stream(state=StreamState.STALLED), 11, 12.5, VERIFY, id="stalled streams have their clocks too"),
        pytest.param(stream(requested=-9.0, started=-9.0), None, -0.1, None, id="H2: before genesis no clock runs"),
        pytest.param(stream(requested=-9.0, started=-9.0), None, 2.4, None, id="they begin at genesis"),
        pytest.param(stream(requested=-9.0, started=-9.0), None, 2.5, VERIFY, id="and run out as ever"),
    ],
)
def test_what_is_due(facts: StreamFacts, elsewhere: int | None, at: float, due: Action | None) -> None:
    """H5, scenarios 11 and 18: head silence, hard clock, transport silence."""
    assert look(facts, elsewhere, at) is due


@pytest.mark.parametrize(
    ("off", "at"), [("head_silence", 23.0), ("hard_clock", 29.0), ("transport_silence", 27.0)], ids=str
)
def test_null_switches_a_clock_off_and_no_other(off: str, at: float) -> None:
    """H5: each clock by itself."""
    due = {"head_silence": VERIFY, "hard_clock": REPLACE, "transport_silence": RECONNECT}
    facts = replace(COMMENTING, last_byte=20.4 * SLOT)
    others_off: dict[str, Any] = {name: None for name in due if name != off}
    all_off: dict[str, Any] = dict.fromkeys(due)
    assert look(facts, 20, at, replace(TIMES, **others_off)) is due[off]
    assert look(facts, 20, at, replace(TIMES, **all_off)) is None


@pytest.mark.parametrize("at", [20.4, 21.0, 22.0, 22.7, 23.5, 26.99, 28.0, 28.89])
def test_nothing_becomes_due_before_one_is_told_to_look_again(at: float) -> None:
    """H5: the shell sleeps until `again`, at most to the next slot, so no clock may run out in between."""
    for facts in (stream(head=20), replace(COMMENTING), stream(head=20, verified=at - 0.2), stream()):
        watch = watchdog(facts, Slot(20), at * SLOT, SLOTS, TIMES)
        assert at * SLOT < watch.again <= (int(at) + 1) * SLOT
        if watch.due is None:
            for part in (0.01, 0.5, 0.99):
                between = at * SLOT + part * (watch.again - at * SLOT)
                assert watchdog(facts, Slot(20), between, SLOTS, TIMES).due is None


def test_the_clocks_follow_the_slot() -> None:
    """Requirements, top: the slot is the network's own; 2½ slots are 5 s where a slot is 2 s."""
    slots = SlotClock(replace(CHAIN, slot_duration=2.0), offset=1_000_000.0)
    times = StreamTimes.of(StreamSettings(), 2.0)
    facts = StreamFacts(started=20.0, requested=20.0, state=StreamState.OPEN)
    assert watchdog(facts, None, 24.9, slots, times).due is None
    assert watchdog(facts, None, 25.0, slots, times).due is VERIFY
    assert watchdog(facts, None, 37.0, slots, times).due is REPLACE


@pytest.mark.parametrize(
    ("own", "streamed", "elsewhere", "verdict"),
    [
        pytest.param(105, 100, 105, STALLED, id="10: polls advance, the stream is frozen"),
        pytest.param(105, 100, None, STALLED, id="the same for the only node"),
        pytest.param(105, 100, 99, STALLED, id="whatever the others have"),
        pytest.param(None, 100, 105, STALLED, id="57: no answer while others are newer"),
        pytest.param(None, 100, 100, MISSED, id="no answer, but nobody is newer"),
        pytest.param(None, 100, None, MISSED, id="no answer, and nobody to compare with"),
        pytest.param(100, 100, 105, NODE_BEHIND, id="59: the node itself is behind"),
        pytest.param(100, 100, 100, MISSED, id="18: missed slots"),
        pytest.param(100, 100, 99, MISSED, id="18: it is the newest"),
        pytest.param(100, 100, None, MISSED, id="18: it is alone"),
        pytest.param(98, 100, 100, NODE_BEHIND, id="it went back to an older head"),
        pytest.param(98, 100, 98, MISSED, id="and the others with it"),
        pytest.param(0, 0, None, MISSED, id="genesis"),
        pytest.param(1, 0, None, STALLED, id="the first block was not announced"),
    ],
)
def test_what_a_verification_means(own: int | None, streamed: int, elsewhere: int | None, verdict: Verdict) -> None:
    """H5, scenarios 10, 11, 18, 57, 59."""
    found = judge(None if own is None else Slot(own), Slot(streamed), None if elsewhere is None else Slot(elsewhere))
    assert found is verdict


@pytest.mark.parametrize(
    ("facts", "slot"),
    [
        pytest.param(stream(head=20), 20, id="the last head on this connection"),
        pytest.param(stream(head=20, last_head_at=10.0), 20, id="one that came with the request"),
        pytest.param(stream(head=20, requested=25.0, baseline=Slot(24)), 24, id="else the node's head at the start"),
        pytest.param(stream(head=20, requested=25.0), 25, id="else the slot of the request"),
        pytest.param(stream(head=20, requested=25.0, opened=27.5), 27, id="or of the response"),
        pytest.param(stream(requested=None, state=StreamState.BACKOFF), 10, id="without a connection, of the start"),
        pytest.param(stream(head=18, requested=10.0, baseline=Slot(20), last_head_at=21.0), 18, id="a reorg down"),
    ],
)
def test_what_a_connection_has_announced(facts: StreamFacts, slot: int) -> None:
    """H5, H14: a poll is compared with what this connection could have announced."""
    assert announced(facts, SLOTS) == slot


@pytest.mark.parametrize(
    ("facts", "unknown"),
    [
        (stream(), True),
        (stream(baseline=Slot(9)), False),
        (stream(head=20), False),
        (stream(head=20, requested=25.0), True),
        (stream(head=20, requested=25.0, opened=26.0, baseline=Slot(20)), False),
        (stream(head=20, requested=15.0, opened=26.0), True),
    ],
)
def test_whether_anything_says_what_a_connection_had_to_announce(facts: StreamFacts, unknown: bool) -> None:
    """H2, H14: a head on it, or a poll when it was made."""
    assert unknown_start(facts) is unknown


def test_a_connection_opened_after_the_head_of_its_slot_is_not_stalled_by_missed_slots() -> None:
    """Scenario 18 where the poll at connect failed: own head 20, connected within slot 20, then silence for all."""
    assert judge(Slot(20), announced(stream(requested=20.6), SLOTS), None) is MISSED


def test_a_frozen_stream_is_found_and_stays_stalled_until_a_current_head() -> None:
    """Scenarios 10 and 11 as a walk: silence, verification, stalled, reconnect, burst of old heads, current head."""
    facts = stream(head=20, comments=5, last_byte=22.0)
    assert look(facts, 21, 22.0) is VERIFY
    assert judge(Slot(21), announced(facts, SLOTS), Slot(21)) is STALLED
    facts.stalled = True
    facts.state = StreamState.STALLED
    assert healthy(facts, 22.1) is False
    facts.connection_ended()
    assert (facts.requested, facts.opened, facts.baseline, facts.last_byte, facts.comments) == (
        None,
        None,
        None,
        None,
        0,
    )
    assert facts.last_head is not None
    facts.state, facts.requested = StreamState.REQUESTED, 22.2 * SLOT
    assert healthy(facts, 22.3) is False
    facts.last_head_at = 22.4 * SLOT
    assert healthy(facts, 22.5) is False
    facts.stalled, facts.last_current_at = False, 22.6 * SLOT
    assert healthy(facts, 22.7) is True


def test_a_bare_connect_makes_no_lost_stream_fresh() -> None:
    """H6: what was away too long is to be marked as stalled when it connects again (the shell does so by this)."""
    facts = stream(head=20, state=StreamState.BACKOFF, requested=None)
    assert not away_too_long(facts, 22.8 * SLOT, TIMES)
    assert away_too_long(facts, 22.9 * SLOT, TIMES)
    assert not away_too_long(stream(state=StreamState.BACKOFF, requested=None), 99 * SLOT, TIMES)
