"""How long a node's answers take: the latency that nine of ten stay within (N3, Q2)."""

from bisect import bisect_left, insort
from collections import deque

QUANTILE_TENTHS = 9
"""p90: of ten answers nine are as fast or faster (N3)."""

FEWEST = 3
"""Answers before anything is said: of fewer no one can tell an outlier from the rule."""

MOST = 32
"""Answers kept: one for each slot of an epoch, which is what node/syncing and attestation data come to."""


class LatencyDigest:
    """The latest answers of one kind from one node, at most 32 and none older than `memory`.

    One digest holds one kind: node/syncing is answered from memory within a millisecond by a node that needs seconds
    for attestation data, so together the one would hide the other. A node is slow where either kind is (N3); the delay
    before the next node is asked as well (Q2) is that of the digest of attestation data alone.

    A wait that was given up belongs here too, with the time it lasted: the answer would have taken longer still.

    :param memory: seconds after which an answer is forgotten; an epoch of 32 slots by default, so that a node that
        nobody asks any more is not judged for ever by what it was.
    """

    __slots__ = ("_answers", "_sorted", "memory")

    def __init__(self, memory: float = 384.0) -> None:
        self.memory = memory
        self._answers: deque[tuple[float, float]] = deque()
        self._sorted: list[float] = []
        """Their latencies: kept in order, as every answer is followed by the question for the p90."""

    def __len__(self) -> int:
        return len(self._answers)

    def add(self, latency: float, now: float) -> None:
        """Take an answer that took `latency` seconds, or a wait that was given up after so many."""
        if len(self._answers) >= MOST:
            self._drop()
        self._answers.append((now, latency))
        insort(self._sorted, latency)

    def p90(self, now: float) -> float | None:
        """Return the latency in seconds that nine of ten answers stay within; `None` while there are fewer than three.

        The nearest rank, but of fewer than ten never the slowest: one outlier decides nothing.
        """
        begins = now - self.memory
        while self._answers and self._answers[0][0] <= begins:
            self._drop()
        count = len(self._answers)
        if count < FEWEST:
            return None
        rank = -(-count * QUANTILE_TENTHS // 10)
        return self._sorted[min(rank, count - 1) - 1]

    def clear(self) -> None:
        """Forget all."""
        self._answers.clear()
        self._sorted.clear()

    def _drop(self) -> None:
        _, latency = self._answers.popleft()
        del self._sorted[bisect_left(self._sorted, latency)]
