"""Headers, blocks and blobs of one node, on real sockets (Q1)."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.rawserver import Handler, RawConnection, Request
from tests.scripted_node import Talk, in_json, refusal, ssz, talk
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Root, Slot, Sourced
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.answers import OnChain
from vc_fallback.node.values.blocks import Head
from vc_fallback.node.values.opaque import Opaque

pytestmark = pytest.mark.anyio

ROOT = Root(bytes(range(32)))
HEX = "0x" + ROOT.hex()
JSON, SSZ = "application/json", "application/octet-stream"
EITHER = f"{SSZ};q=1.0,{JSON};q=0.9"
HEADER = {
    "root": HEX,
    "canonical": True,
    "header": {
        "message": {
            "slot": "18446744073709551615",
            "proposer_index": "7",
            "parent_root": HEX,
            "state_root": HEX,
            "body_root": HEX,
        },
        "signature": "0x" + "ab" * 96,
    },
}
BLOCK = in_json({"version": "fulu", "execution_optimistic": False, "finalized": True, "data": {"message": {}}})

Call = Callable[[BeaconNode], Awaitable[Sourced[Any]]]

CALLS: dict[str, Call] = {
    "head": lambda node: node.head(timeout=5),
    "header": lambda node: node.header("head", timeout=5),
    "headers": lambda node: node.headers(timeout=5),
    "block_root": lambda node: node.block_root("head", timeout=5),
    "block": lambda node: node.block("head", timeout=5),
    "blinded_block": lambda node: node.blinded_block("head", timeout=5),
    "blobs": lambda node: node.blobs("head", timeout=5),
}
OPAQUE: dict[str, Call] = {name: CALLS[name] for name in ("block", "blinded_block", "blobs")}


def on_chain(data: Any) -> bytes:
    return in_json({"execution_optimistic": True, "finalized": False, "data": data, "new": [1]})


async def fails(call: Call, asked: Talk, error: type[NodeError]) -> NodeError:
    """Make a call that is to fail."""
    with pytest.raises(error) as caught:
        await call(asked.node)
    assert type(caught.value) is error
    return caught.value


async def test_head_looks_at_nothing_but_where_it_is() -> None:
    """A poll of the head serves streams (H14), whatever else is in the header."""
    answer = on_chain({"root": HEX, "header": {"message": {"slot": "5", "proposer_index": "x"}}})
    async with talk(answer) as asked:
        assert (await asked.node.head()).value == Head(Slot(5), ROOT, True)
        assert asked.targets == ["GET /eth/v1/beacon/headers/head"]


@pytest.mark.parametrize(
    ("block_id", "written"),
    [("head", "head"), ("genesis", "genesis"), ("finalized", "finalized"), (Slot(0), "0"), (ROOT, HEX)],
)
async def test_header_by_its_identifier(block_id: Any, written: str) -> None:
    async with talk(on_chain(HEADER)) as asked:
        answer = await asked.node.header(block_id)
        assert asked.targets == [f"GET /eth/v1/beacon/headers/{written}"]
    found = answer.value.data
    assert (found.root, found.canonical) == (ROOT, True)
    assert (found.header.message.slot, found.header.message.proposer_index) == (2**64 - 1, 7)
    assert (answer.value.execution_optimistic, answer.value.finalized) == (True, False)
    assert (answer.node_id, answer.provenance.attempts) == ("n1", 1)


@pytest.mark.parametrize(
    ("wanted", "query"),
    [
        ({}, []),
        ({"slot": Slot(2**64 - 1)}, [("slot", str(2**64 - 1))]),
        ({"parent_root": ROOT}, [("parent_root", HEX)]),
        ({"slot": Slot(0), "parent_root": ROOT}, [("slot", "0"), ("parent_root", HEX)]),
    ],
)
async def test_headers_of_a_slot_or_of_a_parent(wanted: dict[str, Any], query: list[tuple[str, str]]) -> None:
    async with talk(on_chain([HEADER, {**HEADER, "canonical": False}]), on_chain([])) as asked:
        answer = await asked.node.headers(**wanted)
        assert (asked.targets, asked.query()) == (["GET /eth/v1/beacon/headers"], query)
        assert [header.canonical for header in answer.value.data] == [True, False]
        assert (await asked.node.headers(**wanted)).value.data == []


async def test_root_of_a_block() -> None:
    async with talk(on_chain({"root": HEX})) as asked:
        answer = await asked.node.block_root(Slot(5))
        assert answer.value == OnChain(ROOT, True, False)
        assert asked.targets == ["GET /eth/v1/beacon/blocks/5/root"]


@pytest.mark.parametrize(
    ("name", "path"), [("block", "/eth/v2/beacon/blocks/head"), ("blinded_block", "/eth/v1/beacon/blinded_blocks/head")]
)
async def test_block_passes_through_in_either_form(name: str, path: str) -> None:
    async with talk(ssz(b"\x00block", eth_consensus_version="fulu"), BLOCK) as asked:
        assert (await CALLS[name](asked.node)).value == Opaque("fulu", SSZ, b"\x00block")
        assert (await CALLS[name](asked.node)).value == Opaque("fulu", JSON, b'{"message": {}}', False, True)
        assert asked.targets == [f"GET {path}"] * 2
        assert [request.headers["accept"] for request in asked.requests] == [EITHER] * 2


async def test_blobs_of_a_block() -> None:
    """They name no fork, and there may be none."""
    hashes = [bytes([1]) * 32, bytes([2]) * 32]
    async with talk(ssz(bytes(2 * 131072)), ssz(b""), on_chain(["0x00"])) as asked:
        answer = await asked.node.blobs(ROOT, versioned_hashes=hashes)
        assert answer.value == Opaque(None, SSZ, bytes(2 * 131072))
        assert asked.targets == [f"GET /eth/v1/beacon/blobs/{HEX}"]
        assert asked.query() == [("versioned_hashes", "0x" + "01" * 32), ("versioned_hashes", "0x" + "02" * 32)]
        assert (await asked.node.blobs(ROOT)).value == Opaque(None, SSZ, b"")
        assert (await asked.node.blobs(ROOT)).value == Opaque(None, JSON, b'["0x00"]', True, False)
        assert asked.query() == []


@pytest.mark.parametrize("name", ["block", "blinded_block"])
async def test_ssz_that_names_no_fork_is_asked_for_again_as_json(name: str) -> None:
    """Case 58: and as JSON at once from then on."""
    async with talk(ssz(b"block"), BLOCK) as asked:
        answer = await OPAQUE[name](asked.node)
        assert (answer.value.body, answer.provenance.attempts) == (b'{"message": {}}', 2)
        assert (await OPAQUE[name](asked.node)).provenance.attempts == 1
        assert [request.headers["accept"] for request in asked.requests] == [EITHER, JSON, JSON]


@pytest.mark.parametrize("call", OPAQUE.values(), ids=OPAQUE.keys())
async def test_406_is_asked_again_as_json(call: Call) -> None:
    """Case 57."""
    answer = in_json({"version": "fulu", "data": {"a": 1}})
    async with talk(refusal(406), on_chain([]) if call is CALLS["blobs"] else answer) as asked:
        assert (await call(asked.node)).provenance.attempts == 2
        assert [request.headers["accept"] for request in asked.requests] == [EITHER, JSON]


@pytest.mark.parametrize("call", OPAQUE.values(), ids=OPAQUE.keys())
async def test_ssz_that_still_names_no_fork_is_malformed(call: Call) -> None:
    async with talk(ssz(b"block"), ssz(b"block")) as asked:
        if call is CALLS["blobs"]:
            await call(asked.node)
        else:
            await fails(call, asked, failures.Malformed)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_404_is_an_answer(call: Call) -> None:
    """Case 51: it lowers nothing, and the endpoint is asked again."""
    async with talk(refusal(404, "Block not found")) as asked:
        for number in range(1, 3):
            error = await fails(call, asked, failures.NotFound)
            assert not error.blames_node
            assert len(asked.requests) == number


BAD = {
    "page": in_json(b"<html><body>503 behind a 200</body></html>"),
    "null": in_json(None),
    "list": in_json([]),
    "number": in_json(5),
    "data missing": in_json({"version": "fulu"}),
    "data null": in_json({"version": "fulu", "data": None}),
    "data text": in_json({"version": "fulu", "data": "0x00"}),
    "cut JSON": in_json(b'{"version":"fulu","data":{"root":"0x'),
    "nothing": in_json(b""),
    "bytes of no kind": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\xff\xfe\x00\x01",
    "deep": in_json(b'{"version":"fulu","data":' + b'{"a":[' * 50_000),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("answer", BAD.values(), ids=BAD.keys())
async def test_answers_that_are_none_are_malformed_and_the_next_call_works(call: Call, answer: bytes) -> None:
    """Case 67."""
    async with talk(answer, on_chain({"root": HEX})) as asked:
        error = await fails(call, asked, failures.Malformed)
        assert error.status == 200
        assert (await asked.node.block_root("head")).value.data == ROOT
        assert asked.node.http.statistics().dials == 1


@pytest.mark.parametrize("name", ["block", "blinded_block"])
async def test_ssz_of_no_length_is_malformed(name: str) -> None:
    async with talk(ssz(b"", eth_consensus_version="fulu")) as asked:
        await fails(CALLS[name], asked, failures.Malformed)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_body_that_ends_early_is_a_lost_connection_and_the_next_call_works(call: Call) -> None:
    whole = on_chain({"root": HEX})

    def cut_once(requests: list[Request]) -> Handler:
        async def handler(connection: RawConnection) -> None:
            while True:
                requests.append(await connection.request())
                if not connection.number:
                    await connection.send(whole[:-20])
                    return
                await connection.send(whole)

        return handler

    async with talk(handler=cut_once) as asked:
        await fails(call, asked, failures.ConnectionLost)
        assert (await asked.node.block_root("head")).value.data == ROOT


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_announced_body_that_is_too_large_is_not_read(call: Call) -> None:
    """Q15."""
    huge = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n\r\n{"
    async with talk(huge, on_chain({"root": HEX})) as asked:
        await fails(call, asked, failures.AnswerTooLarge)
        assert (await asked.node.block_root("head")).value.data == ROOT


WRONG: dict[str, Call] = {
    "slot below zero": lambda node: node.header(Slot(-1)),
    "slot above all": lambda node: node.block(Slot(2**64)),
    "slot of a boolean": lambda node: node.block_root(True),  # type: ignore[arg-type]
    "root too short": lambda node: node.blinded_block(Root(b"\x01")),
    "root as text": lambda node: node.header(HEX),  # type: ignore[arg-type]
    "word of no meaning": lambda node: node.blobs("../../node/version"),  # type: ignore[arg-type]
    "headers of no slot": lambda node: node.headers(slot=Slot(-1)),
    "headers of no root": lambda node: node.headers(parent_root=Root(bytes(33))),
    "no versioned hash": lambda node: node.blobs("head", versioned_hashes=[]),
    "short versioned hash": lambda node: node.blobs("head", versioned_hashes=[bytes(31)]),
    "one versioned hash twice": lambda node: node.blobs("head", versioned_hashes=[bytes(32), bytes(32)]),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
async def test_what_can_be_seen_to_be_wrong_is_not_asked(call: Call) -> None:
    """Q3."""
    async with talk(BLOCK) as asked:
        with pytest.raises(ValueError, match=r"."):
            await call(asked.node)
        assert not asked.requests
