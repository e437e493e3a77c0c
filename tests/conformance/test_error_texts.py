"""What real nodes answered when they would not, sent once more over loopback; and every text of the table so."""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from tests.error_texts import ROOT as UNKNOWN_ROOT
from tests.error_texts import SAID, Said
from tests.rawserver import RawConnection, answer, serve
from tests.recordings import RECORDINGS
from tests.scripted_node import Talk, refusal, talk
from tests.wire_helpers import client_of
from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.redact import Mask, printable
from vc_fallback.base.types import Epoch, NodeId, Root, Slot
from vc_fallback.node import failures, routes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.routes import Route
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.wording import Meaning

pytestmark = pytest.mark.anyio

Call = Callable[[BeaconNode], Awaitable[object]]

BLOCK = Encodings(json=b"{}")
ONES = Root(b"\x11" * 32)
RANDAO = b"\xc0" + bytes(95)


@dataclass(frozen=True)
class Recorded:
    """One exchange of the recording: a real Lodestar 1.5.1's answer to a request."""

    method: str
    target: str
    sent: str
    status: int
    answer: bytes
    body: bytes

    def __str__(self) -> str:
        return f"{self.method} {self.target[:70]} {self.sent[:10]}".strip()

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


def recorded() -> list[Recorded]:
    """Read the recording: a line that names the request, the answer's head, an empty line, its body in one line."""
    found = []
    for part in (RECORDINGS / "http_probe.txt").read_text().split("\n### ")[1:]:
        named, _, rest = part.partition("\n")
        if named.startswith("SSZ"):
            continue  # its bodies are not kept
        head, _, rest = rest.partition("\n\n")
        body = rest.partition("\n[curl")[0].encode()
        url = re.search(r"http://\S+", named)
        assert url is not None
        method = re.search(r"-X (\S+)", named)
        sent = re.search(r"-d (.+?)( -H .*)?$", named)
        status = int(head.split(" ")[1])
        if status >= 400:
            assert f"content-length: {len(body)}\n" in head
        parts = urlsplit(url[0])
        found.append(
            Recorded(
                "GET" if method is None else method[1],
                parts.path + (f"?{parts.query}" if parts.query else ""),
                "" if sent is None else sent[1],
                status,
                head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body,
                body,
            )
        )
    return found


RECORDED = recorded()
REFUSALS = [one for one in RECORDED if one.status >= 400]
NO_ROUTE = next(one for one in RECORDED if one.target == "/eth/v1/nosuch").answer


@dataclass(frozen=True)
class Meant:
    """What a recorded answer means.

    :param asks: whether the call sends this very request; some of the recorded ones it does not let pass.
    :param route: of which the failure speaks.
    """

    kind: type[NodeError]
    route: Route
    call: Call
    asks: bool = True


def _data(slot: int) -> Call:
    return lambda node: node.attestation_data(Slot(slot))


def _liveness(node: BeaconNode) -> Awaitable[object]:
    return node.liveness(Epoch(9), [1])


def _syncing(node: BeaconNode) -> Awaitable[object]:
    return node.syncing()


def _block(node: BeaconNode) -> Awaitable[object]:
    return node.publish_block(BLOCK, "capella")


def _produce(node: BeaconNode) -> Awaitable[object]:
    return node.produce_block(Slot(28), RANDAO)


_ONES = "0x" + "11" * 32
_V1_BLOCKS = "POST /eth/v1/beacon/blocks"
_DATA = "GET /eth/v1/validator/attestation_data"

MEANT = {
    f"{_DATA}?slot=29&committee_index=0 ": Meant(failures.FutureSlot, routes.ATTESTATION_DATA, _data(29)),
    f"{_DATA}?slot=77&committee_index=0 ": Meant(failures.FutureSlot, routes.ATTESTATION_DATA, _data(77)),
    f"{_DATA}?slot=abc&committee_index=0 ": Meant(failures.BadRequest, routes.ATTESTATION_DATA, _data(27), asks=False),
    f"{_DATA}?slot=27 ": Meant(failures.BadRequest, routes.ATTESTATION_DATA, _data(27), asks=False),
    f"GET /eth/v2/beacon/blocks/{_ONES} ": Meant(failures.NotFound, routes.BLOCK, lambda node: node.block(ONES)),
    "GET /eth/v2/beacon/blocks/999999 ": Meant(failures.NotFound, routes.BLOCK, lambda node: node.block(Slot(999_999))),
    "GET /eth/v2/beacon/blocks/foo ": Meant(
        failures.BadRequest, routes.BLOCK, lambda node: node.block("head"), asks=False
    ),
    f"GET /eth/v1/beacon/headers/{_ONES} ": Meant(failures.NotFound, routes.HEADER, lambda node: node.header(ONES)),
    f"GET /eth/v1/beacon/blocks/{_ONES}/root ": Meant(
        failures.NotFound, routes.BLOCK_ROOT, lambda node: node.block_root(ONES)
    ),
    f"GET /eth/v1/beacon/states/{_ONES}/fork ": Meant(
        failures.NotFound, routes.STATE_FORK, lambda node: node.state_fork(ONES)
    ),
    "GET /eth/v1/beacon/states/999999/fork ": Meant(
        failures.NotFound, routes.STATE_FORK, lambda node: node.state_fork(Slot(999_999))
    ),
    "GET /eth/v1/beacon/states/head/validators/9999 ": Meant(
        failures.NotFound, routes.VALIDATOR, lambda node: node.validator("head", 9999)
    ),
    "GET /eth/v1/nosuch ": Meant(failures.UnsupportedEndpoint, routes.SYNCING, _syncing, asks=False),
    f"{_V1_BLOCKS} {{}}": Meant(failures.ServerError, routes.PUBLISH_BLOCK_V1, _block),
    "POST /eth/v2/beacon/blocks {}": Meant(failures.UnsupportedEndpoint, routes.PUBLISH_BLOCK, _block),
    f"{_V1_BLOCKS} {{bad": Meant(failures.BadRequest, routes.PUBLISH_BLOCK_V1, _block),
    f"{_V1_BLOCKS} @BODY": Meant(failures.AlreadyKnown, routes.PUBLISH_BLOCK_V1, _block),
    "POST /eth/v1/beacon/pool/attestations @BODY": Meant(
        failures.AlreadyKnown,
        routes.PUBLISH_ATTESTATIONS_V1,
        lambda node: node.publish_attestations([BLOCK], "capella"),
    ),
    "GET /eth/v1/validator/duties/proposer/2 ": Meant(
        failures.BadRequest, routes.PROPOSER_DUTIES_V1, lambda node: node.proposer_duties(Epoch(2))
    ),
    "GET /eth/v1/validator/duties/proposer/5 ": Meant(
        failures.FutureSlot, routes.PROPOSER_DUTIES_V1, lambda node: node.proposer_duties(Epoch(5))
    ),
    'POST /eth/v1/validator/duties/attester/5 ["0"]': Meant(
        failures.FutureSlot, routes.ATTESTER_DUTIES, lambda node: node.attester_duties(Epoch(5), [0])
    ),
    'POST /eth/v1/validator/duties/attester/3 ["9999"]': Meant(
        failures.BadRequest, routes.ATTESTER_DUTIES, lambda node: node.attester_duties(Epoch(3), [9999])
    ),
    "POST /eth/v1/validator/duties/attester/3 {}": Meant(
        failures.BadRequest, routes.ATTESTER_DUTIES, lambda node: node.attester_duties(Epoch(3), [0]), asks=False
    ),
    'POST /eth/v1/validator/liveness/3 ["0"]': Meant(
        failures.UnsupportedEndpoint, routes.LIVENESS, lambda node: node.liveness(Epoch(3), [0])
    ),
    f"GET /eth/v1/validator/aggregate_attestation?slot=27&attestation_data_root={_ONES} ": Meant(
        failures.NotFound, routes.AGGREGATE_V1, lambda node: node.aggregate_attestation(Slot(27), ONES, 0)
    ),
    f"GET /eth/v1/validator/sync_committee_contribution?slot=27&subcommittee_index=0&beacon_block_root={_ONES} ": Meant(
        failures.UnknownBlock,
        routes.CONTRIBUTION,
        lambda node: node.sync_committee_contribution(Slot(27), 0, ONES),
    ),
    "GET /eth/v2/validator/blocks/28?randao_reveal=0xc0 ": Meant(
        failures.BadRequest, routes.PRODUCE_BLOCK_V2, _produce
    ),
    "GET /eth/v3/validator/blocks/28?randao_reveal=0xc0 ": Meant(
        failures.UnsupportedEndpoint, routes.PRODUCE_BLOCK, _produce
    ),
    "GET /eth/v2/validator/blocks/87?randao_reveal=0xc0 ": Meant(
        failures.FutureSlot, routes.PRODUCE_BLOCK_V2, lambda node: node.produce_block(Slot(87), RANDAO)
    ),
    "POST /eth/v1/beacon/states/head/validators {}": Meant(
        failures.UnsupportedEndpoint, routes.VALIDATORS, lambda node: node.validators("head", [0])
    ),
    "OPTIONS /eth/v1/node/version ": Meant(failures.BadRequest, routes.SYNCING, _syncing, asks=False),
    "DELETE /eth/v1/node/version ": Meant(failures.UnsupportedEndpoint, routes.SYNCING, _syncing, asks=False),
}
"""By method, target and what was sent."""

OLDER = {
    routes.PUBLISH_BLOCK_V1,
    routes.PUBLISH_ATTESTATIONS_V1,
    routes.PROPOSER_DUTIES_V1,
    routes.AGGREGATE_V1,
    routes.PRODUCE_BLOCK_V2,
}
"""Routes that are asked when a node does not have a newer one."""


async def failing(call: Call, asked: Talk) -> NodeError:
    with pytest.raises(NodeError) as caught:
        await call(asked.node)
    return caught.value


# --- recorded


def test_every_recorded_refusal_is_told() -> None:
    """None of them is left out."""
    assert {f"{one.method} {one.target} {one.sent}" for one in REFUSALS} == set(MEANT)
    assert len(REFUSALS) == len(MEANT)


@pytest.mark.parametrize("one", REFUSALS, ids=str)
async def test_recorded_refusal_is_named(one: Recorded) -> None:
    """Rule 10, N3, Q13: what a real Lodestar 1.5.1 answered."""
    meant = MEANT[f"{one.method} {one.target} {one.sent}"]
    before = [NO_ROUTE] if meant.route in OLDER else []
    async with talk(*before, one.answer) as asked:
        error = await failing(meant.call, asked)
        tried = [request for request in asked.targets if not meant.asks or request == f"{one.method} {one.path}"]
        if meant.kind is failures.UnsupportedEndpoint:
            # Then an older one is asked, where there is one.
            assert asked.node.capabilities.lack(meant.route.operation, None) is not None
        else:
            assert error.endpoint == meant.route.template
    assert tried
    assert type(error) is meant.kind
    assert error.status == one.status
    assert error.node_id == "n1"
    assert error.blames_node is (meant.kind is failures.ServerError)
    said = json.loads(one.body) if one.body.startswith((b"{", b"[")) else {"message": one.body.decode()}
    expected = said["message"] if isinstance(said, dict) else said[0]["message"]
    assert printable(expected) in error.problem
    assert str(error).startswith(f"n1: {error.endpoint}: {one.status} ")


async def test_answers_of_a_node_before_genesis_are_read() -> None:
    """Case 36: it answers, with its genesis as the head; nothing of it is a failure."""
    text = (RECORDINGS / "http_pregenesis.txt").read_text()
    found = re.findall(r"### GET (\S+)\n(.*)\n\[HTTP (\d+) exit 0\]", text)
    assert len(found) == text.count("### ") == 8
    bodies = {}
    for target, body, status in found:
        assert status == "200"
        if len(body) == 400:
            continue  # it was cut when it was recorded
        bodies[target.partition("?")[0]] = answer(body.encode(), headers="Content-Type: application/json\r\n")

    async def handle(connection: RawConnection) -> None:
        while True:
            request = await connection.request()
            await connection.send(bodies.get(request.target.partition("?")[0], NO_ROUTE))

    async with talk(handler=lambda _: handle) as asked:
        node = asked.node
        root = (await node.block_root("head")).value.data
        assert (await node.attestation_data(Slot(0))).value.beacon_block_root == root
        assert (await node.genesis()).value.genesis_time == 1_795_999_844
        assert not (await node.syncing()).value.is_syncing
        assert (await node.health()).value == 200


# --- the table

KINDS = {
    Meaning.ALREADY_KNOWN: failures.AlreadyKnown,
    Meaning.OPTIMISTIC: failures.Optimistic,
    Meaning.NOT_READY: failures.NotReady,
    Meaning.UNKNOWN_BLOCK: failures.UnknownBlock,
    Meaning.FUTURE_SLOT: failures.FutureSlot,
    Meaning.NO_ENDPOINT: failures.UnsupportedEndpoint,
    Meaning.NO_SUCH_ANSWER: failures.NotAcceptable,
    Meaning.NO_SUCH_REQUEST: failures.UnsupportedMediaType,
    Meaning.TOO_LARGE: failures.PayloadTooLarge,
    Meaning.NOT_FOUND: failures.NotFound,
    Meaning.REFUSED: failures.BadRequest,
}


@pytest.mark.parametrize("said", SAID, ids=str)
async def test_text_of_the_table_is_named(said: Said) -> None:
    """Rule 10, N3, Q11, Q13: on a route of which the definition lists no 404."""
    async with talk(said.answer) as asked:
        error = await failing(lambda node: node.attestation_data(Slot(9)), asked)
    assert type(error) is KINDS[said.meaning]
    assert error.blames_node is (said.meaning in (Meaning.OPTIMISTIC, Meaning.NOT_READY))
    assert (error.node_id, error.status, error.endpoint) == ("n1", said.status, routes.ATTESTATION_DATA.template)
    assert error.problem == printable(said.text)


@pytest.mark.parametrize("status", [400, 500, 503])
async def test_text_that_no_row_fits_keeps_the_meaning_of_its_status(status: int) -> None:
    """N3: the node is to blame for 500."""
    kinds = {400: failures.BadRequest, 500: failures.ServerError, 503: failures.NotReady}
    async with talk(refusal(status, "a text that no client has yet")) as asked:
        assert type(await failing(_data(9), asked)) is kinds[status]


# --- several steps


@pytest.mark.parametrize("status", [200, 202])
async def test_block_that_a_node_had_is_known_whatever_the_status(status: int) -> None:
    """Case 53, rule 8: Lighthouse."""
    body = json.dumps({"code": status, "message": "duplicate block"}).encode()
    async with talk(answer(body, status=f"{status} -", headers="Content-Type: application/json\r\n")) as asked:
        error = await failing(_block, asked)
    assert type(error) is failures.AlreadyKnown
    assert error.status == status
    assert not error.blames_node


async def test_answer_that_holds_such_words_as_data_is_an_answer() -> None:
    """Only of what was sent can a node say that it had it."""
    body = b'{"message":"duplicate block","data":{"head_slot":"1","sync_distance":"0","is_syncing":false}}'
    async with talk(answer(body, headers="Content-Type: application/json\r\n")) as asked:
        assert (await asked.node.syncing()).value.head_slot == 1


async def test_answers_to_a_list_keep_what_was_said_of_each_item() -> None:
    """Q12."""
    known = "PriorAttestationKnown { validator_index: 5, epoch: Epoch(7) }"
    failed = [{"index": 0, "message": known}, {"index": "2", "message": f"UnknownHeadBlock {{ {UNKNOWN_ROOT} }}"}]
    body = json.dumps({"code": 400, "message": "error processing attestations", "failures": failed}).encode()
    async with talk(answer(body, status="400 -", headers="Content-Type: application/json\r\n")) as asked:
        error = await failing(lambda node: node.publish_attestations([BLOCK] * 3, "fulu"), asked)
    assert isinstance(error, failures.BadRequest)
    assert [(item.index, item.known) for item in error.failures] == [(0, True), (2, False)]
    assert error.failures[0].message == known
    assert error.rest_taken


async def test_route_that_has_answered_is_not_written_off_by_the_page_of_a_proxy() -> None:
    """Q13: its node restarts."""
    good = answer(b'{"data":{"head_slot":"1","sync_distance":"0","is_syncing":false}}')
    page = answer(b"<html><head><title>404 Not Found</title>", status="404 -", headers="Content-Type: text/html\r\n")
    async with talk(good, page, good) as asked:
        await asked.node.syncing()
        assert type(await failing(_syncing, asked)) is failures.NotFound
        await asked.node.syncing()
    async with talk(page, good) as asked:
        assert type(await failing(_syncing, asked)) is failures.UnsupportedEndpoint
        # Of a route that says what a node is nothing is believed.
        await asked.node.syncing()
    async with talk(page, good) as asked:
        assert type(await failing(_liveness, asked)) is failures.UnsupportedEndpoint
        # It is remembered, and not asked.
        error = await failing(_liveness, asked)
        assert error.status is None
        assert len(asked.requests) == 1


# --- secrets

TOKEN = "f00dfeedcafe4242"


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
@pytest.mark.parametrize("form", ["json", "text", "page", "items", "detail"])
async def test_node_that_repeats_what_it_was_sent_tells_no_secret(status: int, form: str) -> None:
    """Rule 11, cases 21, 22: the target of the request and its headers hold the token of the base URL."""

    async def echo(connection: RawConnection) -> None:
        while True:
            request = await connection.request()
            assert TOKEN in request.target
            echoed = f"{request.method} {request.target} with {request.headers} of {TOKEN}"
            forms = {
                "json": json.dumps({"code": status, "message": echoed}),
                "text": echoed,
                "page": f"<html><head><title>{echoed}</title></head></html>",
                "items": json.dumps({"code": status, "message": echoed, "failures": [{"index": 0, "message": echoed}]}),
                "detail": json.dumps({"code": status, "message": "no", "stacktraces": [echoed]}),
            }
            await connection.send(answer(forms[form].encode(), status=f"{status} -"))

    headers = [("Authorization", f"Bearer {TOKEN}"), ("X-Key", TOKEN)]
    async with serve(echo) as server, client_of(server, path=f"/{TOKEN}", headers=headers) as client:
        node = BeaconNode(NodeId("n1"), client, clock=Clock(), mask=Mask([TOKEN]))
        with pytest.raises(NodeError) as caught:
            await node.publish_attestations([BLOCK, BLOCK], "fulu")
    error = caught.value
    items = error.failures if isinstance(error, failures.BadRequest) else ()
    told = f"{error} {error!r} {error.problem} {error.words} {items!r} {node.capabilities.lacks(None)!r}"
    assert TOKEN[:8] not in told
    assert error.status == status
    assert len(str(error)) < 500
    assert len(items) == (1 if (form, status) == ("items", 400) else 0)
