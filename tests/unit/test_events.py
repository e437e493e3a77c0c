"""Parsing of head events: every spelling of real nodes, and what is malformed (Q17)."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.recordings import load_body
from vc_fallback.base.types import PayloadStatus
from vc_fallback.node.events import HeadEvent, MalformedEvent, ReorgEvent, StreamError, parse_event
from vc_fallback.wire.sse import SSEDecoder

EXAMPLES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "beacon-api" / "events.jsonl").read_text().splitlines()
]
A, B, C, D, E = (bytes([byte]) * 32 for byte in (0xAA, 0xBB, 0xCC, 0xDD, 0xEE))
MAX = 2**64 - 1

V1 = {
    "slot": "10",
    "block": "0x" + "aa" * 32,
    "state": "0x" + "bb" * 32,
    "epoch_transition": False,
    "previous_duty_dependent_root": "0x" + "cc" * 32,
    "current_duty_dependent_root": "0x" + "dd" * 32,
    "execution_optimistic": False,
}
V2 = {
    "slot": "10",
    "block": "0x" + "aa" * 32,
    "state": "0x" + "bb" * 32,
    "payload_status": "full",
    "epoch_transition": False,
    "current_epoch_dependent_root": "0x" + "cc" * 32,
    "next_epoch_dependent_root": "0x" + "dd" * 32,
    "execution_optimistic": False,
}
REORG = {
    "slot": "200",
    "depth": "50",
    "old_head_block": "0x" + "aa" * 32,
    "new_head_block": "0x" + "bb" * 32,
    "old_head_state": "0x" + "cc" * 32,
    "new_head_state": "0x" + "dd" * 32,
    "epoch": "6",
    "execution_optimistic": True,
}


def head(data: dict[str, Any] | str, topic: str = "head") -> HeadEvent:
    event = parse_event(topic, data if isinstance(data, str) else json.dumps(data))
    assert isinstance(event, HeadEvent)
    return event


def without(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in keys}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example["topic"]))
def test_every_example_of_the_api_definition(example: dict[str, Any]) -> None:
    """The topics about the head are parsed, all others pass as unknown."""
    event = parse_event(example["topic"], json.dumps(example["data"]))
    kinds = {"head": HeadEvent, "head_v2": HeadEvent, "chain_reorg": ReorgEvent}
    assert type(event) is kinds.get(example["topic"], type(None))
    if isinstance(event, HeadEvent):
        assert (event.slot, event.block.hex()[:8], event.optimistic) == (10, "9a2fefd2", False)
        assert event.payload_status is (PayloadStatus.EMPTY if example["topic"] == "head_v2" else None)


def test_head_and_head_v2_become_one() -> None:
    """H11, case 52: only the payload status differs; the duty roots of v1 are named by epoch offset."""
    v1, v2 = head(V1), head({"version": "gloas", "data": V2}, "head_v2")
    assert v1 == HeadEvent(10, A, B, None, False, C, D, False)  # type: ignore[arg-type]
    assert v2 == HeadEvent(10, A, B, PayloadStatus.FULL, False, C, D, False)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", ["empty", "full", None])
def test_payload_status(status: str | None) -> None:
    """Case 11: the same block comes as empty and as full; null is unknown."""
    event = head({"version": "gloas", "data": V2 | {"payload_status": status}}, "head_v2")
    assert event.payload_status == status


@pytest.mark.parametrize("topic", ["head", "head_v2"])
@pytest.mark.parametrize("data", [V1, V2])
def test_with_and_without_the_version_wrapper(topic: str, data: dict[str, Any]) -> None:
    """Case 10: `data` is unwrapped where it is, and other members beside it are ignored."""
    assert head(data, topic) == head({"version": "gloas", "data": data, "execution_optimistic": 1}, topic)


def test_a_capital_data_member_is_no_wrapper() -> None:
    """Case 9: that spelling was seen on `payload_attributes` only, which passes as unknown."""
    with pytest.raises(MalformedEvent):
        parse_event("head_v2", json.dumps({"version": "gloas", "Data": V2}))
    assert parse_event("payload_attributes", '{"version":"capella","Data":{"proposer_index":"19787"}}') is None


def test_a_head_without_the_optimistic_flag() -> None:
    """Case 1: Lighthouse's of 2022; a missing flag is unknown (H12)."""
    event = head(without(V1, "execution_optimistic"))
    assert event.optimistic is None
    assert event == HeadEvent(10, A, B, None, False, C, D, None)  # type: ignore[arg-type]


def test_only_slot_and_block_are_needed() -> None:
    """What is missing is unknown and costs no head."""
    event = head({"slot": "10", "block": V1["block"]})
    assert event == HeadEvent(10, A, None, None, False, None, None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("unknown", ["0x" + "00" * 32, "0x", "", None])
def test_zero_or_empty_dependent_roots_are_unknown(unknown: str | None) -> None:
    """Case 15: never a change, never compared."""
    event = head(V1 | {"previous_duty_dependent_root": unknown, "current_duty_dependent_root": unknown})
    assert (event.current_epoch_dependent_root, event.next_epoch_dependent_root) == (None, None)
    event = head({"data": V2 | {"current_epoch_dependent_root": unknown}}, "head_v2")
    assert (event.current_epoch_dependent_root, event.next_epoch_dependent_root) == (None, D)


@pytest.mark.parametrize("members", [{}, {"fork": "x", "extra": [1, {"a": None}]}, {"execution_requests_root": "0x00"}])
def test_other_members_are_ignored(members: dict[str, Any]) -> None:
    """The definition may add members without a new version (cases 10, 67)."""
    assert head(V1 | members) == head(V1)


@pytest.mark.parametrize(
    ("written", "slot"),
    [
        ('"0"', 0),
        ("0", 0),
        ("10", 10),
        ('"9007199254740993"', 2**53 + 1),
        ("9007199254740993", 2**53 + 1),
        (f'"{MAX}"', MAX),
        (f"{MAX}", MAX),
    ],
)
def test_numbers_are_exact_as_strings_and_integers(written: str, slot: int) -> None:
    """Q17, cases 63 and 65: beyond 2^53 and up to 2^64−1."""
    assert head(json.dumps(V1).replace('"10"', written, 1)).slot == slot


@pytest.mark.parametrize(
    "written",
    [
        *(
            "1.0",
            "1e3",
            "1E0",
            "-1",
            "-0.0",
            "true",
            "null",
            "[]",
            "{}",
            '""',
            '"+1"',
            '"-1"',
            '" 1"',
            '"1 "',
            '"1\\n"',
        ),
        *('"1_000"', '"1.0"', '"1e3"', '"01"', '"00"', '"0x1"', '"true"', '"١"', '"²"', '"18446744073709551616"'),
        *("18446744073709551616", "18446744073709552000", "99999999999999999999999", '"99999999999999999999999"'),
        *("9" * 5000, '"' + "9" * 5000 + '"', "NaN", "Infinity", "01", "+1", "1_000"),
    ],
)
@pytest.mark.parametrize("wrap", [False, True])
def test_malformed_numbers(written: str, wrap: bool) -> None:
    """Q17, cases 63 and 65: floats, booleans, signs, blanks, underscores, leading zeros, out of range."""
    data = json.dumps(V1).replace('"10"', written, 1)
    assert written in data
    with pytest.raises(MalformedEvent):
        parse_event("head", '{"data":' + data + "}" if wrap else data)


@pytest.mark.parametrize("member", ["block", "state", "previous_duty_dependent_root", "current_duty_dependent_root"])
def test_roots_of_either_case(member: str) -> None:
    """Hexadecimal digits may be of either case."""
    digits = "aB" * 16 + "Cd" * 16
    event = head(V1 | {member: "0x" + digits})
    assert bytes.fromhex(digits) in event


@pytest.mark.parametrize(
    "root",
    [
        *("0x", "", "aa" * 32, "0X" + "aa" * 32, "0x" + "aa" * 31, "0x" + "aa" * 33, "0x" + "aa" * 31 + "a"),
        *("0x" + "aa" * 31 + "ag", "0x" + "aa " * 21 + "a", " 0x" + "aa" * 32, "0x" + "aa" * 32 + "\n"),
        *("0x" + "aa" * 31 + "  ", "0x" + "аа" * 32, 5, None, True, ["0x" + "aa" * 32], {"root": "0x"}),
    ],
)
def test_malformed_roots(root: object) -> None:
    """A block root is `0x` and 64 digits, nothing else."""
    with pytest.raises(MalformedEvent):
        parse_event("head", json.dumps(V1 | {"block": root}))


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("state", "0xbb"),
        ("state", 7),
        ("epoch_transition", "false"),
        ("epoch_transition", 0),
        ("execution_optimistic", "false"),
        ("execution_optimistic", 1),
        ("payload_status", "half"),
        ("payload_status", 1),
        ("previous_duty_dependent_root", "0xcc"),
        ("current_duty_dependent_root", ["0x"]),
    ],
)
def test_a_member_of_another_type_is_malformed(member: str, value: object) -> None:
    """Case 16: a schema check, also of what may be missing."""
    with pytest.raises(MalformedEvent, match=member):
        parse_event("head", json.dumps(V1 | {member: value}))


@pytest.mark.parametrize("topic", ["head", "head_v2", "chain_reorg"])
@pytest.mark.parametrize(
    "data",
    [
        *("", " ", "null", "true", "5", '"head"', "[]", "{}", "[{}]", '{"data":null}', '{"data":[]}', '{"data":{}}'),
        *('{"slot":"1"', '{"slot":"1"} x', "not JSON", "\ufffd", "{'slot':'1'}", "[" * 100_000, '{"a":' * 100_000),
        *('{"slot":"1","block":"\\ud800"}', '{"data":' * 50_000 + "}" * 50_000),
    ],
)
def test_data_that_is_no_event(topic: str, data: str) -> None:
    """Case 67: nothing but MalformedEvent comes of it, however deep or broken."""
    with pytest.raises(MalformedEvent):
        parse_event(topic, data)


def test_a_whole_block_in_place_of_an_event() -> None:
    """Case 16: Teku once sent a signed block as `block` event; in a `head` it costs that event, in `block` nothing."""
    block = json.dumps({"message": {"slot": "10", "body": {}}, "signature": "0x" + "aa" * 96})
    assert parse_event("block", block) is None
    with pytest.raises(MalformedEvent):
        parse_event("head", block)


@pytest.mark.parametrize(
    ("topic", "data", "text"),
    [
        (
            "head",
            {"slot": "-7", "block": "s3cret"},
            "head: slot not a uint64, block a root is 0x and 64 hexadecimal digits",
        ),
        ("head", {"s3cret": "s3cret"}, "head: slot missing, block missing"),
        ("head", V1 | {"payload_status": "s3cret"}, "head: payload_status neither empty nor full"),
        ("head_v2", {"data": V2 | {"slot": "s3cret"}}, "head_v2: data.slot not a uint64"),
        ("head_v2", {"slot": "s3cret"}, "head_v2: slot not a uint64, block missing"),
        ("head_v2", "s3cret", "head_v2: not a JSON object"),
        (
            "chain_reorg",
            without(REORG, "epoch") | {"depth": "s3cret"},
            "chain_reorg: depth not a uint64, epoch missing",
        ),
        ("chain_reorg", None, "chain_reorg: not a JSON object"),
    ],
)
def test_the_error_names_topic_and_fields_and_no_content(topic: str, data: object, text: str) -> None:
    """Rule 11: what a node sent does not reach an exception, its cause or its context."""
    with pytest.raises(MalformedEvent) as caught:
        parse_event(topic, json.dumps(data))
    error = caught.value
    assert str(error) == text
    assert (error.topic, error.problem) == (topic, text.partition(": ")[2])
    assert error.__cause__ is None
    assert error.__context__ is None


def test_chain_reorg() -> None:
    """Case 45: roots as bytes, numbers as numbers."""
    expected = ReorgEvent(200, 50, A, B, 6, True)  # type: ignore[arg-type]
    assert parse_event("chain_reorg", json.dumps(REORG)) == expected
    assert parse_event("chain_reorg", json.dumps({"version": "gloas", "data": REORG})) == expected
    assert parse_event("chain_reorg", json.dumps(REORG | {"slot": 200, "depth": 50, "epoch": 6})) == expected
    unsaid = parse_event("chain_reorg", json.dumps(without(REORG, "execution_optimistic")))
    assert isinstance(unsaid, ReorgEvent)
    assert unsaid.optimistic is None


@pytest.mark.parametrize("member", ["slot", "depth", "old_head_block", "new_head_block", "epoch"])
def test_a_reorg_needs_all_its_members(member: str) -> None:
    """Without one of them nothing can be made of it."""
    with pytest.raises(MalformedEvent, match=member):
        parse_event("chain_reorg", json.dumps(without(REORG, member)))


def test_far_future_is_a_number_and_what_a_float_makes_of_it_is_not() -> None:
    """Case 63: 18446744073709552000 is out of range, never FAR_FUTURE."""
    event = parse_event("chain_reorg", json.dumps(REORG | {"epoch": MAX}))
    assert isinstance(event, ReorgEvent)
    assert event.epoch == MAX
    with pytest.raises(MalformedEvent):
        parse_event("chain_reorg", json.dumps(REORG | {"epoch": 18446744073709552000}))


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        (
            '{"status_code":400,"message":"Topic head,block not allowed for event subscriptions"}',
            400,
            "Topic head,block not allowed for event subscriptions",
        ),
        ('{"statusCode":400,"error":"Bad Request","message":"Invalid topic: test"}', 400, "Invalid topic: test"),
        ('{"code":503,"message":"syncing"}', 503, "syncing"),
        ('{"code":"429","message":"slow down"}', 429, "slow down"),
        ('{"code":"FST_ERR","statusCode":415,"error":"Unsupported Media Type"}', 415, "Unsupported Media Type"),
        ('{"error":{"code":402,"message":"Payment Required"}}', 402, "Payment Required"),
        ('{"message":"outer","error":{"status_code":"500","message":"inner"}}', 500, "outer"),
        ('{"code":3,"message":"grpc"}', None, "grpc"),
        ('{"code":true,"message":"x"}', None, "x"),
        ('{"code":400.0,"message":"x"}', None, "x"),
        ('{"code":99999999999999999999999,"message":"x"}', None, "x"),
        ('{"message":null,"error":"y"}', None, "y"),
        ('{"message":["z"]}', None, '{"message":["z"]}'),
        ("{}", None, "{}"),
        ("[1]", None, "[1]"),
        ("stream closed", None, "stream closed"),
        ("", None, ""),
        ("two\nlines\x1b[31m red", None, "two lines\ufffd[31m red"),
        ("at https://user:pass@bn1/token", None, "at https://bn1/…"),
    ],
)
def test_an_error_in_the_stream(data: str, status: int | None, message: str) -> None:
    """Case 4: a failed subscription with its status and words, in whatever spelling (cases 5, 24, 56)."""
    assert parse_event("error", data) == StreamError(status, message)


@pytest.mark.parametrize("data", ["x" * 10**6, '{"code":400,"message":"' + "x" * 10**6 + '"}', "[" * 10**6])
def test_a_huge_error_is_cut(data: str) -> None:
    """Rule 6: its words fit one line of a log."""
    event = parse_event("error", data)
    assert isinstance(event, StreamError)
    assert len(event.message) <= 300


def test_a_huge_slashing_is_not_looked_at() -> None:
    """Case 14: 250 kB, and not even JSON, of a topic that is not ours."""
    assert parse_event("attester_slashing", "[" * 250_000) is None


def test_flat_and_nested_gloas_events_of_other_topics_pass() -> None:
    """Case 10: what other topics look like is nobody's matter here."""
    assert parse_event("execution_payload", '{"slot":"10","block_root":"0xaa"}') is None
    assert parse_event("execution_payload_bid", '{"message":{"slot":"168775"},"signature":"0x"}') is None
    assert parse_event("message", "anything") is None
    assert parse_event("HEAD", json.dumps(V1)) is None


def test_recorded_streams_of_real_nodes() -> None:
    """Every head and reorg that real nodes sent is parsed; slots go back over the reorg (H7), `head` before it."""
    found: Counter[str] = Counter()
    slots: list[int] = []
    for name in ("reorg_n1", "el_n2", "restart_resync_n3", "n1_repeated_head_and_unknown"):
        decoder = SSEDecoder()
        for _, data in load_body(name):
            for sse in decoder.feed(data):
                event = parse_event(sse.event, sse.data)
                found[type(event).__name__] += 1
                if name == "reorg_n1" and isinstance(event, HeadEvent):
                    slots.append(event.slot)
                if isinstance(event, ReorgEvent):
                    assert slots[-1] == event.slot, "the head came first"
    assert found["HeadEvent"] == 49 + 20 + 58 + 6
    assert found["ReorgEvent"] == 1
    assert slots != sorted(slots)
