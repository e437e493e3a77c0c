"""The clients with which candidates are asked, one for each node of the list whatever its roles."""

from collections.abc import Callable, Iterator

from vc_fallback.base.clock import Clock
from vc_fallback.base.types import NodeId
from vc_fallback.candidates import Candidates, ListChange
from vc_fallback.chain import SlotClock
from vc_fallback.node.caller import Outcomes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.factory import NodeFactory


class NodePool:
    """Makes a client when it is first needed, and closes it when its node leaves or is reached in another way.

    Head streams have connections of their own: a stream that is closed takes no request with it, and the other way
    round. A node that only changed tier, role or priority keeps its client, and with it what is known of it (Q13).

    :param outcomes: makes what is told of every request to a node.
    """

    def __init__(
        self,
        candidates: Candidates,
        factory: NodeFactory,
        clock: Clock,
        *,
        slots: Callable[[], SlotClock | None],
        quarantined: Callable[[NodeId], str],
        outcomes: Callable[[NodeId], Outcomes | None] = lambda _: None,
    ) -> None:
        self._candidates = candidates
        self._factory = factory
        self._clock = clock
        self._slots = slots
        self._quarantined = quarantined
        self._outcomes = outcomes
        self._nodes: dict[NodeId, BeaconNode] = {}

    def __iter__(self) -> Iterator[BeaconNode]:
        """The clients that were needed so far."""
        return iter(list(self._nodes.values()))

    def get(self, node_id: NodeId) -> BeaconNode:
        """Return the client of a node.

        :raises KeyError: for a node that is not in the list.
        """
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = self._factory.make(
                self._candidates.current.members[node_id],
                self._clock,
                generation=lambda: self._candidates.generation,
                slots=self._slots,
                quarantined=lambda: self._quarantined(node_id),
                outcomes=self._outcomes(node_id),
            )
        return node

    def has(self, node: BeaconNode) -> bool:
        """Whether a client is still the one with which its node is asked."""
        return self._nodes.get(node.node_id) is node

    def apply(self, change: ListChange) -> None:
        """Follow a change of the list: calls under way on clients that go end as :exc:`~vc_fallback.Closed`."""
        for node_id in (*change.removed, *change.changed):
            node = self._nodes.pop(node_id, None)
            if node is not None:
                node.close()

    def close(self) -> None:
        """Close all clients."""
        while self._nodes:
            self._nodes.popitem()[1].close()
