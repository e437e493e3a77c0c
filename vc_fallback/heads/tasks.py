"""The tasks of a head monitor, all of which end with it."""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from vc_fallback.base.background import for_ever, once
from vc_fallback.base.types import NodeId
from vc_fallback.heads.ancestry import Ancestry
from vc_fallback.heads.cache import HeadCache
from vc_fallback.heads.optimistic import OptimisticPolls
from vc_fallback.heads.supervisor import Supervisor
from vc_fallback.heads.watchdog import Watchdog
from vc_fallback.health.checker import Checker, SlotEnds
from vc_fallback.node.pool import NodePool
from vc_fallback.settings import MAINNET_SLOT, SHORTEST

IDENTITY_WAIT = 6.0
"""Seconds from the first node's answer until those that have answered decide which chain it is (I1); for slots of 12 s,
less where the answers say that slots are shorter."""


async def run(
    cache: HeadCache,
    supervisor: Supervisor,
    pool: NodePool,
    scope: anyio.CancelScope,
    also: Sequence[Callable[[], Awaitable[None]]] = (),
) -> None:
    """Run them until the scope is cancelled.

    :param also: tasks of the monitor's owner, which end with it; an error in one is logged and it starts again.
    """
    watchdog = Watchdog(cache, supervisor)
    cache.on_pinned = watchdog.wake
    with scope:
        async with anyio.create_task_group() as tasks:

            def spawn(task: Callable[[], Awaitable[None]]) -> None:
                tasks.start_soon(once, task)

            async def settle() -> None:
                await _settle(cache)

            async def decide_identity() -> None:
                await _decide_identity(cache)

            polls = OptimisticPolls(cache, supervisor, spawn)
            cache.withheld = polls.begin
            cache.reorgs.unknown = Ancestry(cache, pool, spawn).begin

            def checked(node_id: NodeId) -> None:
                supervisor.nudge(node_id)
                polls.checked(node_id)

            checker = Checker(
                cache.book,
                pool,
                cache.clock,
                troubled=supervisor.waits,
                on_good=checked,
                on_identity=cache.identified,
            )
            ends = SlotEnds(cache.book, pool, cache.clock)
            for task in (supervisor.run, watchdog.run, checker.run, ends.run, settle, decide_identity, *also):
                tasks.start_soon(for_ever, task, lambda: cache.times.backoff)


async def _settle(cache: HeadCache) -> None:
    """Deliver old heads when their burst is over (H13), and tell of reorgs that were held back."""
    watcher = cache.settle.watcher()
    while True:
        due = min((due for due in (cache.delivery.next_settle, cache.reorgs.due) if due is not None), default=None)
        if due is None:
            await watcher.wait()
            continue
        await anyio.sleep(max(0.0, due - cache.clock.now()))
        cache.settle_due()


async def _decide_identity(cache: HeadCache) -> None:
    """When some nodes have had time to answer, let those that did decide which chain it is (I1)."""
    watcher = cache.answers.watcher(seen=cache.answers.version == 0)
    while cache.ledger.chain is None:
        await watcher.wait()
        longest = max((f.identity.slot_duration for f in cache.ledger.nodes.values() if f.identity), default=0.0)
        await anyio.sleep(max(SHORTEST, IDENTITY_WAIT * min(1.0, longest / MAINNET_SLOT)))
        cache.resolve(waited=True)
