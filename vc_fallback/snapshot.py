"""Puts the snapshot of everything together (O2)."""

from vc_fallback.base.types import NodeId, root_hex
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.routing.desk import Desk
from vc_fallback.routing.preparations import Preparation, Preparations
from vc_fallback.status import ChainStatus, HeadStatus, NodeStatus, Status
from vc_fallback.topics.hub import TopicHub


def snapshot(heads: HeadMonitor, desk: Desk, preparations: Preparations, topics: TopicHub) -> Status:
    """Put the snapshot together, as of now."""
    now = desk.clock.now()
    preparations.expire(now)
    book, slots, latest = heads.cache.book, heads.slots, heads.latest.value
    chain = None
    if slots is not None:
        epoch = slots.epoch_at(now)
        fork = slots.chain.fork_at(epoch)
        chain = ChainStatus(
            genesis_time=slots.chain.genesis_time,
            genesis_validators_root=root_hex(slots.chain.genesis_validators_root),
            slot_duration=slots.duration,
            slots_per_epoch=slots.chain.slots_per_epoch,
            fork=None if fork is None else fork.name,
            slot=slots.slot_at(now),
            epoch=epoch,
        )
    head = None
    if latest is not None:
        head = HeadStatus(
            slot=latest.head.slot,
            root=root_hex(latest.head.root),
            node=latest.head.node_id,
            age=now - latest.head.received,
            seen_by=tuple(latest.voters),
        )
    return Status(
        at=desk.clock.unix(now),
        generation=heads.candidates.generation,
        ready=any(book.ready(node_id) for node_id in book.records),
        chain=chain,
        head=head,
        duties=book.active,
        failovers=book.failovers,
        failbacks=book.failbacks,
        all_unhealthy=book.all_unhealthy,
        remembered={str(kind): count for kind in Preparation if (count := preparations.count(kind))},
        topics=topics.topics(),
        nodes=tuple(_node_status(heads, desk, topics, node_id, now) for node_id in heads.candidates.current.members),
    )


def _node_status(heads: HeadMonitor, desk: Desk, topics: TopicHub, node_id: NodeId, now: float) -> NodeStatus:
    verdict, member = heads.health(node_id), heads.candidates.current.members[node_id]
    shown = heads.cache.delivery.entries.get(node_id)
    slots = heads.slots
    lacks = desk.pool.get(node_id).capabilities.lacks(None if slots is None else slots.epoch_at(now))
    return NodeStatus(
        node=node_id,
        tier=member.tier,
        roles=tuple(sorted(member.candidate.roles)),
        priority=member.candidate.priority,
        state=verdict.state,
        suspect=verdict.suspect,
        reason=verdict.reason,
        detail=verdict.detail,
        since=now - verdict.since,
        excluded=verdict.excluded,
        rank=verdict.rank,
        explanation=heads.explain(node_id),
        lag=verdict.lag,
        sync_distance=verdict.sync_distance,
        optimistic=verdict.optimistic,
        el_offline=verdict.el_offline,
        latency=verdict.latency,
        duty_latency=verdict.duty_latency,
        clock_offset=verdict.offset,
        peers=verdict.peers,
        drained=verdict.drained,
        cooling=desk.cooldowns.left(node_id, now),
        stragglers=desk.runner.stragglers[node_id],
        subscription_healthy=heads.subscription_healthy(node_id),
        head_slot=None if shown is None else shown.slot,
        head_root=None if shown is None else root_hex(shown.root),
        lacks=tuple(lack.capability for lack in lacks),
        topics=topics.connections(node_id),
    )
