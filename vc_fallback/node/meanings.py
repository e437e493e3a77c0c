"""What a node's text means, by the table of wordings."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from vc_fallback.node.wording import TABLE, Meaning


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table."""

    pattern: str
    meaning: Meaning
    client: str
    source: str


ROWS = tuple(
    Row(pattern, meant, client, source)
    for meant, clients in TABLE.items()
    for client, rows in clients.items()
    for pattern, source in rows.items()
)
"""All of them, in the order in which they are looked at."""

_LONGEST = 1024
"""Characters of a text that a row may fit; a longer one keeps the meaning of its status. It takes less than 1 ms."""
_LONGEST_OF_SEVERAL = 64 * 1024
_MOST_ERRORS = 256
_COMPILED = tuple((re.compile(row.pattern, re.DOTALL), row) for row in ROWS)
_KNOWN = tuple(pattern for pattern, row in _COMPILED if row.meaning is Meaning.ALREADY_KNOWN)
_SEVERAL = (
    (re.compile(r"Multiple errors on \w+\n(.+)", re.DOTALL), "\n"),  # Lodestar
    (re.compile(r"Invalid contribution and proofs: ;(.+)", re.DOTALL), ";"),  # Teku
)
_OF_THE_REQUEST = {
    Meaning.ALREADY_KNOWN,
    Meaning.UNKNOWN_BLOCK,
    Meaning.FUTURE_SLOT,
    Meaning.NOT_FOUND,
    Meaning.REFUSED,
}


def meaning_of(texts: Iterable[str]) -> Meaning | None:
    """Return what the first text means that means something, `None` where none does."""
    return next((found for text in texts if (found := meaning(text)) is not None), None)


def meaning(text: str) -> Meaning | None:
    """Return what a text means, `None` where no row fits it.

    A text may hold the errors of several items, without saying of which: it means what all of them mean; where that is
    not one and the same, but none of them is the node's fault, it is a refusal.
    """
    for pattern, separator in _SEVERAL:
        several = pattern.fullmatch(text)
        if several is not None and len(text) <= _LONGEST_OF_SEVERAL:
            return _of_several(set(several[1].split(separator)))
    row = fitting(text)
    return None if row is None else row.meaning


def is_known(text: str) -> bool:
    """Whether a text says that the node has this very thing already."""
    return len(text) <= _LONGEST and any(pattern.fullmatch(text) for pattern in _KNOWN)


def fitting(text: str) -> Row | None:
    """Return the first row that fits a text."""
    if len(text) > _LONGEST:
        return None
    return next((row for pattern, row in _COMPILED if (found := pattern.fullmatch(text)) and _ahead(found)), None)


def _ahead(found: re.Match[str]) -> bool:
    numbers = found.groupdict()
    return not numbers or int(numbers["asked"]) > int(numbers["present"])


def _of_several(texts: set[str]) -> Meaning | None:
    if len(texts) > _MOST_ERRORS:
        return None
    rows = [fitting(text) for text in texts]
    meanings = {None if row is None else row.meaning for row in rows}
    if len(meanings) == 1:
        return meanings.pop()
    return Meaning.REFUSED if meanings <= _OF_THE_REQUEST else None
