"""The other process of `health`: beacon nodes that answer what checks ask, each on a port of its own; some never do."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from scripts.benchmarks.server import ROOT, told_by

_SYNCING = {"head_slot": "100", "sync_distance": "0", "is_syncing": False, "is_optimistic": False, "el_offline": False}
_CHECKPOINT = {"epoch": "1", "root": "0x" + "11" * 32}
_ANSWERS = {
    "/eth/v1/node/syncing": _SYNCING,
    "/eth/v1/node/peer_count": {"connected": "50", "connecting": "0", "disconnected": "0", "disconnecting": "0"},
    "/eth/v1/beacon/states/head/finality_checkpoints": dict.fromkeys(
        ("previous_justified", "current_justified", "finalized"), _CHECKPOINT
    ),
}


@asynccontextmanager
async def checked_nodes(nodes: int, hanging: int) -> AsyncIterator[list[str]]:
    """Run nodes in another process, of which the first ones accept and never answer; yield their base URLs."""
    command = [sys.executable, "-m", "scripts.benchmarks.health_nodes", str(nodes), str(hanging)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:  # noqa: ASYNC220 - it is short
        try:
            yield [f"http://127.0.0.1:{port}" for port in (await told_by(process))["ports"]]
        finally:
            process.kill()


class _Node(asyncio.Protocol):
    """One connection to a node."""

    def __init__(self, *, hangs: bool) -> None:
        self._hangs = hangs
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            request, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            if not self._hangs:
                self._transport.write(_BYTES[request.split(b" ", 2)[1].decode()])


def _answer(data: object) -> bytes:
    body = json.dumps({"execution_optimistic": False, "finalized": True, "data": data}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


_BYTES = {path: _answer(data) for path, data in _ANSWERS.items()}


async def _serve(nodes: int, hanging: int) -> None:
    loop = asyncio.get_running_loop()
    ports = []
    for index in range(nodes):

        def node(index: int = index) -> _Node:
            return _Node(hangs=index < hanging)

        server = await loop.create_server(node, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps({"ports": ports}), flush=True)
    # Until we are killed.
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
