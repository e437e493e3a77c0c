"""The event side of a simulated node: who subscribes, what is refused, what is sent, held back or left out."""

from collections import deque
from collections.abc import Collection
from typing import Literal

from vc_fallback.testing import events
from vc_fallback.testing.blocks import SimulatedChain
from vc_fallback.testing.events import TOPICS, Json, UnknownTopics
from vc_fallback.testing.faults import StreamHeaders
from vc_fallback.testing.framings import Framing
from vc_fallback.testing.http import Answer, Request
from vc_fallback.testing.server import Connection, Server
from vc_fallback.testing.streams import EventStream, StreamRecord

RECORDS = 10_000
"""How many of the newest records are kept; the counts go on."""


class Broadcast:
    """The open event streams of a node.

    :param unknown_topics: what happens to topics that are not among `topics`.
    :param comma_topics: whether one `topics=a,b` names two topics.
    """

    def __init__(
        self,
        server: Server,
        chain: SimulatedChain,
        framing: Framing,
        *,
        unknown_topics: UnknownTopics,
        topics: Collection[str] = TOPICS,
        comma_topics: bool = False,
    ) -> None:
        self.framing = framing
        self.unknown_topics = unknown_topics
        self.topics = set(topics)
        self.comma_topics = comma_topics
        self.comments = True
        """Whether keep-alive comments are sent, by framings that have them."""
        self.duplicates = 1
        """How often each event is sent."""
        self.end_after_event = False
        """End each stream cleanly after its next event."""
        self.opens: deque[StreamRecord] = deque(maxlen=RECORDS)
        self.open_count = 0
        self.max_open = 0
        self._server = server
        self._chain = chain
        self._streams: list[EventStream] = []
        self._mode: Literal["flow", "silent", "held"] = "flow"

    @property
    def streams(self) -> tuple[EventStream, ...]:
        """The streams that are open now, vanished ones among them."""
        return tuple(stream for stream in self._streams if stream.record.closed is None)

    def say(self, topic: str, data: Json | str) -> None:
        """Send an event to the streams that asked for its topic (unless silent)."""
        if self._mode == "silent":
            return
        text = data if isinstance(data, str) else events.dumps(data)
        framed = self.framing.event(topic, text) if any(topic in stream.topics for stream in self._streams) else b""
        for stream in self._streams:
            if topic in stream.topics:
                for _ in range(self.duplicates):
                    stream.event(framed)
                if self.end_after_event:
                    stream.end()

    def silence(self, *, comments: bool) -> None:
        """Send no event any more, and comments only if so asked."""
        self._mode = "silent"
        self.comments = comments
        self._poke()

    def hold(self) -> None:
        """Hold everything back, as a buffering proxy does, until :meth:`resume`."""
        self._mode = "held"
        self._poke()

    def resume(self) -> None:
        """Send again; what was held back goes out in one piece, what was silenced never does."""
        self._mode = "flow"
        self.comments = True
        self._poke()

    def end(self) -> None:
        """End all open streams cleanly, once what they have is written."""
        for stream in self._streams:
            stream.end()

    async def serve(self, connection: Connection, request: Request, record: StreamRecord, extra: StreamHeaders) -> bool:
        """Answer a request for events; return whether the connection lives on."""
        framing = self.framing
        if framing.accept and request.headers.get("accept") != framing.accept:
            record.status = 200
            await self._server.write(connection, Answer(200).encode(keep_alive=False))
            return False
        known = self.topics.intersection(record.topics)
        unknown = [topic for topic in record.topics if topic not in known]
        if self.unknown_topics == "nimbus" and len(set(record.topics)) < len(record.topics):
            return await self._refuse(connection, record, "Event topics must be unique")
        if self.unknown_topics == "silent" and not known:
            await connection.reader.wait_closed()
            record.closed_by = "client"
            return False
        if self.unknown_topics not in {"silent", "open"} and (unknown or not known):
            return await self._refuse(connection, record, unknown[0] if unknown else "")
        head = framing.head(
            self._chain.clock.unix(request.received), content_type=extra.content_type, headers=extra.headers
        )
        stream = EventStream(record, self._server, connection, framing, head, self._keep_alive)
        stream.held = self._mode == "held"
        self._streams.append(stream)
        self.max_open = max(self.max_open, len(self.streams))
        try:
            await stream.run()
        finally:
            self._streams.remove(stream)
        if record.closed_by == "node" and not record.overrun:
            await self._server.write(connection, framing.end)
        return False

    def record(self, request: Request) -> StreamRecord:
        """Keep a record of a request for events."""
        self.open_count += 1
        record = StreamRecord(
            number=self.open_count,
            opened=request.received,
            topics=self._asked(request),
            target=request.target,
            headers=request.headers,
            connection=request.connection,
        )
        self.opens.append(record)
        return record

    async def _refuse(self, connection: Connection, record: StreamRecord, topic: str) -> bool:
        record.status = 400
        await self._server.write(connection, Answer(400, events.refusal(self.unknown_topics, topic)).encode())
        return True

    def _asked(self, request: Request) -> tuple[str, ...]:
        asked = [value for name, value in request.query if name == "topics"]
        if self.comma_topics:
            asked = [topic for value in asked for topic in value.split(",")]
        return tuple(asked)

    def _keep_alive(self) -> float | None:
        if not self.framing.keep_alive or not self.comments:
            return None
        after = self.framing.keep_alive_after
        return self._chain.identity.slot_duration if after is None else after

    def _poke(self) -> None:
        for stream in self._streams:
            stream.held = self._mode == "held"
            stream.poke()
