"""Any other call of the caller's own (Q3)."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

from vc_fallback.base.types import NodeId, Provenance, Role, Sourced
from vc_fallback.node.client import BeaconNode
from vc_fallback.routing.outcomes import Accept
from vc_fallback.routing.requests import Requests

T = TypeVar("T")


class OwnCalls(Requests):
    """Calls of which only the caller knows what they ask."""

    @overload
    async def first_success(
        self,
        op: Callable[[BeaconNode], Awaitable[Sourced[T]]],
        *,
        role: Role | str = Role.DUTIES,
        deadline: float | None = None,
        next_after: float | None = None,
        prefer: NodeId | None = None,
        accept: Accept[T] | None = None,
        what: str = "request",
    ) -> Sourced[T]: ...

    @overload
    async def first_success(
        self,
        op: Callable[[BeaconNode], Awaitable[T]],
        *,
        role: Role | str = Role.DUTIES,
        deadline: float | None = None,
        next_after: float | None = None,
        prefer: NodeId | None = None,
        accept: Accept[T] | None = None,
        what: str = "request",
    ) -> Sourced[T]: ...

    async def first_success(
        self,
        op: Callable[[BeaconNode], Awaitable[Any]],
        *,
        role: Role | str = Role.DUTIES,
        deadline: float | None = None,
        next_after: float | None = None,
        prefer: NodeId | None = None,
        accept: Accept[Any] | None = None,
        what: str = "request",
    ) -> Sourced[Any]:
        """Ask one node after the other with an operation of the caller's own, and return the first success (Q3).

        :param op: asks one node; what is no `Sourced` gets its provenance here. What it raises but
            :exc:`~vc_fallback.NodeError` is the caller's own and comes out unchanged.
        :param deadline: moment in loop time; half a slot from the call without one.
        :param next_after: seconds until the next node is asked as well; 1/8 of a slot where it is not given.
        :param prefer: a node to be asked first where it answers (Q9).
        :param accept: looks at an answer; one that it doubts does not win.
        :param what: names the kind of request: in errors, and where nodes are remembered that do not answer it and
            that others were faster than, which are asked last for a while.
        :raises NotFound, AllNodesFailed, DeadlineExceeded, NoCandidates: see `vc_fallback.routing.outcomes`.
        :raises ValueError: for a `deadline` or a `next_after` that is no time, and for a role that there is not.
        """
        desk = self._open()
        if not isinstance(role, Role):
            role = Role.of(role)
        if next_after is not None and not next_after >= 0:
            raise ValueError(f"next_after is a number of seconds, not {next_after}")

        async def ask(node: BeaconNode, timeout: float) -> Sourced[Any]:
            asked = desk.clock.now()
            found = await op(node.within(timeout))
            if isinstance(found, Sourced):
                return found
            now = desk.clock.now()
            return Sourced(found, Provenance(node.node_id, desk.candidates.generation, now, now - asked))

        wait = desk.part(desk.settings.duties_next) if next_after is None else next_after
        return await self._first_of(
            what,
            role,
            ask,
            end=self._end(desk.settings.duties_end, None, deadline),
            delay=lambda _: wait,
            prefer=prefer,
            accept=accept,
            report=self._notice_silence(what, wait),
        )
