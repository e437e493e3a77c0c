"""Who may come to a request that is under way, because the list of nodes changes (G1, G2)."""

from collections.abc import Callable, Collection, Sequence

import anyio

from vc_fallback.base.types import NodeId, Role
from vc_fallback.decide.plan import Plan
from vc_fallback.routing.desk import Desk


class Joining:
    """For one request. While the list is what it was when the request began, it costs next to nothing."""

    __slots__ = ("_desk", "_generation", "_prefer", "_role")

    def __init__(self, desk: Desk, role: Role | None, prefer: NodeId | None = None) -> None:
        self._desk = desk
        self._role = role
        self._prefer = prefer
        self._generation = desk.candidates.generation

    @property
    def generation(self) -> int:
        """The present generation of the list."""
        return self._desk.candidates.generation

    @property
    def changed(self) -> bool:
        """Whether the list is another one than when the request began."""
        return self._generation != self._desk.candidates.generation and not self._desk.left

    def listen(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have something called whenever there may be somebody new; return what ends it."""
        return self._desk.news.listen(callback)

    def nodes(self) -> Sequence[NodeId]:
        """Return whom to ask by the list as it is now, best first; nobody while it is what it was."""
        return self._desk.planner.plan(self._role, self._prefer).nodes if self.changed else ()

    @property
    def expected(self) -> bool:
        """Whether nodes of a new list have still to say which chain they are on: they are asked as soon as they do."""
        return self.changed and self._desk.expects_nodes

    async def others(self, asked: Collection[NodeId], end: float) -> Plan | None:
        """Return the present plan once there are others in it than were asked; `None` where nobody else is expected,
        or came by the end. Each change of the list gives one more.
        """
        news = self._desk.news.watcher()
        with anyio.CancelScope(deadline=end):
            # Who comes at the end is not asked any more; what the others said, or may still say, is the answer.
            while self._desk.clock.now() < end:
                found = self._desk.planner.plan(self._role, self._prefer) if self.changed else None
                if found is not None and any(node_id not in asked for node_id in found.nodes):
                    self._generation = self._desk.candidates.generation
                    return found
                if not self.expected:
                    return None
                await news.wait()
        return None
