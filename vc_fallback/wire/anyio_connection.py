"""A connection where the caller's own task reads: on trio, and on asyncio without callbacks for sockets (variant A)."""

import math
import socket
from collections.abc import Awaitable, Callable, Sequence

import anyio
import httpx

from vc_fallback.wire.connection import Connection
from vc_fallback.wire.http import Receiver, WireLimits
from vc_fallback.wire.outbox import Outbox
from vc_fallback.wire.tls import TLSSession

# Larger requests are written while the response is already awaited: it may come early (hazard 14).
_SMALL = 16 * 1024
# How often at most a socket is read again without a look at the other tasks.
_READS = 8


class AnyioConnection(Connection):
    """The caller's own task waits for the socket and reads."""

    def __init__(self, connected: socket.socket, tls: TLSSession | None, limits: WireLimits) -> None:
        super().__init__(connected, tls, limits)
        self._aborted: Exception | None = None

    async def exchange(
        self,
        method: str,
        parts: Sequence[bytes],
        receiver: Receiver,
        sent: Callable[[], None] | None = None,
        deadline: float = math.inf,
    ) -> None:
        try:
            with anyio.CancelScope(deadline=deadline):
                await self._send_and_read(method, parts, receiver, sent, self._read_to_end)
                self.reused = True
                return
        except BaseException:
            self.close()
            raise
        self.close()
        raise TimeoutError

    async def open(self, method: str, parts: Sequence[bytes], receiver: Receiver) -> None:
        try:
            await self._send_and_read(method, parts, receiver, None, self._read_head)
        except BaseException:
            self.close()
            raise

    async def pump(self) -> None:
        if not self.decoder.complete:
            await self._read_once(more=0)

    def pause(self) -> None:
        pass  # nothing is read but in `pump`

    def settle(self) -> None:
        self.reused = True

    def abort(self, error: Exception) -> None:
        if not self.closed:
            self._aborted = error
            self.close()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._farewell()
        anyio.notify_closing(self._socket)
        self._socket.close()

    def now(self) -> float:
        return anyio.current_time()

    async def _send_and_read(
        self,
        method: str,
        parts: Sequence[bytes],
        receiver: Receiver,
        sent: Callable[[], None] | None,
        read: Callable[[], Awaitable[None]],
    ) -> None:
        self.decoder.begin(method, receiver)
        outbox = Outbox(parts, self._tls)
        self._unwritten = True
        if sum(map(len, parts)) <= _SMALL:
            await self._write(outbox)
            if sent is not None and not self._unwritten:
                sent()
            await read()
            return
        problem: Exception | None = None
        async with anyio.create_task_group() as writing:
            writing.start_soon(self._write_beside, outbox, sent)
            try:
                await read()
            except Exception as error:  # noqa: BLE001 - raised again below, where no group wraps it
                problem = error
            writing.cancel_scope.cancel()
        if problem is not None:
            raise problem

    async def _write_beside(self, outbox: Outbox, sent: Callable[[], None] | None) -> None:
        try:
            await self._write(outbox)
            if sent is not None and not self._unwritten:
                sent()
        except Exception as error:  # noqa: BLE001 - raised by the reading side
            self.abort(error)

    async def _write(self, outbox: Outbox) -> None:
        while chunk := outbox.peek():
            try:
                outbox.advance(self._socket.send(chunk))
            except (BlockingIOError, InterruptedError):
                await self._wait(anyio.wait_writable)
            except OSError as error:
                # Not the end yet: an answer may have come before the reset (hazard 14). The reading side will tell.
                self._write_problem = error
                return
        self._unwritten = False

    async def _read_to_end(self) -> None:
        while not self.decoder.complete:
            await self._read_once()

    async def _read_head(self) -> None:
        while not self.decoder.headed:
            await self._read_once()

    async def _read_once(self, more: int = _READS) -> None:
        await self._wait(anyio.wait_readable)
        self._plenty = False
        try:
            self._read_some()
            # Where much came, more is likely there: waiting costs more than a read in vain.
            for _ in range(more):
                if not self._plenty or self.decoder.complete:
                    break
                self._plenty = False
                self._read_some()
        except (BlockingIOError, InterruptedError):
            return
        except httpx.ReadError as error:
            raise self._explain(error) from None

    async def _wait(self, wait: Callable[[socket.socket], Awaitable[None]]) -> None:
        if self._aborted is None:
            try:
                await wait(self._socket)
                return
            except anyio.ClosedResourceError:
                pass
        raise self._aborted or httpx.ReadError("connection closed")
