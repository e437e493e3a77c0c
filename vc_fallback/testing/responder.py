"""Answers the requests of a simulated node: keeps them on record, lets faults meet them, else answers properly."""

from collections import Counter

import anyio

from vc_fallback.testing.api import router
from vc_fallback.testing.broadcast import RECORDS, Broadcast
from vc_fallback.testing.faults import EVENTS, Cut, Delay, Fault, Faults, Hang, Refusal, StreamHeaders
from vc_fallback.testing.http import Answer, Request
from vc_fallback.testing.pool import Records
from vc_fallback.testing.server import Connection, Server
from vc_fallback.testing.state import NodeState
from vc_fallback.testing.streams import StreamRecord


class Responder:
    """Answers what comes in on a node's connections.

    :param latency: seconds before each answer.
    """

    def __init__(self, state: NodeState, server: Server, broadcast: Broadcast, faults: Faults, latency: float) -> None:
        self.latency = latency
        self.requests: Records[Request] = Records()
        self.counts: Counter[str] = Counter()
        self._state = state
        self._server = server
        self._broadcast = broadcast
        self._faults = faults

    async def respond(self, connection: Connection, request: Request) -> bool:
        """Answer a request; return whether the connection lives on."""
        self.requests.append(request)
        if len(self.counts) < RECORDS or request.path in self.counts:
            self.counts[request.path] += 1
        record = None
        if request.path == EVENTS and request.method == "GET":
            record = self._broadcast.record(request)
        fault = self._faults.meet(request)
        try:
            wait = self.latency + (fault.seconds if isinstance(fault, Delay) else 0.0)
            if wait > 0:
                await anyio.sleep(wait)
            if record is not None and (fault is None or isinstance(fault, Delay | StreamHeaders)):
                headers = fault if isinstance(fault, StreamHeaders) else StreamHeaders()
                return await self._broadcast.serve(connection, request, record, headers)
            return await self._answer(connection, request, fault, record)
        finally:
            if record is not None and record.closed is None:
                record.closed = anyio.current_time()
                record.closed_by = record.closed_by or "node"

    async def _answer(
        self, connection: Connection, request: Request, fault: Fault | None, record: StreamRecord | None
    ) -> bool:
        if isinstance(fault, Hang) and not fault.after_headers:
            return await self._silence(connection, record)
        if isinstance(fault, Answer):
            answer = fault
        else:
            until = router.held_until(self._state, request)
            if until is not None:
                await anyio.sleep_until(until)
            answer = router.answer(self._state, request, fault if isinstance(fault, Refusal) else None)
        keep_alive = request.keep_alive and answer.headers.get("Connection", "").lower() != "close"
        data = answer.encode(method=request.method, keep_alive=keep_alive)
        if isinstance(fault, Hang):
            await self._head_alone(connection, data, record)
            return await self._silence(connection, record)
        if isinstance(fault, Cut):
            connection.reset = fault.reset
            await self._server.write(connection, data[: fault.after])
            return False
        if record is not None:
            record.status = answer.status
        await self._server.write(connection, data)
        return keep_alive

    async def _silence(self, connection: Connection, record: StreamRecord | None) -> bool:
        await connection.reader.wait_closed()
        if record is not None:
            record.closed_by = "client"
        return False

    async def _head_alone(self, connection: Connection, data: bytes, record: StreamRecord | None) -> None:
        if record is not None:
            data = self._broadcast.framing.head(self._state.chain.clock.unix())
            record.status = 200
        await self._server.write(connection, data[: data.index(b"\r\n\r\n") + 4])
