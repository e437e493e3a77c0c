"""What a transport's error means for a call (httpx's types in, the tree of failures out)."""

import httpx

from vc_fallback.base.errors import NodeError
from vc_fallback.base.redact import Mask, printable
from vc_fallback.base.types import NodeId
from vc_fallback.node import failures
from vc_fallback.wire import errors as wire

_MEANINGS: tuple[tuple[type[httpx.TransportError], type[NodeError]], ...] = (
    (wire.ClientClosed, failures.Closed),
    (wire.TLSError, failures.InsecureConnection),
    (httpx.ConnectTimeout, failures.ConnectTimeout),
    (httpx.PoolTimeout, failures.Crowded),
    (httpx.TimeoutException, failures.RequestTimeout),
    (httpx.ConnectError, failures.ConnectError),
    (wire.LimitExceeded, failures.AnswerTooLarge),
    (wire.Truncated, failures.ConnectionLost),
    (wire.StaleConnection, failures.ConnectionLost),
    (httpx.NetworkError, failures.ConnectionLost),
    (httpx.ProtocolError, failures.Malformed),
    (httpx.ProxyError, failures.ConnectError),
)
"""The first that fits holds, so a subclass stands before its parent."""


def transport_failure(node_id: NodeId, endpoint: str, error: httpx.RequestError, mask: Mask) -> NodeError:
    """Return the failure that a transport's error is, its text without secrets (rule 11)."""
    if isinstance(error, httpx.DecodingError):
        meaning: type[NodeError] = failures.Malformed
    else:
        meaning = next((ours for theirs, ours in _MEANINGS if isinstance(error, theirs)), failures.Unreachable)
    return meaning(node_id, endpoint, mask(describe(error)))


def describe(error: Exception) -> str:
    """Put a transport error into one printable line without secrets."""
    text = printable(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
