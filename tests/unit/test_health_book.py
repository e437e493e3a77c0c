"""The book of health by itself: list changes, quarantine, and observers that interfere (N1–N11, G2; rules 3, 4)."""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.by_hand import ByHand
from vc_fallback.base.health import HealthState
from vc_fallback.base.health_signals import (
    AllUnhealthy,
    BranchesDiffer,
    ClockDoubted,
    DutiesMoved,
    FinalityDiffers,
    HealthChanged,
)
from vc_fallback.base.signals import Observers, Signal
from vc_fallback.base.types import Epoch, NodeId, Root, Slot, Tier
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate, Candidates
from vc_fallback.chain import NETWORKS, ChainIdentity, SlotClock
from vc_fallback.health.book import HealthBook
from vc_fallback.settings import HealthSettings

SLOT = 12.0
CHAIN = ChainIdentity(genesis_time=0.0, genesis_validators_root=Root(b"g" * 32), slot_duration=SLOT)
A, B, C, D = (NodeId(name) for name in "abcd")
P, F = Tier.PRIMARY, Tier.FALLBACK


def candidate(name: str, tier: Tier = P, **more: Any) -> Candidate:
    return Candidate(BaseURL.parse(more.pop("url", f"http://{name}")), name, tier=tier, **more)


def root(slot: int, branch: int = 0) -> Root:
    return Root(bytes([branch]) + slot.to_bytes(31, "big"))


class Kept:
    """A book whose nodes are of the pinned chain, checked and well, in the middle of slot 100."""

    def __init__(
        self, *candidates: Candidate, chain: ChainIdentity = CHAIN, well: bool = True, **settings: Any
    ) -> None:
        self.clock = ByHand(100.5 * SLOT - 1.0)
        self.candidates = Candidates(candidates)
        self.told: list[Signal] = []
        self.verdicts: list[tuple[NodeId, bool]] = []
        self.observers: list[Callable[[Signal], None]] = [self.told.append]
        self.book = HealthBook(HealthSettings(**settings), self.candidates, self.clock, Observers([self.observe]))
        self.book.on_verdict = lambda node_id: self.verdicts.append((node_id, not self.book.unhealthy(node_id)))
        self.book.start()
        self.book.pin(SlotClock(chain, 0.0))
        for node_id in self.candidates.current.members if well else ():
            self.join(node_id)
        self.clock.time = 100.5 * SLOT
        self.book.look()
        self.told.clear()

    def observe(self, signal: Signal) -> None:
        for observer in self.observers:
            observer(signal)

    def join(self, node_id: NodeId) -> None:
        self.book.identified(node_id, "")
        self.good(node_id)
        self.book.peers(node_id, 50)

    def good(self, *nodes: NodeId, slot: int = 100, **more: Any) -> None:
        for node_id in nodes:
            self.book.check_passed(
                node_id,
                head_slot=Slot(slot),
                sync_distance=0,
                latency=0.01,
                **{"optimistic": False, "el_offline": False} | more,
            )

    def bad(self, *nodes: NodeId, times: int = 3) -> None:
        for node_id in nodes:
            for _ in range(times):
                self.book.check_failed(node_id, "refused")

    def head(self, node_id: NodeId, slot: int, branch: int = 0) -> None:
        self.book.head(node_id, Slot(slot), root(slot, branch), announced=True, optimistic=False)

    def update(self, *candidates: Candidate) -> None:
        self.book.apply(self.candidates.update(candidates))

    def of(self, kind: type[Any]) -> list[Any]:
        return [signal for signal in self.told if isinstance(signal, kind)]

    @property
    def ranking(self) -> str:
        return "".join(self.book.ranking.order)

    @property
    def order(self) -> str:
        return "".join(self.book.order)


# The list.


def test_a_node_that_only_changed_its_place_tier_or_priority_is_ranked_by_the_new_one_and_keeps_its_health() -> None:
    """G2, N6."""
    kept = Kept(candidate("a"), candidate("b"), candidate("c", F))
    kept.good(A, A)
    kept.bad(C, times=1)
    health = {node_id: kept.book.records[node_id].health for node_id in (A, B, C)}
    kept.update(candidate("c", F), candidate("b"), candidate("a"))
    assert kept.ranking == "bac"
    kept.update(candidate("c", F), candidate("b", priority=5), candidate("a"))
    assert kept.ranking == "abc"
    kept.update(candidate("c"), candidate("b", F), candidate("a", F))
    assert kept.ranking == "cba"
    assert list(kept.book.records) == [C, B, A]
    assert {node_id: record.health for node_id, record in kept.book.records.items()} == health
    assert kept.book.verdict(C).suspect == "1 failed check in a row: refused"


def test_a_node_that_is_reached_in_another_way_begins_anew_and_stays_drained() -> None:
    """G2, N11: whoever drains a node means the node, not the way in which it is reached."""
    kept = Kept(candidate("a"), candidate("b"))
    kept.bad(A)
    kept.book.drain(A, 600.0)
    kept.update(candidate("a", url="http://elsewhere"), candidate("b"))
    assert kept.book.verdict(A).state is HealthState.HEALTHY
    assert kept.book.verdict(A).excluded == "its chain is not known yet"
    assert kept.book.records[A].check_now
    assert kept.book.verdict(A).drained == 600.0
    kept.join(A)
    assert kept.ranking == "ba"
    kept.update(candidate("b"))
    kept.update(candidate("a"), candidate("b"))
    assert kept.book.verdict(A).drained == 0.0


def test_what_a_node_showed_goes_with_it() -> None:
    """G2, N5: two nodes that leave have no say in the tip."""
    kept = Kept(candidate("a"), candidate("b"), candidate("c"))
    kept.head(A, 90)
    kept.head(B, 100)
    kept.head(C, 100)
    kept.clock.time += SLOT
    kept.head(A, 91)
    assert kept.book.verdict(A).lag == 9
    assert kept.book.unhealthy(A) == "10 slots behind the tip", "as it was found"
    kept.update(candidate("a"))
    kept.head(A, 92)
    assert kept.book.verdict(A).lag == 0


def test_a_list_that_becomes_empty_and_fills_again() -> None:
    """G6, N10: nobody is no alarm."""
    kept = Kept(candidate("a"))
    kept.bad(A)
    assert kept.book.all_unhealthy
    kept.update()
    assert (kept.ranking, kept.order, kept.book.active, kept.book.all_unhealthy) == ("", "", None, False)
    kept.update(candidate("b"))
    kept.join(B)
    assert (kept.ranking, kept.order, kept.book.active) == ("b", "b", B)
    assert [(m.kind, m.source, m.target) for m in kept.of(DutiesMoved)] == [("failover", A, None), ("start", None, B)]
    assert [alarm.begins for alarm in kept.of(AllUnhealthy)] == [True, False]
    with pytest.raises(KeyError):
        kept.book.verdict(A)
    with pytest.raises(KeyError):
        kept.book.explain(A)
    with pytest.raises(KeyError):
        kept.book.drain(A, 1.0)
    assert kept.book.unhealthy(A) == "not in the list"
    # What comes of its requests and checks later is nobody's.
    kept.bad(A)
    kept.good(A)
    kept.head(A, 100)
    kept.book.peers(A, 1)
    kept.book.future_slot(A)
    kept.book.duty_answered(A, 1.0)
    kept.book.request_failed(A, "x", started=0.0, transport=True)
    kept.book.finalized(A, Epoch(3), root(1))
    kept.book.answered(A)
    kept.book.named_chain(A)
    assert not kept.book.identified(A, "other")
    assert list(kept.book.records) == [B]


# Chains.


def test_a_node_of_another_chain_is_left_out_and_down_and_its_words_count_no_more() -> None:
    """N7, N10, rule 3: told once; and alone it is the alarm that a node that is down is."""
    kept = Kept(candidate("a"), candidate("b"), candidate("c"))
    for node_id in (A, B, C):
        kept.head(node_id, 100)
    assert not kept.book.identified(A, "genesis_time differs")
    assert not kept.book.identified(A, "genesis_time differs")
    assert kept.verdicts == [(A, False)]
    assert (kept.ranking, kept.book.unhealthy(A)) == ("bc", "genesis_time differs")
    (moved,) = kept.of(DutiesMoved)
    assert (moved.kind, moved.target, moved.reason) == ("failover", B, "a: genesis_time differs")
    kept.head(A, 101)
    kept.good(A, slot=101)
    kept.book.finalized(A, Epoch(3), root(1))
    verdict = kept.book.verdict(A)
    assert (verdict.rank, verdict.lag, verdict.sync_distance, verdict.offset) == (None, None, None, None)
    kept.book.identified(B, "genesis_time differs")
    kept.book.identified(C, "genesis_time differs")
    assert kept.book.all_unhealthy
    assert kept.order == ""


def test_a_node_that_is_back_on_the_chain_is_checked_at_once_and_given_nothing_before_three_good_checks() -> None:
    """N7, N9: it may have been another node."""
    kept = Kept(candidate("a"), candidate("b"))
    kept.book.identified(A, "genesis_time differs")
    kept.clock.time += 10 * SLOT
    kept.good(A, A, A, slot=1)
    kept.book.records[A].check_now = False
    assert kept.book.identified(A, "")
    assert kept.verdicts == [(A, False), (A, True)]
    assert kept.book.records[A].check_now
    assert kept.book.verdict(A).lag is None
    assert (kept.ranking, kept.order) == ("ab", "ba")
    kept.book.peers(A, 50)
    for count in range(3):
        assert kept.book.active == B, count
        kept.good(A, slot=110)
    assert kept.book.active == A


def test_a_head_of_the_far_future_is_no_proof_against_a_clock() -> None:
    """N8, H13: nor does it push what is known of the others aside."""
    kept = Kept(candidate("a"), candidate("b"), candidate("c"))
    kept.clock.time = 101 * SLOT + 1.0
    for node_id in (B, C):
        kept.head(node_id, 101)
    for number in range(10):
        kept.head(A, 2**64 - 1 - number)
    kept.clock.time = 102 * SLOT
    kept.book.slot_ended(Slot(101))
    assert kept.book.verdict(A).offset is None
    assert kept.book.verdict(B).offset == 0.0
    assert kept.ranking == "bca", "its head is beyond the clock"


# Duties.


def test_peers_that_a_node_had_before_it_was_down_do_not_count() -> None:
    """N9, case 29: it is asked anew before duties go back to it; one that does not say is believed."""
    chain = replace(CHAIN, genesis_validators_root=NETWORKS["mainnet"].genesis_validators_root)
    kept = Kept(candidate("a"), candidate("b"), chain=chain)
    kept.bad(A)
    assert kept.book.active == B
    kept.clock.time += 10 * SLOT
    kept.good(A, A, A)
    assert kept.book.verdict(A).state is HealthState.HEALTHY
    assert kept.book.active == B, "50 were before"
    kept.book.peers(A, 3)
    assert kept.book.active == B
    kept.book.peers(A, 15)
    assert kept.book.active == A
    kept.bad(A)
    kept.clock.time += 10 * SLOT
    kept.good(A, A, A)
    kept.book.peers(A, None)
    assert kept.book.active == A


def test_a_drain_ends_by_itself_and_by_hand() -> None:
    """N11: live, and told each time."""
    kept = Kept(candidate("a"), candidate("b", F), dwell=0.0)
    begun = kept.clock.time
    kept.book.drain(A, 60.0)
    assert (kept.ranking, kept.order, kept.book.active) == ("ba", "ba", B)
    assert kept.book.explain(A).startswith("a is 2 of 2: a primary that is drained: for maintenance; after b")
    assert kept.book.look() == begun + 0.1, "to tell of the places"
    kept.clock.time += 0.1
    assert kept.book.look() == begun + 60.0
    kept.clock.time = begun + 59.9
    kept.good(A)
    kept.book.look()
    assert kept.ranking == "ba"
    assert kept.book.verdict(A).drained == pytest.approx(0.1)
    kept.clock.time = begun + 60.0
    kept.book.look()
    assert (kept.ranking, kept.book.active, kept.book.verdict(A).drained) == ("ab", A, 0.0)
    kept.book.drain(A, 60.0)
    kept.book.drain(A, 0.0)
    assert kept.ranking == "ab"
    assert [change.rank for change in kept.of(HealthChanged) if change.node_id == A] == [2, 1, 2, 1]


def test_the_only_node_may_be_drained() -> None:
    """N11: last of one is first; it is told all the same."""
    kept = Kept(candidate("a"))
    kept.book.drain(A, 60.0)
    assert (kept.order, kept.book.active) == ("a", A)
    assert len(kept.of(HealthChanged)) == 1


# What is told.


def test_nothing_is_told_that_is_no_news() -> None:
    """N1: checks and heads of nodes that are well; nor of a node that is not known yet."""
    kept = Kept(candidate("a"), candidate("b"))
    for slot in range(101, 120):
        kept.clock.time = slot * SLOT + 2
        kept.head(A, slot)
        kept.head(B, slot)
        kept.clock.time = slot * SLOT + 10
        kept.good(A, B, slot=slot)
        kept.clock.time = (slot + 1) * SLOT
        kept.book.slot_ended(Slot(slot))
        kept.book.look()
    assert kept.told == []
    assert kept.verdicts == []
    kept.update(candidate("a"), candidate("b"), candidate("c"))
    assert kept.told == []


def test_of_one_node_that_falls_all_is_told_in_order() -> None:
    """N1, N9: what became of the node, then of the duties, and in a moment whom it let pass; each as it is by then."""
    kept = Kept(candidate("a"), candidate("b"), candidate("c"))
    begun = kept.clock.time
    kept.bad(A, times=1)
    assert kept.book.look() == begun + 0.1
    kept.bad(A, times=2)
    kept.clock.time = begun + 0.1
    assert kept.book.look() == begun + 48.0
    assert [
        (type(signal).__name__, getattr(signal, "node_id", getattr(signal, "target", None))) for signal in kept.told
    ] == [
        ("HealthChanged", A),
        ("HealthChanged", A),
        ("DutiesMoved", B),
        ("HealthChanged", B),
        ("HealthChanged", C),
    ]
    assert [change.rank for change in kept.of(HealthChanged)] == [3, 3, 1, 2]
    suspect, down = kept.told[:2]
    assert isinstance(suspect, HealthChanged)
    assert (suspect.state, suspect.suspect, suspect.rank) == (HealthState.HEALTHY, True, 3)
    assert isinstance(down, HealthChanged)
    assert (down.state, down.suspect, down.rank, down.detail) == (
        HealthState.UNHEALTHY,
        False,
        3,
        "3 failed checks in a row: refused",
    )
    assert down.explanation == (
        "a is 3 of 3: a primary that does not answer (3 failed checks in a row: refused); "
        "after c: that one is usable, and a primary"
    )


def test_nodes_that_pass_each_other_by_are_told_of_once() -> None:
    """N6: ten of a hundred fall in one moment; told of each is where it came to stand, not every step on the way."""
    names = [NodeId(f"n{number}") for number in range(100)]
    kept = Kept(*(candidate(name) for name in names))
    sooner = 0

    def count() -> None:
        nonlocal sooner
        sooner += 1

    kept.book.on_sooner = count
    kept.good(*names[:10], optimistic=True)
    assert sooner == 1, "one look is enough"
    kept.clock.time += 0.1
    kept.book.look()
    last = {change.node_id: change.rank for change in kept.of(HealthChanged)}
    assert last == kept.book.ranking.numbers
    assert len(kept.of(HealthChanged)) == 110 - 1, "the first ones once more, but for the last of them"


def test_branches_and_finality_are_told_once() -> None:
    """N3, case 43: the split, who is blamed, and the conflict; that it is over, too."""
    kept = Kept(candidate("a"), candidate("b"), candidate("c"))
    for slot in (101, 102, 103, 104, 105):
        kept.clock.time = slot * SLOT + 2
        for node_id in (A, B, C):
            kept.head(node_id, slot, branch=1 if node_id == A and slot < 104 else 0)
        kept.clock.time = (slot + 1) * SLOT
        kept.book.slot_ended(Slot(slot))
        assert kept.ranking == ("abc" if slot in (101, 105) else "bca"), slot
    for node_id in (A, B, C, A, B, C):
        kept.book.finalized(node_id, Epoch(2), root(64, branch=node_id == A))
    blamed = [(told.slot, told.blamed, bool(told.reason)) for told in kept.of(BranchesDiffer)]
    assert blamed == [
        (101, None, False),
        (102, A, True),
        (102, None, False),
        (103, None, False),
        (104, None, False),
        (105, A, False),
    ]
    assert [bool(told.roots) for told in kept.of(BranchesDiffer)] == [True, False, True, True, False, False]
    (conflict,) = kept.of(FinalityDiffers)
    assert set(conflict.roots.values()) == {(A,), (B,)}


def fork(kept: Kept, slots: range, *odd: NodeId) -> None:
    """Let some nodes show another branch in these slots."""
    for slot in slots:
        kept.clock.time = slot * SLOT + 2
        for node_id in kept.candidates.current.members:
            kept.head(node_id, slot, branch=1 if node_id in odd else 0)
        kept.clock.time = (slot + 1) * SLOT
        kept.book.slot_ended(Slot(slot))


@pytest.mark.parametrize("why", ["down", "on another chain"])
def test_a_verdict_on_a_branch_ends_with_what_is_known_of_the_node(why: str) -> None:
    """N3: nobody says that it is with the others again; and the split is over, as far as is known."""
    kept = Kept(candidate("a"), candidate("b"), candidate("c"), candidate("d"))
    fork(kept, range(101, 103), A)
    assert kept.ranking == "bcda"
    kept.told.clear()
    if why == "down":
        kept.bad(A)
    else:
        kept.book.identified(A, "genesis_validators_root differs")
    kept.book.slot_ended(Slot(103))
    assert [(told.slot, told.blamed, told.reason, told.roots) for told in kept.of(BranchesDiffer)] == [
        (None, A, "", {}),
        (103, None, "", {}),
    ]
    kept.book.slot_ended(Slot(104))
    assert len(kept.of(BranchesDiffer)) == 2


def test_of_a_node_that_left_no_end_is_told() -> None:
    """G3: the change of the list says that it is gone."""
    kept = Kept(candidate("a"), candidate("b"), candidate("c"), candidate("d"))
    fork(kept, range(101, 103), A)
    kept.book.future_slot(A)
    kept.book.slot_ended(Slot(102))
    assert [told.node_id for told in kept.of(ClockDoubted)] == [A]
    kept.told.clear()
    kept.update(candidate("b"), candidate("c"), candidate("d"))
    kept.book.slot_ended(Slot(103))
    assert [(told.blamed, told.roots) for told in kept.of(BranchesDiffer)] == [(None, {})], "the split is over"
    assert not kept.of(ClockDoubted)


def test_a_fork_is_not_over_while_a_header_is_wanting() -> None:
    """N3: nodes whose heads are at different slots are not seen to agree before their headers are known."""
    kept = Kept(candidate("a"), candidate("b"))
    fork(kept, range(101, 102), A)
    kept.told.clear()
    kept.clock.time = 102 * SLOT + 2
    kept.head(A, 102, branch=1)
    kept.clock.time = 103 * SLOT
    kept.book.slot_ended(Slot(102))
    assert kept.book.consistency.wanted == ((A, root(102, 1)),)
    assert not kept.of(BranchesDiffer)
    kept.book.consistency.branches.link(root(102, 1), Slot(102), root(101, 0))
    kept.book.headers_known()
    assert [(told.slot, told.roots) for told in kept.of(BranchesDiffer)] == [(102, {})], "it has come round"
    assert not kept.book.consistency.wanted


def test_of_forks_the_newest_is_told_and_no_older_one_after_it_for_want_of_a_header() -> None:
    """N3: two nodes have stopped on two branches; the others go on, and part as well."""
    kept = Kept(candidate("a"), candidate("b"), candidate("c"), candidate("d"))
    fork(kept, range(101, 102), B, D)
    for slot, node_id, branch in ((102, A, 0), (102, B, 1), (103, A, 0)):
        kept.clock.time = slot * SLOT + 2
        kept.head(node_id, slot, branch)
        if node_id == B or slot == 103:
            kept.clock.time = (slot + 1) * SLOT
            kept.book.slot_ended(Slot(slot))
    assert kept.book.consistency.splits[0].slot == 101
    assert kept.book.consistency.undecided
    assert [told.slot for told in kept.of(BranchesDiffer) if told.blamed is None] == [101, 102]


def test_a_clock_that_is_in_doubt_is_told_and_so_is_its_end() -> None:
    """N8: of a node, and of ourselves."""
    kept = Kept(candidate("a"), candidate("b"))
    for slot in range(101, 120):
        kept.clock.time = slot * SLOT - (0.3 if slot == 101 else -1.0)
        kept.head(A, slot)
        kept.clock.time = slot * SLOT + 1.0
        kept.head(B, slot)
        if slot == 102:
            kept.book.future_slot(A)
            kept.book.future_slot(B)
        kept.clock.time = (slot + 1) * SLOT
        kept.book.slot_ended(Slot(slot))
    early, future = "a head came 0.30 s before its slot", "says that our slots are in the future"
    ours = "2 nodes say that our slots are in the future: our clock is fast"
    assert [(told.at / SLOT - 1, told.node_id, told.warning) for told in kept.of(ClockDoubted)] == [
        (101, A, early),
        (102, None, ours),
        (102, B, future),
        (118, None, ""),
        (118, A, ""),
        (118, B, ""),
    ]


def test_the_chain_that_is_pinned_anew_ends_no_doubt_in_silence() -> None:
    """N8, N7: it is pinned again when forks have come; what is known of clocks stays."""
    kept = Kept(candidate("a"), candidate("b"))
    kept.book.future_slot(A)
    kept.book.slot_ended(Slot(100))
    kept.book.pin(SlotClock(CHAIN, 0.0))
    assert kept.book.verdict(A).clock
    kept.book.slot_ended(Slot(200))
    assert [told.warning for told in kept.of(ClockDoubted)] == ["says that our slots are in the future", ""]


# Observers that interfere.


def test_an_observer_may_change_the_list_while_it_is_told() -> None:
    """G3: whatever it is told of; of a node that is gone nothing is told any more, and what is told is so."""
    names = "abcdef"
    for seed in range(60):
        dice = random.Random(seed)
        kept = Kept(*(candidate(name, dice.choice([P, F])) for name in names))
        depth = 0

        def interfere(signal: Signal, dice: random.Random = dice, kept: Kept = kept) -> None:
            nonlocal depth
            depth += 1
            assert depth == 1, "told from within the telling of something else"
            listed = kept.candidates.current.members
            if isinstance(signal, HealthChanged):
                assert signal.node_id in listed
                assert signal.rank == kept.book.ranking.numbers.get(signal.node_id)
                assert signal.generation == kept.candidates.generation
                assert signal.state is kept.book.verdict(signal.node_id).state
            assert set(kept.book.records) == set(listed)
            assert set(kept.book.ranking.places) | set(kept.book.ranking.left_out) == set(listed)
            if dice.random() < 0.2:
                kept.update(*(candidate(name, dice.choice([P, F])) for name in names if dice.random() < 0.7))
            elif listed and dice.random() < 0.2:
                kept.book.drain(dice.choice(list(listed)), dice.choice([0.0, 30.0]))
            depth -= 1

        kept.observers.append(interfere)
        for _ in range(200):
            kept.clock.time += dice.choice([0.0, 1.0, SLOT])
            name = NodeId(dice.choice(names))
            slot = int(kept.clock.time // SLOT)
            match dice.randrange(8):
                case 0:
                    kept.join(name)
                case 1:
                    kept.bad(name, times=dice.choice([1, 3]))
                case 2:
                    kept.head(name, slot - dice.choice([0, 1, 3, 20]), branch=dice.randrange(2))
                case 3:
                    kept.book.request_failed(name, "x", started=kept.clock.time, transport=dice.random() < 0.5)
                case 4:
                    kept.book.identified(name, dice.choice(["", "genesis_time differs"]))
                case 5:
                    kept.book.slot_ended(Slot(slot))
                case 6:
                    kept.good(name, slot=slot, optimistic=dice.random() < 0.5)
                case _:
                    kept.book.look()
            assert kept.book.active is None or kept.book.active in kept.candidates.current
            assert set(kept.order) == set(kept.book.ranking.places)


def test_an_observer_that_drains_whoever_takes_over_is_told_of_every_move() -> None:
    """N9, N11: in the order in which they were; each by itself."""
    kept = Kept(candidate("a"), candidate("b"), candidate("c"))

    def drain(signal: Signal) -> None:
        if isinstance(signal, DutiesMoved) and signal.target in (B, C):
            kept.book.drain(signal.target, 60.0)

    kept.observers.append(drain)
    kept.bad(A)
    assert [(move.source, move.target) for move in kept.of(DutiesMoved)] == [(A, B), (B, C), (C, A)]
    assert kept.order == "abc"


# What it costs.


def test_a_head_of_one_of_a_hundred_nodes_costs_well_under_a_tenth_of_a_millisecond() -> None:
    """With heads of all in every slot, some of which are missed (processor time: the machine does more)."""
    names = [f"n{number}" for number in range(100)]
    kept = Kept(*(candidate(name, F if number % 2 else P) for number, name in enumerate(names)))
    heads, ends = [], []
    for slot in range(101, 120):
        order = [NodeId(name) for name in names]
        random.Random(slot).shuffle(order)
        for number, node_id in enumerate(order if slot % 4 else []):
            kept.clock.time = slot * SLOT + 1 + 0.02 * number
            begun = time.thread_time_ns()
            kept.head(node_id, slot)
            heads.append(time.thread_time_ns() - begun)
        kept.clock.time = slot * SLOT + 10
        kept.good(*order, slot=slot if slot % 4 else slot - 1)
        kept.clock.time = (slot + 1) * SLOT
        begun = time.thread_time_ns()
        kept.book.slot_ended(Slot(slot))
        ends.append(time.thread_time_ns() - begun)
    assert sorted(heads)[len(heads) // 2] < 60_000
    assert min(ends) < 5_000_000
