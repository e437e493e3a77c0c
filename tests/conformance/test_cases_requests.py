"""Cases from the field: requests to one node in every state that it can be in (15, 27, 29, 30, 34, 36, 38, 39, 40, 50).

By their very inputs, where no other test has them.
"""

import socket
from collections.abc import Awaitable, Sequence
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from tests.rawserver import RawConnection, RawServer, answer, replies, serve
from tests.scripted_node import in_json, refusal, talk
from tests.wire_helpers import Deaf
from vc_fallback import BeaconNode
from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Epoch, NodeId, Root, Slot
from vc_fallback.base.urls import BaseURL
from vc_fallback.node import failures
from vc_fallback.node.values.about import Syncing
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.dial import Address

pytestmark = pytest.mark.anyio

SLOT = Slot(161)
AA, BB = "0x" + "aa" * 32, "0x" + "bb" * 32
GENESIS = {"genesis_time": "1606824023", "genesis_validators_root": AA, "genesis_fork_version": "0x00000000"}


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time."""
    return virtual_time_backend


async def fails(call: Awaitable[object], error: type[NodeError], status: int | None = None) -> NodeError:
    """Await a call that is to fail with this very error."""
    with pytest.raises(NodeError) as caught:
        await call
    assert (type(caught.value), caught.value.status) == (error, status)
    return caught.value


def data(value: Any) -> bytes:
    return in_json({"data": value})


def attestation_data(root: str) -> bytes:
    point = {"epoch": "5", "root": AA}
    return data({"slot": "161", "index": "0", "beacon_block_root": root, "source": point, "target": point})


def attest(node: BeaconNode) -> Awaitable[Any]:
    return node.attestation_data(SLOT, timeout=5)


# --- whether it is there, and well


async def _mute(connection: RawConnection) -> None:
    await connection.until_gone()


async def test_node_that_never_answers_costs_its_time_alone() -> None:
    """Case 27: no connection for 1 s, or none at all, or a connection and no answer for as long as the call has."""
    with Deaf() as deaf:
        async with BeaconNode.at(f"http://127.0.0.1:{deaf}") as node:
            began = anyio.current_time()
            await fails(attest(node), failures.ConnectTimeout)
            assert anyio.current_time() - began == pytest.approx(1.0)
            await fails(node.attestation_data(SLOT, timeout=0.5), failures.RequestTimeout)
            assert anyio.current_time() - began == pytest.approx(1.5)
    async with serve(_mute) as server, BeaconNode.at(server.url) as node:
        began = anyio.current_time()
        await fails(node.attestation_data(SLOT, timeout=0.5), failures.RequestTimeout)
        assert anyio.current_time() - began == pytest.approx(0.5)
        url = server.url
    async with BeaconNode.at(url) as node:
        began = anyio.current_time()
        error = await fails(attest(node), failures.ConnectError)
        assert anyio.current_time() - began == pytest.approx(0.0)
        assert error.blames_node


OFFLINE = (
    b'{"data":{"head_slot":"6504090","sync_distance":"0","is_syncing":false,"is_optimistic":false,"el_offline":true}}'
)
CLAIMS = [
    (
        b'{"data":{"head_slot":"5127470","sync_distance":"178","is_syncing":true,"is_optimistic":false}}',
        Syncing(Slot(5127470), 178, True, False, None),
    ),
    (OFFLINE, Syncing(Slot(6504090), 0, False, False, True)),
    (b'{"data":{"head_slot":"1","sync_distance":"0","is_syncing":false}}', Syncing(Slot(1), 0, False, None, None)),
]


async def test_what_a_node_claims_of_itself_is_passed_on() -> None:
    """Cases 29, 30, N2: flags that it does not know are unknown. Each time anew: it may change within seconds (31)."""
    async with talk(*(in_json(body) for body, _ in CLAIMS)) as asked:
        for _, claim in CLAIMS:
            assert (await asked.node.syncing()).value == claim


async def test_values_of_a_configuration_that_are_no_strings() -> None:
    """Case 34: kept as they are; the chain is known all the same."""
    odd = {"BLOB_SCHEDULE": [{"EPOCH": "512", "MAX_BLOBS_PER_BLOCK": "12"}], "GAS_LIMIT_SCHEDULE": []}
    spec = {"SECONDS_PER_SLOT": "12", "SLOTS_PER_EPOCH": "32", **odd}
    async with talk(data(spec), data(GENESIS), data(spec)) as asked:
        assert (await asked.node.spec()).value == spec
        assert (await asked.node.identity()).value.slots_per_epoch == 32


UNBORN = answer(
    b'{"code":404,"message":"NOT_FOUND: Beacon chain genesis has not yet been observed.","stacktraces":[]}',
    status="404 Not Found",
)
NOBODY = {
    "Traefik": answer(b"404 page not found\n", status="404 Not Found"),
    "nginx": answer(b"<html><head><title>404 Not Found</title></head></html>", status="404 Not Found"),
    "Kong": answer(b'{"message":"no Route matched with those values"}', status="404 Not Found"),
    "nobody": answer(b"", status="404 Not Found"),
}


async def test_node_before_genesis_is_asked_again() -> None:
    """Case 36: Lighthouse says so of all that it is asked."""
    async with talk(UNBORN, UNBORN, data(GENESIS)) as asked:
        await fails(asked.node.genesis(), failures.NotFound, 404)
        await fails(attest(asked.node), failures.NotReady, 404)
        assert (await asked.node.genesis()).value.genesis_time == 1606824023


@pytest.mark.parametrize("page", NOBODY)
async def test_node_that_is_not_there_yet_behind_its_proxy_is_asked_again(page: str) -> None:
    """Case 36: whatever the proxy says of the node's routes, to know what is there they are asked until it is."""
    spec = {"SECONDS_PER_SLOT": "12", "SLOTS_PER_EPOCH": "32"}
    syncing = {"head_slot": "1", "sync_distance": "0", "is_syncing": False}
    good = [data(GENESIS), data(spec), data(syncing), attestation_data(AA)]
    async with talk(*[NOBODY[page]] * 2, *good, *[NOBODY[page]] * 2, data(syncing), attestation_data(AA)) as asked:
        for call in (asked.node.identity, asked.node.syncing):
            with pytest.raises(failures.SemanticError):
                await call()
        await asked.node.identity()
        await asked.node.syncing()
        await attest(asked.node)
        # Gone for a moment, and none of its routes is written off.
        await fails(asked.node.syncing(), failures.NotFound, 404)
        await fails(attest(asked.node), failures.NotFound, 404)
        await asked.node.syncing()
        await attest(asked.node)


async def test_node_that_has_moved_is_found_by_the_next_call() -> None:
    """Cases 36, 38: its name is not known yet; then its old address accepts, and answers no more."""

    async def frozen(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(attestation_data(AA))
        await connection.until_gone()

    servers: list[RawServer] = []

    async def resolver(host: str, port: int) -> Sequence[Address]:
        if not servers:
            raise OSError(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, ("127.0.0.1", servers[-1].port))]

    http = HTTPClient(BaseURL.parse("http://bn.example:5052"), resolver=resolver)
    async with serve(frozen) as old, serve(replies(attestation_data(BB))) as new:
        node = BeaconNode(NodeId("n1"), http, clock=Clock())
        assert "name cannot be resolved" in (await fails(attest(node), failures.ConnectError)).problem
        servers.append(old)
        await attest(node)
        servers.append(new)
        await fails(attest(node), failures.RequestTimeout)
        assert (await attest(node)).value.beacon_block_root == bytes.fromhex(BB[2:])
        await node.aclose()
    assert len(old.connections) == len(new.connections) == 1


NO_BUILDER = [
    (500, "UNHANDLED_ERROR: BuilderMissing"),
    (400, 'Invalid remote response: {"code":502,"message":"no successful relay response"}'),
    (500, 'java.lang.IllegalArgumentException: Invalid remote response: {"code":502,"message":"no relay"}\n'),
    (500, "java.lang.RuntimeException: Unable to register validators: builder not available"),
]


@pytest.mark.parametrize(("status", "text"), NO_BUILDER, ids=[f"{status} {text[:25]}" for status, text in NO_BUILDER])
async def test_builder_that_is_not_there_is_no_failure_of_the_node(status: int, text: str) -> None:
    """Case 39: a registration that cannot be handed on takes no node out of the rank."""
    async with talk(refusal(status, text)) as asked:
        error = await fails(
            asked.node.register_validators([Encodings(ssz=bytes(180), json=b"{}")]), failures.BadRequest, status
        )
        assert not error.blames_node


HEALTH: list[tuple[int, bytes, type[NodeError] | None]] = [
    (200, b"", None),
    (206, b"", None),
    (206, b"<html>", None),
    (200, b"null", None),
    (503, b"", failures.NotReady),
    (500, b"", failures.ServerError),
    (500, b'{"code":500,"message":"not synced"}', failures.NotReady),
    (502, b"<html><title>502 Bad Gateway</title>", failures.ServerError),
]


@pytest.mark.parametrize(("status", "body", "error"), HEALTH)
async def test_codes_of_the_health_endpoint(status: int, body: bytes, error: type[NodeError] | None) -> None:
    """Case 40: 206 is there and not fully able; an empty body is legal, and every 5xx is a node that is not well."""
    async with talk(answer(body, status=f"{status} -")) as asked:
        if error is None:
            assert (await asked.node.health()).value == status
        else:
            assert (await fails(asked.node.health(), error, status)).blames_node


# --- answers that come too soon


async def test_duties_whose_root_a_node_cannot_find_are_asked_for_again() -> None:
    """Case 15: Caplin at genesis, in its words; the route is there all the same (erigon#24116)."""
    reply = {"dependent_root": AA, "execution_optimistic": False, "data": []}
    async with talk(refusal(404, "dependent root not found for epoch 1"), in_json(reply)) as asked:
        error = await fails(asked.node.ptc_duties(Epoch(1), [3]), failures.NotFound, 404)
        assert not error.blames_node
        assert (await asked.node.ptc_duties(Epoch(1), [3])).value.dependent_root == bytes.fromhex(AA[2:])


async def test_attestation_data_of_before_the_head_is_given_and_can_be_asked_for_again() -> None:
    """Case 50: nothing is kept of an answer, so the second one of the same slot is the node's own."""
    async with talk(attestation_data(AA), attestation_data(BB)) as asked:
        roots = [(await attest(asked.node)).value.beacon_block_root for _ in range(2)]
        assert roots == [Root(bytes.fromhex(root[2:])) for root in (AA, BB)]
        assert {urlsplit(request.target).query for request in asked.requests} == {"slot=161&committee_index=0"}
