"""The command as a process of its own, for tests."""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

COMMAND = (sys.executable, "-m", "vc_fallback.cli.main")
ROOT = Path(__file__).parents[1]


class Process:
    """A running command. Its lines are read as they come; leaving the context kills it if it still runs.

    :param env: environment variables beside the present ones.
    :param command: what is run, ours unless it is given.
    """

    def __init__(self, *arguments: str, env: Mapping[str, str] | None = None, command: Sequence[str] = COMMAND) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [*command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            bufsize=0,
            env={**os.environ, **(env or {})},
        )
        self._rest = b""
        self._rest_of_errors = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def line(self, timeout: float = 20) -> str:
        """Wait for the next line of stdout."""
        line, self._rest = self._next(self._process.stdout, self._rest, timeout)
        return line

    def error_line(self, timeout: float = 20) -> str:
        """Wait for the next line of stderr."""
        line, self._rest_of_errors = self._next(self._process.stderr, self._rest_of_errors, timeout)
        return line

    def _next(self, stream: IO[bytes] | None, rest: bytes, timeout: float) -> tuple[str, bytes]:
        assert stream is not None
        end = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while b"\n" not in rest:
                assert selector.select(max(0, end - time.monotonic())), "no line in time"
                data = os.read(stream.fileno(), 65536)
                assert data, f"ended: {self.errors()}"
                rest += data
        line, _, rest = rest.partition(b"\n")
        return line.decode(), rest

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def close_stdout(self) -> None:
        """Go away as the reader of stdout."""
        assert self._process.stdout is not None
        self._process.stdout.close()

    def wait(self, timeout: float = 20) -> int:
        """Wait for the end, without reading, and return the exit status."""
        return self._process.wait(timeout)

    def finish(self, timeout: float = 40) -> tuple[int, list[str], str]:
        """Read to the end; return the exit status, the further lines of stdout, and stderr."""
        out, err = self._process.communicate(timeout=timeout)
        return self._process.returncode, (self._rest + out).decode().splitlines(), (self._rest_of_errors + err).decode()

    def errors(self) -> str:
        """Return stderr, once the process has ended."""
        assert self._process.stderr is not None
        return self._process.stderr.read().decode()


def run(*arguments: str, timeout: float = 40) -> tuple[int, list[str], str]:
    """Run the command to its end; return its exit status, the lines of stdout, and stderr."""
    with Process(*arguments) as process:
        return process.finish(timeout)


@contextmanager
def devnet(count: int, *arguments: str) -> Iterator[list[str]]:
    """Serve simulated nodes in another process; yield their URLs."""
    with Process("devnet", str(count), *arguments) as process:
        yield [process.line() for _ in range(count)]
        process.send(signal.SIGTERM)
        assert process.finish()[0] == 0
