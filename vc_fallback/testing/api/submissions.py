"""Reads what a validator client sends to a simulated node, keeps it on record, and answers for each item."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vc_fallback.base.types import Slot
from vc_fallback.testing.api import clients
from vc_fallback.testing.api.call import JSON, SSZ, ApiError, Call, Reply, UnsupportedType
from vc_fallback.testing.containers.basic import Kind
from vc_fallback.testing.containers.composite import List
from vc_fallback.testing.http import Answer
from vc_fallback.testing.pool import Submission

_MOST_ITEMS = 2**20

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Received:
    """One item of a request, of a fork."""

    call: Call
    fork: str
    value: Item


@dataclass(frozen=True, slots=True)
class Sent:
    """How something is sent, and what becomes of it.

    :param kind: of the value, or of each item of a list, in a fork.
    :param many: whether it is a list.
    :param ssz: whether it may be sent as SSZ.
    :param versioned: whether the request must say of which fork it is; without, it is of the current slot's.
    :param block: whether it is a block, which nodes treat in ways of their own.
    :param identity: what makes two items the same; `None` where it may be sent again and again.
    :param problem: says what is wrong with an item, in a few words; empty where nothing is.
    :param take: puts an item where it belongs.
    :param answer: makes the answer out of the items; by default there is none but the status.
    :param box: where it is kept on record.
    """

    kind: Kind | Callable[[Call, str], Kind]
    many: bool = True
    ssz: bool = False
    versioned: bool = False
    block: bool = False
    identity: Callable[[Received], object] | None = None
    problem: Callable[[Received], str] | None = None
    take: Callable[[Received], None] | None = None
    answer: Callable[[Call, list[Item]], Reply] | None = None
    box: Literal["published", "prepared"] = "published"


def receiver(sent: Sent) -> Callable[[Call], Reply | Answer]:
    """Return the endpoint that takes this in."""

    def receive(call: Call) -> Reply | Answer:
        media_type = _media_type(call, sent)
        if sent.block:
            call.synced()
        try:
            fork = _fork(call, sent)
            items = _items(call, sent, fork, media_type)
        except ApiError as error:
            _record(call, sent, media_type, 0, error.code, {0: str(error)})
            raise
        answer, failures = _take(call, sent, fork, items)
        _record(call, sent, media_type, _count(call, sent, items, media_type), answer.status, failures)
        return answer

    return receive


def identities(call: Call, sent: Sent) -> list[object]:
    """Return what makes the items of a request what they are, for a node that hears of them in another way."""
    fork = _fork(call, sent)
    items = _items(call, sent, fork, _media_type(call, sent)) or []
    return [] if sent.identity is None else [sent.identity(Received(call, fork, item)) for item in items]


def _media_type(call: Call, sent: Sent) -> str:
    media_type = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    takes_ssz = sent.ssz and call.state.manners.ssz
    if media_type != JSON and not (media_type == SSZ and takes_ssz):
        raise UnsupportedType(media_type)
    return media_type


def _fork(call: Call, sent: Sent) -> str:
    lenient = call.state.manners.checks == "none"
    if sent.versioned and not (lenient and "eth-consensus-version" not in call.request.headers):
        return call.version()
    return call.fork(call.state.slot)


def _items(call: Call, sent: Sent, fork: str, media_type: str) -> list[Item] | None:
    """Return the items; `None` where they cannot be read and need not be."""
    try:
        kind = sent.kind if isinstance(sent.kind, Kind) else sent.kind(call, fork)
        whole = List(kind, _MOST_ITEMS) if sent.many else kind
        body = call.request.body
        value = whole.decode(body) if media_type == SSZ else whole.from_json(json.loads(body))
    except (ValueError, RecursionError) as error:
        if call.state.manners.checks == "none":
            return None
        raise ApiError(400, f"Unable to decode: {error}") from None
    return list(value) if sent.many else [value]


def _take(call: Call, sent: Sent, fork: str, items: list[Item] | None) -> tuple[Reply | Answer, dict[int, str]]:
    """Take in what is to be taken; return the answer, and the words for what was not."""
    client, refusal, pool = call.state.manners.client, call.refusal, call.state.pool
    if refusal is not None and refusal.items is None and refusal.status >= 300:
        count = max(1, len(items or ()))
        return clients.error(client, refusal.status, refusal.message), dict.fromkeys(range(count), refusal.message)
    refused: dict[int, str] = {}
    known: dict[int, tuple[int, str]] = {}
    taken = []
    for index, item in enumerate(items or ()):
        one = Received(call, fork, item)
        if refusal is not None and refusal.items is not None and index in refusal.items:
            refused[index] = refusal.message
            continue
        identity = None if sent.identity is None else sent.identity(one)
        if identity is not None and identity in pool.known:
            again = clients.duplicate(call.state.manners.duplicates or client, sent.block)
            if again is not None:
                known[index] = again
            continue
        problem = "" if call.state.manners.checks != "all" or sent.problem is None else sent.problem(one)
        if problem:
            refused[index] = problem
            continue
        taken.append(item)
        if identity is not None:
            pool.known[identity] = True
        if sent.take is not None:
            sent.take(one)
    failures = refused | {index: words for index, (status, words) in known.items() if status >= 300}
    if failures and sent.many:
        code = 400 if refusal is None else refusal.status
        return clients.failures(client, call.route.operation, dict(sorted(failures.items())), code), failures
    if refused:
        return clients.error(client, 500 if client == "lodestar" else 400, refused[0]), failures
    if known:
        status, words = known[0]
        return clients.error(client, status, words), failures
    if refusal is not None and refusal.items is None:
        return clients.error(client, refusal.status, refusal.message), {}
    return clients.success(client, sent.block) if sent.answer is None else sent.answer(call, taken), {}


def _count(call: Call, sent: Sent, items: list[Item] | None, media_type: str) -> int:
    if items is not None:
        return len(items)
    if media_type == JSON:
        try:
            written = json.loads(call.request.body)
        except (ValueError, RecursionError):
            return 0
        return len(written) if isinstance(written, list) else 1
    return 0 if sent.many else 1


def _record(call: Call, sent: Sent, media_type: str, items: int, status: int, failures: Mapping[int, str]) -> None:
    request, pool = call.request, call.state.pool
    box = pool.published if sent.box == "published" else pool.prepared
    box.append(
        Submission(
            operation=call.route.operation,
            route=call.route.template,
            version=request.headers.get("eth-consensus-version"),
            media_type=media_type,
            body=request.body,
            items=items,
            at=request.received,
            status=status,
            failures=failures,
            headers=request.headers,
            query=request.query,
        )
    )


def epoch_of(call: Call, slot: int) -> int:
    """Return the epoch of a slot, whatever number it is."""
    return call.chain.identity.epoch_of(Slot(slot))


def slot_problem(one: Received, slot: int) -> str:
    """Say what is wrong with the slot of something that is sent."""
    if slot > one.call.state.slot:
        return f"FutureSlot: {slot}"
    return "" if one.call.fork(slot) == one.fork else f"slot {slot} is not of {one.fork}"
