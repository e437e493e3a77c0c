"""What decisions cost with many nodes, without sockets: the cache, gate included, on a clock that is set by hand."""

import time
from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from vc_fallback import FallbackConfig, NodeHead, Root, Slot, StreamState, Watch
from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import HeadOutcome, NodeHeadSeen, Observers, Signal
from vc_fallback.candidates import Candidates
from vc_fallback.heads.cache import HeadCache
from vc_fallback.health.book import HealthBook

SLOT = 12.0


class ByHand(Clock):
    """Loop time and Unix time are one, and stand still."""

    def __init__(self) -> None:
        super().__init__(wall=None, unix=0.0)
        self.time = 1000 * SLOT
        self._offset = 0.0

    def now(self) -> float:
        return self.time

    def unix(self, at: float | None = None) -> float:
        return self.time if at is None else at


def decisions(nodes: int, slots: int) -> dict[str, list[float]]:
    """Let primaries and fallbacks, half each, show a head in every slot, a fallback first.

    :returns: microseconds that the cache takes for each head, gate, decision and bookkeeping, by what becomes of it;
        and for finding, in vain, a primary that holds the gate.
    """
    return anyio.run(_decisions, nodes, slots)


async def _decisions(nodes: int, slots: int) -> dict[str, list[float]]:
    config = FallbackConfig.of(
        {
            "candidates": [
                {"url": f"http://bn{n}", "tier": "primary" if n < nodes // 2 else "fallback"} for n in range(nodes)
            ],
            "chain": {"genesis_time": 0.0, "genesis_validators_root": "0x" + "00" * 32, "slot_duration": SLOT},
        }
    )
    clock = ByHand()
    candidates = Candidates(config.candidate_list())
    outcomes: list[HeadOutcome] = []

    def observe(signal: Signal) -> None:
        if isinstance(signal, NodeHeadSeen):
            outcomes.append(signal.outcome)

    told, cache = (
        HeadCache(config, candidates, clock, tell, HealthBook(config.health, candidates, clock, tell))
        for tell in (Observers((observe,)), Observers())
    )
    members = list(candidates.current.members)
    chain = config.identity()
    assert chain is not None  # noqa: S101 - configured above
    for one in (told, cache):
        one.start()
        for node_id in members:
            one.identified(node_id, chain)
            one.ledger.nodes[node_id].stream.state = StreamState.FRESH
    # The last of the primaries holds the gate: the others are looked at in vain.
    order = [*members[nodes // 2 :], *reversed(members[: nodes // 2])]
    times: dict[str, list[float]] = {}
    slot = Slot(1000)
    for turn in range(slots + 1):
        clock.time += SLOT
        slot = Slot(slot + 1)
        for node_id in order:
            head = NodeHead(node_id, slot, Root(slot.to_bytes(32)), clock.time, current_epoch_dependent_root=_ROOT)
            for one in (told, cache):
                one.streamed(head)
            outcomes.clear()
            told.offer(head)
            took = _time(partial(cache.offer, head))
            if turn:
                times.setdefault(outcomes[-1].value, []).append(took)
    for node_id in members[: nodes // 2]:
        cache.ledger.nodes[node_id].stream.stalled = True
    times["no holder"] = [_time(cache.reconsider) for _ in range(slots)]
    return times


_ROOT = Root(bytes(31) + b"1")


def _time(act: Callable[[], object]) -> float:
    begun = time.perf_counter_ns()
    act()
    return (time.perf_counter_ns() - begun) / 1000


async def watch(waiters: int, times: int) -> list[float]:
    """Wake waiters of a `Watch`; return the microseconds from setting it until the last of them runs."""
    value: Watch[None] = Watch(None)
    # Every waiter begins before the first change, and lives on from one to the next.
    watchers = [value.watcher() for _ in range(waiters)]
    return await _wake(lambda index: watchers[index].wait(), lambda: value.set(None), waiters, times)


async def event(waiters: int, times: int) -> list[float]:
    """As :func:`watch` with nothing but an event: what the event loop itself takes."""
    waited = anyio.Event()

    def wake() -> None:
        nonlocal waited
        waited, before = anyio.Event(), waited
        before.set()

    return await _wake(lambda _: waited.wait(), wake, waiters, times)


async def _wake(
    wait: Callable[[int], Awaitable[object]], wake: Callable[[], None], waiters: int, times: int
) -> list[float]:
    last = 0
    waiting = 0

    async def wait_for_ever(index: int) -> None:
        nonlocal last, waiting
        while True:
            waiting += 1
            await wait(index)
            last = time.perf_counter_ns()

    taken = []
    async with anyio.create_task_group() as tasks:
        for index in range(waiters):
            tasks.start_soon(wait_for_ever, index)
        for _ in range(times):
            while waiting < waiters:
                await anyio.lowlevel.checkpoint()
            # All of them must have begun to wait, not only be about to.
            await anyio.sleep(0.002)
            waiting = 0
            begun = time.perf_counter_ns()
            wake()
            while waiting < waiters:
                await anyio.lowlevel.checkpoint()
            taken.append((last - begun) / 1000)
        tasks.cancel_scope.cancel()
    return taken
