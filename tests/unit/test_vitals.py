"""A node's health as the table shows it: one word, its place, and what speaks against it (N1, N6)."""

from collections.abc import Callable, Mapping

import pytest

from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import Observers
from vc_fallback.base.types import NodeId, Root, Slot
from vc_fallback.candidates import Candidates
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.config import FallbackConfig
from vc_fallback.health.book import HealthBook
from vc_fallback.observe.vitals import Vitals, vitals

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
NOW = 1000.0
SLOTS = SlotClock(ChainIdentity(genesis_time=0.0, genesis_validators_root=Root(bytes(32)), slot_duration=12.0), 0.0)
SLOT = SLOTS.slot_at(NOW)


class Still(Clock):
    """A clock that stands, and needs no event loop."""

    def __init__(self) -> None:
        pass

    def now(self) -> float:
        return NOW


def passed(book: HealthBook, node_id: NodeId = A, *, behind: int = 0, **says: bool) -> None:
    """A good check, of a node that is not optimistic and has its execution layer unless it says so."""
    book.check_passed(
        node_id,
        head_slot=Slot(SLOT - behind),
        sync_distance=behind,
        latency=0.01,
        optimistic=says.get("optimistic", False),
        el_offline=says.get("el_offline", False),
    )


def failed(book: HealthBook, times: int) -> None:
    for _ in range(times):
        book.check_failed(A, "refused")


def looked(*happens: Callable[[HealthBook], None], identified: bool = True) -> Mapping[NodeId, Vitals]:
    """The vitals of three nodes that are well, after what happened to them."""
    config = FallbackConfig.of({"candidates": [{"name": name, "url": f"http://{name}:1"} for name in (A, B, C)]})
    book = HealthBook(
        config.health,
        Candidates(config.candidate_list()),
        Still(),
        Observers(),
    )
    book.start()
    book.pin(SLOTS)
    for node_id in (A, B, C):
        if identified:
            book.identified(node_id, "")
        for _ in range(3):
            passed(book, node_id)
    for what in happens:
        what(book)
    return vitals(book, NOW)


def test_nodes_that_are_well_have_nothing_against_them() -> None:
    found = looked()
    assert list(found) == [A, B, C]
    assert found[A] == Vitals("healthy", 1, 0.01, None, "")
    assert [vital.rank for vital in found.values()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("happens", "health", "rank", "trouble"),
    [
        ([lambda book: failed(book, 1)], "suspect", 3, "1 failed check in a row: refused"),
        ([lambda book: failed(book, 4)], "unhealthy", 3, "4 failed checks in a row: refused"),
        ([lambda book: failed(book, 4), passed, passed], "recovering", 3, "2 of 3 good checks in a row"),
        ([lambda book: passed(book, behind=9)], "unhealthy", 3, "9 slots behind the tip"),
        ([lambda book: passed(book, behind=3)], "healthy", 3, "3 slots behind the tip"),
        ([lambda book: passed(book, optimistic=True)], "healthy", 3, "optimistic"),
        ([lambda book: passed(book, el_offline=True)], "healthy", 3, "its execution layer is offline"),
        (
            [lambda book: passed(book, el_offline=True), lambda book: failed(book, 1)],
            "suspect",
            3,
            "1 failed check in a row: refused, its execution layer is offline",
        ),
        ([lambda book: book.drain(A, 60.0)], "healthy", 3, "drained: for maintenance"),
        ([lambda book: book.identified(A, "preset differs")], "quarantined", None, "preset differs"),
        (
            [lambda book: book.identified(A, "preset differs"), lambda book: failed(book, 4)],
            "quarantined",
            None,
            "preset differs",
        ),
    ],
)
def test_a_node_has_one_word_a_place_and_a_reason(
    happens: list[Callable[[HealthBook], None]], health: str, rank: int | None, trouble: str
) -> None:
    found = looked(*happens)
    assert (found[A].health, found[A].rank, found[A].trouble) == (health, rank, trouble)
    assert found[B].health == "healthy"


def test_a_node_whose_chain_is_not_known_is_unknown_unless_it_fails() -> None:
    """I1: there is no verdict on it yet, and it has no place."""
    assert looked(identified=False)[A] == Vitals("unknown", None, 0.01, None, "")
    sick = looked(lambda book: failed(book, 3), identified=False)[A]
    assert (sick.health, sick.rank, sick.trouble) == ("unhealthy", None, "3 failed checks in a row: refused")
    doubtful = looked(lambda book: failed(book, 1), identified=False)[A]
    assert (doubtful.health, doubtful.trouble) == ("suspect", "1 failed check in a row: refused")


def test_a_node_that_was_not_checked_yet_is_unknown_and_has_its_place() -> None:
    config = FallbackConfig.of({"candidates": [{"name": A, "url": "http://a:1"}]})
    book = HealthBook(config.health, Candidates(config.candidate_list()), Still(), Observers())
    book.start()
    book.pin(SLOTS)
    book.identified(A, "")
    assert vitals(book, NOW) == {A: Vitals("unknown", 1)}


def test_peers_are_shown() -> None:
    assert looked(lambda book: book.peers(A, 87))[A].peers == 87
