"""When a head stream connects again: a wait after every end, longer each time until a current head comes (H4)."""

from collections.abc import Callable

import anyio

from vc_fallback.base.backoff import Backoff, BackoffPolicy
from vc_fallback.base.signals import StreamReason
from vc_fallback.heads.connection import HeadConnection

WORTH_A_CHECK = frozenset({StreamReason.CONNECT_FAILED, StreamReason.BROKEN, StreamReason.HEAD_SILENCE})
"""Ends after which a good check of the node ends the wait at once (H4). A node that refuses or ends streams answers
checks well all the time, and would be asked without any backoff."""


class Retry:
    """The waits of one head stream."""

    def __init__(self, policy: BackoffPolicy) -> None:
        self._backoff = Backoff(policy)
        self._nudged: Callable[[], None] | None = None
        self._gave_current = False

    @property
    def failures(self) -> int:
        """How many ends there were in a row."""
        return self._backoff.failures

    def ended(self, end: HeadConnection, policy: BackoffPolicy, asked_for: float = 0.0) -> float:
        """Count the end of a connection and return the wait in seconds; a node's `Retry-After` is obeyed.

        :param asked_for: seconds for which the node has asked to be left alone, in whatever answer (case 24).
        """
        self._gave_current = end.current_head
        self._backoff.policy = policy
        return self._backoff.failed(at_least=max(end.retry_after or 0.0, asked_for))

    async def wait(self, end: HeadConnection, wait: float, *, nudged: bool = True) -> None:
        """Wait, or until a good check of a node that was out of reach.

        :param nudged: whether such a check ends the wait; not where the node has asked to be left alone.
        """
        with anyio.CancelScope() as scope:
            worth = nudged and end.reason in WORTH_A_CHECK and end.retry_after is None
            self._nudged = scope.cancel if worth else None
            await anyio.sleep(wait)
        self._nudged = None

    def checked_well(self) -> None:
        """Take a good check of the node."""
        if self._nudged is not None:
            self._nudged()

    def current_head(self, connection: HeadConnection, *, again: bool) -> None:
        """Take a current head: the failures in a row are over.

        A node may say its head to every new connection and end it, so the same head right again is no recovery.

        :param again: it is the block that the stream announced last.
        """
        if not connection.recovered and not (again and self._gave_current):
            connection.recovered = True
            self._backoff.reset()
        connection.current_head = True
