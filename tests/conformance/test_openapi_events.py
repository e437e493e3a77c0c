"""Every event example of the Beacon API definition, as bytes of a stream through to what it means (H4, Q17)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.openapi import event_examples, operations
from tests.conformance.openapi_examples import OTHERS
from vc_fallback.node.events import HeadEvent, HeadTopicEvent, MalformedEvent, ReorgEvent, parse_event
from vc_fallback.node.topic_events import TOPIC_VALUES, parse_topic_event, read_topic_event
from vc_fallback.wire.sse import SSEDecoder

_STREAM = operations()["eventstream"].answers[200].examples["text/event-stream"]
_TOPICS = operations()["eventstream"].placed("query")["topics"].schema["items"]["enum"]

KNOWN: dict[str, type[HeadTopicEvent]] = {"head": HeadEvent, "head_v2": HeadEvent, "chain_reorg": ReorgEvent}
"""Topics that head streams read; every other one passes them by (rule 4)."""

NEEDED = {
    "head": {"slot", "block"},
    "head_v2": {"slot", "block"},
    "chain_reorg": {"slot", "depth", "old_head_block", "new_head_block", "epoch"},
}
"""Members without which an event is malformed."""


def _decoded(text: str) -> tuple[str, str]:
    (event,) = SSEDecoder().feed(text.encode() + b"\n\n")
    return event.event, event.data


def test_there_is_an_example_of_every_topic() -> None:
    """The definition's own, and the file of their data, hold the same."""
    assert set(_STREAM) == set(_TOPICS) == set(event_examples())
    for topic, text in _STREAM.items():
        assert _decoded(text)[0] == topic
        assert json.loads(_decoded(text)[1]) == json.loads(event_examples()[topic])


@pytest.mark.parametrize("topic", _TOPICS)
def test_an_example_is_parsed_or_passes_by(topic: str) -> None:
    kind = KNOWN.get(topic)
    for data in (_decoded(_STREAM[topic])[1], event_examples()[topic]):
        found = parse_event(topic, data)
        assert found is None if kind is None else type(found) is kind


@pytest.mark.parametrize("topic", _TOPICS)
def test_an_example_of_every_topic_is_read_and_known_again(topic: str) -> None:
    """T1, T6: by the value of its topic, and by one key in either file's spelling, wrapped or not."""
    assert set(TOPIC_VALUES) == set(_TOPICS)
    value = json.loads(event_examples()[topic])
    inner = value["data"] if set(value) == {"version", "data"} else value
    written = [_decoded(_STREAM[topic])[1], *map(json.dumps, (value, inner, {"version": "gloas", "data": inner}))]
    found = [read_topic_event(topic, data) for data in written]
    assert {type(reading.value) for reading in found} == {TOPIC_VALUES[topic]}
    assert len({reading.key for reading in found}) == 1


@pytest.mark.parametrize("topic", sorted(set(_TOPICS) - set(KNOWN)))
def test_a_member_of_another_kind_is_malformed_in_every_topic(topic: str) -> None:
    """Q17, and only what may be missing or left open may be `null`, empty, or anything."""
    value = json.loads(event_examples()[topic])
    wrapped = set(value) == {"version", "data"}
    for place in _leaves(value["data"] if wrapped else value):
        for other in OTHERS:
            inner = _put(value["data"] if wrapped else value, place, other)
            data = json.dumps({**value, "data": inner} if wrapped else inner)
            if _fits(place[-1], other):
                assert type(parse_topic_event(topic, data)) is TOPIC_VALUES[topic]
            else:
                with pytest.raises(MalformedEvent, match=place[-1]):
                    parse_topic_event(topic, data)


_MAY_BE_NULL = {"execution_optimistic", "committee_bits", "prev_randao", "execution_payment", "blob_kzg_commitments"}
_FLAGS = {"execution_optimistic", "payload_present", "blob_data_available"}
_LISTS = {"attesting_indices", "blob_kzg_commitments"}


def _fits(name: str, other: object) -> bool:
    if name == "finality_branch":
        return True  # what an update holds besides its headers is not read
    if name == "payload_attributes":
        return isinstance(other, dict)
    return (
        (other is None and name in _MAY_BE_NULL)
        or (other is True and name in _FLAGS)
        or (other == [] and name in _LISTS)
    )


def _leaves(value: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, inner in value.items():
        if isinstance(inner, dict) and name != "payload_attributes":
            yield from ((name, *place) for place in _leaves(inner))
        else:
            yield (name,)


def _put(value: dict[str, Any], place: tuple[str, ...], other: object) -> dict[str, Any]:
    name, *rest = place
    return {**value, name: _put(value[name], tuple(rest), other) if rest else other}


@pytest.mark.parametrize("topic", sorted(KNOWN))
def test_members_of_an_example_are_where_they_belong(topic: str) -> None:
    members = _members(topic)
    found = parse_event(topic, event_examples()[topic])
    assert isinstance(found, HeadEvent | ReorgEvent)
    assert found.slot == int(members["slot"])
    if isinstance(found, ReorgEvent):
        assert (found.depth, found.epoch) == (int(members["depth"]), int(members["epoch"]))
        assert [f"0x{root.hex()}" for root in (found.old_head_block, found.new_head_block)] == [
            members["old_head_block"],
            members["new_head_block"],
        ]
    else:
        assert f"0x{found.block.hex()}" == members["block"]
        assert found.payload_status == members.get("payload_status")
        assert found.current_epoch_dependent_root is not None
        assert f"0x{found.current_epoch_dependent_root.hex()}" == members.get(
            "current_epoch_dependent_root", members.get("previous_duty_dependent_root")
        )
    assert found.optimistic == members["execution_optimistic"]


@pytest.mark.parametrize("topic", sorted(KNOWN))
def test_members_that_are_not_known_are_ignored(topic: str) -> None:
    value = json.loads(event_examples()[topic])
    plain = parse_event(topic, json.dumps(value))
    inner = _inner(topic, value)
    more = {"unknown_before": {"slot": [1]}, **inner, "unknown_after": "text"}
    wrapped = {"unknown": 1, **value, "data": more} if inner is not value else more
    assert parse_event(topic, json.dumps(wrapped)) == plain


@pytest.mark.parametrize("topic", sorted(KNOWN))
def test_an_event_that_lacks_a_member_is_malformed(topic: str) -> None:
    for name in _members(topic):
        if name in NEEDED[topic]:
            with pytest.raises(MalformedEvent, match=name):
                parse_event(topic, _changed(topic, name, leave=False))
        else:
            assert parse_event(topic, _changed(topic, name, leave=False)) is not None


@pytest.mark.parametrize("topic", sorted(KNOWN))
def test_a_member_of_another_kind_is_malformed(topic: str) -> None:
    """Q17; of roots that need not be known, nothing said and `null` are unknown."""
    unknown = (None, "", "0x")
    for name in _members(topic):
        for other in OTHERS:
            data = _changed(topic, name, other)
            fits = other is True if name in ("execution_optimistic", "epoch_transition") else name in _UNREAD
            if fits or (name not in NEEDED[topic] and name != "epoch_transition" and other in unknown):
                try:
                    parse_event(topic, data)
                except MalformedEvent:
                    assert other in ("", "0x")
                    assert not name.endswith(("root", "state"))
            else:
                with pytest.raises(MalformedEvent, match=name):
                    parse_event(topic, data)


_UNREAD = {"old_head_state", "new_head_state"}


def _inner(topic: str, value: dict[str, Any]) -> dict[str, Any]:
    inner: dict[str, Any] = value["data"] if topic == "head_v2" else value
    return inner


def _members(topic: str) -> dict[str, Any]:
    return _inner(topic, json.loads(event_examples()[topic]))


def _changed(topic: str, name: str, other: object = None, *, leave: bool = True) -> str:
    value = json.loads(event_examples()[topic])
    inner = _inner(topic, value)
    if leave:
        inner[name] = other
    else:
        del inner[name]
    return json.dumps(value)
