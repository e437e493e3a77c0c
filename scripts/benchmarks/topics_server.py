"""The other process of `topics`: nodes that tell of heads and of every attestation, each in its own spelling.

What is told ends in the moment of its write, in nanoseconds of CLOCK_MONOTONIC, which is one clock for all processes of
a machine: a head in its root, an attestation in its signature.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import cast

from scripts.benchmarks.routing_answers import Answers, root_of
from scripts.benchmarks.routing_server import genesis_for
from scripts.benchmarks.server import ROOT, told_by

NODES = 3
HEAD_EVERY = 0.5
"""Seconds between two heads, which all nodes announce at the same instant."""
_TICK = 0.002
"""Seconds between two looks at what is due."""
_SETTLED = 0.5
"""Seconds from the last stream's opening to the first event: who follows knows by then which chain each node is on."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What every node does.

    :param slots: how long, in slots of `slot_duration` seconds.
    :param attestations: in each slot.
    :param within: seconds at the beginning of a slot in which they come, evenly.
    :param together: whether those of 20 ms come in one write, else each comes in its own.
    """

    slots: int
    slot_duration: float
    attestations: int
    within: float
    together: bool


@dataclass(frozen=True, slots=True)
class Serving:
    """Nodes at work."""

    plan: Plan
    process: subprocess.Popen[bytes]
    ports: tuple[int, ...]
    genesis_time: int

    def urls(self) -> list[str]:
        """Return the base URLs."""
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    async def begun(self) -> float:
        """Wait until all streams are open and the first event is about to come; return that moment."""
        return float((await told_by(self.process))["begin"])

    async def done(self) -> int:
        """Wait until all was written; return how many attestations each node told of."""
        return int((await told_by(self.process))["sent"])


@asynccontextmanager
async def telling(plan: Plan) -> AsyncIterator[Serving]:
    """Run nodes in another process. They begin when each has been asked for heads and for attestations."""
    command = [sys.executable, "-m", "scripts.benchmarks.topics_server", json.dumps(asdict(plan))]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:  # noqa: ASYNC220 - it is short
        try:
            told = await told_by(process)
            yield Serving(plan, process, tuple(told["ports"]), told["genesis_time"])
        finally:
            process.kill()


def _event(topic: str, data: str, framing: str) -> bytes:
    text = framing % (topic, data)
    return text.encode()


_FRAMINGS = ("event:%s\ndata:%s\n\n", "event: %s\ndata: %s\n\n", "id: 7\nevent: %s\ndata: %s\n\n")
"""As Lighthouse, Lodestar and Teku have them."""


def _vote(node: int, slot: int) -> bytes:
    """Return the event of a vote with places for the attester, its committee (both `%d`) and the moment (`%016x`)."""
    root, source, target = root_of(slot), root_of("source"), root_of("target")
    epoch = slot // 32
    checkpoints = (f'{{"epoch":"{epoch - 1}","root":"{source}"}}', f'{{"epoch":"{epoch}","root":"{target}"}}')
    data = f'"slot":"{slot}","index":"0","beacon_block_root":"{root}"'
    signature = "0x" + "ab" * 88 + "%(at)016x"
    vote = [
        '"committee_index":"%(committee)d"',
        '"attester_index":"%(attester)d"',
        f'"data":{{{data},"source":{checkpoints[0]},"target":{checkpoints[1]}}}',
        f'"signature":"{signature}"',
    ]
    text = "{" + ",".join(reversed(vote) if node == 1 else vote) + "}"
    return _event("single_attestation", text.replace('":', '": ') if node == 2 else text, _FRAMINGS[node])


def _head(node: int, slot: int, at: int) -> bytes:
    data = {
        "slot": str(slot),
        "block": f"{root_of(slot)[:-16]}{at:016x}",
        "state": root_of(-slot),
        "epoch_transition": False,
        "previous_duty_dependent_root": root_of("previous"),
        "current_duty_dependent_root": root_of("current"),
        "execution_optimistic": False,
    }
    return _chunk(_event("head", json.dumps(data), _FRAMINGS[node]))


def _chunk(event: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(event), event)


class _Nodes:
    """All nodes of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.genesis_time = genesis_for(plan.slot_duration)
        self.answers = Answers(plan.slot_duration, self.genesis_time)
        self.heads: dict[int, asyncio.Transport] = {}
        self.votes: dict[int, asyncio.Transport] = {}
        self.changed = asyncio.Event()
        self._templates: dict[tuple[int, int], bytes] = {}

    async def run(self) -> None:
        """Write what is planned."""
        while len(self.heads) < NODES or len(self.votes) < NODES:
            self.changed.clear()
            await self.changed.wait()
        await asyncio.sleep(_SETTLED)
        plan, begin = self.plan, time.monotonic()
        print(json.dumps({"begin": begin}), flush=True)
        sent, heads = 0, 0
        last = plan.attestations * plan.slots
        while (now := time.monotonic() - begin) < plan.slots * plan.slot_duration or sent < last:
            slots, part = divmod(now, plan.slot_duration)
            due = min(last, int(plan.attestations * (slots + min(1.0, part / plan.within))))
            self._tell(sent, due)
            sent = due
            if now >= heads * HEAD_EVERY:
                heads += 1
                self.answers.forget()
                at = time.monotonic_ns()
                for node, stream in self.heads.items():
                    stream.write(_head(node, self.answers.slot, at))
            await asyncio.sleep(10 * _TICK if plan.together else _TICK)
        print(json.dumps({"sent": sent}), flush=True)

    def _tell(self, first: int, last: int) -> None:
        streams = list(self.votes.items())
        votes: list[list[bytes]] = [[] for _ in streams]
        for number in range(first, last):
            slot, attester = divmod(number, self.plan.attestations)
            for place, (node, stream) in enumerate(streams):
                template = self._templates.get((node, slot))
                if template is None:
                    template = self._templates[node, slot] = _vote(node, self.answers.slot)
                at = time.monotonic_ns()
                vote = _chunk(template % {b"committee": attester % 64, b"attester": attester, b"at": at})
                if self.plan.together:
                    votes[place].append(vote)
                else:
                    stream.write(vote)
        for (_, stream), told in zip(streams, votes, strict=True):
            if told:
                stream.write(b"".join(told))


class _Connection(asyncio.Protocol):
    """One connection to a node."""

    transport: asyncio.Transport

    def __init__(self, nodes: _Nodes, node: int) -> None:
        self._nodes = nodes
        self._node = node
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - how it went does not matter
        for streams in (self._nodes.heads, self._nodes.votes):
            if streams.get(self._node) is self.transport:
                del streams[self._node]

    def data_received(self, data: bytes) -> None:
        # None of the requests that come here has a body.
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            request, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            target = request.split(b" ", 2)[1]
            if not target.startswith(b"/eth/v1/events"):
                self.transport.write(self._nodes.answers.to(target))
                continue
            self.transport.write(_STREAM)
            if b"topics=head" in target:
                self._nodes.heads[self._node] = self.transport
            if b"topics=single_attestation" in target:
                self._nodes.votes[self._node] = self.transport
            self._nodes.changed.set()


_STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


async def _serve(plan: Plan) -> None:
    nodes = _Nodes(plan)
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(partial(_Connection, nodes, node), "127.0.0.1", 0) for node in range(NODES)]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    print(json.dumps({"ports": ports, "genesis_time": nodes.genesis_time}), flush=True)
    await nodes.run()
    # Until we are killed: ends of streams are no part of what is measured.
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Plan(**json.loads(sys.argv[1]))))
