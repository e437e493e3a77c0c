"""What became of a publish, node by node and item by item; it fills in while stragglers run on (rule 8, Q5, Q12)."""

from collections.abc import Sequence
from enum import StrEnum

import anyio

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId
from vc_fallback.routing.delivery import AtNode, Delivery, Sending
from vc_fallback.routing.outcomes import RequestFailed, enumerate_some


class Outcome(StrEnum):
    """What became of an item, from what all nodes said of it; the better first."""

    ACCEPTED = "accepted"
    """A node took it; or one has it already, and some node took something of the same publish (Q12)."""
    BROADCAST = "broadcast"
    """It was sent on by a node, and imported by none (202, case 53)."""
    UNCERTAIN = "uncertain"
    """Nodes say that they have it, and none took anything: no success (Q5, case 62)."""
    PENDING = "pending"
    """Nothing good was said of it, and some nodes have not answered."""
    REFUSED = "refused"
    """No node took it, and at least one is well and says no."""
    FAILED = "failed"
    """No node gave a usable answer."""


_ORDER = list(Outcome)


class BroadcastResult:
    """Live: it changes until `pending` is empty, which :meth:`settled` waits for.

    :ivar what: names the publish, as in errors.
    :ivar items: how many items it has; 0 where there was nothing to send, and nobody was sent anything.
    :ivar deliveries: what became of it, by node, in the order in which they were given.
    """

    def __init__(self, what: str, nodes: Sequence[NodeId], items: int, started: float) -> None:
        self.what = what
        self.items = items
        self.deliveries = {node_id: Delivery(node_id, started) for node_id in nodes}
        self._settled: anyio.Event | None = None

    def __repr__(self) -> str:
        return f"<BroadcastResult {self.what}: {self.outcome}; {self.words}>"

    @property
    def accepted(self) -> tuple[NodeId, ...]:
        """Nodes that took all that they had not."""
        return self._nodes(Sending.ACCEPTED)

    @property
    def broadcast(self) -> tuple[NodeId, ...]:
        """Nodes that sent the block on and did not import it (202)."""
        return self._nodes(Sending.BROADCAST)

    @property
    def already_known(self) -> tuple[NodeId, ...]:
        """Nodes that have all of it already."""
        return self._nodes(Sending.ALREADY_KNOWN)

    @property
    def partly(self) -> tuple[NodeId, ...]:
        """Nodes that took or have some items, and refused others."""
        return self._nodes(Sending.PARTLY)

    @property
    def refused(self) -> tuple[NodeId, ...]:
        """Nodes that are well and say no."""
        return self._nodes(Sending.REFUSED)

    @property
    def failed(self) -> tuple[NodeId, ...]:
        """Nodes that gave no usable answer."""
        return self._nodes(Sending.FAILED)

    @property
    def pending(self) -> tuple[NodeId, ...]:
        """Nodes that have not answered yet."""
        return self._nodes(Sending.PENDING)

    @property
    def complete(self) -> bool:
        """Whether every item is accepted."""
        # Looked at whenever a node has answered; nearly always one that took all.
        took_all = any(delivery.state is Sending.ACCEPTED for delivery in self.deliveries.values())
        return took_all or self.outcome is Outcome.ACCEPTED

    @property
    def outcome(self) -> Outcome:
        """What became of the item that fared worst."""
        return max(self._outcomes(), key=_ORDER.index)

    @property
    def best_outcome(self) -> Outcome:
        """What became of the item that fared best."""
        return min(self._outcomes(), key=_ORDER.index)

    @property
    def by_item(self) -> tuple[Outcome, ...]:
        """What became of each item, by its place in the list that was sent."""
        rest, by_index = self._merge()
        return tuple(by_index.get(index, rest) for index in range(self.items))

    @property
    def missed(self) -> tuple[int, ...]:
        """Items, by their places, that no node took or has: what is to be done again, or was wrong."""
        bad = (Outcome.REFUSED, Outcome.FAILED)
        return tuple(index for index, outcome in enumerate(self.by_item) if outcome in bad)

    @property
    def words(self) -> str:
        """What became of it at each node, in a line."""
        return enumerate_some([f"{d.node_id}: {d.words}" for d in self.deliveries.values()], "; ")

    def reasons(self, index: int) -> dict[NodeId, str]:
        """Return what nodes said against an item, and how they failed."""
        reasons: dict[NodeId, str] = {}
        for delivery in self.deliveries.values():
            if delivery.item(index) in (AtNode.REFUSED, AtNode.FAILED):
                named = getattr(delivery.error, "failures", ())
                words = next((failure.message for failure in named if failure.index == index), None)
                reasons[delivery.node_id] = words if words is not None else delivery.words
        return reasons

    async def settled(self) -> None:
        """Wait until no node is pending; that is bounded by the bound of the publish."""
        while self.pending:
            if self._settled is None:
                self._settled = anyio.Event()
            await self._settled.wait()

    def wake(self) -> None:
        """Wake who waits: no node is pending any more."""
        if self._settled is not None:
            self._settled.set()

    def _outcomes(self) -> set[Outcome]:
        if not self.items:
            return {Outcome.ACCEPTED}
        rest, by_index = self._merge()
        return {*by_index.values(), rest} if len(by_index) < self.items else {*by_index.values()}

    def _merge(self) -> tuple[Outcome, dict[int, Outcome]]:
        """Return what became of the items of which no node said anything in particular, and of each of the others."""
        deliveries = self.deliveries.values()
        took_some = any(delivery.took_some for delivery in deliveries)
        named = {index for delivery in deliveries for index in delivery.by_index}
        by_index = {index: _merged({delivery.item(index) for delivery in deliveries}, took_some) for index in named}
        return _merged({delivery.rest for delivery in deliveries}, took_some), by_index

    def _nodes(self, state: Sending) -> tuple[NodeId, ...]:
        return tuple(delivery.node_id for delivery in self.deliveries.values() if delivery.state is state)


class NotPublished(RequestFailed):
    """No node took any of it, or has it. `result` stays live: nodes that are pending may still take it."""

    def __init__(self, result: BroadcastResult) -> None:
        super().__init__(result.what, f"no node took it: {result.words}")
        self.result = result

    @property
    def errors(self) -> dict[NodeId, NodeError]:
        """The error of every node that had one."""
        return {d.node_id: d.error for d in self.result.deliveries.values() if isinstance(d.error, NodeError)}


def _merged(said: set[AtNode], took_some: bool) -> Outcome:
    if AtNode.TAKEN in said or (AtNode.KNOWN in said and took_some):
        return Outcome.ACCEPTED
    if AtNode.BROADCAST in said:
        return Outcome.BROADCAST
    if AtNode.KNOWN in said:
        return Outcome.UNCERTAIN
    if AtNode.PENDING in said:
        return Outcome.PENDING
    return Outcome.REFUSED if AtNode.REFUSED in said else Outcome.FAILED
