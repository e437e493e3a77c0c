"""A connection on asyncio: everything happens in the socket's callbacks, a waiting caller is woken once, at the end.

The callbacks are those of the event loop's selector and not of a transport. So a socket is closed when `close` returns,
an early answer is still read when writing fails, and one TLS session serves every event loop; uvloop has them too.
"""

import asyncio
import math
import socket
from collections.abc import Callable, Sequence

from vc_fallback.wire.asyncio_tasks import callback_context
from vc_fallback.wire.connection import Connection
from vc_fallback.wire.http import Receiver, WireLimits
from vc_fallback.wire.outbox import Outbox
from vc_fallback.wire.receive import Discard
from vc_fallback.wire.tls import TLSSession

# Up to this size head and body are copied into one write.
_JOIN = 64 * 1024

DRAIN = 1.0
"""Seconds that an answer may take for which nobody waits any more, as another node was faster; its connection is kept
then. To make a new one takes as long as two requests do."""
DRAINED = 256 * 1024
"""Bytes of such an answer's body at most."""

_IDLE, _TO_END, _PULL, _DRAIN = range(4)


def listen(connected: socket.socket, tls: TLSSession | None, limits: WireLimits) -> Connection:
    """Make a connection of a connected socket.

    :raises NotImplementedError: when the event loop has no callbacks for sockets (Windows' proactor).
    """
    return AsyncioConnection(connected, tls, limits, asyncio.get_running_loop())


class AsyncioConnection(Connection):
    """Variant B: the decoder, and through it a stream's sink, is called from the socket's callback."""

    def __init__(
        self,
        connected: socket.socket,
        tls: TLSSession | None,
        limits: WireLimits,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(connected, tls, limits)
        self._loop = loop
        self._mode = _IDLE
        self._waiter: asyncio.Future[None] | None = None
        self._error: BaseException | None = None
        self._outbox: Outbox | None = None
        self._sent: Callable[[], None] | None = None
        self._listening = True
        self._drain_timer: asyncio.TimerHandle | None = None
        # The sinks of streams are called from here.
        self._context = callback_context()
        self._listen()

    async def exchange(
        self,
        method: str,
        parts: Sequence[bytes],
        receiver: Receiver,
        sent: Callable[[], None] | None = None,
        deadline: float = math.inf,
    ) -> None:
        self.decoder.begin(method, receiver)
        self._mode = _TO_END
        self._waiter = waiter = self._loop.create_future()
        timer = None
        if deadline != math.inf:
            timer = self._loop.call_at(deadline, self._time_out, context=self._context)
        try:
            self._begin_writing(parts, sent)
            await waiter
        except asyncio.CancelledError:
            self._waiter = None
            self._drain()
            raise
        except BaseException:
            self.close()
            raise
        finally:
            if timer is not None:
                timer.cancel()
            self._waiter = None
            if self._mode != _DRAIN:
                self._mode = _IDLE
        if self._error is not None:
            self._raise()
        self.reused = True

    async def open(self, method: str, parts: Sequence[bytes], receiver: Receiver) -> None:
        self.decoder.begin(method, receiver)
        self._mode = _PULL
        try:
            self._begin_writing(parts, None)
            while not self.decoder.headed:
                await self.pump()
        except BaseException:
            self.close()
            raise

    async def pump(self) -> None:
        if self._error is not None:
            self._raise()
        if self.decoder.complete:
            return
        if not self._listening:
            self._listening = True
            self._listen()
        self._waiter = waiter = self._loop.create_future()
        try:
            await waiter
        finally:
            self._waiter = None
        if self._error is not None:
            self._raise()

    def pause(self) -> None:
        if self._listening:
            self._listening = False
            self._loop.remove_reader(self._socket)

    def settle(self) -> None:
        self._mode = _IDLE
        self.reused = True
        if not self._listening and not self.closed:
            self._listening = True
            self._listen()

    @property
    def draining(self) -> bool:
        return self._mode == _DRAIN and not self.closed

    def abort(self, error: Exception) -> None:
        if not self.closed:
            self._fail(error)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._drain_timer is not None:
            self._drain_timer.cancel()
        if self._listening:
            self._listening = False
            self._loop.remove_reader(self._socket)
        if self._outbox is not None:
            self._stop_writing()
        self._farewell()
        self._socket.close()

    def now(self) -> float:
        return self._loop.time()

    def _drain(self) -> None:
        """Nobody waits for the answer any more: let it come and go, or close where that cannot be."""
        written = self._outbox is None and not self._unwritten and self._error is None
        if self.closed or not written or self.decoder.complete:
            self.close()
            return
        self._mode = _DRAIN
        self.decoder.redirect(Discard(DRAINED))
        self._drain_timer = self._loop.call_later(DRAIN, self._lose, context=self._context)

    def _drained(self) -> None:
        if self._drain_timer is not None:
            self._drain_timer.cancel()
            self._drain_timer = None
        self._mode = _IDLE
        self.reused = True
        if self.reusable and self.on_drained is not None:
            self.on_drained(self)
        else:
            self._lose()

    def _listen(self) -> None:
        self._context.run(self._loop.add_reader, self._socket, self._on_readable)

    def _begin_writing(self, parts: Sequence[bytes], sent: Callable[[], None] | None) -> None:
        if self._tls is None and (len(parts) == 1 or sum(map(len, parts)) <= _JOIN):
            data = parts[0] if len(parts) == 1 else b"".join(parts)
            try:
                count = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                count = 0
            except OSError as error:
                self._write_problem = error
                self._unwritten = True
                return
            if count == len(data):
                if sent is not None:
                    sent()
                return
            parts = (data[count:],)
        self._sent = sent
        self._unwritten = True
        self._outbox = Outbox(parts, self._tls)
        self._context.run(self._loop.add_writer, self._socket, self._on_writable)
        self._write()

    def _write(self) -> None:
        outbox = self._outbox
        assert outbox is not None  # noqa: S101 - the writer is registered only with one
        while chunk := outbox.peek():
            try:
                outbox.advance(self._socket.send(chunk))
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # Not the end yet: an answer may have come before the reset (hazard 14). The reading side will tell.
                self._write_problem = error
                self._stop_writing()
                return
        self._stop_writing()
        self._unwritten = False
        if self._sent is not None:
            self._sent()

    def _stop_writing(self) -> None:
        self._outbox = None
        self._loop.remove_writer(self._socket)

    def _on_writable(self) -> None:
        try:
            self._write()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - handed to the waiting caller
            self._fail(error)

    def _on_readable(self) -> None:
        try:
            self._read_some()
        except (BlockingIOError, InterruptedError):
            return
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - handed to the waiting caller
            self._fail(error)
            return
        mode = self._mode
        if mode == _IDLE:
            if not self.reusable:
                self._lose()
        elif mode == _DRAIN:
            if self.decoder.complete:
                self._drained()
        elif self.decoder.complete:
            if self._outbox is not None:
                self._stop_writing()  # an early answer; what is left of the request goes nowhere
            self._wake()
        elif mode == _PULL:
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: BaseException) -> None:
        self.close()
        if self._mode in (_IDLE, _DRAIN):
            self._lose()
            return
        self._error = self._explain(error) if isinstance(error, Exception) else error
        self._wake()

    def _time_out(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._fail(TimeoutError())

    def _lose(self) -> None:
        self.close()
        if self.on_lost is not None:
            self.on_lost(self)

    def _raise(self) -> None:
        error, self._error = self._error, None
        assert error is not None  # noqa: S101 - callers have looked
        raise error
