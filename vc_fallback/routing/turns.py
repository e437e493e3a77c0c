"""Who is asked for a block, or sent something, and in which turn (Q5, Q7, Q9, Q11, Q14)."""

from collections.abc import Collection, Sequence

from vc_fallback.base.types import NodeId, Role, Tier
from vc_fallback.node.failures import BEHIND_A_PROXY, Quarantined, RetryLater, StatusError, Unreachable
from vc_fallback.routing.delivery import Delivery, Sending
from vc_fallback.routing.outcomes import NotSent
from vc_fallback.routing.requests import Requests, nobody
from vc_fallback.routing.sends import Later

_AWAY = (Unreachable, Quarantined, NotSent, RetryLater)
"""The node has not got it, or has not looked at it."""


class Turns(Requests):
    """What calls have in common that go to many nodes at once."""

    def _tiers(self, what: str, role: Role, *, besides: Collection[NodeId] = ()) -> list[list[NodeId]]:
        """Return who is asked for a block, in tiers: the next where the one before does not give one.

        Usable nodes come first, then those that answer, and last those that do not: what they would make is for an old
        head, or late. In each of these who is to be left alone comes last (Q11), who has the role before who has not
        (Q14), who is on the delivered head before who is on another one, and primaries before fallbacks.

        :param besides: nodes that were asked.
        :raises NoCandidates: where there is nobody.
        """
        desk = self._open()
        having, all_of_them = desk.planner.plan(role, what=what), desk.planner.plan(None, what=what)
        places, cooling = all_of_them.ranking.places, all_of_them.cooling
        without_role = [node_id for node_id in all_of_them.nodes if node_id not in having.nodes]
        tiers: dict[tuple[int, bool, bool, int, bool], list[NodeId]] = {}
        for node_id in (*having.nodes, *without_role):
            if node_id not in besides:
                place = places[node_id]
                worth = 0 if place.usable else 1 if place.facts.answers else 2
                off = 2 if place.facts.inconsistent else int(self._elsewhere(node_id))
                key = (worth, node_id in cooling, node_id in without_role, off, place.facts.tier is Tier.FALLBACK)
                tiers.setdefault(key, []).append(node_id)
        if not tiers:
            raise nobody(what, all_of_them)
        return [tiers[key] for key in sorted(tiers)]

    def _elsewhere(self, node_id: NodeId) -> bool:
        """Whether a node's head is another one than the delivered head now: an older one, or of another branch. Of a
        node whose stream does not stand, or is stalled, nobody knows its head."""
        desk = self._open()
        latest, own = desk.chain.latest_head(), desk.chain.head_of(node_id)
        if latest is None or own is None or own.root == latest.root:
            return False
        return desk.chain.follows(node_id)

    def _in_turn(
        self, what: str, role: Role | None, *, one_by_one: bool = False, besides: Collection[NodeId] = ()
    ) -> tuple[Sequence[NodeId], list[Later]]:
        """Return who is sent something at once, and who later.

        At once it goes to all that have the role, but for those to be left alone (Q11) while usable others are there.
        These come when it was not taken, or nobody has said anything of it for an eighth of a slot; and then those
        without the role: a role is left without usable nodes when all that have it prove to be away (Q14).

        :param role: `None` for what every node is told.
        :param one_by_one: the first alone, and after it one after the other until one takes it.
        :param besides: nodes that are sent it anyhow, or were.
        :raises NoCandidates: where there is nobody.
        """
        desk = self._open()
        plan = desk.planner.plan(role, what=what)
        nodes = [node_id for node_id in plan.nodes if node_id not in besides]
        others = [n for n in desk.planner.plan(None).nodes if n not in plan.nodes and n not in besides] if role else []
        if not nodes and not others:
            raise nobody(what, plan)
        silence = desk.part(desk.settings.duties_next)
        if one_by_one:
            groups = [Later([node_id], not_all_accepted, silence) for node_id in nodes]
        else:
            ready = [node_id for node_id in nodes if node_id not in plan.cooling]
            cooling = [node_id for node_id in nodes if node_id in plan.cooling]
            if not plan.usable(ready):
                at_once = plan.usable(cooling)
                ready += at_once
                cooling = [node_id for node_id in cooling if node_id not in at_once]
            groups = [Later(group, not_all_accepted, silence) for group in (ready, cooling) if group]
        if others:
            groups.append(Later(others, nobody_judged, silence))
        return groups[0].nodes, groups[1:]


def not_all_accepted(_: Collection[Delivery]) -> bool:
    """Whoever refused it: another may know better."""
    return True


def nobody_judged(deliveries: Collection[Delivery]) -> bool:
    """Whether no node has said yet what it thinks of it."""
    return not any(delivery.judged for delivery in deliveries)


def producer_not_reached(deliveries: Collection[Delivery]) -> bool:
    """Whether the only node that it was sent to is silent, or has not got it: not where it refuses it (Q9)."""
    (delivery,) = deliveries
    if delivery.state is Sending.PENDING or isinstance(delivery.error, _AWAY):
        return True
    error = delivery.error
    return delivery.state is Sending.FAILED and isinstance(error, StatusError) and error.status in BEHIND_A_PROXY
