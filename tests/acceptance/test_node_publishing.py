"""Signed values in lists, and operations, on their way to one node, on real sockets (Q2a, Q10, Q12, Q13)."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from tests.rawserver import Handler, RawConnection, Request, answer
from tests.scripted_node import SLOTS_PER_EPOCH, Talk, clock_in, in_json, refusal, talk
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Root, Slot, Sourced
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import ItemFailure
from vc_fallback.node.values.attestation import AttestationData, Checkpoint, SingleAttestation
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.operations import (
    BLSToExecutionChange,
    SignedBLSToExecutionChange,
    SignedVoluntaryExit,
    VoluntaryExit,
)
from vc_fallback.node.values.payload_attestation import PayloadAttestationData, PayloadAttestationMessage
from vc_fallback.node.values.publication import Publication
from vc_fallback.node.values.sync_committee import (
    ContributionAndProof,
    SignedContributionAndProof,
    SyncCommitteeContribution,
    SyncCommitteeMessage,
)

pytestmark = pytest.mark.anyio

JSON, SSZ = "application/json", "application/octet-stream"
ROOT, SIGNATURE = Root(bytes(range(32))), bytes(range(96))
OK = answer(b"")
EPOCH = SLOTS_PER_EPOCH * 12.0
"""Seconds."""
REFUSES_SSZ = answer(
    b'{"statusCode":415,"code":"FST_ERR_CTP_INVALID_MEDIA_TYPE","error":"Unsupported Media Type",'
    b'"message":"Unsupported Media Type: application/octet-stream"}',
    status="415 -",
    headers="Content-Type: application/json\r\n",
)

_CHECKPOINT = Checkpoint(4, ROOT)  # type: ignore[arg-type]
_DATA = AttestationData(Slot(161), 0, ROOT, _CHECKPOINT, _CHECKPOINT)
SINGLE = [SingleAttestation(0, number, _DATA, SIGNATURE).encodings() for number in range(3)]
OPAQUE = [Encodings(ssz=bytes([number]) * number, json=b'{"number":%d}' % number) for number in range(1, 4)]
"""Values of no fixed size: attestations of before Electra, aggregates, slashings."""
_PAYLOAD = PayloadAttestationData(ROOT, Slot(161), True, True)
PAYLOADS = [PayloadAttestationMessage(number, _PAYLOAD, SIGNATURE).encodings() for number in range(3)]
MESSAGES = [SyncCommitteeMessage(Slot(161), ROOT, number, SIGNATURE).encodings() for number in range(3)]
_CONTRIBUTION = SyncCommitteeContribution(Slot(161), ROOT, 3, bytes(16), SIGNATURE)
CONTRIBUTIONS = [
    SignedContributionAndProof(ContributionAndProof(number, _CONTRIBUTION, SIGNATURE), SIGNATURE).encodings()
    for number in range(3)
]
EXIT = SignedVoluntaryExit(VoluntaryExit(5, 6), SIGNATURE).encodings()  # type: ignore[arg-type]
CHANGES = [
    SignedBLSToExecutionChange(BLSToExecutionChange(number, bytes(48), bytes(20)), SIGNATURE).encodings()
    for number in range(3)
]

Call = Callable[[BeaconNode, Any], Awaitable[Sourced[Publication]]]


@dataclass(frozen=True)
class Way:
    """How something is published: by which call, with what, where to, and in which forms."""

    call: Call
    value: Any
    path: str
    version: str | None = None
    fixed_size: bool | None = None
    """`None` where the API has no SSZ."""

    @property
    def one(self) -> bool:
        return isinstance(self.value, Encodings)


def attestations(version: str) -> Call:
    return lambda node, value: node.publish_attestations(value, version, timeout=5)


def aggregates(version: str) -> Call:
    return lambda node, value: node.publish_aggregates(value, version, timeout=5)


ATTESTATIONS, AGGREGATES = "/eth/v2/beacon/pool/attestations", "/eth/v2/validator/aggregate_and_proofs"
WAYS = {
    "attestations": Way(attestations("fulu"), SINGLE, ATTESTATIONS, "fulu", fixed_size=True),
    "attestations, deneb": Way(attestations("deneb"), OPAQUE, ATTESTATIONS, "deneb", fixed_size=False),
    "attestations, heze": Way(attestations("heze"), SINGLE, ATTESTATIONS, "heze", fixed_size=True),
    "aggregates": Way(aggregates("electra"), OPAQUE, AGGREGATES, "electra", fixed_size=False),
    "payload attestations": Way(
        lambda node, value: node.publish_payload_attestations(value, "gloas", timeout=5),
        PAYLOADS,
        "/eth/v1/beacon/pool/payload_attestations",
        "gloas",
        fixed_size=True,
    ),
    "sync committee messages": Way(
        lambda node, value: node.publish_sync_committee_messages(value, timeout=5),
        MESSAGES,
        "/eth/v1/beacon/pool/sync_committees",
    ),
    "contributions": Way(
        lambda node, value: node.publish_contributions(value, timeout=5),
        CONTRIBUTIONS,
        "/eth/v1/validator/contribution_and_proofs",
    ),
    "voluntary exit": Way(
        lambda node, value: node.publish_voluntary_exit(value, timeout=5), EXIT, "/eth/v1/beacon/pool/voluntary_exits"
    ),
    "changes of credentials": Way(
        lambda node, value: node.publish_bls_to_execution_changes(value, timeout=5),
        CHANGES,
        "/eth/v1/beacon/pool/bls_to_execution_changes",
    ),
    "attester slashing": Way(
        lambda node, value: node.publish_attester_slashing(value, "fulu", timeout=5),
        OPAQUE[0],
        "/eth/v2/beacon/pool/attester_slashings",
        "fulu",
    ),
    "proposer slashing": Way(
        lambda node, value: node.publish_proposer_slashing(value, timeout=5),
        OPAQUE[0],
        "/eth/v1/beacon/pool/proposer_slashings",
    ),
}


def ways(**having: Callable[[Way], bool]) -> pytest.MarkDecorator:
    """Run a test with the ways that have what is asked of them."""
    chosen = {name: way for name, way in WAYS.items() if all(has(way) for has in having.values())}
    return pytest.mark.parametrize("way", chosen.values(), ids=chosen.keys())


every_way = ways()
lists = ways(listed=lambda way: not way.one)
in_ssz = ways(ssz=lambda way: way.fixed_size is not None)
in_json_alone = ways(json=lambda way: way.fixed_size is None)


def ssz_of(way: Way) -> bytes:
    """Return what is sent as SSZ: by the rules, a list of variable items begins with their offsets."""
    items = [item.ssz for item in way.value]
    if way.fixed_size:
        return b"".join(items)
    starts = [4 * len(items) + sum(map(len, items[:number])) for number in range(len(items))]
    return b"".join(start.to_bytes(4, "little") for start in starts) + b"".join(items)


def json_of(way: Way) -> Any:
    """Return what is sent as JSON."""
    if way.one:
        return json.loads(way.value.json)
    return [json.loads(item.json) for item in way.value]


def json_only(value: Any) -> Any:
    return Encodings(json=value.json) if isinstance(value, Encodings) else [Encodings(json=one.json) for one in value]


def ssz_only(value: Any) -> Any:
    return Encodings(ssz=value.ssz) if isinstance(value, Encodings) else [Encodings(ssz=one.ssz) for one in value]


def forms(asked: Talk) -> list[str]:
    """Return the media types of the bodies that came."""
    return [request.headers["content-type"] for request in asked.requests]


async def fails(call: Awaitable[object], error: type[NodeError]) -> NodeError:
    """Await a call that is to fail with this very error."""
    with pytest.raises(error) as caught:
        await call
    assert type(caught.value) is error
    return caught.value


# --- what is sent


@every_way
async def test_goes_out_as_it_was_given(way: Way) -> None:
    """Q2a; and case 57: some nodes refuse a request that accepts no JSON, though it has no answer."""
    async with talk(OK) as asked:
        found = await way.call(asked.node, way.value)
        (request,) = asked.requests
    assert asked.targets == [f"POST {way.path}"]
    assert request.headers["accept"] == JSON
    assert request.headers.get("eth-consensus-version") == way.version
    if way.fixed_size is None:
        assert (request.headers["content-type"], json.loads(request.body)) == (JSON, json_of(way))
    else:
        assert (request.headers["content-type"], request.body) == (SSZ, ssz_of(way))
    assert (found.value, found.node_id, found.provenance.attempts) == (Publication.ACCEPTED, "n1", 1)


@every_way
async def test_goes_out_as_json_where_there_is_nothing_else(way: Way) -> None:
    async with talk(OK) as asked:
        await way.call(asked.node, json_only(way.value))
        (request,) = asked.requests
    assert (request.headers["content-type"], json.loads(request.body)) == (JSON, json_of(way))
    assert request.headers.get("eth-consensus-version") == way.version


async def test_json_is_sent_byte_for_byte() -> None:
    """Rule 12: whatever the caller's own way of writing it is."""
    odd = [Encodings(json=b' {"a" : 1.50}'), Encodings(json=b'{"a":"\xc3\xa9"}\n')]
    async with talk(OK) as asked:
        await asked.node.publish_sync_committee_messages(odd)
        assert asked.requests[0].body == b'[ {"a" : 1.50},{"a":"\xc3\xa9"}\n]'


@pytest.mark.parametrize(
    ("status", "taken"),
    [("200 OK", Publication.ACCEPTED), ("202 Accepted", Publication.BROADCAST), ("204 -", Publication.ACCEPTED)],
)
async def test_what_was_taken(status: str, taken: Publication) -> None:
    """Case 53; a proxy may make a 204 of a 200 without a body."""
    async with talk(
        f"HTTP/1.1 {status}\r\n{'Content-Length: 0' if '204' not in status else 'X: y'}\r\n\r\n".encode()
    ) as asked:
        assert (await asked.node.publish_attestations(SINGLE, "fulu")).value is taken


@pytest.mark.parametrize("body", [b"null", b"ok", b"\xff", b'{"data":[]}'])
async def test_what_stands_in_a_success_does_not_matter(body: bytes) -> None:
    async with talk(in_json(body)) as asked:
        assert (await asked.node.publish_voluntary_exit(EXIT)).value is Publication.ACCEPTED


# --- what is not sent


@lists
async def test_nothing_to_publish_is_the_callers_mistake(way: Way) -> None:
    """Rule 8: no node took what was not there."""
    async with talk(OK) as asked:
        with pytest.raises(ValueError, match="empty list"):
            await way.call(asked.node, [])
        assert not asked.requests


@lists
async def test_items_without_a_form_in_common_are_the_callers_mistake(way: Way) -> None:
    async with talk(OK) as asked:
        with pytest.raises(ValueError, match="no list can be made"):
            await way.call(asked.node, [Encodings(ssz=b"1"), Encodings(json=b"1")])
        assert not asked.requests


@in_json_alone
async def test_ssz_alone_of_what_the_api_has_as_json_is_refused_unsent(way: Way) -> None:
    """Q2a."""
    async with talk(OK) as asked:
        await fails(way.call(asked.node, ssz_only(way.value)), failures.UnsupportedMediaType)
        assert not asked.requests


@pytest.mark.parametrize("version", ["", " ", "fu\r\nlu: x", "fülu€"])
async def test_version_that_is_no_name_is_the_callers_mistake(version: str) -> None:
    async with talk(OK) as asked:
        with pytest.raises(ValueError, match=r"."):
            await asked.node.publish_attestations(SINGLE, version)
        with pytest.raises(ValueError, match=r"."):
            await asked.node.publish_payload_attestations(PAYLOADS, version)
        assert not asked.requests


# --- SSZ refused


@in_ssz
async def test_415_is_sent_once_more_as_json_and_tried_again_in_the_next_epoch(way: Way) -> None:
    """Q10, Q13, case 56: on the same node, remembered for this route alone."""
    async with talk(REFUSES_SSZ, OK, OK, OK, REFUSES_SSZ, OK, slots=clock_in("fulu")) as asked:
        assert [(await way.call(asked.node, way.value)).provenance.attempts for _ in range(2)] == [2, 1]
        assert forms(asked) == [SSZ, JSON, JSON]
        assert json.loads(asked.requests[1].body) == json_of(way)
        assert asked.targets == [f"POST {way.path}"] * 3
        other = WAYS["aggregates" if way.path == ATTESTATIONS else "attestations"]
        await other.call(asked.node, other.value)
        assert forms(asked)[3:] == [SSZ]
        await anyio.sleep(EPOCH)
        assert (await way.call(asked.node, way.value)).provenance.attempts == 2
        assert forms(asked)[4:] == [SSZ, JSON]


@in_ssz
async def test_415_with_nothing_but_ssz_is_an_error_and_not_asked_again(way: Way) -> None:
    """Q2a: no other node suffers, and this one is not at fault."""
    async with talk(REFUSES_SSZ, OK, slots=clock_in("fulu")) as asked:
        for _ in range(2):
            error = await fails(way.call(asked.node, ssz_only(way.value)), failures.UnsupportedMediaType)
            assert not error.blames_node
        assert forms(asked) == [SSZ]
        await anyio.sleep(EPOCH)
        assert (await way.call(asked.node, ssz_only(way.value))).value is Publication.ACCEPTED


async def test_415_for_json_too_is_the_answer() -> None:
    async with talk(REFUSES_SSZ) as asked:
        await fails(asked.node.publish_attestations(SINGLE, "fulu"), failures.UnsupportedMediaType)
        assert forms(asked) == [SSZ, JSON]


async def test_time_of_a_call_holds_for_both_forms() -> None:
    """Rule 6."""

    def slow(requests: list[Request]) -> Handler:
        async def handler(connection: RawConnection) -> None:
            while True:
                requests.append(await connection.request())
                await anyio.sleep(3)
                await connection.send(REFUSES_SSZ if requests[-1].headers["content-type"] == SSZ else OK)

        return handler

    async with talk(handler=slow) as asked:
        began = anyio.current_time()
        await fails(asked.node.publish_attestations(SINGLE, "fulu", timeout=5), failures.RequestTimeout)
        assert anyio.current_time() - began == pytest.approx(5)
        assert (await asked.node.publish_attestations(SINGLE, "fulu", timeout=5)).provenance.attempts == 1


DOUBTS = [refusal(500, "cannot decode"), refusal(400, "invalid body")]


@pytest.mark.parametrize("doubt", DOUBTS, ids=["500", "400"])
@in_ssz
async def test_ssz_that_fails_is_in_doubt_for_the_epoch(way: Way, doubt: bytes) -> None:
    """Case 56: another node is asked now, and this one as JSON later; nothing repeats by itself (Q10)."""
    async with talk(doubt, OK, slots=clock_in("fulu")) as asked:
        with pytest.raises((failures.ServerError, failures.BadRequest)):
            await way.call(asked.node, way.value)
        await way.call(asked.node, way.value)
        await way.call(asked.node, ssz_only(way.value))
        assert forms(asked) == [SSZ, JSON, SSZ]


@pytest.mark.parametrize("doubt", DOUBTS, ids=["500", "400"])
async def test_doubt_ends_with_the_epoch(doubt: bytes) -> None:
    async with talk(doubt, OK, slots=clock_in("fulu")) as asked:
        with pytest.raises((failures.ServerError, failures.BadRequest)):
            await asked.node.publish_aggregates(OPAQUE, "fulu")
        await anyio.sleep(EPOCH)
        await asked.node.publish_aggregates(OPAQUE, "fulu")
        assert forms(asked) == [SSZ, SSZ]


@pytest.mark.parametrize("doubt", DOUBTS, ids=["500", "400"])
async def test_node_that_has_taken_ssz_is_not_doubted(doubt: bytes) -> None:
    async with talk(OK, doubt, OK) as asked:
        await asked.node.publish_aggregates(OPAQUE, "fulu")
        with pytest.raises((failures.ServerError, failures.BadRequest)):
            await asked.node.publish_aggregates(OPAQUE, "fulu")
        await asked.node.publish_aggregates(OPAQUE, "fulu")
        assert forms(asked) == [SSZ] * 3


@pytest.mark.parametrize("words", ["PriorAttestationKnown", "PublishError.Duplicate"])
async def test_node_that_says_what_it_has_read_is_not_doubted(words: str) -> None:
    known = some_failures(*({"index": number, "message": words} for number in range(3)))
    async with talk(known, refusal(500), OK) as asked:
        await fails(asked.node.publish_aggregates(OPAQUE, "fulu"), failures.AlreadyKnown)
        await fails(asked.node.publish_aggregates(OPAQUE, "fulu"), failures.ServerError)
        await asked.node.publish_aggregates(OPAQUE, "fulu")
        assert forms(asked) == [SSZ] * 3


# --- what a node says of items


def some_failures(*rows: Any, message: str = "some failures") -> bytes:
    body = json.dumps({"code": 400, "message": message, "failures": rows}).encode()
    return answer(body, status="400 -", headers="Content-Type: application/json\r\n")


UNKNOWN_ROOT = "ATTESTATION_ERROR_UNKNOWN_OR_PREFINALIZED_BEACON_BLOCK_ROOT"


@lists
async def test_failures_have_their_index_and_the_rest_was_taken(way: Way) -> None:
    """Q12, case 60."""
    refused = some_failures({"index": 0, "message": UNKNOWN_ROOT}, {"index": "2", "message": "PriorAttestationKnown"})
    async with talk(refused, OK) as asked:
        error = await fails(way.call(asked.node, way.value), failures.BadRequest)
        assert isinstance(error, failures.BadRequest)
        assert error.failures == (ItemFailure(0, UNKNOWN_ROOT, False), ItemFailure(2, "PriorAttestationKnown", True))
        assert (error.status, error.rest_taken, error.blames_node) == (400, True, False)
        # What names items has read them: their form is in no doubt.
        await way.call(asked.node, [way.value[0]])
        assert len(set(forms(asked))) == 1


@lists
async def test_all_known_already_is_an_outcome_of_its_own(way: Way) -> None:
    """Rule 8."""
    rows = [{"index": number, "message": "PriorAttestationKnown"} for number in range(len(way.value))]
    async with talk(some_failures(*rows)) as asked:
        await fails(way.call(asked.node, way.value), failures.AlreadyKnown)
        assert len(asked.requests) == 1


ODD: list[tuple[Any, Sequence[int]]] = [
    ([], []),
    (None, []),
    ("none", []),
    ({"index": 1}, []),
    ([{"index": 1, "message": "x"}, {"message": "no index"}, "text", None, [], {"index": -1}, {"index": 2.0}], [1]),
    ([{"index": 1}, {"index": 2, "message": None}, {"index": True, "message": "x"}], [1, 2]),
    ([{"index": 99, "message": "no such item"}], [99]),
]


@pytest.mark.parametrize(("rows", "indices"), ODD, ids=[str(number) for number in range(len(ODD))])
async def test_odd_failures_cost_themselves_alone(rows: Any, indices: Sequence[int]) -> None:
    """Case 67."""
    body = json.dumps({"code": 400, "message": "some failures", "failures": rows}).encode()
    async with talk(answer(body, status="400 -")) as asked:
        error = await fails(asked.node.publish_attestations(SINGLE, "fulu"), failures.BadRequest)
        assert isinstance(error, failures.BadRequest)
        assert [failure.index for failure in error.failures] == indices


@in_json_alone
async def test_refusal_without_items_is_of_the_whole(way: Way) -> None:
    async with talk(refusal(400, "Invalid voluntary exit")) as asked:
        error = await fails(way.call(asked.node, way.value), failures.BadRequest)
        assert isinstance(error, failures.BadRequest)
        assert not error.failures


# --- older routes

OLDER = {
    "attestations": ("/eth/v1/beacon/pool/attestations", attestations, OPAQUE),
    "aggregates": ("/eth/v1/validator/aggregate_and_proofs", aggregates, OPAQUE),
    "attester slashing": (
        "/eth/v1/beacon/pool/attester_slashings",
        lambda version: lambda node, value: node.publish_attester_slashing(value, version, timeout=5),
        OPAQUE[0],
    ),
}
older = pytest.mark.parametrize(("path", "calls", "value"), OLDER.values(), ids=OLDER.keys())
NO_ROUTE = refusal(404, "Route POST:/eth/v2/beacon/pool/attestations not found")


@older
@pytest.mark.parametrize("version", ["phase0", "altair", "bellatrix", "capella", "deneb"])
@pytest.mark.parametrize("lack", [NO_ROUTE, refusal(404, "404 page not found"), refusal(405), refusal(501)])
async def test_older_route_takes_what_is_of_before_electra(
    path: str, calls: Callable[[str], Call], value: Any, version: str, lack: bytes
) -> None:
    """Q13: as JSON, without a fork; remembered until the next epoch."""
    newer = path.replace("v1", "v2")
    call = calls(version)
    async with talk(lack, OK, OK, OK, slots=clock_in("fulu")) as asked:
        assert [(await call(asked.node, value)).provenance.attempts for _ in range(2)] == [2, 1]
        assert asked.targets == [f"POST {newer}", f"POST {path}", f"POST {path}"]
        first, *rest = asked.requests
        assert first.headers["eth-consensus-version"] == version
        for request in rest:
            assert request.headers["content-type"] == request.headers["accept"] == JSON
            assert "eth-consensus-version" not in request.headers
            assert json.loads(request.body) == json_of(Way(call, value, path))
        await anyio.sleep(EPOCH)
        await call(asked.node, value)
        assert asked.targets[3:] == [f"POST {newer}"]


@older
@pytest.mark.parametrize("version", ["electra", "fulu", "gloas", "heze"])
async def test_older_route_has_no_meaning_from_electra_on(
    path: str, calls: Callable[[str], Call], value: Any, version: str
) -> None:
    async with talk(NO_ROUTE, OK) as asked:
        for _ in range(2):
            await fails(calls(version)(asked.node, value), failures.UnsupportedEndpoint)
        assert asked.targets == [f"POST {path.replace('v1', 'v2')}"]


async def test_older_route_does_not_take_ssz() -> None:
    """Q2a."""
    async with talk(NO_ROUTE, OK) as asked:
        await fails(asked.node.publish_attestations(ssz_only(OPAQUE), "deneb"), failures.UnsupportedMediaType)
        assert forms(asked) == [SSZ]


async def test_failures_of_an_older_route_are_not_hidden() -> None:
    async with talk(NO_ROUTE, some_failures({"index": 1, "message": UNKNOWN_ROOT})) as asked:
        error = await fails(asked.node.publish_attestations(OPAQUE, "capella"), failures.BadRequest)
        assert isinstance(error, failures.BadRequest)
        assert [failure.index for failure in error.failures] == [1]


# --- trouble

STATUSES = [
    (401, failures.Unauthorized),
    (403, failures.Unauthorized),
    (406, failures.NotAcceptable),
    (413, failures.PayloadTooLarge),
    (429, failures.RateLimited),
    (500, failures.ServerError),
    (502, failures.ServerError),
    (503, failures.NotReady),
]


@every_way
@pytest.mark.parametrize(("status", "error"), STATUSES, ids=[str(row[0]) for row in STATUSES])
async def test_refusals_have_their_names(way: Way, status: int, error: type[NodeError]) -> None:
    async with talk(refusal(status), OK) as asked:
        caught = await fails(way.call(asked.node, way.value), error)
        assert (caught.status, caught.node_id) == (status, "n1")
        assert (await way.call(asked.node, way.value)).provenance.attempts == 1


async def test_node_that_asks_for_a_pause_says_how_long() -> None:
    """Q11."""
    async with talk(answer(b"", status="429 -", headers="Retry-After: 7\r\n")) as asked:
        error = await fails(asked.node.publish_attestations(SINGLE, "fulu"), failures.RateLimited)
        assert isinstance(error, failures.RateLimited)
        assert error.retry_after == 7


@every_way
async def test_publish_is_repeated_once_where_a_kept_connection_had_ended(way: Way) -> None:
    """Q10: consensus messages are safe to repeat, byte for byte."""

    def tired(requests: list[Request]) -> Handler:
        async def handler(connection: RawConnection) -> None:
            while True:
                requests.append(await connection.request())
                if connection.number == 0 and len(requests) == 2:
                    return
                await connection.send(OK)

        return handler

    async with talk(handler=tired) as asked:
        assert [(await way.call(asked.node, way.value)).provenance.attempts for _ in range(2)] == [1, 2]
        assert asked.requests[1].body == asked.requests[2].body
        assert asked.requests[1].head == asked.requests[2].head


@every_way
async def test_publish_is_not_repeated_where_it_may_have_been_taken(way: Way) -> None:
    """Rule 8: a connection that was new, or had begun to answer."""

    def cut(requests: list[Request]) -> Handler:
        async def handler(connection: RawConnection) -> None:
            requests.append(await connection.request())
            if connection.number == 1:
                await connection.send(b"HTTP/1.1 2")

        return handler

    async with talk(handler=cut) as asked:
        for _ in range(2):
            await fails(way.call(asked.node, way.value), failures.ConnectionLost)
        assert len(asked.requests) == 2
