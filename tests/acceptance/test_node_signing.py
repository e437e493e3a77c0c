"""What a node makes for a validator to sign, on real sockets (Q1, Q8, Q17)."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest

from tests.rawserver import Handler, RawConnection, Request, answer
from tests.scripted_node import Talk, clock_in, in_json, refusal, slot_in, ssz, talk
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Root, Slot, Sourced
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.attestation import AttestationData, Checkpoint
from vc_fallback.node.values.opaque import Opaque
from vc_fallback.node.values.payload_attestation import PayloadAttestationData
from vc_fallback.node.values.sync_committee import SyncCommitteeContribution

pytestmark = pytest.mark.anyio

SLOT = Slot(161)
ROOT, OTHER = Root(bytes(range(32))), Root(b"\x77" * 32)
HEX = "0x" + ROOT.hex()
JSON, SSZ = "application/json", "application/octet-stream"
EITHER = f"{SSZ};q=1.0,{JSON};q=0.9"


def attestation_data(slot: int = SLOT) -> AttestationData:
    return AttestationData(Slot(slot), 2, ROOT, Checkpoint(4, ROOT), Checkpoint(5, OTHER))  # type: ignore[arg-type]


def payload_data(slot: int = SLOT) -> PayloadAttestationData:
    return PayloadAttestationData(ROOT, Slot(slot), True, False)


def contribution(slot: int = SLOT, subcommittee: int = 3, root: Root = ROOT) -> SyncCommitteeContribution:
    return SyncCommitteeContribution(Slot(slot), root, subcommittee, b"\x0f" + bytes(15), bytes(96))


def data(value: Any, **around: Any) -> bytes:
    """Return an answer in JSON around a value."""
    return in_json({**around, "data": json.loads(value.to_json()) if hasattr(value, "to_json") else value})


Call = Callable[[BeaconNode], Awaitable[Sourced[Any]]]
CALLS: dict[str, Call] = {
    "attestation_data": lambda node: node.attestation_data(SLOT, timeout=5),
    "aggregate_attestation": lambda node: node.aggregate_attestation(SLOT, ROOT, 2, timeout=5),
    "sync_committee_contribution": lambda node: node.sync_committee_contribution(SLOT, 3, ROOT, timeout=5),
    "payload_attestation_data": lambda node: node.payload_attestation_data(SLOT, timeout=5),
}
GOOD = {
    "attestation_data": data(attestation_data()),
    "aggregate_attestation": data({"aggregation_bits": "0x03"}, version="fulu"),
    "sync_committee_contribution": data(contribution()),
    "payload_attestation_data": data(payload_data(), version="gloas"),
}
every_call = pytest.mark.parametrize("name", CALLS)


async def fails(call: Call, asked: Talk, error: type[NodeError]) -> NodeError:
    """Make a call that is to fail with this very error."""
    with pytest.raises(error) as caught:
        await call(asked.node)
    assert type(caught.value) is error
    return caught.value


# --- attestation data


@pytest.mark.parametrize("reply", [data(attestation_data()), ssz(attestation_data().to_ssz())], ids=["json", "ssz"])
async def test_attestation_data_comes_in_either_form(reply: bytes) -> None:
    async with talk(reply) as asked:
        found = await asked.node.attestation_data(SLOT, 2)
        assert asked.targets == ["GET /eth/v1/validator/attestation_data"]
        assert asked.query() == [("slot", "161"), ("committee_index", "2")]
        assert asked.requests[0].headers["accept"] == EITHER
    assert found.value == attestation_data()
    assert found.value.hash_tree_root() == attestation_data().hash_tree_root()
    assert (found.node_id, found.provenance.attempts) == ("n1", 1)


@pytest.mark.parametrize(
    ("fork", "sent"),
    [("phase0", True), ("deneb", True), ("electra", True), ("fulu", True), ("gloas", False), ("heze", False)],
)
async def test_committee_index_is_not_sent_where_the_node_is_to_set_the_index(fork: str, sent: bool) -> None:
    """The API definition: from Gloas on it signals the payload, and is the node's to set."""
    slot = slot_in(fork)
    async with talk(data(attestation_data(slot)), slots=clock_in("gloas")) as asked:
        await asked.node.attestation_data(Slot(slot))
        assert asked.query() == [("slot", str(slot)), *([("committee_index", "0")] if sent else [])]


@pytest.mark.parametrize("length", [0, 1, 127, 129, 256])
async def test_attestation_data_of_another_length_is_malformed(length: int) -> None:
    async with talk(ssz((attestation_data().to_ssz() * 2)[:length]), GOOD["attestation_data"]) as asked:
        await fails(CALLS["attestation_data"], asked, failures.Malformed)
        assert (await CALLS["attestation_data"](asked.node)).value == attestation_data()


async def test_406_is_asked_again_as_json_and_remembered() -> None:
    """Case 57, Q13."""
    async with talk(refusal(406), GOOD["attestation_data"]) as asked:
        assert [(await CALLS["attestation_data"](asked.node)).provenance.attempts for _ in range(2)] == [2, 1]
        assert [request.headers["accept"] for request in asked.requests] == [EITHER, JSON, JSON]


async def test_integers_count_as_numbers() -> None:
    """Q17, case 63."""
    written = {
        "slot": 161,
        "index": 2,
        "beacon_block_root": "0x" + ROOT.hex().upper(),
        "source": {"epoch": 4, "root": HEX},
        "target": {"epoch": 2**64 - 1, "root": HEX},
    }
    async with talk(data(written)) as asked:
        found = (await asked.node.attestation_data(SLOT)).value
    assert (found.slot, found.source.epoch, found.target.epoch) == (161, 4, 2**64 - 1)
    assert found.beacon_block_root == ROOT


# --- what was not asked for


ELSE = {
    "attestation data of the slot before": ("attestation_data", data(attestation_data(SLOT - 1))),
    "the same in SSZ": ("attestation_data", ssz(attestation_data(SLOT + 1).to_ssz())),
    "contribution of another slot": ("sync_committee_contribution", data(contribution(slot=SLOT + 1))),
    "contribution of another subcommittee": ("sync_committee_contribution", data(contribution(subcommittee=2))),
    "contribution for another block": ("sync_committee_contribution", data(contribution(root=OTHER))),
    "payload data of another slot": ("payload_attestation_data", data(payload_data(SLOT - 1), version="gloas")),
    "the same data in SSZ": ("payload_attestation_data", ssz(payload_data(SLOT - 1).to_ssz())),
}


@pytest.mark.parametrize(("name", "reply"), ELSE.values(), ids=ELSE.keys())
async def test_what_was_not_asked_for_is_never_given_to_be_signed(name: str, reply: bytes) -> None:
    """A cache that mixes up answers would else make a validator vote twice."""
    async with talk(reply, GOOD[name]) as asked:
        error = await fails(CALLS[name], asked, failures.Malformed)
        assert "not the one that was asked for" in str(error)
        assert error.blames_node
        await CALLS[name](asked.node)


# --- aggregates

AGGREGATE = "GET /eth/v2/validator/aggregate_attestation"
AGGREGATE_V1 = "GET /eth/v1/validator/aggregate_attestation"
WANTED = [("attestation_data_root", HEX), ("slot", "161")]
NO_ROUTE = refusal(404, f"Route {AGGREGATE.replace(' ', ':')} not found")


async def test_aggregate_passes_through_in_either_form() -> None:
    """Rule 12."""
    async with talk(ssz(b"\xe4\0\0\0", eth_consensus_version="fulu"), GOOD["aggregate_attestation"]) as asked:
        found = [(await asked.node.aggregate_attestation(SLOT, ROOT, 2)).value for _ in range(2)]
        assert asked.targets == [AGGREGATE] * 2
        assert asked.query() == [*WANTED, ("committee_index", "2")]
        assert asked.requests[0].headers["accept"] == EITHER
    assert found == [Opaque("fulu", SSZ, b"\xe4\0\0\0"), Opaque("fulu", JSON, b'{"aggregation_bits": "0x03"}')]


async def test_aggregate_of_a_fork_that_is_not_known_passes() -> None:
    """Case 58: one client refused it, and all aggregators of it failed at the fork."""
    async with talk(ssz(b"x", ETH_CONSENSUS_VERSION="Heze")) as asked:
        assert (await CALLS["aggregate_attestation"](asked.node)).value == Opaque("heze", SSZ, b"x")


async def test_aggregate_in_ssz_that_names_no_fork_is_asked_for_again_as_json() -> None:
    """Case 58."""
    async with talk(ssz(b"x"), GOOD["aggregate_attestation"]) as asked:
        found = await CALLS["aggregate_attestation"](asked.node)
        assert (found.value.content_type, found.provenance.attempts) == (JSON, 2)
        assert [request.headers["accept"] for request in asked.requests] == [EITHER, JSON]


@pytest.mark.parametrize("fork", ["", "phase0", "deneb"])
async def test_older_aggregate_is_asked_for_where_the_newer_route_is_not_there(fork: str) -> None:
    """Q13: remembered; the older route names no fork, and its data name the committee."""
    slots = clock_in(fork) if fork else lambda: None
    slot = Slot(slot_in(fork)) if fork else SLOT
    async with talk(NO_ROUTE, data({"aggregation_bits": "0x03"}), slots=slots) as asked:
        for attempts in (2, 1):
            found = await asked.node.aggregate_attestation(slot, ROOT, 2)
            assert found.value == Opaque(None, JSON, b'{"aggregation_bits": "0x03"}')
            assert found.provenance.attempts == attempts
        assert asked.targets == [AGGREGATE, AGGREGATE_V1, AGGREGATE_V1]
        assert asked.query() == [("attestation_data_root", HEX), ("slot", str(slot))]


@pytest.mark.parametrize("fork", ["electra", "fulu", "gloas", "heze"])
async def test_older_aggregate_has_no_meaning_from_electra_on(fork: str) -> None:
    async with talk(NO_ROUTE, slots=clock_in(fork)) as asked:
        with pytest.raises(failures.UnsupportedEndpoint):
            await asked.node.aggregate_attestation(Slot(slot_in(fork)), ROOT, 2)
        assert asked.targets == [AGGREGATE]


async def test_no_aggregate_is_no_failure_of_the_node() -> None:
    """Case 39."""
    async with talk(refusal(404, "No matching attestations"), slots=clock_in("fulu")) as asked:
        for count in (1, 2):
            with pytest.raises(failures.NotFound) as caught:
                await asked.node.aggregate_attestation(Slot(slot_in("fulu")), ROOT, 2)
            assert not caught.value.blames_node
            assert asked.targets == [AGGREGATE] * count


# --- contributions


async def test_contribution_of_the_mainnet_preset() -> None:
    async with talk(GOOD["sync_committee_contribution"]) as asked:
        found = await CALLS["sync_committee_contribution"](asked.node)
        assert asked.targets == ["GET /eth/v1/validator/sync_committee_contribution"]
        assert asked.query() == [("slot", "161"), ("subcommittee_index", "3"), ("beacon_block_root", HEX)]
        assert asked.requests[0].headers["accept"] == JSON
    assert (found.value, found.value.bit_count) == (contribution(), 4)


async def test_contribution_of_the_minimal_preset() -> None:
    value = SyncCommitteeContribution(SLOT, ROOT, 3, b"\x81", bytes(96))
    async with talk(data(value)) as asked:
        assert (await CALLS["sync_committee_contribution"](asked.node)).value == value


async def test_no_contribution_is_no_failure_of_the_node() -> None:
    async with talk(refusal(404, "No sync committee contribution")) as asked:
        assert not (await fails(CALLS["sync_committee_contribution"], asked, failures.NotFound)).blames_node


# --- payload attestation data


@pytest.mark.parametrize(
    "reply",
    [
        GOOD["payload_attestation_data"],
        data(payload_data()),
        ssz(payload_data().to_ssz(), Eth_Consensus_Version="gloas"),
        ssz(payload_data().to_ssz()),
    ],
    ids=["json", "json without version", "ssz", "ssz without version"],
)
async def test_payload_attestation_data_comes_in_either_form(reply: bytes) -> None:
    async with talk(reply) as asked:
        found = await asked.node.payload_attestation_data(SLOT)
        assert asked.targets == ["GET /eth/v1/validator/payload_attestation_data"]
        assert (asked.query(), asked.requests[0].headers["accept"]) == ([("slot", "161")], EITHER)
    assert (found.value, found.provenance.attempts) == (payload_data(), 1)


async def test_no_content_says_not_to_vote() -> None:
    async with talk(b"HTTP/1.1 204 No Content\r\n\r\n") as asked:
        for _ in range(2):
            assert (await asked.node.payload_attestation_data(SLOT)).value is None
        assert asked.node.http.statistics().dials == 1


async def test_404_for_a_slot_without_a_block_is_asked_again() -> None:
    """Lighthouse, Teku and Grandine said it so until the API got its 204 (2026)."""
    async with talk(refusal(404, "NOT_FOUND: block not found"), GOOD["payload_attestation_data"]) as asked:
        assert not (await fails(CALLS["payload_attestation_data"], asked, failures.NotFound)).blames_node
        assert (await CALLS["payload_attestation_data"](asked.node)).value == payload_data()


async def test_no_route_for_payload_attestation_data_is_remembered() -> None:
    """Q13."""
    reply = refusal(404, "Route GET:/eth/v1/validator/payload_attestation_data?slot=161 not found")
    async with talk(reply) as asked:
        for _ in range(2):
            await fails(CALLS["payload_attestation_data"], asked, failures.UnsupportedEndpoint)
        assert len(asked.requests) == 1


@pytest.mark.parametrize("byte", [2, 255])
async def test_payload_flag_that_is_neither_yes_nor_no_is_malformed(byte: int) -> None:
    async with talk(ssz(payload_data().to_ssz()[:-1] + bytes([byte]))) as asked:
        await fails(CALLS["payload_attestation_data"], asked, failures.Malformed)


# --- bad answers of every kind

BAD = {
    "page": in_json(b"<html><body>all is well</body></html>"),
    "null": in_json(None),
    "list": in_json([]),
    "text": in_json("data"),
    "number": in_json(5),
    "nothing": in_json(b""),
    "no data": in_json({"version": "fulu"}),
    "null data": in_json({"version": "fulu", "data": None}),
    "list for an object": in_json({"version": "fulu", "data": []}),
    "cut short": in_json(b'{"version":"fulu","data":{"slot":"16'),
    "no UTF-8": in_json(b"\xff\xfe"),
    "depth": in_json(b'{"version":"fulu","data":' + b'{"slot":[' * 20_000),
}


@every_call
@pytest.mark.parametrize("reply", BAD.values(), ids=BAD.keys())
async def test_answers_that_are_none_are_malformed_and_the_next_call_works(name: str, reply: bytes) -> None:
    """Case 67."""
    async with talk(reply, GOOD[name]) as asked:
        assert (await fails(CALLS[name], asked, failures.Malformed)).status == 200
        await CALLS[name](asked.node)
        assert asked.node.http.statistics().dials == 1


NUMBERS: Sequence[Any] = (1.0, -1, True, None, "", "-1", "+161", " 161", "161 ", "1_61", "0161", "0xa1", "1.6e2", 2**64)


@pytest.mark.parametrize("name", ["attestation_data", "sync_committee_contribution", "payload_attestation_data"])
@pytest.mark.parametrize("bad", NUMBERS, ids=repr)
async def test_numbers_that_are_none_are_malformed(name: str, bad: Any) -> None:
    """Q17, case 63."""
    good = json.loads(GOOD[name].partition(b"\r\n\r\n")[2])
    async with talk(in_json({**good, "data": {**good["data"], "slot": bad}})) as asked:
        await fails(CALLS[name], asked, failures.Malformed)


STATUSES = [
    (400, "invalid slot", failures.BadRequest),
    (401, "who are you", failures.Unauthorized),
    (429, "slow down", failures.RateLimited),
    (500, "internal error", failures.ServerError),
    (502, "bad gateway", failures.ServerError),
    (503, "Beacon node is currently syncing", failures.NotReady),
]


@every_call
@pytest.mark.parametrize(("status", "words", "error"), STATUSES, ids=[str(row[0]) for row in STATUSES])
async def test_refusals_have_their_names(name: str, status: int, words: str, error: type[NodeError]) -> None:
    async with talk(refusal(status, words), GOOD[name]) as asked:
        caught = await fails(CALLS[name], asked, error)
        assert (caught.status, caught.node_id) == (status, "n1")
        await CALLS[name](asked.node)


async def test_optimistic_head_is_told_apart() -> None:
    """Case 30."""
    words = "UNHANDLED_ERROR: HeadBlockNotFullyVerified { execution_status: Optimistic(0x00) }"
    async with talk(refusal(500, words)) as asked:
        await fails(CALLS["attestation_data"], asked, failures.Optimistic)


def once(first: Callable[[RawConnection], Awaitable[None]], good: bytes) -> Callable[[list[Request]], Handler]:
    """Return a server that treats its first connection so, and answers on all others."""

    def made(requests: list[Request]) -> Handler:
        async def handler(connection: RawConnection) -> None:
            while True:
                requests.append(await connection.request())
                if connection.number == 0:
                    await first(connection)
                    return
                await connection.send(good)

        return handler

    return made


@every_call
async def test_answer_that_breaks_off_is_a_lost_connection(name: str) -> None:
    async def cut(connection: RawConnection) -> None:
        await connection.send(GOOD[name][:-10])

    async with talk(handler=once(cut, GOOD[name])) as asked:
        await fails(CALLS[name], asked, failures.ConnectionLost)
        await CALLS[name](asked.node)


@every_call
async def test_byte_a_second_ends_with_the_time_of_the_call(name: str) -> None:
    async def drip(connection: RawConnection) -> None:
        for byte in GOOD[name]:
            await connection.send(bytes([byte]))
            await anyio.sleep(1)

    async with talk(handler=once(drip, GOOD[name])) as asked:
        began = anyio.current_time()
        await fails(CALLS[name], asked, failures.RequestTimeout)
        assert anyio.current_time() - began == pytest.approx(5)
        await CALLS[name](asked.node)


@every_call
async def test_redirect_to_another_host_is_not_followed(name: str) -> None:
    """Q16."""
    away = answer(b"", status="307 -", headers="Location: http://127.0.0.2:1/eth/v1/node/version\r\n")
    async with talk(away, GOOD[name]) as asked:
        await fails(CALLS[name], asked, failures.StatusError)
        await CALLS[name](asked.node)


WRONG: dict[str, Call] = {
    "slot below zero": lambda node: node.attestation_data(Slot(-1)),
    "slot above all": lambda node: node.payload_attestation_data(Slot(2**64)),
    "slot that is a boolean": lambda node: node.payload_attestation_data(True),  # type: ignore[arg-type]
    "committee below zero": lambda node: node.attestation_data(SLOT, -1),
    "committee of a fraction": lambda node: node.aggregate_attestation(SLOT, ROOT, 1.5),  # type: ignore[arg-type]
    "root too short": lambda node: node.aggregate_attestation(SLOT, Root(b"\1"), 0),
    "root too long": lambda node: node.sync_committee_contribution(SLOT, 0, Root(bytes(33))),
    "subcommittee below zero": lambda node: node.sync_committee_contribution(SLOT, -1, ROOT),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
async def test_what_can_be_seen_to_be_wrong_is_not_asked(call: Call) -> None:
    """Q3."""
    async with talk(GOOD["attestation_data"]) as asked:
        with pytest.raises(ValueError, match=r"."):
            await call(asked.node)
        assert not asked.requests
