"""Signed blocks and envelopes on their way to one node, on real sockets (Q2a, Q10; cases 53, 55-57, 61)."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.rawserver import answer
from tests.scripted_node import Talk, clock_in, refusal, talk
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Sourced
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.publication import Publication

pytestmark = pytest.mark.anyio

JSON, SSZ = "application/json", "application/octet-stream"
BOTH = Encodings(ssz=b"\x00block", json=b'{"message":{}}')
OK = answer(b"")
MEDIA_TYPE_TEXT = (
    b'{"statusCode":415,"code":"FST_ERR_CTP_INVALID_MEDIA_TYPE","error":"Unsupported Media Type",'
    b'"message":"Unsupported Media Type: application/octet-stream"}'
)
REFUSES_SSZ = answer(MEDIA_TYPE_TEXT, status="415 -", headers="Content-Type: application/json\r\n")

Call = Callable[..., Awaitable[Sourced[Publication]]]


def block(node: BeaconNode, value: Encodings = BOTH, version: str = "fulu", **options: Any) -> Any:
    return node.publish_block(value, version, **options)


def blinded(node: BeaconNode, value: Encodings = BOTH, version: str = "fulu", **options: Any) -> Any:
    return node.publish_blinded_block(value, version, **options)


def envelope(node: BeaconNode, value: Encodings = BOTH, version: str = "gloas", **options: Any) -> Any:
    return node.publish_execution_payload_envelope(value, version, **{"blob_data_included": True, **options})


CALLS: dict[str, tuple[Call, str]] = {
    "block": (block, "/eth/v2/beacon/blocks"),
    "blinded block": (blinded, "/eth/v2/beacon/blinded_blocks"),
    "envelope": (envelope, "/eth/v1/beacon/execution_payload_envelopes"),
}
every = pytest.mark.parametrize(("call", "path"), CALLS.values(), ids=CALLS.keys())
blocks = pytest.mark.parametrize(("call", "path"), [CALLS["block"], CALLS["blinded block"]], ids=["block", "blinded"])


async def fails(call: Awaitable[object], error: type[NodeError]) -> NodeError:
    """Await a call that is to fail."""
    with pytest.raises(error) as caught:
        await call
    assert type(caught.value) is error
    return caught.value


def sent(asked: Talk) -> list[tuple[str, bytes]]:
    """Return form and bytes of each request."""
    return [(request.headers["content-type"], request.body) for request in asked.requests]


@every
async def test_signed_value_goes_out_as_ssz_byte_for_byte(call: Call, path: str) -> None:
    """Case 57: nothing but JSON is accepted, of errors."""
    async with talk(OK) as asked:
        answered = await call(asked.node)
        assert (answered.value, answered.node_id) == (Publication.ACCEPTED, "n1")
        assert (asked.targets, asked.query(), sent(asked)) == ([f"POST {path}"], [], [(SSZ, b"\x00block")])
        headers = asked.requests[0].headers
        assert headers["accept"] == JSON
        assert headers["eth-consensus-version"] == ("gloas" if call is envelope else "fulu")
        assert headers.get("eth-blob-data-included") == ("true" if call is envelope else None)


async def test_envelope_without_its_blobs_says_so() -> None:
    """Case 61: only the node that made the block can take it, and another that refuses it is well."""
    async with talk(refusal(400, "no cached blobs")) as asked:
        error = await fails(envelope(asked.node, blob_data_included=False), failures.BadRequest)
        assert not error.blames_node
        assert asked.requests[0].headers["eth-blob-data-included"] == "false"


@every
@pytest.mark.parametrize("validation", ["gossip", "consensus", "consensus_and_equivocation"])
async def test_validation_before_the_broadcast(call: Call, path: str, validation: str) -> None:
    async with talk(OK) as asked:
        await call(asked.node, broadcast_validation=validation)
        assert asked.query() == [("broadcast_validation", validation)]


@every
async def test_value_that_was_sent_on_and_not_imported_is_neither_error_nor_full_success(call: Call, path: str) -> None:
    """Case 53."""
    async with talk(answer(b"", status="202 Accepted")) as asked:
        assert (await call(asked.node)).value is Publication.BROADCAST


@every
async def test_node_that_takes_no_ssz_gets_json_and_is_known_for_it(call: Call, path: str) -> None:
    """Case 56."""
    async with talk(REFUSES_SSZ, OK) as asked:
        assert (await call(asked.node)).provenance.attempts == 2
        assert (await call(asked.node)).provenance.attempts == 1
        assert sent(asked) == [(SSZ, b"\x00block"), (JSON, b'{"message":{}}'), (JSON, b'{"message":{}}')]
        # It is of one route.
        await (blinded if call is block else block)(asked.node)
        assert sent(asked)[-1][0] == SSZ


@every
async def test_value_that_is_there_in_one_form_only(call: Call, path: str) -> None:
    """Q2a: the second time nothing is sent."""
    async with talk(REFUSES_SSZ) as asked:
        for _ in range(2):
            await fails(call(asked.node, Encodings(ssz=b"\x00block")), failures.UnsupportedMediaType)
        assert len(asked.requests) == 1
    async with talk(OK) as asked:
        await call(asked.node, Encodings(json=b"{}"))
        assert sent(asked) == [(JSON, b"{}")]


@every
@pytest.mark.parametrize(
    ("status", "message", "error"),
    [
        (400, "Invalid block: missing signature", failures.BadRequest),
        (500, "BLOCK_INPUT_ERROR_INVALID_CONSTRUCTION", failures.ServerError),
        (500, "BLOCK_ERROR_ALREADY_KNOWN", failures.AlreadyKnown),
        (503, "Beacon node is currently syncing", failures.NotReady),
        (413, "too large", failures.PayloadTooLarge),
        (406, "no", failures.NotAcceptable),
    ],
)
async def test_refusals_are_named_and_nothing_is_sent_again(
    call: Call, path: str, status: int, message: str, error: type[NodeError]
) -> None:
    """Rule 8; case 55."""
    async with talk(refusal(status, message)) as asked:
        await fails(call(asked.node), error)
        assert len(asked.requests) == 1


# --- older nodes


@blocks
@pytest.mark.parametrize("version", ["phase0", "deneb"])
@pytest.mark.parametrize("validation", [None, "gossip"])
@pytest.mark.parametrize("status", [404, 405, 501])
async def test_older_route_is_used_where_a_node_has_no_newer_and_remembered(
    call: Call, path: str, version: str, validation: str | None, status: int
) -> None:
    """Q13: it does what `gossip` says, and has no word for it."""
    older = f"POST {path.replace('v2', 'v1')}"
    async with talk(refusal(status), OK) as asked:
        first = await call(asked.node, version=version, broadcast_validation=validation)
        second = await call(asked.node, version=version, broadcast_validation=validation)
        assert (first.provenance.attempts, second.provenance.attempts) == (2, 1)
        assert asked.targets == [f"POST {path}", older, older]
        assert asked.query() == []
        assert asked.requests[-1].headers["eth-consensus-version"] == version
        assert sent(asked) == [(SSZ, b"\x00block")] * 3


@blocks
async def test_older_route_that_takes_no_ssz(call: Call, path: str) -> None:
    async with talk(refusal(404), REFUSES_SSZ, OK) as asked:
        assert (await call(asked.node, version="capella")).provenance.attempts == 3
        assert [form for form, _ in sent(asked)] == [SSZ, SSZ, JSON]


@blocks
@pytest.mark.parametrize(("version", "validation"), [("electra", None), ("heze", None), ("deneb", "consensus")])
async def test_older_route_is_not_used_where_it_would_be_less(
    call: Call, path: str, version: str, validation: str | None
) -> None:
    """It ends with Deneb, and checks no more than gossip does (rule 9). Its block's fork counts, not the present."""
    async with talk(refusal(404), slots=clock_in("deneb")) as asked:
        for _ in range(2):
            await fails(
                call(asked.node, version=version, broadcast_validation=validation), failures.UnsupportedEndpoint
            )
        assert asked.targets == [f"POST {path}"]


@every
@pytest.mark.parametrize("wrong", [{"version": ""}, {"version": "fulu\r\nHost: x"}, {"broadcast_validation": "all"}])
async def test_what_can_be_seen_to_be_wrong_is_not_sent(call: Call, path: str, wrong: dict[str, Any]) -> None:
    """Q3."""
    async with talk(OK) as asked:
        with pytest.raises(ValueError, match=r"."):
            await call(asked.node, **wrong)
        assert not asked.requests
