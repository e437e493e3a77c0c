"""Content codings that were not asked for: undone within bounds, or refused; never passed on as data (hazard 22)."""

import zlib
from collections.abc import Iterator

from vc_fallback.wire.errors import UndecodableBody

_PIECE = 64 * 1024
# The densest JSON and SSZ of a beacon node stay far below; zlib's own maximum is 1032.
_STREAM_RATIO = 200
_FREE = 4 * 1024 * 1024


class ContentDecoder:
    """Undoes gzip or deflate piece by piece, so that a bomb is met at the limit and not after it."""

    def __init__(self, coding: bytes, *, stream: bool = False) -> None:
        """Start.

        :param stream: refuse what inflates as no event stream does; there the total has no limit.
        :raises UndecodableBody: for another coding, or more than one.
        """
        if coding in (b"gzip", b"x-gzip"):
            self._bits = 16 + zlib.MAX_WBITS
        elif coding == b"deflate":
            self._bits = zlib.MAX_WBITS
        else:
            raise UndecodableBody("a content coding that was not asked for and is not known")
        self._inflate = zlib.decompressobj(self._bits)
        self._stream = stream
        self._taken = 0
        self._given = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what the bytes decode to, in pieces of bounded size.

        :raises UndecodableBody: when the data is not in that coding.
        """
        self._taken += len(data)
        while data:
            if self._inflate.eof:
                if self._bits == zlib.MAX_WBITS:
                    raise UndecodableBody("data behind the end of the compressed body")
                self._inflate = zlib.decompressobj(self._bits)  # gzip may have several members
            try:
                piece = self._inflate.decompress(data, _PIECE)
            except zlib.error:
                raise UndecodableBody("the body is not in the content coding it was said to be in") from None
            data = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            self._given += len(piece)
            if self._stream and self._given > _FREE + _STREAM_RATIO * self._taken:
                raise UndecodableBody("a compressed stream that inflates without measure")
            if piece:
                yield piece

    def end(self) -> None:
        """Check that nothing is missing.

        :raises UndecodableBody: when the compressed data is not at its end.
        """
        if self._taken and not self._inflate.eof:
            raise UndecodableBody("the compressed body is cut off")


def content_decoder(coding: bytes, *, stream: bool = False) -> ContentDecoder | None:
    """Return what undoes a `Content-Encoding` (lower-case), or `None` where there is nothing to undo.

    :raises UndecodableBody: for a coding that is not known.
    """
    coding = coding.strip()
    return None if not coding or coding == b"identity" else ContentDecoder(coding, stream=stream)
