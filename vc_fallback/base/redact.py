"""Keeping secrets out of logs, metrics, status pages, exception texts and terminals (rule 11)."""

import base64
import html
import json
import re
import string
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus, urlsplit

_WORD = re.compile(r"\S+")
_SCHEME_CHARACTERS = string.ascii_letters + string.digits + "+-."
_ROUTE = re.compile(r"/eth/v\d")
_CLOSING = "'\"`)]}>.,;:!"
"""What may stand after a URL in a sentence; a secret that ends so loses its last character, never shows one."""
_OPENING = "'\"`([{<"
_CREDENTIALS = re.compile(
    r"(?i)(authorization|cookie|api[-_]?key|(?:auth|access)[-_]?token|passw(?:or)?d|secret)(['\"]?\s*[:=,]\s*)[^\r\n]+"
)
_AUTH_SCHEME = re.compile(r"(?i)\b(basic|bearer)\s+[A-Za-z0-9+/=._~-]{4,}")
_ESCAPE = re.compile("%[0-9A-F]{2}")
_SHORTEST = 6
_PART = 8
"""Characters of a secret that are taken out wherever they stand together: a node may cut what it repeats."""
_LONGEST = 16 * 1024
"""Characters of a text that :func:`printable` looks at."""


def redact_url(url: str) -> str:
    """Reduce a URL to scheme, host and port: user-info, path and query may all hold tokens."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        return "<url>"
    hidden = parts.path.strip("/") + parts.query + parts.fragment
    # An @ further on may end a password that holds an unescaped / ? or #: then what looks like the host is the user.
    if not host or "\\" in url or "@" in hidden:
        return "<url>"
    if ":" in host:
        host = f"[{host}]"
    return f"{parts.scheme}://{host}{f':{port}' if port is not None else ''}{'/…' if hidden else ''}"


def redact_text(text: str) -> str:
    """Redact URLs, user-info, what stands before and behind a route, and credential headers, wherever in a text."""
    text = _CREDENTIALS.sub(r"\1\2<redacted>", text)
    text = _AUTH_SCHEME.sub(r"\1 <redacted>", text)
    return _WORD.sub(lambda match: _redact_word(match[0]), text)


def printable(text: str, limit: int = 300) -> str:
    """Make a node's own words fit for one log line: redacted, no control characters, at most `limit` characters."""
    if len(text) > _LONGEST:
        # Half a URL may not look like one: the word that is cut goes.
        text = text[:_LONGEST].rpartition(" ")[0] + " …"
    line = " ".join(redact_text(text).split())
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    return line if len(line) <= limit else line[: limit - 1] + "…"


class Mask:
    """Takes the secrets of one candidate out of a text, wherever they stand: a node may repeat them in its own words.

    It finds them with the escapes of URLs, HTML and JSON, too, in base64, and in letters of another case; and of long
    ones every part of eight characters or more.

    :param secrets: as they are; those of fewer than six characters are words of ordinary texts too, and stay.
    """

    __slots__ = ("_parts", "_secrets")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secret for secret in secrets if len(secret) >= _SHORTEST)
        self._parts: dict[int, set[str]] = {}
        """By their length; made when they are first needed, which is seldom."""

    def __call__(self, text: str) -> str:
        """Return the text without them."""
        if not self._secrets:
            return text
        if not self._parts:
            for secret in self._secrets:
                for form in _forms(secret):
                    self._take(_folded(form))
        folded, found = _folded(text), []
        for size, parts in self._parts.items():
            found += [(at, at + size) for at in range(len(text) - size + 1) if folded[at : at + size] in parts]
        if not found:
            return text
        kept, end = [], 0
        for begin, over in sorted(found):
            if begin >= end:
                kept += [text[end:begin], "<redacted>"]
            end = max(end, over)
        return "".join([*kept, text[end:]])

    def _take(self, form: str) -> None:
        size = min(len(form), _PART)
        self._parts.setdefault(size, set()).update(form[at : at + size] for at in range(len(form) - size + 1))


def _folded(text: str) -> str:
    """Return a text in lower case, every character in its place."""
    folded = text.lower()
    return folded if len(folded) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _forms(secret: str) -> Iterator[str]:
    """Yield the ways in which a text may hold a secret; base64 without what fills it up at the end."""
    yield secret
    for quoted in (quote(secret), quote(secret, safe=""), quote_plus(secret)):
        yield quoted
        yield _ESCAPE.sub(lambda match: match[0].lower(), quoted)
    yield from (html.escape(secret, quote=False), html.escape(secret))
    escaped = json.dumps(secret)[1:-1]
    yield from (escaped, escaped.replace("/", "\\/"))
    data = secret.encode("utf-8", "surrogatepass")
    yield from (encode(data).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode))


def _redact_word(word: str) -> str:
    before, mark, after = word.partition("://")
    if not mark:
        return _redact_bare(word)
    scheme = before[len(before.rstrip(_SCHEME_CHARACTERS)) :]
    # Everything up to the next blank belongs to the URL: quotes and brackets may stand in passwords.
    url = after.rstrip(_CLOSING)
    return _redact_bare(before[: len(before) - len(scheme)]) + redact_url(scheme + mark + url) + after[len(url) :]


def _redact_bare(word: str) -> str:
    if "@" in word:
        user, _, rest = word.rpartition("@")
        if ":" in user:
            word = "<redacted>@" + rest
    route = _ROUTE.search(word)
    if route is not None:
        # A node that echoes the target of a request shows the prefix and the query of its base URL.
        before = word[: route.start()]
        word = ("…" if before.strip(_OPENING) else before) + word[route.start() :].partition("?")[0]
    return word
