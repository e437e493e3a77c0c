"""What a node is told ahead of duties, on real sockets (Q1, Q13, Q14)."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.rawserver import answer
from tests.scripted_node import SLOTS_PER_EPOCH, clock_in, in_json, refusal, talk
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import FAR_FUTURE_EPOCH, Epoch, Root, Slot, Sourced
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import ItemFailure
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.preparations import (
    BeaconCommitteeSelection,
    BeaconCommitteeSubscription,
    ProposerPreferences,
    ProposerPreparation,
    SignedProposerPreferences,
    SignedValidatorRegistration,
    SyncCommitteeSelection,
    SyncCommitteeSubscription,
    ValidatorRegistration,
)
from vc_fallback.node.values.publication import Publication

pytestmark = pytest.mark.anyio

JSON, SSZ = "application/json", "application/octet-stream"
ADDRESS, KEY, SIGNATURE, ROOT = bytes(range(20)), bytes(range(48)), bytes(range(96)), Root(bytes(range(32)))
EPOCH = SLOTS_PER_EPOCH * 12.0
"""Seconds."""
OK = answer(b"")
MOST = 2**64 - 1

PREPARATIONS = [ProposerPreparation(7, ADDRESS), ProposerPreparation(MOST, ADDRESS)]
SUBSCRIPTIONS = [
    BeaconCommitteeSubscription(7, 1, 64, Slot(161), True),
    BeaconCommitteeSubscription(8, 1, 64, Slot(161), False),
]
SYNC_SUBSCRIPTIONS = [
    SyncCommitteeSubscription(7, [0, 511], Epoch(512)),
    SyncCommitteeSubscription(8, [], FAR_FUTURE_EPOCH),
]
SELECTIONS = [BeaconCommitteeSelection(7, Slot(161), SIGNATURE)]
SYNC_SELECTIONS = [SyncCommitteeSelection(7, Slot(161), 3, SIGNATURE)]

Call = Callable[[BeaconNode, Any], Awaitable[Sourced[Any]]]

TOLD: dict[str, tuple[Call, Any, str, Any]] = {
    "proposers": (
        lambda node, items: node.prepare_beacon_proposer(items, timeout=5),
        PREPARATIONS,
        "/eth/v1/validator/prepare_beacon_proposer",
        [
            {"validator_index": "7", "fee_recipient": "0x" + ADDRESS.hex()},
            {"validator_index": str(MOST), "fee_recipient": "0x" + ADDRESS.hex()},
        ],
    ),
    "committees": (
        lambda node, items: node.subscribe_beacon_committees(items, timeout=5),
        SUBSCRIPTIONS,
        "/eth/v1/validator/beacon_committee_subscriptions",
        [
            {
                "validator_index": index,
                "committee_index": "1",
                "committees_at_slot": "64",
                "slot": "161",
                "is_aggregator": aggregates,
            }
            for index, aggregates in (("7", True), ("8", False))
        ],
    ),
    "sync committees": (
        lambda node, items: node.subscribe_sync_committees(items, timeout=5),
        SYNC_SUBSCRIPTIONS,
        "/eth/v1/validator/sync_committee_subscriptions",
        [
            {"validator_index": "7", "sync_committee_indices": ["0", "511"], "until_epoch": "512"},
            {"validator_index": "8", "sync_committee_indices": [], "until_epoch": str(MOST)},
        ],
    ),
}
EXCHANGED: dict[str, tuple[Call, Any, str, Any]] = {
    "committee selections": (
        lambda node, items: node.beacon_committee_selections(items, timeout=5),
        SELECTIONS,
        "/eth/v1/validator/beacon_committee_selections",
        [{"validator_index": "7", "slot": "161", "selection_proof": "0x" + SIGNATURE.hex()}],
    ),
    "sync committee selections": (
        lambda node, items: node.sync_committee_selections(items, timeout=5),
        SYNC_SELECTIONS,
        "/eth/v1/validator/sync_committee_selections",
        [
            {
                "validator_index": "7",
                "slot": "161",
                "subcommittee_index": "3",
                "selection_proof": "0x" + SIGNATURE.hex(),
            }
        ],
    ),
}
REGISTRATIONS = [
    SignedValidatorRegistration(ValidatorRegistration(ADDRESS, gas, 1_700_000_000, KEY), SIGNATURE)
    for gas in (30_000_000, MOST)
]
PREFERENCES = [
    SignedProposerPreferences(ProposerPreferences(ROOT, Slot(161 + number), 7, ADDRESS, 60_000_000), SIGNATURE)
    for number in range(2)
]
PUBLISHED: dict[str, tuple[Call, Any, str, Any]] = {
    "registrations": (
        lambda node, items: node.register_validators(items, timeout=5),
        [value.encodings() for value in REGISTRATIONS],
        "/eth/v1/validator/register_validator",
        None,
    ),
    "preferences": (
        lambda node, items: node.submit_proposer_preferences(items, "gloas", timeout=5),
        [value.encodings() for value in PREFERENCES],
        "/eth/v1/validator/proposer_preferences",
        "gloas",
    ),
}


def each(*tables: dict[str, tuple[Call, Any, str, Any]]) -> pytest.MarkDecorator:
    """Run a test with every row of some tables."""
    rows = {name: row for table in tables for name, row in table.items()}
    return pytest.mark.parametrize(("call", "items", "path", "said"), rows.values(), ids=rows.keys())


async def fails(call: Awaitable[object], error: type[NodeError]) -> NodeError:
    """Await a call that is to fail with this very error."""
    with pytest.raises(error) as caught:
        await call
    assert type(caught.value) is error
    return caught.value


@each(TOLD)
async def test_is_told_as_the_api_has_it(call: Call, items: Any, path: str, said: Any) -> None:
    async with talk(OK, in_json(b"null"), answer(b"", status="202 -")) as asked:
        for _ in range(3):
            found = await call(asked.node, items)
            assert (found.value, found.node_id, found.provenance.attempts) == (None, "n1", 1)
        request = asked.requests[0]
        assert asked.targets == [f"POST {path}"] * 3
        assert request.headers["content-type"] == request.headers["accept"] == JSON
        assert json.loads(request.body) == said


@each(EXCHANGED)
async def test_selections_are_exchanged(call: Call, items: Any, path: str, said: Any) -> None:
    whole = [{**one, "selection_proof": "0x" + "ab" * 96} for one in said]
    async with talk(in_json({"data": whole})) as asked:
        found = await call(asked.node, items)
        (request,) = asked.requests
    assert asked.targets == [f"POST {path}"]
    assert request.headers["content-type"] == request.headers["accept"] == JSON
    assert json.loads(request.body) == said
    assert [(one.validator_index, one.slot, one.selection_proof) for one in found.value] == [(7, 161, b"\xab" * 96)]


@each(TOLD, EXCHANGED)
async def test_nothing_to_tell_needs_no_request(call: Call, items: Any, path: str, said: Any) -> None:
    async with talk(refusal(500)) as asked:
        found = await call(asked.node, [])
        assert not found.value
        assert (found.provenance.attempts, found.latency) == (0, None)
        assert not asked.requests


@each(PUBLISHED)
async def test_signed_ones_go_out_as_they_were_given(call: Call, items: Any, path: str, said: Any) -> None:
    """Q2a: as a list of items of fixed size, or as JSON."""
    async with talk(OK) as asked:
        assert (await call(asked.node, items)).value is Publication.ACCEPTED
        await call(asked.node, [Encodings(json=one.json) for one in items])
        first, second = asked.requests
    assert asked.targets == [f"POST {path}"] * 2
    assert (first.headers["content-type"], first.body) == (SSZ, b"".join(one.ssz for one in items))
    assert (second.headers["content-type"], json.loads(second.body)) == (JSON, [json.loads(one.json) for one in items])
    for request in (first, second):
        assert request.headers["accept"] == JSON
        assert request.headers.get("eth-consensus-version") == said


async def test_signed_ones_are_written_by_the_letter() -> None:
    """Against the API definition, by hand."""
    async with talk(OK) as asked:
        await asked.node.register_validators([Encodings(json=REGISTRATIONS[1].to_json())])
        await asked.node.submit_proposer_preferences([Encodings(json=PREFERENCES[0].to_json())], "gloas")
        bodies = [json.loads(request.body) for request in asked.requests]
    address, signature = "0x" + ADDRESS.hex(), "0x" + SIGNATURE.hex()
    registration = {
        "fee_recipient": address,
        "gas_limit": "18446744073709551615",
        "timestamp": "1700000000",
        "pubkey": "0x" + KEY.hex(),
    }
    preferences = {
        "dependent_root": "0x" + ROOT.hex(),
        "proposal_slot": "161",
        "validator_index": "7",
        "fee_recipient": address,
        "target_gas_limit": "60000000",
    }
    assert bodies == [
        [{"message": registration, "signature": signature}],
        [{"message": preferences, "signature": signature}],
    ]


@each(PUBLISHED)
async def test_no_node_takes_nothing(call: Call, items: Any, path: str, said: Any) -> None:
    async with talk(OK) as asked:
        with pytest.raises(ValueError, match="empty list"):
            await call(asked.node, [])
        assert not asked.requests


@each(PUBLISHED)
async def test_ssz_refused_is_remembered_for_the_epoch(call: Call, items: Any, path: str, said: Any) -> None:
    """Q10, Q13."""
    async with talk(refusal(415), OK, OK, OK, slots=clock_in("fulu")) as asked:
        assert [(await call(asked.node, items)).provenance.attempts for _ in range(2)] == [2, 1]
        await anyio.sleep(EPOCH)
        await call(asked.node, items)
        assert [request.headers["content-type"] for request in asked.requests] == [SSZ, JSON, JSON, SSZ]


async def test_refused_preferences_have_their_index() -> None:
    """Q12."""
    body = {"code": 400, "message": "some failures", "failures": [{"index": 1, "message": "invalid signature"}]}
    async with talk(answer(json.dumps(body).encode(), status="400 -")) as asked:
        items = [value.encodings() for value in PREFERENCES]
        error = await fails(asked.node.submit_proposer_preferences(items, "gloas"), failures.BadRequest)
        assert isinstance(error, failures.BadRequest)
        assert error.failures == (ItemFailure(1, "invalid signature", False),)


@each(TOLD, EXCHANGED, PUBLISHED)
@pytest.mark.parametrize("lack", [refusal(501), refusal(405), refusal(404)], ids=["501", "405", "404"])
async def test_lack_of_the_endpoint_is_remembered_until_the_next_epoch(
    call: Call, items: Any, path: str, said: Any, lack: bytes
) -> None:
    """Q13: nodes that are no middleware answer 501, nodes after Gloas may have some routes no more."""
    async with talk(lack, slots=clock_in("fulu")) as asked:
        for _ in range(3):
            error = await fails(call(asked.node, items), failures.UnsupportedEndpoint)
            assert not error.blames_node
        assert asked.targets == [f"POST {path}"]
        await anyio.sleep(EPOCH)
        await fails(call(asked.node, items), failures.UnsupportedEndpoint)
        assert len(asked.requests) == 2


STATUSES = [
    (400, failures.BadRequest),
    (401, failures.Unauthorized),
    (413, failures.PayloadTooLarge),
    (429, failures.RateLimited),
    (500, failures.ServerError),
    (503, failures.NotReady),
]


@each(TOLD, EXCHANGED, PUBLISHED)
@pytest.mark.parametrize(("status", "error"), STATUSES, ids=[str(row[0]) for row in STATUSES])
async def test_refusals_have_their_names(
    call: Call, items: Any, path: str, said: Any, status: int, error: type[NodeError]
) -> None:
    async with talk(refusal(status)) as asked:
        for count in (1, 2):
            assert (await fails(call(asked.node, items), error)).status == status
            assert len(asked.requests) == count


BAD = {
    "nothing": in_json(b""),
    "null": in_json(None),
    "list": in_json([]),
    "no data": in_json({}),
    "null data": in_json({"data": None}),
    "object for a list": in_json({"data": {}}),
    "null in the list": in_json({"data": [None]}),
    "page": in_json(b"<html></html>"),
    "cut short": in_json(b'{"data":[{"validator_index":"7"'),
    "half a proof": in_json(
        {"data": [{"validator_index": "7", "slot": "161", "subcommittee_index": "3", "selection_proof": "0xab"}]}
    ),
    "a float": in_json(
        {
            "data": [
                {"validator_index": 7.0, "slot": "161", "subcommittee_index": "3", "selection_proof": "0x" + "ab" * 96}
            ]
        }
    ),
}


@each(EXCHANGED)
@pytest.mark.parametrize("reply", BAD.values(), ids=BAD.keys())
async def test_selections_that_are_none_are_malformed(
    call: Call, items: Any, path: str, said: Any, reply: bytes
) -> None:
    """Case 67, Q17."""
    async with talk(reply, in_json({"data": said})) as asked:
        await fails(call(asked.node, items), failures.Malformed)
        assert (await call(asked.node, items)).value == items


WRONG: dict[str, Callable[[], Any]] = {
    "address too short": lambda: ProposerPreparation(7, ADDRESS[1:]),
    "index below zero": lambda: ProposerPreparation(-1, ADDRESS),
    "index that is a float": lambda: ProposerPreparation(7.0, ADDRESS),  # type: ignore[arg-type]
    "slot above all": lambda: BeaconCommitteeSubscription(7, 1, 64, Slot(2**64), True),
    "flag that is a number": lambda: BeaconCommitteeSubscription(7, 1, 64, Slot(1), 1),  # type: ignore[arg-type]
    "place below zero": lambda: SyncCommitteeSubscription(7, [-1], Epoch(1)),
    "proof too long": lambda: BeaconCommitteeSelection(7, Slot(1), SIGNATURE + b"\0"),
    "gas that is text": lambda: ValidatorRegistration(ADDRESS, "much", 1, KEY),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("made", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_value_cannot_be_made(made: Callable[[], Any]) -> None:
    """Q3: what we can see to be wrong raises without a request."""
    with pytest.raises(ValueError, match=r"."):
        made()
