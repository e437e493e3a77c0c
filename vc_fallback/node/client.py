"""One beacon node in the words of the Beacon API."""

from collections.abc import Sequence

from vc_fallback.node.endpoints.about import AboutEndpoints
from vc_fallback.node.endpoints.blocks import BlockEndpoints
from vc_fallback.node.endpoints.duties import DutyEndpoints
from vc_fallback.node.endpoints.preparations import PreparationEndpoints
from vc_fallback.node.endpoints.proposals import ProposalEndpoints
from vc_fallback.node.endpoints.publishing import PublishingEndpoints
from vc_fallback.node.endpoints.signing import SigningEndpoints
from vc_fallback.node.endpoints.states import StateEndpoints
from vc_fallback.node.routes import EVENTS
from vc_fallback.wire.http import StreamSink


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
    """

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
