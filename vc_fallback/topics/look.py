"""What every node has of the topics, as the decisions want it."""

import math
from collections.abc import Iterable

from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import NodeId, Role
from vc_fallback.decide.ledger import NodeFacts
from vc_fallback.decide.topic_tiers import HEADERLESS, NOTHING, Lack, NodeTopics
from vc_fallback.topics.context import TopicContext
from vc_fallback.topics.units import TopicUnits

HEAD_TOPICS = frozenset({"head", "head_v2", "chain_reorg"})
"""They come by the head streams, and need no other connection."""

_ANSWERED = frozenset({StreamState.OPEN, StreamState.FRESH, StreamState.STALLED})


def look_at_topics(context: TopicContext, units: TopicUnits) -> tuple[list[NodeTopics], float]:
    """See what every node has of other topics than the head's, and when time alone may change that, in loop time."""
    nodes, due = [], math.inf
    for node, facts in _nodes(context):
        unit = units.get(node.node_id)
        if unit is None:
            nodes.append(node)
            continue
        view = unit.view()
        due = min(due, view.due)
        nodes.append(
            node._replace(
                live=view.live,
                asked=view.asked,
                standing=view.standing,
                # One that is not in order is waited for only while that may be as nothing is known of it yet.
                opening=view.opening if node.serves or facts.identity is None else NOTHING,
                lacks=view.lacks,
            )
        )
    return nodes, due


def look_at_heads(context: TopicContext) -> list[NodeTopics]:
    """See which head streams there are."""
    now = context.clock.now()
    return [
        node._replace(
            live=HEAD_TOPICS if facts.stream.state in _ANSWERED else NOTHING,
            standing=HEAD_TOPICS if facts.stream.standing_connection else NOTHING,
            lacks=dict.fromkeys(HEAD_TOPICS, Lack(f"head stream {facts.stream.state}", refused=False, at=now)),
        )
        for node, facts in _nodes(context)
    ]


def reasons(topic: str, nodes: Iterable[NodeTopics]) -> dict[NodeId, str]:
    """Say of every node why it does not carry a topic."""
    return {node.node_id: _reason(topic, node) for node in nodes}


def _reason(topic: str, node: NodeTopics) -> str:
    if not node.carries:
        return "is on another chain"
    if topic in node.standing:
        return "is not to be relied on now"
    lack = (node.lacks or {}).get(topic)
    return "no answer yet" if lack is None else lack.words


def _nodes(context: TopicContext) -> list[tuple[NodeTopics, NodeFacts]]:
    nodes, now, late = [], context.clock.now(), HEADERLESS * context.slot
    for member in context.candidates.current.of(Role.EVENTS):
        facts = context.ledger.nodes.get(member.node_id)
        if facts is None:
            continue
        ours = facts.verified and context.ledger.chain is not None and not facts.stream.distrusted
        healthy = not context.book.unhealthy(member.node_id)
        nodes.append(
            (
                NodeTopics(
                    member.node_id,
                    member.tier,
                    carries=not facts.quarantined,
                    serves=ours and healthy,
                    flows=ours and (healthy or now < (facts.stream.last_current_at or -math.inf) + late),
                ),
                facts,
            )
        )
    return nodes
