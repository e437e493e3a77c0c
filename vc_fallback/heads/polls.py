"""What a node is asked while its head stream stands: its chain, and its head (H14, H15)."""

import anyio

from vc_fallback.base.backoff import Backoff
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import HeadSource
from vc_fallback.candidates import Candidate
from vc_fallback.decide.ledger import NodeHead
from vc_fallback.heads.cache import HeadCache
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.models import HeadHeader


class NodePolls:
    """Polls of one candidate. What comes when it has left the list is dropped (G3)."""

    def __init__(self, node: BeaconNode, candidate: Candidate, cache: HeadCache) -> None:
        self.node = node
        self._candidate = candidate
        self._cache = cache

    @property
    def _listed(self) -> bool:
        return self._cache.member(self.node.node_id, self._candidate.connection) is not None

    async def head(self) -> HeadHeader | None:
        """Ask the node for its head and take it into the cache (H14); `None` when it gives none.

        An answer that the stream overtook while it was under way, or that is older than what the stream has just
        announced, is returned and not taken: an endpoint may lag behind the events of its own node (case 51).
        """
        asked = self._cache.clock.now()
        try:
            header = await self.node.head(self._cache.times.verify_timeout)
        except NodeError:
            return None
        now = self._cache.clock.now()
        if not self._listed:
            return None
        entry = self._cache.delivery.entries.get(self.node.node_id)
        if entry is not None and entry.source is HeadSource.STREAM:
            half_a_slot = self._cache.slots.duration / 2 if self._cache.slots is not None else 0.0
            lag = entry.received + half_a_slot if header.slot < entry.slot else entry.received
            if lag >= asked and (header.slot, header.root) != (entry.slot, entry.root):
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
        header = await self.head()
        if header is not None and self._listed:
            self._cache.ledger.nodes[self.node.node_id].stream.baseline = header.slot

    async def identify(self) -> None:
        """Ask which chain the node is on, until it says so (H15)."""
        backoff = Backoff(self._cache.times.backoff)
        while True:
            try:
                identity = await self.node.identity(self._cache.times.verify_timeout)
            except NodeError:
                await anyio.sleep(backoff.failed())
                continue
            if self._listed:
                self._cache.identified(self.node.node_id, identity)
            return
