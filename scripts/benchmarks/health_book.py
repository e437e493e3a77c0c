"""What the book of health costs with many nodes, without sockets, on a clock that is set by hand."""

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial

from scripts.benchmarks.decisions import SLOT, ByHand
from vc_fallback import BaseURL, Candidate, Epoch, HealthChanged, NodeId, Root, Signal, Slot, Tier
from vc_fallback.base.signals import Observers
from vc_fallback.candidates import Candidates
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.decide.rank import RankFacts, Ranking, rank
from vc_fallback.health.book import HealthBook
from vc_fallback.settings import HealthSettings

Times = dict[str, list[float]]
"""Microseconds of processor time for each time something was done."""


def ranking(nodes: int, times: int) -> Times:
    """Rank nodes, half of them fallbacks, some of them not well, from nothing; and with other facts of one of them."""
    names = [NodeId(f"bn{index}") for index in range(nodes)]
    facts = [
        RankFacts(
            name,
            tier=Tier.FALLBACK if index % 2 else Tier.PRIMARY,
            index=index,
            lag=index % 3,
            optimistic=index % 10 == 1,
            unhealthy="refused" if index % 10 == 3 else "",
        )
        for index, name in enumerate(names)
    ]
    ranked: Ranking = rank(facts)
    at_its_place, down = RankFacts(names[0], index=0, lag=0, peers=50), RankFacts(names[0], index=0, unhealthy="x")
    return {
        "all nodes ranked": [_time(partial(rank, facts)) for _ in range(times)],
        "other facts of one that stays where it is": [
            _time(partial(ranked.changed, at_its_place)) for _ in range(times)
        ],
        "the first one falls": [_time(partial(ranked.changed, down)) for _ in range(times)],
    }


class Book:
    """A book of nodes that are well, half of them fallbacks."""

    def __init__(self, nodes: int) -> None:
        self.clock = ByHand()
        self.slot = Slot(1000)
        self.news = 0
        candidates = Candidates(
            [
                Candidate(BaseURL.parse(f"http://bn{n}"), f"bn{n}", tier=Tier.FALLBACK if n % 2 else Tier.PRIMARY)
                for n in range(nodes)
            ]
        )
        self.book = HealthBook(HealthSettings(), candidates, self.clock, Observers([self._told]))
        self.book.start()
        self.book.pin(SlotClock(ChainIdentity(0.0, Root(bytes(32)), SLOT), 0.0))
        self.nodes = list(candidates.current.members)
        for node_id in self.nodes:
            self.book.identified(node_id, "")
            self.book.peers(node_id, 50)
        self.check()

    def _told(self, signal: Signal) -> None:
        self.news += isinstance(signal, HealthChanged)

    def next_slot(self) -> None:
        """Go on to the next slot, 1 s into it."""
        self.slot = Slot(self.slot + 1)
        self.clock.time = self.slot * SLOT + 1.0

    def heads(self, root: Callable[[int], Root]) -> list[float]:
        """Let every node show a head of this slot, `root(index)`, within a second."""
        return list(self._each(lambda index, node_id: self._head(node_id, root(index))))

    def check(self) -> list[float]:
        """Let every node answer a check."""
        return list(self._each(lambda _, node_id: self._checked(node_id)))

    def end(self) -> float:
        """Look back on the slot."""
        self.clock.time = (self.slot + 1) * SLOT
        return _time(lambda: self.book.slot_ended(self.slot))

    def _each(self, act: Callable[[int, NodeId], None]) -> Iterator[float]:
        for index, node_id in enumerate(self.nodes):
            self.clock.time += 1.0 / len(self.nodes)
            yield _time(lambda index=index, node_id=node_id: act(index, node_id))  # type: ignore[misc]

    def _head(self, node_id: NodeId, root: Root) -> None:
        self.book.head(node_id, self.slot, root, announced=True, optimistic=False)

    def _checked(self, node_id: NodeId) -> None:
        self.book.check_passed(
            node_id, head_slot=self.slot, sync_distance=0, latency=0.01, optimistic=False, el_offline=False
        )


def book(nodes: int, slots: int) -> Times:
    """Let nodes show heads, pass checks, and be looked back on; on one branch, on two, and each on its own."""
    times: Times = {}
    on_one = Book(nodes)
    for _ in range(slots):
        on_one.next_slot()
        times.setdefault("a head", []).extend(on_one.heads(lambda _: block(on_one.slot)))
        times.setdefault("a check", []).extend(on_one.check())
        times.setdefault("the end of a slot, all agree", []).append(on_one.end())
    on_two = Book(nodes)
    for _ in range(slots):
        on_two.next_slot()
        on_two.heads(lambda index: block(on_two.slot, index % 4 == 0))
        times.setdefault("the end of a slot, two branches", []).append(on_two.end())
    apart = Book(nodes)
    for _ in range(slots):
        apart.next_slot()
        apart.heads(partial(block, apart.slot))
        times.setdefault("the end of a slot, each shows another head", []).append(apart.end())
    falls = Book(nodes)
    for _ in range(slots):
        falls.clock.time += SLOT
        for _ in range(2):
            falls.book.check_failed(falls.nodes[0], "refused")
        times.setdefault("the first node is found down", []).append(
            _time(lambda: falls.book.check_failed(falls.nodes[0], "refused"))
        )
        falls.clock.time += 1.0
        times.setdefault("the others move up, and are told of", []).append(_time(falls.book.look))
        for _ in range(3):
            falls.check()
        falls.clock.time += 1.0
        falls.book.look()
    return times


def memory(nodes: int, slots: int) -> tuple[float, float, float]:
    """Fill the histories of nodes with everything that can be kept.

    :returns: bytes of each node when it is new, when all is full, and after twice the time.
    """
    tracemalloc.start()
    try:
        empty = _allocated()
        kept = Book(nodes)
        new = _allocated() - empty
        _live(kept, slots)
        full = _allocated() - empty
        _live(kept, slots)
        return new / nodes, full / nodes, (_allocated() - empty) / nodes
    finally:
        tracemalloc.stop()


def _live(kept: Book, slots: int) -> None:
    for _ in range(slots):
        kept.next_slot()
        slot = kept.slot
        kept.heads(partial(block, slot))
        kept.check()
        for index, node_id in enumerate(kept.nodes):
            kept.book.duty_answered(node_id, 0.1)
            kept.book.request_failed(node_id, f"500 {slot}", started=kept.clock.time, transport=slot % 2 == 0)
            kept.book.finalized(node_id, Epoch(slot // 4), block(slot // 4, index % 2))
            kept.book.future_slot(node_id)
            if slot % 5 == 0:
                kept.book.check_failed(node_id, f"refused, port {index} at slot {slot}")
        kept.end()
        for node_id, root in kept.book.consistency.wanted:
            kept.book.consistency.branches.link(root, slot, block(slot - 1, kept.nodes.index(node_id)))


def block(slot: int, branch: int = 0) -> Root:
    """Return the root of a block."""
    return Root(bytes([branch]) + slot.to_bytes(31, "big"))


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _time(act: Callable[[], object]) -> float:
    begun = time.thread_time_ns()
    act()
    return (time.thread_time_ns() - begun) / 1000
