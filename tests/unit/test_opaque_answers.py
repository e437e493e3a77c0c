"""Answers that pass through as bytes (rule 12, case 58)."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from vc_fallback.node.caller import WithoutVersion
from vc_fallback.node.opaque_answers import read_block_v2, read_block_v3, read_block_v4, read_opaque
from vc_fallback.node.values.adapters import Unreadable
from vc_fallback.node.values.opaque import Opaque, ProducedBlock
from vc_fallback.wire.http import Headers, Response

JSON = "application/json"
SSZ = "application/octet-stream"
READERS: list[Callable[[Response], Opaque | ProducedBlock]] = [read_opaque, read_block_v2, read_block_v3, read_block_v4]
FLAGS = {"Eth-Execution-Payload-Blinded": "false", "Eth-Execution-Payload-Included": "false"}
MB = 1024 * 1024


def response(body: bytes, content_type: str, *pairs: tuple[str, str], **headers: str) -> Response:
    raw = [
        ("Content-Type", content_type),
        *pairs,
        *((name.replace("_", "-"), value) for name, value in headers.items()),
    ]
    return Response(200, Headers([(name.encode(), value.encode()) for name, value in raw]), body)


def ssz(body: bytes = b"block", *pairs: tuple[str, str], **headers: str) -> Response:
    return response(body, SSZ, *pairs, **headers)


def in_json(value: Any, *pairs: tuple[str, str], **headers: str) -> Response:
    return response(value if isinstance(value, bytes) else json.dumps(value).encode(), JSON, *pairs, **headers)


def block_v3(**members: Any) -> dict[str, Any]:
    return {"version": "fulu", "execution_payload_blinded": False, "data": {"a": 1}, **members}


# --- what an answer is of


@pytest.mark.parametrize("reader", READERS)
def test_ssz_is_the_body_itself(reader: Callable[[Response], Opaque | ProducedBlock]) -> None:
    """Not a copy."""
    answer = ssz(b"block", *FLAGS.items(), Eth_Consensus_Version="fulu")
    found = reader(answer)
    assert found.body is answer.body
    assert (found.version, found.content_type) == ("fulu", SSZ)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("data", [b'{ "b" :\n[1, 2.50, "\\u00e9\xc3\xa9"],"a":{}}', b'{"version":"x","data":null}'])
def test_json_is_the_bytes_of_data_as_they_stand(
    reader: Callable[[Response], Opaque | ProducedBlock], data: bytes
) -> None:
    body = b' {"meta": [{}], "data" : ' + data + b' , "version": "fulu"} '
    found = reader(in_json(body, *FLAGS.items()))
    assert (found.version, found.content_type, found.body) == ("fulu", JSON, data)


@pytest.mark.parametrize("name", ["Eth-Consensus-Version", "eth-consensus-version", "ETH-CONSENSUS-VERSION"])
@pytest.mark.parametrize(
    ("value", "version"), [("fulu", "fulu"), ("Deneb", "deneb"), ("heze", "heze"), ("eip-7782_dev.1", "eip-7782_dev.1")]
)
def test_name_of_the_header_has_no_case_and_unknown_versions_pass_through(name: str, value: str, version: str) -> None:
    """Case 58."""
    assert read_opaque(ssz(b"block", (name, value))).version == version


@pytest.mark.parametrize("media_type", [SSZ, "Application/Octet-Stream; charset=utf-8"])
def test_media_type_has_no_case_and_may_have_parameters(media_type: str) -> None:
    assert read_opaque(response(b"block", media_type, Eth_Consensus_Version="fulu")).content_type == SSZ


@pytest.mark.parametrize("header", ["", "two words", "x" * 65, "é"])
def test_version_of_the_body_stands_in_for_a_header_that_says_nothing(header: str) -> None:
    """Case 58."""
    answer = in_json({"version": "Fulu", "data": {"a": 1}}, Eth_Consensus_Version=header)
    assert read_opaque(answer).version == "fulu"


def test_header_that_a_proxy_repeats_counts_once_and_contradictions_do_not() -> None:
    name = "Eth-Consensus-Version"
    assert read_opaque(ssz(b"block", (name, "fulu"), (name, "fulu"))).version == "fulu"
    with pytest.raises(WithoutVersion):
        read_opaque(ssz(b"block", (name, "fulu"), (name, "deneb")))


@pytest.mark.parametrize("reader", READERS)
def test_ssz_that_does_not_say_of_which_fork_it_is_cannot_be_read(
    reader: Callable[[Response], Opaque | ProducedBlock],
) -> None:
    """Case 58."""
    with pytest.raises(WithoutVersion):
        reader(ssz(b"block", *FLAGS.items()))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("version", [{}, {"version": None}, {"version": 7}, {"version": ""}, {"version": ["fulu"]}])
def test_json_that_names_no_fork_is_malformed(
    reader: Callable[[Response], Opaque | ProducedBlock], version: dict[str, Any]
) -> None:
    with pytest.raises(Unreadable, match="Eth-Consensus-Version"):
        reader(in_json({"data": {"a": 1}, **version}, *FLAGS.items()))


def test_what_a_node_says_of_a_block_comes_with_it() -> None:
    said = {"version": "fulu", "data": {"a": 1}, "execution_optimistic": True, "finalized": False}
    assert read_opaque(in_json(said)) == Opaque("fulu", JSON, b'{"a": 1}', True, False)
    assert read_opaque(ssz(Eth_Consensus_Version="fulu")) == Opaque("fulu", SSZ, b"block", None, None)


@pytest.mark.parametrize("odd", [None, 1, "maybe", [], {}])
def test_odd_flag_is_unknown_and_costs_nothing(odd: Any) -> None:
    said = {"version": "fulu", "data": {"a": 1}, "execution_optimistic": odd, "finalized": odd}
    found = read_opaque(in_json(said))
    assert (found.execution_optimistic, found.finalized) == (None, None)


def test_lists_may_be_empty_and_need_no_version() -> None:
    """Blobs."""
    assert read_opaque(ssz(b""), versioned=False, listed=True) == Opaque(None, SSZ, b"")
    assert read_opaque(in_json({"data": []}), versioned=False, listed=True) == Opaque(None, JSON, b"[]")
    for data in ({"a": 1}, None):
        with pytest.raises(Unreadable, match="not a list"):
            read_opaque(in_json({"data": data}), versioned=False, listed=True)


# --- produced blocks


@pytest.mark.parametrize("blinded", [True, False])
def test_block_of_version_3_from_headers(blinded: bool) -> None:
    found = read_block_v3(
        ssz(
            b"block",
            ("eth-execution-payload-blinded", str(blinded).lower()),
            ("ETH-EXECUTION-PAYLOAD-VALUE", str(2**64)),
            ("Eth-Consensus-Block-Value", "0"),
            Eth_Consensus_Version="fulu",
        )
    )
    assert found == ProducedBlock("fulu", blinded, not blinded, 0, 2**64, SSZ, b"block")


@pytest.mark.parametrize("blinded", [True, False])
def test_block_of_version_3_from_members(blinded: bool) -> None:
    members = block_v3(
        execution_payload_blinded=blinded, execution_payload_value="12345", consensus_block_value="9007199254740993"
    )
    assert read_block_v3(in_json(members)) == ProducedBlock(
        "fulu", blinded, not blinded, 9007199254740993, 12345, JSON, b'{"a": 1}'
    )


@pytest.mark.parametrize("included", [True, False])
def test_block_of_version_4(included: bool) -> None:
    """It has no value of its payload."""
    word = str(included).lower()
    found = read_block_v4(
        ssz(
            b"block",
            ("Eth-Execution-Payload-Value", "7"),
            Eth_Consensus_Version="gloas",
            Eth_Execution_Payload_Included=word,
            Eth_Consensus_Block_Value="5",
        )
    )
    assert found == ProducedBlock("gloas", False, included, 5, None, SSZ, b"block")
    members = {"version": "gloas", "execution_payload_included": included, "consensus_block_value": "5"}
    found = read_block_v4(in_json({**members, "data": {"a": 1}}))
    assert found == ProducedBlock("gloas", False, included, 5, None, JSON, b'{"a": 1}')


def test_block_of_version_2_is_never_blinded_and_has_no_values() -> None:
    assert read_block_v2(in_json({"version": "capella", "data": {"a": 1}})) == ProducedBlock(
        "capella", False, True, None, None, JSON, b'{"a": 1}'
    )


@pytest.mark.parametrize("word", [None, "", "maybe", "1"])
@pytest.mark.parametrize(
    ("reader", "header", "member"),
    [
        (read_block_v3, "Eth-Execution-Payload-Blinded", "execution_payload_blinded"),
        (read_block_v4, "Eth-Execution-Payload-Included", "execution_payload_included"),
    ],
)
def test_what_the_bytes_are_is_never_guessed(
    word: str | None, reader: Callable[[Response], ProducedBlock], header: str, member: str
) -> None:
    """A blinded block signed as another is a lost slot."""
    pairs = [] if word is None else [(header, word)]
    with pytest.raises(WithoutVersion, match=header):
        reader(ssz(b"block", *pairs, Eth_Consensus_Version="fulu"))
    with pytest.raises(Unreadable, match=header):
        reader(in_json({"version": "fulu", "data": {"a": 1}, member: word}, *pairs))
    reader(in_json({"version": "fulu", "data": {"a": 1}, member: True}, *pairs))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("9007199254740993", 9007199254740993),
        (str(2**256 - 1), 2**256 - 1),
        (str(2**256), None),
        ("9" * 5000, None),
        ("-1", None),
        ("+1", None),
        ("1.5", None),
        ("1e18", None),
        ("0x10", None),
        ("007", None),
        ("1_000", None),
        ("1,000", None),
        ("12 wei", None),
        ("NaN", None),
        ("null", None),
        ("", None),
    ],
)
def test_values_are_exact_and_a_bad_one_costs_nothing_but_itself(text: str, value: int | None) -> None:
    """Q7: whatever is missing or cannot be read loses to any value that is known, and the block stays."""
    values = {"Eth_Consensus_Block_Value": text, "Eth_Execution_Payload_Value": text}
    found = read_block_v3(ssz(b"block", *FLAGS.items(), Eth_Consensus_Version="fulu", **values))
    assert (found.consensus_value, found.execution_value) == (value, value)
    members = block_v3(consensus_block_value=text, execution_payload_value=text)
    found = read_block_v3(in_json(members))
    assert (found.consensus_value, found.execution_value) == (value, value)


def test_arabic_digits_are_no_number() -> None:
    members = json.dumps(block_v3(consensus_block_value="١٢"), ensure_ascii=False).encode()
    assert read_block_v3(in_json(members)).consensus_value is None


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (b"12345678901234567890123", 12345678901234567890123),
        (b"1.0", None),
        (b"1e3", None),
        (b"-5", None),
        (b"null", None),
        (b"true", None),
        (b"[1]", None),
        (b'{"wei":1}', None),
    ],
)
def test_values_that_are_json_numbers(number: bytes, value: int | None) -> None:
    """Q17."""
    body = b'{"version":"fulu","execution_payload_blinded":false,"consensus_block_value":%b,"data":{"a":1}}' % number
    assert read_block_v3(in_json(body)).consensus_value == value


def test_member_stands_in_for_a_header_that_cannot_be_read() -> None:
    found = read_block_v3(in_json(block_v3(consensus_block_value="5"), Eth_Consensus_Block_Value="five"))
    assert found.consensus_value == 5


def test_header_goes_before_the_member() -> None:
    found = read_block_v3(
        in_json(
            block_v3(consensus_block_value="5", execution_payload_blinded=True),
            ("eth-execution-payload-blinded", "False"),
            Eth_Consensus_Block_Value="6",
            Eth_Consensus_Version="electra",
        )
    )
    assert (found.version, found.blinded, found.consensus_value) == ("electra", False, 6)


# --- what is no answer

SECRET = "hunter2"
BAD = {
    "empty": b"",
    "page": b"<!DOCTYPE html><html><body>hunter2</body></html>",
    "text": b"hunter2",
    "null": b"null",
    "number": b"12",
    "list": b"[]",
    "string": b'"hunter2"',
    "no members": b"{}",
    "data missing": b'{"version":"fulu","block":{"a":"hunter2"}}',
    "data null": b'{"version":"fulu","data":null}',
    "data list": b'{"version":"fulu","data":[1]}',
    "data text": b'{"version":"fulu","data":"0xhunter2"}',
    "data number": b'{"version":"fulu","data":5}',
    "data empty": b'{"version":"fulu","data":{}}',
    "cut in data": b'{"version":"fulu","data":{"a":"hunter2',
    "cut behind data": b'{"version":"fulu","data":{"a":1}',
    "bad data": b'{"version":"fulu","data":{"a":hunter2}}',
    "two values": b'{"version":"fulu","data":{"a":1}}{"version":"fulu"}',
    "mark": b'\xef\xbb\xbf{"version":"fulu","data":{"a":1}}',
    "UTF-16": '{"version":"fulu","data":{"a":1}}'.encode("utf-16"),
    "deep": b'{"version":"fulu","data":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "single quotes": b"{'version':'fulu','data':{'a':1}}",
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_what_is_not_as_defined_is_unreadable_and_never_repeated(
    reader: Callable[[Response], Opaque | ProducedBlock], body: bytes
) -> None:
    """Rule 11."""
    for media_type in (JSON, "text/html", ""):
        with pytest.raises(Unreadable) as caught:
            reader(response(body, media_type, *FLAGS.items(), Eth_Consensus_Version="fulu"))
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("reader", READERS)
def test_ssz_of_no_length_is_unreadable(reader: Callable[[Response], Opaque | ProducedBlock]) -> None:
    with pytest.raises(Unreadable):
        reader(ssz(b"", *FLAGS.items(), Eth_Consensus_Version="fulu"))


# --- cost


def test_nothing_shows_a_block() -> None:
    assert "0xsecret" not in repr(Opaque("fulu", JSON, b"0xsecret"))
    assert "0xsecret" not in repr(ProducedBlock("fulu", True, False, 1, 2, JSON, b"0xsecret"))


def allocated(read: Callable[[], object]) -> int:
    """Return the most bytes that were allocated at once."""
    read()
    tracemalloc.start()
    try:
        kept = read()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    del kept
    return most


def test_reading_a_block_of_a_megabyte_copies_it_once_at_most() -> None:
    """SSZ not at all, JSON once, and nothing is built of it."""
    answer = ssz(bytes(MB), *FLAGS.items(), Eth_Consensus_Version="fulu")
    assert allocated(lambda: read_block_v3(answer)) < 16 * 1024
    answer = in_json(block_v3(data={"transactions": ["0x" + "ab" * 512] * 1024}))
    assert MB < len(answer.body) < allocated(lambda: read_block_v3(answer)) < len(answer.body) + 16 * 1024
