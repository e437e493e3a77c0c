"""Signed blocks of 30 MB to a node that does not take them as it should (Q10; hazards 13, 14).

On real sockets and in real time: TCP's own timers take part.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from tests.rawserver import Gone, Handler, RawConnection, Request, answer
from tests.scripted_node import Talk, talk
from tests.wire_helpers import Authority
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Sourced
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.publication import Publication

pytestmark = pytest.mark.anyio

MB = 1024 * 1024
JSON, SSZ = "application/json", "application/octet-stream"
SMALL = Encodings(ssz=b"\x00block")
LARGE = Encodings(ssz=bytes(30 * MB), json=b'{"a":"' + b"0" * 30 * MB + b'"}')
OK = answer(b"")
EARLY: dict[int, type[NodeError] | None] = {
    200: None,
    202: None,
    400: failures.BadRequest,
    413: failures.PayloadTooLarge,
    503: failures.NotReady,
}

Call = Callable[[BeaconNode, Encodings, float], Awaitable[Sourced[Publication]]]
Trouble = Callable[[RawConnection], Awaitable[None]]


def block(node: BeaconNode, value: Encodings, timeout: float) -> Awaitable[Sourced[Publication]]:
    return node.publish_block(value, "fulu", timeout=timeout)


def blinded(node: BeaconNode, value: Encodings, timeout: float) -> Awaitable[Sourced[Publication]]:
    return node.publish_blinded_block(value, "fulu", timeout=timeout)


def envelope(node: BeaconNode, value: Encodings, timeout: float) -> Awaitable[Sourced[Publication]]:
    return node.publish_execution_payload_envelope(value, "gloas", blob_data_included=True, timeout=timeout)


every = pytest.mark.parametrize("call", [block, blinded, envelope])


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend


@pytest.fixture(params=["http", "https"])
def authority(request: pytest.FixtureRequest, tmp_path: Path) -> Authority | None:
    return Authority(tmp_path) if request.param == "https" else None


def at_first(trouble: Trouble) -> Callable[[list[Request]], Handler]:
    """Return a server whose first connection does something else than to take requests."""

    def make(requests: list[Request]) -> Handler:
        async def handler(connection: RawConnection) -> None:
            if connection.number == 0:
                await trouble(connection)
                return
            while True:
                requests.append(await connection.request())
                await connection.send(OK)

        return handler

    return make


def sent(asked: Talk) -> list[tuple[str, bytes]]:
    """Return form and bytes of each request."""
    return [(request.headers["content-type"], request.body) for request in asked.requests]


async def works(asked: Talk) -> None:
    """Publish a small block, which is to be taken at once, on the one connection that then stands."""
    assert (await block(asked.node, SMALL, 20)).value is Publication.ACCEPTED
    assert asked.node.http.statistics().open == 1


async def fails(call: Awaitable[object], error: type[NodeError]) -> None:
    """Await a call that is to fail."""
    with pytest.raises(error) as caught:
        await call
    assert type(caught.value) is error


@pytest.mark.parametrize("status", EARLY)
@pytest.mark.parametrize("then", ["close", "keep", "read on", "reset", "reset at once"])
async def test_answer_ahead_of_the_body_counts(status: int, then: str, authority: Authority | None) -> None:
    """Whatever becomes of the rest of the body, and the next call works."""

    async def trouble(connection: RawConnection) -> None:
        await connection.receive()
        await connection.send(answer(b'{"code":0,"message":"early"}', status=f"{status} -"))
        if then == "read on":
            await connection.until_gone()
        elif then != "reset at once":
            await anyio.sleep(30 if then == "keep" else 0.02)
        if then.startswith("reset"):
            connection.reset()

    async with talk(handler=at_first(trouble), authority=authority) as asked:
        error = EARLY[status]
        with anyio.fail_after(20):
            if error is None:
                await block(asked.node, LARGE, 25)
            else:
                await fails(block(asked.node, LARGE, 25), error)
        await works(asked)


@every
@pytest.mark.parametrize("read", [1, 5 * MB])
async def test_reset_while_the_body_is_written_is_a_lost_connection(
    call: Call, read: int, authority: Authority | None
) -> None:
    """It is not sent once more: a new connection was not stale."""

    async def trouble(connection: RawConnection) -> None:
        count = 0
        while count < read:
            count += len(await connection.receive())
        connection.reset()

    async with talk(handler=at_first(trouble), authority=authority) as asked:
        with anyio.fail_after(20):
            await fails(call(asked.node, LARGE, 25), failures.ConnectionLost)
        assert len(asked.server.connections) == 1
        await works(asked)


@every
@pytest.mark.parametrize("drip", [False, True])
async def test_node_that_does_not_read_costs_no_more_than_the_time(
    call: Call, drip: bool, authority: Authority | None
) -> None:
    async def trouble(connection: RawConnection) -> None:
        if not drip:
            await anyio.sleep(30)
        while True:
            await anyio.sleep(0.05)
            try:
                connection.socket.recv(1)
            except OSError:
                raise Gone from None

    async with talk(handler=at_first(trouble), authority=authority) as asked:
        began = anyio.current_time()
        await fails(call(asked.node, LARGE, 0.3), failures.RequestTimeout)
        assert 0.29 < anyio.current_time() - began < 10
        assert asked.node.http.statistics().open == 0
        await works(asked)


@every
async def test_body_on_a_kept_connection_that_ended_is_sent_once_more(call: Call, authority: Authority | None) -> None:
    """Q10: and told as a second attempt."""

    async def trouble(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(OK)
        await connection.receive()
        connection.reset()

    async with talk(handler=at_first(trouble), authority=authority) as asked:
        await works(asked)
        assert (await call(asked.node, LARGE, 25)).provenance.attempts == 2
        assert sent(asked) == [(SSZ, LARGE.ssz)]


@every
async def test_ssz_that_is_refused_early_goes_out_as_json(call: Call, authority: Authority | None) -> None:
    """Case 56 with a body that is not read."""

    async def trouble(connection: RawConnection) -> None:
        await connection.receive()
        await connection.send(answer(b'{"code":415,"message":"Unsupported Media Type"}', status="415 -"))
        await anyio.sleep(0.02)
        connection.reset()

    async with talk(handler=at_first(trouble), authority=authority) as asked:
        assert (await call(asked.node, LARGE, 25)).provenance.attempts == 2
        assert sent(asked) == [(JSON, LARGE.json)]


async def test_both_forms_together_have_the_one_time_of_the_call() -> None:
    async def trouble(connection: RawConnection) -> None:
        await connection.receive()
        await anyio.sleep(0.2)
        await connection.send(answer(status="415 -"))
        await anyio.sleep(30)

    def make(requests: list[Request]) -> Handler:
        async def handler(connection: RawConnection) -> None:
            await (anyio.sleep(30) if connection.number else trouble(connection))

        return handler

    async with talk(handler=make) as asked:
        began = anyio.current_time()
        await fails(block(asked.node, LARGE, 0.5), failures.RequestTimeout)
        assert 0.49 < anyio.current_time() - began < 10
        assert len(asked.server.connections) == 2
