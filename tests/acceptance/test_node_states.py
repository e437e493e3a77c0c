"""States of one node and what is in them, on real sockets (Q1)."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import pytest

from tests.rawserver import Handler, RawConnection, Request
from tests.scripted_node import Talk, clock_in, in_json, refusal, ssz, talk
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import FAR_FUTURE_EPOCH, Epoch, Root, Slot, Sourced
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.about import ForkVersions
from vc_fallback.node.values.answers import OnChain
from vc_fallback.node.values.attestation import Checkpoint
from vc_fallback.node.values.states import (
    Committee,
    FinalityCheckpoints,
    ListedValidator,
    SyncCommittees,
    ValidatorBalance,
    ValidatorStatus,
)

pytestmark = pytest.mark.anyio

ROOT = Root(bytes(range(32)))
HEX = "0x" + ROOT.hex()
KEY = bytes(range(48))
KEY_HEX = "0x" + KEY.hex()
JSON, SSZ = "application/json", "application/octet-stream"
EITHER = f"{SSZ};q=1.0,{JSON};q=0.9"
STATES = "/eth/v1/beacon/states"

Call = Callable[[BeaconNode], Awaitable[Sourced[Any]]]


def on_chain(data: Any) -> bytes:
    return in_json({"execution_optimistic": True, "finalized": False, "data": data, "new": [1.5]})


def listed(index: int, status: str = "active_ongoing") -> dict[str, Any]:
    """Return a validator as nodes list it."""
    return {
        "index": str(index),
        "balance": "32000000001",
        "status": status,
        "validator": {
            "pubkey": "0x" + index.to_bytes(48, "big").hex(),
            "withdrawal_credentials": HEX,
            "effective_balance": "32000000000",
            "slashed": False,
            "activation_eligibility_epoch": "0",
            "activation_epoch": "0",
            "exit_epoch": str(2**64 - 1),
            "withdrawable_epoch": str(2**64 - 1),
        },
    }


POINT = {"epoch": "3", "root": HEX}
FINALITY = {"previous_justified": POINT, "current_justified": {**POINT, "epoch": "4"}, "finalized": POINT}
FORK = {"previous_version": "0x05000000", "current_version": "0x06000000", "epoch": "411392"}
COMMITTEE = {"index": "1", "slot": "5", "validators": ["3", "2"]}
SYNC = {"validators": ["1", "2", "1"], "validator_aggregates": [["1"], ["2"], ["1"]]}

CALLS: dict[str, Call] = {
    "state_root": lambda node: node.state_root("head", timeout=5),
    "state_fork": lambda node: node.state_fork("head", timeout=5),
    "finality_checkpoints": lambda node: node.finality_checkpoints("head", timeout=5),
    "validators": lambda node: node.validators("head", timeout=5),
    "validator": lambda node: node.validator("head", 7, timeout=5),
    "validator_balances": lambda node: node.validator_balances("head", timeout=5),
    "committees": lambda node: node.committees("head", timeout=5),
    "sync_committees": lambda node: node.sync_committees("head", timeout=5),
    "randao": lambda node: node.randao("head", timeout=5),
}
DATA: dict[str, Any] = {
    "state_root": {"root": HEX},
    "state_fork": FORK,
    "finality_checkpoints": FINALITY,
    "validators": [listed(7)],
    "validator": listed(7),
    "validator_balances": [{"index": "7", "balance": "5"}],
    "committees": [COMMITTEE],
    "sync_committees": SYNC,
    "randao": {"randao": HEX},
}
PATHS = {
    "state_root": f"GET {STATES}/head/root",
    "state_fork": f"GET {STATES}/head/fork",
    "finality_checkpoints": f"GET {STATES}/head/finality_checkpoints",
    "validators": f"POST {STATES}/head/validators",
    "validator": f"GET {STATES}/head/validators/7",
    "validator_balances": f"POST {STATES}/head/validator_balances",
    "committees": f"GET {STATES}/head/committees",
    "sync_committees": f"GET {STATES}/head/sync_committees",
    "randao": f"GET {STATES}/head/randao",
}
LISTS = ("validators", "validator_balances")
each_call = pytest.mark.parametrize("name", CALLS)
each_list = pytest.mark.parametrize("name", LISTS)


async def fails(call: Call, asked: Talk, error: type[NodeError]) -> NodeError:
    """Make a call that is to fail."""
    with pytest.raises(error) as caught:
        await call(asked.node)
    assert type(caught.value) is error
    return caught.value


# --- requests and answers


@each_call
async def test_each_asks_its_route_and_says_what_the_answer_rests_on(name: str) -> None:
    async with talk(on_chain(DATA[name])) as asked:
        answer = await CALLS[name](asked.node)
        assert (asked.targets, asked.query()) == ([PATHS[name]], [])
        assert asked.requests[0].headers["accept"] == (EITHER if name == "validator_balances" else JSON)
        assert ("content-type" in asked.requests[0].headers) is PATHS[name].startswith("POST")
    assert (answer.value.execution_optimistic, answer.value.finalized) == (True, False)
    assert (answer.node_id, answer.provenance.attempts) == ("n1", 1)


@each_call
async def test_flags_that_are_not_told_are_unknown(name: str) -> None:
    """Nodes of before Capella know of no `finalized`."""
    async with talk(
        in_json({"data": DATA[name]}), in_json({"execution_optimistic": None, "data": DATA[name]})
    ) as asked:
        for _ in range(2):
            answer = await CALLS[name](asked.node)
            assert (answer.value.execution_optimistic, answer.value.finalized) == (None, None)


async def test_what_the_answers_hold() -> None:
    async with talk(*map(on_chain, DATA.values())) as asked:
        found = {name: (await call(asked.node)).value.data for name, call in CALLS.items()}
    point = Checkpoint(Epoch(3), ROOT)
    assert found["state_root"] == found["randao"] == ROOT
    assert found["state_fork"] == ForkVersions(b"\x05\0\0\0", b"\x06\0\0\0", Epoch(411392))
    assert found["finality_checkpoints"] == FinalityCheckpoints(point, Checkpoint(Epoch(4), ROOT), point)
    assert found["validator_balances"] == [ValidatorBalance(7, 5)]
    assert found["committees"] == [Committee(1, Slot(5), [3, 2])]
    assert found["sync_committees"] == SyncCommittees([1, 2, 1], [[1], [2], [1]])
    assert found["validators"] == [found["validator"]]
    validator: ListedValidator = found["validator"]
    assert (validator.index, validator.balance, validator.status) == (7, 32000000001, ValidatorStatus.ACTIVE_ONGOING)
    assert validator.validator.exit_epoch == FAR_FUTURE_EPOCH


@pytest.mark.parametrize(
    ("state_id", "written"),
    [
        ("head", "head"),
        ("genesis", "genesis"),
        ("finalized", "finalized"),
        ("justified", "justified"),
        (Slot(0), "0"),
        (Slot(2**64 - 1), str(2**64 - 1)),
        (ROOT, HEX),
    ],
)
async def test_state_by_its_identifier(state_id: Any, written: str) -> None:
    async with talk(on_chain({"root": HEX})) as asked:
        await asked.node.state_root(state_id)
        assert asked.targets == [f"GET {STATES}/{written}/root"]


@pytest.mark.parametrize(("validator_id", "written"), [(0, "0"), (2**64 - 1, str(2**64 - 1)), (KEY, KEY_HEX)])
async def test_validator_by_index_or_key(validator_id: Any, written: str) -> None:
    async with talk(on_chain(listed(7))) as asked:
        await asked.node.validator(ROOT, validator_id)
        assert asked.targets == [f"GET {STATES}/{HEX}/validators/{written}"]


@pytest.mark.parametrize(
    ("wanted", "body"),
    [
        ({}, {}),
        ({"ids": [7, KEY, 0, 7]}, {"ids": ["7", KEY_HEX, "0"]}),
        ({"statuses": [ValidatorStatus.ACTIVE_EXITING, "pending"]}, {"statuses": ["active_exiting", "pending"]}),
        ({"ids": range(1000), "statuses": ["new"]}, {"ids": [str(i) for i in range(1000)], "statuses": ["new"]}),
    ],
)
async def test_validators_are_asked_for_in_one_body(wanted: Mapping[str, Any], body: Any) -> None:
    async with talk(on_chain([])) as asked:
        await asked.node.validators("head", **wanted)
        (request,) = asked.requests
        assert json.loads(request.body) == body
        assert request.headers["content-type"] == JSON


@pytest.mark.parametrize(("ids", "body"), [(None, []), ([7, KEY, 7], ["7", KEY_HEX])])
async def test_balances_are_asked_for_in_one_body(ids: Any, body: Any) -> None:
    async with talk(on_chain([])) as asked:
        await asked.node.validator_balances("head", ids)
        assert json.loads(asked.requests[0].body) == body


@each_list
async def test_nobody_is_asked_about_nobody(name: str) -> None:
    """The API would mean everybody by an empty list."""
    async with talk(on_chain([])) as asked:
        answer = await getattr(asked.node, name)("head", [])
        assert answer.value == OnChain([], None, None)
        assert (answer.provenance.attempts, answer.latency, answer.node_id) == (0, None, "n1")
        assert not asked.requests


async def test_balances_in_ssz() -> None:
    """Q1: either form; Lodestar says in headers of its own what the API has no place for."""
    body = (7).to_bytes(8, "little") + (2**64 - 1).to_bytes(8, "little")
    flags = {"eth_execution_optimistic": "false", "eth_consensus_finalized": "true"}
    async with talk(ssz(body), ssz(body, **flags), ssz(body + b"\0")) as asked:
        balances = [ValidatorBalance(7, 2**64 - 1)]
        assert (await asked.node.validator_balances("head")).value == OnChain(balances, None, None)
        assert (await asked.node.validator_balances("head")).value == OnChain(balances, False, True)
        await fails(CALLS["validator_balances"], asked, failures.Malformed)


async def test_balances_of_a_node_without_ssz_are_asked_for_again_as_json() -> None:
    """Case 57: by the same body, and as JSON at once from then on."""
    async with talk(refusal(406), on_chain([{"index": "7", "balance": "5"}])) as asked:
        answer = await asked.node.validator_balances("head", [7])
        assert (answer.value.data, answer.provenance.attempts) == ([ValidatorBalance(7, 5)], 2)
        await asked.node.validator_balances("head", [7])
        assert [request.headers["accept"] for request in asked.requests] == [EITHER, JSON, JSON]
        assert [request.body for request in asked.requests] == [b'["7"]'] * 3


@pytest.mark.parametrize(
    ("call", "query"),
    [
        (lambda node: node.committees("head", epoch=Epoch(2**64 - 1)), [("epoch", str(2**64 - 1))]),
        (
            lambda node: node.committees("head", epoch=Epoch(0), index=0, slot=Slot(0)),
            [("epoch", "0"), ("index", "0"), ("slot", "0")],
        ),
        (lambda node: node.committees("head", slot=Slot(9)), [("slot", "9")]),
        (lambda node: node.sync_committees("head", epoch=Epoch(0)), [("epoch", "0")]),
        (lambda node: node.randao("head", epoch=Epoch(5)), [("epoch", "5")]),
    ],
)
async def test_filters_are_sent_as_they_are_given(call: Call, query: list[tuple[str, str]]) -> None:
    async with talk(refusal(400)) as asked:
        await fails(call, asked, failures.BadRequest)
        assert asked.query() == query


async def test_status_that_is_not_known_costs_nothing() -> None:
    async with talk(on_chain([listed(1), listed(2, "pending_deposited")])) as asked:
        answer = await asked.node.validators("head")
        assert [each.status for each in answer.value.data] == ["active_ongoing", "pending_deposited"]


# --- nodes without the newer route


def older(*gets: bytes, post: bytes, **more: Any) -> Any:
    """Serve a node that answers each POST with this, and the GETs with these in turn."""

    def handler(requests: list[Request]) -> Handler:
        async def serve(connection: RawConnection) -> None:
            while True:
                request = await connection.request()
                requests.append(request)
                count = sum(each.method == "GET" for each in requests)
                await connection.send(post if request.method == "POST" else gets[min(count, len(gets)) - 1])

        return serve

    return talk(handler=handler, **more)


ABSENT = {
    "405": refusal(405),
    "501": refusal(501),
    "404 of Lodestar": refusal(404, f"Route POST:{STATES}/head/validators not found"),
    "404 without a word": b"HTTP/1.1 404 -\r\nContent-Length: 0\r\n\r\n",
    "404 of a state": refusal(404, "State not found"),
}


@each_list
@pytest.mark.parametrize("absent", ABSENT)
async def test_older_route_is_used_and_remembered(name: str, absent: str) -> None:
    """Q13."""
    async with older(on_chain(DATA[name]), post=ABSENT[absent]) as asked:
        first = await getattr(asked.node, name)("head", [7])
        again = await getattr(asked.node, name)("head", [7])
        assert first.value == again.value
        assert first.value.data[0].index == 7
        assert (first.provenance.attempts, again.provenance.attempts) == (2, 1)
        path = PATHS[name].removeprefix("POST ")
        assert asked.targets == [f"POST {path}", f"GET {path}", f"GET {path}"]
        assert asked.query() == [("id", "7")]
        assert asked.requests[1].body == b""
        assert "content-type" not in asked.requests[1].headers


@each_list
async def test_newer_route_is_tried_again_in_the_next_epoch(name: str) -> None:
    """Q13."""
    slots = clock_in("fulu")()
    now = [slots]
    async with older(on_chain(DATA[name]), post=refusal(405), slots=lambda: now[0]) as asked:
        for _ in range(2):
            await CALLS[name](asked.node)
        now[0] = type(slots)(slots.chain, slots.offset + 32 * 12.0)
        await CALLS[name](asked.node)
        assert [request.method for request in asked.requests] == ["POST", "GET", "GET", "POST", "GET"]


@each_list
async def test_state_that_neither_route_has_is_not_found(name: str) -> None:
    """Case 51: and the newer route is not given up for it."""
    async with older(refusal(404, "State not found"), post=refusal(404, "State not found")) as asked:
        for _ in range(2):
            await fails(CALLS[name], asked, failures.NotFound)
        assert [request.method for request in asked.requests] == ["POST", "GET"] * 2


@each_list
async def test_404_of_a_route_that_has_worked_is_an_answer(name: str) -> None:
    async with talk(on_chain(DATA[name]), refusal(404, "State not found")) as asked:
        await CALLS[name](asked.node)
        await fails(CALLS[name], asked, failures.NotFound)
        assert [request.method for request in asked.requests] == ["POST", "POST"]


@each_list
@pytest.mark.parametrize(("count", "sizes"), [(64, [64]), (65, [64, 1]), (200, [64, 64, 64, 8])])
async def test_older_route_is_asked_for_64_at_a_time(name: str, count: int, sizes: list[int]) -> None:
    def handler(requests: list[Request]) -> Handler:
        async def serve(connection: RawConnection) -> None:
            while True:
                request = await connection.request()
                requests.append(request)
                if request.method == "POST":
                    await connection.send(refusal(405))
                    continue
                wanted = [int(value) for key, value in parse_qsl(urlsplit(request.target).query) if key == "id"]
                found = [listed(index) for index in reversed(wanted)]
                await connection.send(on_chain(found))

        return serve

    ids = range(1000, 1000 + count)
    async with talk(handler=handler) as asked:
        answer = await getattr(asked.node, name)(ROOT, ids)
        parts = [asked.query(number) for number in range(1, len(asked.requests))]
        assert [len(part) for part in parts] == sizes
        assert [int(index) for part in parts for _, index in part] == [*ids]
        assert sorted(each.index for each in answer.value.data) == [*ids]
        assert (answer.value.execution_optimistic, answer.value.finalized) == (True, False)
        assert answer.provenance.attempts == 1 + len(sizes)


async def test_statuses_go_with_every_part() -> None:
    """And a validator that was asked for by index and by key is there once."""
    async with older(on_chain([listed(0), listed(99)]), on_chain([listed(99), listed(1)]), post=refusal(405)) as asked:
        answer = await asked.node.validators("head", [*range(64), KEY], ["active", "pending_queued"])
        statuses = [("status", "active"), ("status", "pending_queued")]
        assert asked.query(1) == [*(("id", str(index)) for index in range(64)), *statuses]
        assert asked.query(2) == [("id", KEY_HEX), *statuses]
        assert [each.index for each in answer.value.data] == [0, 99, 1]


@each_list
async def test_all_are_asked_for_by_one_request_of_the_older_route(name: str) -> None:
    async with older(on_chain(DATA[name]), post=refusal(405)) as asked:
        await CALLS[name](asked.node)
        assert (asked.targets[1:], asked.query()) == ([f"GET {STATES}/head/{name}"], [])


@each_list
async def test_part_that_fails_fails_the_whole(name: str) -> None:
    async with older(on_chain(DATA[name]), refusal(500, "no"), post=refusal(405)) as asked:
        await fails(lambda node: getattr(node, name)("head", range(65)), asked, failures.ServerError)


def slow(requests: list[Request]) -> Handler:
    """Serve a node that has the older route alone, and takes 0.4 s for each answer."""

    async def handler(connection: RawConnection) -> None:
        while True:
            requests.append(await connection.request())
            await anyio.sleep(0.4)
            await connection.send(on_chain([]) if requests[-1].method == "GET" else refusal(405))

    return handler


async def test_parts_have_one_time_together() -> None:
    """Rule 6: the whole call ends within its time, however many requests it makes."""

    async with talk(handler=slow) as asked:
        began = anyio.current_time()
        await fails(lambda node: node.validators("head", range(200), timeout=1.0), asked, failures.RequestTimeout)
        assert anyio.current_time() - began == pytest.approx(1.0)
        assert [request.method for request in asked.requests] == ["POST", "GET", "GET"]


async def test_latency_is_that_of_all_parts() -> None:
    async with talk(handler=slow) as asked:
        answer = await asked.node.validators("head", range(200))
        assert answer.latency == pytest.approx(4 * 0.4)
        assert answer.provenance.received == pytest.approx(anyio.current_time())


# --- failures


@each_call
async def test_404_is_an_answer(name: str) -> None:
    """Case 51: it lowers nothing, and the endpoint is asked again."""
    async with talk(refusal(404, "State not found")) as asked:
        for _ in range(2):
            error = await fails(CALLS[name], asked, failures.NotFound)
            assert not error.blames_node
        assert asked.targets[-1].endswith(PATHS[name].partition(" ")[2])


BAD = {
    "page": in_json(b"<html><body>503 behind a 200</body></html>"),
    "null": in_json(None),
    "list": in_json([]),
    "number": in_json(5),
    "text": in_json("head"),
    "data missing": in_json({"execution_optimistic": False}),
    "data null": on_chain(None),
    "data text": on_chain("0x00"),
    "data number": on_chain(5),
    "data of nulls": on_chain([None]),
    "data of another kind": on_chain({"data": []}),
    "cut JSON": in_json(b'{"finalized":true,"data":{"root":"0x'),
    "nothing": in_json(b""),
    "bytes of no kind": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\xff\xfe\x00\x01",
    "deep": in_json(b'{"data":' + b'{"a":[' * 50_000),
}


@each_call
@pytest.mark.parametrize("answer", BAD.values(), ids=BAD.keys())
async def test_answers_that_are_none_are_malformed_and_the_next_call_works(name: str, answer: bytes) -> None:
    """Case 67."""
    async with talk(answer, on_chain(DATA[name])) as asked:
        error = await fails(CALLS[name], asked, failures.Malformed)
        assert error.status == 200
        await CALLS[name](asked.node)
        assert asked.node.http.statistics().dials == 1


WRONG_MEMBERS: list[tuple[str, Any, str]] = [
    ("state_root", {"root": HEX + "00"}, "data.root"),
    ("state_root", {"root": HEX[:-2]}, "data.root"),
    ("state_root", {"root": 5}, "data.root"),
    ("state_root", {}, "data.root"),
    ("randao", {"randao": None}, "data.randao"),
    ("state_fork", {**FORK, "epoch": "-1"}, "data.epoch"),
    ("state_fork", {**FORK, "current_version": "0x0500"}, "data.current_version"),
    ("finality_checkpoints", {**FINALITY, "finalized": None}, "data.finalized"),
    ("finality_checkpoints", {**FINALITY, "finalized": {**POINT, "epoch": 1.0}}, "data.finalized.epoch"),
    ("finality_checkpoints", {**FINALITY, "finalized": [POINT]}, "data.finalized"),
    ("validator", {**listed(1), "index": "1_0"}, "data.index"),
    ("validator", {**listed(1), "index": True}, "data.index"),
    ("validator", {**listed(1), "balance": str(2**64)}, "data.balance"),
    ("validator", {**listed(1), "status": None}, "data.status"),
    ("validator", {**listed(1), "validator": {**listed(1)["validator"], "slashed": "false"}}, "data.validator.slashed"),
    ("validator", {**listed(1), "validator": {**listed(1)["validator"], "pubkey": HEX}}, "data.validator.pubkey"),
    ("validators", [listed(1), {**listed(2), "balance": " 5"}], "data[1].balance"),
    ("validators", {"0": listed(1)}, "data"),
    ("validator_balances", [{"index": "1"}], "data[0].balance"),
    ("validator_balances", [{"index": "1", "balance": "1e9"}], "data[0].balance"),
    ("committees", [COMMITTEE, {**COMMITTEE, "validators": None}], "data[1].validators"),
    ("committees", [{**COMMITTEE, "validators": ["1", "0x2"]}], "data[0].validators[1]"),
    ("committees", [{**COMMITTEE, "slot": 1.5}], "data[0].slot"),
    ("sync_committees", {**SYNC, "validator_aggregates": ["1"]}, "data.validator_aggregates[0]"),
    ("sync_committees", {"validators": ["1"]}, "data.validator_aggregates"),
]


@pytest.mark.parametrize(("name", "data", "place"), WRONG_MEMBERS)
async def test_members_that_are_wrong_are_named(name: str, data: Any, place: str) -> None:
    """Q17; and nothing of the answer is repeated (rule 11)."""
    async with talk(on_chain(data)) as asked:
        error = await fails(CALLS[name], asked, failures.Malformed)
        assert f"({place}: " in error.problem


@each_call
async def test_flags_are_booleans(name: str) -> None:
    wrongs: tuple[Any, ...] = ("true", 1, [], "null")
    for flag in ("execution_optimistic", "finalized"):
        for wrong in wrongs:
            async with talk(in_json({"data": DATA[name], flag: wrong})) as asked:
                error = await fails(CALLS[name], asked, failures.Malformed)
                assert f"({flag}: " in error.problem


@each_call
async def test_body_that_ends_early_is_a_lost_connection_and_the_next_call_works(name: str) -> None:
    whole = on_chain(DATA[name])

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
        await fails(CALLS[name], asked, failures.ConnectionLost)
        await CALLS[name](asked.node)


WRONG: dict[str, Call] = {
    "slot below zero": lambda node: node.state_root(Slot(-1)),
    "slot above all": lambda node: node.state_fork(Slot(2**64)),
    "root too short": lambda node: node.finality_checkpoints(Root(b"\x01")),
    "word of no meaning": lambda node: node.randao("../../node/version"),  # type: ignore[arg-type]
    "state of nobody": lambda node: node.validators("heads", []),  # type: ignore[arg-type]
    "index below zero": lambda node: node.validator("head", -1),
    "index above all": lambda node: node.validators("head", [2**64]),
    "index of a boolean": lambda node: node.validators("head", [True]),
    "key too short": lambda node: node.validator("head", bytes(47)),
    "root as a key": lambda node: node.validator_balances("head", [bytes(32)]),
    "key as text": lambda node: node.validators("head", [KEY_HEX]),  # type: ignore[list-item]
    "one key for a list": lambda node: node.validators("head", KEY),
    "one status for a list": lambda node: node.validators("head", None, "active"),
    "committee below zero": lambda node: node.committees("head", index=-1),
    "epoch above all": lambda node: node.sync_committees("head", epoch=Epoch(2**64)),
    "epoch of a fraction": lambda node: node.randao("head", epoch=1.5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
async def test_what_can_be_seen_to_be_wrong_is_not_asked(call: Call) -> None:
    """Q3."""
    async with talk(on_chain([])) as asked:
        with pytest.raises(ValueError, match=r"."):
            await call(asked.node)
        assert not asked.requests


@each_call
async def test_hung_node_costs_its_time_and_no_more(name: str) -> None:
    """Rule 6."""

    def hung(requests: list[Request]) -> Handler:
        async def handler(connection: RawConnection) -> None:
            requests.append(await connection.request())
            await connection.until_gone()

        return handler

    async with talk(handler=hung) as asked:
        began = anyio.current_time()
        await fails(CALLS[name], asked, failures.RequestTimeout)
        assert anyio.current_time() - began == pytest.approx(5.0)
