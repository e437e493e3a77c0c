"""How often the backoff lets a node be asked (H4)."""

JITTER = 0.2
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
"""The beginning of a response that is an event stream."""


def most_opens(seconds: float, *, first: float = 1.0, cap: float = 16.0) -> int:
    """How many connections the backoff allows in so many seconds, with the shortest waits (H4)."""
    opens, passed, wait = 1, 0.0, first
    while (passed := passed + wait * (1 - JITTER)) < seconds:
        opens, wait = opens + 1, min(cap, 2 * wait)
    return opens


def assert_doubling(waits: list[float], *, first: float = 1.0, cap: float = 16.0) -> None:
    """Each wait is twice the one before, capped, give or take the jitter (H4)."""
    for number, wait in enumerate(waits):
        middle = min(cap, first * 2**number)
        assert middle * (1 - JITTER) <= wait <= middle * (1 + JITTER), f"wait {number + 1} was {wait}"
