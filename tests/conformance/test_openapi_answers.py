"""Every answer that the Beacon API definition has an example of, read by the method that asks for it (Q1)."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from tests.conformance.openapi import JSON, SSZ, Answer, operations
from tests.conformance.openapi_calls import Row, defined, older, reply_of, ssz_reply
from tests.conformance.openapi_examples import example, examples
from tests.conformance.openapi_node import Exchange, Reply, exchange, json_reply
from tests.conformance.openapi_rows import plain_calls
from tests.conformance.openapi_values import NOT_KEPT, RENAMED, Pairs, distinct, pairs, serialised
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Sourced
from vc_fallback.node import failures
from vc_fallback.node.values.answers import Duties
from vc_fallback.node.values.duties import ProposerDuties
from vc_fallback.node.values.opaque import Opaque, ProducedBlock
from vc_fallback.node.values.publication import Publication

pytestmark = pytest.mark.anyio

_CALLS = plain_calls()


def _named(row: Row) -> str:
    return f"{row.operation}-{row.method}"


def _successes(row: Row) -> Mapping[int, Answer]:
    return {status: answer for status, answer in defined(row.operation).answers.items() if status < 300}


def _refusals(row: Row) -> Mapping[int, Answer]:
    return {status: answer for status, answer in defined(row.operation).answers.items() if status >= 400}


_READING = [row for row in _CALLS if JSON in _successes(row)[200].schemas]
# The older aggregates are asked for in JSON alone.
_SSZ = [row for row in _READING if SSZ in _successes(row)[200].schemas and row.operation != "getAggregatedAttestation"]


async def _read(node: Exchange, row: Row, reply: Reply) -> Sourced[object]:
    node.answer(row.replies(reply))
    return await row.call(node)


@pytest.mark.parametrize("row", _READING, ids=_named)
async def test_every_example_is_read(row: Row) -> None:
    """Those that are written out, and one of every branch, enumerated value and flag of the schemas."""
    answer = _successes(row)[200]
    async with exchange() as node:
        for value in [*answer.examples[JSON].values(), *row.examples(answer.schemas[JSON])]:
            _agree(row, value, (await _read(node, row, reply_of(answer, value))).value)


@pytest.mark.parametrize("row", _READING, ids=_named)
async def test_what_is_read_is_what_was_said(row: Row) -> None:
    """No member stands in another's place: each has a value of its own here."""
    answer = _successes(row)[200]
    value = distinct(older(row.operation, example(answer.schemas[JSON])))
    async with exchange() as node:
        found = (await _read(node, row, reply_of(answer, value))).value
    kept = _agree(row, value, found)
    if isinstance(found, Opaque | ProducedBlock):
        value = {name: member for name, member in value.items() if name != "data"}
    assert kept or row.opaque
    assert {pair for pair in pairs(value) if pair[0] not in NOT_KEPT.get(row.method, ())} <= kept


def _agree(row: Row, value: Any, found: object) -> Pairs:
    """Compare what was read with what was said; return what was kept of it, by the definition's names."""
    ours: Any = found
    if isinstance(found, Opaque | ProducedBlock):
        assert json.loads(found.body) == value["data"]
        assert found.content_type == JSON
        ours = {field.name: getattr(found, field.name) for field in fields(found)}
        ours = {name: member for name, member in ours.items() if name not in ("body", "content_type")}
        if "execution_payload_included" not in value:
            ours.pop("included", None)
        if "execution_payload_blinded" not in value:
            ours.pop("blinded", None)
    if isinstance(found, ProposerDuties):
        # The version is the route's.
        assert found.version == (2 if row.operation == "getProposerDutiesV2" else 1)
        ours = Duties(found.data, found.dependent_root, found.execution_optimistic)
    names = RENAMED.get(row.method, {})
    kept = {(names.get(name, name), member) for name, member in pairs(ours)}
    assert kept <= pairs(value)
    return kept


@pytest.mark.parametrize("row", _SSZ, ids=_named)
async def test_every_example_is_read_as_ssz(row: Row) -> None:
    """Containers of fixed size give the same value as their JSON; all else passes through with what its headers say."""
    answer = _successes(row)[200]
    async with exchange() as node:
        values = row.examples(answer.schemas[JSON])
        for value in [*values, distinct(values[0])]:
            body = serialised(row.operation, value)
            found = (await _read(node, row, ssz_reply(answer, value, body))).value
            assert [one.operation for one in node.node.asked].count(row.operation) == 1
            if isinstance(found, Opaque | ProducedBlock):
                assert found.body == body
                assert found.content_type == SSZ
                assert found.version == value.get("version")
            else:
                # With SSZ there is no place for whether it is optimistic, or finalized.
                same = (await _read(node, row, reply_of(answer, value))).value
                assert getattr(found, "data", found) == getattr(same, "data", same)


@pytest.mark.parametrize("row", _CALLS, ids=_named)
async def test_every_success_is_one(row: Row) -> None:
    """204 says that there is nothing to sign, 202 that a block was sent on and not imported, 206 that a node syncs."""
    async with exchange() as node:
        for status, answer in _successes(row).items():
            if JSON in answer.schemas:
                continue
            found = (await _read(node, row, Reply(status))).value
            if row.operation == "getHealth":
                assert found == status
            elif status == 204:
                assert found is None
            else:
                assert found in (None, Publication.BROADCAST if status == 202 else Publication.ACCEPTED)


_MEANINGS: Mapping[int, type[NodeError]] = {
    400: failures.BadRequest,
    404: failures.NotFound,
    406: failures.NotAcceptable,
    414: failures.SemanticError,
    415: failures.UnsupportedMediaType,
    500: failures.ServerError,
    501: failures.UnsupportedEndpoint,
    503: failures.NotReady,
}


@pytest.mark.parametrize("row", _CALLS, ids=_named)
async def test_every_refusal_has_its_failure(row: Row) -> None:
    """With the node, the endpoint's template, the status; and the items that were refused, where they are told."""
    operation = defined(row.operation)
    async with exchange() as node:
        for status, answer in _refusals(row).items():
            values: list[Any] = [{}]
            if answer.schemas:
                values = [*answer.examples[JSON].values(), *examples(answer.schemas[JSON])]
            for value in values:
                reply = json_reply(value, status=status) if value else Reply(status)
                with pytest.raises(NodeError) as caught:
                    await _read(node, row, reply)
                failure = caught.value
                assert type(failure) is _MEANINGS[status], f"{status}: {failure}"
                assert failure.node_id == "bn1"
                assert failure.status == status
                assert row.operation not in operations() or failure.endpoint == operation.template
                if isinstance(failure, failures.BadRequest):
                    told = value.get("failures", [])
                    items = [(item.index, item.message, item.known) for item in failure.failures]
                    assert items == [(item["index"], item["message"], False) for item in told]
