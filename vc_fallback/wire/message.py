"""Requests to bytes. Nothing illegal is ever written: it is refused before a connection is touched (hazard 15)."""

import re
from collections.abc import Sequence

import httpx

_METHOD = re.compile(r"[A-Z]{1,20}")
_TARGET = re.compile(r"/[\x21-\x7e]*")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# These say how a message is framed and what becomes of the connection; that is decided here.
_OURS = frozenset({"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_CACHED = 64

FRAMING = frozenset(name.encode() for name in _OURS)
"""Headers of a request that come from elsewhere and are not passed on."""

HeaderPairs = Sequence[tuple[str, str]]


class RequestWriter:
    """Writes heads of requests to one origin, with the headers that go with all of them."""

    def __init__(self, netloc: str, headers: HeaderPairs) -> None:
        """Take note of the headers that every request carries; a later one replaces an earlier one of its name.

        :raises httpx.LocalProtocolError: for a header that cannot be sent.
        """
        merged = {"host": ("Host", netloc), "user-agent": ("User-Agent", "vc-fallback")}
        merged["accept-encoding"] = ("Accept-Encoding", "identity")
        for name, value in headers:
            _check(name, value)
            merged[name.lower()] = (name, value)
        self._fixed = merged
        self._blocks: dict[tuple[tuple[str, str], ...], bytes] = {(): _lines(list(merged.values()))}

    def head(self, method: str, target: str, headers: HeaderPairs, body: bytes | None) -> bytes:
        """Return the head of a request. Its headers replace those of all requests that have the same name.

        :raises httpx.LocalProtocolError: for anything that cannot be sent; the text shows no value.
        """
        if _METHOD.fullmatch(method) is None:
            raise httpx.LocalProtocolError("illegal method")
        if _TARGET.fullmatch(target) is None:
            raise httpx.LocalProtocolError("illegal character in the request target")
        key = tuple(headers)
        block = self._blocks.get(key)
        if block is None:
            block = self._block(key)
        if body is not None or method in _WITH_BODY:
            return b"%b %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n" % (
                method.encode(),
                target.encode(),
                block,
                len(body or b""),
            )
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (method.encode(), target.encode(), block)

    def pairs(self, headers: HeaderPairs) -> list[tuple[str, str]]:
        """Return the headers of a request as pairs, for a transport that writes them itself. Errors as `head`."""
        for name, value in headers:
            _check(name, value)
        own = {name.lower() for name, _ in headers}
        return [pair for name, pair in self._fixed.items() if name not in own] + list(headers)

    def _block(self, headers: tuple[tuple[str, str], ...]) -> bytes:
        block = _lines(self.pairs(headers))
        if len(self._blocks) >= _CACHED:
            self._blocks.clear()
        self._blocks[headers] = block
        return block


def _check(name: str, value: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise httpx.LocalProtocolError("illegal header name")
    if name.lower() in _OURS:
        raise httpx.LocalProtocolError(f"the header {name} is not the caller's to set")
    if _VALUE.fullmatch(value) is None:
        raise httpx.LocalProtocolError(f"illegal character in the value of the header {name}")


def _lines(headers: HeaderPairs) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1")
