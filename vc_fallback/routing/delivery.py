"""What became of a publish at one node, as a whole and item by item (rule 8, Q12)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vc_fallback.base.errors import NodeError
from vc_fallback.base.redact import printable
from vc_fallback.base.types import NodeId, Provenance
from vc_fallback.node.failures import (
    AlreadyKnown,
    BadRequest,
    NotAcceptable,
    PayloadTooLarge,
    SemanticError,
    UnsupportedEndpoint,
    UnsupportedMediaType,
)
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.outcomes import cut


class Sending(StrEnum):
    """What became of a publish at one node."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    """It took all that it had not."""
    BROADCAST = "broadcast"
    """It sent the block on and did not import it (202): neither an error nor a full success (case 53)."""
    ALREADY_KNOWN = "already known"
    """It has all of it already."""
    PARTLY = "partly"
    """It took some items, or has them, and refused others by their index (Q12)."""
    REFUSED = "refused"
    """It is well and says no."""
    FAILED = "failed"
    """It gave no usable answer. Where the request had begun it may have been taken all the same."""


class AtNode(StrEnum):
    """What became of one item at one node."""

    PENDING = "pending"
    TAKEN = "taken"
    BROADCAST = "broadcast"
    KNOWN = "known"
    REFUSED = "refused"
    FAILED = "failed"


_WHOLE = {
    Sending.PENDING: AtNode.PENDING,
    Sending.ACCEPTED: AtNode.TAKEN,
    Sending.BROADCAST: AtNode.BROADCAST,
    Sending.ALREADY_KNOWN: AtNode.KNOWN,
    Sending.PARTLY: AtNode.FAILED,
    Sending.REFUSED: AtNode.REFUSED,
    Sending.FAILED: AtNode.FAILED,
}

_CANNOT = (NotAcceptable, PayloadTooLarge, UnsupportedEndpoint, UnsupportedMediaType)
"""What a node says of the form of a request, whatever is in it."""


@dataclass(slots=True)
class Delivery:
    """A publish at one node; it changes until `state` is not `PENDING` any more. Moments are loop time in seconds.

    :param attempts: how often a request was written to the node, in part or whole: once more after a kept connection
        that had died, in the other form, or by the older route (Q10).
    :param provenance: of the node's answer, where it took it.
    :param error: what went wrong; the caller's own exception where the operation raised one.
    :param by_index: items of which the node said something else than of the rest.
    :param rest: what became of every other item.
    """

    node_id: NodeId
    started: float
    ended: float | None = None
    state: Sending = Sending.PENDING
    attempts: int = 0
    provenance: Provenance | None = None
    error: BaseException | None = None
    by_index: Mapping[int, AtNode] = field(default_factory=dict)
    rest: AtNode = AtNode.PENDING

    @property
    def begun(self) -> bool:
        """Whether a request may have been written, in part or whole: from then on the node may have taken it."""
        return self.attempts > 0

    @property
    def judged(self) -> bool:
        """Whether the node has said what it thinks of it: it took it, has it, or refused it. Who cannot be reached,
        fails, or does not take such a request from anybody, has not."""
        return self.state not in (Sending.PENDING, Sending.FAILED) and not isinstance(self.error, _CANNOT)

    @property
    def took_some(self) -> bool:
        """Whether the node took at least one item that it did not have."""
        return self.rest is AtNode.TAKEN

    @property
    def words(self) -> str:
        """What became of it, in a few words."""
        if self.error is None:
            return self.state.value
        words = self.error.words if isinstance(self.error, NodeError) else printable(repr(self.error))
        if isinstance(self.error, BadRequest) and self.error.failures:
            first = self.error.failures[0]
            words += f" (item {first.index}: {printable(first.message, 80)})"
        return f"{self.state.value}: {cut(words)}"

    def item(self, index: int) -> AtNode:
        """Return what became of an item."""
        return self.by_index.get(index, self.rest)

    def answered(self, value: Publication | None, provenance: Provenance) -> None:
        """Note an answer that is a success."""
        self.provenance = provenance
        self._is(Sending.BROADCAST if value is Publication.BROADCAST else Sending.ACCEPTED)

    def refused_or_failed(self, error: BaseException, items: int) -> None:
        """Note an error, of a publish of so many items."""
        self.error = error
        if isinstance(error, AlreadyKnown):
            self._is(Sending.ALREADY_KNOWN)
        elif isinstance(error, BadRequest) and error.failures:
            self._some_refused(error, items)
        else:
            self._is(Sending.REFUSED if isinstance(error, SemanticError) else Sending.FAILED)

    def _some_refused(self, error: BadRequest, items: int) -> None:
        # A node that names an item twice has refused it if it has once.
        found: dict[int, AtNode] = {}
        for failure in error.failures:
            if 0 <= failure.index < items and found.get(failure.index) is not AtNode.REFUSED:
                found[failure.index] = AtNode.KNOWN if failure.known else AtNode.REFUSED
        known = sum(item is AtNode.KNOWN for item in found.values())
        refused = len(found) - known
        taken = error.rest_taken and len(found) < items
        if not found:
            self._is(Sending.REFUSED)
        elif known == items:
            self._is(Sending.ALREADY_KNOWN)
        elif taken and not refused:
            self._is(Sending.ACCEPTED)
        elif taken or known:
            self._is(Sending.PARTLY)
        else:
            self._is(Sending.REFUSED)
        self.by_index = found
        if found:
            self.rest = AtNode.TAKEN if taken else AtNode.FAILED

    def _is(self, state: Sending) -> None:
        self.state = state
        self.rest = _WHOLE[state]
