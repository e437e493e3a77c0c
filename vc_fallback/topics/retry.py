"""When a stream of topics connects again: a wait after every end, longer each time until a connection stands (H4)."""

import logging
import math

from vc_fallback.base.backoff import Backoff
from vc_fallback.base.signals import StreamReason
from vc_fallback.base.types import NodeId
from vc_fallback.decide.topic_tiers import HEADERLESS, Lack
from vc_fallback.topics.connection import TopicConnection
from vc_fallback.topics.context import TopicContext

logger = logging.getLogger(__name__)

WORTH_A_CHECK = frozenset({StreamReason.CONNECT_FAILED, StreamReason.BROKEN})
"""Ends after which the node was out of reach: a sign of life ends the wait (H4)."""

_NO_REST = 1e-6


class TopicRetry:
    """The waits of one stream."""

    def __init__(self, node_id: NodeId, context: TopicContext) -> None:
        self.trouble: Lack | None = None
        """Why there is no connection; `None` where there is one, or nothing is known yet."""
        self.interrupted = False
        """Whether a connection has ended by itself: at the other end may be another node now (H15)."""
        self._node_id = node_id
        self._context = context
        self._backoff = Backoff(context.times().backoff)
        self._not_before = -math.inf
        self._nudged = False
        """Whether a sign of life ends the wait."""

    @property
    def failures(self) -> int:
        """How many ends there were in a row."""
        return self._backoff.failures

    def again(self, now: float) -> float:
        """Return before which moment nothing is to be opened, in loop time; a node that finds that it is asked too
        often is left alone by requests and streams alike (case 24)."""
        rest = self._context.cooldowns.asked_for(self._node_id, now)
        # What rounding leaves of a rest is none: a clock that stands still meanwhile would never end it.
        return max(self._not_before, now + rest if rest > _NO_REST else now)

    def nudge(self) -> bool:
        """Take a sign of life of the node; return whether that ends a wait."""
        if not self._nudged:
            return False
        self._nudged = False
        self._not_before = -math.inf
        return True

    def answered(self) -> None:
        """Take that the node has answered with a stream."""
        self.trouble = None

    def ended(self, connection: TopicConnection, *, listed: bool, lost: bool) -> None:
        """Back off after an end that was no refusal of topics.

        :param listed: whether the node is still in the list.
        :param lost: whether there is no other connection.
        """
        context, node_id, now = self._context, self._node_id, self._context.clock.now()
        if connection.opened is not None:
            stood = now - connection.opened
            # Some nodes say something to every new connection and end it, so events right at its beginning are no sign.
            if stood >= HEADERLESS * context.slot or (connection.events and stood >= context.slot):
                self._backoff.reset()
        asked_for = 0.0
        if listed:
            asked_for = context.cooldowns.asked_for(node_id, now)
            if connection.status == 429:
                after = connection.retry_after
                rest = context.config.requests.cooldown if after is None else after
                context.cooldowns.cool(node_id, now, rest, asked=True)
        self._backoff.policy = context.times().backoff
        wait = self._backoff.failed(at_least=max(connection.retry_after or 0.0, asked_for))
        self._not_before = now + wait
        self._nudged = connection.reason in WORTH_A_CHECK and connection.retry_after is None and not asked_for
        if lost:
            self.interrupted = True
            self.trouble = Lack(f"{connection.reason} {connection.detail}".rstrip(), refused=False, at=now)
        self._log(connection, wait)

    def _log(self, connection: TopicConnection, wait: float) -> None:
        """Log number 1, 2, 4, 8, … in a row as a warning (H9)."""
        loud = self._backoff.loud and connection.reason is not StreamReason.ENDED
        logger.log(
            logging.WARNING if loud else logging.DEBUG,
            "%s: stream of %s: %s, number %d in a row, again in %.1f s",
            self._node_id,
            ", ".join(connection.topics),
            f"{connection.reason} {connection.detail}".rstrip(),
            self._backoff.failures,
            wait,
        )
