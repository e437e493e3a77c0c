"""Keeping secrets out of logs, metrics, status pages, exception texts and terminals (rule 11)."""

import re
from urllib.parse import urlsplit

_URL = re.compile(r"""\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'"<>]+""")
_CREDENTIALS = re.compile(r"(?i)\b(authorization|proxy-authorization|cookie|x-api-key|api-key)(\s*[:=]\s*)[^\r\n]+")
_AUTH_SCHEME = re.compile(r"(?i)\b(basic|bearer)\s+[A-Za-z0-9+/=._~-]{6,}")


def redact_url(url: str) -> str:
    """Reduce a URL to scheme, host and port: user-info, path and query may all hold tokens."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        return "<url>"
    if not host or "\\" in url:
        return "<url>"
    if ":" in host:
        host = f"[{host}]"
    hidden = "/…" if parts.path.strip("/") or parts.query or parts.fragment else ""
    return f"{parts.scheme}://{host}{f':{port}' if port is not None else ''}{hidden}"


def redact_text(text: str) -> str:
    """Redact every URL and every credential header that stands in a text."""
    text = _URL.sub(lambda match: redact_url(match[0]), text)
    text = _CREDENTIALS.sub(r"\1\2<redacted>", text)
    return _AUTH_SCHEME.sub(r"\1 <redacted>", text)


def printable(text: str, limit: int = 300) -> str:
    """Make a node's own words fit for one log line: redacted, no control characters, at most `limit` characters."""
    line = " ".join(redact_text(text[: 4 * limit]).split())
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    return line if len(line) <= limit else line[: limit - 1] + "…"
