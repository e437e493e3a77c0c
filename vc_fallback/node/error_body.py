"""What a node says went wrong: error bodies and in-band error events, which every client words in its own way."""

from contextlib import suppress

from pydantic_core import from_json

from vc_fallback.base.redact import printable
from vc_fallback.node.scalars import uint64

_READ_LIMIT = 64 * 2**10
_STATUS_KEYS = ("status_code", "statusCode", "code")  # `code` is an HTTP status, a number of gRPC, or a word


def read_error(text: str) -> tuple[int | None, str]:
    """The HTTP status a node gives, if it gives one, and its words, fit for one log line (see `printable`).

    Takes `{"code", "message"}` of the API definition, `statusCode` with `error` (Lodestar), `status_code` (Prysm), all
    of these nested under `error`, and plain text. Never raises: what cannot be read is shown as it is, cut short.
    """
    body: object = None
    if len(text) <= _READ_LIMIT:
        with suppress(ValueError):
            body = from_json(text)
    if not isinstance(body, dict):
        return None, printable(text)
    nested = body.get("error")
    levels = [body, nested] if isinstance(nested, dict) else [body]
    status = next((s for level in levels for key in _STATUS_KEYS if (s := _http_status(level.get(key)))), None)
    words = (level.get(key) for key in ("message", "error") for level in levels)
    return status, printable(next((word for word in words if isinstance(word, str) and word), text))


def _http_status(value: object) -> int | None:
    try:
        status = uint64(value)
    except ValueError:
        return None
    return status if 100 <= status <= 599 else None
