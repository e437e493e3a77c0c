"""Whether validators were seen to be live: every node is asked, and that one did not see them says little (Q14a)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from vc_fallback.base.types import Epoch, NodeId, Role, Slot
from vc_fallback.decide.rank import Group
from vc_fallback.node import routes
from vc_fallback.routing.everyone import everyone
from vc_fallback.routing.outcomes import Attempt, RequestFailed, enumerate_some
from vc_fallback.routing.requests import Requests, indices_of, nobody
from vc_fallback.routing.witnesses import Witnesses


@dataclass(frozen=True, slots=True)
class LivenessReport:
    """Which validators were seen in an epoch, by what all nodes say.

    :param live: for every index that was asked about, whether any node has seen it do anything.
    :param seen_by: for those that are live, which nodes say so.
    :param witnesses: nodes that were up and synced throughout the epoch, and not restarted since: on their word "not
        live" rests.
    """

    epoch: Epoch
    live: Mapping[int, bool]
    seen_by: Mapping[int, tuple[NodeId, ...]]
    witnesses: tuple[NodeId, ...]


class LivenessUnknown(RequestFailed):
    """Of some validators nobody can say that they were not live: no node that spoke of them was up and synced
    throughout the epoch, and not restarted since, as far as is known. `live` are those that were seen all the same,
    `unknown` those that may be live or not; all others were not."""

    def __init__(
        self, what: str, problem: str, attempts: Sequence[Attempt[Any]], live: Iterable[int], unknown: Iterable[int]
    ) -> None:
        super().__init__(what, problem, attempts)
        self.live = tuple(live)
        self.unknown = tuple(unknown)


class LivenessCalls(Requests):
    """A restarted node says "not live" of everyone; believing it would start a second validator beside a living one."""

    _witnesses: Witnesses

    async def liveness(self, epoch: Epoch, indices: Iterable[int], *, deadline: float | None = None) -> LivenessReport:
        """Return which validators were seen to do anything in an epoch, the present or the last one.

        All nodes with role `duties` are asked, and waited for: a validator is live where any of them says so. Not live
        it is only by the word of a node that was up and synced throughout that epoch, while we watched it.

        :param deadline: moment in loop time; half a slot from the call without one.
        :raises LivenessUnknown: where there is no such node, unless all are live.
        :raises NoCandidates, DeadlineExceeded: nobody was asked.
        """
        desk = self._open()
        what = routes.LIVENESS.what
        wanted = [*dict.fromkeys(indices_of(indices))]
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
        absent: set[int] = set()
        witnesses = []
        for attempt in attempts:
            if attempt.answer is None:
                continue
            steady = self._was_there(attempt.node_id, epoch)
            if steady:
                witnesses.append(attempt.node_id)
            for one in attempt.answer.value:
                if one.is_live:
                    seen.setdefault(one.index, []).append(attempt.node_id)
                elif steady:
                    # Of a validator that it leaves out a node says nothing.
                    absent.add(one.index)
        unknown = [index for index in wanted if index not in seen and index not in absent]
        if unknown:
            reasons = enumerate_some([f"{a.node_id}: {self._why_not(a, witnesses)}" for a in attempts], "; ")
            problem = f"nobody can say of {len(unknown)} validators that they were not live in epoch {epoch}: {reasons}"
            raise LivenessUnknown(what, problem, attempts, [index for index in wanted if index in seen], unknown)
        live = {index: index in seen for index in wanted}
        seen_by = {index: tuple(nodes) for index, nodes in seen.items() if index in live}
        return LivenessReport(epoch, live, seen_by, tuple(witnesses))

    def _was_there(self, node_id: NodeId, epoch: Epoch) -> bool:
        """Whether a node was up and synced from the start of an epoch to its end, or until now, and is the same still:
        one that was restarted has seen nobody, however long it was up before."""
        desk = self._open()
        slots = desk.chain.slots
        if slots is None:
            return False
        first, now = slots.chain.first_slot(epoch), desk.clock.now()
        begin, end = slots.start_of(first), slots.start_of(Slot(first + slots.chain.slots_per_epoch))
        return begin <= now and self._witnesses.throughout(node_id, begin, min(end, now))

    def _why_not(self, attempt: Attempt[Any], witnesses: Sequence[NodeId]) -> str:
        if attempt.answer is None:
            return attempt.words
        if attempt.node_id in witnesses:
            return "says nothing of them"
        return "not up and synced all that time, restarted since, or not watched"
