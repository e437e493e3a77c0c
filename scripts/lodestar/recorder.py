"""What a node really sent: its head events, read from a plain socket by code that the library has no part in."""

import contextlib
import json
import socket
import threading
import time
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlsplit

RECONNECT_PAUSE = 0.1
CONNECT_LIMIT = 2.0


class RecordedHead(NamedTuple):
    """A head event: Unix time when its last byte had arrived, slot, root as `0x…`, execution_optimistic."""

    time: float
    slot: int
    root: str
    optimistic: bool


class Recorder:
    """Records the head events of one node in a thread, from entering the block to leaving it.

    A lost connection is made again, so a node that is killed and restarted keeps being recorded.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self._heads: list[RecordedHead] = []
        self._grown = threading.Condition()
        self._stopped = threading.Event()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name=f"recorder {url}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        with self._grown:
            if self._socket is not None:
                self._hang_up(self._socket)
        self._thread.join()

    @property
    def heads(self) -> list[RecordedHead]:
        """All so far, in the order of their arrival."""
        with self._grown:
            return list(self._heads)

    @property
    def slots(self) -> list[int]:
        """The slots of `heads`."""
        return [head.slot for head in self.heads]

    def wait_for_slot(self, slot: int, timeout: float) -> RecordedHead:
        """The first head of `slot` or later.

        :raises TimeoutError: none came within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        with self._grown:
            while True:
                for head in self._heads:
                    if head.slot >= slot:
                        return head
                if not self._grown.wait(deadline - time.monotonic()):
                    seen = [head.slot for head in self._heads]
                    raise TimeoutError(f"no head of slot {slot} or later in {timeout} s, only {seen}")

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                connection = socket.create_connection(self._address, timeout=CONNECT_LIMIT)
            except OSError:
                self._stopped.wait(RECONNECT_PAUSE)
                continue
            with connection:
                connection.settimeout(None)
                with self._grown:
                    self._socket = connection
                if self._stopped.is_set():
                    return
                with contextlib.suppress(OSError):
                    self._record(connection)
                with self._grown:
                    self._socket = None
            self._stopped.wait(RECONNECT_PAUSE)

    def _record(self, connection: socket.socket) -> None:
        # An HTTP/1.0 client gets the body as it is, not in chunks, up to the end of the connection.
        host, port = self._address
        request = f"GET /eth/v1/events?topics=head HTTP/1.0\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n"
        connection.sendall(request.encode())
        event = ""
        with connection.makefile("rb") as lines:
            for raw in lines:
                if not raw.endswith(b"\n"):
                    return  # cut off when its node was killed
                name, _, value = raw.decode().strip().partition(":")
                if name == "event":
                    event = value.strip()
                elif name == "data" and event == "head":
                    self._keep(time.time(), json.loads(value))

    def _keep(self, now: float, event: dict[str, object]) -> None:
        optimistic = event.get("execution_optimistic") is True
        head = RecordedHead(now, int(str(event["slot"])), str(event["block"]), optimistic)
        with self._grown:
            self._heads.append(head)
            self._grown.notify_all()

    @staticmethod
    def _hang_up(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
