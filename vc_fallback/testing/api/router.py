"""Finds the endpoint of a request to a simulated node, and writes its answer in the form that was asked for."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from vc_fallback.base.types import Slot
from vc_fallback.testing.api import (
    about,
    blocks,
    clients,
    duties,
    preparations,
    production,
    publishing,
    signing,
    states,
)
from vc_fallback.testing.api.accept import preferred
from vc_fallback.testing.api.call import JSON, MEDIA_TYPES, SSZ, ApiError, Call, Reply, Route, UnsupportedType
from vc_fallback.testing.api.submissions import identities
from vc_fallback.testing.containers.basic import Kind
from vc_fallback.testing.events import dumps
from vc_fallback.testing.faults import Refusal
from vc_fallback.testing.http import Answer, Request
from vc_fallback.testing.pool import Submission
from vc_fallback.testing.state import REMOVED, NodeState

ROUTES: tuple[Route, ...] = (
    *about.ROUTES,
    *blocks.ROUTES,
    *states.ROUTES,
    *duties.ROUTES,
    *signing.ROUTES,
    *production.ROUTES,
    *publishing.ROUTES,
    *preparations.ROUTES,
)
"""Everything that a simulated node answers beside its event stream."""


def answer(state: NodeState, request: Request, refusal: Refusal | None = None) -> Answer:
    """Answer a request for anything but the event stream."""
    manners = state.manners
    found = _find(request)
    if isinstance(found, int):
        return clients.no_route(manners.client, request, found if manners.client not in _WITHOUT_405 else 404)
    route, place = found
    missing = manners.missing(route.operation, route.method, route.template)
    if missing is not None:
        return clients.no_route(manners.client, request, missing)
    media_type = _media_type(state, request, route)
    if media_type is None:
        return clients.wrong_type(manners.client, 406, "")
    call = Call(state, request, route, place, refusal)
    try:
        reply = route.answer(call)
    except ApiError as error:
        return clients.error(manners.client, error.code, str(error))
    except UnsupportedType as error:
        return clients.wrong_type(manners.client, 415, str(error))
    return reply if isinstance(reply, Answer) else _write(call, reply, media_type)


def held_until(state: NodeState, request: Request) -> float | None:
    """Return the moment in loop time until which a request is held back, `None` where it is not.

    As Lodestar 1.5.1 does with attestation data of the next slot, which it answers as that slot begins.
    """
    if request.path != _ATTESTATION_DATA or state.manners.early != "hold":
        return None
    slot = dict(request.query).get("slot", "")
    if not slot.isdecimal() or int(slot) != state.slot + 1:
        return None
    return state.chain.slots.start_of(Slot(int(slot)))


def hear(state: NodeState, submission: Submission) -> None:
    """Let a node know of what was published elsewhere."""
    request = Request(
        "POST", submission.route, "HTTP/1.1", submission.headers, submission.body, submission.at, connection=0
    )
    found = _find(request)
    sent = publishing.SENT.get(submission.operation)
    if isinstance(found, int) or sent is None:
        raise ValueError("that was not published")
    for identity in identities(Call(state, request, *found), sent[1]):
        state.pool.known[identity] = True


_ATTESTATION_DATA = "/eth/v1/validator/attestation_data"
_WITHOUT_405 = ("lodestar", "nimbus")


def _find(request: Request) -> tuple[Route, dict[str, str]] | int:
    """Return the endpoint with the values of its template's names, or the status for that there is none."""
    method = "GET" if request.method == "HEAD" else request.method
    parts = request.path.split("/")
    other = False
    for route, names in _BY_LENGTH.get(len(parts), ()):
        place = {name[1:-1]: part for name, part in zip(names, parts, strict=True) if name.startswith("{")}
        if all(name == part or name.startswith("{") for name, part in zip(names, parts, strict=True)):
            if route.method == method:
                return route, place
            other = True
    return 405 if other else 404


def _by_length() -> dict[int, list[tuple[Route, list[str]]]]:
    found: dict[int, list[tuple[Route, list[str]]]] = {}
    for route in ROUTES:
        names = route.template.split("/")
        found.setdefault(len(names), []).append((route, names))
    return found


_BY_LENGTH = _by_length()


def _media_type(state: NodeState, request: Request, route: Route) -> str | None:
    """Return the form of the answer, `None` where there is none that is acceptable."""
    manners = state.manners
    accept = request.headers.get("accept")
    if route.ssz and manners.ssz:
        return preferred(accept, MEDIA_TYPES)
    if manners.strict_accept and (manners.ssz or not route.ssz):
        return preferred(accept, (JSON,))
    return JSON


def _write(call: Call, reply: Reply, media_type: str) -> Answer:
    headers = dict(reply.headers)
    name = call.state.manners.version_header
    if reply.version is not None and name is not None:
        headers[name] = reply.version
    if reply.bare:
        return Answer(reply.status, headers=headers)
    overrides = _overrides(call)
    if reply.value is not None and media_type == SSZ:
        data = _ssz(*reply.value, overrides)
        if data is not None:
            # An empty list is no byte at all, and has its type all the same.
            return Answer(reply.status, data, {**headers, "Content-Type": SSZ})
    return Answer(reply.status, dumps(_body(reply, overrides)), headers, JSON)


def _body(reply: Reply, overrides: Mapping[str, object]) -> dict[str, object]:
    data = reply.data if reply.value is None else reply.value[0].to_json(reply.value[1])
    body: dict[str, object] = {} if reply.version is None else {"version": reply.version}
    body.update(reply.members)
    body["data"] = data
    if isinstance(data, dict):
        body["data"] = _overridden(data, overrides)
        return body
    return _overridden(body, overrides)


def _ssz(kind: Kind, value: Any, overrides: Mapping[str, object]) -> bytes | None:  # noqa: ANN401 - of that kind
    """Return the SSZ, or `None` where what overrides it cannot be written so."""
    if overrides:
        try:
            written = kind.to_json(value)
            value = kind.from_json(_overridden(written, overrides) if isinstance(written, dict) else written)
        except ValueError:
            return None
    return kind.encode(value)


def _overrides(call: Call) -> dict[str, object]:
    found: dict[str, object] = {}
    for path, fields in call.state.overrides.items():
        if path == call.request.path or fnmatchcase(call.request.path, path):
            found.update(fields)
    return found


def _overridden(data: Mapping[str, object], overrides: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in {**data, **overrides}.items() if value is not REMOVED}
