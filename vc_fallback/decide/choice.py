"""Whose events consumers should follow first: the order of streams (C7)."""

from collections.abc import Iterable, Mapping

from vc_fallback.base.types import NodeId, Slot, Tier
from vc_fallback.candidates import Member
from vc_fallback.chain import SlotClock
from vc_fallback.decide.gate import lacks
from vc_fallback.decide.ledger import Ledger, NodeHead
from vc_fallback.times import StreamTimes


def stream_choice(
    members: Iterable[Member],
    ledger: Ledger,
    heads: Mapping[NodeId, NodeHead],
    tip: Slot | None,
    now: float,
    slots: SlotClock,
    times: StreamTimes,
) -> tuple[NodeId, ...]:
    """Put nodes into the order in which consumers of events should prefer them (C7).

    First the primaries that are fresh and healthy, then the fallbacks that are, then all others by plain health:
    healthy before unhealthy, whatever their streams are like, so that nobody is worse off than requests are. Within
    each of these by tier, priority, and place in the list. Fresh and healthy is what holds the tier gate (C5), so
    whoever follows the first node follows the tier that heads are delivered from.

    Nodes on another chain are left out, and so are those that have not said yet which chain they are on (G6).

    :param members: of the list, in its order.
    :param heads: each node's last usable head (not optimistic).
    :param tip: see :func:`~vc_fallback.decide.tip.tip`.
    """
    ranked: list[tuple[tuple[bool, bool, bool, int, int], NodeId]] = []
    for member in members:
        facts = ledger.nodes.get(member.node_id)
        if facts is None or not facts.verified:
            continue
        spare = bool(lacks(facts, heads.get(member.node_id), tip, now, slots, times))
        fallback = member.tier is Tier.FALLBACK
        unhealthy = bool(facts.unhealthy)
        ranked.append(((spare, unhealthy, fallback, member.candidate.priority, member.index), member.node_id))
    return tuple(node_id for _, node_id in sorted(ranked))
