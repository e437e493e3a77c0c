"""Base URLs of beacon nodes: what is kept of them, what is sent, what may be shown (Q16, I3)."""

import base64
import hashlib
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, unquote_to_bytes, urlencode, urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_BAD = re.compile(r"[\x00-\x20\x7f\\]")
_PLACE = re.compile(r"(\[[^\[\]]*:[^\[\]]*\]|[^\[\]:]*)(:[0-9]+)?")
_PLAIN = re.compile(r"[A-Za-z0-9_.,~-]*")
"""What is sent in a query as it is."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")
"""Half characters: bytes of a command line that are not UTF-8 arrive so, and cannot be sent."""
_HOST = re.compile(r"(?=.{1,253}\.?\Z)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*\.?\Z")


@dataclass(frozen=True, slots=True)
class BaseURL:
    """A base URL taken apart. Path prefix and query are kept for every call; user-info becomes `authorization`.

    Two spellings of one address (`http://h:1`, `HTTP://h:1/`) are equal. `str()` and `repr()` show no secrets.
    """

    scheme: str
    host: str
    port: int
    prefix: str = field(default="", repr=False)
    query: str = field(default="", repr=False)
    authorization: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> "BaseURL":
        """Take a URL apart.

        :raises ValueError: when it is not a usable `http` or `https` URL; the text of the error holds no part of it.
        """
        if _BAD.search(text) or _SURROGATE.search(text):
            raise ValueError("a URL holds no blanks, control characters or backslashes")
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise ValueError("not a URL (host or port cannot be read)") from None
        scheme = parts.scheme.lower()
        if scheme not in _DEFAULT_PORTS:
            raise ValueError("a URL begins with http:// or https://")
        if parts.fragment or text.endswith("#"):
            raise ValueError("a base URL has no fragment")
        if port == 0 or parts.netloc.endswith(":"):
            raise ValueError("the port is missing or 0")
        # urlsplit overlooks what stands beside the brackets of an IPv6 address, and what is no address within them.
        place = parts.netloc.rpartition("@")[2]
        if not _PLACE.fullmatch(place):
            raise ValueError("not a URL (host or port cannot be read)")
        host = _normal_host(parts.hostname or "")
        authorization = None
        if "@" in parts.netloc:
            user, _, password = parts.netloc.rpartition("@")[0].partition(":")
            pair = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
            authorization = "Basic " + base64.b64encode(pair).decode("ascii") if pair != b":" else None
        return cls(
            scheme=scheme,
            host=host,
            port=port or _DEFAULT_PORTS[scheme],
            prefix=_quoted(parts.path.rstrip("/")),
            query=_quoted(parts.query),
            authorization=authorization,
        )

    @property
    def netloc(self) -> str:
        """Host and port as in a `Host` header: the scheme's own port is left out, IPv6 stands in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def hostport(self) -> str:
        """Host and port, the port always named; what a node id is derived from (I3)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port: the part that may be shown."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def bare(self) -> bool:
        """Whether there is no path and no query."""
        return not self.prefix and not self.query

    @property
    def digest(self) -> str:
        """Six hexadecimal digits of a hash of the normalised URL: tells two of one host apart, shows neither.

        User-info has no part in it: a new password is no new node, and a hash of a weak one would give it away.
        """
        return _digest(f"{self.scheme}://{self.hostport}{self.prefix}?{self.query}")

    @property
    def digest_with_credentials(self) -> str:
        """As :attr:`digest`, for two base URLs that differ in nothing but their user-info."""
        return _digest(f"{self.scheme}://{self.authorization or ''}@{self.hostport}{self.prefix}?{self.query}")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What of it may be a secret, as it is sent and as it was meant: to be taken out of a node's own words."""
        parts = [*self.prefix.split("/"), *re.split("[&=]", self.query)]
        if self.authorization is not None:
            encoded = self.authorization.removeprefix("Basic ")
            pair = base64.b64decode(encoded).decode("utf-8", "replace")
            parts += [encoded, pair, *pair.split(":", 1), *map(quote, pair.split(":", 1))]
        return tuple(dict.fromkeys(text for part in parts for text in (part, unquote(part)) if text))

    def target(self, path: str, query: Sequence[tuple[str, str]] = ()) -> str:
        """Return the request target for a path such as `/eth/v1/events`: prefix + path + the base's query + `query`."""
        if not query and not self.query:
            return self.prefix + path
        parts = [part for part in (self.query, _encoded(query)) if part]
        return self.prefix + path + ("?" + "&".join(parts) if parts else "")

    def __str__(self) -> str:
        return self.origin + ("" if self.bare else "/…")


def _encoded(query: Sequence[tuple[str, str]]) -> str:
    if _PLAIN.fullmatch("".join([text for pair in query for text in pair])):
        # Numbers and words, as nearly always: `urlencode` would take 10 µs to find that out.
        return "&".join([f"{name}={value}" for name, value in query])
    return urlencode(query, quote_via=quote, safe=",")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def _normal_host(host: str) -> str:
    if ":" in host:
        try:
            address = ipaddress.IPv6Address(host)
        except ValueError:
            raise ValueError("not a URL (the IPv6 address cannot be read)") from None
        if address.scope_id is not None:
            # A zone means something on one machine only and may not stand in a Host header.
            raise ValueError("a URL names no zone of an IPv6 address")
        return address.compressed
    host = host.lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            raise ValueError("not a URL (the host name cannot be read)") from None
    if not _HOST.match(host):
        raise ValueError("not a URL (the host name is missing or cannot be read)")
    return host


def _quoted(text: str) -> str:
    # Escapes stay as they are (a prefix may hold %2F); only what may not stand in a target is escaped.
    return quote(text, safe="/%:@!$&'()*+,;=-._~?")
