"""One beacon node that gives the answers a test has written down, in order, on real sockets, and a client of it."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.rawserver import Handler, RawConnection, RawServer, Request, answer, serve
from tests.wire_helpers import Authority, client_of
from vc_fallback.base.clock import Clock
from vc_fallback.base.types import Epoch, NodeId, Root
from vc_fallback.chain import ChainIdentity, Fork, SlotClock
from vc_fallback.node.client import BeaconNode
from vc_fallback.wire.tls import tls_context

FORKS = ("phase0", "altair", "bellatrix", "capella", "deneb", "electra", "fulu", "gloas", "heze")
SLOTS_PER_EPOCH = 32


def slot_in(fork: str) -> int:
    """Return a slot of a fork in the chain of these tests: each fork lasts ten epochs."""
    return FORKS.index(fork) * 10 * SLOTS_PER_EPOCH + 7


def clock_in(fork: str) -> Callable[[], SlotClock]:
    """Return the slots of that chain, with a present in the middle of a fork."""
    forks = tuple(Fork(name, bytes([number]) * 4, Epoch(number * 10)) for number, name in enumerate(FORKS))
    chain = ChainIdentity(0.0, Root(bytes(32)), 12.0, SLOTS_PER_EPOCH, "mainnet", forks)
    clock = Clock()
    offset = 12.0 * (slot_in(fork) + 5 * SLOTS_PER_EPOCH) - clock.now()
    return lambda: SlotClock(chain, offset)


def ssz(body: bytes, **headers: str) -> bytes:
    """Return an answer in SSZ; `Eth_Consensus_Version="fulu"` is its header of that name with hyphens."""
    return _answer(body, "application/octet-stream", headers)


def in_json(value: Any, **headers: str) -> bytes:
    """Return an answer in JSON: a value, or its bytes as they are."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return _answer(body, "application/json", headers)


def refusal(status: int, message: str = "no") -> bytes:
    """Return an error as the API defines it."""
    body = json.dumps({"code": status, "message": message}).encode()
    return answer(body, status=f"{status} -", headers="Content-Type: application/json\r\n")


def _answer(body: bytes, media_type: str, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return answer(body, headers=f"Content-Type: {media_type}\r\n{lines}")


@dataclass
class Talk:
    """A client, its node's server, and the requests that came, in order."""

    node: BeaconNode
    server: RawServer
    requests: list[Request]

    @property
    def targets(self) -> list[str]:
        """Method and path of each request."""
        return [f"{request.method} {urlsplit(request.target).path}" for request in self.requests]

    def query(self, number: int = -1) -> list[tuple[str, str]]:
        """Return the query of a request."""
        return parse_qsl(urlsplit(self.requests[number].target).query, keep_blank_values=True)


@asynccontextmanager
async def talk(
    *answers: bytes,
    handler: Callable[[list[Request]], Handler] | None = None,
    slots: Callable[[], SlotClock | None] = lambda: None,
    authority: Authority | None = None,
) -> AsyncIterator[Talk]:
    """Serve the answers, the last of them again and again, and make a client that asks.

    :param handler: in the place of answers: takes the list of requests, which it may add to.
    :param authority: where it is given, both sides speak TLS.
    """
    requests: list[Request] = []

    async def in_order(connection: RawConnection) -> None:
        while True:
            requests.append(await connection.request())
            await connection.send(answers[min(len(requests), len(answers)) - 1])

    made = in_order if handler is None else handler(requests)
    ours, theirs = (None, None) if authority is None else (tls_context(authority.settings), authority.server)
    async with serve(made, tls=theirs) as server, client_of(server, tls=ours) as client:
        yield Talk(BeaconNode(NodeId("n1"), client, clock=Clock(), slots=slots), server, requests)
