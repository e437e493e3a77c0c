"""What a node is asked while its head stream stands: its chain, and its head (H14, H15)."""

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from vc_fallback.base.backoff import Backoff
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import HeadSource
from vc_fallback.candidates import Candidate
from vc_fallback.decide.ledger import NodeHead, StreamFacts
from vc_fallback.heads.cache import HeadCache
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.blocks import Head

REFRESH_PAUSE = 1 / 12
"""Between two such polls (`NodePolls.refresh`), as a part of a slot."""


class Errand:
    """Runs at most once at a time; asked for meanwhile, it runs once more afterwards, however often it was (rule 6)."""

    def __init__(self, run: Callable[[], Awaitable[None]]) -> None:
        self._run = run
        self._asked = self._under_way = False

    def ask(self, tasks: TaskGroup) -> None:
        """Have it done by a task of a group."""
        self._asked = True
        if not self._under_way:
            tasks.start_soon(self._do)

    async def _do(self) -> None:
        if self._under_way:
            return
        self._under_way = True
        try:
            while self._asked:
                self._asked = False
                await self._run()
        finally:
            self._under_way = False


class NodePolls:
    """Polls of one candidate. What comes when it has left the list is dropped (G3)."""

    def __init__(self, node: BeaconNode, candidate: Candidate, cache: HeadCache) -> None:
        self.node = node
        self._candidate = candidate
        self._cache = cache
        self._baseline_under_way = False
        self.identify = Errand(self._identify)
        """Ask which chain the node is on, until it says so (H15)."""
        self.refresh = Errand(self._refresh)
        """Ask for the head because the node says that it dropped messages, however often it says so, or because a slot
        has passed in silence (H14)."""

    @property
    def _listed(self) -> bool:
        return self._cache.member(self.node.node_id, self._candidate.connection) is not None

    async def head(self) -> Head | None:
        """Ask the node for its head and take it into the cache (H14); `None` when it gives none.

        An answer that the stream or another poll overtook while it was under way, or that is older than what the stream
        has just announced, is returned and not taken: an endpoint may lag behind the events of its own node (case 51).
        """
        asked = self._cache.clock.now()
        try:
            header = (await self.node.head(timeout=self._cache.times.verify_timeout)).value
        except NodeError:
            return None
        now = self._cache.clock.now()
        if not self._listed:
            return None
        entry = self._cache.delivery.entries.get(self.node.node_id)
        if entry is not None and (header.slot, header.root) != (entry.slot, entry.root):
            lag = 0.0
            if entry.source is HeadSource.STREAM and header.slot < entry.slot and self._cache.slots is not None:
                lag = self._cache.slots.duration / 2
            if entry.received + lag >= asked:
                return header
        self._cache.offer(
            NodeHead(
                node_id=self.node.node_id,
                slot=header.slot,
                root=header.root,
                received=now,
                source=HeadSource.POLL,
                optimistic=header.optimistic,
            )
        )
        return header

    async def baseline(self) -> None:
        """Note the node's head at the beginning of a connection (H14): what the stream need not announce."""
        # Asked for when the request is sent and again at the response; one answer is enough.
        if self._baseline_under_way or not self._listed or self._stream.baseline is not None:
            return
        self._baseline_under_way = True
        try:
            header = await self.head()
        finally:
            self._baseline_under_way = False
        if header is not None and self._listed:
            self._stream.baseline = header.slot

    @property
    def _stream(self) -> StreamFacts:
        return self._cache.ledger.nodes[self.node.node_id].stream

    async def _refresh(self) -> None:
        await self.head()
        await anyio.sleep(REFRESH_PAUSE * (self._cache.slots.duration if self._cache.slots is not None else 1.0))

    async def _identify(self) -> None:
        backoff = Backoff(self._cache.times.backoff)
        while True:
            try:
                identity = (await self.node.identity(timeout=self._cache.times.verify_timeout)).value
            except NodeError:
                await anyio.sleep(backoff.failed())
                continue
            if self._listed:
                self._cache.identified(self.node.node_id, identity)
            return
