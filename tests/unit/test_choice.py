"""Whose events consumers should follow first, as a table (C7; scenarios 10, 16)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import NodeId, Root, Slot, Tier
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate, Candidates
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.choice import stream_choice
from vc_fallback.decide.gate import gate
from vc_fallback.decide.ledger import Ledger, NodeFacts, NodeHead, StreamFacts
from vc_fallback.settings import StreamSettings
from vc_fallback.times import StreamTimes

CHAIN = ChainIdentity(genesis_time=1_000_000.0, genesis_validators_root=Root(b"g" * 32), slot_duration=12.0)
SLOTS = SlotClock(CHAIN, offset=1_000_000.0)
TIMES = StreamTimes.of(StreamSettings(), 12.0)
NOW = 100.5 * 12.0

FRESH: dict[str, Any] = {}
STALLED = {"stalled": True, "state": StreamState.STALLED}
BACKOFF = {"state": StreamState.BACKOFF}
BEHIND = {"behind": True}
SILENT = {"last_current_at": None}
SICK = {"unhealthy": "refused"}
STALLED_AND_SICK = {**STALLED, **SICK}
OTHER_CHAIN = {"mismatch": "genesis_time differs"}
UNVERIFIED = {"identity": None}
OPTIMISTIC = {"last": None}
OLD = {"last": 98}

KINDS = [FRESH, STALLED, BACKOFF, BEHIND, SILENT, SICK, STALLED_AND_SICK, OTHER_CHAIN, UNVERIFIED, OPTIMISTIC, OLD]

P1, P2, F1, F2 = NAMES = [NodeId(name) for name in ("p1", "p2", "f1", "f2")]


def facts(
    *, identity: ChainIdentity | None = CHAIN, mismatch: str = "", unhealthy: str = "", last: int = 0, **stream: Any
) -> NodeFacts:
    """Describe a fresh, healthy node, but for what is given."""
    settings: dict[str, Any] = {
        "started": 0.0,
        "requested": 10.0,
        "opened": 10.0,
        "state": StreamState.FRESH,
        "last_current_at": NOW - 2,
        **stream,
    }
    return NodeFacts(StreamFacts(**settings), identity=identity, mismatch=mismatch, unhealthy=unhealthy)


def world(**kinds: dict[str, Any]) -> tuple[Candidates, Ledger, dict[NodeId, NodeHead]]:
    """Make a list, what is known of its nodes, and their usable heads: at slot 100 unless said otherwise."""
    candidates = Candidates(
        Candidate(
            url=BaseURL.parse(f"http://{name}"),
            name=name,
            tier=Tier.PRIMARY if name.startswith("p") else Tier.FALLBACK,
            priority=kind.get("priority", 0),
        )
        for name, kind in kinds.items()
    )
    ledger = Ledger(chain=CHAIN)
    heads: dict[NodeId, NodeHead] = {}
    for name, kind in kinds.items():
        ledger.nodes[NodeId(name)] = facts(**{key: kind[key] for key in kind if key != "priority"})
        last = kind.get("last", 100)
        if last is not None:
            heads[NodeId(name)] = NodeHead(NodeId(name), Slot(last), Root(b"h" * 32), received=NOW)
    return candidates, ledger, heads


def choose(times: StreamTimes = TIMES, **kinds: dict[str, Any]) -> tuple[NodeId, ...]:
    candidates, ledger, heads = world(**kinds)
    return stream_choice(candidates.current.members.values(), ledger, heads, Slot(100), NOW, SLOTS, times)


@pytest.mark.parametrize(
    ("p1", "p2", "f1", "f2", "expected"),
    [
        pytest.param(FRESH, FRESH, FRESH, FRESH, "p1 p2 f1 f2", id="all well: by tier and list order"),
        pytest.param(STALLED, FRESH, FRESH, FRESH, "p2 f1 f2 p1", id="10: a fresh primary before a stalled one"),
        pytest.param(STALLED, STALLED, FRESH, FRESH, "f1 f2 p1 p2", id="16: no fresh primary, so fresh fallbacks"),
        pytest.param(STALLED, BACKOFF, STALLED, FRESH, "f2 p1 p2 f1", id="16: any fresh and healthy node"),
        pytest.param(STALLED, STALLED, STALLED, STALLED, "p1 p2 f1 f2", id="16: all stalled: plain health order"),
        pytest.param(STALLED_AND_SICK, STALLED, STALLED, STALLED, "p2 f1 f2 p1", id="healthy before unhealthy"),
        pytest.param(SICK, SICK, STALLED, STALLED, "f1 f2 p1 p2", id="health, not freshness, steers then"),
        pytest.param(SICK, SICK, SICK, SICK, "p1 p2 f1 f2", id="nobody is well: every node still counts"),
        pytest.param(SICK, FRESH, FRESH, FRESH, "p2 f1 f2 p1", id="fresh is not enough"),
        pytest.param(BEHIND, FRESH, FRESH, FRESH, "p2 f1 f2 p1", id="behind by its own word"),
        pytest.param(SILENT, FRESH, FRESH, FRESH, "p2 f1 f2 p1", id="38b: no current head yet"),
        pytest.param(OPTIMISTIC, OLD, FRESH, FRESH, "f1 f2 p1 p2", id="38a: no usable head near the tip"),
        pytest.param(OTHER_CHAIN, UNVERIFIED, FRESH, FRESH, "f1 f2", id="another chain, or not known yet"),
        pytest.param({"priority": 2}, {"priority": 1}, FRESH, FRESH, "p2 p1 f1 f2", id="priority within a tier"),
        pytest.param({"priority": 9}, STALLED, {"priority": -9}, FRESH, "p1 f1 f2 p2", id="never across tiers"),
        pytest.param(
            {**STALLED, "priority": 2}, {**STALLED, "priority": 1}, STALLED, STALLED, "p2 p1 f1 f2", id="there as well"
        ),
    ],
)
def test_the_order(
    p1: dict[str, Any], p2: dict[str, Any], f1: dict[str, Any], f2: dict[str, Any], expected: str
) -> None:
    """C7: fresh and healthy primary → any fresh and healthy node → plain health order."""
    assert " ".join(choose(p1=p1, p2=p2, f1=f1, f2=f2)) == expected


def test_with_the_watchdog_off_freshness_is_not_asked_for() -> None:
    """Scenario 13: there is no verdict then."""
    off = replace(TIMES, head_silence=None)
    assert choose(off, f1=FRESH, p1=SILENT) == (P1, F1)


def test_a_node_that_is_not_known_is_left_out() -> None:
    """G2: of a list that has just changed."""
    candidates, ledger, heads = world(p1=FRESH, f1=FRESH)
    del ledger.nodes[P1]
    assert stream_choice(candidates.current.members.values(), ledger, heads, None, NOW, SLOTS, TIMES) == (F1,)
    assert stream_choice([], ledger, heads, None, NOW, SLOTS, TIMES) == ()


@given(st.lists(st.sampled_from(KINDS), min_size=4, max_size=4))
def test_the_first_choice_is_of_the_tier_that_heads_are_delivered_from(kinds: list[dict[str, Any]]) -> None:
    """C5, C7: a primary that holds the gate is before every fallback; and nobody usable is left out or doubled."""
    candidates, ledger, heads = world(**dict(zip(NAMES, kinds, strict=True)))
    order = stream_choice(candidates.current.members.values(), ledger, heads, Slot(100), NOW, SLOTS, TIMES)
    assert sorted(order) == sorted(node_id for node_id, facts in ledger.nodes.items() if facts.verified)
    found = gate([P1, P2], ledger, heads, Slot(100), NOW, SLOTS, TIMES)
    if found.holder is not None:
        assert order[0] == found.holder
    well = [node_id for node_id in order if not ledger.nodes[node_id].unhealthy]
    if well and order:
        # Never worse off than requests, which go to a healthy node where there is one.
        assert order[0] in well
