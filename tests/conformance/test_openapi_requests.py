"""The requests of every method against the Beacon API definition, as they come to a node (Q1)."""

import inspect
import itertools
import json
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.conformance.openapi import JSON, SSZ, Schema, component, event_examples, operations, problems
from tests.conformance.openapi_calls import SUCCESSORS, Row, defined, plain_refusal, plain_reply
from tests.conformance.openapi_examples import branches, example, fixed_size
from tests.conformance.openapi_node import Asked, Reply, exchange, json_reply
from tests.conformance.openapi_requests import violations
from tests.conformance.openapi_rows import plain_calls, rows
from tests.conformance.openapi_values import distinct
from tests.wire_helpers import Recorder
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import root_hex
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.routes import ROUTES
from vc_fallback.node.values.attestation import AttestationData, Checkpoint, SingleAttestation
from vc_fallback.node.values.blocks import SignedBeaconBlockHeader
from vc_fallback.node.values.containers import Container
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.operations import ProposerSlashing, SignedBLSToExecutionChange, SignedVoluntaryExit
from vc_fallback.node.values.payload_attestation import PayloadAttestationData, PayloadAttestationMessage
from vc_fallback.node.values.preparations import SignedProposerPreferences, SignedValidatorRegistration
from vc_fallback.node.values.sync_committee import (
    SignedContributionAndProof,
    SyncCommitteeContribution,
    SyncCommitteeMessage,
)

pytestmark = pytest.mark.anyio

_EVENTS = "eventstream"
_NO_ENDPOINTS = {"aclose", "events", "identity"}
"""Methods that are no request of their own: `identity` is two of them, `events` a stream; each has its own test."""


def _methods() -> set[str]:
    names = {name for name, _ in inspect.getmembers(BeaconNode, inspect.iscoroutinefunction) if name[0] != "_"}
    return names - _NO_ENDPOINTS


def _holds_encodings(given: object) -> bool:
    return all(isinstance(value, Encodings) for value in (given if isinstance(given, list) else [given]))


def _labelled(row: Row) -> str:
    return row.label


# The older aggregates are asked for in JSON alone.
_SSZ_ANSWERS = [
    row
    for row in plain_calls()
    if SSZ in defined(row.operation).media_types and row.operation != "getAggregatedAttestation"
]
_JSON_ALONE = {"submitPoolAttestations", "publishAggregateAndProofs"}
"""Older routes whose successors were the first to take SSZ."""

_PUBLISHING = [row for row in rows() if row.args and _holds_encodings(row.args[0])]


@pytest.mark.parametrize("operation", [name for name, found in operations().items() if found.required])
def test_what_a_validator_client_cannot_do_without_has_a_method(operation: str) -> None:
    """Q1: operations tagged `ValidatorRequiredApi`."""
    assert operation == _EVENTS or {row.method for row in rows() if row.operation == operation} & _methods()


@pytest.mark.parametrize("operation", [route.operation for route in ROUTES])
def test_a_route_has_a_method(operation: str) -> None:
    assert operation == _EVENTS or any(row.operation == operation for row in rows())


@pytest.mark.parametrize("method", sorted(_methods()))
def test_a_method_has_an_example_call(method: str) -> None:
    assert any(row.method == method for row in rows())


async def _asked(row: Row, *replies: Reply) -> list[Asked]:
    """Make a call, and return the requests for its operation, whose answers are these, the last for all that follow."""
    found: list[Asked] = []
    async with exchange() as node:
        node.answer(row.replies(*replies))
        with suppress(NodeError):
            await row.call(node)
        for one in node.node.asked:
            # An older route is on the way once the newer one was tried; the definition cannot judge it.
            if one.operation in operations():
                assert violations(one) == []
            else:
                assert one.operation == row.operation
                assert SUCCESSORS[one.operation] in [before.operation for before in node.node.asked]
            if one.operation == row.operation:
                found.append(one)
    return found


@pytest.mark.parametrize("row", rows(), ids=_labelled)
async def test_a_request_is_as_the_definition_has_it(row: Row) -> None:
    """Names and values of parameters, headers, the body and its type, and what is accepted."""
    assert len(await _asked(row)) == 1


@pytest.mark.parametrize("row", _SSZ_ANSWERS, ids=_labelled)
async def test_ssz_is_asked_for_where_the_definition_has_it_and_json_where_the_node_has_none(row: Row) -> None:
    """Q1; the weights are those that the definition prefers (case 57). Case 58: SSZ without its fork is no answer."""
    refusals = [plain_refusal(row.operation, 406)]
    if row.opaque and "Eth-Consensus-Version" in defined(row.operation).answers[200].headers:
        refusals.append(Reply(200, bytes(42), SSZ))
    for refusal in refusals:
        first, second = await _asked(row, refusal, plain_reply(row.operation))
        assert first.request.headers["accept"] == "application/octet-stream;q=1.0,application/json;q=0.9"
        assert second.request.headers["accept"] == JSON
        assert replace(first, request=second.request) == second
        assert first.request.body == second.request.body


@pytest.mark.parametrize("row", _PUBLISHING, ids=_labelled)
async def test_what_is_published_goes_out_as_it_was_given(row: Row) -> None:
    """Q2a: SSZ where there is some and the API takes it, in lists as SSZ has them; else JSON."""
    (one,) = await _asked(row)
    values = row.args[0] if isinstance(row.args[0], list) else [row.args[0]]
    bodies = defined(row.operation).bodies
    if all(value.ssz is not None for value in values) and SSZ in bodies and row.operation not in _JSON_ALONE:
        parts = [value.ssz for value in values]
        joined = b"".join(parts)
        if isinstance(row.args[0], list) and not _is_fixed(bodies[JSON], json.loads(values[0].json)):
            places = itertools.accumulate((len(part) for part in parts[:-1]), initial=4 * len(parts))
            joined = b"".join(place.to_bytes(4, "little") for place in places) + joined
        assert (one.request.headers["content-type"], one.request.body) == (SSZ, joined)
    else:
        text = b",".join(value.json for value in values)
        assert one.request.body == (b"[" + text + b"]" if isinstance(row.args[0], list) else text)


@pytest.mark.parametrize("row", [row for row in _PUBLISHING if row.what.endswith("-ssz")], ids=_labelled)
async def test_what_is_not_taken_as_ssz_goes_out_as_json(row: Row) -> None:
    """Q10: once more, to the same node, after a 415."""
    first, second = await _asked(row, plain_refusal(row.operation, 415), plain_reply(row.operation))
    assert [one.request.headers["content-type"] for one in (first, second)] == [SSZ, JSON]
    assert replace(first, request=second.request) == second
    named = [name for name in first.request.headers if name.startswith("eth-")]
    assert [first.request.headers[name] for name in named] == [second.request.headers[name] for name in named]


def _is_fixed(body: Schema, item: object) -> bool:
    """Whether an item of a list has a fixed size as SSZ, by the branch of the schema that it is of."""
    # An item of a later fork may hold to the schema of an earlier one as well.
    (fixed,) = {fixed_size(branch["items"]) for branch in branches(body) if not problems(branch["items"], item)}
    return fixed


@pytest.mark.parametrize(("count", "requests"), [(64, 1), (65, 2), (200, 4)])
async def test_no_more_validators_are_asked_for_by_one_get_than_are_allowed(count: int, requests: int) -> None:
    for operation, method in (
        ("getStateValidators", "validators"),
        ("getStateValidatorBalances", "validator_balances"),
    ):
        asked = await _asked(Row(operation, method, ("head", range(count))))
        assert len(asked) == requests
        assert [value for one in asked for _, value in one.query] == [str(index) for index in range(count)]


async def test_events_are_subscribed_to_as_the_definition_has_it() -> None:
    """All topics of the definition, each by itself."""
    topics = sorted(event_examples())
    async with exchange() as node:
        node.answer({"eventstream": [Reply(200, b"", "text/event-stream")]})
        await node.client().events(topics, Recorder(), 1.0)
        (one,) = node.node.asked
    assert violations(one) == []
    assert one.query == tuple(("topics", topic) for topic in topics)


async def test_an_identity_is_put_together_from_the_definitions_examples() -> None:
    """I1: the definition's example of a configuration has no slots in it; these are added."""
    spec = {**example(_schema("getSpec"))["data"], "SECONDS_PER_SLOT": "12", "SLOTS_PER_EPOCH": "32"}
    genesis = example(_schema("getGenesis"))
    async with exchange() as node:
        node.answer({"getSpec": [json_reply({"data": spec})], "getGenesis": [json_reply(genesis)]})
        chain = (await node.client().identity()).value
        assert [violations(one) for one in node.node.asked] == [[], []]
    assert chain.genesis_time == int(genesis["data"]["genesis_time"])
    assert root_hex(chain.genesis_validators_root) == genesis["data"]["genesis_validators_root"]
    assert (chain.slot_duration, chain.slots_per_epoch) == (12.0, 32)


def _schema(operation: str) -> Schema:
    return operations()[operation].answers[200].schemas[JSON]


_OURS: dict[type[Container], str] = {
    AttestationData: "Phase0.AttestationData",
    Checkpoint: "Checkpoint",
    PayloadAttestationData: "Gloas.PayloadAttestationData",
    PayloadAttestationMessage: "Gloas.PayloadAttestationMessage",
    ProposerSlashing: "Phase0.ProposerSlashing",
    SignedBeaconBlockHeader: "Phase0.SignedBeaconBlockHeader",
    SignedBLSToExecutionChange: "Capella.SignedBLSToExecutionChange",
    SignedContributionAndProof: "Altair.SignedContributionAndProof",
    SignedProposerPreferences: "Gloas.SignedProposerPreferences",
    SignedValidatorRegistration: "SignedValidatorRegistration",
    SignedVoluntaryExit: "Phase0.SignedVoluntaryExit",
    SingleAttestation: "Electra.SingleAttestation",
    SyncCommitteeContribution: "Altair.SyncCommitteeContribution",
    SyncCommitteeMessage: "Altair.SyncCommitteeSignature",
}
"""Values that callers put together and have sent, by their schemas."""


@pytest.mark.parametrize(("kind", "name"), _OURS.items(), ids=lambda given: getattr(given, "__name__", None))
def test_our_values_are_written_as_the_definition_has_them(kind: type[Container], name: str) -> None:
    """Q2a, Q17: JSON of each holds to its schema, SSZ of each gives the same value."""
    schema = component(name)
    said = distinct(example(schema))
    value = kind.from_json(json.dumps(said).encode())
    encodings = value.encodings()
    assert encodings.json is not None
    assert encodings.ssz is not None
    written = json.loads(encodings.json)
    assert problems(schema, written) == []
    assert written == said
    assert kind.from_ssz(encodings.ssz) == value
