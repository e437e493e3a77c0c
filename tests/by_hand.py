"""A clock that is set by hand; it needs no event loop."""

from vc_fallback.base.clock import Clock


class ByHand(Clock):
    """Loop time and Unix time are one, in seconds."""

    def __init__(self, time: float = 0.0) -> None:
        self._wall = None
        self._offset = 0.0
        self.time = time

    def now(self) -> float:
        return self.time

    def unix(self, at: float | None = None) -> float:
        return self.time if at is None else at
