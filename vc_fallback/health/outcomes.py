"""What the end of a request says of its node's health (rule 10)."""

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId
from vc_fallback.health.book import HealthBook
from vc_fallback.node.caller import Outcomes
from vc_fallback.node.failures import FutureSlot, RequestTimeout, Unreachable
from vc_fallback.node.routes import ATTESTATION_DATA, FINALITY, PEER_COUNT, SYNCING, Route

_ASIDE = frozenset(route.operation for route in (SYNCING, PEER_COUNT, FINALITY))
"""Asked by checks. They write the outcome of the first themselves; the others are no part of them: a node that does not
say how many peers it has is none the worse for it."""


def outcomes(book: HealthBook, node_id: NodeId) -> Outcomes:
    """Return what writes the outcomes of requests to a node into the book, for a client that is made now.

    When the node leaves the list, or is reached in another way, what its old client still has under way says nothing
    of the one that comes after it (G3).
    """
    record = book.records.get(node_id)

    def ended(route: Route, began: float, at: float, error: NodeError | None) -> None:
        if route.operation in _ASIDE or record is None or book.records.get(node_id) is not record:
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
