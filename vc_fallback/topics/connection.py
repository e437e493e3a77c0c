"""One connection for other topics than the head's."""

from collections.abc import Callable
from typing import Protocol

from httpx_sse import ServerSentEvent

from vc_fallback.node.client import BeaconNode
from vc_fallback.node.error_body import read_error
from vc_fallback.streams.connection import Connection, Owner


class TopicOwner(Owner, Protocol):
    """What a connection tells its stream. All methods return at once."""

    def on_event(self, connection: "TopicConnection", topic: str, data: str) -> None:
        """An event of a topic that was asked for came."""


class TopicConnection(Connection):
    """A connection whose events are told as they come; what they mean is not its concern."""

    def __init__(
        self, owner: TopicOwner, node: BeaconNode, topics: tuple[str, ...], event_limit: int, unix: Callable[[], float]
    ) -> None:
        super().__init__(owner, node, topics, event_limit, unix)
        self.asked = frozenset(topics)
        self.opened: float | None = None
        """When the node answered, in loop time; written by the owner, as are the next ones."""
        self.last_byte: float | None = None
        self.events = 0
        self.held: list[tuple[str, str, float]] | None = None
        """Events that wait until it is known which chain the node is on (H15); `None` where none have to."""
        self._stream = owner

    def take(self, events: list[ServerSentEvent]) -> None:
        """Take events, in order. One of a topic that was not asked for is nobody's."""
        for sse in events:
            topic = sse.event
            if topic in self.asked:
                self.events += 1
                self._stream.on_event(self, topic, sse.data)
            elif topic == "error":
                self.refused_in_band(*read_error(sse.data))
        self.sense()
