"""Events of every topic as the API defines them, and what is made of them: other spellings, other members."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from vc_fallback.node.topic_events import TopicValue, parse_topic_event, read_topic_event

DEFINED: dict[str, dict[str, Any]] = {
    event["topic"]: event["data"]
    for event in map(
        json.loads, (Path(__file__).parent / "data" / "beacon-api" / "events.jsonl").read_text().splitlines()
    )
}
TOPICS = sorted(DEFINED)
VERSIONED = {topic for topic, data in DEFINED.items() if set(data) == {"version", "data"}}
FLAT = {topic: data["data"] if topic in VERSIONED else data for topic, data in DEFINED.items()}
HEADS = {"head", "head_v2", "chain_reorg"}

OPTIONAL = {
    "execution_optimistic",
    *("state", "epoch_transition", "payload_status"),
    *("previous_duty_dependent_root", "current_duty_dependent_root"),
    *("current_epoch_dependent_root", "next_epoch_dependent_root"),
    *("committee_bits", "old_head_state", "new_head_state"),
    *("prev_randao", "execution_payment", "blob_kzg_commitments"),
}
"""Members that may be missing; `state` only where it is a head's."""
UNREAD = {"finality_branch", "old_head_state", "new_head_state"}
"""Members of which nothing is checked."""


def told(topic: str, data: object) -> TopicValue:
    return parse_topic_event(topic, json.dumps(data))


def key(topic: str, data: object) -> bytes:
    return read_topic_event(topic, json.dumps(data)).key


def leaves(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the places of members that are no objects."""
    for name, inner in value.items():
        if isinstance(inner, dict) and name != "payload_attributes":
            yield from leaves(inner, (*place, name))
        else:
            yield (*place, name)


def changed(data: dict[str, Any], place: tuple[str, ...], *value: Any) -> dict[str, Any]:
    """Return a copy with another value at a place, or without it."""
    name, *rest = place
    if rest:
        return {**data, name: changed(data[name], tuple(rest), *value)}
    return {**data, name: value[0]} if value else {other: data[other] for other in data if other != name}


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy with every leaf changed."""
    if isinstance(value, dict):
        return {name: mapped(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [mapped(inner, change) for inner in value]
    return change(value)


def at(data: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        data = data[name]
    return data
