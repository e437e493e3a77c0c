"""The nodes that are asked for topics: each has a unit of its own, made when it is first needed (G2)."""

import logging
from collections.abc import Callable, Iterator

from anyio.abc import TaskGroup

from vc_fallback.base.types import NodeId, Role
from vc_fallback.candidates import Member
from vc_fallback.node.client import BeaconNode
from vc_fallback.topics.context import TopicContext
from vc_fallback.topics.unit import TopicUnit

logger = logging.getLogger(__name__)


class TopicUnits:
    """Starts, stops and restarts units; the successor of one begins when that has ended.

    :param make_node: makes the client that a node's streams have for themselves.
    :param offer: called with every event of a node while that is in the list.
    :param changed: called whenever what a node has may have changed.
    """

    def __init__(
        self,
        context: TopicContext,
        make_node: Callable[[Member], BeaconNode],
        *,
        offer: Callable[[TopicUnit, str, str, float], None],
        changed: Callable[[], None],
    ) -> None:
        self._context = context
        self._make_node = make_node
        self._offer = offer
        self._changed = changed
        self._units: dict[NodeId, TopicUnit] = {}
        self._restart_before = 0

    def __iter__(self) -> Iterator[TopicUnit]:
        return iter(list(self._units.values()))

    def __len__(self) -> int:
        return len(self._units)

    def get(self, node_id: NodeId) -> TopicUnit | None:
        """Return a node's unit, `None` where it has none or one that ends."""
        unit = self._units.get(node_id)
        return unit if unit is not None and unit.listed and not unit.scope.cancel_called else None

    def restart_all(self) -> None:
        """Give every unit from before the present generation a new start."""
        self._restart_before = self._context.candidates.generation

    def clear(self) -> None:
        """Forget all: their tasks have ended."""
        self._units.clear()

    def end_gone(self) -> None:
        """End the units of nodes that have left, are reached in another way, or are to have a new start."""
        for unit in self:
            member = self._context.candidates.current.get(unit.node_id)
            stays = member is not None and member.has(Role.EVENTS) and unit.listed
            if not stays or unit.born < self._restart_before:
                unit.scope.cancel()

    def want(self, member: Member, topics: frozenset[str], tasks: TaskGroup) -> None:
        """Have a node carry these topics from now on, and no others."""
        unit = self._units.get(member.node_id)
        if unit is None:
            if not topics:
                return
            try:
                node = self._make_node(member)
            except Exception:
                # The others are asked all the same.
                logger.exception("%s: cannot be asked", member.node_id)
                return
            unit = TopicUnit(member, node, self._context, offer=self._offer, changed=self._changed)
            self._units[member.node_id] = unit
            tasks.start_soon(self._run, unit)
        if not unit.scope.cancel_called:
            unit.want(topics)

    async def _run(self, unit: TopicUnit) -> None:
        try:
            await unit.run()
        finally:
            if self._units.get(unit.node_id) is unit:
                del self._units[unit.node_id]
            self._changed()
