"""A node's own words, made fit to be shown."""

import re

from vc_fallback.base.redact import printable

_URL = re.compile(r"\S*://\S*")


def shown(text: str) -> str:
    """Return a node's words on one line, without secrets and without URLs: nodes are named by node id, never by URL."""
    return _URL.sub("<url>", printable(text))
