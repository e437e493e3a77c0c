"""One connection of a head stream: reads the head topics."""

import logging
from collections.abc import Callable
from typing import Protocol

from httpx_sse import ServerSentEvent

from vc_fallback.node.client import BeaconNode
from vc_fallback.node.events import HeadEvent, MalformedEvent, ReorgEvent, StreamError, parse_event
from vc_fallback.streams.connection import Connection, Owner

logger = logging.getLogger(__name__)


class HeadOwner(Owner, Protocol):
    """What a connection tells its head stream. All methods return at once."""

    def on_head(self, connection: "HeadConnection", event: HeadEvent) -> None:
        """A head came."""

    def on_reorg(self, connection: "HeadConnection", event: ReorgEvent) -> None:
        """A reorg came."""


class HeadConnection(Connection):
    """A connection whose events are heads and reorgs."""

    def __init__(
        self, owner: HeadOwner, node: BeaconNode, topics: tuple[str, ...], event_limit: int, unix: Callable[[], float]
    ) -> None:
        super().__init__(owner, node, topics, event_limit, unix)
        self.heads = 0
        self.current_head = False
        """Whether a current head came on this connection; written by the owner, as is the next one."""
        self.recovered = False
        """Whether such a head ended the failures in a row (H4)."""
        self._stream = owner
        self._second_form = False
        """Whether the node sends `head_v2`."""
        self._broken_form = False
        """Whether the last of them was malformed: then `head` counts, whatever comes beside it."""

    def take(self, events: list[ServerSentEvent]) -> None:
        """Take events, in order."""
        if not self._second_form and not self._broken_form and any(event.event == "head_v2" for event in events):
            self._second_form = True
        for event in events:
            self._event(event)

    def _event(self, sse: ServerSentEvent) -> None:
        if self._second_form and sse.event == "head":
            # Both forms flowing is one head, and the second form says more (H11).
            return
        try:
            event = parse_event(sse.event, sse.data)
        except MalformedEvent as malformed:
            self.malformed += 1
            if sse.event == "head_v2":
                self._second_form, self._broken_form = False, True
            logger.debug("%s: malformed event: %s", self.node.node_id, malformed)
            self.nonsense(1)
            return
        match event:
            case HeadEvent():
                self.sense()
                if sse.event == "head_v2":
                    self._second_form, self._broken_form = True, False
                self.heads += 1
                self._stream.on_head(self, event)
            case ReorgEvent():
                self.sense()
                self._stream.on_reorg(self, event)
            case StreamError(status=status, message=message):
                self.refused_in_band(status, message)
            case None:
                pass
