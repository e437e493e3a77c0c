"""Whatever a node answers, a call ends in a value or in a failure of the tree, and the next one works."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.node_calls import CALLS, TIMEOUT, Call, Trouble, end, good, talk
from tests.conformance.openapi_calls import plain_reply
from tests.conformance.openapi_rows import ROOT, SLOT
from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.redact import Mask
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node.classify import failure, says_known
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.routes import ROUTES
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.wire.http import Headers, Response

SMALL = replace(CALLS["publish_block"], args=(Encodings(ssz=b"\x00", json=b"{}"), "fulu"))
# Of what is read in other ways: texts that are shown, rows by the thousand, bit vectors, flags.
OTHERS = (
    Call("getNodeVersion", "version"),
    Call("getNodeVersionV2", "client_versions"),
    Call("postStateValidators", "validators", ("head",)),
    Call("getEpochCommittees", "committees", ("head",)),
    Call("produceSyncCommitteeContribution", "sync_committee_contribution", (SLOT, 1, ROOT)),
    Call("producePayloadAttestationData", "payload_attestation_data", (SLOT,)),
)
FUZZED = {call.method: call for call in (*CALLS.values(), SMALL, *OTHERS)}

backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])
every = pytest.mark.parametrize("method", FUZZED)

NUMBERS = st.one_of(
    st.integers(0, 20),
    st.integers(-1, 2**70),
    st.floats(),
    st.sampled_from([10**400, -(10**400), 2**64 - 1, 2**64, 400, 503]),
)
TEXTS = st.one_of(
    st.sampled_from(
        [
            *("", "0", "1", "400", "fulu", "0x", "0x00", "0x" + "ab" * 32, "true", "null", "PublishError.Duplicate"),
            *("Route GET:/x not found", "duplicate block", "Multiple errors on publish\n1\n2", "x" * 2000, "\ud800"),
            "Requested epoch 10 must equal current 5 or next epoch 6",
        ]
    ),
    NUMBERS.map(str),
    st.text(max_size=20),
)
NAMES = st.sampled_from(
    [
        *("data", "version", "message", "code", "statusCode", "status_code", "error", "failures", "stacktraces"),
        *("index", "title", "status", "dependent_root", "execution_optimistic", "slot", "head_slot", "dataPath"),
    ]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.one_of(NAMES, TEXTS), inner, max_size=4)),
    max_leaves=12,
)


@cache
def example(operation: str) -> str:
    body = good(operation).partition(b"\r\n\r\n")[2] or plain_reply(operation).body
    return json.dumps(json.loads(body or b"{}"))


def changed(draw: st.DrawFn, value: Any) -> Any:
    """Put something else in one place of a value."""
    if not isinstance(value, (dict, list)) or not value or draw(st.integers(0, 4)) == 0:
        return draw(VALUES)
    places: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    place = draw(st.sampled_from(places))
    copied: Any = value.copy()
    copied[place] = changed(draw, value[place])
    return copied


@st.composite
def bodies(draw: st.DrawFn, operation: str) -> bytes:
    """Draw any bytes, any JSON, and good answers of which something is changed."""
    way = draw(st.integers(0, 5))
    if way == 0:
        return draw(st.binary(max_size=200))
    value = draw(VALUES) if way < 3 else json.loads(example(operation))
    for _ in range(draw(st.integers(0, 2)) if way >= 3 else 0):
        value = changed(draw, value)
    body = json.dumps(value, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        place = draw(st.integers(0, len(body)))
        body = body[:place] + draw(st.binary(max_size=3)) + body[place + draw(st.integers(0, 3)) :]
    return body


HEADERS = st.tuples(
    st.one_of(
        st.sampled_from(
            [
                *("Content-Type", "content-type", "Content-Encoding", "Retry-After", "Location", "Connection", "Date"),
                *("Eth-Consensus-Version", "Eth-Execution-Payload-Blinded", "Eth-Execution-Payload-Value", "Upgrade"),
                *("Eth-Consensus-Block-Value", "Content-Length", "Transfer-Encoding", "Set-Cookie", "Trailer"),
            ]
        ),
        st.from_regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}", fullmatch=True),
    ),
    st.one_of(
        st.sampled_from(
            [
                *("application/json", "application/octet-stream", "text/html; charset=utf-8", "gzip", "deflate", "br"),
                *("true", "false", "fulu", "GLOAS", "1", "0", "120", "-1", "1e400", "9" * 5000, "close", "keep-alive"),
                *("Wed, 21 Oct 2037 07:28:00 GMT", "Mon, 01 Jan 0001 00:00:00 -9999", "31 Dec 9999 23:59:60 +9959"),
                *(
                    "/",
                    "",
                    "//",
                    "http://127.0.0.1:1/",
                    "http://[",
                    "http:x",
                    "?",
                    "#",
                    "/\xff",
                    "/%",
                    "x:y",
                    "chunked",
                ),
            ]
        ),
        st.text(st.characters(codec="latin-1", exclude_characters="\r\n\x00"), max_size=30),
    ),
)
STATUSES = st.one_of(st.sampled_from([200, 200, 200, 202, 204, 307, 400, 404, 500, 503]), st.integers(100, 999))


@st.composite
def responses(draw: st.DrawFn, operation: str) -> bytes:
    """Draw whole responses, and such as a length, a chunk, or their end is missing of."""
    body = draw(bodies(operation))
    fields = draw(st.lists(HEADERS, max_size=4))
    framing = draw(st.integers(0, 6))
    if framing < 4:
        fields.append(("Content-Length", str(len(body) if framing else draw(st.integers(0, 300)))))
    elif framing == 4:
        fields.append(("Transfer-Encoding", "chunked"))
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    lines = "".join(f"{name}: {value}\r\n" for name, value in draw(st.permutations(fields)))
    return b"HTTP/1.1 %d -\r\n%b\r\n%b" % (draw(STATUSES), lines.encode("latin-1"), body)


TEMPLATES = {route.template for route in ROUTES}


async def outcome(node: BeaconNode, call: Call) -> NodeError | None:
    """Make a call; whatever is not of the tree comes out."""
    failed: NodeError | None = None
    try:
        with anyio.fail_after(TIMEOUT):
            answer = await call.make(node, TIMEOUT / 2)
    except NodeError as error:
        failed = error
    if failed is None:
        assert isinstance(answer, Sourced)
        assert repr(answer)
        return None
    assert failed.node_id == "n1"
    assert failed.endpoint in TEMPLATES
    assert str(failed).isprintable()
    assert len(str(failed)) < 500
    return failed


async def ask(call: Call, troubles: list[Trouble]) -> None:
    """Meet each trouble, and find the node well behind it."""
    async with talk(call.operation) as asked:
        for trouble in troubles:
            asked.theirs.trouble = trouble
            await outcome(asked.ours, call)
            numbers = asked.http.statistics()
            assert (numbers.in_use, numbers.waiting, numbers.streams, numbers.open) == (0, 0, 0, numbers.idle)
            asked.theirs.trouble = None
            # One that remembers nothing: the node may have said that it does not have the endpoint.
            node = BeaconNode(NodeId("n1"), asked.http, clock=Clock(), connect_timeout=TIMEOUT)
            assert await outcome(node, call) is None


@every
@backends
@settings(max_examples=12)
@given(data=st.data())
def test_any_answer_is_a_value_or_a_failure(backend: str, method: str, data: st.DataObject) -> None:
    """Nothing of pydantic, msgspec, httpx, ssz or Unicode comes out, whatever status, headers and body are."""
    call = FUZZED[method]
    drawn = data.draw(st.lists(responses(call.operation), min_size=1, max_size=8))
    anyio.run(ask, call, [end(response) for response in drawn], backend=backend)


@backends
@settings(max_examples=25)
@given(drawn=st.lists(st.tuples(st.booleans(), st.binary(max_size=300)), min_size=1, max_size=8))
def test_any_bytes_are_a_failure(backend: str, drawn: list[tuple[bool, bytes]]) -> None:
    """With or without the beginning of a response."""
    call = CALLS["attestation_data"]
    troubles = [end(b"HTTP/1.1 200 OK\r\n" * begun + data) for begun, data in drawn]
    anyio.run(ask, call, troubles, backend=backend)


@settings(max_examples=300)
@given(
    route=st.sampled_from(ROUTES),
    status=st.integers(200, 999),
    headers=st.lists(HEADERS, max_size=3),
    body=bodies("getSyncingStatus"),
    items=st.integers(0, 3),
    proven=st.booleans(),
)
def test_any_refusal_has_its_failure(
    route: Any, status: int, headers: list[tuple[str, str]], body: bytes, items: int, proven: bool
) -> None:
    """Also where a status says that all is well and the body that it is not."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    response = Response(status, Headers(raw), body)
    says_known(response)
    error = failure(NodeId("n1"), route, response, 1.7e9, Mask(), items, proven=proven)
    assert isinstance(error, NodeError)
    assert (error.status, error.endpoint) == (status, route.template)
    assert str(error).isprintable()
    pause = getattr(error, "retry_after", None)
    assert pause is None or 0 <= pause <= 3600
    for item in getattr(error, "failures", ()):
        assert item.message.isprintable()
        assert len(item.message) <= 300
