"""What goes wrong on the wire. Every error is one of httpx's; the subclasses here give the causes we tell apart a name.

Texts hold no URL, no header value and no path (rule 11).
"""

import httpx


class LimitExceeded(httpx.RemoteProtocolError):
    """The beacon node sent more than it may (Q15)."""


class HeadTooLarge(LimitExceeded):
    """The head of a response, its headers, its trailers or the framing between its chunks is too large."""


class BodyTooLarge(LimitExceeded):
    """A body is larger than its limit, as announced, as it came, or after decoding."""


class Truncated(httpx.RemoteProtocolError):
    """The connection ended inside a response, or before one."""


class TLSTruncated(Truncated):
    """A TLS connection ended without close_notify where its end was to be the end of the body."""


class UndecodableBody(httpx.RemoteProtocolError, httpx.DecodingError):
    """A content coding that is not known, is broken, or inflates without measure."""


class StaleConnection(httpx.RemoteProtocolError):
    """A kept connection ended before any byte of the response, and the request may not be repeated (Q10)."""


class TLSError(httpx.ConnectError):
    """TLS could not be agreed on: the peer speaks another protocol, or refused us."""


class CertificateError(TLSError):
    """The beacon node's certificate is not trusted, or is for another name."""


class ClientClosed(httpx.TransportError):
    """The client was closed: before the call, or under it."""
