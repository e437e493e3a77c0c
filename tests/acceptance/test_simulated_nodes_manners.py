"""Manners of simulated nodes: what they have not got and how they say so, forms they refuse, headers they leave out."""

import json
from typing import Any

import anyio
import pytest

from tests.acceptance.raw_client import Reply, fetch
from tests.acceptance.simulated_api import RANDAO
from tests.conformance.openapi import JSON, SSZ
from vc_fallback.testing import (
    MISSING_IN_LODESTAR_1_5,
    Manners,
    Refusal,
    Request,
    SimulatedChain,
    SimulatedNode,
)
from vc_fallback.testing.api.router import ROUTES, answer
from vc_fallback.testing.framings import FramingName

pytestmark = pytest.mark.anyio

V3 = f"/eth/v3/validator/blocks/129?randao_reveal={RANDAO}"
HEAD = "/eth/v2/beacon/blocks/head"
DATA = "/eth/v1/validator/attestation_data?slot=128"


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def post(node: SimulatedNode, target: str, body: bytes = b"[]", **headers: str) -> Reply:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return await fetch(node.url, target, method="POST", headers=fields, body=body)


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        ("lighthouse", '{"code":404,"message":"NOT_FOUND","stacktraces":[]}'),
        ("prysm", "404 page not found\n"),
        ("nimbus", ""),
        (
            "teku",
            (
                '{"title":"Endpoint POST /eth/v2/beacon/blocks not found","status":404,"type":'
                '"https://javalin.io/documentation#endpointnotfound","details":{}}'
            ),
        ),
        ("lodestar", '{"statusCode":404,"error":"Not Found","message":"Route POST:/eth/v2/beacon/blocks not found"}'),
    ],
)
async def test_a_route_that_is_missing_is_a_404_in_the_words_of_the_client(framing: FramingName, body: str) -> None:
    """Q13; Lodestar 1.5.1 by its recording."""
    missing = {"publishBlockV2"}
    async with SimulatedNode(SimulatedChain(), framing=framing, routes_missing=missing) as node:
        reply = await post(node, "/eth/v2/beacon/blocks", Content_Type=JSON)
        assert (reply.status, reply.body.decode()) == (404, body)
        assert not node.published
        node.manners.routes_missing = ()
        assert (await post(node, "/eth/v2/beacon/blocks", Content_Type=JSON)).status == 400


@pytest.mark.parametrize(
    "missing",
    [{"produceBlockV3": 501}, {"/eth/v3/validator/blocks/{slot}": 501}, {"GET /eth/v3/validator/blocks/{slot}": 501}],
)
async def test_a_route_may_be_missing_with_another_status(missing: dict[str, int]) -> None:
    """By operation, by template, by method and template; 405 and 501."""
    async with SimulatedNode(SimulatedChain(), routes_missing=missing) as node:
        assert (await fetch(node.url, V3)).status == 501
        node.manners.routes_missing = dict.fromkeys(missing, 405)
        reply = await fetch(node.url, V3)
        assert (reply.status, reply.json["message"]) == (405, "METHOD_NOT_ALLOWED")
        node.manners.routes_missing = {"POST /eth/v1/beacon/states/{state_id}/validators"}
        assert (await post(node, "/eth/v1/beacon/states/head/validators", b"{}", Content_Type=JSON)).status == 404
        assert (await fetch(node.url, "/eth/v1/beacon/states/head/validators")).status == 200


@pytest.mark.parametrize(
    ("framing", "status"), [("lighthouse", 405), ("teku", 405), ("lodestar", 404), ("nimbus", 404)]
)
async def test_a_method_that_a_route_has_not_got_is_told(framing: FramingName, status: int) -> None:
    async with SimulatedNode(SimulatedChain(), framing=framing) as node:
        assert (await fetch(node.url, "/eth/v1/node/version", method="DELETE")).status == status


async def test_an_old_lodestar_can_be_played() -> None:
    """What a real Lodestar 1.5.1 lacks, it lacks: routes, SSZ, the version header."""
    operations = {route.operation for route in ROUTES}
    assert operations >= MISSING_IN_LODESTAR_1_5
    chain = SimulatedChain(slots_per_epoch=8, forks={"capella": 0})
    async with SimulatedNode(chain, framing="lodestar", ssz=False, routes_missing=MISSING_IN_LODESTAR_1_5) as node:
        node.manners.version_header = None
        assert (await fetch(node.url, V3.replace("129", "33"))).status == 404
        older = f"/eth/v2/validator/blocks/33?randao_reveal={RANDAO}"
        reply = await fetch(node.url, older, headers={"Accept": SSZ})
        assert (reply.status, reply.headers["content-type"], reply.json["version"]) == (200, JSON, "capella")
        assert "eth-consensus-version" not in reply.headers
        assert (await post(node, "/eth/v1/beacon/pool/attestations", Content_Type=JSON)).body == b"{}"


async def test_a_node_without_ssz_ignores_accept_and_refuses_requests_in_it() -> None:
    """Case 56: 415 in the words of its client, whose `code` is a word."""
    async with SimulatedNode(SimulatedChain(), ssz=False, framing="lodestar") as node:
        for target in (DATA, HEAD):
            reply = await fetch(node.url, target, headers={"Accept": SSZ})
            assert (reply.status, reply.headers["content-type"]) == (200, JSON)
        told: Any = {"Content_Type": SSZ, "Eth_Consensus_Version": "fulu"}
        reply = await post(node, "/eth/v2/beacon/pool/attestations", b"", **told)
        assert (reply.status, reply.json["code"]) == (415, "FST_ERR_CTP_INVALID_MEDIA_TYPE")
        assert not node.published
        node.manners.ssz = True
        assert (await post(node, "/eth/v2/beacon/pool/attestations", b"", **told)).status == 200


@pytest.mark.parametrize("framing", ["lighthouse", "prysm", "teku", "nimbus", "lodestar"])
async def test_forms_that_no_route_has_are_refused(framing: FramingName) -> None:
    """415 for SSZ where there is only JSON; 406 for what cannot be answered."""
    async with SimulatedNode(SimulatedChain(), framing=framing) as node:
        reply = await post(node, "/eth/v1/beacon/pool/sync_committees", b"", Content_Type=SSZ)
        assert reply.status == 415
        assert (await fetch(node.url, DATA, headers={"Accept": "text/html"})).status == 406


async def test_a_node_may_refuse_publishes_that_accept_only_ssz() -> None:
    """Case 57: Prysm; others do not care."""
    async with SimulatedNode(SimulatedChain()) as node:
        told: Any = {"Content_Type": JSON, "Accept": SSZ}
        target = "/eth/v1/beacon/pool/sync_committees"
        assert (await post(node, target, **told)).status == 200
        node.manners.strict_accept = True
        assert (await post(node, target, **told)).status == 406
        assert (await post(node, target, **{**told, "Accept": f"{SSZ}, */*;q=0.1"})).status == 200
        assert (await fetch(node.url, "/eth/v1/node/version", headers={"Accept": SSZ})).status == 406
    async with SimulatedNode(SimulatedChain(), framing="prysm") as node:
        assert (await post(node, target, **told)).status == 406


async def test_the_version_header_may_be_written_otherwise_or_be_missing() -> None:
    """Case 58: lower case, not there at all; JSON still tells it in the body."""
    async with SimulatedNode(SimulatedChain()) as node, await anyio.connect_tcp("127.0.0.1", node.port) as stream:

        async def head(accept: str) -> bytes:
            await stream.send(f"GET {HEAD} HTTP/1.1\r\nHost: node\r\nAccept: {accept}\r\n\r\n".encode())
            received = b""
            while b"\r\n\r\n" not in received:
                received += await stream.receive()
            text, _, rest = received.partition(b"\r\n\r\n")
            (length,) = (line for line in text.split(b"\r\n") if line.startswith(b"Content-Length: "))
            while len(rest) < int(length.partition(b": ")[2]):
                rest += await stream.receive()
            return text

        assert b"\r\nEth-Consensus-Version: fulu" in await head(SSZ)
        node.manners.version_header = "eth-consensus-version"
        assert b"\r\neth-consensus-version: fulu" in await head(JSON)
        node.manners.version_header = None
        assert b"ersion:" not in await head(SSZ)
        assert (await fetch(node.url, HEAD)).json["version"] == "fulu"


async def test_a_refusal_heals_with_the_rest() -> None:
    async with SimulatedNode(SimulatedChain()) as node:
        target = "/eth/v1/validator/prepare_beacon_proposer"
        body = json.dumps([{"validator_index": "1", "fee_recipient": "0x" + "aa" * 20}]).encode()
        node.inject(target, Refusal("not today", status=503))
        reply = await post(node, target, body, Content_Type=JSON)
        assert (reply.status, reply.json["message"]) == (503, "not today")
        assert not node.state.pool.fee_recipients
        node.heal()
        assert (await post(node, target, body, Content_Type=JSON)).status == 200
        assert [one.status for one in node.prepared] == [503, 200]


async def test_no_request_breaks_a_node() -> None:
    """Every route with nonsense in its path, its query and its body is answered, with a status for it."""
    words = ["", "x", "-1", "0", "33", str(2**64 - 1), str(2**64), "0x", "0x" + "00" * 32, "head", "%00", "1e3"]
    names = ["slot", "epoch", "index", "committee_index", "id", "randao_reveal", "parent_root", "beacon_block_root"]
    bodies = [b"", b"null", b"[]", b"{}", b"[[]]", b"[{}]", b'["1"]', b"\xff" * 300, b"[" * 5000, b"\x04\0\0\0" * 99]
    for fork in ("phase0", "deneb", "fulu", "gloas"):
        state = SimulatedNode(SimulatedChain(forks={fork: 0})).state
        for client in ("lighthouse", "prysm", "teku", "nimbus", "lodestar"):
            state.manners = Manners(client, checks="all" if client != "prysm" else "form")
            for route in ROUTES:
                for number, word in enumerate(words):
                    target = "/".join(word if part.startswith("{") else part for part in route.template.split("/"))
                    target += f"?{names[number % 8]}={word}&{names[(number + 3) % 8]}=1"
                    told = {"content-type": (JSON, SSZ)[number % 2], "accept": SSZ, "eth-consensus-version": fork}
                    body = bodies[number % len(bodies)]
                    request = Request(route.method, target, "HTTP/1.1", told, body, 0.0, 1)
                    assert 200 <= answer(state, request).status <= 503, (route.operation, word)
