"""How a call to one beacon node can fail: one tree, told apart by what the caller does next.

Every failure names the node, the endpoint's template and the HTTP status, and holds a bounded, redacted text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId

BEHIND_A_PROXY = frozenset({502, 504})
"""Statuses by which a proxy says that its node is away."""


class Unreachable(NodeError):
    """There was no answer: no connection, none in time, or one that broke."""


class ConnectError(Unreachable):
    """No connection could be made."""


class ConnectTimeout(ConnectError):
    """No connection could be made in time (H2)."""


class InsecureConnection(ConnectError):
    """TLS failed: another protocol, an untrusted certificate, or one for another name (case 25)."""


class ConnectionLost(Unreachable):
    """The connection ended before the answer did. A request that is not a read may have been taken."""


class RequestTimeout(Unreachable):
    """No whole answer within the call's own time."""


class Closed(Unreachable):
    """The client of this node was closed: the node left the candidate list, or the program ends."""

    blames_node: ClassVar[bool] = False


class Crowded(Unreachable):
    """Too many requests of our own were under way to the node: it was not asked in time."""

    blames_node: ClassVar[bool] = False


class Malformed(NodeError):
    """An answer that follows neither HTTP nor the Beacon API."""


class AnswerTooLarge(Malformed):
    """An answer that is larger than it may be (Q15)."""


class Quarantined(NodeError):
    """The node is on another chain, and was not asked (N7)."""

    blames_node: ClassVar[bool] = False


class StatusError(NodeError):
    """An answer whose HTTP status is no success, and that no class below fits."""

    shows_status: ClassVar[bool] = True


class RetryLater(StatusError):
    """A refusal for the time being; `retry_after` in seconds, `None` where the node names none."""

    def __init__(
        self,
        node_id: NodeId,
        endpoint: str,
        problem: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(node_id, endpoint, problem, status=status)
        self.retry_after = retry_after


class NotReady(RetryLater):
    """The node cannot answer now: it is syncing, starting, or short of something it needs (503, or its words)."""


class Optimistic(NotReady):
    """The node's head is not verified by its execution layer (case 30)."""


class ServerError(StatusError):
    """The node failed at it (5xx)."""


class RateLimited(RetryLater):
    """Too many requests (429, Q11)."""


class Unauthorized(StatusError):
    """Credentials, payment or permission are missing (401, 402, 403, 407); asking again soon does not help (Q11)."""


class SemanticError(StatusError):
    """The node is well and says no: nothing that health counts (rule 10)."""

    blames_node: ClassVar[bool] = False


class NotFound(SemanticError):
    """What was asked for is not there, or not there yet."""


class UnknownBlock(NotFound):
    """The block that the request is about has not come to this node (yet): ask the one that gave it (Q9, case 44)."""


class FutureSlot(SemanticError):
    """By the node's clock the slot, or the epoch, is in the future: its clock is off, or ours (N8)."""


@dataclass(frozen=True, slots=True)
class ItemFailure:
    """What a node says of one item of a list (`IndexedErrorMessage`).

    :param index: place in the list that was sent.
    :param known: the node has this very item already: a success under another name (Q12).
    """

    index: int
    message: str
    known: bool


class BadRequest(SemanticError):
    """The node refuses the request (400, or its words), or just the items in `failures` where there are any (Q12)."""

    def __init__(
        self,
        node_id: NodeId,
        endpoint: str,
        problem: str,
        *,
        status: int | None = None,
        failures: Sequence[ItemFailure] = (),
        rest_taken: bool = False,
    ) -> None:
        super().__init__(node_id, endpoint, problem, status=status)
        self.failures = tuple(failures)
        self.rest_taken = rest_taken
        """Whether the node took every other item: only where `failures` is all that it named, and all of it is ours."""


class AlreadyKnown(SemanticError):
    """The node has what was published already, all of it (rule 8). Beside one success it is success."""


class PayloadTooLarge(SemanticError):
    """The request is larger than the node takes (413, or its words)."""


class UnsupportedEndpoint(SemanticError):
    """The node does not have this endpoint (Q13); `status` is `None` where that is remembered and it was not asked."""


class UnsupportedMediaType(SemanticError):
    """The node does not take this form of the request (415), and the other form is not there."""


class NotAcceptable(SemanticError):
    """The node has no form of the answer that was asked for (406): our mistake, or a capability (case 57)."""
