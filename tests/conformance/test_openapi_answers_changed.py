"""Answers that differ from the definition's examples in one thing: more is ignored, less is `Malformed` (Q17).

Here the event loop cannot matter, so these run on one.
"""

import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import pytest

from tests.conformance.openapi import JSON, Schema, problems
from tests.conformance.openapi_calls import MEMBERS, Row, defined, headers_of, older, ssz_reply, success
from tests.conformance.openapi_examples import OTHERS, example, extended, places, replaced, without
from tests.conformance.openapi_node import NO_ENDPOINT, Exchange, Reply, exchange
from tests.conformance.openapi_rows import plain_calls
from tests.conformance.openapi_values import HEADER, serialised
from vc_fallback.base.errors import NodeError
from vc_fallback.node.failures import Malformed

pytestmark = pytest.mark.anyio

_Path = tuple[str | int, ...]

_SELDOM = {"execution_optimistic", "finalized"}
"""Older nodes do not send them."""

_OPTIONAL: Mapping[str, AbstractSet[str]] = {
    # Added to the API after its first release.
    "syncing": {"is_optimistic", "el_offline"},
    "genesis": {"genesis_fork_version"},
    "client_versions": {"execution_client"},
    "peer_count": {"connecting", "disconnected", "disconnecting"},
    # Where a value is not known, the block is still worth having.
    "produce_block": {"consensus_block_value", "execution_payload_value"},
}
"""By method: other members that may lack, or be `null`."""

_UNREAD: Mapping[str, AbstractSet[str]] = {
    "head": HEADER,
    "network_identity": {"seq_number", "attnets", "syncnets", "custody_group_count", "metadata"},
    "payload_attestation_data": {"version"},
}
"""By method: members that nobody looks at, but that they are there."""

_NEEDED_ALL_THE_SAME = {"metadata"}

_ANY_TEXT: Mapping[str, AbstractSet[str]] = {
    "client_versions": {"code", "commit"},
    # What a later version has in the place of these is passed on.
    "validators": {"status"},
    "validator": {"status"},
}
_MAY_BE_EMPTY: Mapping[str, AbstractSet[str]] = {"sync_committee_duties": {"validator_sync_committee_indices"}}
"""By method: members that the definition restricts more than there is use in."""

_READING = [row for row in plain_calls() if JSON in success(defined(row.operation)).schemas]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _named(row: Row) -> str:
    return f"{row.operation}-{row.method}"


class Reader:
    """Has one call answered with many bodies, each with the headers of the plain answer, or without any."""

    def __init__(self, node: Exchange, row: Row, *, headers: bool = True) -> None:
        answer = success(defined(row.operation))
        self.schema: Schema = answer.schemas[JSON]
        self.plain: Any = older(row.operation, example(self.schema))
        self._node = node
        self._row = row
        self._headers = headers_of(answer, self.plain) if headers else {}

    async def read(self, body: bytes) -> Any:
        self._node.answer(self._row.replies(Reply(200, body, JSON, self._headers)))
        return (await self._row.call(self._node)).value

    async def reads(self, value: Any) -> bool:
        """Whether a value is read; else it must be `Malformed`."""
        try:
            await self.read(json.dumps(value).encode())
        except Malformed:
            return False
        return True

    def places(self) -> Iterator[tuple[_Path, bool]]:
        """Yield the members that are looked at: of opaque values those around them."""
        for path, required in places(self.schema, self.plain):
            if not (self._row.opaque and len(path) > 1):
                yield path, required


@pytest.mark.parametrize("row", _READING, ids=_named)
async def test_members_that_are_not_known_are_ignored_at_every_level(row: Row) -> None:
    """The definition adds members without a new version."""
    async with exchange() as node:
        reader = Reader(node, row)
        more = extended(reader.schema, reader.plain)
        assert more != reader.plain
        plain = await reader.read(json.dumps(reader.plain).encode())
        found = await reader.read(json.dumps(more).encode())
    if row.method == "network_identity":
        # What is in it is for who looks at it; it stays as it is.
        plain, found = replace(plain, metadata={}), replace(found, metadata={})
    if row.opaque:
        assert json.loads(found.body) == more["data"]
        assert repr(found).split(",")[0] == repr(plain).split(",")[0]
    else:
        assert found == plain


@pytest.mark.parametrize("row", _READING, ids=_named)
async def test_an_answer_that_lacks_a_member_is_malformed(row: Row) -> None:
    """Where a header says the same, and where the table says that nobody needs it, it is not."""
    said = {member for header, member in MEMBERS.items() if header in success(defined(row.operation)).headers}
    for headers, spared in ((False, set[str]()), (True, said)):
        read: set[str] = set()
        async with exchange() as node:
            reader = Reader(node, row, headers=headers)
            members = {path: required for path, required in reader.places() if path[-1] != 0}
            for path in members:
                if await reader.reads(without(reader.plain, path)):
                    read.add(str(path[-1]))
        spared = spared | {str(path[-1]) for path, required in members.items() if not required} | _SELDOM
        spared = spared | _OPTIONAL.get(row.method, set()) | _UNREAD.get(row.method, set()) - _NEEDED_ALL_THE_SAME
        assert read == spared & {str(path[-1]) for path in members}


@pytest.mark.parametrize("row", _READING, ids=_named)
async def test_a_member_of_another_kind_is_malformed(row: Row) -> None:
    """Numbers that are no numbers (Q17), texts, lists and objects in each other's place, `null`."""
    read: list[tuple[str, Any]] = []
    async with exchange() as node:
        reader = Reader(node, row, headers=False)
        for path, _ in reader.places():
            for other in OTHERS:
                changed = replaced(reader.plain, path, other)
                if await reader.reads(changed) and problems(reader.schema, changed):
                    read.append((str(path[-1]), other))
    if not row.opaque:
        assert [(name, other) for name, other in read if not _taken(row.method, name, other)] == []


def _taken(method: str, name: str, other: Any) -> bool:
    if name in _UNREAD.get(method, ()):
        return True
    if isinstance(other, str):
        return name in _ANY_TEXT.get(method, ())
    if other == []:
        return name in _MAY_BE_EMPTY.get(method, ())
    return other is None and name in {*_OPTIONAL.get(method, ()), *_SELDOM}


@pytest.mark.parametrize("row", _READING, ids=_named)
async def test_what_is_no_answer_is_malformed(row: Row) -> None:
    """Cut short, of another kind, too deep, no JSON at all."""
    async with exchange() as node:
        reader = Reader(node, row)
        text = json.dumps(reader.plain).encode()
        bodies = [text[: len(text) * part // 16] for part in range(16)]
        bodies += [
            b"null",
            b"[]",
            b"{}",
            b'""',
            b"0",
            b"true",
            b"[" * 100_000,
            b'{"data":' * 50_000,
            text + b"}",
            text + text,
        ]
        bodies += [b"\xff\xfe" + text, b"\x00" * 64, b"<html><body>OK</body></html>", text.replace(b'"', b"'")]
        bodies += [b'{"data":null}', b'{"data":\xff}', b'{"data":"\xed\xa0\x80"}', text.replace(b":", b"=")]
        for body in bodies:
            with pytest.raises(Malformed):
                await reader.read(body)


_FIXED = {"attestation_data", "payload_attestation_data"}


@pytest.mark.parametrize("row", [row for row in _READING if row.method in _FIXED], ids=_named)
async def test_ssz_of_another_length_is_malformed(row: Row) -> None:
    answer = success(defined(row.operation))
    value = example(answer.schemas[JSON])
    body = serialised(row.operation, value)
    async with exchange() as node:
        for other in (b"", body[:-1], body + b"\x00", body + body, body[:1]):
            node.answer(row.replies(ssz_reply(answer, value, other)))
            with pytest.raises(Malformed):
                await row.call(node)


@pytest.mark.parametrize("row", plain_calls(), ids=_named)
async def test_every_other_status_has_a_failure(row: Row) -> None:
    """Also those that the definition does not list, and words that are no error body."""
    async with exchange() as node:
        for status in (201, 299, 300, 304, 401, 403, 404, 405, 413, 418, 422, 429, 499, 502, 504, 530, 599):
            if status in defined(row.operation).answers:
                continue
            for body in (b"", b"<html>", b"{}", b'{"code":null,"message":[]}', b"[" * 20_000):
                node.answer(row.replies(Reply(status, b"" if status == 304 else body, JSON)))
                with pytest.raises(NodeError) as caught:
                    await row.call(node)
                # Where the node does not have it, the older route is tried, which it does not have either.
                assert caught.value.status in (status, NO_ENDPOINT)
