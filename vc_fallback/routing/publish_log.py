"""Logs what publishes came to where no exception says it to their callers (rule 8, cases 53, 55, 62)."""

import logging
from collections import Counter

from vc_fallback.base.types import NodeId
from vc_fallback.node.failures import ServerError
from vc_fallback.routing.broadcast_result import BroadcastResult, Outcome
from vc_fallback.routing.delivery import Delivery, Sending

logger = logging.getLogger(__name__)

_WORDS = {
    Outcome.BROADCAST: "sent on, and imported by no node",
    Outcome.UNCERTAIN: "nodes have it already, and none took it: whether it is whole there is not known",
}


class PublishLog:
    """Loud about number 1, 2, 4, 8, … in a row of a kind of publish, at a node or at all, quiet about the rest."""

    def __init__(self) -> None:
        self._in_a_row: Counter[tuple[str, NodeId | None]] = Counter()

    def settled(self, result: BroadcastResult) -> None:
        """Take a result in which nothing is pending any more."""
        outcome, best = result.outcome, result.best_outcome
        if outcome in _WORDS:
            self._warn(result.what, None, f"{_WORDS[outcome]}: {result.words}")
        elif outcome is Outcome.ACCEPTED:
            self._in_a_row.pop((result.what, None), None)
        elif best in (Outcome.ACCEPTED, *_WORDS):
            self._warn(result.what, None, f"no node took {len(result.missed)} of {result.items}: {result.words}")
        if best is Outcome.ACCEPTED:
            for delivery in result.deliveries.values():
                self._look(result.what, delivery)

    def forget(self, node_id: NodeId) -> None:
        """Forget a node that has left."""
        for key in [key for key in self._in_a_row if key[1] == node_id]:
            del self._in_a_row[key]

    def _look(self, what: str, delivery: Delivery) -> None:
        """What a node says against what another took is no failure of the publish, and may be one of ours (case 55)."""
        if delivery.state in (Sending.REFUSED, Sending.PARTLY) or isinstance(delivery.error, ServerError):
            self._warn(what, delivery.node_id, f"{delivery.node_id}: {delivery.words}; another node took it")
        elif delivery.state is not Sending.FAILED:
            self._in_a_row.pop((what, delivery.node_id), None)

    def _warn(self, what: str, node_id: NodeId | None, words: str) -> None:
        self._in_a_row[what, node_id] += 1
        count = self._in_a_row[what, node_id]
        level = logging.WARNING if count & (count - 1) == 0 else logging.DEBUG
        logger.log(level, "%s: %s%s", what, words, f" ({count} in a row)" if count > 1 else "")
