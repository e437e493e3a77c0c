"""Which node carries which topics (T1–T3), and whether anybody carries one (T7)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from vc_fallback.base.types import NodeId, Tier

HIGH_RATE = frozenset({"attestation", "single_attestation", "data_column_sidecar"})
"""Topics with thousands of events in a slot: they have a connection of their own (T1)."""

HEADERLESS = 2.5
"""Slots for which a node must have been healthy since a request that it has not answered yet until the topics of it are
live: some nodes send the head of their response with the first event (T1, H2)."""

NOTHING: frozenset[str] = frozenset()


def groups(topics: Iterable[str]) -> Mapping[bool, frozenset[str]]:
    """Divide topics by their connections: those of a high rate (`True`), and all others."""
    wanted = frozenset(topics)
    return {False: wanted - HIGH_RATE, True: wanted & HIGH_RATE}


def live_from(opened: float | None, requested: float | None, healthy_since: float | None, slot: float) -> float | None:
    """Return the moment from which the topics of a connection are live; `None` while nothing says that they will be.

    :param opened: when the node answered 200.
    :param requested: when the request was sent; the connection stands.
    :param healthy_since: since when the node is healthy, `None` where it is not.
    :param slot: seconds.
    """
    if opened is not None:
        return opened
    if requested is None or healthy_since is None:
        return None
    return max(requested, healthy_since) + HEADERLESS * slot


@dataclass(frozen=True, slots=True)
class Lack:
    """Why a node does not carry a topic.

    :param refused: whether it said so itself, with 400.
    :param at: since when, in loop time.
    """

    words: str
    refused: bool
    at: float


class NodeTopics(NamedTuple):
    """One node of the list with role `events`, as of now.

    :param carries: whether it may be asked: it is not on another chain.
    :param serves: whether what it carries counts for the fallback tier: on our chain, healthy, and its head stream is
        not found stalled or behind.
    :param flows: whether what it carries reaches subscribers at all: it serves, or heads have come from it of late.
    :param live: topics that are live on it (T1).
    :param asked: topics of which a request stands, live or not.
    :param standing: those of them whose request was not refused when it could have been.
    :param opening: topics that it is asked for the first time just now: an answer is on its way.
    :param lacks: why it does not carry topics that it was asked for.
    """

    node_id: NodeId
    tier: Tier
    carries: bool
    serves: bool
    flows: bool
    live: frozenset[str] = NOTHING
    asked: frozenset[str] = NOTHING
    standing: frozenset[str] = NOTHING
    opening: frozenset[str] = NOTHING
    lacks: Mapping[str, Lack] | None = None


def assign(wanted: Collection[str], nodes: Iterable[NodeTopics]) -> dict[NodeId, frozenset[str]]:
    """Say which topics each node is to carry (T2, T3).

    Primaries carry all. Fallbacks carry what is live on no primary that serves; what they carry already they keep until
    it is, and they are not asked for what a primary is just about to answer.
    """
    topics = frozenset(wanted)
    nodes = list(nodes)
    primaries = [node for node in nodes if node.tier is Tier.PRIMARY and node.carries]
    lost = topics.difference(*(node.live for node in primaries if node.serves))
    coming = NOTHING.union(*(node.opening for node in primaries))
    assigned = {}
    for node in nodes:
        if not node.carries:
            assigned[node.node_id] = NOTHING
        elif node.tier is Tier.PRIMARY:
            assigned[node.node_id] = topics
        else:
            assigned[node.node_id] = lost - (coming - node.asked)
    return assigned


class Outlook(Enum):
    """Whether a topic reaches its subscribers."""

    CARRIED = auto()
    """A request of it stands on a node that is in order."""
    REFUSED = auto()
    """Every node that could carry it has refused it since it was asked for."""
    MISSING = auto()
    """Nobody carries it now."""


def outlook(topic: str, nodes: Iterable[NodeTopics], since: float) -> Outlook:
    """Say whether a topic reaches its subscribers (T7).

    :param since: refusals from before do not count, in loop time.
    """
    refusals = []
    for node in nodes:
        if not node.carries:
            continue
        if node.flows and topic in node.standing:
            return Outlook.CARRIED
        lack = (node.lacks or {}).get(topic)
        refusals.append(lack is not None and lack.refused and lack.at >= since)
    return Outlook.REFUSED if refusals and all(refusals) else Outlook.MISSING
