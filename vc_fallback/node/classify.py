"""What an answer that is no success means: by its status, its route, and the words of the client that wrote it."""

from contextlib import suppress

from pydantic_core import from_json

from vc_fallback.base.errors import NodeError
from vc_fallback.base.redact import Mask, printable
from vc_fallback.base.types import NodeId
from vc_fallback.node import failures, wording
from vc_fallback.node.error_body import read_error
from vc_fallback.node.failures import ItemFailure
from vc_fallback.node.retry_after import parse_retry_after
from vc_fallback.node.routes import Route
from vc_fallback.node.scalars import uint64
from vc_fallback.wire.http import Response

_READ_LIMIT = 4096
_MOST_FAILURES = 65_536

_BY_STATUS: dict[int, type[failures.StatusError]] = {
    400: failures.BadRequest,
    401: failures.Unauthorized,
    402: failures.Unauthorized,
    403: failures.Unauthorized,
    404: failures.NotFound,
    405: failures.UnsupportedEndpoint,
    406: failures.NotAcceptable,
    407: failures.Unauthorized,
    413: failures.PayloadTooLarge,
    415: failures.UnsupportedMediaType,
    429: failures.RateLimited,
    501: failures.UnsupportedEndpoint,
    503: failures.NotReady,
}
_BY_WORDS: dict[wording.Meaning, type[failures.StatusError]] = {
    wording.Meaning.ALREADY_KNOWN: failures.AlreadyKnown,
    wording.Meaning.OPTIMISTIC: failures.Optimistic,
    wording.Meaning.NOT_READY: failures.NotReady,
    wording.Meaning.NOT_FOUND: failures.NotFound,
    wording.Meaning.REFUSED: failures.SemanticError,
}


def failure(node_id: NodeId, route: Route, response: Response, unix: float, mask: Mask, items: int) -> NodeError:
    """Return the failure that an answer is.

    :param unix: Unix time now in seconds, for a `Retry-After` that is a date.
    :param items: how many items the request had, 0 where it was no list.
    """
    status = response.status
    text = mask(response.body[:_READ_LIMIT].decode("utf-8", "replace"))
    words = read_error(text)[1]
    kind = _kind(route, status, text, words)
    if kind in (failures.RateLimited, failures.NotReady, failures.Optimistic):
        pause = parse_retry_after(response.headers.get("retry-after"), unix)
        return kind(node_id, route.template, words, status=status, retry_after=pause)
    if kind is failures.BadRequest:
        found = _item_failures(response.body, mask) if items else ()
        if found and len({item.index for item in found if item.known}) == items:
            return failures.AlreadyKnown(node_id, route.template, words, status=status)
        return failures.BadRequest(node_id, route.template, words, status=status, failures=found)
    return kind(node_id, route.template, words, status=status)


def _kind(route: Route, status: int, text: str, words: str) -> type[failures.StatusError]:
    if status == 404:
        return failures.UnsupportedEndpoint if not route.absent or wording.no_such_route(text) else failures.NotFound
    if status in (400, 500, 503):
        meaning = wording.meaning(words)
        if meaning is not None:
            return _BY_WORDS[meaning]
    kind = _BY_STATUS.get(status)
    if kind is not None:
        return kind
    if status >= 500:
        return failures.ServerError
    return failures.SemanticError if 400 <= status < 500 else failures.StatusError


def _item_failures(body: bytes, mask: Mask) -> tuple[ItemFailure, ...]:
    answer: object = None
    with suppress(ValueError):
        answer = from_json(body)
    listed = answer.get("failures") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return ()
    found = []
    for item in listed[:_MOST_FAILURES]:
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            message = item.get("message", "")
            text = printable(mask(message)) if isinstance(message, str) else ""
            found.append(
                ItemFailure(uint64(item["index"]), text, wording.meaning(text) is wording.Meaning.ALREADY_KNOWN)
            )
    return tuple(found)
