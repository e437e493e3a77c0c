"""What an answer that is no success means: by its status, its route, and the words of the client that wrote it."""

from collections.abc import Sequence
from contextlib import suppress

from vc_fallback.base.errors import NodeError
from vc_fallback.base.redact import Mask, printable
from vc_fallback.base.types import NodeId
from vc_fallback.node import failures
from vc_fallback.node.error_body import ErrorBody, parse_error
from vc_fallback.node.failures import ItemFailure
from vc_fallback.node.meanings import is_known, meaning, meaning_of
from vc_fallback.node.retry_after import parse_retry_after
from vc_fallback.node.routes import Route
from vc_fallback.node.scalars import uint64
from vc_fallback.node.wording import Meaning
from vc_fallback.wire.http import Response

_MOST_FAILURES = 65_536
_MOST_TEXTS = 256
"""How many different texts of items are shown; a text costs 70 µs to make fit for a log."""
_MOST_REASONS = 16
_SHOWN = 1024
_LONGEST_NOTE = 1024
"""A success that says something else is shorter than this many bytes."""

_BY_STATUS: dict[int, type[failures.StatusError]] = {
    204: failures.NotReady,  # Teku, before it has a chain: `ChainDataUnavailableException`
    400: failures.BadRequest,
    401: failures.Unauthorized,
    402: failures.Unauthorized,
    403: failures.Unauthorized,
    404: failures.NotFound,
    405: failures.UnsupportedEndpoint,
    406: failures.NotAcceptable,
    407: failures.Unauthorized,
    408: failures.NotReady,
    410: failures.NotFound,
    413: failures.PayloadTooLarge,
    415: failures.UnsupportedMediaType,
    429: failures.RateLimited,
    501: failures.UnsupportedEndpoint,
    503: failures.NotReady,
}
_PLAIN = (401, 402, 403, 405, 406, 407, 413, 415, 429, 501)
"""Statuses that say all there is to say; of the others words may say more."""
_BY_MEANING: dict[Meaning, type[failures.StatusError]] = {
    Meaning.ALREADY_KNOWN: failures.AlreadyKnown,
    Meaning.OPTIMISTIC: failures.Optimistic,
    Meaning.NOT_READY: failures.NotReady,
    Meaning.UNKNOWN_BLOCK: failures.UnknownBlock,
    Meaning.FUTURE_SLOT: failures.FutureSlot,
    Meaning.NO_ENDPOINT: failures.UnsupportedEndpoint,
    Meaning.NO_SUCH_ANSWER: failures.NotAcceptable,
    Meaning.NO_SUCH_REQUEST: failures.UnsupportedMediaType,
    Meaning.TOO_LARGE: failures.PayloadTooLarge,
    Meaning.NOT_FOUND: failures.NotFound,
    Meaning.REFUSED: failures.BadRequest,
}


def failure(
    node_id: NodeId, route: Route, response: Response, unix: float, mask: Mask, items: int, *, proven: bool = False
) -> NodeError:
    """Return the failure that an answer is.

    :param unix: Unix time now in seconds, for a `Retry-After` that is a date.
    :param items: how many items the request had, 0 where it was no list.
    :param proven: whether the node has answered on this route before.
    """
    status = response.status
    body = parse_error(response.body)
    # The one detail that Nimbus gives of its message; a client in debug mode lists the lines of a stack.
    problem = mask(_cut(f"{body.message}: {body.texts[0]}" if len(body.texts) == 2 else body.message))
    if items and body.failures and status == 400:
        return _some_refused(node_id, route, body.failures, problem, mask, items)
    kind = _absent(route, body, proven) if status == 404 else _kind(status, body)
    if issubclass(kind, failures.RetryLater):
        pause = parse_retry_after(response.headers.get("retry-after"), unix)
        return kind(node_id, route.template, problem, status=status, retry_after=pause)
    return kind(node_id, route.template, problem, status=status)


def says_known(response: Response) -> bool:
    """Whether a success says that nothing was to do: Lighthouse answers 202 to a block that it knows (case 53)."""
    return 0 < len(response.body) <= _LONGEST_NOTE and any(map(is_known, parse_error(response.body).texts))


def _kind(status: int, body: ErrorBody) -> type[failures.StatusError]:
    if status not in _PLAIN:
        meant = meaning_of(body.texts)
        if meant is not None:
            return _BY_MEANING[meant]
    kind = _BY_STATUS.get(status)
    if kind is not None:
        return kind
    if status >= 500:
        return failures.ServerError
    return failures.SemanticError if 400 <= status < 500 else failures.StatusError


def _absent(route: Route, body: ErrorBody, proven: bool) -> type[failures.StatusError]:
    """Tell a route that is not there from a thing that is not there (Q13)."""
    proven = proven or route.everywhere
    if body.foreign:
        # A proxy that has lost its node for a moment says the same, so what was there before is not written off.
        return failures.NotFound if proven else failures.UnsupportedEndpoint
    meant = meaning_of(body.texts)
    if meant in (Meaning.NO_ENDPOINT, Meaning.UNKNOWN_BLOCK):
        return _BY_MEANING[meant]
    if route.absent:
        return failures.NotFound
    if meant is not None:
        return _BY_MEANING[meant]
    return failures.NotFound if proven else failures.UnsupportedEndpoint


def _some_refused(
    node_id: NodeId, route: Route, listed: Sequence[object], problem: str, mask: Mask, items: int
) -> NodeError:
    """Name what became of a list of which the node refuses items (Q12)."""
    found, texts = _items(listed, mask)
    indices = {item.index for item in found}
    whole = len(found) == len(listed) and max(indices, default=items) < items
    if whole and len(indices) == items:
        if all(item.known for item in found):
            return failures.AlreadyKnown(node_id, route.template, problem, status=400)
        meanings = {meaning(text) for text in texts} if len(texts) <= _MOST_REASONS else {None}
        meant = meanings.pop()
        if not meanings and meant is not None and meant is not Meaning.REFUSED:
            return _BY_MEANING[meant](node_id, route.template, f"{problem}: {found[0].message}", status=400)
    return failures.BadRequest(node_id, route.template, problem, status=400, failures=found, rest_taken=whole)


def _items(listed: Sequence[object], mask: Mask) -> tuple[tuple[ItemFailure, ...], set[str]]:
    """Read `failures`; return those that can be read, and their different texts as the node gave them."""
    found = []
    read: dict[str, tuple[str, bool]] = {}
    for item in listed[:_MOST_FAILURES]:
        if not isinstance(item, dict):
            continue
        with suppress(ValueError):
            index = uint64(item.get("index"))
            text = item.get("message")
            if not isinstance(text, str):
                text = ""
            if text not in read:
                shown = printable(mask(_cut(text))) if len(read) < _MOST_TEXTS else "…"
                read[text] = (shown, is_known(text))
            found.append(ItemFailure(index, *read[text]))
    return tuple(found), set(read)


def _cut(text: str) -> str:
    # Half a secret may not look like one: the word that is cut goes.
    return text if len(text) <= _SHOWN else text[:_SHOWN].rpartition(" ")[0] + " …"
