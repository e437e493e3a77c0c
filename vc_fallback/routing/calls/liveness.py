"""Whether validators were seen to be live: every node is asked, and that one did not see them says little (Q14a)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from vc_fallback.base.types import Epoch, NodeId, Role, Slot
from vc_fallback.decide.rank import Group
from vc_fallback.decide.steadiness import Steadiness
from vc_fallback.node import routes
from vc_fallback.node.values.duties import Liveness
from vc_fallback.routing.everyone import everyone
from vc_fallback.routing.outcomes import Attempt, RequestFailed, enumerate_some
from vc_fallback.routing.requests import Requests, nobody


@dataclass(frozen=True, slots=True)
class LivenessReport:
    """Which validators were seen in an epoch, by what all nodes say.

    :param live: for every index that was asked about, whether any node has seen it do anything.
    :param seen_by: for those that are live, which nodes say so.
    :param witnesses: nodes that were up and synced throughout the epoch: on their word "not live" rests.
    """

    epoch: Epoch
    live: Mapping[int, bool]
    seen_by: Mapping[int, tuple[NodeId, ...]]
    witnesses: tuple[NodeId, ...]


class LivenessUnknown(RequestFailed):
    """Of some validators nobody can say that they were not live: no node that answered was up and synced throughout the
    epoch, as far as is known. `live` are those that were seen all the same, `unknown` all others."""

    def __init__(
        self, what: str, problem: str, attempts: Sequence[Attempt[Any]], live: Iterable[int], unknown: Iterable[int]
    ) -> None:
        super().__init__(what, problem, attempts)
        self.live = tuple(live)
        self.unknown = tuple(unknown)


class LivenessCalls(Requests):
    """A restarted node says "not live" of everyone; believing it would start a second validator beside a living one."""

    _steadiness: Steadiness

    async def liveness(self, epoch: Epoch, indices: Iterable[int], *, deadline: float | None = None) -> LivenessReport:
        """Return which validators were seen to do anything in an epoch, the present or the last one.

        All nodes with role `duties` are asked, and waited for: a validator is live where any of them says so. Not live
        it is only by the word of a node that was up and synced throughout that epoch, while we watched it.

        :param deadline: moment in loop time; half a slot from the call without one.
        :raises LivenessUnknown: where there is no such node, unless all are live.
        :raises NoCandidates, DeadlineExceeded: nobody was asked.
        """
        desk = self._open()
        what = f"{routes.LIVENESS.method} {routes.LIVENESS.template}"
        wanted = [*dict.fromkeys(indices)]
        plan = desk.planner.plan(Role.DUTIES)
        places = plan.ranking.places
        nodes = [n for n in plan.nodes if places[n].standing.group is not Group.NO_ANSWER] or [*plan.nodes]
        if not nodes:
            raise nobody(what, plan)
        end = self._end(desk.settings.duties_end, None, deadline)
        attempts = await everyone(
            partial(self._ask, lambda node, t: node.liveness(epoch, wanted, timeout=t), what, end),
            nodes,
            end=end,
            runner=desk.runner,
            what=what,
        )
        seen: dict[int, list[NodeId]] = {}
        witnesses = []
        for attempt in attempts:
            if attempt.answer is not None:
                for one in attempt.answer.value:
                    if one.is_live:
                        seen.setdefault(one.index, []).append(attempt.node_id)
                if self._was_there(attempt.node_id, epoch) and _names_all(attempt.answer.value, wanted):
                    witnesses.append(attempt.node_id)
        unknown = [index for index in wanted if index not in seen]
        if unknown and not witnesses:
            reasons = enumerate_some([f"{a.node_id}: {self._why_not(a)}" for a in attempts], "; ")
            problem = f"nobody was up and synced throughout epoch {epoch}: {reasons}"
            raise LivenessUnknown(what, problem, attempts, [index for index in wanted if index in seen], unknown)
        live = {index: index in seen for index in wanted}
        return LivenessReport(epoch, live, {i: tuple(nodes) for i, nodes in seen.items()}, tuple(witnesses))

    def _was_there(self, node_id: NodeId, epoch: Epoch) -> bool:
        """Whether a node was up and synced from the start of an epoch to its end, or until now."""
        desk = self._open()
        slots = desk.chain.slots
        if slots is None:
            return False
        first = slots.chain.first_slot(epoch)
        begin = slots.start_of(first)
        end = slots.start_of(Slot(first + slots.chain.slots_per_epoch))
        return self._steadiness.throughout(node_id, begin, min(end, desk.clock.now()))

    def _why_not(self, attempt: Attempt[Any]) -> str:
        return "not up and synced all that time, or not watched" if attempt.answer is not None else attempt.words


def _names_all(answer: Sequence[Liveness], wanted: Sequence[int]) -> bool:
    """Whether a node speaks of everyone: of a validator that it leaves out it says nothing."""
    named = {one.index for one in answer}
    return all(index in named for index in wanted)
