"""The error tree. What happened on the wire stays in httpx's types; these are the words of this package."""

import re
from collections.abc import Sequence

from vc_fallback.base.redact import printable
from vc_fallback.base.types import NodeId


class FallbackError(Exception):
    """Root of every error that this package raises on purpose."""


class ConfigurationError(FallbackError):
    """A setting that cannot be used. `field` names it, as a dotted path such as `candidates[1].url`."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,40}")


def field_path(location: Sequence[int | str]) -> str:
    """Write the place of a setting as a dotted path: `candidates[1].url`.

    A key that is no name is written as `<key>`: it may be anything, a URL with its password included.
    """
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if _KEY.fullmatch(part) else "<key>"
            text += f".{name}" if text else name
    return text


class NodeError(FallbackError):
    """A beacon node did not give a usable answer. `endpoint` is a template, never a URL with its values.

    `problem` may hold a node's own words or a transport's: it is redacted and cut here, once for all (rule 11).
    """

    def __init__(self, node_id: NodeId, endpoint: str, problem: str) -> None:
        problem = printable(problem)
        super().__init__(f"{node_id}: {endpoint}: {problem}")
        self.node_id = node_id
        self.endpoint = endpoint
        self.problem = problem


class NodeUnreachable(NodeError):
    """No answer: the connection could not be made, broke, or time ran out."""


class NodeTimeout(NodeUnreachable):
    """No answer in time."""


class MalformedAnswer(NodeError):
    """An answer that does not follow the Beacon API."""


class StatusError(NodeError):
    """An answer whose HTTP status is not a success; `retry_after` in seconds where it was given."""

    def __init__(
        self, node_id: NodeId, endpoint: str, status: int, message: str, retry_after: float | None = None
    ) -> None:
        super().__init__(node_id, endpoint, f"{status} {message}")
        self.status = status
        self.message = printable(message)
        self.retry_after = retry_after


class SubscriptionClosed(FallbackError):
    """The subscription was closed; `reason` says by whom and why (C8)."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
