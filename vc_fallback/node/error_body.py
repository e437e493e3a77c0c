"""What a node says went wrong: error bodies and in-band error events, which every client words in its own way."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from pydantic_core import from_json

from vc_fallback.base.redact import printable
from vc_fallback.node.scalars import uint64

_READ_LIMIT = 2**20  # Q15: a list of failures may be as long as what was sent
_SHOWN_LIMIT = 4096
_STATUS_KEYS = ("status_code", "statusCode", "code")  # `code` is an HTTP status, a number of gRPC, or a word
_WORD_KEYS = ("message", "error")
_OF_PROXIES = {"404 page not found", "no Route matched with those values"}
"""Of Traefik, whose words those of every program in Go are, Prysm and Caplin among them; of Kong."""
_DETAILS = 4
_PAGE_TITLE = re.compile(r"<(?:title|h1)[^>]{0,200}>([^<]{1,300})<", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """An error body, read. Its texts are the node's own: not redacted, and as long as it made them.

    :param status: the HTTP status it gives, if it gives one.
    :param texts: what it says, the most telling first: details, then the message.
    :param failures: its `failures` as they are, `None` where it has no such list.
    :param foreign: whether no beacon node's API words it so: a page of a proxy, or the answer of an HTTP framework.
    """

    status: int | None
    texts: tuple[str, ...]
    failures: list[object] | None = None
    foreign: bool = False

    @property
    def message(self) -> str:
        """What it says, in one text."""
        return self.texts[-1]


def parse_error(body: bytes) -> ErrorBody:
    """Read the body of an answer that is no success; never raises, and what cannot be read is its text."""
    value: object = None
    if len(body) <= _READ_LIMIT:
        with suppress(ValueError):
            value = from_json(body)
    if isinstance(value, str) and value:
        return ErrorBody(None, (value,))
    if isinstance(value, list) and (complaints := "; ".join(_complaints(value))):
        return ErrorBody(None, (complaints,))
    if not isinstance(value, dict):
        return _text(body)
    nested = value.get("error")
    levels = [value, nested] if isinstance(nested, dict) else [value]
    status = next((s for level in levels for key in _STATUS_KEYS if (s := _http_status(level.get(key)))), None)
    words = (level.get(key) for key in _WORD_KEYS for level in levels)
    message = next((word for word in words if isinstance(word, str) and word), None)
    failures = value.get("failures")
    if message is None:
        title = value.get("title")  # Javalin's (Teku) and RFC 9457's
        if isinstance(title, str) and title:
            return ErrorBody(_http_status(value.get("status")), (title,), foreign=True)
        message = _text(body).message
    details = value.get("stacktraces")  # Nimbus: what was wrong with it
    told = details[:_DETAILS] if isinstance(details, list) else []
    texts = (*(text for text in told if isinstance(text, str) and text), message)
    return ErrorBody(status, texts, failures if isinstance(failures, list) else None, foreign=message in _OF_PROXIES)


def read_error(text: str) -> tuple[int | None, str]:
    """The HTTP status a node gives, if it gives one, and its words, fit for one log line (see `printable`).

    Takes `{"code", "message"}` of the API definition, `statusCode` with `error` (Lodestar), `status_code` (Prysm), all
    of these nested under `error`, and plain text. Never raises: what cannot be read is shown as it is, cut short.
    """
    found = parse_error(text.encode("utf-8", "replace"))
    return found.status, printable(found.message)


def _text(body: bytes) -> ErrorBody:
    text = body[:_SHOWN_LIMIT].decode("utf-8", "replace").removeprefix("\N{BYTE ORDER MARK}").strip()
    if not text.startswith("<"):
        # Where it is cut, half a secret may be left of a word: the word goes.
        shown = text if len(body) <= _SHOWN_LIMIT else text.rpartition(" ")[0] + " …"
        return ErrorBody(None, (shown,), foreign=text in _OF_PROXIES)
    title = _PAGE_TITLE.search(text)
    return ErrorBody(None, (title[1].strip() if title else text,), foreign=True)


def _complaints(value: list[object]) -> Iterator[str]:
    """Read what Lodestar 1.5 says of a request that its schema does not fit: a bare list."""
    for complaint in value[:_DETAILS]:
        if isinstance(complaint, dict) and isinstance(words := complaint.get("message"), str):
            place = complaint.get("dataPath")
            yield f"{place} {words}".strip() if isinstance(place, str) else words


def _http_status(value: object) -> int | None:
    try:
        status = uint64(value)
    except ValueError:
        return None
    return status if 100 <= status <= 599 else None
