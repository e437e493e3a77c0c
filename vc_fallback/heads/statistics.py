"""Counts of one head stream over all its connections."""

from collections.abc import Iterable
from dataclasses import dataclass

from vc_fallback.heads.connection import HeadConnection


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """Counts of one head stream since it began; `failures` are those in a row."""

    opens: int = 0
    heads: int = 0
    malformed: int = 0
    oversized: int = 0
    comments: int = 0
    failures: int = 0

    def with_connections(self, connections: Iterable[HeadConnection | None], failures: int = 0) -> "StreamStatistics":
        """Return these counts and those of further connections together."""
        live = [connection for connection in connections if connection is not None]
        return StreamStatistics(
            opens=self.opens + sum(connection.open for connection in live),
            heads=self.heads + sum(connection.heads for connection in live),
            malformed=self.malformed + sum(connection.malformed for connection in live),
            oversized=self.oversized + sum(connection.oversized for connection in live),
            comments=self.comments + sum(connection.comments for connection in live),
            failures=failures,
        )
