"""Redirects: 307 and 308 to the same host, or from http to https there (Q16). Any other one is the answer itself."""

from dataclasses import dataclass, replace
from urllib.parse import quote, urljoin, urlsplit

from vc_fallback.base.urls import BaseURL
from vc_fallback.wire.http import Headers

MOST = 3
"""How many redirects one call follows."""

_STATUSES = (307, 308)
_LONGEST = 16 * 1024
"""Bytes of a target that is followed: several times what any request here has."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request goes: an origin, and the target on it."""

    url: BaseURL
    target: str

    def follow(self, status: int, headers: Headers) -> "Place | None":
        """Return where a response redirects to, `None` where it does not or may not.

        Secrets go with the request, so another host is never followed, nor the way back from https to http.
        """
        location = headers.get("location") if status in _STATUSES else None
        if location is None:
            return None
        try:
            parts = urlsplit(urljoin(self.url.origin + self.target, location.strip()))
            origin = BaseURL.parse(f"{parts.scheme}://{parts.netloc}")
        except ValueError:
            return None
        if origin.authorization is not None or origin.host != self.url.host:
            return None
        if origin.scheme != self.url.scheme and (self.url.scheme, origin.scheme) != ("http", "https"):
            return None
        target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=-._~")
        if parts.query:
            target += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=-._~?")
        if len(target) > _LONGEST:
            return None
        return Place(replace(origin, authorization=self.url.authorization), target)


class Redirected(Exception):
    """The answer to a stream's request is a redirect that is to be followed."""

    def __init__(self, place: Place) -> None:
        super().__init__("redirected")
        self.place = place
