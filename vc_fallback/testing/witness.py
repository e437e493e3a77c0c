"""What a simulated node is, and what happened to it, for tests to look at."""

from collections import Counter
from collections.abc import Sequence

from vc_fallback.testing.blocks import SimulatedBlock, SimulatedChain
from vc_fallback.testing.broadcast import Broadcast
from vc_fallback.testing.http import Request
from vc_fallback.testing.manners import Manners
from vc_fallback.testing.pool import Submission
from vc_fallback.testing.responder import Responder
from vc_fallback.testing.server import Server
from vc_fallback.testing.state import NodeState
from vc_fallback.testing.streams import EventStream, StreamRecord


class Witness:
    """The records of a node, and what it has now."""

    state: NodeState
    broadcast: Broadcast
    _server: Server
    _responder: Responder

    @property
    def url(self) -> str:
        """Where it listens, `http://host:port`; known once it runs."""
        return self._server.url

    @property
    def port(self) -> int:
        """Its port."""
        return self._server.port

    @property
    def chain(self) -> SimulatedChain:
        """The chain it follows."""
        return self.state.chain

    @property
    def head(self) -> SimulatedBlock:
        """The head it has now."""
        return self.state.head

    @property
    def manners(self) -> Manners:
        """How it deals with requests."""
        return self.state.manners

    @property
    def published(self) -> Sequence[Submission]:
        """What was published on it, refused things among them (the newest 10,000), oldest first."""
        return self.state.pool.published

    @property
    def prepared(self) -> Sequence[Submission]:
        """What it was sent to prepare it: subscriptions, fee recipients, registrations, preferences, selections."""
        return self.state.pool.prepared

    @property
    def latency(self) -> float:
        """Seconds before each answer."""
        return self._responder.latency

    @latency.setter
    def latency(self, seconds: float) -> None:
        self._responder.latency = seconds

    @property
    def requests(self) -> Sequence[Request]:
        """The newest requests (10,000 at most), those for events among them, oldest first."""
        return self._responder.requests

    @property
    def request_counts(self) -> Counter[str]:
        """How many requests there were, by path (the first 10,000 paths)."""
        return self._responder.counts

    @property
    def opens(self) -> tuple[StreamRecord, ...]:
        """The records of all requests for events, refused and unanswered ones among them, oldest first."""
        return tuple(self.broadcast.opens)

    @property
    def streams(self) -> tuple[EventStream, ...]:
        """The event streams that are open now."""
        return self.broadcast.streams

    @property
    def max_streams(self) -> int:
        """The most event streams that were ever open at once."""
        return self.broadcast.max_open

    @property
    def connections(self) -> int:
        """How many connections are open now."""
        return len(self._server.connections)

    @property
    def accepted(self) -> int:
        """How many connections it ever accepted."""
        return self._server.accepted
