"""Events of every topic: what they say, whichever way a node wrote it (Q17)."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vc_fallback
from tests.topic_examples import (
    DEFINED,
    FLAT,
    HEADS,
    OPTIONAL,
    TOPICS,
    UNREAD,
    changed,
    key,
    leaves,
    mapped,
    told,
)
from vc_fallback.base.types import PayloadStatus
from vc_fallback.node.events import HeadEvent, MalformedEvent, ReorgEvent
from vc_fallback.node.meaning import MEANINGS
from vc_fallback.node.topic_events import TOPIC_VALUES, parse_topic_event, read_topic_event
from vc_fallback.node.values.attestation import AttestationData, Checkpoint, SingleAttestation
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

ONE = bytes.fromhex("cf8e0d4e9587369b2301d0790347320302cc0943d5a1884560367e8208d920f2")
BLOCK = bytes.fromhex("9a2fefd2fdb57f74993c7780ea5b9030d2897b615b89f808011ca5aebed54eaf")
STATE = bytes.fromhex("600e852a08c1200654ddf11025f1ceacb3c2e74bdd5c630cde0838b2591b69f9")
HASH = bytes.fromhex("1234567890abcdef" * 4)
VOTE = AttestationData(1, 1, ONE, Checkpoint(1, ONE), Checkpoint(1, ONE))  # type: ignore[arg-type]


def may_miss(topic: str, place: tuple[str, ...]) -> bool:
    name = place[-1]
    return name in UNREAD or (name in OPTIONAL and (name != "state" or topic in HEADS))


SAYS: dict[str, Callable[[Any], object]] = {
    "head": lambda v: type(v) is HeadEvent and (v.slot, v.block, v.payload_status) == (10, BLOCK, None),
    "head_v2": lambda v: (v.slot, v.block, v.payload_status) == (10, BLOCK, PayloadStatus.EMPTY),
    "chain_reorg": lambda v: type(v) is ReorgEvent and (v.slot, v.depth, v.epoch) == (200, 50, 2),
    "block": lambda v: v == BlockEvent(10, BLOCK, False),  # type: ignore[arg-type]
    "block_gossip": lambda v: v == BlockEvent(10, BLOCK, None),  # type: ignore[arg-type]
    "attestation": lambda v: v == AttestationEvent(b"\x01", VOTE, v.signature, bytes(7) + b"\x01"),
    "single_attestation": lambda v: v == SingleAttestation(1, 1, VOTE, v.signature),
    "voluntary_exit": lambda v: (
        type(v) is SignedVoluntaryExit and (v.message.epoch, v.message.validator_index) == (1, 1)
    ),
    "bls_to_execution_change": lambda v: type(v) is SignedBLSToExecutionChange and v.message.validator_index == 1,
    "proposer_slashing": lambda v: type(v) is ProposerSlashing and v.signed_header_1 == v.signed_header_2,
    "attester_slashing": lambda v: type(v) is AttesterSlashing and v.attestation_1.attesting_indices == [0, 1],
    "finalized_checkpoint": lambda v: v == FinalizedCheckpointEvent(BLOCK, STATE, 2, False),  # type: ignore[arg-type]
    "contribution_and_proof": lambda v: type(v) is SignedContributionAndProof and v.message.aggregator_index == 997,
    "light_client_finality_update": lambda v: (
        type(v) is LightClientFinalityUpdate and (v.version, v.finalized_header.beacon.slot) == ("altair", 1)
    ),
    "light_client_optimistic_update": lambda v: (
        type(v) is LightClientOptimisticUpdate and (v.version, v.signature_slot) == ("altair", 1)
    ),
    "payload_attributes": lambda v: (
        type(v) is PayloadAttributesEvent
        and (v.proposal_slot, v.parent_block_root, v.parent_block_number, v.version) == (10, ONE, None, "gloas")
        and v.payload_attributes["timestamp"] == "123456"
    ),
    "data_column_sidecar": lambda v: v == DataColumnSidecarEvent(ONE, 1, 1),  # type: ignore[arg-type]
    "execution_payload": lambda v: v == PayloadEvent(10, 42, HASH, BLOCK, False),  # type: ignore[arg-type]
    "execution_payload_gossip": lambda v: v == PayloadEvent(10, 42, HASH, BLOCK, None),  # type: ignore[arg-type]
    "execution_payload_available": lambda v: v == PayloadAvailableEvent(10, BLOCK),  # type: ignore[arg-type]
    "execution_payload_bid": lambda v: type(v) is SignedExecutionPayloadBid and v.message.value == 10**9,
    "payload_attestation_message": lambda v: type(v) is PayloadAttestationMessage and v.data.payload_present,
    "fast_confirmation": lambda v: v == FastConfirmationEvent(ONE, 1, 2),  # type: ignore[arg-type]
    "proposer_preferences": lambda v: type(v) is SignedProposerPreferences and v.message.proposal_slot == 32,
}


def test_the_document_names_the_value_of_every_topic() -> None:
    """Its table is that of the code."""
    document = (Path(__file__).parents[2] / "docs" / "topics.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", document, re.MULTILINE))
    assert told == {topic: kind.__name__ for topic, kind in TOPIC_VALUES.items()}
    assert all(getattr(vc_fallback, name) in TOPIC_VALUES.values() for name in told.values())


@pytest.mark.parametrize("topic", TOPICS)
def test_what_the_defined_example_says(topic: str) -> None:
    """Each of the topics has its value, with roots as bytes and numbers as numbers."""
    value = told(topic, DEFINED[topic])
    assert type(value) is TOPIC_VALUES[topic]
    assert SAYS[topic](value)


def test_every_topic_has_a_value_and_a_meaning() -> None:
    """The tables are of the same topics, which are all that the API has."""
    assert set(TOPIC_VALUES) == set(MEANINGS) == set(SAYS) == set(TOPICS)
    assert len(TOPICS) == 24


@pytest.mark.parametrize("topic", TOPICS)
def test_a_member_that_is_missing_is_named_or_unknown(topic: str) -> None:
    """What is needed costs that event, with its name and nothing else; what is optional is `None`."""
    for place in leaves(FLAT[topic]):
        data = changed(FLAT[topic], place)
        if may_miss(topic, place):
            assert type(told(topic, data)) is TOPIC_VALUES[topic]
        else:
            with pytest.raises(MalformedEvent) as caught:
                told(topic, data)
            assert caught.value.topic == topic
            missing = "malformed" if place[-1] == "payload_attributes" else "missing"
            assert str(caught.value) == f"{topic}: {'.'.join(place)} {missing}"


_WRONG: list[Any] = [1.5, -1, "-1", " 1", "01", "1.0", "1e0", 2**64, "0xs3cret", "s3cret", {}, ["s3cret"]]


@pytest.mark.parametrize("topic", TOPICS)
def test_a_member_of_another_type_is_named(topic: str) -> None:
    """Q17: floats, signs, blanks, leading zeros, wrong lengths, wrong kinds; the text repeats none of it (rule 11)."""
    for place in leaves(FLAT[topic]):
        if place[-1] in UNREAD or place[-1] == "payload_attributes":
            continue
        for wrong in _WRONG:
            data = changed(FLAT[topic], place, wrong)
            # Of heads what is wrong is only told of the defined form.
            wrapped = data if topic in ("head", "chain_reorg") else {"version": "gloas", "data": data}
            with pytest.raises(MalformedEvent) as caught:
                told(topic, wrapped)
            assert "s3cret" not in str(caught.value)
            assert place[-1] in str(caught.value)
            assert caught.value.__cause__ is None


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("data", ["", "null", "[]", '"x"', "5", "{}", '{"data":{}}', "[" * 10**5, '{"a":' * 10**5])
def test_data_that_is_no_event(topic: str, data: str) -> None:
    """However deep or broken, it costs that event and says so."""
    with pytest.raises(MalformedEvent):
        parse_topic_event(topic, data)


def test_payload_attributes_of_older_nodes() -> None:
    """Case 9: a capital `Data`, a suffix of the version, the number of the parent as text; absent from Gloas on."""
    inner = changed(FLAT["payload_attributes"], ("payload_attributes",))
    old = {"version": "capella", "Data": {**inner, "parent_block_number": "9", "payload_attributes_v2": {"a": "1"}}}
    value = told("payload_attributes", old)
    assert isinstance(value, PayloadAttributesEvent)
    assert (value.version, value.parent_block_number, value.payload_attributes) == ("capella", 9, {"a": "1"})
    assert key("payload_attributes", old) == key("payload_attributes", DEFINED["payload_attributes"])
    # After a missed slot the same parent comes again, and that is news.
    later = {**FLAT["payload_attributes"], "proposal_slot": "11"}
    assert key("payload_attributes", later) != key("payload_attributes", old)
    with pytest.raises(MalformedEvent, match="parent_block_number malformed"):
        told("payload_attributes", {**FLAT["payload_attributes"], "parent_block_number": "0x1"})


def test_single_attestations_on_the_topic_of_aggregates() -> None:
    """Grandine and Caplin sent them there: each is what it is, flat or wrapped, and known again."""
    single = FLAT["single_attestation"]
    for data in (single, {"version": "electra", "data": single}):
        assert told("attestation", data) == told("single_attestation", single)
        assert key("attestation", data) == key("attestation", single) != key("attestation", FLAT["attestation"])
    with pytest.raises(MalformedEvent, match="attestation: signature missing"):
        told("attestation", changed(single, ("signature",)))


def test_bids_of_devnets() -> None:
    """Case 10: bare or wrapped, members that are not known, and some of the present ones missing."""
    message = {
        name: value
        for name, value in FLAT["execution_payload_bid"]["message"].items()
        if name not in ("prev_randao", "execution_payment", "blob_kzg_commitments")
    }
    bid = {"message": {**message, "execution_requests_root": "0x00"}, "signature": "0x" + "11" * 96}
    value = told("execution_payload_bid", bid)
    assert isinstance(value, SignedExecutionPayloadBid)
    assert (value.message.blob_kzg_commitments, value.message.gas_limit) == (None, 30_000_000)
    assert told("execution_payload_bid", {"version": "gloas", "data": bid}) == value


def test_a_whole_block_in_place_of_a_block_event() -> None:
    """Case 16: it costs that event and names what is missing."""
    block = {"message": {"slot": "10", "body": {}}, "signature": "0x" + "aa" * 96}
    with pytest.raises(MalformedEvent, match="block: slot missing, block missing"):
        told("block", block)
    # A root of nothing, and a state of no block, are well formed: what they are worth is not seen here.
    assert told("block", {"slot": "4346322", "block": "0x" + "00" * 32}) == BlockEvent(4346322, bytes(32))  # type: ignore[arg-type]


def test_the_whole_update_of_a_light_client_is_kept_as_it_was_written() -> None:
    """Of an update the beacon header is read; what its fork has besides stays in `body`, byte by byte."""
    topic = "light_client_finality_update"
    inner = json.dumps(FLAT[topic])
    for data in (inner, f'{{"version" : "deneb", "data":{inner}}}', f'{{"Data":{inner},"version":"DENEB"}}'):
        value = parse_topic_event(topic, data)
        assert isinstance(value, LightClientFinalityUpdate)
        assert value.body == inner.encode()
        assert value.version == (None if data == inner else "deneb")
        assert "finality_branch" not in repr(value)
    with pytest.raises(MalformedEvent, match="not a JSON object"):
        parse_topic_event(topic, inner.replace('"finality_branch": [', '"finality_branch": [NaN, '))
    # Members of these names in the update itself are none of ours.
    value = told(topic, {"version": "x y", "data": {**FLAT[topic], "body": "0x", "version": 5}})
    assert isinstance(value, LightClientFinalityUpdate)
    assert value.version is None


def test_a_slashing_of_everybody() -> None:
    """Case 14: hundreds of kilobytes on one line are read; numbers beyond 2^63 and bare ones too, wrong ones not."""
    many = [str(index) for index in range(20_000)]
    data = changed(FLAT["attester_slashing"], ("attestation_2", "attesting_indices"), many)
    value = told("attester_slashing", data)
    assert isinstance(value, AttesterSlashing)
    assert value.attestation_2.attesting_indices == [*range(20_000)]
    place = ("attestation_1", "attesting_indices")
    for right in (list[int | str]([2**64 - 1]), list[int | str]([str(2**64 - 1), 0, "7"]), list[int | str]()):
        value = told("attester_slashing", changed(data, place, right))
        assert isinstance(value, AttesterSlashing)
        assert value.attestation_1.attesting_indices == [int(index) for index in right]
    texts = ("1.0", "1e0", "-0", "01", "", str(2**64))
    for wrong in (*([text] for text in texts), [None], [True], [1.0], [["1"]], "12", {"1": "2"}):
        with pytest.raises(MalformedEvent, match=r"attestation_1\.attesting_indices malformed"):
            told("attester_slashing", changed(data, place, wrong))


def test_an_error_names_some_members_and_counts_the_others() -> None:
    """Rule 6: the text is bounded by what the API defines, and so fits a line of a log."""
    with pytest.raises(MalformedEvent) as caught:
        told("proposer_slashing", mapped(FLAT["proposer_slashing"], lambda _: "s3cret"))
    assert str(caught.value).startswith("proposer_slashing: signed_header_1.message.slot malformed, ")
    assert str(caught.value).endswith(", 4 more")
    assert str(caught.value).count("malformed") == 8


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ('{"a":[1,null],"b":18446744073709551616}', {"a": [1, None], "b": 2**64}),
        ('"text"', "text"),
        ("5", 5),
        ("not JSON", "not JSON"),
        ("", ""),
        ("[" * 10**5, "[" * 10**5),
    ],
)
def test_a_topic_that_is_not_known_passes_as_it_is(data: str, value: object) -> None:
    """T1: its JSON, or its text where it is none; it is never an error."""
    assert parse_topic_event("weather_forecast", data) == value
    assert read_topic_event("weather_forecast", data).value == value


def test_a_large_event_that_is_not_known_is_read_when_it_is_wanted() -> None:
    """Rule 4: to read megabytes of JSON takes seconds, in which no head comes. Copies are known by their text."""
    data = json.dumps({"list": [str(number) for number in range(20_000)]})
    first, second = read_topic_event("weird", data), read_topic_event("weird", data)
    assert first.key == second.key
    assert read_topic_event("weird", data + " ").key != first.key
    assert first.value == json.loads(data)
    assert read_topic_event("weird", data[:-1]).value == data[:-1]


@pytest.mark.parametrize("topic", sorted(TOPIC_VALUES.keys() - {"attester_slashing"}))
def test_an_event_that_cannot_be_so_large_is_malformed(topic: str) -> None:
    """Rule 4: it is not even looked at."""
    data = json.dumps({"slot": "1", "junk": "x" * 2 * 1024 * 1024})
    with pytest.raises(MalformedEvent, match="larger"):
        read_topic_event(topic, data)
