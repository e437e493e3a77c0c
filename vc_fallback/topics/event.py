"""What a subscriber to topics gets: events, and an error where nobody carries a topic (T1, T7)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from vc_fallback.base.errors import FallbackError
from vc_fallback.base.redact import printable
from vc_fallback.base.types import NodeId, Provenance
from vc_fallback.node.topic_events import TopicValue

_VERSION = re.compile(r'"version"\s*:\s*"(\w{1,64})"')
_VERSION_WITHIN = 128
"""Characters of the data, at its beginning or its end, in which a wrapper has its version."""
_SHOWN = 8
"""Nodes that the text of an error names."""


@dataclass(frozen=True, slots=True)
class TopicEvent:
    """An event of a topic, from the first node that told it (T6).

    :param topic: as it was subscribed to; `head` stands for `head_v2` too, as both are one.
    :param value: what it says, as a value of its topic; of a topic that is not known here the JSON as it is.
    :param data: the text as it came; empty for the head's topics, which come by the head streams.
    :param provenance: the node, the generation of the list, and when it came, in loop time.
    """

    topic: str
    value: TopicValue
    data: str
    provenance: Provenance

    @property
    def node_id(self) -> NodeId:
        """The node that told it first."""
        return self.provenance.node_id

    @property
    def version(self) -> str | None:
        """The fork that a node names beside the data (`{"version": "fulu", "data": …}`); `None` where it names none."""
        if len(self.data) <= 2 * _VERSION_WITHIN:
            found = _VERSION.search(self.data)
        else:
            found = _VERSION.search(self.data[:_VERSION_WITHIN]) or _VERSION.search(self.data[-_VERSION_WITHIN:])
        return found[1].lower() if found is not None else None


class TopicUnavailable(FallbackError):
    """No node of any tier carries a topic (T7).

    The subscription stands, and the topic goes on to be wanted: its events come once a node carries it, and another of
    these errors where none does in the time that is set.

    :ivar topic: the topic.
    :ivar reasons: of every node why it does not carry it, in its own words where it has any.
    """

    def __init__(self, topic: str, reasons: Mapping[NodeId, str]) -> None:
        self.topic = topic
        self.reasons = {node_id: printable(words) for node_id, words in reasons.items()}
        told = [f"{node_id}: {words}" for node_id, words in self.reasons.items()]
        more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        super().__init__(f"{topic}: no node carries it: {'; '.join(told[:_SHOWN]) or 'the list has none'}{more}")
