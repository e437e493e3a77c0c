"""How many errors a node made lately, where errors that overlap in time are one (N3)."""

from collections import deque


class ErrorWindow:
    """Counts errors of the last `window` seconds, up to `limit`: more are not told apart and not kept.

    Of errors that overlap in time only one counts: a node that stumbles once while thirty requests are under way
    stumbled once. What counts is the largest number of errors of which no two overlap; an error that begins while one
    that counts was under way does not count, and does not make that one longer either.

    :param limit: errors that are too many, 5 by default (N3).
    :param window: seconds, 60 by default (N3).
    """

    __slots__ = ("_ends", "limit", "window")

    def __init__(self, limit: int = 5, window: float = 60.0) -> None:
        self.limit = limit
        self.window = window
        self._ends: deque[float] = deque(maxlen=limit)

    def use(self, limit: int, window: float) -> None:
        """Take other limits; what is counted stays."""
        if limit != self.limit:
            self._ends = deque(self._ends, maxlen=limit)
        self.limit, self.window = limit, window

    def add(self, started: float, ended: float) -> bool:
        """Take an error of a request; return whether it counts.

        :param started: loop time at which the request was begun.
        :param ended: loop time at which it failed; errors are given in the order of their ends.
        """
        if self._ends and started <= self._ends[-1]:
            return False
        self._ends.append(ended)
        return True

    def count(self, now: float) -> int:
        """Return how many count now, at most `limit`."""
        begins = now - self.window
        while self._ends and self._ends[0] <= begins:
            self._ends.popleft()
        return len(self._ends)

    def exceeded(self, now: float) -> bool:
        """Whether there are too many now."""
        return self.count(now) >= self.limit

    def relents(self, now: float) -> float:
        """Return in how many seconds there are no longer too many if no more come; 0 where there are not."""
        return self._ends[0] + self.window - now if self.exceeded(now) else 0.0

    def clear(self) -> None:
        """Forget all."""
        self._ends.clear()
