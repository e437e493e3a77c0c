"""What the end of a request says of its node's health (rule 10)."""

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId
from vc_fallback.health.book import HealthBook
from vc_fallback.node.caller import Outcomes
from vc_fallback.node.failures import FutureSlot, RequestTimeout, Unreachable
from vc_fallback.node.routes import ATTESTATION_DATA, SYNCING, Route


def outcomes(book: HealthBook, node_id: NodeId) -> Outcomes:
    """Return what writes the outcomes of requests to a node into the book, for a client that is made now.

    When the node leaves the list, or is reached in another way, what its old client still has under way says nothing
    of the one that comes after it (G3). `node/syncing` is asked by checks, which write their outcomes themselves.
    """
    record = book.records.get(node_id)

    def ended(route: Route, began: float, at: float, error: NodeError | None) -> None:
        if route is SYNCING or record is None or book.records.get(node_id) is not record:
            return
        if error is not None and error.blames_node:
            transport = isinstance(error, Unreachable)
            book.request_failed(node_id, f"{route.template}: {error.words}", started=began, transport=transport)
        elif isinstance(error, FutureSlot):
            book.future_slot(node_id)
        if route is ATTESTATION_DATA and (error is None or isinstance(error, RequestTimeout)):
            # A wait that was given up says as much: the answer would have taken longer still.
            book.duty_answered(node_id, at - began)

    return ended
