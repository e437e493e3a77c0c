"""The words of real clients, as one table: what a text means that a status does not say.

Every row has its source; a text that fits no row keeps the meaning of its status.
"""

import re
from enum import Enum


class Meaning(Enum):
    """What a text says of the request."""

    ALREADY_KNOWN = "already known"
    OPTIMISTIC = "optimistic"
    NOT_READY = "not ready"
    NOT_FOUND = "not found"
    REFUSED = "refused"
    """The node is well and will not, whatever the status says."""


_TEXTS: tuple[tuple[str, Meaning], ...] = (
    (r"ALREADY_KNOWN|PublishError\.Duplicate|PriorAttestationKnown", Meaning.ALREADY_KNOWN),
    (r"HeadBlockNotFullyVerified|execution_status: Optimistic", Meaning.OPTIMISTIC),
)
_NO_ROUTE = r"Route (GET|POST):\S+ not found"

_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), meaning) for pattern, meaning in _TEXTS)
_COMPILED_NO_ROUTE = re.compile(_NO_ROUTE, re.IGNORECASE)


def meaning(words: str) -> Meaning | None:
    """Return what a text means, `None` where no row fits it."""
    return next((meant for pattern, meant in _COMPILED if pattern.search(words)), None)


def no_such_route(text: str) -> bool:
    """Whether the text of a 404 says that there is no such endpoint."""
    return _COMPILED_NO_ROUTE.search(text) is not None
