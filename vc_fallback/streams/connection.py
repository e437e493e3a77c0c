"""One connection to a node's event stream: reads what comes, until it ends for one reason."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NoReturn, Protocol

import anyio
import httpx
from httpx_sse import ServerSentEvent

from vc_fallback.base.redact import printable
from vc_fallback.base.signals import StreamReason
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.error_body import read_error
from vc_fallback.node.retry_after import parse_retry_after
from vc_fallback.node.transport_errors import describe
from vc_fallback.wire.http import Headers
from vc_fallback.wire.sse import SSEDecoder

logger = logging.getLogger(__name__)

ERROR_BODY = 4096
"""Bytes of a refusal's body that are read for its message (H3)."""

ERROR_BODY_TIME = 1.0
"""Seconds to wait for a refusal's body."""

NONSENSE = 64
"""Malformed or oversized events in a row, without a good one between them, that end a connection."""


class Owner(Protocol):
    """What a connection tells the stream that it is of. All methods return at once."""

    def on_sent(self, connection: "Connection") -> None:
        """The request was sent."""

    def on_open(self, connection: "Connection") -> None:
        """The node answered 200 with an event stream."""

    def on_bytes(self, connection: "Connection") -> None:
        """Bytes came; comments among them are counted in `connection.comments`."""

    def on_dropped(self, connection: "Connection") -> None:
        """The node says that it dropped messages (H14)."""


class StreamEnd(Exception):
    """Ends a connection from within a callback of it."""

    def __init__(self, reason: StreamReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Connection(ABC):
    """A sink for the bytes of one connection. After :meth:`run`, `reason` and `detail` say why it ended.

    What the events mean is for :meth:`take`, which those who read heads or other topics give.
    """

    def __init__(
        self, owner: Owner, node: BeaconNode, topics: tuple[str, ...], event_limit: int, unix: Callable[[], float]
    ) -> None:
        self.topics = topics
        self.reason = StreamReason.ENDED
        self.detail = ""
        self.status: int | None = None
        self.in_band = False
        """Whether an event said that the subscription failed (case 4)."""
        self.retry_after: float | None = None
        self.requested: float | None = None
        """When the request was sent, in loop time; written by the owner."""
        self.open = False
        self.settled = anyio.Event()
        """Set when the connection is open or has ended; by the owner."""
        self.owner = owner
        self.node = node
        self._unix = unix
        self._scope = anyio.CancelScope()
        self._decoder = SSEDecoder(line_limit=event_limit, event_limit=event_limit, on_comment=self._comment)
        self._refusal: bytearray | None = None
        self._refused: tuple[StreamReason, str] = (StreamReason.REFUSED, "")
        self._dropped = False
        """Whether a comment among the bytes at hand reported dropped messages (H14)."""
        self._nonsense = 0
        self._seen_oversized = 0
        self.malformed = 0

    @property
    def comments(self) -> int:
        """How many comments came."""
        return self._decoder.comments

    @property
    def oversized(self) -> int:
        """How many events were over the limit (Q15)."""
        return self._decoder.dropped

    def end(self, reason: StreamReason, detail: str = "") -> None:
        """End the connection from outside."""
        self.reason, self.detail = reason, detail
        self._scope.cancel()

    async def run(self, connect_timeout: float) -> None:
        """Connect, ask, and read until the end, whichever it is; never raises but when it is cancelled from outside."""
        with self._scope:
            try:
                await self.node.events(self.topics, self, connect_timeout)
                self._finish(StreamReason.ENDED, "")
            except StreamEnd as end:
                self._finish(end.reason, end.detail)
            except httpx.DecodingError as error:
                self._finish(StreamReason.BROKEN if self.open else StreamReason.NOT_AN_EVENT_STREAM, describe(error))
            except httpx.TransportError as error:
                reason = StreamReason.BROKEN if self.requested is not None else StreamReason.CONNECT_FAILED
                self._finish(reason, describe(error))
            except Exception as error:
                logger.exception("%s: event stream", self.node.node_id)
                self._finish(StreamReason.INTERNAL, type(error).__name__)
            return
        if self._refusal is not None and self.reason is StreamReason.ENDED:
            self._finish(StreamReason.ENDED, "")

    def _finish(self, reason: StreamReason, detail: str) -> None:
        if self._refusal is not None and reason in (StreamReason.ENDED, StreamReason.BROKEN):
            # The body of a refusal has ended, however it did.
            reason, what = self._refused
            words = read_error(self.node.mask(self._refusal.decode("utf-8", "replace")))[1]
            detail = f"{what} {words}".rstrip()
        self.reason, self.detail = reason, self.node.mask(detail)

    # --- called from the socket

    def sent(self) -> None:
        """The request is written."""
        self.owner.on_sent(self)

    def response(self, status: int, headers: Headers) -> None:
        """Check the head of the response before reading (H3)."""
        self.status = status
        media_type = (headers.get("content-type") or "").partition(";")[0].strip().lower()
        if status != 200:
            if status in (429, 503):
                self.retry_after = parse_retry_after(headers.get("retry-after"), self._unix())
            self._refuse(StreamReason.REFUSED, str(status))
            return
        if media_type != "text/event-stream":
            said = f"media type {printable(media_type, 60) or 'missing'}"
            self._refuse(StreamReason.NOT_AN_EVENT_STREAM, said)
            return
        self.open = True
        self.owner.on_open(self)

    def _refuse(self, reason: StreamReason, detail: str) -> None:
        """Read a bounded part of the body for its words, and end (H3)."""
        self._refused = (reason, detail)
        self._refusal = bytearray()
        self._scope.deadline = anyio.current_time() + ERROR_BODY_TIME

    def data(self, data: bytes) -> None:
        """Decode bytes of the body and hand on what they mean. A bad event costs that event (rule 4)."""
        if self._refusal is not None:
            self._refusal += data[: ERROR_BODY - len(self._refusal)]
            if len(self._refusal) >= ERROR_BODY:
                raise StreamEnd(StreamReason.ENDED, "")
            return
        self._dropped = False
        events = self._decoder.feed(data)
        self.owner.on_bytes(self)
        if self._dropped:
            self.owner.on_dropped(self)
        if self._decoder.dropped != self._seen_oversized:
            self.nonsense(self._decoder.dropped - self._seen_oversized)
            self._seen_oversized = self._decoder.dropped
        if events:
            self.take(events)

    @abstractmethod
    def take(self, events: list[ServerSentEvent]) -> None:
        """Take events, in order. A bad event costs that event (rule 4).

        :raises StreamEnd: to end the connection.
        """

    def nonsense(self, count: int) -> None:
        """Count what could not be read.

        :raises StreamEnd: when it is too much without anything good between.
        """
        self._nonsense += count
        if self._nonsense >= NONSENSE:
            raise StreamEnd(StreamReason.UNREADABLE, f"{self._nonsense} events in a row could not be read")

    def sense(self) -> None:
        """Note that something could be read."""
        self._nonsense = 0

    def refused_in_band(self, status: int | None, message: str) -> NoReturn:
        """End the connection: the node says in an event that the subscription failed, though it answered 200 (case 4).

        :raises StreamEnd: always.
        """
        self.status = status
        self.in_band = True
        raise StreamEnd(StreamReason.REFUSED, f"{status or 'error'} {message}")

    def _comment(self, text: str) -> None:
        if text.strip().startswith("error - dropped"):
            self._dropped = True
