"""The words of real clients for errors: what the body of a refusal looks like, by client and by kind.

Lighthouse: `warp_utils/src/reject.rs` and `publish_blocks.rs`; Prysm: its middleware answers in plain text; Lodestar:
recordings of 1.5.1; Nimbus: `rest_constants.nim`; Teku: Javalin's own text for routes that are not there.
"""

from collections.abc import Mapping
from http import HTTPStatus

from vc_fallback.testing.events import dumps
from vc_fallback.testing.framings import FramingName
from vc_fallback.testing.http import Answer, Request

_PLAIN = "text/plain; charset=utf-8"


def error(client: FramingName, status: int, message: str, /, **more: object) -> Answer:
    """Return an error with its message."""
    body: dict[str, object]
    if client == "lodestar":
        body = {"statusCode": status, "error": HTTPStatus(status).phrase, "message": message, **more}
    elif client == "prysm":
        body = {"message": message, "code": status, **more}
    else:
        body = {"code": status, "message": message, **more}
    return Answer(status, dumps(body))


def no_route(client: FramingName, request: Request, code: int) -> Answer:
    """Return the answer to a request for what is not there: 404, or 405 or 501 for another way to say so."""
    if client == "lodestar" and code == 404:
        return error(client, code, f"Route {request.method}:{request.target} not found")
    if client == "prysm":
        text = "404 page not found\n" if code == 404 else f"{HTTPStatus(code).phrase}\n"
        return Answer(code, text, content_type=_PLAIN)
    if client == "nimbus":
        return Answer(code)
    if client == "teku" and code == 404:
        title = f"Endpoint {request.method} {request.path} not found"
        kind = "https://javalin.io/documentation#endpointnotfound"
        return Answer(code, dumps({"title": title, "status": code, "type": kind, "details": {}}))
    if client == "lighthouse":
        return error(client, code, HTTPStatus(code).name, stacktraces=[])
    return error(client, code, HTTPStatus(code).phrase)


def wrong_type(client: FramingName, code: int, media_type: str) -> Answer:
    """Return a 415 for the type of a request, or a 406 for the types that an answer may have."""
    if client == "prysm":
        text = f"Unsupported media type: {media_type}" if code == 415 else "Not Acceptable"
        return Answer(code, text + "\n", content_type=_PLAIN)
    if client == "lodestar" and code == 415:
        text = f"Unsupported Media Type: {media_type}"
        # `code` is a word there, not a status.
        return error(client, code, text, code="FST_ERR_CTP_INVALID_MEDIA_TYPE")
    if client == "lighthouse":
        return error(client, code, HTTPStatus(code).name, stacktraces=[])
    return error(client, code, "Accepted media type not supported" if code == 406 else "Cannot read the content type")


def failures(client: FramingName, operation: str, found: Mapping[int, str], code: int) -> Answer:
    """Return the answer for a list of which some items were refused, by their places."""
    if client == "lodestar":
        texts = list(found.values())
        several = f"Multiple errors on {operation}\n" + "\n".join(texts)
        return error(client, 500 if code == 400 else code, texts[0] if len(texts) == 1 else several)
    listed = [{"index": index, "message": message} for index, message in found.items()]
    text = {"lighthouse": "BAD_REQUEST: error processing objects", "prysm": "One or more messages failed validation"}
    return error(client, code, text.get(client, "some failures"), failures=listed)


def success(client: FramingName, block: bool) -> Answer:
    """Return the answer to what was published: 200 with next to nothing, each client in its way."""
    if client == "lodestar":
        return Answer(200, "{}")
    if client == "lighthouse" and not block:
        return Answer(200, "null")
    if client == "nimbus":
        return Answer(200, dumps({"code": 200, "message": "Object(s) was broadcast"}))
    return Answer(200)


def duplicate(way: str, block: bool) -> tuple[int, str] | None:
    """Return what a node answers to something that it has already, status and words; `None`: 200.

    :param block: whether it is a block.
    """
    if way == "lodestar":
        return 500, "PublishError.Duplicate" if block else "ATTESTATION_ERROR_ATTESTATION_ALREADY_KNOWN"
    if way == "failures":
        return 400, "BAD_REQUEST: duplicate block" if block else "PriorAttestationKnown"
    if block and way in {"lighthouse", "nimbus"}:
        return (202, "duplicate block") if way == "lighthouse" else (503, "BeaconBlock: already seen")
    return None


def says(client: FramingName, what: str, **details: object) -> tuple[int, str]:
    """Return how a client says that something is not to be had, status and words: one of :data:`TEXTS`."""
    texts = TEXTS[what]
    status, text = texts.get(client) or texts["lighthouse"]
    return status, text.format_map({name: str(value) for name, value in details.items()})


TEXTS: Mapping[str, Mapping[FramingName, tuple[int, str]]] = {
    "syncing": {
        "lighthouse": (503, "SERVICE_UNAVAILABLE: beacon node is syncing: head slot is {head}, current slot is {now}"),
        "prysm": (503, "Beacon node is currently syncing and not serving request on that endpoint Details: {head}"),
        "teku": (503, "Beacon node is currently syncing and not serving requests."),
        "nimbus": (503, "Beacon node is currently syncing and not serving request on that endpoint"),
        "lodestar": (503, "Node is syncing - headSlot {head} currentSlot {now}"),
    },
    "optimistic": {
        # The real one says this with 500 (cases.md 30); the definition, and all others, have 503.
        "lighthouse": (503, "UNHANDLED_ERROR: HeadBlockNotFullyVerified {{ beacon_block_root: {root} }}"),
        "prysm": (503, "The node is currently optimistic and cannot serve validators"),
        "teku": (503, "Beacon node is currently syncing and not serving requests."),
        "nimbus": (503, "Beacon node not fully and non-optimistically synced"),
        "lodestar": (503, "Node is syncing - Block's execution payload not yet validated, slot={head}"),
    },
    "future": {
        "lighthouse": (400, "BAD_REQUEST: request slot {slot} is more than one slot past the current slot {now}"),
        "prysm": (400, "invalid request: slot {slot} is not the current slot {now}"),
        "teku": (400, "Cannot create attestation for future slot. Requested {slot} but current slot is {now}"),
        "nimbus": (400, "Slot cannot be in the future"),
        "lodestar": (500, "Requested slot {slot} is in the future"),
    },
    "no aggregate": {
        "lighthouse": (404, "NOT_FOUND: no matching aggregate found"),
        "prysm": (404, "No matching attestations found"),
        "teku": (404, "Not found"),
        "nimbus": (400, "Unable to retrieve an aggregated attestation"),
        "lodestar": (500, "No attestation for slot={slot} dataRoot={root}"),
    },
    "no contribution": {
        "lighthouse": (404, "NOT_FOUND: no matching sync contribution found"),
        "prysm": (404, "No subcommittee messages found"),
        "teku": (404, "Not found"),
        "nimbus": (400, "Unable to produce contribution using the passed parameters"),
        "lodestar": (500, "No contribution available"),
    },
    "unknown head": {
        "lighthouse": (400, "UnknownHeadBlock {{ beacon_block_root: {root} }}"),
        "nimbus": (400, "Attempt to send attestation for unknown target"),
        "lodestar": (500, "ATTESTATION_ERROR_UNKNOWN_OR_PREFINALIZED_BEACON_BLOCK_ROOT"),
    },
    "unknown parent": {
        "lighthouse": (400, "BAD_REQUEST: ParentUnknown({root})"),
        "lodestar": (500, "BLOCK_ERROR_PARENT_UNKNOWN"),
    },
}
"""What cannot be had, in the words of each client: recordings of Lodestar 1.5.1, the clients' sources, cases.md."""
