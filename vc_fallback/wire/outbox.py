"""What of a request is still to be written: plain parts, or their ciphertext made piece by piece."""

from collections.abc import Sequence

from vc_fallback.wire.tls import TLSSession

_PIECE = 256 * 1024


class Outbox:
    """Gives out the next bytes to be written. A body of 30 MB is neither copied nor encrypted ahead of the socket."""

    __slots__ = ("_current", "_parts", "_tls")

    def __init__(self, parts: Sequence[bytes], tls: TLSSession | None) -> None:
        self._parts = [memoryview(part) for part in parts if part]
        self._tls = tls
        self._current = memoryview(b"")

    def peek(self) -> memoryview:
        """Return the bytes to be written next, empty when all are.

        :raises TLSError: when the TLS session is over.
        """
        while not self._current and self._parts:
            part = self._parts[0]
            if self._tls is None:
                self._current = part
                self._parts.pop(0)
            else:
                self._current = memoryview(self._tls.encrypt(part[:_PIECE]))
                self._parts[0] = part[_PIECE:]
                if not self._parts[0]:
                    self._parts.pop(0)
        return self._current

    def advance(self, count: int) -> None:
        """Note that that many of them were written."""
        self._current = self._current[count:]
