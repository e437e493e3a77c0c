"""What an answer that is no success means: its status, its route and its words."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.error_texts import ROOT
from vc_fallback.base.errors import NodeError
from vc_fallback.base.redact import Mask
from vc_fallback.base.types import NodeId
from vc_fallback.node import failures, routes
from vc_fallback.node.classify import failure, says_known
from vc_fallback.node.routes import Route
from vc_fallback.wire.http import Headers, Response

PLAIN = routes.LIVENESS
"""A route of which the definition lists no 404."""
ABSENT = routes.BLOCK
"""One of which it does."""
LIST = routes.PUBLISH_ATTESTATIONS
KNOWN = "Verification: PriorAttestationKnown { validator_index: 5, epoch: Epoch(7) }"
NIMBUS_SYNCING = "Beacon node is currently syncing and not serving request on that endpoint"
SYNCING = "SERVICE_UNAVAILABLE: beacon node is syncing: head slot is 7, current slot is 99"
SECRET = "4a57ab1e-token"


def classified(
    status: int,
    body: bytes | str | Any = b"",
    *,
    route: Route = PLAIN,
    items: int = 0,
    proven: bool = False,
    headers: Sequence[tuple[bytes, bytes]] = (),
    mask: Mask = Mask(),  # noqa: B008 - it does not change
) -> NodeError:
    """Return the failure; a body that is no bytes is written as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = Response(status, Headers(list(headers)), content)
    return failure(NodeId("bn1"), route, response, 1_800_000_000.0, mask, items, proven=proven)


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"code": 500, "message": text, **more}


def refused(failed: Any, *, items: int, mask: Mask = Mask(), status: int = 400) -> NodeError:  # noqa: B008
    """Return what a list is that had failures."""
    body = {"code": status, "message": "BAD_REQUEST: some failures", "failures": failed}
    return classified(status, body, route=LIST, items=items, mask=mask)


def item(index: Any, message: Any = "bad signature") -> dict[str, Any]:
    return {"index": index, "message": message}


# --- by status


@pytest.mark.parametrize(
    ("status", "kind", "blames"),
    [
        (204, failures.NotReady, True),
        (206, failures.StatusError, True),
        (301, failures.StatusError, True),
        (400, failures.BadRequest, False),
        (401, failures.Unauthorized, True),
        (402, failures.Unauthorized, True),
        (403, failures.Unauthorized, True),
        (405, failures.UnsupportedEndpoint, False),
        (406, failures.NotAcceptable, False),
        (407, failures.Unauthorized, True),
        (408, failures.NotReady, True),
        (409, failures.SemanticError, False),
        (410, failures.NotFound, False),
        (413, failures.PayloadTooLarge, False),
        (414, failures.SemanticError, False),
        (415, failures.UnsupportedMediaType, False),
        (422, failures.SemanticError, False),
        (429, failures.RateLimited, True),
        (500, failures.ServerError, True),
        (501, failures.UnsupportedEndpoint, False),
        (502, failures.ServerError, True),
        (503, failures.NotReady, True),
        (504, failures.ServerError, True),
        (520, failures.ServerError, True),
        (599, failures.ServerError, True),
    ],
)
@pytest.mark.parametrize("body", [b"", b"{}", b'{"code":1,"message":"something new"}', b"<html>", b"\xff\x00"])
def test_status_alone(status: int, kind: type[NodeError], blames: bool, body: bytes) -> None:
    """Rule 10, Q11: where no words say more, the status decides, and who is to blame."""
    error = classified(status, body)
    assert type(error) is kind
    assert error.blames_node is blames
    assert (error.node_id, error.endpoint, error.status) == ("bn1", PLAIN.template, status)
    assert str(error).startswith(f"bn1: {PLAIN.template}: {status}")


@pytest.mark.parametrize("status", [401, 402, 403, 405, 406, 407, 413, 415, 429, 501])
def test_status_that_says_everything_is_believed_before_words(status: int) -> None:
    """A proxy's answer may hold any words."""
    assert type(classified(status, said("not synced"))) is type(classified(status))


@pytest.mark.parametrize("status", [400, 409, 500, 502, 503])
@pytest.mark.parametrize(
    ("text", "kind", "blames"),
    [
        ("not synced", failures.NotReady, True),
        ("BLOCK_ERROR_ALREADY_KNOWN", failures.AlreadyKnown, False),
        ("head has not been fully verified by an execution engine", failures.Optimistic, True),
        ("Block not in forkChoice", failures.UnknownBlock, False),
        ("Requested slot 9 is in the future", failures.FutureSlot, False),
        ("liveness tracking not enabled", failures.UnsupportedEndpoint, False),
        ("This endpoint does not support SSZ response", failures.NotAcceptable, False),
        ("Unsupported Media Type: application/octet-stream", failures.UnsupportedMediaType, False),
        ("Request body is too large", failures.PayloadTooLarge, False),
        ("No contribution available", failures.NotFound, False),
        ("UNHANDLED_ERROR: BuilderMissing", failures.BadRequest, False),
    ],
)
def test_words_say_what_the_status_does_not(status: int, text: str, kind: type[NodeError], blames: bool) -> None:
    """Rule 10, N3, cases 30, 39, 44, 51."""
    error = classified(status, said(text))
    assert type(error) is kind
    assert error.blames_node is blames
    assert error.status == status


def test_unknown_words_with_500_are_the_nodes_fault() -> None:
    """N3."""
    error = classified(500, said("Cannot read properties of undefined (reading 'slot')"))
    assert type(error) is failures.ServerError
    assert error.words == "500 Cannot read properties of undefined (reading 'slot')"


# --- 404


@pytest.mark.parametrize(
    ("body", "plain", "absent"),
    [
        (b"", failures.UnsupportedEndpoint, failures.NotFound),
        (b"{}", failures.UnsupportedEndpoint, failures.NotFound),
        (said("what is that"), failures.UnsupportedEndpoint, failures.NotFound),
        # It says that there is no such route.
        (said("NOT_FOUND"), failures.UnsupportedEndpoint, failures.UnsupportedEndpoint),
        (b"404 page not found\n", failures.UnsupportedEndpoint, failures.UnsupportedEndpoint),
        ({"code": 5, "message": "Not Found", "details": []}, *[failures.UnsupportedEndpoint] * 2),
        ({"message": "Route GET:/eth/v9/x not found", "error": "Not Found", "statusCode": 404},)
        + (failures.UnsupportedEndpoint,) * 2,
        ({"message": "no Route matched with those values"}, *[failures.UnsupportedEndpoint] * 2),
        # No beacon node alone says so: Javalin under Teku, nginx.
        ({"title": "Endpoint GET /eth/v9/x not found", "status": 404, "type": "about:blank", "details": {}},)
        + (failures.UnsupportedEndpoint,) * 2,
        (b"<html><head><title>404 Not Found</title></head></html>", *[failures.UnsupportedEndpoint] * 2),
        # It says that the thing is not there.
        (said("NOT_FOUND: beacon block at slot 9"), failures.NotFound, failures.NotFound),
        (said("Not found"), failures.NotFound, failures.NotFound),
        (said(f"No block found for id '{ROOT}'"), failures.NotFound, failures.NotFound),
        (said("Block not in forkChoice, beaconBlockRoot=0x1"), failures.UnknownBlock, failures.UnknownBlock),
        # Genesis is not known yet: of the genesis route that is the answer, of others a state.
        (
            said("NOT_FOUND: Beacon chain genesis has not yet been observed."),
            failures.NotReady,
            failures.NotFound,
        ),
    ],
)
def test_404_of_a_route_and_of_a_thing(body: Any, plain: type[NodeError], absent: type[NodeError]) -> None:
    """Q13: where the definition lists a 404 it is an answer, unless its words say that there is no such route."""
    assert type(classified(404, body, route=PLAIN)) is plain
    assert type(classified(404, body, route=ABSENT)) is absent


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"404 page not found\n", failures.NotFound),
        (b"<html><title>404</title>", failures.NotFound),
        (b"", failures.NotFound),
        (said("NOT_FOUND"), failures.UnsupportedEndpoint),
        (said("Not found"), failures.NotFound),
    ],
)
def test_404_of_a_route_that_every_node_has(body: Any, kind: type[NodeError]) -> None:
    """Q13: one word of a proxy is not to take a node from its validators for an epoch."""
    for route in (routes.ATTESTATION_DATA, routes.ATTESTER_DUTIES, routes.PUBLISH_ATTESTATIONS):
        assert type(classified(404, body, route=route)) is kind
        assert type(classified(405, body, route=route)) is failures.UnsupportedEndpoint


@pytest.mark.parametrize(
    "body",
    [
        b"",
        said("what is that"),
        b"<html><title>404</title>",
        {"title": "Not Found", "status": 404},
        b"404 page not found\n",
        {"message": "no Route matched with those values"},
    ],
    ids=["nothing", "unknown words", "page", "framework", "Traefik", "Kong"],
)
@pytest.mark.parametrize("route", [PLAIN, ABSENT])
def test_404_does_not_write_off_a_route_that_was_there(body: Any, route: Route) -> None:
    """Q13, case 36: a proxy whose node restarts says 404 too."""
    assert type(classified(404, body, route=route, proven=True)) is failures.NotFound


def test_404_that_names_the_route_writes_it_off() -> None:
    """Q13: a node that was set back to an older version says so itself."""
    error = classified(404, said("Route GET:/eth/v2/x not found"), route=ABSENT, proven=True)
    assert type(error) is failures.UnsupportedEndpoint


# --- when to ask again


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, b"", failures.RateLimited),
        (503, b"", failures.NotReady),
        (503, said("The node is currently optimistic and cannot serve validators"), failures.Optimistic),
        (400, said("not synced"), failures.NotReady),
    ],
)
@pytest.mark.parametrize(
    ("value", "pause"),
    [(b"17", 17.0), (b"Fri, 15 Jan 2027 08:00:30 GMT", 30.0), (b"soon", None), (b"-3", None), (None, None)],
)
def test_pause_that_a_node_asks_for(
    status: int, body: Any, kind: type[NodeError], value: bytes | None, pause: float | None
) -> None:
    """Q11, case 24."""
    error = classified(status, body, headers=[] if value is None else [(b"Retry-After", value)])
    assert type(error) is kind
    assert isinstance(error, (failures.RateLimited, failures.NotReady))
    assert error.retry_after == pause


# --- providers, proxies, frameworks


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        # Infura: quota, no key.
        (
            402,
            {
                "jsonrpc": "2.0",
                "error": {"code": -32005, "message": "daily request count exceeded, request rate limited"},
            },
            failures.Unauthorized,
            "402 daily request count exceeded, request rate limited",
        ),
        (
            429,
            {"jsonrpc": "2.0", "error": {"code": -32005, "message": "project ID request rate exceeded"}},
            failures.RateLimited,
            "429 project ID request rate exceeded",
        ),
        (401, b"project id required in the url\n", failures.Unauthorized, "401 project id required in the url"),
        # Alchemy.
        (
            403,
            {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Monthly capacity limit exceeded."}},
            failures.Unauthorized,
            "403 Monthly capacity limit exceeded.",
        ),
        (
            429,
            {"error": "Monthly capacity limit exceeded"},
            failures.RateLimited,
            "429 Monthly capacity limit exceeded",
        ),
        # nginx, HAProxy, Cloudflare.
        (
            502,
            b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1>",
            failures.ServerError,
            "502 502 Bad Gateway",
        ),
        (
            503,
            b"<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.",
            failures.NotReady,
            "503 503 Service Unavailable",
        ),
        (504, b"<html><head><title>504 Gateway Time-out</title>", failures.ServerError, "504 504 Gateway Time-out"),
        (
            520,
            b'<!DOCTYPE html>\n<html lang="en-US">\n<head>\n<title>example.org | 520: Web server is returning',
            failures.ServerError,
            None,
        ),
        (520, b"error code: 520", failures.ServerError, "520 error code: 520"),
        (413, b"<html><head><title>413 Request Entity Too Large</title>", failures.PayloadTooLarge, None),
        # Fastify, under Lodestar.
        (
            415,
            {
                "statusCode": 415,
                "code": "FST_ERR_CTP_INVALID_MEDIA_TYPE",
                "error": "Unsupported Media Type",
                "message": "Unsupported Media Type: application/octet-stream",
            },
            failures.UnsupportedMediaType,
            "415 Unsupported Media Type: application/octet-stream",
        ),
        (
            413,
            {"statusCode": 413, "code": "FST_ERR_CTP_BODY_TOO_LARGE", "message": "Request body is too large"},
            failures.PayloadTooLarge,
            "413 Request body is too large",
        ),
        (
            400,
            {
                "statusCode": 400,
                "code": "FST_ERR_CTP_INVALID_CONTENT_LENGTH",
                "error": "Bad Request",
                "message": "length",
            },
            failures.BadRequest,
            "400 length",
        ),
        # AJV, under Lodestar 1.5.
        (
            400,
            [{"keyword": "type", "dataPath": ".slot", "params": {}, "message": "should be integer"}],
            failures.BadRequest,
            "400 .slot should be integer",
        ),
        # gRPC-gateway, under Prysm before its release 5.
        (
            500,
            {
                "message": "rpc error: code = Unavailable desc = Syncing to latest head, not ready to respond",
                "code": 500,
            },
            failures.NotReady,
            None,
        ),
        (404, {"code": 5, "message": "Not Found", "details": []}, failures.UnsupportedEndpoint, "404 Not Found"),
        (
            503,
            {"error": "upstream connect error", "code": 14, "message": "upstream connect error", "details": []},
            failures.NotReady,
            "503 upstream connect error",
        ),
        # Nimbus keeps its words for nodes that sync, and says in a detail that it is not that.
        (
            503,
            {
                "code": 503,
                "message": NIMBUS_SYNCING,
                "stacktraces": ["BeaconBlock: block is too old"],
            },
            failures.BadRequest,
            f"503 {NIMBUS_SYNCING}: BeaconBlock: block is too old",
        ),
    ],
)
def test_what_comes_from_providers_proxies_and_frameworks(
    status: int, body: Any, kind: type[NodeError], words: str | None
) -> None:
    """Q11, Q16, cases 24, 39, 56."""
    error = classified(status, body)
    assert type(error) is kind
    if words is not None:
        assert error.words == words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "500"),
        (b"  \n", "500"),
        (b"{}", "500 {}"),
        (b"null", "500 null"),
        (b"7", "500 7"),
        (b'"some words"', "500 some words"),
        (b"[]", "500 []"),
        (b'[7, {"message": 8}]', '500 [7, {"message": 8}]'),
        (b'{"message": 7}', '500 {"message": 7}'),
        (b'{"message": ""}', '500 {"message": ""}'),
        (b'{"message": ["a"], "error": "b"}', "500 b"),
        (b'{"error": {"message": "nested", "code": "E7"}}', "500 nested"),
        (b'{"error": {"error": {"message": "deeper"}}}', '500 {"error": {"error": {"message": "deeper"}}}'),
        (b'{"code": "ERR_7", "message": "words"}', "500 words"),
        (b'{"message": "words"', '500 {"message": "words"'),
        (b'{"message": "a", "message": "b"}', "500 b"),
        (b'\xef\xbb\xbf{"message": "after a mark"}', '500 {"message": "after a mark"}'),
        (b"\xff\xfe", "500 ��"),
        (b"two\nlines\tof \x1b[31mwords", "500 two lines of �[31mwords"),
        (b'{"message": "\\u202ewords"}', "500 �words"),
        (b'{"message": "words", "stacktraces": "none"}', "500 words"),
        (b'{"message": "words", "stacktraces": [7, "one", null]}', "500 words: one"),
        (b'{"message": "words", "stacktraces": ["one", "two"]}', "500 words"),
        (b"[" * 100_000, None),
        (b'{"a":' * 100_000, None),
        (b'{"message":"' + b"x" * 2**21 + b'"}', None),
        (b'{"message":"' + b"x" * 2**19 + b'"}', None),
        (b"9" * 100_000, None),
        (b'{"code":' + b"9" * 5000 + b',"message":"words"}', "500 …"),
        (b'{"code":NaN,"message":"words"}', "500 words"),
        (b'{"message":"\\ud800"}', None),
        (b'{"failures":{"index":0},"message":"words"}', "500 words"),
        (b"<" * 100_000, None),
        (b"<title " * 20_000, None),
        (b"<h1" + b" " * 100_000, None),
    ],
)
def test_body_of_any_form_is_shown_in_one_short_line(body: bytes, words: str | None) -> None:
    """Q15, rule 11: it never raises."""
    error = classified(500, body)
    assert type(error) is failures.ServerError
    assert len(error.problem) <= 300
    assert str(error).isprintable()
    if words is not None:
        assert error.words == words


# --- items of a list (Q12)


def test_items_keep_their_index_their_text_and_whether_they_are_known() -> None:
    """Q12."""
    error = refused([item("0", KNOWN), item(2, "Validation(InvalidSignature)"), item("4", KNOWN)], items=5)
    assert type(error) is failures.BadRequest
    assert error.failures == (
        failures.ItemFailure(0, KNOWN, True),
        failures.ItemFailure(2, "Validation(InvalidSignature)", False),
        failures.ItemFailure(4, KNOWN, True),
    )
    assert error.rest_taken
    assert error.words == "400 BAD_REQUEST: some failures"


def test_list_of_which_everything_is_known_is_known() -> None:
    """Rule 8."""
    error = refused([item(0, KNOWN), item("1", "PriorAttestationKnown { x }")], items=2)
    assert type(error) is failures.AlreadyKnown
    assert type(refused([item(0, KNOWN)], items=1)) is failures.AlreadyKnown


@pytest.mark.parametrize(
    "failed",
    [
        [item(0, KNOWN)],
        [item(0, KNOWN), item(0, KNOWN)],
        [item(0, KNOWN), item(2, KNOWN)],
        [item(0, KNOWN), item(1, KNOWN), item(2, KNOWN)],
        [item(0, KNOWN), item(1, KNOWN), "what"],
        [item(0, KNOWN), item(1, "UnknownHeadBlock { x }")],
        [item(0, KNOWN), item(1, "")],
        [item(0, KNOWN), item(1, None)],
    ],
    ids=["a part", "one twice", "beyond", "more than all", "unreadable", "one unknown", "no text", "null"],
)
def test_list_of_which_not_everything_is_known_is_not(failed: list[Any]) -> None:
    """Rule 8: of two items."""
    error = refused(failed, items=2)
    assert type(error) is failures.BadRequest
    assert error.failures


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("not synced", failures.NotReady),
        (SYNCING, failures.NotReady),
        (f"UnknownHeadBlock {{ beacon_block_root: {ROOT} }}", failures.UnknownBlock),
        ("Verification: FutureSlot { attestation_slot: Slot(9) }", failures.FutureSlot),
        # It is the items that are wrong.
        ("Block could not be sent from validator that is also managed here", failures.BadRequest),
        ("Validation(InvalidSignature)", failures.BadRequest),
    ],
)
def test_one_reason_of_all_items_is_the_reason(text: str, kind: type[NodeError]) -> None:
    """Q12, case 44: Caplin says of each item that it is syncing."""
    error = refused([item(0, text), item(1, text)], items=2)
    assert type(error) is kind
    if isinstance(error, failures.BadRequest):
        assert [found.message for found in error.failures] == [text, text]
    assert type(refused([item(0, text)], items=2)) is failures.BadRequest
    assert type(refused([item(0, text), item(1, KNOWN)], items=2)) is failures.BadRequest
    if kind is not failures.BadRequest:
        assert text[:10] in error.problem


@pytest.mark.parametrize(
    ("failed", "indices", "rest_taken"),
    [
        ([item(1)], [1], True),
        ([item("1")], [1], True),
        ([], [], False),
        # Of items that were not sent, it is not known which were taken.
        ([item(9)], [9], False),
        ([item(1), item(9)], [1, 9], False),
        # Nor where entries cannot be read.
        ([item(-1), item("x"), item(None), item(1.5), item(True), item([0]), item(2**64)], [], False),
        ([item(1), 7, "words", None, [], {}], [1], False),
        ([item(1), item(1)], [1, 1], True),
    ],
)
def test_whether_the_rest_was_taken(failed: list[Any], indices: list[int], rest_taken: bool) -> None:
    """Q12: only what is named in full is believed."""
    error = refused(failed, items=3)
    assert type(error) is failures.BadRequest
    assert [found.index for found in error.failures] == indices
    assert error.rest_taken is rest_taken


@pytest.mark.parametrize("failed", [None, 7, "0", {"index": 0, "message": KNOWN}, {}])
def test_failures_that_are_no_list_are_none(failed: Any) -> None:
    """Q12."""
    error = refused(failed, items=1)
    assert type(error) is failures.BadRequest
    assert not error.failures
    assert not error.rest_taken


def test_failures_count_only_where_a_list_was_sent_and_with_400() -> None:
    """Prysm names items with 500 that it could not broadcast: that is the node's fault."""
    error = refused([item(0, KNOWN)], items=0)
    assert type(error) is failures.BadRequest
    assert not error.failures
    assert type(refused([item(0, "not sent")], items=1, status=500)) is failures.ServerError


def test_items_of_a_long_list_are_bounded() -> None:
    """Q15."""
    many = [item(index, f"reason {index}") for index in range(15_000)]
    error = refused(many, items=20_000)
    assert isinstance(error, failures.BadRequest)
    assert [found.index for found in error.failures] == list(range(15_000))
    assert len({found.message for found in error.failures}) == 257
    assert error.rest_taken
    # More than is read.
    error = refused(many * 4, items=20_000)
    assert isinstance(error, failures.BadRequest)
    assert not error.failures
    assert not error.rest_taken
    error = refused([item(0, "word " * 10_000)], items=2)
    assert isinstance(error, failures.BadRequest)
    assert len(error.failures[0].message) <= 300


# --- a success that says something else


@pytest.mark.parametrize(
    ("body", "known"),
    [
        (b'{"code":202,"message":"duplicate block"}', True),
        (b'{"code":200,"message":"BAD_REQUEST: duplicate block"}', True),
        (b'{"code":202,"message":"duplicate block","stacktraces":[]}', True),
        (b'"duplicate block"', True),
        (b"", False),
        (b"{}", False),
        (b'{"code":202,"message":"accepted"}', False),
        (b'{"data":{"message":"duplicate block"}}', False),
        (b'{"code":202,"message":"duplicate block"}' + b" " * 1024, False),
        (b"\xff", False),
    ],
)
def test_success_that_says_the_node_had_it(body: bytes, known: bool) -> None:
    """Case 53: Lighthouse answers so, with the status that its configuration names."""
    response = Response(202, Headers([]), body)
    assert says_known(response) is known
    if known:
        error = failure(NodeId("bn1"), routes.PUBLISH_BLOCK, response, 0.0, Mask(), 0)
        assert type(error) is failures.AlreadyKnown
        assert error.status == 202


# --- secrets (rule 11)


@pytest.mark.parametrize(
    "body",
    [
        said(f"cannot serve /{SECRET}/eth/v1/x"),
        said(f"key {SECRET} is wrong"),
        {"error": {"message": f"project {SECRET}"}},
        {"code": 400, "message": "no", "stacktraces": [f"at {SECRET}"]},
        f"<html><title>{SECRET}</title>".encode(),
        f"plain {SECRET}".encode(),
        {"title": f"Endpoint GET /{SECRET}/eth/v1/x not found"},
        [{"message": f"should not be {SECRET}"}],
        SECRET,
        {"code": 400, "message": f"failures {SECRET}", "failures": [item(0, f"of {SECRET}")]},
        {"code": 400, "message": f"failures {SECRET}", "failures": [item(0, f"not synced {SECRET}"), item(1, KNOWN)]},
        {"code": 400, "message": "failures", "failures": [item(0, "x " * 508 + SECRET)]},
        # A URL takes up no room in what is shown.
        {"code": 400, "message": "failures", "failures": [item(0, f"http://node/{'x' * 1000} {SECRET}")]},
        {"unknown": SECRET},
        b"x " * 2040 + SECRET.encode() * 10,
    ],
)
@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_no_secret_is_in_what_a_failure_tells(body: Any, status: int) -> None:
    """A node may repeat what it was sent: no whole secret, and no beginning of one that was cut."""
    error = classified(status, body, mask=Mask([SECRET]), items=2)
    told = f"{error} {error.args!r} {error.words} {error.problem}"
    if isinstance(error, failures.BadRequest):
        told += repr(error.failures)
    assert SECRET[:8] not in told


@pytest.mark.parametrize(
    "text",
    [
        "GET https://user:hunter22@node.example/path?key=4a57ab1e failed",
        "Authorization: Bearer 4a57ab1e4a57ab1e",
        "no such user:hunter22@node.example",
    ],
)
def test_urls_and_credentials_are_taken_out_of_texts_and_items(text: str) -> None:
    """Rule 11: those that nobody knows too."""
    errors = [classified(500, said(text)), refused([item(0, text)], items=2), refused([item(0, text)], items=1)]
    for error in errors:
        told = f"{error} {getattr(error, 'failures', ())!r}"
        assert "hunter22" not in told
        assert "4a57ab1e" not in told


# --- anything

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40)
_KEYS = st.sampled_from(
    ["code", "statusCode", "status", "message", "error", "title", "failures", "index", "stacktraces"]
)
_JSON = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_KEYS, inner, max_size=5), max_leaves=20
)


@given(
    status=st.integers(200, 599),
    body=st.binary(max_size=200) | _JSON.map(lambda value: json.dumps(value).encode()),
    route=st.sampled_from(routes.ROUTES),
    items=st.integers(0, 3),
    proven=st.booleans(),
    pause=st.none() | st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), max_size=12),
)
def test_every_answer_is_some_failure(
    status: int, body: bytes, route: Route, items: int, proven: bool, pause: str | None
) -> None:
    """Q14: whatever a node sends, there is a failure that fits into a line of a log."""
    headers = [] if pause is None else [(b"retry-after", pause.encode())]
    error = classified(status, body, route=route, items=items, proven=proven, headers=headers)
    assert isinstance(error, failures.StatusError)
    assert error.status == status
    assert len(error.problem) <= 300
    assert str(error).isprintable()
    says_known(Response(status, Headers([]), body))
