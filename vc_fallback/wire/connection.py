"""One connection, whatever the event loop: what is done with bytes once they are read, and the interface above it."""

import contextlib
import errno
import math
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import httpx

from vc_fallback.wire.codec import ResponseDecoder
from vc_fallback.wire.errors import TLSTruncated
from vc_fallback.wire.http import Receiver, WireLimits
from vc_fallback.wire.tls import TLSSession

_READ = 64 * 1024
_BULK = 256 * 1024
_PIECE = 16 * 1024
"""Of a stream: events are worked off as they are read, and those of other nodes wait meanwhile. It is 25 attestations,
or half a millisecond."""


class Connection(ABC):
    """A connected socket, its TLS session if any, and the decoder of its responses. Carries one exchange at a time.

    `reused` says whether an exchange went before; `idle_since` is the event loop's time of its end.
    """

    def __init__(self, connected: socket.socket, tls: TLSSession | None, limits: WireLimits) -> None:
        self._socket = connected
        self._tls = tls
        self._read = _READ
        self._bulk = _BULK
        self._plenty = False
        self._ended = False
        self._unwritten = False
        self._write_problem: OSError | None = None
        self.decoder = ResponseDecoder(limits)
        self.closed = False
        self.reused = False
        self.idle_since = 0.0
        self.on_lost: Callable[[Connection], None] | None = None
        self.on_drained: Callable[[Connection], None] | None = None

    @property
    def reusable(self) -> bool:
        """Whether another request may be written: the response is whole, the request too, and nobody said close."""
        return self.decoder.reusable and not (self._ended or self._unwritten or self.closed)

    @property
    def draining(self) -> bool:
        """Whether the answer to a cancelled request is still to come; `on_drained` or `on_lost` is called at its end.

        Only callbacks read what nobody waits for: elsewhere the connection of a cancelled request is closed.
        """
        return False

    def in_pieces(self) -> None:
        """Read little at once, so that others have their turn in between: what comes is a stream."""
        self._read = self._bulk = _PIECE

    @abstractmethod
    async def exchange(
        self,
        method: str,
        parts: Sequence[bytes],
        receiver: Receiver,
        sent: Callable[[], None] | None = None,
        deadline: float = math.inf,
    ) -> None:
        """Write a request and read its response to the end. After any error the connection is closed; where it was
        cancelled it may be draining.

        :param sent: called when the request is written completely.
        :param deadline: moment in loop time.
        :raises TimeoutError: when it is not at its end by then.
        :raises httpx.TransportError: what went wrong; what `sent` or the receiver raised comes out as it is.
        """

    @abstractmethod
    async def open(self, method: str, parts: Sequence[bytes], receiver: Receiver) -> None:
        """Write a request and read until the head of its response came; `pump` for the rest. Errors as `exchange`."""

    @abstractmethod
    async def pump(self) -> None:
        """Wait until more of the body came, or its end. Cancelling it loses nothing (hazard 18)."""

    @abstractmethod
    def pause(self) -> None:
        """Read no more until the next `pump`."""

    @abstractmethod
    def settle(self) -> None:
        """A pulled body is at its end: the connection is idle from now on."""

    @abstractmethod
    def abort(self, error: Exception) -> None:
        """Close, and let a waiting exchange raise this error."""

    @abstractmethod
    def close(self) -> None:
        """Close at once; no await, no task. An exchange that waits is not woken: see `abort`."""

    @abstractmethod
    def now(self) -> float:
        """Return the event loop's time."""

    def silent(self) -> bool:
        """Look whether the idle connection is still fit for use: the peer has neither closed it nor said anything.

        Also where callbacks tell: what the peer sent together with its answer may not have been read yet (hazard 11).
        """
        try:
            if self.reusable and self._tls is None:
                self._socket.recv(1, socket.MSG_PEEK)
                return False
            while self.reusable:
                self._read_some()
        except (BlockingIOError, InterruptedError):
            return self.reusable
        except (OSError, httpx.TransportError):
            pass
        return False

    def _read_some(self) -> None:
        """Read once and decode.

        :raises BlockingIOError: when there is nothing to read.
        """
        decoder = self.decoder
        if self._tls is not None:
            self._read_tls(self._tls)
            return
        room = decoder.room()
        if room is None:
            data = self._receive()
            if data:
                decoder.feed(data)
                # The receive buffer is reserved whole at each read: large only for who fills it.
                self._plenty = len(data) >= _READ
                self._read = self._bulk if self._plenty else min(_READ, self._bulk)
            else:
                self._end()
            return
        try:
            count = self._socket.recv_into(room)
        except (BlockingIOError, InterruptedError):
            raise
        except OSError as error:
            raise _read_error(error) from None
        finally:
            room.release()
        if count:
            self._plenty = count >= _READ
            decoder.filled(count)
        else:
            self._end()

    def _read_tls(self, tls: TLSSession) -> None:
        data = self._receive()
        tls.receive(data)
        while plain := tls.read():
            self.decoder.feed(plain)
        if answer := tls.outgoing():
            with contextlib.suppress(OSError):
                self._socket.send(answer)
        if tls.closed:
            if tls.ragged and self.decoder.until_close:
                raise TLSTruncated("TLS connection ended without close_notify; the body may be cut off")
            self._end()

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(self._read)
        except (BlockingIOError, InterruptedError):
            raise
        except OSError as error:
            raise _read_error(error) from None

    def _end(self) -> None:
        self._ended = True
        if self._write_problem is not None and not self.decoder.started:
            raise _write_error(self._write_problem)
        self.decoder.feed_eof()

    def _explain(self, error: Exception) -> Exception:
        """Name the write as the cause where the read only found the ruins."""
        if self._write_problem is not None and isinstance(error, httpx.ReadError) and not self.decoder.started:
            return _write_error(self._write_problem)
        return error

    def _farewell(self) -> None:
        """Say close_notify, if the socket takes it at once."""
        if self._tls is not None and self.decoder.complete:
            with contextlib.suppress(OSError):
                self._socket.send(self._tls.close())


def _read_error(error: OSError) -> httpx.ReadError:
    return httpx.ReadError(f"connection lost while reading ({errno.errorcode.get(error.errno or 0, 'unknown error')})")


def _write_error(error: OSError) -> httpx.WriteError:
    return httpx.WriteError(f"connection lost while writing ({errno.errorcode.get(error.errno or 0, 'unknown error')})")
