"""The error tree's roots. What happened on the wire stays in httpx's types; these are the words of this package.

What a beacon node's answer means is told apart in `vc_fallback.node.failures`, all of it under `NodeError`.
"""

import re
from collections.abc import Sequence
from typing import ClassVar

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
    """A beacon node did not give a usable answer.

    `endpoint` is a template, never a URL with its values; `status` is the HTTP status, `None` where there was none.
    `problem` may hold a node's own words or a transport's: it is redacted and cut here, once for all (rule 11).
    """

    blames_node: ClassVar[bool] = True
    """Whether it says that the node itself is not able, which is what health counts (rule 10)."""

    shows_status: ClassVar[bool] = False
    """Whether the status is part of what went wrong."""

    def __init__(self, node_id: NodeId, endpoint: str, problem: str, *, status: int | None = None) -> None:
        problem = printable(problem)
        self.words = f"{status} {problem}".strip() if self.shows_status and status is not None else problem
        """What went wrong in one line, without node and endpoint."""
        super().__init__(f"{node_id}: {endpoint}: {self.words}")
        self.node_id = node_id
        self.endpoint = endpoint
        self.problem = problem
        self.status = status


class SubscriptionClosed(FallbackError):
    """The subscription was closed; `reason` says by whom and why (C8)."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
