"""TLS: contexts out of settings, and one session's bytes without I/O, the same on every event loop.

A session of our own over `ssl.MemoryBIO` and not the event loop's: a cancelled handshake leaves nothing but a socket to
close, and an end without close_notify can be told from one with it on asyncio, uvloop and trio alike.
"""

import contextlib
import ssl
from collections.abc import Callable
from pathlib import Path

from vc_fallback.base.errors import ConfigurationError
from vc_fallback.candidates import TLSSettings
from vc_fallback.wire.errors import CertificateError, TLSError

# One record's worth: no read gives more, and the buffer for it is reserved whole each time.
_READ = 16 * 1024


def tls_context(settings: TLSSettings = TLSSettings(), *, field: str = "tls") -> ssl.SSLContext:  # noqa: B008 - frozen
    """Make a TLS context: the system's authorities or one's own, a client certificate where there is one (Q16).

    This blocks for 25 to 115 ms where the system's authorities are loaded; share the context (see `TLSContexts`).

    :param field: dotted path of the settings, for the error.
    :raises ConfigurationError: names the setting whose file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if settings.ca is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _load(f"{field}.ca", settings.ca, lambda path: context.load_verify_locations(cafile=path))
    if settings.key is not None and settings.certificate is None:
        raise ConfigurationError(f"{field}.key", "a key without a certificate")
    if settings.certificate is not None:
        _load(f"{field}.certificate", settings.certificate)
        if settings.key is not None:
            _load(f"{field}.key", settings.key)
        try:
            # Without a password given OpenSSL would ask for one on the terminal.
            context.load_cert_chain(settings.certificate, settings.key, password=_no_password)
        except (OSError, ValueError):
            problem = "certificate and key cannot be used: not PEM, encrypted, or not of one pair"
            raise ConfigurationError(f"{field}.certificate", problem) from None
    return context


class TLSContexts:
    """Keeps one context for all candidates whose settings are equal."""

    def __init__(self) -> None:
        self._contexts: dict[TLSSettings, ssl.SSLContext] = {}

    def get(self, settings: TLSSettings, *, field: str = "tls") -> ssl.SSLContext:
        """Return the context for the settings, made at the first call.

        :raises ConfigurationError: as `tls_context`.
        """
        context = self._contexts.get(settings)
        if context is None:
            context = self._contexts[settings] = tls_context(settings, field=field)
        return context


class TLSSession:
    """One client session: ciphertext in, plaintext out, and the other way round."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        # A zone index says which interface, not which host, and stands in no certificate.
        name = host.partition("%")[0].removesuffix(".")
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self.closed = False
        self.ragged = False

    def handshake(self) -> bool:
        """Go on with the handshake; `True` when it is over. Send `outgoing()` after each step, also after an error.

        :raises CertificateError: when the certificate is not trusted or for another name.
        :raises TLSError: when there is no agreement.
        """
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLCertVerificationError as error:
            raise CertificateError(f"TLS certificate refused: {error.verify_message}") from None
        except ssl.SSLError as error:
            raise TLSError(f"TLS handshake failed: {_reason(error)}") from None
        return True

    def receive(self, data: bytes) -> None:
        """Take ciphertext; empty when the connection has ended."""
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def read(self) -> bytes:
        """Return plaintext, empty when there is none now. `closed` and `ragged` tell of the end.

        :raises TLSError: for what cannot be decrypted, or an alert of the peer.
        """
        try:
            data = self._object.read(_READ)
        except ssl.SSLWantReadError:
            return b""
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
            self.closed = True
            self.ragged = isinstance(error, ssl.SSLEOFError)
            return b""
        except ssl.SSLError as error:
            raise TLSError(f"TLS failed: {_reason(error)}") from None
        if not data:
            self.closed = True
        return data

    def encrypt(self, data: bytes | memoryview) -> bytes:
        """Return ciphertext for some plaintext, with whatever else is to be sent.

        :raises TLSError: when the session is over.
        """
        try:
            self._object.write(data)
        except ssl.SSLError as error:
            raise TLSError(f"TLS failed: {_reason(error)}") from None
        return self._outgoing.read()

    def outgoing(self) -> bytes:
        """Return what the session itself has to send."""
        return self._outgoing.read()

    def close(self) -> bytes:
        """Return our close_notify."""
        with contextlib.suppress(ssl.SSLError, ValueError):
            self._object.unwrap()
        return self._outgoing.read()


def _no_password() -> str:
    return ""


def _load(field: str, path: Path, load: Callable[[Path], None] | None = None) -> None:
    try:
        with path.open("rb"):
            pass
        if load is not None:
            load(path)
    except (ssl.SSLError, ValueError):
        raise ConfigurationError(field, "the file holds no PEM certificate that can be used") from None
    except OSError as error:
        raise ConfigurationError(field, f"the file cannot be read ({error.strerror or 'unknown error'})") from None


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or type(error).__name__).replace("_", " ").lower()
