"""Waiting longer after each failure in a row (H4)."""

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """First wait, factor, cap in seconds, and jitter as a part of the wait: 1, 2, 4, 8, 16, 16 … ± 20 % (H4)."""

    first: float = 1.0
    factor: float = 2.0
    cap: float = 16.0
    jitter: float = 0.2


class Backoff:
    """The waits of one thing that fails and is tried again; `failures` counts those in a row."""

    __slots__ = ("_random", "failures", "policy")

    def __init__(self, policy: BackoffPolicy, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self.policy = policy
        self.failures = 0
        self._random = uniform

    def failed(self, at_least: float = 0.0) -> float:
        """Count a failure and return how long to wait; never less than `at_least` (a node's `Retry-After`)."""
        policy = self.policy
        # The exponent is bounded because a float overflows after a day of failures.
        wait = min(policy.cap, policy.first * policy.factor ** min(self.failures, 64))
        self.failures += 1
        wait *= 1 + self._random(-policy.jitter, policy.jitter)
        return max(wait, at_least)

    def reset(self) -> None:
        """Forget the failures: the thing works again."""
        self.failures = 0

    @property
    def loud(self) -> bool:
        """Whether this failure deserves a warning: number 1, 2, 4, 8, … in a row (H9)."""
        return self.failures > 0 and self.failures & (self.failures - 1) == 0
