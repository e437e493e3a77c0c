"""A simulated beacon node: a real HTTP server on loopback, as tasks of the caller's event loop, that fails on cue."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self

from vc_fallback.testing.api.router import hear
from vc_fallback.testing.blocks import MAIN, SimulatedBlock, SimulatedChain
from vc_fallback.testing.broadcast import Broadcast
from vc_fallback.testing.events import TOPICS, Json, UnknownTopics
from vc_fallback.testing.faults import Fault, Faults, Hang, Injection
from vc_fallback.testing.follower import Follower
from vc_fallback.testing.framings import FRAMINGS, FramingName
from vc_fallback.testing.http import Answer, Request
from vc_fallback.testing.manners import Manners
from vc_fallback.testing.pool import Submission
from vc_fallback.testing.proposal import Proposal
from vc_fallback.testing.responder import Responder
from vc_fallback.testing.server import Connection, Server
from vc_fallback.testing.state import NodeState
from vc_fallback.testing.tasks import background_tasks
from vc_fallback.testing.witness import Witness

_VERSIONS: dict[FramingName, tuple[str, UnknownTopics]] = {
    "lighthouse": ("Lighthouse/v8.0.0-simulated", "spec"),
    "prysm": ("Prysm/v7.0.0 (simulated)", "prysm"),
    "lodestar": ("Lodestar/v1.5.1/simulated", "silent"),
    "nimbus": ("Nimbus/v26.1.0-simulated", "nimbus"),
    "teku": ("teku/v26.1.0/simulated", "spec"),
}


class SimulatedNode(Witness):
    """One beacon node. `async with SimulatedNode(chain) as node:` serves it at `node.url` until the body ends.

    All times are those of the event loop, so it runs in virtual time too. Everything that can be given here can be
    changed later, as an attribute of :attr:`state` (what the node knows), of :attr:`manners` (how it deals with
    requests) or of :attr:`broadcast` (how it sends events).

    :param chain: the chain it follows.
    :param name: names it in its identity.
    :param framing: the client it imitates: how it writes its event stream, deals with unknown topics, words its errors.
    :param branch: of the chain.
    :param host: IP literal to bind, `127.0.0.1` or `::1`.
    :param port: 0 for a free one; it is kept while the node refuses connections.
    :param latency: seconds before each answer.
    :param head_delay: seconds by which blocks reach it later than others.
    :param lag: slots by which its head is behind.
    :param topics: it knows; by default all of the Beacon API.
    :param unknown_topics: what it does with others, in place of its framing's way.
    :param comma_topics: whether it reads `topics=a,b` as two topics.
    :param headers_with_first_event: whether its response head waits for the first event, in place of its framing's way.
    :param ssz: whether it speaks SSZ (:class:`Manners`).
    :param routes_missing: what it has not got (:class:`Manners`).
    :param proposal: what block it proposes when it is asked for one.
    :param follow: whether its head moves by itself; without it, :meth:`show` moves it.
    """

    def __init__(
        self,
        chain: SimulatedChain,
        *,
        name: str = "node",
        framing: FramingName = "lighthouse",
        branch: str = MAIN,
        host: str = "127.0.0.1",
        port: int = 0,
        latency: float = 0.0,
        head_delay: float = 0.0,
        lag: int = 0,
        topics: Collection[str] = TOPICS,
        unknown_topics: UnknownTopics | None = None,
        comma_topics: bool | None = None,
        headers_with_first_event: bool | None = None,
        ssz: bool = True,
        routes_missing: Collection[str] | Mapping[str, int] = frozenset(),
        proposal: Proposal | None = None,
        follow: bool = True,
    ) -> None:
        version, refuses = _VERSIONS[framing]
        self.name = name
        self.state = NodeState(
            chain,
            name,
            version,
            branch=branch,
            lag=lag,
            head_delay=head_delay,
            proposal=Proposal() if proposal is None else proposal,
            manners=Manners(framing, ssz=ssz, strict_accept=framing == "prysm", routes_missing=routes_missing),
        )
        self._server = Server(self._respond, host=host, port=port)
        shape = FRAMINGS[framing]
        if headers_with_first_event is not None:
            shape = replace(shape, headers_with_first_event=headers_with_first_event)
        self.broadcast = Broadcast(
            self._server,
            chain,
            shape,
            unknown_topics=refuses if unknown_topics is None else unknown_topics,
            topics=topics,
            comma_topics=framing == "lighthouse" if comma_topics is None else comma_topics,
        )
        self._faults = Faults()
        self._responder = Responder(self.state, self._server, self.broadcast, self._faults, latency)
        self._follow = follow
        self._follower = Follower(self.state, self.publish, self._server.gate, head_first=framing == "teku")
        self._running = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._running.enter_async_context(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._running.__aexit__(kind, error, traceback)

    # Faults of the whole node.

    def refuse(self) -> None:
        """Close the port: connects are refused. What is open stays open."""
        self._server.refuse()

    def listen(self) -> None:
        """Open the port again, the same one."""
        self._server.listen()

    async def kill(self, *, reset: bool = False) -> None:
        """Die like a killed process: all connections end in the middle of what they sent, the port is closed.

        :param reset: end them with RST, else with FIN (which is what a killed process does as a rule).
        """
        self._server.refuse()
        await self._server.cut(reset=reset)

    def restart(self) -> None:
        """Come back after :meth:`kill`, with the head of the chain."""
        self._server.listen()

    async def cut_connections(self, *, reset: bool = False) -> None:
        """End all present connections, in the middle of what they sent, and accept new ones."""
        await self._server.cut(reset=reset)

    def freeze(self) -> None:
        """Stop like a stopped process: connects succeed, requests hang, streams are open and silent."""
        self._server.freeze()

    def thaw(self) -> None:
        """Go on: hung requests are answered, the missed heads come in a burst."""
        self._server.thaw()

    def vanish(self) -> None:
        """Let all present connections fall silent for ever, without a close; new ones work."""
        self._server.vanish()

    # Faults of requests.

    def inject(self, path: str, fault: Fault, *, times: int | None = None) -> Injection:
        """Let a fault meet the requests of a path, until it is removed or has met so many.

        :param path: exact, or a pattern with `*`. The fault injected last is met first.
        """
        return self._faults.inject(path, fault, times)

    def answer(
        self,
        path: str,
        status: int,
        body: bytes | str = b"",
        *,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        times: int | None = None,
    ) -> Injection:
        """Answer a path like this (:meth:`inject` of an :class:`Answer`)."""
        return self.inject(path, Answer(status, body, headers or {}, content_type), times=times)

    def hang(self, path: str = "*", *, after_headers: bool = False, times: int | None = None) -> Injection:
        """Never answer a path (:meth:`inject` of a :class:`Hang`)."""
        return self.inject(path, Hang(after_headers), times=times)

    def override(self, path: str, **fields: object) -> None:
        """Change fields of the `data` of a path's answers; :data:`REMOVED` leaves one out. Without fields: undo."""
        if fields:
            self.state.overrides.setdefault(path, {}).update(fields)
        else:
            self.state.overrides.pop(path, None)

    def hear(self, submission: Submission) -> None:
        """Hear from its peers of what was published on another node: publishing it here is a duplicate from now on."""
        hear(self.state, submission)

    def heal(self) -> None:
        """End all faults: port open, thawed, events flowing, on the chain, nothing injected or overridden."""
        self._faults.clear()
        self.state.overrides.clear()
        self.state.optimistic, self.state.el_offline, self.state.syncing, self.state.lag = False, False, None, 0
        self.broadcast.duplicates, self.broadcast.end_after_event = 1, False
        self.resume()
        self.rejoin()
        self.thaw()
        self.listen()

    # Faults of event streams.

    def silence(self, *, comments: bool = True) -> None:
        """Send no event any more while everything else goes on; with or without keep-alive comments."""
        self.broadcast.silence(comments=comments)

    def hold(self) -> None:
        """Hold back what is sent on event streams, as a buffering proxy does, until :meth:`resume`."""
        self.broadcast.hold()

    def resume(self) -> None:
        """End :meth:`silence` or :meth:`hold`; what was held back goes out in one piece."""
        self.broadcast.resume()

    def end_streams(self) -> None:
        """End all event streams cleanly."""
        self.broadcast.end()

    def publish(self, topic: str, data: Json | str) -> None:
        """Send an event of any topic to those who asked for it; a text is sent as it is, JSON or not."""
        self.broadcast.say(topic, data)

    def comment(self, text: str) -> None:
        """Send a comment on all event streams, `error - dropped 5 messages` for one."""
        self.send_raw(self.broadcast.framing.comment(text))

    def send_raw(self, data: bytes, *, below_http: bool = False) -> None:
        """Send bytes on all event streams, within the HTTP body or as they are on the connection."""
        for stream in self.streams:
            if below_http:
                stream.wire(data)
            else:
                stream.body(data)

    # Faults of the head.

    def show(self, block: SimulatedBlock) -> None:
        """Make a block the head, and say so."""
        self._follower.show(block)

    def reveal_payload(self) -> None:
        """Let the payload of a Gloas head come, and say so."""
        self._follower.reveal_payload()

    def switch(
        self, branch: str, *, head_event: bool = True, reorg_event: bool = True, reorg_first: bool = False
    ) -> None:
        """Change to another branch at the same slot: a reorg, said by `head` and `chain_reorg` in this order.

        :param head_event: say `head`; some nodes do not at a reorg (cases.md 45).
        """
        self._follower.switch(branch, head_event=head_event, reorg_event=reorg_event, reorg_first=reorg_first)

    def cut_off(self) -> None:
        """Lose all peers: the head stays where it is until :meth:`rejoin`."""
        self._follower.cut_off()

    def rejoin(self, *, interval: float = 0.0) -> None:
        """Have peers again: a burst of the old heads that were missed, one each `interval` seconds."""
        self._follower.rejoin(interval)

    # How it works.

    async def _respond(self, connection: Connection, request: Request) -> bool:
        return await self._responder.respond(connection, request)

    @asynccontextmanager
    async def _run(self) -> AsyncIterator[None]:
        try:
            async with background_tasks() as tasks:
                self._server.start(tasks)
                if self._follow:
                    tasks.start_soon(self._follower.run)
                yield
        finally:
            self._server.close()
