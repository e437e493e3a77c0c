"""One beacon node in the words of the Beacon API."""

from collections.abc import Sequence
from typing import Self

import httpx

from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate, Candidates, TLSSettings
from vc_fallback.node.caller import REQUEST_TIMEOUT
from vc_fallback.node.endpoints.about import AboutEndpoints
from vc_fallback.node.endpoints.blocks import BlockEndpoints
from vc_fallback.node.endpoints.duties import DutyEndpoints
from vc_fallback.node.endpoints.preparations import PreparationEndpoints
from vc_fallback.node.endpoints.proposals import ProposalEndpoints
from vc_fallback.node.endpoints.publishing import PublishingEndpoints
from vc_fallback.node.endpoints.signing import SigningEndpoints
from vc_fallback.node.endpoints.states import StateEndpoints
from vc_fallback.node.routes import EVENTS
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.http import StreamSink
from vc_fallback.wire.tls import tls_context


class BeaconNode(
    AboutEndpoints,
    BlockEndpoints,
    StateEndpoints,
    DutyEndpoints,
    ProposalEndpoints,
    SigningEndpoints,
    PublishingEndpoints,
    PreparationEndpoints,
):
    """Asks one node, everything the Beacon API has for a validator client.

    Every call takes `timeout` in seconds for all it does, and returns its value with its provenance (`Sourced`). It
    raises only :exc:`~vc_fallback.NodeError` (the tree is in `vc_fallback.node.failures`), or :exc:`ValueError` for
    what can be seen to be wrong before anything is sent. Nothing is repeated on the node but what Q10 allows.

    A node can be used by itself: `async with BeaconNode.at("http://127.0.0.1:5052") as node: await node.syncing()`.
    """

    @classmethod
    def at(
        cls,
        url: str,
        *,
        name: str | None = None,
        headers: Sequence[tuple[str, str]] = (),
        tls: TLSSettings = TLSSettings(),  # noqa: B008 - it is a value
        request_timeout: float = REQUEST_TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> Self:
        """Make the client of one node, by itself, in a running event loop.

        :param url: base URL; user-info, path prefix and query are kept, and never shown.
        :param name: its node id; made of the URL without one (I3).
        :param headers: sent with every request.
        :param request_timeout: seconds for a call that names no time of its own.
        :param transport: used in the place of our own connections; it is the caller's to close.
        :raises ConfigurationError: for a URL, a header or a certificate that cannot be used.
        """
        try:
            base = BaseURL.parse(url)
        except ValueError as error:
            raise ConfigurationError("url", str(error)) from None
        (member,) = Candidates([Candidate(base, name, headers=tuple(headers), tls=tls)]).current.members.values()
        http = HTTPClient(
            base,
            headers=headers,
            tls=tls_context(tls) if base.scheme == "https" or tls != TLSSettings() else None,
            transport=transport,
        )
        mask = member.candidate.mask
        return cls(member.node_id, http, clock=Clock(), request_timeout=request_timeout, mask=mask)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def events(self, topics: Sequence[str], sink: StreamSink, connect_timeout: float) -> None:
        """Subscribe to topics and hand what comes to `sink` until the node ends the stream (H10).

        :raises httpx.TransportError: when the connection cannot be made or breaks.
        :raises httpx.DecodingError: for a content coding that is not known, or is not what it says.
        """
        await self.http.stream(
            EVENTS.template,
            query=[("topics", topic) for topic in topics],
            headers=[("Accept", "text/event-stream"), ("Cache-Control", "no-store")],
            sink=sink,
            connect_timeout=connect_timeout,
        )
