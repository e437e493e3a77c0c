"""The planner keeps plans, and never one that does not hold any more (Q3, Q9, Q11, Q14, N4, N6, N9, N11, G1)."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.by_hand import ByHand
from vc_fallback.base.signals import Observers
from vc_fallback.base.types import NodeId, Role, Root, Slot, Tier
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate, Candidates
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.cooldown import Cooldowns
from vc_fallback.decide.plan import plan
from vc_fallback.health.book import HealthBook
from vc_fallback.routing.planner import Planner
from vc_fallback.settings import HealthSettings

SLOT = 12.0
CHAIN = ChainIdentity(genesis_time=0.0, genesis_validators_root=Root(b"g" * 32), slot_duration=SLOT)
A, B, C, D = (NodeId(name) for name in "abcd")
DUTIES, ATTESTATION = Role.DUTIES, Role.ATTESTATION


def candidate(name: str, *, tier: Tier = Tier.PRIMARY, **more: object) -> Candidate:
    return Candidate(BaseURL.parse(str(more.pop("url", f"http://{name}"))), name, tier=tier, **more)  # type: ignore[arg-type]


class Planned:
    """A planner over a book of health that is kept by hand: three primaries a, b, c that are well."""

    def __init__(self) -> None:
        self.clock = ByHand(100.5 * SLOT)
        self.candidates = Candidates([candidate(name) for name in "abc"])
        self.book = HealthBook(HealthSettings(), self.candidates, self.clock, Observers([]))
        self.cooldowns = Cooldowns()
        self.planner = Planner(self.candidates, self.book, self.cooldowns, self.clock)
        self.book.start()
        self.book.pin(SlotClock(CHAIN, 0.0))
        for node_id in (A, B, C):
            self.join(node_id)
        self.book.look()

    def join(self, node_id: NodeId) -> None:
        self.book.identified(node_id, "")
        self.good(node_id)
        self.book.peers(node_id, 50)

    def good(self, *nodes: NodeId, slot: int = 100, optimistic: bool = False) -> None:
        for node_id in nodes:
            self.book.check_passed(
                node_id, head_slot=Slot(slot), sync_distance=0, latency=0.01, optimistic=optimistic, el_offline=False
            )

    def update(self, *candidates: Candidate) -> None:
        change = self.candidates.update(candidates)
        for node_id in (*change.removed, *change.changed):
            self.cooldowns.warm(node_id)
        self.book.apply(change)

    def order(self, role: Role | None = DUTIES, prefer: NodeId | None = None) -> str:
        made = self.planner.plan(role, prefer)
        now = self.clock.now()
        # What is kept is what would be made now.
        fresh = plan(
            self.book.order,
            self.book.ranking,
            {node_id: member.candidate.roles for node_id, member in self.candidates.current.members.items()},
            role=role,
            cooling={n: left for n in self.candidates.current.members if (left := self.cooldowns.left(n, now)) > 0},
            prefer=prefer,
        )
        assert made.nodes == fresh.nodes
        assert [made.reason(node_id) for node_id in made.nodes] == [fresh.reason(node_id) for node_id in fresh.nodes]
        return "".join(made.nodes)


def test_a_plan_is_kept_while_nothing_has_changed() -> None:
    """It costs a request next to nothing."""
    planned = Planned()
    first = planned.planner.plan(DUTIES)
    planned.good(A, B, C)
    planned.clock.time += 5
    planned.book.look()
    preferred = planned.planner.plan(DUTIES, B)
    assert planned.planner.plan(DUTIES) is first
    assert planned.planner.plan(DUTIES, B) is preferred
    assert planned.planner.plan(ATTESTATION) is not first
    for number in range(1000):
        assert planned.planner.plan(DUTIES, NodeId(f"nobody {number}")) is first


Change = Callable[[Planned], object]


def cool(planned: Planned) -> None:
    if A in planned.candidates.current:
        planned.cooldowns.cool(A, planned.clock.now(), 2.0)


def suspect(planned: Planned) -> None:
    planned.book.request_failed(A, "refused", started=planned.clock.now(), transport=True)


def unhealthy(planned: Planned) -> None:
    for _ in range(3):
        planned.book.check_failed(A, "refused")


def drain(planned: Planned) -> None:
    if A in planned.candidates.current:
        planned.book.drain(A, 60.0)


def optimistic(planned: Planned) -> None:
    planned.good(A, optimistic=True)


def later(seconds: float) -> Change:
    def wait(planned: Planned) -> None:
        planned.clock.time += seconds
        planned.book.look()

    return wait


@pytest.mark.parametrize(
    ("change", "order", "back", "after"),
    [
        pytest.param(cool, "bca", later(1.9), "bca", id="Q11: a cool-down lasts"),
        pytest.param(cool, "bca", later(2.1), "abc", id="Q11: a cool-down ends"),
        pytest.param(cool, "bca", lambda p: p.cooldowns.warm(A), "abc", id="Q11: a cool-down is forgotten"),
        pytest.param(suspect, "bca", lambda p: p.good(A), "abc", id="53a: a suspicion ends"),
        pytest.param(unhealthy, "bca", lambda p: p.good(A, A, A), "bac", id="N9: duties stay for a while"),
        pytest.param(drain, "bca", later(61.0), "abc", id="N11: a drain ends"),
        pytest.param(drain, "bca", lambda p: (p.book.drain(A, 0.0), later(49.0)(p)), "abc",
                     id="N11: a drain was ended"),
        pytest.param(optimistic, "bca", lambda p: p.good(A), "bac", id="N9: optimistic for a moment"),
        pytest.param(
            lambda p: p.update(candidate("a"), candidate("c"), candidate("b")), "acb",
            lambda p: p.update(candidate("a"), candidate("b"), candidate("c")), "abc", id="G1: the list's order",
        ),
        pytest.param(
            lambda p: p.update(candidate("a", priority=2), candidate("b", priority=1), candidate("c")), "cba",
            lambda p: p.update(candidate("b"), candidate("c")), "bc", id="G1: priorities, and who left",
        ),
        pytest.param(
            lambda p: p.update(candidate("a", roles=frozenset({ATTESTATION})), candidate("b"), candidate("c")), "bc",
            lambda p: p.update(candidate("a"), candidate("b"), candidate("c")), "abc", id="G1: roles alone",
        ),
        pytest.param(
            lambda p: p.update(candidate("a"), candidate("d")), "a", lambda p: p.join(D), "ad", id="G6: who joins",
        ),
        pytest.param(
            lambda p: p.update(candidate("a", tier=Tier.FALLBACK), candidate("b"), candidate("c")), "bca",
            lambda p: p.book.identified(B, "its genesis is another one"), "ca", id="N7: quarantined",
        ),
    ],
)  # fmt: skip
def test_no_plan_outlives_what_it_was_made_of(change: Change, order: str, back: Change, after: str) -> None:
    """Rank, list, cool-down, drain, suspicion: when one begins and when it ends."""
    planned = Planned()
    assert planned.order() == "abc"
    assert planned.order(prefer=C) == "cab"
    change(planned)
    assert planned.order() == order
    planned.order(prefer=A)
    planned.order(None)
    back(planned)
    assert planned.order() == after
    planned.order(prefer=A)
    planned.order(None)


def test_duties_that_go_back_with_time_alone() -> None:
    """N9: the ranking is what it was, and the node that is asked first is another one."""
    planned = Planned()
    unhealthy(planned)
    planned.good(A, A, A)
    planned.book.peers(A, 50)
    planned.good(A, A, A)
    assert planned.order() == "bac"
    ranking = planned.book.ranking
    later(50.0)(planned)
    assert planned.book.ranking is ranking
    assert planned.order() == "abc"


def test_what_a_node_asked_for_is_forgotten_when_it_is_reached_in_another_way() -> None:
    """Q11: a new address is another server."""
    planned = Planned()
    cool(planned)
    planned.update(candidate("a", url="http://elsewhere"), candidate("b"), candidate("c"))
    planned.join(A)
    assert planned.planner.plan(DUTIES).cooling == {}
    planned.order()


happenings = st.sampled_from(
    [
        cool, suspect, unhealthy, drain, optimistic, later(0.5), later(3.0), later(50.0),
        lambda p: p.good(A, B, C),
        lambda p: p.good(B, slot=90),
        lambda p: p.cooldowns.cool(C, p.clock.now(), 1.0),
        lambda p: p.update(candidate("c"), candidate("a"), candidate("b")),
        lambda p: p.update(candidate("a"), candidate("b", roles=frozenset({ATTESTATION})), candidate("d")),
        lambda p: p.update(candidate("a", url="http://elsewhere"), candidate("b", tier=Tier.FALLBACK)),
        lambda p: p.update(),
        lambda p: [p.join(n) for n in p.candidates.current.members],
    ]
)  # fmt: skip


@given(st.lists(happenings, max_size=25))
def test_whatever_happens_a_kept_plan_is_the_one_that_would_be_made(changes: list[Change]) -> None:
    """The plan of every role, with and without a node to be preferred, after every step."""
    planned = Planned()
    for change in changes:
        change(planned)
        for role in (None, DUTIES, ATTESTATION):
            for prefer in (None, A, D):
                planned.order(role, prefer)
