"""A node that was away may have come back on another chain: it says which it is on before it is asked (N7, H15)."""

from collections.abc import Callable

import anyio

from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.signals import GenerationChanged, Signal, StreamChanged, StreamState
from vc_fallback.base.types import NodeId
from vc_fallback.chain import ChainIdentity
from vc_fallback.health.book import HealthBook
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import ConnectError, ConnectionLost, Quarantined
from vc_fallback.node.pool import NodePool


class Identities:
    """An observer. A head stream asks for the identity when it connects again, which may be a second after its node is
    back, or many: until then whoever asks the node anything asks for that first.

    :param identified: takes what a node says of its chain, and quarantines it where that is another one.
    """

    def __init__(
        self, book: HealthBook, pool: NodePool, clock: Clock, identified: Callable[[NodeId, ChainIdentity], None]
    ) -> None:
        self.unsure: dict[NodeId, float] = {}
        """When a stream, or a connection, of a node ended; nodes that are sure are not in it."""
        self._book = book
        self._pool = pool
        self._clock = clock
        self._identified = identified
        self._asking: dict[NodeId, anyio.Event] = {}

    def __call__(self, signal: Signal) -> None:
        """Take a signal."""
        if isinstance(signal, StreamChanged):
            if signal.state is StreamState.BACKOFF:
                self.unsure[signal.node_id] = signal.at
        elif isinstance(signal, GenerationChanged):
            # Who comes, or is reached in another way, is asked nothing before it has said it.
            for node_id in (*signal.removed, *signal.changed):
                self.unsure.pop(node_id, None)

    def ended(self, node_id: NodeId, at: float, error: NodeError) -> None:
        """Take how a request to a node of the list failed."""
        if isinstance(error, (ConnectError, ConnectionLost)):
            self.unsure[node_id] = at

    async def ask(self, node: BeaconNode, what: str, timeout: float) -> None:
        """Ask a node that is unsure, or wait for its answer to who asked before. One that does not say it is asked for
        the rest all the same: it may be the only one.

        :param what: names what it is to be asked then, in errors.
        :param timeout: seconds.
        :raises Quarantined: when it is on another chain.
        :raises ConnectError: when no connection can be made.
        """
        node_id = node.node_id
        record, asked = self._book.records.get(node_id), self._asking.get(node_id)
        if record is None:
            return
        if asked is not None:
            with anyio.move_on_after(timeout):
                await asked.wait()
        elif record.identified_at is not None and record.identified_at > self.unsure[node_id]:
            del self.unsure[node_id]
        else:
            # It is given up, and has not failed: it has no more than a part of its time.
            with anyio.move_on_after(timeout):
                await self._ask(node)
        if record.mismatch:
            raise Quarantined(node_id, what, record.mismatch)

    async def _ask(self, node: BeaconNode) -> None:
        self._asking[node.node_id] = asked = anyio.Event()
        try:
            chain = (await node.identity()).value
        except ConnectError:
            raise
        except NodeError:
            return
        finally:
            del self._asking[node.node_id]
            asked.set()
        if self._pool.has(node):
            self.unsure.pop(node.node_id, None)
            self._identified(node.node_id, chain)
