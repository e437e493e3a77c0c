"""Cases from the field: what is published on one node, and numbers in what it answers (kinds e and f: 55, 60, 61, 63).

By their very inputs, where no other test has them; 53, 55-58, 61 and 65 are in `tests/acceptance/test_node_*.py`.
"""

import json
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.rawserver import answer
from tests.scripted_node import clock_in, in_json, refusal, talk
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import FAR_FUTURE_EPOCH
from vc_fallback.node import failures
from vc_fallback.node.failures import ItemFailure
from vc_fallback.node.values.encodings import Encodings

pytestmark = pytest.mark.anyio

BOTH = Encodings(ssz=b"\x00value", json=b"{}")


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time."""
    return virtual_time_backend


async def fails(call: Awaitable[object], error: type[NodeError], status: int) -> NodeError:
    """Await a call that is to fail with this very error."""
    with pytest.raises(NodeError) as caught:
        await call
    assert (type(caught.value), caught.value.status) == (error, status)
    return caught.value


# --- e: production and publish


async def test_duplicate_that_is_called_a_wrong_version_costs_no_route() -> None:
    """Case 55: it may be one or the other, so it is neither known nor a route that is not there."""
    text = "BAD_REQUEST: Unsupported endpoint version: v1"
    async with talk(refusal(400, text), answer(b""), slots=clock_in("deneb")) as asked:
        error = await fails(asked.node.publish_block(BOTH, "deneb"), failures.BadRequest, 400)
        assert (error.words, error.blames_node) == (f"400 {text}", False)
        await asked.node.publish_block(BOTH, "deneb")
        assert asked.targets == ["POST /eth/v2/beacon/blocks"] * 2


UNKNOWN_ROOT = "ATTESTATION_ERROR_UNKNOWN_OR_PREFINALIZED_BEACON_BLOCK_ROOT"
SOME = (
    b'{"code":400,"message":"some failures","failures":[{"index":0,"message":"%b"},'
    b'{"index":3,"message":"PriorAttestationKnown"}]}' % UNKNOWN_ROOT.encode()
)


async def test_of_a_refused_list_the_rest_was_taken() -> None:
    """Case 60, Q12: index 0 is to go to another node, index 3 is there, the others were taken."""
    async with talk(answer(SOME, status="400 Bad Request")) as asked:
        call = asked.node.publish_attestations([BOTH] * 5, "fulu")
        error = await fails(call, failures.BadRequest, 400)
        assert isinstance(error, failures.BadRequest)
        assert error.failures == (ItemFailure(0, UNKNOWN_ROOT, False), ItemFailure(3, "PriorAttestationKnown", True))
        assert error.rest_taken
        assert not error.blames_node
        # Of a list that is shorter than what it names it is not known what was taken.
        error = await fails(asked.node.publish_attestations([BOTH] * 3, "fulu"), failures.BadRequest, 400)
        assert isinstance(error, failures.BadRequest)
        assert not error.rest_taken


ELSEWHERE = [
    (400, "Invalid signed execution payload envelope", failures.BadRequest),
    (400, "BAD_REQUEST: block commits to blobs but the beacon node has no cached blobs for it", failures.NotFound),
    (400, "no cached execution payload envelope to reconstruct from", failures.NotFound),
    (404, f"No cached block production result found for block root 0x{'aa' * 32}", failures.NotFound),
]


@pytest.mark.parametrize(("status", "text", "error"), ELSEWHERE, ids=[text[:40] for _, text, _ in ELSEWHERE])
async def test_envelope_without_blobs_that_went_to_another_node(status: int, text: str, error: type[NodeError]) -> None:
    """Case 61: no failure of a node that did not make the block; and the form of what was sent is in no doubt."""
    async with talk(refusal(status, text), answer(b"")) as asked:
        call = asked.node.publish_execution_payload_envelope(BOTH, "gloas", blob_data_included=False)
        assert not (await fails(call, error, status)).blames_node
        assert len(asked.requests) == 1
        if error is failures.NotFound:
            await asked.node.publish_execution_payload_envelope(BOTH, "gloas", blob_data_included=True)
            assert [request.headers["content-type"] for request in asked.requests] == ["application/octet-stream"] * 2


# --- f: numbers

VALIDATOR = {
    "pubkey": "0x" + "ab" * 48,
    "withdrawal_credentials": "0x" + "aa" * 32,
    "effective_balance": 31000000000,
    "slashed": False,
    "activation_eligibility_epoch": 0,
    "activation_epoch": 0,
    "exit_epoch": 18446744073709551615,
    "withdrawable_epoch": 18446744073709551615,
}


def validators(**members: Any) -> bytes:
    listed = {"index": 7, "balance": 9007199254740993, "status": "active_ongoing"}
    return in_json({"data": [{**listed, "validator": {**VALIDATOR, **members}}]})


@pytest.mark.parametrize("bad", [18446744073709552000, 1.8446744073709552e19, "18446744073709552000", 31e9, -1, True])
async def test_integers_are_numbers_and_what_a_float_has_been_through_is_none(bad: Any) -> None:
    """Cases 63, 65, Q17: no epoch becomes FAR_FUTURE by rounding; beyond 2^53 everything is exact."""
    assert json.loads(json.dumps(bad)) == bad
    async with talk(validators(), validators(exit_epoch=bad), validators(effective_balance=bad)) as asked:
        (found,) = (await asked.node.validators("head", [7])).value.data
        assert (found.index, found.balance) == (7, 9007199254740993)
        assert (found.validator.effective_balance, found.validator.exit_epoch) == (31000000000, FAR_FUTURE_EPOCH)
        for member in ("exit_epoch", "effective_balance"):
            error = await fails(asked.node.validators("head", [7]), failures.Malformed, 200)
            assert member in error.problem
