"""The board knows what the table shows: fed with signals, asked at a moment, no waiting (rule 13, O4)."""

from typing import Any

import pytest

from tests.health_told import health, recovering, suspect, unhealthy
from vc_fallback.base.health_signals import (
    AllUnhealthy,
    BranchesDiffer,
    ClockDoubted,
    DutiesMoved,
    FinalityDiffers,
)
from vc_fallback.base.signals import (
    DependentRootChanged,
    GateChanged,
    GenerationChanged,
    HeadDelivered,
    HeadHeld,
    HeadOutcome,
    NodeHeadSeen,
    NodeQuarantined,
    Signal,
    Started,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import Epoch, HeadSource, NodeId, Root, Slot, Tier
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.observe.board import EVENTS, Board
from vc_fallback.observe.view import DutiesRow, Row, View, age
from vc_fallback.observe.vitals import Vitals

A, B, C = NodeId("a:1"), NodeId("b:1"), NodeId("c:1")
NODES = ((A, Tier.PRIMARY), (B, Tier.PRIMARY), (C, Tier.FALLBACK))
ROOT, OTHER = Root(b"\xaa" * 32), Root(b"\xbb" * 32)
CHAIN = ChainIdentity(genesis_time=0.0, genesis_validators_root=ROOT, slot_duration=10.0, slots_per_epoch=8)
SLOTS = SlotClock(CHAIN, offset=0.0)
"""Slot 20 is from 200 to 210 in loop time."""


def started(nodes: tuple[tuple[NodeId, Tier], ...] = NODES) -> Started:
    return Started(100.0, nodes, None, None)


def seen(
    node_id: NodeId,
    slot: int = 20,
    root: Root = ROOT,
    outcome: HeadOutcome = HeadOutcome.DUPLICATE,
    source: HeadSource = HeadSource.STREAM,
    received: float = 201.0,
) -> NodeHeadSeen:
    return NodeHeadSeen(received, node_id, Slot(slot), root, 1, source, received, outcome)


def delivered(node_id: NodeId = A, slot: int = 20, **changes: Any) -> HeadDelivered:
    values: dict[str, Any] = {
        "at": 201.0,
        "node_id": node_id,
        "tier": Tier.PRIMARY,
        "slot": Slot(slot),
        "root": ROOT,
        "generation": 1,
        "source": HeadSource.STREAM,
        "received": 201.0,
        "delay": 1.0,
        "optimistic": False,
        "payload_status": None,
        "late": False,
        "reorg": False,
        "seen_by": (node_id,),
    }
    return HeadDelivered(**values | changes)


def stream(
    state: StreamState,
    reason: StreamReason,
    *,
    node_id: NodeId = A,
    fresh: bool | None = None,
    detail: str = "",
    retry_in: float | None = None,
    at: float = 202.0,
) -> StreamChanged:
    return StreamChanged(at, node_id, 1, state, fresh, reason, detail, 0 if retry_in is None else 1, retry_in)


def change(
    added: tuple[NodeId, ...] = (), removed: tuple[NodeId, ...] = (), changed: tuple[NodeId, ...] = ()
) -> GenerationChanged:
    return GenerationChanged(203.0, 2, added, removed, changed, ())


def fed(*signals: Signal) -> Board:
    board = Board(lambda at: at + 12 * 3600)
    for signal in (started(), *signals):
        board(signal)
    return board


def view(
    *signals: Signal,
    now: float = 204.0,
    listed: tuple[tuple[NodeId, Tier], ...] = NODES,
    vitals: Vitals | None = None,
) -> View:
    """What is shown; `vitals` are those of node A."""
    return fed(*signals).view(now, SLOTS, listed, {} if vitals is None else {A: vitals})


def row(found: View, node_id: NodeId = A) -> Row:
    (only,) = (row for row in found.rows if row.node_id == node_id)
    return only


def test_before_anything_happened_all_is_unknown() -> None:
    found = Board(lambda at: at).view(0.0, None, NODES)
    assert (found.slot, found.epoch, found.into_slot, found.delivered) == (None, None, None, None)
    assert found.generation == 1
    assert (found.duties, row(found)) == (None, Row(A, Tier.PRIMARY))


def test_the_clock_is_that_of_the_chain() -> None:
    found = view(now=204.5)
    assert (found.slot, found.epoch, found.into_slot) == (20, 2, 4.5)


def test_before_genesis_there_is_no_epoch() -> None:
    found = view(now=-5.0)
    assert (found.slot, found.epoch) == (-1, None)


def test_nodes_stand_in_the_order_and_the_tiers_of_the_list() -> None:
    """A node that only changed its tier is in no signal: the list itself says so."""
    found = view(listed=((C, Tier.PRIMARY), (A, Tier.FALLBACK)))
    assert [(row.node_id, row.tier) for row in found.rows] == [(C, Tier.PRIMARY), (A, Tier.FALLBACK)]


@pytest.mark.parametrize(
    ("signals", "fresh", "state", "reason"),
    [
        ([stream(StreamState.CONNECTING, StreamReason.STARTED)], None, "connecting", "started"),
        ([stream(StreamState.FRESH, StreamReason.CURRENT_HEAD, fresh=True)], True, "fresh", "current head"),
        (
            [stream(StreamState.STALLED, StreamReason.HEAD_SILENCE, fresh=False, detail="at slot 9")],
            False,
            "stalled",
            "head silence (at slot 9)",
        ),
        (
            [stream(StreamState.BACKOFF, StreamReason.REFUSED, retry_in=8.0, detail="503")],
            None,
            "backoff",
            "again in 6 s: refused (503)",
        ),
        (
            [
                stream(StreamState.BACKOFF, StreamReason.REFUSED, fresh=True, retry_in=1.0),
                # The verdict alone changes while it waits; the attempt is late.
                stream(StreamState.BACKOFF, StreamReason.HEAD_SILENCE, fresh=False),
            ],
            False,
            "backoff",
            "again in 0 s: refused",
        ),
        (
            [
                stream(StreamState.BACKOFF, StreamReason.BROKEN, retry_in=1.0, at=142.0),
                stream(StreamState.OPEN, StreamReason.RESPONSE),
                stream(StreamState.FRESH, StreamReason.CURRENT_HEAD, fresh=True),
            ],
            True,
            "fresh",
            "1 min ago: broken",
        ),
        (
            [stream(StreamState.OPEN, StreamReason.START_GRACE_OVER, fresh=False)],
            False,
            "open",
            "2 s ago: start grace over",
        ),
    ],
)
def test_a_nodes_stream_its_verdict_and_its_reason(
    signals: list[Signal], fresh: bool | None, state: str, reason: str
) -> None:
    found = row(view(*signals))
    assert (found.fresh, found.state, found.reason) == (fresh, state, reason)
    assert found.health == "unknown"


def test_there_are_two_verdicts_and_neither_follows_from_the_other() -> None:
    """Rule 3: a stalled stream moves no request, a slow API mutes no stream."""
    stalled = stream(StreamState.STALLED, StreamReason.HEAD_SILENCE, fresh=False)
    found = row(view(stalled, vitals=Vitals("healthy", rank=1)))
    assert (found.health, found.fresh, found.state) == ("healthy", False, "stalled")
    slow = Vitals("unhealthy", rank=3, trouble="nine of ten answers of node/syncing take up to 4.00 s")
    found = row(view(stream(StreamState.FRESH, StreamReason.CURRENT_HEAD, fresh=True), vitals=slow))
    assert (found.health, found.fresh, found.state) == ("unhealthy", True, "fresh")
    assert found.reason == slow.trouble


def test_health_rank_latency_and_peers_are_those_of_the_moment() -> None:
    found = row(view(health(A), vitals=Vitals("suspect", 2, 0.012, 87, "1 failed check in a row: refused")))
    assert (found.health, found.rank, found.latency, found.peers) == ("suspect", 2, 0.012, 87)
    assert found.reason == "1 failed check in a row: refused"


def test_what_speaks_against_a_node_comes_before_what_ails_its_stream() -> None:
    lost = stream(StreamState.BACKOFF, StreamReason.REFUSED, retry_in=8.0)
    for trouble, reason in (("optimistic", "optimistic"), ("", "again in 6 s: refused")):
        assert row(view(lost, vitals=Vitals("healthy", 1, trouble=trouble))).reason == reason


def test_a_quarantined_node_says_so_before_all_else() -> None:
    """N7."""
    lost = stream(StreamState.BACKOFF, StreamReason.REFUSED, retry_in=8.0)
    found = row(view(lost, NodeQuarantined(1.0, A, 1, "preset differs"), vitals=Vitals("unhealthy", trouble="x")))
    assert (found.health, found.reason) == ("quarantined", "preset differs")
    fits = [NodeQuarantined(1.0, A, 1, "preset differs"), NodeQuarantined(2.0, A, 1, "")]
    assert row(view(lost, *fits, vitals=Vitals("healthy", 1))).health == "healthy"


def test_the_node_that_has_the_duties_is_marked_and_moves_are_counted() -> None:
    """N9, N10."""
    signals = [DutiesMoved(100.0, "start", None, A, ""), DutiesMoved(190.0, "failover", A, B, "")]
    found = view(*signals, now=204.0)
    assert [row.duties for row in found.rows] == [False, True, False]
    assert found.duties == DutiesRow(B, 14.0, failovers=1, failbacks=0, all_unhealthy=False)
    found = view(*signals, AllUnhealthy(195.0, True), DutiesMoved(200.0, "failback", B, None, ""), now=204.0)
    assert found.duties == DutiesRow(None, 4.0, failovers=1, failbacks=1, all_unhealthy=True)
    assert not any(row.duties for row in found.rows)
    found = view(*signals, AllUnhealthy(195.0, True), AllUnhealthy(196.0, False))
    assert found.duties is not None
    assert not found.duties.all_unhealthy


def test_a_nodes_own_words_hold_no_url_and_no_line_break() -> None:
    """Rule 11."""
    detail = "gone to\nhttps://u:pw@host/token\x1b[31m"
    found = view(
        stream(StreamState.BACKOFF, StreamReason.REFUSED, detail=detail, retry_in=9.0),
        NodeQuarantined(1.0, B, 1, detail),
        GateChanged(1.0, True, None, detail),
    )
    sick = row(view(vitals=Vitals("unhealthy", 1, trouble=detail)))
    shown = [
        sick.reason,
        row(found).reason,
        row(found, B).reason,
        found.gate,
        *(event.text for event in found.events[1:]),
    ]
    assert len(shown) == 7
    for text in shown:
        assert text.isprintable()
        assert "<url>" in text
        assert "pw" not in text


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        # (slot, delay, lag) of A and B.
        ([seen(A), seen(B)], [(20, 1.0, 0), (20, 1.0, 0)]),
        ([seen(A), seen(B, slot=17, received=172.5)], [(20, 1.0, 0), (17, 2.5, 3)]),
        # A head that was asked for has no delay into its slot.
        ([seen(A, source=HeadSource.POLL)], [(20, None, 0), (None, None, None)]),
        # The latest, not the highest (H7).
        ([seen(A), seen(A, slot=19, received=203.0)], [(19, 13.0, 0), (None, None, None)]),
        # Refused heads are no heads (H13).
        ([seen(A), seen(B, slot=99, outcome=HeadOutcome.FUTURE)], [(20, 1.0, 0), (None, None, None)]),
        ([seen(B, outcome=HeadOutcome.WRONG_CHAIN)], [(None, None, None), (None, None, None)]),
        # What a node on another chain shows is not behind and leaves nobody behind (N7).
        ([seen(A), seen(B, slot=21), NodeQuarantined(1.0, B, 1, "x")], [(20, 1.0, 0), (21, -9.0, None)]),
        # Held back and optimistic heads are heads all the same (C5, H12).
        ([seen(A), seen(C, slot=21, outcome=HeadOutcome.TIER)], [(20, 1.0, 1), (None, None, None)]),
        ([seen(A), seen(B, slot=21, outcome=HeadOutcome.OPTIMISTIC)], [(20, 1.0, 1), (21, -9.0, 0)]),
    ],
)
def test_heads_delays_and_how_far_behind_the_best(
    signals: list[Signal], expected: list[tuple[int | None, float | None, int | None]]
) -> None:
    found = view(*signals)
    assert [(row.slot, row.delay, row.lag) for row in found.rows[:2]] == expected


def test_without_a_chain_there_is_no_delay() -> None:
    assert fed(seen(A)).view(204.0, None, NODES).rows[0].delay is None


def test_the_delivered_head_has_its_age_and_its_votes_now() -> None:
    found = view(seen(A), delivered(A), seen(B), seen(C, root=OTHER), now=204.0)
    assert found.delivered is not None
    assert (found.delivered.node_id, found.delivered.slot, found.delivered.root) == (A, 20, ROOT)
    assert (found.delivered.age, found.delivered.delay, found.delivered.votes) == (3.0, 1.0, 2)
    moved = view(seen(A), delivered(A), seen(B), seen(A, slot=21), NodeQuarantined(1.0, B, 1, "x"))
    assert moved.delivered is not None
    assert moved.delivered.votes == 0


@pytest.mark.parametrize(
    ("signals", "gate"),
    [
        ([], "open"),
        ([GateChanged(1.0, True, None, "a:1: stream stalled")], "open: a:1: stream stalled"),
        ([GateChanged(1.0, False, A, "held by a primary")], "held by a:1"),
        (
            [GateChanged(1.0, False, A, ""), HeadHeld(2.0, C, Slot(1), ROOT), HeadHeld(3.0, C, Slot(2), ROOT)],
            "held by a:1, 2 heads of fallbacks held back",
        ),
        (
            [HeadHeld(1.0, C, Slot(1), ROOT), GateChanged(2.0, True, None, "x"), GateChanged(3.0, False, B, "")],
            "held by b:1",
        ),
    ],
)
def test_the_gate(signals: list[Signal], gate: str) -> None:
    """C5, C6."""
    assert view(*signals).gate == gate


def test_a_list_without_fallbacks_has_no_gate() -> None:
    assert view(GateChanged(1.0, False, A, ""), listed=NODES[:2]).gate == ""


def test_a_change_of_the_list_forgets_who_left_and_who_has_another_connection() -> None:
    """G1, G2: the end of an old stream is told after the change, and is not the new one's."""
    known = [
        signal
        for node_id in (A, B, C)
        for signal in (stream(StreamState.FRESH, StreamReason.CURRENT_HEAD, node_id=node_id), seen(node_id))
    ]
    after = [change(added=(NodeId("d:1"),), removed=(A,), changed=(B,))]
    ends = [stream(StreamState.STOPPED, StreamReason.REMOVED, node_id=node_id) for node_id in (A, B)]
    found = view(*known, *after, *ends, seen(A), listed=((A, Tier.PRIMARY), *NODES[1:], (NodeId("d:1"), Tier.PRIMARY)))
    assert found.generation == 2
    assert [(row.state, row.slot) for row in found.rows] == [(None, None), (None, None), ("fresh", 20), (None, None)]


def test_reconnects_are_counted() -> None:
    answered = stream(StreamState.OPEN, StreamReason.RESPONSE)
    assert row(view(answered, answered, answered)).reconnects == 2


def test_events_are_the_last_ones_without_what_each_slot_brings() -> None:
    ordinary = [seen(A), delivered(A), seen(B), HeadHeld(203.0, C, Slot(20), ROOT)]
    special = [
        delivered(reorg=True),
        delivered(late=True),
        stream(StreamState.STALLED, StreamReason.HEAD_SILENCE),
        GateChanged(203.0, False, A, ""),
        GateChanged(203.0, True, None, "x"),
        NodeQuarantined(203.0, A, 1, "preset differs"),
        change(added=(NodeId("d:1"),)),
        DependentRootChanged(203.0, Epoch(3), ROOT, OTHER, (A,)),
    ]
    found = view(*ordinary, *special)
    assert [event.kind for event in found.events] == [
        "head",
        "head",
        "stream",
        "gate",
        "gate",
        "chain",
        "list",
        "roots",
    ]
    assert [event.bad for event in found.events] == [False, False, True, False, True, True, False, False]
    assert found.events[2].time == "12:03:22"
    assert len(found.events) == EVENTS


def test_turns_of_health_moves_of_duties_and_alarms_are_events_and_trouble_stands_out() -> None:
    """N3, N8, N9, N10."""
    roots = {ROOT: (A,), OTHER: (B,)}
    found = view(
        health(A),
        suspect(A),
        unhealthy(A),
        # Its place is no event.
        unhealthy(A),
        recovering(A),
        DutiesMoved(203.0, "start", None, A, ""),
        DutiesMoved(203.0, "failover", A, B, ""),
        DutiesMoved(203.0, "failback", B, A, ""),
        AllUnhealthy(203.0, True),
        AllUnhealthy(203.0, False),
    )
    assert [(event.kind, event.bad) for event in found.events] == [
        ("health", True),
        ("health", True),
        ("health", False),
        ("duties", False),
        ("duties", True),
        ("duties", False),
        ("alarm", True),
        ("alarm", False),
    ]
    found = view(
        health(A, optimistic=True),
        health(A, el_offline=True),
        health(A),
        BranchesDiffer(203.0, Slot(20), None, "", roots),
        BranchesDiffer(203.0, Slot(20), B, "2 of 3", {}),
        BranchesDiffer(203.0, Slot(22), B, "", {}),
        FinalityDiffers(203.0, Epoch(2), roots),
        ClockDoubted(203.0, None, "slow"),
    )
    assert [(event.kind, event.bad) for event in found.events] == [
        ("health", True),
        ("health", True),
        ("health", False),
        ("branch", True),
        ("branch", True),
        ("branch", False),
        ("alarm", True),
        ("clock", True),
    ]
    found = view(
        BranchesDiffer(203.0, Slot(20), None, "", roots),
        BranchesDiffer(204.0, Slot(24), None, "", {}),
        ClockDoubted(203.0, None, "slow"),
        ClockDoubted(204.0, None, ""),
    )
    assert [event.bad for event in found.events[-4:]] == [True, False, True, False]


def test_what_is_no_signal_can_be_noted() -> None:
    board = fed()
    board.note(203.0, "warning", "something", bad=True)
    event = board.view(204.0, SLOTS, NODES).events[-1]
    assert (event.time, event.kind, event.text, event.bad) == ("12:03:23", "warning", "something", True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (59.9, "59 s"), (60.0, "1 min"), (3599.0, "59 min"), (3600.0, "1 h"), (200_000.0, "2 d")],
)
def test_ages_are_short(seconds: float, text: str) -> None:
    assert age(seconds) == text
