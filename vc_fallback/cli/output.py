"""Lines to stdout or stderr that never hold up the event loop, whoever reads them (rule 7)."""

import errno
import os
import select
import stat
from collections import deque
from collections.abc import Callable
from typing import Final

import anyio
import anyio.lowlevel

BUFFER: Final = 2**20
"""Bytes that wait for a slow reader before further lines are dropped: some 3,000 JSON lines."""

LAST_CHANCE: Final = 3.0
"""Seconds that a slow reader has, at the end, to take what waits for it."""

# As much as a pipe that says it is writable takes without blocking.
_PIECE: Final = getattr(select, "PIPE_BUF", 512)

_GONE: Final = frozenset({errno.EPIPE, errno.ECONNRESET, errno.EIO, errno.EBADF})
"""What a write says when nobody reads any more; EIO is a terminal that hung up."""


class Output:
    """A bounded buffer of lines before a file descriptor, emptied by :meth:`run`, a task of the caller's.

    :param notice: called with a number of lines that were dropped, once there is room again.
    """

    def __init__(self, fd: int, *, notice: Callable[[int], None], buffer: int = BUFFER) -> None:
        self.error: OSError | None = None
        """Why nothing can be written any more, where it is not that the reader went away."""
        self._fd = fd
        self._notice = notice
        self._buffer = buffer
        self._lines: deque[bytes] = deque()
        self._waiting = 0
        self._dropped = 0
        self._closing = False
        self._wake = anyio.Event()
        self._broken = anyio.Event()
        self._scope = anyio.CancelScope()

    @property
    def waiting(self) -> int:
        """Bytes that have not been written yet."""
        return self._waiting

    @property
    def idle(self) -> bool:
        """Whether everything has been written."""
        return not self._waiting

    def write(self, line: str, *, end: str = "\n", last: bool = False) -> None:
        """Put a line into the buffer, or count it as dropped where that is full; a `last` one is always put in."""
        if self._broken.is_set():
            return
        data = (line + end).encode(errors="backslashreplace")
        if self._waiting + len(data) > self._buffer and not last:
            self._dropped += 1
            return
        self._lines.append(data)
        self._waiting += len(data)
        self._wake.set()

    def close(self) -> None:
        """Let :meth:`run` end when the buffer is empty, or after a last chance."""
        self._tell_dropped()
        self._closing = True
        self._scope.deadline = anyio.current_time() + LAST_CHANCE
        self._wake.set()

    async def wait_broken(self) -> None:
        """Wait until nothing can be written any more."""
        await self._broken.wait()

    async def run(self) -> None:
        """Write what is in the buffer, until :meth:`close` or until the reader is gone."""
        own = _own_description(self._fd)
        try:
            with self._scope:
                if own is None:
                    await self._empty(self._fd, blocking=True)
                else:
                    await self._empty(own, blocking=False)
        except OSError as error:
            if error.errno not in _GONE:
                self.error = error
        finally:
            self._broken.set()
            self._lines.clear()
            if own is not None:
                os.close(own)

    async def _empty(self, fd: int, *, blocking: bool) -> None:
        piece = b""
        while True:
            while self._lines and len(piece) < _PIECE:
                piece += self._lines.popleft()
            if not piece:
                if self._closing:
                    return
                self._wake = anyio.Event()
                await self._wake.wait()
                continue
            if blocking:
                await _writable(fd)
            try:
                written = os.write(fd, piece[:_PIECE])
            except BlockingIOError:
                await _writable(fd)
                continue
            piece = piece[written:]
            self._waiting -= written
            if self._waiting < self._buffer // 2:
                self._tell_dropped()

    def _tell_dropped(self) -> None:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._notice(dropped)


async def _writable(fd: int) -> None:
    try:
        await anyio.wait_writable(fd)
    except PermissionError:
        # epoll's word for a regular file or /dev/null, which are always writable.
        await anyio.lowlevel.checkpoint()


def _own_description(fd: int) -> int | None:
    """Open a pipe or terminal anew without blocking, where the system can; else writes are small and polled for.

    The flag belongs to the open file description, which the shell and the other end of `2>&1` share: setting it there
    would break them.
    """
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISFIFO(mode) or os.isatty(fd):
            return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        pass
    return None
