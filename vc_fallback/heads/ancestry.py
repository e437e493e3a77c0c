"""Asking nodes for headers that show from where a branch was left: which block comes after which."""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from vc_fallback.base.background import once
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Root
from vc_fallback.heads.cache import HeadCache
from vc_fallback.node.pool import NodePool

STEPS = 64
"""Headers that are asked for one after the other: two epochs of the mainnet preset."""

MOST = 16
"""Blocks without a header that are remembered."""


class Ancestry:
    """At most one walk at a time; it is over when nothing is wanting any more or nobody can say.

    :param spawn: starts a function as a task.
    """

    def __init__(
        self, cache: HeadCache, pool: NodePool, spawn: Callable[[Callable[[], Awaitable[None]]], None]
    ) -> None:
        self._cache = cache
        self._pool = pool
        self._spawn = spawn
        self._under_way = False
        self._nobody_has: deque[Root] = deque(maxlen=MOST)
        """Blocks whose headers nobody had: they are not asked for again."""

    def begin(self) -> None:
        """Ask for what is wanting."""
        if not self._under_way and self._wanted():
            self._under_way = True
            self._spawn(self._walk)

    def _wanted(self) -> dict[Root, tuple[NodeId, ...]]:
        wanted = self._cache.reorgs.wanted()
        return {root: nodes for root, nodes in wanted.items() if root not in self._nobody_has}

    async def _walk(self) -> None:
        branches = self._cache.book.consistency.branches
        try:
            for _ in range(STEPS):
                wanted = self._wanted()
                async with anyio.create_task_group() as tasks:
                    for root, nodes in wanted.items():
                        tasks.start_soon(once, partial(self._learn, root, nodes))
                if not any(root in branches for root in wanted):
                    return
                self._cache.reorgs.review()
        finally:
            self._under_way = False

    async def _learn(self, root: Root, nodes: tuple[NodeId, ...]) -> None:
        for node_id in nodes:
            try:
                found = (await self._pool.get(node_id).header(root, timeout=self._cache.times.verify_timeout)).value
            except (NodeError, KeyError):
                continue
            message = found.data.header.message
            # A link is believed because it hashes to the root it is listed under, whoever gives it.
            if message.hash_tree_root() == root:
                self._cache.book.consistency.branches.link(root, message.slot, message.parent_root)
                return
        self._nobody_has.append(root)
