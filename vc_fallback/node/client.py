"""One beacon node in the words of the Beacon API."""

import json
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import anyio
import httpx

from vc_fallback.base.errors import MalformedAnswer, NodeTimeout, NodeUnreachable, StatusError
from vc_fallback.base.redact import Mask, printable
from vc_fallback.base.types import NodeId
from vc_fallback.chain import ChainIdentity
from vc_fallback.node.error_body import read_error
from vc_fallback.node.models import (
    JSON,
    HeadHeader,
    Syncing,
    chain_identity,
    parse_genesis,
    parse_header,
    parse_syncing,
)
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.http import Response, StreamSink

T = TypeVar("T")

LONGEST_RETRY_AFTER = 3600.0
"""A node that asks for a longer pause than this many seconds is asked again after it all the same (rule 6)."""


class BeaconNode:
    """Asks one node. Every call takes its own `timeout` in seconds and raises only :exc:`~vc_fallback.NodeError`."""

    def __init__(
        self,
        node_id: NodeId,
        http: HTTPClient,
        *,
        connect_timeout: float,
        unix: Callable[[], float],
        mask: Mask = Mask(),  # noqa: B008 - it has no state
    ) -> None:
        self.node_id = node_id
        self.http = http
        self.connect_timeout = connect_timeout
        self.mask = mask
        """Takes the node's secrets out of what it says itself (rule 11)."""
        self._unix = unix

    async def identity(self, timeout: float) -> ChainIdentity:
        """Ask for genesis and configuration, and put the node's chain identity together (I1).

        :raises NodeError: when the node cannot be reached, refuses, or answers something else.
        """
        path = "/eth/v1/beacon/genesis"
        genesis = await self._get(path, timeout, lambda answer: parse_genesis(answer["data"]))
        return await self._get(
            "/eth/v1/config/spec", timeout, lambda answer: chain_identity(genesis, _object(answer["data"]))
        )

    async def version(self, timeout: float) -> str:
        """Ask for the node's version string.

        :raises NodeError: when the node cannot be reached, refuses, or answers something else.
        """
        return await self._get(
            "/eth/v1/node/version", timeout, lambda answer: printable(self.mask(str(answer["data"]["version"])))
        )

    async def syncing(self, timeout: float) -> Syncing:
        """Ask how far the node is.

        :raises NodeError: when the node cannot be reached, refuses, or answers something else.
        """
        return await self._get("/eth/v1/node/syncing", timeout, lambda answer: parse_syncing(_object(answer["data"])))

    async def head(self, timeout: float) -> HeadHeader:
        """Ask for the header of the node's head.

        :raises NodeError: when the node cannot be reached, refuses, or answers something else.
        """
        return await self._get("/eth/v1/beacon/headers/head", timeout, parse_header)

    async def events(self, topics: Sequence[str], sink: StreamSink, connect_timeout: float) -> None:
        """Subscribe to topics and hand what comes to `sink` until the node ends the stream (H10).

        :raises httpx.TransportError: when the connection cannot be made or breaks.
        :raises httpx.DecodingError: for a content coding that is not known, or is not what it says.
        """
        await self.http.stream(
            "/eth/v1/events",
            query=[("topics", topic) for topic in topics],
            headers=[("Accept", "text/event-stream"), ("Cache-Control", "no-store")],
            sink=sink,
            connect_timeout=connect_timeout,
        )

    async def aclose(self) -> None:
        """Close the node's connections."""
        await self.http.aclose()

    async def _get(self, path: str, timeout: float, parse: Callable[[JSON], T]) -> T:
        try:
            with anyio.fail_after(timeout):
                response = await self.http.request(
                    "GET", path, headers=[("Accept", "application/json")], connect_timeout=self.connect_timeout
                )
        except TimeoutError:
            raise NodeTimeout(self.node_id, path, f"no answer within {timeout:.3g} s") from None
        except httpx.DecodingError as error:
            raise MalformedAnswer(self.node_id, path, self.mask(describe(error))) from None
        except httpx.TransportError as error:
            raise NodeUnreachable(self.node_id, path, self.mask(describe(error))) from None
        if response.status != 200:
            raise StatusError(
                self.node_id,
                path,
                response.status,
                read_error(self.mask(response.body[:4096].decode("utf-8", "replace")))[1],
                retry_after(response, self._unix()),
            )
        try:
            return parse(_object(json.loads(response.body)))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            # The text of these errors may repeat what the node sent; the kind of the error says enough.
            raise MalformedAnswer(self.node_id, path, f"not as the API defines it ({type(error).__name__})") from None


def describe(error: Exception) -> str:
    """Put a transport error into one printable line without secrets."""
    text = printable(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def retry_after(response: Response, unix: float) -> float | None:
    """Return the pause in seconds that a 429 or 503 asks for: a number of seconds or an HTTP date (case 24)."""
    if response.status not in (429, 503):
        return None
    return parse_retry_after(response.headers.get("retry-after"), unix)


def parse_retry_after(value: str | None, unix: float) -> float | None:
    """Read a `Retry-After` header; `None` where it is absent or cannot be read."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), LONGEST_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, moment - unix), LONGEST_RETRY_AFTER)


def _object(value: Any) -> JSON:  # noqa: ANN401 - JSON can be anything
    if not isinstance(value, dict):
        raise TypeError("not a JSON object")
    return value
