"""Events of every topic, parsed into what they mean; which spelling a node used does not show.

Each topic is read flat and with `{"version", "data"}` around it, the defined shape first: nodes have sent either of all
(cases 9, 10). Members that are not known are ignored, optional ones that are missing are `None`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec
from pydantic import ValidationError
from pydantic_core import from_json

from vc_fallback.base.errors import field_path
from vc_fallback.node.events import HeadEvent, MalformedEvent, ReorgEvent, parse_event
from vc_fallback.node.meaning import MEANINGS, pack
from vc_fallback.node.values.adapters import adapter
from vc_fallback.node.values.attestation import SingleAttestation
from vc_fallback.node.values.events import (
    AttestationEvent,
    AttesterSlashing,
    BlockEvent,
    DataColumnSidecarEvent,
    FastConfirmationEvent,
    FinalizedCheckpointEvent,
    LightClientFinalityUpdate,
    LightClientOptimisticUpdate,
    PayloadAttributesEvent,
    PayloadAvailableEvent,
    PayloadEvent,
    SignedExecutionPayloadBid,
)
from vc_fallback.node.values.operations import ProposerSlashing, SignedBLSToExecutionChange, SignedVoluntaryExit
from vc_fallback.node.values.payload_attestation import PayloadAttestationMessage
from vc_fallback.node.values.preparations import SignedProposerPreferences
from vc_fallback.node.values.sync_committee import SignedContributionAndProof
from vc_fallback.node.votes import read_vote

TopicValue = (
    HeadEvent
    | ReorgEvent
    | BlockEvent
    | AttestationEvent
    | SingleAttestation
    | SignedVoluntaryExit
    | SignedBLSToExecutionChange
    | ProposerSlashing
    | AttesterSlashing
    | FinalizedCheckpointEvent
    | SignedContributionAndProof
    | LightClientFinalityUpdate
    | LightClientOptimisticUpdate
    | PayloadAttributesEvent
    | DataColumnSidecarEvent
    | PayloadEvent
    | PayloadAvailableEvent
    | SignedExecutionPayloadBid
    | PayloadAttestationMessage
    | FastConfirmationEvent
    | SignedProposerPreferences
    | Mapping[str, Any]
    | list[Any]
    | str
    | int
    | float
    | None
)
"""What an event says. Of a topic that is not known here it is the JSON as it is, or the text where it is none."""

TOPIC_VALUES: Mapping[str, type] = {
    "head": HeadEvent,
    "head_v2": HeadEvent,
    "block": BlockEvent,
    "block_gossip": BlockEvent,
    "attestation": AttestationEvent,
    "single_attestation": SingleAttestation,
    "voluntary_exit": SignedVoluntaryExit,
    "bls_to_execution_change": SignedBLSToExecutionChange,
    "proposer_slashing": ProposerSlashing,
    "attester_slashing": AttesterSlashing,
    "finalized_checkpoint": FinalizedCheckpointEvent,
    "chain_reorg": ReorgEvent,
    "contribution_and_proof": SignedContributionAndProof,
    "light_client_finality_update": LightClientFinalityUpdate,
    "light_client_optimistic_update": LightClientOptimisticUpdate,
    "payload_attributes": PayloadAttributesEvent,
    "data_column_sidecar": DataColumnSidecarEvent,
    "execution_payload": PayloadEvent,
    "execution_payload_gossip": PayloadEvent,
    "execution_payload_available": PayloadAvailableEvent,
    "execution_payload_bid": SignedExecutionPayloadBid,
    "payload_attestation_message": PayloadAttestationMessage,
    "fast_confirmation": FastConfirmationEvent,
    "proposer_preferences": SignedProposerPreferences,
}
"""The type of what an event says, by topic: all topics of the Beacon API."""

_HEAD_TOPICS = frozenset({"head", "head_v2", "chain_reorg"})
_VERSIONED = frozenset(
    {
        "light_client_finality_update",
        "light_client_optimistic_update",
        "payload_attributes",
        "execution_payload_bid",
        "payload_attestation_message",
        "proposer_preferences",
    }
)
"""Topics whose definition has a wrapper."""
_WRAPPERS = ("data", "Data")
"""The second is Prysm's of 2023, on `payload_attributes` (case 9)."""
_ATTRIBUTES = ("payload_attributes", "payload_attributes_v1", "payload_attributes_v2", "payload_attributes_v3")
_LARGE = 64 * 1024
"""Characters of an event that is not known here from which on copies are known by their text."""
_SMALL = 2 * 1024 * 1024
"""Characters beyond which no event is but those whose lists may be that long."""
_MAY_BE_LARGE = frozenset({"attester_slashing"})
_TOLD = 8
"""Members at most that an error names."""


class _Shape(NamedTuple):
    """One way to read an event."""

    place: str
    """What is before the names of members: empty or `data.`."""
    members: dict[str, Any]


class TopicReading:
    """An event that is right, with the key by which it is known from any node.

    :ivar topic: as the node named it.
    :ivar key: the meaning of it in bytes (see `vc_fallback.node.meaning`); equal for copies, and only within a topic.
    """

    __slots__ = ("_make", "_value", "key", "topic")

    def __init__(
        self, topic: str, key: bytes, value: TopicValue = None, make: Callable[[], TopicValue] | None = None
    ) -> None:
        """Take the value, or what makes it when it is asked for."""
        self.topic = topic
        self.key = key
        self._value = value
        self._make = make

    @property
    def value(self) -> TopicValue:
        """What it says."""
        if self._make is not None:
            self._value, self._make = self._make(), None
        return self._value


def parse_topic_event(topic: str, data: str) -> TopicValue:
    """Parse one event of any topic: its type and its data, as the decoder gives them.

    :raises MalformedEvent: if the topic is known and the data does not follow the Beacon API. Of a topic that is not
        known nothing is wrong.
    """
    if topic in _HEAD_TOPICS:
        return parse_event(topic, data)  # type: ignore[return-value]  # of these topics it is no stream error
    kind: Any = TOPIC_VALUES.get(topic)
    return _unknown(data) if kind is None else _parse(topic, kind, data)


def read_topic_event(topic: str, data: str) -> TopicReading:
    """Parse one event of any topic, and say by what it is known.

    :raises MalformedEvent: as :func:`parse_topic_event`.
    """
    vote = read_vote(topic, data)
    if vote is not None:
        return TopicReading(topic, vote.key, make=vote.make)
    if len(data) > _LARGE and topic not in TOPIC_VALUES:
        # To read it takes a tenth of a second and more, in which no head is read: who wants it does that, when it does.
        return TopicReading(topic, data.encode("utf-8", "surrogatepass"), make=partial(_unknown, data))
    if len(data) > _SMALL and topic not in _MAY_BE_LARGE:
        raise MalformedEvent(topic, "much larger than it can be")
    value = parse_topic_event(topic, data)
    meaning = MEANINGS.get(topic)
    return TopicReading(topic, _spelling(value) if meaning is None else pack(meaning(value)), value)


def _unknown(data: str) -> TopicValue:
    try:
        return from_json(data, allow_inf_nan=False)  # type: ignore[no-any-return]
    except ValueError:
        return data


def _spelling(value: TopicValue) -> bytes:
    """Write what is not known here so that white space and the order of members do not count."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _parse(topic: str, kind: Any, data: str) -> TopicValue:  # noqa: ANN401 - a type
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise MalformedEvent(topic, "not a JSON object")
    problems: list[str] | None = None
    least = 0
    for shape in _shapes(topic, value):
        # Grandine and Caplin had single attestations on either topic (grandine#687, erigon#18142).
        single = kind is AttestationEvent and "attester_index" in shape.members
        check = adapter(SingleAttestation if single else kind).validate_python
        try:
            return check(_completed(topic, shape, value, data))  # type: ignore[no-any-return]
        except ValueError as error:
            # What one reader of JSON takes, the other need not.
            found = _problems(error) if isinstance(error, ValidationError) else ["malformed"]
        # What is told is what is wrong with the shape that the event has: with what is around it nearly all is missing.
        lacking = sum(what.endswith(" missing") and "." not in what for what in found)
        if problems is None or lacking < least:
            problems, least = [shape.place + what for what in found], lacking
    told = problems or []
    more = f", {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    raise MalformedEvent(topic, ", ".join(told[:_TOLD]) + more)


def _shapes(topic: str, value: dict[str, Any]) -> Iterator[_Shape]:
    flat = _Shape("", value)
    if topic not in _VERSIONED:
        yield flat
    for name in _WRAPPERS:
        inner = value.get(name)
        if isinstance(inner, dict):
            yield _Shape(f"{name}.", inner)
    if topic in _VERSIONED:
        yield flat


def _completed(topic: str, shape: _Shape, value: dict[str, Any], data: str) -> dict[str, Any]:
    """Add to members what is told beside them."""
    members = shape.members
    if topic == "payload_attributes":
        attributes = next((members[name] for name in _ATTRIBUTES if name in members), None)
        return {**members, "payload_attributes": attributes, "version": _version(value)}
    if topic.startswith("light_client_"):
        return {**members, "version": _version(value), "body": _raw(data, shape.place[:-1])}
    return members


def _version(value: dict[str, Any]) -> str | None:
    version = value.get("version")
    return version.lower() if isinstance(version, str) and version.isidentifier() and len(version) <= 64 else None


def _raw(data: str, name: str) -> bytes:
    """Return a member as it is written, or the whole."""
    whole = data.encode()
    return bytes(msgspec.json.decode(whole, type=dict[str, msgspec.Raw])[name]) if name else whole


def _problems(error: ValidationError) -> list[str]:
    """Name the members that are missing or malformed, each once, and repeat nothing of them (rule 11)."""
    found: dict[str, str] = {}
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        # Behind the members come the names of checks.
        place = [part for part in problem["loc"] if isinstance(part, int) or part.isidentifier()]
        found.setdefault(field_path(place), "missing" if problem["type"] == "missing" else "malformed")
    return [f"{place} {what}" for place, what in found.items()]
