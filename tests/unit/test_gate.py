"""The tier gate: which primary keeps fallbacks' heads back, as a table (C5; scenarios 16, 20, 21, 38a, 38b)."""

from dataclasses import replace
from typing import Any

import pytest

from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import NodeId, Root, Slot
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.gate import Gate, gate
from vc_fallback.decide.ledger import Ledger, NodeFacts, NodeHead, StreamFacts
from vc_fallback.decide.tip import tip
from vc_fallback.settings import StreamSettings
from vc_fallback.times import StreamTimes

CHAIN = ChainIdentity(genesis_time=1_000_000.0, genesis_validators_root=Root(b"g" * 32), slot_duration=12.0)
SLOTS = SlotClock(CHAIN, offset=1_000_000.0)
TIMES = StreamTimes.of(StreamSettings(), 12.0)
NOW = 100.5 * 12.0
P, Q = NodeId("p"), NodeId("q")


def head(slot: int, node_id: NodeId = P) -> NodeHead:
    return NodeHead(node_id, Slot(slot), Root(b"h" * 32), received=NOW)


def primary(
    *, identity: ChainIdentity | None = CHAIN, mismatch: str = "", unhealthy: str = "", **stream: Any
) -> NodeFacts:
    """Describe a primary that holds the gate, but for what is given."""
    facts: dict[str, Any] = {
        "started": 0.0,
        "requested": 10.0,
        "opened": 10.0,
        "state": StreamState.FRESH,
        "last_head": head(100),
        "last_head_at": NOW - 2,
        "last_current_at": NOW - 2,
        **stream,
    }
    return NodeFacts(StreamFacts(**facts), identity=identity, mismatch=mismatch, unhealthy=unhealthy)


def look(facts: NodeFacts | None, last: int | None = 100, top: int | None = 100, times: StreamTimes = TIMES) -> Gate:
    ledger = Ledger(chain=CHAIN, nodes={} if facts is None else {P: facts})
    heads = {} if last is None else {P: head(last)}
    return gate([P], ledger, heads, None if top is None else Slot(top), NOW, SLOTS, times)


@pytest.mark.parametrize(
    ("facts", "last", "top", "held"),
    [
        pytest.param(primary(), 100, 100, True, id="healthy, open, fresh, at the tip"),
        pytest.param(primary(), 99, 100, True, id="one slot behind the tip"),
        pytest.param(primary(), 98, 100, False, id="two slots behind the tip"),
        pytest.param(primary(), 101, 100, True, id="ahead of the tip"),
        pytest.param(primary(), 100, None, True, id="nobody else shows anything"),
        pytest.param(primary(), None, 100, False, id="38a: no usable head at all"),
        pytest.param(primary(), 97, 100, False, id="38a: its last usable head is old, its heads are optimistic"),
        pytest.param(primary(unhealthy="3 failed checks"), 100, 100, False, id="21: excluded by health"),
        pytest.param(primary(mismatch="genesis_time differs"), 100, 100, False, id="quarantined"),
        pytest.param(primary(identity=None), 100, 100, False, id="its chain is not known yet"),
        pytest.param(primary(state=StreamState.OPEN), 100, 100, True, id="open is open"),
        pytest.param(primary(state=StreamState.REQUESTED), 100, 100, False, id="the response is not open"),
        pytest.param(primary(state=StreamState.CONNECTING), 100, 100, False, id="connecting holds nothing"),
        pytest.param(primary(state=StreamState.BACKOFF), 100, 100, False, id="nor does backoff"),
        pytest.param(primary(state=StreamState.STALLED, stalled=True), 100, 100, False, id="16: stalled"),
        pytest.param(primary(stalled=True), 100, 100, False, id="16: stalled, and connected again"),
        pytest.param(primary(behind=True), 100, 100, False, id="behind the others by its own word"),
        pytest.param(primary(last_current_at=None), 100, 100, False, id="38b: only old heads came"),
        pytest.param(primary(last_current_at=None, started=NOW - 1), 100, 100, False, id="20: in its start-up grace"),
        pytest.param(None, 100, 100, False, id="not known"),
    ],
)
def test_what_holds_the_gate(facts: NodeFacts | None, last: int | None, top: int | None, held: bool) -> None:
    """C5: every condition by itself; an open gate says what the last primary lacks."""
    found = look(facts, last, top)
    assert found.open is not held
    assert found.holder == (P if held else None)
    assert found.reason


def test_with_the_watchdog_off_freshness_is_not_asked_for() -> None:
    """Scenario 13, C5: never gated by a verdict that there is not."""
    off = replace(TIMES, head_silence=None)
    assert look(primary(last_current_at=None), times=off).holder == P


def test_without_a_primary_the_gate_is_open() -> None:
    """C5."""
    assert gate([], Ledger(chain=CHAIN), {}, Slot(100), NOW, SLOTS, TIMES) == Gate(True, None, "no primary")


def test_one_primary_that_holds_it_is_enough() -> None:
    """C5, scenario 19: the first in list order that does."""
    ledger = Ledger(chain=CHAIN, nodes={P: primary(state=StreamState.BACKOFF), Q: primary()})
    heads = {P: head(100), Q: head(100, Q)}
    assert gate([P, Q], ledger, heads, Slot(100), NOW, SLOTS, TIMES).holder == Q
    ledger.nodes[P] = primary()
    assert gate([P, Q], ledger, heads, Slot(100), NOW, SLOTS, TIMES).holder == P


def test_a_primary_that_was_a_fallback_until_now_holds_the_gate_though_it_is_still_held_back_itself() -> None:
    """C5, G2: the nodes held back are those of the list before, when the gate is evaluated after a change."""
    ledger = Ledger(chain=CHAIN, nodes={P: primary()}, held=frozenset({P}))
    assert gate([P], ledger, {P: head(100)}, Slot(100), NOW, SLOTS, TIMES).holder == P


def test_what_one_fallback_announces_far_ahead_moves_no_gate() -> None:
    """Scenario 19 by its numbers, N5: two primaries at 1000, one of them fresh; the fallback's 1010 is not the tip."""
    now = 1010.5 * 12.0
    fresh = primary(last_current_at=now - 2)
    ledger = Ledger(chain=CHAIN, nodes={P: primary(stalled=True), Q: fresh})
    heads = {P: head(1000), Q: head(1000, Q)}
    shown = tip([Slot(1000), Slot(1000), Slot(1010)], SLOTS.slot_at(now))
    assert shown == 1000
    assert gate([P, Q], ledger, heads, shown, now, SLOTS, TIMES).holder == Q
