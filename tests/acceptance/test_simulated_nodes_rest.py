"""Simulated nodes: what REST answers, and that it fits the chain."""

import hashlib
from typing import Any

import anyio
import pytest

from tests.acceptance.raw_client import dialled, exchange, fetch
from vc_fallback.testing import REMOVED, Delay, SimulatedChain, SimulatedNode, gzipped, redirect

pytestmark = pytest.mark.anyio

SYNCING = "/eth/v1/node/syncing"
SPEC = "/eth/v1/config/spec"


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


def header_root(message: dict[str, str]) -> str:
    """`hash_tree_root` of a BeaconBlockHeader by hand: five leaves, padded to eight."""
    leaves = [int(message[name]).to_bytes(32, "little") for name in ("slot", "proposer_index")]
    leaves += [bytes.fromhex(message[name][2:]) for name in ("parent_root", "state_root", "body_root")]
    leaves += [bytes(32)] * 3
    while len(leaves) > 1:
        pairs = zip(leaves[::2], leaves[1::2], strict=True)
        leaves = [hashlib.sha256(left + right).digest() for left, right in pairs]
    return "0x" + leaves[0].hex()


async def test_headers_hash_to_their_roots_and_link_to_their_parents() -> None:
    """Roots are real: `hash_tree_root` of the header, parents are the blocks before, missed slots left out."""
    chain = SimulatedChain(start_slot=100)
    chain.miss(102, 103)
    async with SimulatedNode(chain) as node:
        await anyio.sleep(12 * 8)
        head = (await fetch(node.url, "/eth/v1/beacon/headers/head")).json
        assert head["execution_optimistic"] is False
        assert head["data"]["canonical"] is True
        slots = []
        found = head["data"]
        for _ in range(8):
            assert header_root(found["header"]["message"]) == found["root"]
            slots.append(int(found["header"]["message"]["slot"]))
            parent = found["header"]["message"]["parent_root"]
            found = (await fetch(node.url, f"/eth/v1/beacon/headers/{parent}")).json["data"]
            assert found["root"] == parent
        assert slots == [107, 106, 105, 104, 101, 100, 99, 98]


async def test_blocks_are_found_by_slot_root_and_name() -> None:
    chain = SimulatedChain(start_slot=100)
    chain.miss(102)
    async with SimulatedNode(chain) as node:
        await anyio.sleep(12 * 4)
        by_slot = (await fetch(node.url, "/eth/v1/beacon/headers/101")).json["data"]
        root = (await fetch(node.url, "/eth/v1/beacon/blocks/101/root")).json["data"]["root"]
        assert by_slot["root"] == root
        finalized = (await fetch(node.url, "/eth/v1/beacon/headers/finalized")).json
        assert finalized["finalized"] is True
        assert finalized["data"]["header"]["message"]["slot"] == "32"
        for missing in ("102", "104", "0x" + "ab" * 32):
            reply = await fetch(node.url, f"/eth/v1/beacon/headers/{missing}")
            assert (reply.status, reply.json) == (404, {"code": 404, "message": "Block not found"})
        reply = await fetch(node.url, "/eth/v1/beacon/headers/current")
        assert (reply.status, reply.json) == (400, {"code": 400, "message": "Invalid block ID: current"})


async def test_syncing_tells_head_distance_and_the_execution_layer() -> None:
    """Cases 29, 30 and 40, N2: claims, health codes, a missing flag."""
    async with SimulatedNode(SimulatedChain(start_slot=100)) as node:
        await anyio.sleep(1)
        expected = {
            "head_slot": "100",
            "sync_distance": "0",
            "is_syncing": False,
            "is_optimistic": False,
            "el_offline": False,
        }
        assert (await fetch(node.url, SYNCING)).json == {"data": expected}
        assert (await fetch(node.url, "/eth/v1/node/health")).status == 200
        node.state.optimistic = True
        assert (await fetch(node.url, SYNCING)).json["data"]["is_optimistic"] is True
        assert (await fetch(node.url, "/eth/v1/node/health")).status == 206
        node.state.el_offline = True
        assert (await fetch(node.url, "/eth/v1/node/health")).status == 503
        node.state.el_offline = None
        assert "el_offline" not in (await fetch(node.url, SYNCING)).json["data"]
        node.cut_off()
        await anyio.sleep(12 * 9)
        data = (await fetch(node.url, SYNCING)).json["data"]
        assert (data["head_slot"], data["sync_distance"], data["is_syncing"]) == ("100", "9", True)


async def test_spec_and_genesis_describe_the_chain_with_values_that_are_no_strings() -> None:
    """I1, case 34."""
    chain = SimulatedChain(slot_duration=0.5, slots_per_epoch=8, gloas_epoch=7)
    async with SimulatedNode(chain) as node:
        spec = (await fetch(node.url, SPEC)).json["data"]
        assert spec["SLOT_DURATION_MS"] == "500"
        assert "SECONDS_PER_SLOT" not in spec
        assert (spec["SLOTS_PER_EPOCH"], spec["PRESET_BASE"]) == ("8", "minimal")
        assert (spec["FULU_FORK_EPOCH"], spec["GLOAS_FORK_EPOCH"]) == ("0", "7")
        assert spec["BLOB_SCHEDULE"] == [{"EPOCH": "512", "MAX_BLOBS_PER_BLOCK": "12"}]
        assert spec["GAS_LIMIT_SCHEDULE"] == []
        assert spec["ATTESTATION_DUE_BPS"] == "3333"
        genesis = (await fetch(node.url, "/eth/v1/beacon/genesis")).json["data"]
        assert genesis["genesis_time"] == "1700000000"
        assert genesis["genesis_validators_root"] == "0x" + chain.identity.genesis_validators_root.hex()
        assert genesis["genesis_fork_version"] == spec["GENESIS_FORK_VERSION"]
        schedule = (await fetch(node.url, "/eth/v1/config/fork_schedule")).json["data"]
        assert [entry["epoch"] for entry in schedule] == ["0"] * 7 + ["7"]
        assert schedule[7]["previous_version"] == schedule[6]["current_version"]
    async with SimulatedNode(SimulatedChain(slot_duration=12)) as node:
        spec = (await fetch(node.url, SPEC)).json["data"]
        assert (spec["SECONDS_PER_SLOT"], spec["PRESET_BASE"]) == ("12", "mainnet")
        assert spec["GLOAS_FORK_EPOCH"] == str(2**64 - 1)


async def test_identity_version_and_peers_are_told() -> None:
    async with SimulatedNode(SimulatedChain(), name="bn7", framing="teku") as node:
        node.state.peers = 3
        assert (await fetch(node.url, "/eth/v1/node/version")).json["data"]["version"].startswith("teku/")
        assert (await fetch(node.url, "/eth/v1/node/identity")).json["data"]["peer_id"] == "simulated-bn7"
        assert (await fetch(node.url, "/eth/v1/node/peer_count")).json["data"]["connected"] == "3"


async def test_checkpoints_and_attestation_data_fit_the_chain() -> None:
    chain = SimulatedChain(slots_per_epoch=8)
    async with SimulatedNode(chain) as node:
        await anyio.sleep(12 * 3 + 1)
        finality = (await fetch(node.url, "/eth/v1/beacon/states/head/finality_checkpoints")).json["data"]
        assert [finality[name]["epoch"] for name in ("previous_justified", "current_justified", "finalized")] == [
            "2",
            "3",
            "2",
        ]
        root_24 = (await fetch(node.url, "/eth/v1/beacon/headers/24")).json["data"]["root"]
        root_32 = (await fetch(node.url, "/eth/v1/beacon/headers/32")).json["data"]["root"]
        assert finality["current_justified"]["root"] == root_24
        data = (await fetch(node.url, "/eth/v1/validator/attestation_data?slot=35&committee_index=3")).json["data"]
        assert data == {
            "slot": "35",
            "index": "0",  # from Electra on, whatever was asked for
            "beacon_block_root": "0x" + node.head.root.hex(),
            "source": {"epoch": "3", "root": root_24},
            "target": {"epoch": "4", "root": root_32},
        }
        assert (await fetch(node.url, "/eth/v1/validator/attestation_data?slot=40")).status == 400
        node.state.optimistic = True
        assert (await fetch(node.url, "/eth/v1/validator/attestation_data?slot=35")).status == 503


async def test_everything_else_is_a_404_with_the_apis_error_body() -> None:
    async with SimulatedNode(SimulatedChain()) as node:
        for method, target in (("GET", "/"), ("GET", "/eth/v1/nothing"), ("POST", "/eth/v1/nothing")):
            reply = await fetch(node.url, target, method=method)
            assert (reply.status, reply.json) == (404, {"code": 404, "message": "NOT_FOUND", "stacktraces": []})
            assert reply.headers["content-type"] == "application/json"


async def test_connections_live_on_and_bodies_are_read_and_recorded() -> None:
    """Keep-alive, HEAD, and POST by length and in chunks, all on one connection."""
    async with SimulatedNode(SimulatedChain()) as node, dialled(node.url) as raw:
        whole = await exchange(raw.stream, SYNCING)
        head = await exchange(raw.stream, SYNCING, method="HEAD")
        assert head.body == b""
        assert head.headers["content-length"] == str(len(whole.body))
        await exchange(raw.stream, "/eth/v1/pool?a=1&a=2", method="POST", body=b"x" * 300_000)
        await raw.send(
            b"POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n"
        )
        assert (await raw.read_for(1)).startswith(b"HTTP/1.1 404 ")
        await raw.send(b"GET /c HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert b"Connection: close\r\n" in await raw.read_for(1)
        assert raw.ended == "eof"
        assert [request.method for request in node.requests] == ["GET", "HEAD", "POST", "POST", "GET"]
        assert node.requests[2].query == (("a", "1"), ("a", "2"))
        assert node.requests[2].body == b"x" * 300_000
        assert node.requests[3].body == b"abcde"
        assert {request.connection for request in node.requests} == {1}
        assert node.request_counts == {SYNCING: 2, "/eth/v1/pool": 1, "/p": 1, "/c": 1}


@pytest.mark.parametrize(
    "nonsense",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000,
    ],
)
async def test_nonsense_from_a_client_costs_only_its_connection(nonsense: bytes) -> None:
    async with SimulatedNode(SimulatedChain()) as node:
        async with dialled(node.url) as raw:
            await raw.send(nonsense)
            assert (await raw.read_for(1)).startswith(b"HTTP/1.1 400 ")
            assert raw.ended is not None
        assert (await fetch(node.url, SYNCING)).status == 200


async def test_a_node_listens_on_ipv6() -> None:
    """Case 25."""
    async with SimulatedNode(SimulatedChain(), host="::1") as node:
        assert node.url == f"http://[::1]:{node.port}"
        assert (await fetch(node.url, SYNCING)).status == 200


async def test_any_status_text_and_header_is_answered_on_cue() -> None:
    """Cases 24, 39 and 40: 503, 429 with Retry-After, a redirect, a coding nobody asked for, a wrong media type."""
    async with SimulatedNode(SimulatedChain()) as node:
        with node.answer(SYNCING, 429, "slow down", headers={"Retry-After": "2"}, content_type="text/plain") as fault:
            reply = await fetch(node.url, SYNCING)
            assert (reply.status, reply.body, reply.headers["retry-after"]) == (429, b"slow down", "2")
            assert reply.headers["content-type"] == "text/plain"
        assert fault.met == 1
        assert (await fetch(node.url, SYNCING)).status == 200
        node.answer("/eth/v1/node/*", 503, times=2)
        statuses = [(await fetch(node.url, SYNCING)).status for _ in range(3)]
        assert statuses == [503, 503, 200]
        node.inject(SPEC, redirect("http://127.0.0.1:1/elsewhere"))
        reply = await fetch(node.url, SPEC)
        assert (reply.status, reply.headers["location"]) == (307, "http://127.0.0.1:1/elsewhere")
        node.inject(SPEC, gzipped('{"data":{}}'))
        reply = await fetch(node.url, SPEC)
        assert reply.headers["content-encoding"] == "gzip"
        assert reply.body[:2] == b"\x1f\x8b"
        node.heal()
        assert (await fetch(node.url, SPEC)).json["data"]["CONFIG_NAME"] == "simulated"


async def test_single_fields_of_an_answer_can_be_wrong_or_missing() -> None:
    """Wrong genesis, wrong spec (N7, case 33)."""
    async with SimulatedNode(SimulatedChain()) as node:
        node.override("/eth/v1/beacon/genesis", genesis_validators_root="0x" + "99" * 32)
        node.override(SPEC, SECONDS_PER_SLOT="6", PRESET_BASE=REMOVED)
        assert (await fetch(node.url, "/eth/v1/beacon/genesis")).json["data"]["genesis_validators_root"][2] == "9"
        spec = (await fetch(node.url, SPEC)).json["data"]
        assert spec["SECONDS_PER_SLOT"] == "6"
        assert "PRESET_BASE" not in spec
        node.override(SPEC)
        assert (await fetch(node.url, SPEC)).json["data"]["SECONDS_PER_SLOT"] == "12"


async def test_answers_are_late_by_the_latency_and_by_a_delay() -> None:
    async with SimulatedNode(SimulatedChain(), latency=0.25) as node:
        before = anyio.current_time()
        await fetch(node.url, SYNCING)
        assert anyio.current_time() == before + 0.25
        node.inject(SYNCING, Delay(2.0))
        await fetch(node.url, SYNCING)
        assert anyio.current_time() == before + 2.5


async def test_nothing_is_known_of_slots_before_genesis() -> None:
    """Before genesis the head is the genesis block."""
    async with SimulatedNode(SimulatedChain(start_slot=-3)) as node:
        data = (await fetch(node.url, SYNCING)).json["data"]
        assert (data["head_slot"], data["sync_distance"], data["is_syncing"]) == ("0", "0", False)
        head = (await fetch(node.url, "/eth/v1/beacon/headers/head")).json["data"]
        assert head["header"]["message"]["parent_root"] == "0x" + "00" * 32
        await anyio.sleep(12 * 5)
        assert node.head.slot == 1
