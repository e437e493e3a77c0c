"""By what copies of events of every topic are known (T6), and that both readers of votes agree."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topic_examples import DEFINED, FLAT, HEADS, TOPICS, UNREAD, VERSIONED, at, changed, key, leaves, mapped, told
from vc_fallback.node import topic_events
from vc_fallback.node.events import MalformedEvent
from vc_fallback.node.meaning import MEANINGS, pack
from vc_fallback.node.topic_events import TOPIC_VALUES, TopicReading, parse_topic_event, read_topic_event
from vc_fallback.node.values.attestation import SingleAttestation
from vc_fallback.node.votes import read_vote


@pytest.mark.parametrize("topic", TOPICS)
def test_one_event_is_one_whatever_its_spelling(topic: str) -> None:
    """Cases 9, 10, 67: flat or wrapped, members in any order, more of them, numbers bare, hex of either case."""
    plain = FLAT[topic]
    version = {"version": "gloas" if topic == "payload_attributes" else "altair"} if topic in VERSIONED else {}
    spellings = [
        plain,
        {"data": plain},
        {"version": "gloas", "data": plain},
        {"data": plain, "version": "Gloas", "execution_optimistic": 7, "finalized": None},
        {"unknown": {"slot": [1]}, **plain, "more": "text"},
        dict(reversed(plain.items())),
        mapped(plain, lambda leaf: int(leaf) if isinstance(leaf, str) and leaf.isdecimal() else leaf),
        mapped(plain, lambda leaf: "0x" + leaf[2:].upper() if isinstance(leaf, str) and leaf[:2] == "0x" else leaf),
        *([] if topic in HEADS else [{"version": "gloas", "Data": plain}]),
    ]
    for written in spellings:
        reading = read_topic_event(topic, json.dumps(written))
        assert reading.topic == topic
        assert reading.key == key(topic, DEFINED[topic])
        assert type(reading.value) is TOPIC_VALUES[topic]
    if not version and topic not in HEADS:
        assert all(told(topic, written) == told(topic, plain) for written in spellings)
    for indent in (None, 2):
        assert read_topic_event(topic, json.dumps(plain, indent=indent)).key == key(topic, plain)


MATTERS = {
    "head": {"slot", "block"},
    "head_v2": {"slot", "block", "payload_status"},
    "chain_reorg": {"slot", "old_head_block", "new_head_block"},
    "block": {"slot", "block"},
    "block_gossip": {"slot", "block"},
    "finalized_checkpoint": {"epoch", "block"},
    "payload_attributes": {"proposal_slot", "parent_block_root", "parent_block_hash"},
    "data_column_sidecar": {"block_root", "index"},
    "light_client_finality_update": {
        *("signature_slot", "sync_committee_bits", "slot", "proposer_index"),
        *("parent_root", "state_root", "body_root"),
    },
    "execution_payload_bid": {
        *("slot", "builder_index", "value"),
        *("parent_block_hash", "parent_block_root", "block_hash"),
    },
}
MATTERS["light_client_optimistic_update"] = MATTERS["light_client_finality_update"]
"""The members that the meaning is made of, where it is not all but signatures and marks."""
NEVER = {"signature", "selection_proof", "sync_committee_signature", "execution_optimistic", *UNREAD}


@pytest.mark.parametrize("topic", TOPICS)
def test_copies_are_those_with_the_same_meaning(topic: str) -> None:
    """T6: every member that the meaning is made of makes another event, and no other member does."""
    same = key(topic, FLAT[topic])
    for place in leaves(FLAT[topic]):
        before = at(FLAT[topic], place)
        data = changed(FLAT[topic], place, _other(before))
        counts = place[-1] in MATTERS[topic] if topic in MATTERS else place[-1] not in NEVER
        if topic == "contribution_and_proof" and place[-1] == "signature":
            counts = False
        assert (key(topic, data) != same) is counts, place


def _other(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return [*value, value[-1]]
    if isinstance(value, dict):
        return {**value, "more": 1}
    if value in ("empty", "full"):
        return "empty" if value == "full" else "full"
    return str(int(value) + 1) if value.isdecimal() else value[:-2] + ("02" if value[-2:] == "03" else "03")


def test_two_votes_of_one_validator_are_two_events() -> None:
    """T6: whoever looks for a slashable pair of votes has both, and each once."""
    first = FLAT["single_attestation"]
    double = changed(first, ("data", "beacon_block_root"), "0x" + "22" * 32)
    surround = changed(first, ("data", "source", "epoch"), "0")
    late = changed(first, ("data", "slot"), "2")
    payload = changed(first, ("data", "index"), "0")
    again = changed(first, ("signature",), "0x" + "33" * 96)
    votes = [first, double, surround, late, payload]
    assert len({key("single_attestation", vote) for vote in votes}) == len(votes)
    assert key("single_attestation", again) == key("single_attestation", first)


@pytest.mark.parametrize(
    ("topic", "names"),
    [
        ("proposer_slashing", ("signed_header_1", "signed_header_2")),
        ("attester_slashing", ("attestation_1", "attestation_2")),
    ],
)
def test_evidence_is_the_same_in_either_order(topic: str, names: tuple[str, str]) -> None:
    """Each node may put the two messages of a slashing in its own order."""
    one, two = FLAT[topic][names[0]], mapped(FLAT[topic][names[1]], lambda leaf: "7" if leaf == "0" else leaf)
    assert key(topic, {names[0]: one, names[1]: two}) == key(topic, {names[0]: two, names[1]: one})
    assert key(topic, {names[0]: one, names[1]: two}) != key(topic, {names[0]: one, names[1]: one})


def test_the_payload_of_a_head_that_comes_and_goes() -> None:
    """Case 11: empty and full are two, and each is one from all nodes."""
    empty, full = ({**FLAT["head_v2"], "payload_status": status} for status in ("empty", "full"))
    assert key("head_v2", empty) != key("head_v2", full)
    assert key("head_v2", {"data": empty}) == key("head_v2", empty)


def test_copies_of_what_is_not_known() -> None:
    """T6: white space and the order of members make no other event; anything else does."""
    keys = [read_topic_event("new", data).key for data in ('{"a":1,"b":"x"}', '{ "b":"x",\n"a":1}', '{"a":1,"b":"y"}')]
    assert keys[0] == keys[1] != keys[2]
    assert read_topic_event("new", "1").key != read_topic_event("new", '"1"').key
    assert read_topic_event("new", "NaN").key != read_topic_event("new", "null").key


# What a node might write: the API's names and texts, and anything.
_NAMES = sorted(
    {name for data in FLAT.values() for place in leaves(data) for name in place} | {"data", "Data", "version"}
)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["1", "0x" + "11" * 32, "0x" + "22" * 96, "0x01", "", "0x", "full", "01", "1e3", "\ud800"]),
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(st.sampled_from([*TOPICS, "new"]), _JSON | st.text())
@settings(max_examples=150)
def test_nothing_but_malformed_comes_of_anything(topic: str, value: Any) -> None:
    """Any JSON, and any text, is an event or malformed, and the same by both ways of reading."""
    for data in (json.dumps(value), value if isinstance(value, str) else json.dumps({"version": "x", "data": value})):
        assert _outcome(parse_topic_event, topic, data) == _outcome(
            lambda *of: read_topic_event(*of).value, topic, data
        )


def _outcome(read: Callable[[str, str], object], topic: str, data: str) -> str:
    try:
        return repr(read(topic, data))
    except MalformedEvent as malformed:
        return str(malformed)


@given(st.sampled_from(TOPICS), st.data())
@settings(max_examples=150)
def test_an_event_with_a_member_that_is_anything(topic: str, data: st.DataObject) -> None:
    """Whatever is at a place, the event is right or malformed; and how it is written changes neither."""
    place = data.draw(st.sampled_from([*leaves(FLAT[topic])]))
    value = changed(FLAT[topic], place, data.draw(_JSON))
    told_as = {_key_or_none(topic, written) for written in (value, {"data": value}, dict(reversed(value.items())))}
    assert len(told_as) == 1


def _key_or_none(topic: str, data: object) -> bytes | None:
    try:
        return key(topic, data)
    except MalformedEvent:
        return None


_WRITTEN = [
    *("0", 0, 7, "18446744073709551615", 2**63, "1.0", 1.0, "1e0", "-0", "01", "+1", " 1", True, None, ""),
    *("0x", "0x0", "0x00", "0X" + "11" * 32, "0x" + "aB" * 32, "0x" + "zz" * 96, "0x" + "11" * 96, "0x" + "11" * 9),
]


@pytest.mark.parametrize("topic", ["single_attestation", "attestation", "attester_slashing"])
def test_votes_are_read_the_same_by_both_readers(topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the quick reader takes, the other takes with the same value and key; what it does not, it leaves to it."""
    written = [FLAT[topic], {"data": FLAT[topic]}, FLAT["single_attestation"]]
    for place in leaves(FLAT[topic]):
        written += [changed(FLAT[topic], place), *(changed(FLAT[topic], place, other) for other in _WRITTEN)]
    quick = 0
    for data in map(json.dumps, written):
        vote = read_vote(topic, data)
        quick += vote is not None
        with monkeypatch.context() as patch:
            patch.setattr(topic_events, "read_vote", lambda *_: None)
            slow = _reading(topic, data)
        if vote is not None:
            assert slow is not None
            assert (vote.key, vote.make()) == (slow.key, slow.value)
            assert vote.key == pack(MEANINGS[topic](slow.value))
        found = _reading(topic, data)
        assert (None if found is None else (found.key, found.value)) == (
            None if slow is None else (slow.key, slow.value)
        )
    assert 10 < quick < len(written) / 2


def _reading(topic: str, data: str) -> TopicReading | None:
    try:
        return read_topic_event(topic, data)
    except MalformedEvent:
        return None


def test_the_value_of_a_vote_is_made_once_when_it_is_asked_for() -> None:
    """A copy costs no more than its key."""
    reading = read_topic_event("single_attestation", json.dumps(FLAT["single_attestation"]))
    assert reading.value is reading.value
    assert reading.value == SingleAttestation.from_json(json.dumps(FLAT["single_attestation"]).encode())
