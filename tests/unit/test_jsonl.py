"""JSON lines hold to the schema: these keys, in this order, with these types and these closed lists of words."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.health_told import health
from tests.json_schema import LINES, check_line
from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.base.health_signals import (
    AllUnhealthy,
    BranchesDiffer,
    ClockDoubted,
    DutiesMoved,
    FinalityDiffers,
    HealthChanged,
)
from vc_fallback.base.signals import (
    ChainReorged,
    DependentRootChanged,
    GateChanged,
    GenerationChanged,
    HeadDelivered,
    HeadHeld,
    HeadOutcome,
    NodeHeadSeen,
    NodeQuarantined,
    ReorgEvidence,
    RootChange,
    Signal,
    Started,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import BlockRef, Epoch, HeadSource, NodeId, PayloadStatus, Root, Slot, Tier
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.gate import gate
from vc_fallback.decide.ledger import Ledger, NodeFacts, NodeHead, StreamFacts
from vc_fallback.observe.jsonl import JsonLines
from vc_fallback.settings import StreamSettings
from vc_fallback.times import StreamTimes

A, B = NodeId("a"), NodeId("b")
ROOT = Root(bytes.fromhex("AB" * 32))
OTHER = Root(bytes.fromhex("CD" * 32))
UNIX = 1_700_000_000.0
"""Unix time minus loop time in these tests."""


class Lines:
    """A :class:`JsonLines` and what it wrote."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.observer = JsonLines(lambda at: at + UNIX, self.written.append)

    def of(self, *signals: Signal) -> list[dict[str, Any]]:
        for signal in signals:
            self.observer(signal)
        return [json.loads(line) for line in self.written]


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


def seen(node_id: NodeId = A, slot: int = 7, outcome: HeadOutcome = HeadOutcome.DELIVERED) -> NodeHeadSeen:
    return NodeHeadSeen(10.5, node_id, Slot(slot), ROOT, 1, HeadSource.POLL, 10.25, outcome)


def stream(
    state: StreamState, reason: StreamReason, node_id: NodeId = A, detail: str = "", retry_in: float | None = None
) -> StreamChanged:
    return StreamChanged(11.0, node_id, 2, state, None, reason, detail, 0 if retry_in is None else 3, retry_in)


STARTED = Started(1.0, ((A, Tier.PRIMARY), (B, Tier.FALLBACK)), None, None)


def test_start_lists_the_nodes_and_comes_again_when_the_chain_is_known() -> None:
    known = Started(2.0, STARTED.nodes, 1_600_000_000.0, 12.0)
    first, second = Lines().of(STARTED, known)
    nodes = [{"node": "a", "tier": "primary"}, {"node": "b", "tier": "fallback"}]
    assert first == {
        "type": "start",
        "time": UNIX + 1,
        "schema": 1,
        "nodes": nodes,
        "genesis_time": None,
        "slot_duration": None,
    }
    assert second["genesis_time"] == 1_600_000_000
    assert second["slot_duration"] == 12
    assert second["nodes"] == nodes


def test_a_delivered_head_has_both_times_in_unix_time_and_its_root_in_lower_case() -> None:
    (line,) = Lines().of(delivered())
    assert line == {
        "type": "head",
        "time": UNIX + 10.5,
        "received": UNIX + 10.25,
        "node": "a",
        "tier": "primary",
        "slot": 7,
        "block": "0x" + "ab" * 32,
        "generation": 1,
        "source": "stream",
        "delay": 0.25,
        "optimistic": False,
        "payload_status": None,
        "late": False,
        "reorg": False,
        "seen_by": ["a", "b"],
    }


@pytest.mark.parametrize("optimistic", [True, False, None])
@pytest.mark.parametrize("payload_status", [None, *PayloadStatus])
def test_unknown_is_null(optimistic: bool | None, payload_status: PayloadStatus | None) -> None:
    (line,) = Lines().of(delivered(optimistic=optimistic, payload_status=payload_status))
    assert line["optimistic"] is optimistic
    assert line["payload_status"] == payload_status


def test_every_head_of_a_node_has_a_line_with_its_outcome() -> None:
    lines = Lines().of(*(seen(outcome=outcome) for outcome in HeadOutcome))
    assert [line["outcome"] for line in lines] == list(HeadOutcome)
    assert lines[0] == {
        "type": "node_head",
        "time": UNIX + 10.5,
        "received": UNIX + 10.25,
        "node": "a",
        "slot": 7,
        "block": "0x" + "ab" * 32,
        "generation": 1,
        "source": "poll",
        "outcome": "delivered",
    }


def test_a_change_of_a_stream_has_its_state_verdict_and_reason() -> None:
    (line,) = Lines().of(stream(StreamState.BACKOFF, StreamReason.REFUSED, detail="503 busy", retry_in=3.9123456789))
    assert line == {
        "type": "stream",
        "time": UNIX + 11,
        "node": "a",
        "generation": 2,
        "state": "backoff",
        "subscription_healthy": None,
        "reason": "refused",
        "detail": "503 busy",
        "failures": 3,
        "retry_in": 3.912346,
    }


def test_a_generation_says_who_came_left_changed_and_stayed() -> None:
    (line,) = Lines().of(GenerationChanged(3.0, 2, (A,), (B,), (), (NodeId("c"),)))
    assert line == {
        "type": "generation",
        "time": UNIX + 3,
        "generation": 2,
        "added": ["a"],
        "removed": ["b"],
        "changed": [],
        "kept": ["c"],
    }


def test_a_head_that_is_held_back_has_a_line() -> None:
    """C5."""
    (line,) = Lines().of(HeadHeld(4.0, B, Slot(9), ROOT))
    assert line == {"type": "held", "time": UNIX + 4, "node": "b", "slot": 9, "block": "0x" + "ab" * 32}


REORG = ChainReorged(
    4.0,
    node_id=A,
    generation=2,
    received=3.5,
    old=BlockRef(Slot(9), ROOT),
    new=BlockRef(Slot(8), OTHER),
    epoch=Epoch(0),
    depth=None,
    crosses_epoch=True,
    changed_roots=(RootChange(Epoch(1), ROOT, OTHER),),
    touches_current_duties=False,
    touches_next_duties=None,
    evidence=ReorgEvidence.SLOT,
    reported_by=(),
    nodes=(A, B),
)


def test_a_reorg_has_a_line() -> None:
    """C11: what is not known is null."""
    (line,) = Lines().of(REORG)
    assert line == {
        "type": "reorg",
        "time": UNIX + 4,
        "received": UNIX + 3.5,
        "node": "a",
        "generation": 2,
        "old": {"slot": 9, "block": "0x" + "ab" * 32},
        "new": {"slot": 8, "block": "0x" + "cd" * 32},
        "epoch": 0,
        "depth": None,
        "crosses_epoch": True,
        "changed_roots": [{"epoch": 1, "old": "0x" + "ab" * 32, "new": "0x" + "cd" * 32}],
        "touches_current_duties": False,
        "touches_next_duties": None,
        "evidence": "slot",
        "reported_by": [],
        "nodes": ["a", "b"],
    }


def test_the_gate_has_a_holder_while_it_is_closed_and_a_reason_always() -> None:
    """C5, C6."""
    closed, opened = Lines().of(
        GateChanged(5.0, False, A, "held by a primary"), GateChanged(6.0, True, None, "a: stream stalled")
    )
    assert closed == {"type": "gate", "time": UNIX + 5, "open": False, "holder": "a", "reason": "held by a primary"}
    assert opened == {"type": "gate", "time": UNIX + 6, "open": True, "holder": None, "reason": "a: stream stalled"}


HEALTH = HealthChanged(
    at=12.0,
    node_id=A,
    generation=3,
    state=HealthState.UNHEALTHY,
    suspect=False,
    reason=HealthReason.CHECKS_FAILED,
    detail="3 failed checks in a row: refused",
    explanation="a is 2 of 2: a primary that does not answer",
    rank=2,
    sync_distance=4,
    optimistic=None,
    el_offline=False,
    latency=0.0123456789,
    offset=-0.1234567,
    peers=50,
)
MOVED = DutiesMoved(12.0, "failover", A, B, "a: 3 failed checks in a row: refused")
ROOTS = {ROOT: (A, B), Root(bytes(32)): (NodeId("c"),)}
ROOTS_LINE = [{"block": "0x" + "ab" * 32, "nodes": ["a", "b"]}, {"block": "0x" + "00" * 32, "nodes": ["c"]}]


def test_a_nodes_health_has_its_state_reason_and_place() -> None:
    """N1, N6."""
    (line,) = Lines().of(HEALTH)
    assert line == {
        "type": "health",
        "time": UNIX + 12,
        "node": "a",
        "generation": 3,
        "state": "unhealthy",
        "suspect": False,
        "reason": "checks_failed",
        "detail": "3 failed checks in a row: refused",
        "explanation": "a is 2 of 2: a primary that does not answer",
        "rank": 2,
        "sync_distance": 4,
        "optimistic": None,
        "el_offline": False,
        "latency": 0.012346,
        "offset": -0.123457,
        "peers": 50,
    }


def test_moves_of_a_flood_are_told_when_it_is_over_at_the_latest_by_the_summary() -> None:
    """Their time is when the line was made, so that lines stand in the order of their times."""
    lines = Lines()
    lines.of(*(health(rank=rank) for rank in range(1, 90)))
    assert len(lines.written) == 1 + 64
    (*_, late, gate) = lines.of(GateChanged(5.0, True, None, ""))
    assert (late["type"], late["rank"], late["time"]) == ("health", 89, UNIX + 5)
    assert gate["type"] == "gate"
    lines.of(*(health(at=5.0, rank=rank) for rank in range(1, 90)))
    written = len(lines.written)
    assert json.loads(lines.observer.summary(5.5))["type"] == "summary"
    (last,) = lines.written[written:]
    assert (json.loads(last)["rank"], json.loads(last)["time"]) == (89, UNIX + 5.5)


def test_duties_that_move_have_a_line_with_the_reason() -> None:
    """N9."""
    first, over, nobody = Lines().of(
        DutiesMoved(11.0, "start", None, A, "the first by rank"), MOVED, DutiesMoved(13.0, "failover", B, None, "gone")
    )
    assert first == {
        "type": "failover",
        "time": UNIX + 11,
        "kind": "start",
        "from": None,
        "to": "a",
        "reason": "the first by rank",
    }
    assert (over["kind"], over["from"], over["to"]) == ("failover", "a", "b")
    assert over["reason"] == MOVED.reason
    assert (nobody["from"], nobody["to"]) == ("b", None)


def test_alarms_have_lines() -> None:
    """N3, N8, N10."""
    assert Lines().of(
        AllUnhealthy(1.0, True),
        AllUnhealthy(2.0, False),
        BranchesDiffer(3.0, Slot(9), None, "", ROOTS),
        BranchesDiffer(4.0, Slot(9), B, "2 of 3 nodes have 0xabababab at slot 9", {}),
        FinalityDiffers(5.0, Epoch(7), ROOTS),
        ClockDoubted(6.0, A, "later than the other nodes"),
        ClockDoubted(7.0, None, "our clock is slow"),
        BranchesDiffer(8.0, None, B, "", {}),
        BranchesDiffer(9.0, Slot(11), None, "", {}),
        ClockDoubted(10.0, None, ""),
    ) == [
        {"type": "all_unhealthy", "time": UNIX + 1, "begins": True},
        {"type": "all_unhealthy", "time": UNIX + 2, "begins": False},
        {"type": "branches", "time": UNIX + 3, "slot": 9, "blamed": None, "reason": "", "roots": ROOTS_LINE},
        {
            "type": "branches",
            "time": UNIX + 4,
            "slot": 9,
            "blamed": "b",
            "reason": "2 of 3 nodes have 0xabababab at slot 9",
            "roots": [],
        },
        {"type": "finality", "time": UNIX + 5, "epoch": 7, "roots": ROOTS_LINE},
        {"type": "clock", "time": UNIX + 6, "node": "a", "warning": "later than the other nodes"},
        {"type": "clock", "time": UNIX + 7, "node": None, "warning": "our clock is slow"},
        {"type": "branches", "time": UNIX + 8, "slot": None, "blamed": "b", "reason": "", "roots": []},
        {"type": "branches", "time": UNIX + 9, "slot": 11, "blamed": None, "reason": "", "roots": []},
        {"type": "clock", "time": UNIX + 10, "node": None, "warning": ""},
    ]


def test_failovers_and_failbacks_are_counted() -> None:
    """N9: the first node is neither."""
    lines = Lines()
    lines.of(
        DutiesMoved(1.0, "start", None, A, ""),
        MOVED,
        DutiesMoved(13.0, "failback", B, A, ""),
        DutiesMoved(14.0, "failover", A, None, ""),
    )
    summary = json.loads(lines.observer.summary(20.0))
    assert (summary["failovers"], summary["failbacks"]) == (2, 1)


def test_the_summary_counts_heads_reconnects_stalls_and_knows_the_last_slot() -> None:
    lines = Lines()
    lines.of(
        STARTED,
        stream(StreamState.OPEN, StreamReason.RESPONSE),
        seen(slot=5),
        delivered(slot=Slot(5)),
        stream(StreamState.STALLED, StreamReason.HEAD_SILENCE),
        stream(StreamState.BACKOFF, StreamReason.HEAD_SILENCE, retry_in=1.0),
        # Attempts that come to nothing are no reconnects, and a stall lasts until a current head.
        stream(StreamState.CONNECTING, StreamReason.RETRY),
        stream(StreamState.BACKOFF, StreamReason.CONNECT_FAILED, retry_in=2.0),
        stream(StreamState.CONNECTING, StreamReason.RETRY),
        stream(StreamState.OPEN, StreamReason.RESPONSE),
        stream(StreamState.STALLED, StreamReason.HEAD_SILENCE),
        seen(slot=7, outcome=HeadOutcome.DUPLICATE),
        stream(StreamState.FRESH, StreamReason.CURRENT_HEAD),
        # The latest, not the highest (H7), and no slot that was refused (H13).
        seen(slot=6, outcome=HeadOutcome.BEHIND),
        seen(slot=900, outcome=HeadOutcome.FUTURE),
        stream(StreamState.STALLED, StreamReason.HEAD_SILENCE),
        delivered(),
    )
    assert json.loads(lines.observer.summary(20.0)) == {
        "type": "summary",
        "time": UNIX + 20,
        "delivered": 2,
        "nodes": [
            {"node": "a", "heads": 4, "reconnects": 1, "stalls": 2, "last_slot": 6},
            {"node": "b", "heads": 0, "reconnects": 0, "stalls": 0, "last_slot": None},
        ],
        "failovers": 0,
        "failbacks": 0,
    }


def test_a_connection_that_replaced_another_is_a_reconnect() -> None:
    lines = Lines()
    lines.of(
        stream(StreamState.OPEN, StreamReason.RESPONSE),
        stream(StreamState.FRESH, StreamReason.HARD_CLOCK),
        # Promoted before its answer came: counted with the answer.
        stream(StreamState.REQUESTED, StreamReason.HARD_CLOCK),
        stream(StreamState.OPEN, StreamReason.RESPONSE),
    )
    assert lines.observer.counts.nodes[A].reconnects == 2


def test_counts_of_nodes_that_left_are_kept_within_a_bound() -> None:
    lines = Lines()
    for number in range(300):
        node_id = NodeId(f"n{number}")
        lines.observer(GenerationChanged(1.0, number, (node_id,), (), (), ()))
        lines.observer(seen(node_id))
        lines.observer(GenerationChanged(1.0, number, (), (node_id,), (), ()))
        lines.observer(stream(StreamState.STOPPED, StreamReason.REMOVED, NodeId("n0")))
    counted = list(lines.observer.counts.nodes)
    assert len(counted) == 256
    assert counted[-1] == "n299"


def test_signals_outside_the_schema_have_no_line() -> None:
    assert Lines().of(NodeQuarantined(1.0, A, 1, "x"), DependentRootChanged(1.0, Epoch(1), ROOT, ROOT, ())) == []


def test_a_line_is_one_line_of_ascii_and_holds_no_url() -> None:
    """A node's words come into `detail`; they can neither break a line nor carry a secret (rule 11)."""
    lines = Lines()
    detail = 'moved to\n"https://user:pw@host:1/token?key=s3cret"\u2028\x1b[31m\ud800'
    lines.of(stream(StreamState.BACKOFF, StreamReason.REFUSED, detail=detail, retry_in=1.0))
    lines.of(replace(HEALTH, detail=detail, explanation=detail), replace(MOVED, reason=detail))
    lines.of(ClockDoubted(1.0, A, detail), BranchesDiffer(1.0, None, A, detail, {}))
    assert len(lines.written) == 5
    for text in lines.written:
        assert text.isascii()
        assert len(text.splitlines()) == 1
        assert not re.search("://|host|pw|s3cret|token|\\\\u001b", text)
        assert "moved to <url>" in text


def test_every_line_fits_the_schema_used_by_the_tests_of_the_command() -> None:
    lines = Lines()
    lines.of(
        STARTED, Started(2.0, STARTED.nodes, 16.0, 12.0), delivered(), delivered(payload_status=PayloadStatus.FULL)
    )
    lines.of(*(seen(outcome=outcome) for outcome in HeadOutcome))
    lines.of(*(stream(state, reason) for state in StreamState for reason in StreamReason))
    lines.of(GenerationChanged(3.0, 2, (A,), (B,), (), ()), REORG, replace(REORG, depth=3, reported_by=(A,)))
    lines.of(HeadHeld(4.0, B, Slot(9), ROOT), GateChanged(5.0, False, A, "held"), GateChanged(6.0, True, None, ""))
    lines.of(
        *(replace(HEALTH, state=state, reason=reason) for state in HealthState for reason in HealthReason),
        replace(HEALTH, rank=None, sync_distance=None, latency=None, offset=None, peers=None, optimistic=True),
        replace(HEALTH, state=HealthState.HEALTHY, suspect=True),
        MOVED,
        DutiesMoved(1.0, "start", None, A, ""),
        DutiesMoved(1.0, "failback", A, None, ""),
    )
    lines.of(
        AllUnhealthy(1.0, True), BranchesDiffer(1.0, None, A, "x", {}), BranchesDiffer(1.0, Slot(1), None, "", ROOTS)
    )
    lines.of(BranchesDiffer(1.0, None, A, "", {}), BranchesDiffer(1.0, Slot(2), None, "", {}))
    lines.of(FinalityDiffers(1.0, Epoch(1), ROOTS), ClockDoubted(1.0, A, "x"), ClockDoubted(1.0, None, ""))
    assert {json.loads(text)["type"] for text in lines.written} == set(LINES) - {"summary"}
    for text in [*lines.written, lines.observer.summary(30.0)]:
        check_line(text)


def test_the_schema_of_the_tests_refuses_what_does_not_fit() -> None:
    lines = Lines()
    lines.of(delivered(), HEALTH, MOVED)
    good, sick, moved = map(json.loads, lines.written)
    for bad in (
        sick | {"rank": 0},
        sick | {"suspect": True},
        sick | {"reason": "mood"},
        sick | {"peers": -1},
        moved | {"from": moved["to"]},
        moved | {"from": None},
        good | {"extra": 1},
        {key: value for key, value in good.items() if key != "late"},
        good | {"slot": "7"},
        good | {"slot": True},
        good | {"block": "0x" + "AB" * 32},
        good | {"source": "guess"},
        good | {"type": "other"},
        dict(reversed(good.items())),
    ):
        with pytest.raises(AssertionError):
            check_line(json.dumps(bad))


def test_the_documentation_lists_every_type_key_and_word() -> None:
    document = (Path(__file__).parents[2] / "docs" / "json-lines.md").read_text()
    listed = set(re.findall(r"^\| `([a-z_]+)`", document, re.MULTILINE))
    for words in (StreamReason, StreamState, HeadOutcome, HealthReason, HealthState):
        assert set(map(str, words)) <= listed, words
    for kind, keys in LINES.items():
        (section,) = re.findall(rf"^## `{kind}`.*?(?=^## |\Z)", document, re.MULTILINE | re.DOTALL)
        own = set(keys) - {"type", "time", "received"}
        assert own <= set(re.findall(r"`([a-z_]+)`", section)), kind


CHAIN = ChainIdentity(genesis_time=0.0, genesis_validators_root=ROOT, slot_duration=12.0)


@pytest.mark.parametrize(
    ("facts", "last"),
    [
        pytest.param(None, 100, id="new in the list"),
        pytest.param({"identity": None}, 100, id="not verified"),
        *(pytest.param({"state": state}, 100, id=state) for state in StreamState),
        pytest.param({"last_current_at": None}, 100, id="not fresh"),
        pytest.param({"behind": True, "state": StreamState.OPEN}, 100, id="behind by its own word"),
        pytest.param({}, None, id="no usable head"),
        pytest.param({}, 97, id="three slots behind"),
    ],
)
def test_the_documentation_has_the_words_of_every_reason_of_the_gate(
    facts: dict[str, Any] | None, last: int | None
) -> None:
    document = (Path(__file__).parents[2] / "docs" / "json-lines.md").read_text()
    (section,) = re.findall(r"^## `gate`.*?(?=^## |\Z)", document, re.MULTILINE | re.DOTALL)
    listed = set(re.findall(r"`([^`]+)`", section))
    head = NodeHead(A, Slot(last or 0), ROOT, received=1_200.0)
    ledger = Ledger(chain=CHAIN)
    if facts is not None:
        values: dict[str, Any] = {"started": 0.0, "opened": 1.0, "state": StreamState.FRESH, "last_current_at": 1_200.0}
        stream = StreamFacts(**values | {key: value for key, value in facts.items() if key != "identity"})
        ledger.nodes[A] = NodeFacts(stream, identity=facts.get("identity", CHAIN))
    found = gate(
        [A],
        ledger,
        {} if last is None else {A: head},
        Slot(100),
        1_201.0,
        SlotClock(CHAIN, offset=0.0),
        StreamTimes.of(StreamSettings(), 12.0),
    )
    assert found.reason.removeprefix("a: ") in listed
    assert found.reason.startswith("a: ") is found.open


def test_the_documentation_has_the_reason_of_a_list_without_primaries() -> None:
    times = StreamTimes.of(StreamSettings(), 12.0)
    assert gate([], Ledger(), {}, None, 0.0, SlotClock(CHAIN, 0.0), times).reason == "no primary"
    assert "`no primary`" in (Path(__file__).parents[2] / "docs" / "json-lines.md").read_text()
