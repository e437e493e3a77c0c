"""Blocks to be signed: how one node is asked for them, on real sockets (Q1, Q7, Q9, Q13)."""

import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.scripted_node import FORKS, Talk, clock_in, in_json, refusal, slot_in, ssz, talk
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Root, Slot, Sourced
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.opaque import Opaque, ProducedBlock

pytestmark = pytest.mark.anyio

ROOT = Root(bytes(range(32)))
HEX = "0x" + ROOT.hex()
REVEAL = b"\xab" * 96
REVEAL_HEX = "0x" + "ab" * 96
INFINITY = b"\xc0" + bytes(95)
GRAFFITI = b"graffiti".ljust(32, b"\0")
JSON, SSZ = "application/json", "application/octet-stream"
EITHER = f"{SSZ};q=1.0,{JSON};q=0.9"
MB = 1024 * 1024

V2, V3, V4 = (f"/eth/v{version}/validator/blocks" for version in (2, 3, 4))
HEADERS = {"eth_consensus_version": "fulu", "ETH_EXECUTION_PAYLOAD_BLINDED": "false"}
BLOCK = ssz(b"block", **HEADERS, Eth_Execution_Payload_Value="12345678901234567890", Eth_Consensus_Block_Value="5")
BLOCK_V4 = ssz(b"block", Eth_Consensus_Version="gloas", eth_execution_payload_included="true")
NO_ROUTE = refusal(404, "Route GET:/eth/v3/validator/blocks/7 not found")

Call = Callable[[BeaconNode], Awaitable[Sourced[Any]]]


def produce(fork: str | None, **options: Any) -> Call:
    return lambda node: node.produce_block(Slot(slot_in(fork or "fulu")), REVEAL, fork=fork, **options)


CALLS: dict[str, Call] = {
    "v3": produce("fulu"),
    "v4": produce("gloas"),
    "bid": lambda node: node.execution_payload_bid(Slot(5), 7),
    "envelope": lambda node: node.execution_payload_envelope(Slot(5), ROOT),
}


async def fails(call: Call, asked: Talk, error: type[NodeError]) -> NodeError:
    """Make a call that is to fail."""
    with pytest.raises(error) as caught:
        await call(asked.node)
    assert type(caught.value) is error
    return caught.value


# --- the route and what is sent


@pytest.mark.parametrize("fork", FORKS)
async def test_fork_of_the_slot_decides_the_route(fork: str) -> None:
    """Forks that are not known come after Gloas. The present is in another fork."""
    after = FORKS.index(fork) >= FORKS.index("gloas")
    async with talk(BLOCK_V4 if after else BLOCK, slots=clock_in("deneb")) as asked:
        await asked.node.produce_block(Slot(slot_in(fork)), REVEAL)
        assert asked.targets == [f"GET {V4 if after else V3}/{slot_in(fork)}"]
        assert ("include_payload" in dict(asked.query())) is after


async def test_version_3_is_asked_where_no_fork_is_known() -> None:
    async with talk(BLOCK) as asked:
        await asked.node.produce_block(Slot(7), REVEAL)
        assert asked.targets == [f"GET {V3}/7"]
        assert asked.query() == [("randao_reveal", REVEAL_HEX)]
        assert asked.requests[0].headers["accept"] == EITHER


async def test_fork_that_the_caller_names_goes_before_what_is_known() -> None:
    async with talk(BLOCK_V4, slots=clock_in("deneb")) as asked:
        await asked.node.produce_block(Slot(7), REVEAL, fork="gloas")
        assert asked.targets == [f"GET {V4}/7"]


@pytest.mark.parametrize("fork", ["fulu", "gloas"])
async def test_every_wish_is_written_as_the_api_has_it(fork: str) -> None:
    async with talk(BLOCK if fork == "fulu" else BLOCK_V4) as asked:
        await asked.node.produce_block(
            Slot(2**64 - 1),
            INFINITY,
            graffiti=GRAFFITI,
            builder_boost_factor=2**64 - 1,
            skip_randao_verification=True,
            include_payload=False,
            fork=fork,
        )
        assert asked.query() == [
            ("randao_reveal", "0x" + INFINITY.hex()),
            ("graffiti", "0x" + GRAFFITI.hex()),
            ("skip_randao_verification", ""),
            ("builder_boost_factor", str(2**64 - 1)),
            *([("include_payload", "false")] if fork == "gloas" else []),
        ]


async def test_payload_is_asked_for_with_the_block() -> None:
    """Case 61: more than one node is used."""
    async with talk(BLOCK_V4) as asked:
        await produce("gloas")(asked.node)
        assert asked.query() == [("randao_reveal", REVEAL_HEX), ("include_payload", "true")]


async def test_bid_and_envelope() -> None:
    async with talk(ssz(b"bid", Eth_Consensus_Version="gloas")) as asked:
        assert (await asked.node.execution_payload_bid(Slot(5), 2**64 - 1)).value == Opaque("gloas", SSZ, b"bid")
        await asked.node.execution_payload_envelope(Slot(5), ROOT)
        assert asked.targets == [
            f"GET /eth/v1/validator/execution_payload_bids/5/{2**64 - 1}",
            f"GET /eth/v1/validator/execution_payload_envelopes/5/{HEX}",
        ]
        assert [request.headers["accept"] for request in asked.requests] == [EITHER] * 2


WRONG: dict[str, Call] = {
    "slot": lambda node: node.produce_block(Slot(-1), REVEAL),
    "reveal": lambda node: node.produce_block(Slot(1), REVEAL[1:]),
    "graffiti": lambda node: node.produce_block(Slot(1), REVEAL, graffiti=b"short"),
    "boost below zero": lambda node: node.produce_block(Slot(1), REVEAL, builder_boost_factor=-1),
    "boost above all": lambda node: node.produce_block(Slot(1), REVEAL, builder_boost_factor=2**64),
    "reveal that would be skipped": lambda node: node.produce_block(Slot(1), REVEAL, skip_randao_verification=True),
    "slot of a bid": lambda node: node.execution_payload_bid(Slot(2**64), 1),
    "builder": lambda node: node.execution_payload_bid(Slot(1), -1),
    "root": lambda node: node.execution_payload_envelope(Slot(1), Root(bytes(31))),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
async def test_what_can_be_seen_to_be_wrong_is_not_asked(call: Call) -> None:
    """Q3."""
    async with talk(BLOCK) as asked:
        with pytest.raises(ValueError, match=r"."):
            await call(asked.node)
        assert not asked.requests


# --- what comes back


async def test_produced_block_with_its_headers() -> None:
    """Case 58: names of headers have no case; case 65: values are exact."""
    async with talk(BLOCK) as asked:
        answer = await produce("fulu")(asked.node)
    assert answer.value == ProducedBlock("fulu", False, True, 5, 12345678901234567890, SSZ, b"block")
    assert (answer.node_id, answer.provenance.attempts) == ("n1", 1)


@pytest.mark.parametrize(("included", "body"), [("true", b"contents"), ("false", b"block")])
async def test_produced_block_of_gloas_says_whether_its_payload_came_with_it(included: str, body: bytes) -> None:
    """Case 61. A builder's payload never does."""
    headers = {"Eth_Consensus_Version": "gloas", "Eth_Execution_Payload_Included": included}
    async with talk(ssz(body, **headers, Eth_Consensus_Block_Value="5")) as asked:
        found = (await produce("gloas")(asked.node)).value
    assert found == ProducedBlock("gloas", False, included == "true", 5, None, SSZ, body)


async def test_produced_block_as_json_is_the_bytes_of_its_data() -> None:
    body = b'{"data": {"slot":"7", "body" : {}},"version":"fulu","execution_payload_blinded":true,'
    body += b'"execution_payload_value":"2","consensus_block_value":1}'
    async with talk(in_json(body)) as asked:
        found = (await produce("fulu")(asked.node)).value
    assert found == ProducedBlock("fulu", True, False, 1, 2, JSON, b'{"slot":"7", "body" : {}}')


@pytest.mark.parametrize("value", ["", "-1", "1.5", "0x1", "none", "9" * 100])
async def test_bad_value_does_not_cost_the_block(value: str) -> None:
    """Q7."""
    answer = ssz(b"block", **HEADERS, Eth_Execution_Payload_Value=value, Eth_Consensus_Block_Value=value)
    async with talk(answer) as asked:
        found = (await produce("fulu")(asked.node)).value
    assert found == ProducedBlock("fulu", False, True, None, None, SSZ, b"block")


async def test_fork_that_is_not_known_passes_through() -> None:
    """Case 58."""
    async with talk(ssz(b"block", Eth_Consensus_Version="heze", Eth_Execution_Payload_Included="true")) as asked:
        assert (await produce("heze")(asked.node)).value.version == "heze"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("first", [ssz(b"block"), refusal(406)])
async def test_ssz_that_does_not_say_what_it_is_is_asked_for_again_as_json(call: Call, first: bytes) -> None:
    """Case 58; as JSON at once from then on."""
    members = {"version": "gloas", "execution_payload_blinded": False, "execution_payload_included": False}
    async with talk(first, in_json({**members, "data": {"a": 1}})) as asked:
        answer = await call(asked.node)
        assert (answer.value.content_type, answer.provenance.attempts) == (JSON, 2)
        assert (await call(asked.node)).provenance.attempts == 1
        assert [request.headers["accept"] for request in asked.requests] == [EITHER, JSON, JSON]


@pytest.mark.parametrize(
    ("call", "headers"),
    [
        (CALLS["v3"], {"Eth_Consensus_Version": "fulu"}),
        (CALLS["v3"], {"Eth_Consensus_Version": "fulu", "Eth_Execution_Payload_Blinded": "perhaps"}),
        (CALLS["v4"], {"Eth_Consensus_Version": "gloas", "Eth_Execution_Payload_Blinded": "false"}),
    ],
)
async def test_bytes_that_may_be_two_things_are_not_guessed(call: Call, headers: dict[str, str]) -> None:
    async with talk(ssz(b"block", **headers)) as asked:
        await fails(call, asked, failures.Malformed)
        assert [request.headers["accept"] for request in asked.requests] == [EITHER, JSON]


BAD = {
    "page": in_json(b"<html><body>503 behind a 200</body></html>", **HEADERS),
    "null": in_json(None, **HEADERS),
    "list": in_json([], **HEADERS),
    "data missing": in_json({"version": "fulu"}, **HEADERS),
    "data null": in_json({"version": "fulu", "data": None}, **HEADERS),
    "data empty": in_json({"version": "fulu", "data": {}}, **HEADERS),
    "cut JSON": in_json(b'{"version":"fulu","data":{"body":"0x', **HEADERS),
    "SSZ of no length": ssz(b"", **HEADERS, Eth_Execution_Payload_Included="true"),
    "nothing": in_json(b"", **HEADERS),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("answer", BAD.values(), ids=BAD.keys())
async def test_answers_that_are_none_are_malformed_and_the_next_call_works(call: Call, answer: bytes) -> None:
    """Case 67."""
    async with talk(answer, BLOCK) as asked:
        await fails(call, asked, failures.Malformed)
        assert (await produce(None)(asked.node)).value.body == b"block"
        assert asked.node.http.statistics().dials == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, failures.BadRequest), (500, failures.ServerError), (503, failures.NotReady), (429, failures.RateLimited)],
)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_refusals_are_named_and_not_repeated(call: Call, status: int, error: type[NodeError]) -> None:
    """Q10."""
    async with talk(refusal(status)) as asked:
        await fails(call, asked, error)
        assert len(asked.requests) == 1


@pytest.mark.parametrize("call", [CALLS["bid"], CALLS["envelope"]])
async def test_envelope_or_bid_that_is_elsewhere_is_no_failure_of_the_node(call: Call) -> None:
    """Case 61."""
    async with talk(refusal(404, "Execution payload envelope not available for slot")) as asked:
        for number in range(1, 3):
            assert not (await fails(call, asked, failures.NotFound)).blames_node
            assert len(asked.requests) == number


# --- older nodes


@pytest.mark.parametrize("fork", [None, "bellatrix", "deneb"])
@pytest.mark.parametrize("answer", [NO_ROUTE, refusal(404), refusal(405), refusal(501)])
async def test_version_2_is_used_where_a_node_has_no_version_3_and_remembered(fork: str | None, answer: bytes) -> None:
    """Q13: it knows nothing of builders."""
    async with talk(answer, in_json({"version": "deneb", "data": {"a": 1}})) as asked:
        call = produce(fork, graffiti=GRAFFITI, builder_boost_factor=50)
        first, second = await call(asked.node), await call(asked.node)
        slot = slot_in(fork or "fulu")
        assert asked.targets == [f"GET {V3}/{slot}", f"GET {V2}/{slot}", f"GET {V2}/{slot}"]
        assert asked.query() == [("randao_reveal", REVEAL_HEX), ("graffiti", "0x" + GRAFFITI.hex())]
    assert first.value == ProducedBlock("deneb", False, True, None, None, JSON, b'{"a": 1}')
    assert (first.provenance.attempts, second.provenance.attempts) == (2, 1)


async def test_version_2_as_ssz() -> None:
    async with talk(NO_ROUTE, ssz(b"block", Eth_Consensus_Version="deneb")) as asked:
        found = (await produce("deneb")(asked.node)).value
    assert found == ProducedBlock("deneb", False, True, None, None, SSZ, b"block")


@pytest.mark.parametrize("fork", ["electra", "fulu", "gloas", "heze"])
async def test_version_2_is_not_used_from_electra_on(fork: str) -> None:
    """The lack is remembered and the node is asked no more, until the next epoch."""
    async with talk(NO_ROUTE) as asked:
        for _ in range(2):
            await fails(produce(fork), asked, failures.UnsupportedEndpoint)
        assert len(asked.requests) == 1


# --- cost


@pytest.mark.parametrize("form", [SSZ, JSON])
@pytest.mark.parametrize("chunked", [False, True])
async def test_block_of_a_megabyte_is_copied_once_at_most(form: str, chunked: bool) -> None:
    """SSZ is what was read from the socket, JSON one copy of a part of that. The connection holds on to neither."""
    members = {"version": "fulu", "execution_payload_blinded": False, "data": {"a": "0x" + "ab" * (MB // 2 - 100)}}
    answer = ssz(bytes(MB), **HEADERS) if form == SSZ else in_json(members)
    async with talk(in_chunks(answer) if chunked else answer) as asked:
        await produce("fulu")(asked.node)
        tracemalloc.start()
        try:
            answered = await produce("fulu")(asked.node)
            kept, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    size = len(answered.value.body)
    # Both ends read into buffers of a quarter of a megabyte.
    assert size < most < (1.75 if form == SSZ else 2.75) * size
    assert kept < 1.25 * size


def in_chunks(answer: bytes) -> bytes:
    """Return an answer with its body in chunks of 50,000 bytes."""
    head, _, body = answer.partition(b"\r\n\r\n")
    head = head.replace(b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked")
    pieces = [body[start : start + 50_000] for start in range(0, len(body), 50_000)]
    return b"".join([head, b"\r\n\r\n", *(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"])
