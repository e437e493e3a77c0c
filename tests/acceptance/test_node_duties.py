"""Duties and liveness as one node tells them, on real sockets (Q1, Q14a, Q14b)."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.rawserver import Handler, RawConnection, Request
from tests.scripted_node import Talk, clock_in, in_json, refusal, talk
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import ZERO_ROOT, Epoch, Root, Slot, Sourced, root_hex
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.answers import Duties
from vc_fallback.node.values.duties import (
    AttesterDuty,
    Liveness,
    ProposerDuties,
    ProposerDuty,
    PtcDuty,
    SyncCommitteeDuty,
)

pytestmark = pytest.mark.anyio

JSON = "application/json"
ROOT = Root(bytes(range(32)))
HEX = "0x" + ROOT.hex()
KEY = bytes(range(48))
EPOCH = Epoch(3)
MOST = 2**64 - 1
DUTIES = "/eth/v1/validator/duties"

ATTESTER = {
    "pubkey": "0x" + KEY.hex(),
    "validator_index": "7",
    "committee_index": "3",
    "committee_length": "512",
    "committees_at_slot": "64",
    "validator_committee_index": "11",
    "slot": "100",
}
PROPOSER = {"pubkey": "0x" + KEY.hex(), "validator_index": "7", "slot": "100"}
SYNC = {"pubkey": "0x" + KEY.hex(), "validator_index": "7", "validator_sync_committee_indices": ["0", "511"]}
LIVE = {"index": "7", "is_live": True}

Call = Callable[[BeaconNode], Awaitable[Sourced[Any]]]

CALLS: dict[str, Call] = {
    "attester_duties": lambda node: node.attester_duties(EPOCH, [7], timeout=5),
    "proposer_duties": lambda node: node.proposer_duties(EPOCH, timeout=5),
    "sync_committee_duties": lambda node: node.sync_committee_duties(EPOCH, [7], timeout=5),
    "ptc_duties": lambda node: node.ptc_duties(EPOCH, [7], timeout=5),
    "liveness": lambda node: node.liveness(EPOCH, [7], timeout=5),
}
DATA: dict[str, Any] = {
    "attester_duties": ATTESTER,
    "proposer_duties": PROPOSER,
    "sync_committee_duties": SYNC,
    "ptc_duties": PROPOSER,
    "liveness": LIVE,
}
PATHS = {
    "attester_duties": f"POST {DUTIES}/attester/3",
    "proposer_duties": "GET /eth/v2/validator/duties/proposer/3",
    "sync_committee_duties": f"POST {DUTIES}/sync/3",
    "ptc_duties": f"POST {DUTIES}/ptc/3",
    "liveness": "POST /eth/v1/validator/liveness/3",
}
BY_INDEX = [name for name in CALLS if name != "proposer_duties"]
ROOTED = ["attester_duties", "proposer_duties", "ptc_duties"]
WITH_SLOTS = ROOTED
each_call = pytest.mark.parametrize("name", CALLS)
each_by_index = pytest.mark.parametrize("name", BY_INDEX)
each_rooted = pytest.mark.parametrize("name", ROOTED)


def duties(*data: Any, **more: Any) -> bytes:
    """Return an answer with duties and members that nobody knows."""
    around = {"dependent_root": HEX, "execution_optimistic": True, "new": {"a": [1.5]}}
    return in_json({**around, "data": list(data), **more})


async def fails(call: Call, asked: Talk, error: type[NodeError]) -> NodeError:
    """Make a call that is to fail."""
    with pytest.raises(error) as caught:
        await call(asked.node)
    assert type(caught.value) is error
    return caught.value


# --- requests and answers


async def test_what_the_answers_hold() -> None:
    async with talk(*(duties(data) for data in DATA.values())) as asked:
        found = [(await call(asked.node)).value for call in CALLS.values()]
    assert found == [
        Duties([AttesterDuty(KEY, 7, 3, 512, 64, 11, Slot(100))], ROOT, True),
        ProposerDuties([ProposerDuty(KEY, 7, Slot(100))], ROOT, True, 2),
        Duties([SyncCommitteeDuty(KEY, 7, [0, 511])], ROOT, True),
        Duties([PtcDuty(KEY, 7, Slot(100))], ROOT, True),
        [Liveness(7, True)],
    ]


@each_call
async def test_each_asks_its_route(name: str) -> None:
    async with talk(duties(DATA[name])) as asked:
        answer = await CALLS[name](asked.node)
        assert (asked.targets, asked.query()) == ([PATHS[name]], [])
        assert asked.requests[0].headers["accept"] == JSON
    assert (answer.node_id, answer.provenance.attempts) == ("n1", 1)
    assert answer.latency is not None


@each_by_index
async def test_indices_are_decimal_strings_each_once(name: str) -> None:
    async with talk(duties()) as asked:
        await getattr(asked.node, name)(Epoch(MOST), iter([MOST, 0, 7, MOST]))
        (request,) = asked.requests
        assert json.loads(request.body) == [str(MOST), "0", "7"]
        assert request.headers["content-type"] == JSON
        assert request.target.endswith(f"/{MOST}")


@each_by_index
async def test_nobody_is_asked_about_nobody(name: str) -> None:
    """The API asks for one index at least; nothing is known of what nobody was asked."""
    async with talk(duties()) as asked:
        answer = await getattr(asked.node, name)(EPOCH, [])
        assert answer.value == ([] if name == "liveness" else Duties([], None, None))
        assert (answer.provenance.attempts, answer.latency, answer.node_id) == (0, None, "n1")
        assert not asked.requests


async def test_thousand_duties_come_in_one_answer() -> None:
    answer = duties(*({**ATTESTER, "validator_index": str(MOST - number)} for number in range(1000)))
    async with talk(answer) as asked:
        found = await asked.node.attester_duties(EPOCH, range(1000))
        assert [duty.validator_index for duty in found.value.data] == [MOST - number for number in range(1000)]
        assert len(json.loads(asked.requests[0].body)) == 1000


@each_call
async def test_nobody_may_have_a_duty(name: str) -> None:
    async with talk(duties()) as asked:
        value = (await CALLS[name](asked.node)).value
        assert (value if name == "liveness" else value.data) == []


@each_rooted
async def test_dependent_root_of_zeros_is_kept(name: str) -> None:
    """Nodes send it near genesis; what it means is decided where roots are compared."""
    async with talk(duties(DATA[name], dependent_root=root_hex(ZERO_ROOT))) as asked:
        assert (await CALLS[name](asked.node)).value.dependent_root == ZERO_ROOT


@each_rooted
async def test_duties_without_a_dependent_root_are_malformed(name: str) -> None:
    """Q14b: nobody could see that they have changed."""
    async with talk(duties(DATA[name], dependent_root=None), in_json({"data": [DATA[name]]})) as asked:
        for _ in range(2):
            error = await fails(CALLS[name], asked, failures.Malformed)
            assert "dependent_root" in error.problem


async def test_sync_committee_duties_need_none() -> None:
    async with talk(in_json({"data": [SYNC], "execution_optimistic": False})) as asked:
        assert (await CALLS["sync_committee_duties"](asked.node)).value.dependent_root is None


@pytest.mark.parametrize("name", [name for name in CALLS if name != "liveness"])
@pytest.mark.parametrize(("flag", "told"), [(True, True), (False, False), (None, None)])
async def test_optimistic_answers_say_so(name: str, flag: bool | None, told: bool | None) -> None:
    """Q14b: they never replace those of a synced node."""
    async with talk(duties(DATA[name], execution_optimistic=flag)) as asked:
        assert (await CALLS[name](asked.node)).value.execution_optimistic is told


# --- duties of another epoch


@pytest.mark.parametrize("name", WITH_SLOTS)
@pytest.mark.parametrize("slot", [0, 95, 128, MOST])
async def test_duties_of_another_epoch_are_malformed(name: str, slot: int) -> None:
    """Lodestar 1.5.1 answers for the next epoch with proposals in the slots of this one."""
    async with talk(duties(DATA[name], {**DATA[name], "slot": str(slot)}), slots=clock_in("fulu")) as asked:
        error = await fails(CALLS[name], asked, failures.Malformed)
        assert "data[1].slot" in error.problem


@pytest.mark.parametrize("name", WITH_SLOTS)
async def test_duties_are_of_all_slots_of_the_epoch(name: str) -> None:
    answer = duties(*({**DATA[name], "slot": str(slot)} for slot in (96, 127)))
    async with talk(answer, slots=clock_in("fulu")) as asked:
        assert [duty.slot for duty in (await CALLS[name](asked.node)).value.data] == [96, 127]


@pytest.mark.parametrize("name", WITH_SLOTS)
async def test_slots_are_not_judged_before_the_chain_is_known(name: str) -> None:
    async with talk(duties({**DATA[name], "slot": "0"})) as asked:
        assert (await CALLS[name](asked.node)).value.data[0].slot == 0


# --- the two routes of proposals


@pytest.mark.parametrize(
    "absent",
    [refusal(404, "NOT_FOUND"), refusal(405), refusal(501), b"HTTP/1.1 404 -\r\nContent-Length: 0\r\n\r\n"],
    ids=["404", "405", "501", "404 without a word"],
)
async def test_first_route_is_used_where_the_second_is_not_there(absent: bytes) -> None:
    """Q13, Q14b: the value says which it was, for its root is another one; it is remembered."""
    async with talk(absent, duties(PROPOSER)) as asked:
        first, second = [await asked.node.proposer_duties(EPOCH) for _ in range(2)]
        assert first.value == second.value == ProposerDuties([ProposerDuty(KEY, 7, Slot(100))], ROOT, True, 1)
        assert (first.provenance.attempts, second.provenance.attempts) == (2, 1)
        v1 = f"GET {DUTIES}/proposer/3"
        assert asked.targets == [PATHS["proposer_duties"], v1, v1]


async def test_second_route_is_tried_again_in_the_next_epoch() -> None:
    """Q13."""
    slots = clock_in("fulu")()
    now = [slots]
    async with talk(refusal(404), duties(PROPOSER), duties(PROPOSER), slots=lambda: now[0]) as asked:
        assert (await asked.node.proposer_duties(EPOCH)).value.version == 1
        now[0] = type(slots)(slots.chain, slots.offset + 32 * 12.0)
        assert (await asked.node.proposer_duties(EPOCH)).value.version == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusal(400, "Invalid epoch"), failures.BadRequest),
        (refusal(503, "Beacon node is currently syncing"), failures.NotReady),
        (refusal(500), failures.ServerError),
        (in_json(None), failures.Malformed),
    ],
)
async def test_first_route_is_not_asked_for_any_other_reason(answer: bytes, error: type[NodeError]) -> None:
    async with talk(answer) as asked:
        await fails(CALLS["proposer_duties"], asked, error)
        assert asked.targets == [PATHS["proposer_duties"]]


async def test_node_with_neither_route_is_not_asked_twice() -> None:
    async with talk(refusal(404, "NOT_FOUND")) as asked:
        for _ in range(2):
            await fails(CALLS["proposer_duties"], asked, failures.UnsupportedEndpoint)
        assert len(asked.requests) == 2


async def test_version_that_a_node_sends_is_not_that_of_the_route() -> None:
    async with talk(duties(PROPOSER, version="fulu")) as asked:
        assert (await asked.node.proposer_duties(EPOCH)).value.version == 2


# --- failures


@each_by_index
async def test_node_without_the_endpoint_is_not_asked_again(name: str) -> None:
    """Q13; it says nothing of its health (rule 10)."""
    async with talk(refusal(404, "NOT_FOUND")) as asked:
        for _ in range(2):
            error = await fails(CALLS[name], asked, failures.UnsupportedEndpoint)
            assert not error.blames_node
        assert len(asked.requests) == 1


@each_call
async def test_syncing_node_is_not_ready(name: str) -> None:
    async with talk(refusal(503, "Beacon node is currently syncing and not serving request on that endpoint")) as asked:
        await fails(CALLS[name], asked, failures.NotReady)


async def test_refused_epoch_says_nothing_of_the_node() -> None:
    """Rule 10."""
    async with talk(refusal(400, "Invalid epoch: -2")) as asked:
        error = await fails(CALLS["attester_duties"], asked, failures.BadRequest)
        assert not error.blames_node


BAD = {
    "page": in_json(b"<html><body>503 behind a 200</body></html>"),
    "null": in_json(None),
    "list": in_json([ATTESTER]),
    "number": in_json(5),
    "data missing": in_json({"dependent_root": HEX, "execution_optimistic": False}),
    "data null": in_json({"dependent_root": HEX, "data": None}),
    "data object": in_json({"dependent_root": HEX, "data": ATTESTER}),
    "data text": in_json({"dependent_root": HEX, "data": "0x00"}),
    "data of nulls": duties(None),
    "data of lists": duties([ATTESTER]),
    "cut JSON": in_json(b'{"dependent_root":"' + HEX.encode() + b'","data":[{"pubkey":"0x'),
    "nothing": in_json(b""),
    "bytes of no kind": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\xff\xfe\x00\x01",
    "deep": in_json(b'{"data":' + b'{"a":[' * 50_000),
    "deep list": in_json(b'{"data":' + b"[" * 100_000),
}


@each_call
@pytest.mark.parametrize("answer", BAD.values(), ids=BAD.keys())
async def test_answers_that_are_none_are_malformed_and_the_next_call_works(name: str, answer: bytes) -> None:
    """Case 67."""
    async with talk(answer, duties(DATA[name])) as asked:
        error = await fails(CALLS[name], asked, failures.Malformed)
        assert error.status == 200
        await CALLS[name](asked.node)
        assert asked.node.http.statistics().dials == 1


@each_call
async def test_members_that_are_missing_or_wrong_are_named(name: str) -> None:
    """Q17; and nothing of the answer is repeated (rule 11)."""
    for member, right in DATA[name].items():
        wrongs: list[Any] = [None, {}, 1.5, "secret", "-1", True, right + right if isinstance(right, str) else 0]
        if member == "is_live":
            wrongs = [None, {}, 1.5, "true", 1]
        elif member != "pubkey":
            wrongs = [*wrongs[:-1], "1e3", "1_0", " 1", str(2**64)]
        bad = [{key: value for key, value in DATA[name].items() if key != member}]
        bad += [{**DATA[name], member: wrong} for wrong in wrongs]
        async with talk(*(duties(DATA[name], each) for each in bad)) as asked:
            for each in bad:
                error = await fails(CALLS[name], asked, failures.Malformed)
                assert f"data[1].{member}" in error.problem, each
                assert "secret" not in str(error)


WRONG: dict[str, Call] = {
    "epoch below zero": lambda node: node.proposer_duties(Epoch(-1)),
    "epoch above all": lambda node: node.attester_duties(Epoch(2**64), []),
    "epoch of a boolean": lambda node: node.liveness(True, [1]),  # type: ignore[arg-type]
    "epoch of a fraction": lambda node: node.ptc_duties(1.0, [1]),  # type: ignore[arg-type]
    "index below zero": lambda node: node.sync_committee_duties(EPOCH, [1, -1]),
    "index above all": lambda node: node.attester_duties(EPOCH, [2**64]),
    "index of a boolean": lambda node: node.ptc_duties(EPOCH, [True]),
    "keys": lambda node: node.attester_duties(EPOCH, [KEY]),  # type: ignore[list-item]
    "one key for a list": lambda node: node.liveness(EPOCH, KEY),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
async def test_what_can_be_seen_to_be_wrong_is_not_asked(call: Call) -> None:
    """Q3."""
    async with talk(duties()) as asked:
        with pytest.raises(ValueError, match=r"."):
            await call(asked.node)
        assert not asked.requests


def hung(requests: list[Request]) -> Handler:
    """Serve a node that never answers."""

    async def handler(connection: RawConnection) -> None:
        requests.append(await connection.request())
        await connection.until_gone()

    return handler


@each_call
async def test_hung_node_costs_its_time_and_no_more(name: str) -> None:
    """Rule 6."""
    async with talk(handler=hung) as asked:
        began = anyio.current_time()
        await fails(CALLS[name], asked, failures.RequestTimeout)
        assert anyio.current_time() - began == pytest.approx(5.0)


async def test_both_routes_have_one_time_together() -> None:
    """Rule 6."""

    def slow(requests: list[Request]) -> Handler:
        async def handler(connection: RawConnection) -> None:
            while True:
                requests.append(await connection.request())
                await anyio.sleep(3.0)
                await connection.send(refusal(404))

        return handler

    async with talk(handler=slow) as asked:
        began = anyio.current_time()
        await fails(CALLS["proposer_duties"], asked, failures.RequestTimeout)
        assert anyio.current_time() - began == pytest.approx(5.0)
        assert len(asked.requests) == 2


@each_call
async def test_body_that_ends_early_is_a_lost_connection_and_the_next_call_works(name: str) -> None:
    whole = duties(DATA[name])

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
