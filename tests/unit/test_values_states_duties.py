"""Values of states and duties: exact in both directions, strict, and quick where they come by the thousand."""

import json
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.base.types import FAR_FUTURE_EPOCH, Epoch, Slot
from vc_fallback.node.values.adapters import adapter, where
from vc_fallback.node.values.answers import Duties, OnChain
from vc_fallback.node.values.attestation import Checkpoint
from vc_fallback.node.values.duties import (
    AttesterDuty,
    Liveness,
    ProposerDuties,
    ProposerDuty,
    PtcDuty,
    SyncCommitteeDuty,
    read_duties,
)
from vc_fallback.node.values.rows import Row, read_plain
from vc_fallback.node.values.states import (
    Committee,
    FinalityCheckpoints,
    ListedValidator,
    SyncCommittees,
    Validator,
    ValidatorBalance,
    ValidatorStatus,
    balances_from_ssz,
    merged,
    read_rows,
)
from vc_fallback.node.values.validator_ids import (
    write_indices,
    write_statuses,
    write_validator_id,
    write_validator_ids,
)

MOST = 2**64 - 1
KEY = bytes(range(48))
KEY_HEX = "0x" + KEY.hex()
ROOT_HEX = "0x" + "ab" * 32
VALIDATOR = {
    "pubkey": KEY_HEX,
    "withdrawal_credentials": ROOT_HEX,
    "effective_balance": "32000000000",
    "slashed": False,
    "activation_eligibility_epoch": "0",
    "activation_epoch": "1",
    "exit_epoch": str(MOST),
    "withdrawable_epoch": str(MOST),
}
LISTED = {"index": "7", "balance": "32000000001", "status": "active_ongoing", "validator": VALIDATOR}
ATTESTER = {
    "pubkey": KEY_HEX,
    "validator_index": "7",
    "committee_index": "3",
    "committee_length": "512",
    "committees_at_slot": "64",
    "validator_committee_index": "11",
    "slot": "100",
}
PROPOSER = {"pubkey": KEY_HEX, "validator_index": "7", "slot": "100"}
SYNC = {"pubkey": KEY_HEX, "validator_index": "7", "validator_sync_committee_indices": ["0", "511"]}
COMMITTEE = {"index": "0", "slot": "100", "validators": ["5", "7"]}
COMMITTEES = {"validators": ["1", "2", "1", "3"], "validator_aggregates": [["1", "2"], ["1", "3"]]}
POINT = {"epoch": "3", "root": ROOT_HEX}

EXAMPLES: dict[Any, Any] = {
    Validator: VALIDATOR,
    ListedValidator: LISTED,
    ValidatorBalance: {"index": "7", "balance": "5"},
    Committee: COMMITTEE,
    SyncCommittees: COMMITTEES,
    FinalityCheckpoints: {"previous_justified": POINT, "current_justified": POINT, "finalized": POINT},
    AttesterDuty: ATTESTER,
    ProposerDuty: PROPOSER,
    PtcDuty: PROPOSER,
    SyncCommitteeDuty: SYNC,
    Liveness: {"index": "7", "is_live": True},
}
ROWS: dict[type[Row], Any] = {kind: value for kind, value in EXAMPLES.items() if issubclass(kind, Row)}


def around(data: Any, /, **more: Any) -> bytes:
    """Write an answer with duties, or one about a state."""
    return json.dumps({"dependent_root": ROOT_HEX, "execution_optimistic": False, "data": data, **more}).encode()


def read(kind: Any, value: Any) -> Any:
    return adapter(kind).validate_json(json.dumps(value))


# --- both directions


@pytest.mark.parametrize("kind", EXAMPLES)
def test_json_is_written_as_it_was_read(kind: Any) -> None:
    value = read(kind, EXAMPLES[kind])
    assert json.loads(adapter(kind).dump_json(value)) == EXAMPLES[kind]
    assert json.loads(adapter(list[kind]).dump_json([value, value])) == [EXAMPLES[kind]] * 2


numbers = st.one_of(st.integers(0, MOST), st.sampled_from([0, 2**53 + 1, 2**63 - 1, 2**63, MOST])).map(str)
keys = st.binary(min_size=48, max_size=48).map(lambda data: "0x" + data.hex())
roots = st.binary(min_size=32, max_size=32).map(lambda data: "0x" + data.hex())


def like(example: Any) -> st.SearchStrategy[Any]:
    """Make other JSON of an example's shape."""
    if isinstance(example, dict):
        return st.fixed_dictionaries({name: like(value) for name, value in example.items()})
    if isinstance(example, list):
        return st.lists(like(example[0]), max_size=4)
    if isinstance(example, bool):
        return st.booleans()
    if example == "active_ongoing":
        return st.sampled_from([*map(str, ValidatorStatus), "pending_deposited", "active"])
    return {len(KEY_HEX): keys, len(ROOT_HEX): roots}.get(len(example), numbers)


@pytest.mark.parametrize("kind", EXAMPLES)
@given(data=st.data())
def test_whatever_has_the_shape_goes_round(kind: Any, data: st.DataObject) -> None:
    """Q17: numbers are exact to 2^64−1."""
    given_json = data.draw(like(EXAMPLES[kind]))
    value = read(kind, given_json)
    written = json.loads(adapter(kind).dump_json(value))
    assert written == given_json
    assert read(kind, written) == value


def test_members_that_are_not_known_are_ignored() -> None:
    for kind, example in EXAMPLES.items():
        assert read(kind, {**example, "new": [{"a": 1.5}]}) == read(kind, example)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_members_that_are_missing_or_null_are_named(kind: Any) -> None:
    for name in EXAMPLES[kind]:
        less = {key: value for key, value in EXAMPLES[kind].items() if key != name}
        for wrong, value in (("missing", less), ("null", {**less, name: None}), ("object", {**less, name: {}})):
            with pytest.raises(ValueError, match=r".") as caught:
                read(kind, value)
            assert f"({name}" in where(caught.value), wrong


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("value", [None, [], "text", 5, True])
def test_what_is_no_object_is_no_value(kind: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(kind, value)


# --- values


def test_validator_has_the_epochs_that_are_not_fixed() -> None:
    found = read(ListedValidator, LISTED)
    assert found == ListedValidator(
        7,
        32000000001,
        ValidatorStatus.ACTIVE_ONGOING,
        Validator(KEY, b"\xab" * 32, 32000000000, False, Epoch(0), Epoch(1), FAR_FUTURE_EPOCH, FAR_FUTURE_EPOCH),
    )


def test_validator_has_the_root_of_its_container() -> None:
    """Hashed by hand, by the rules of SSZ."""

    def hashed(left: bytes, right: bytes) -> bytes:
        return sha256(left + right).digest()

    def leaf(value: int) -> bytes:
        return value.to_bytes(8, "little") + bytes(24)

    validator = read(Validator, VALIDATOR)
    assert Validator.from_ssz(validator.to_ssz()) == validator
    assert len(validator.to_ssz()) == Validator.ssz_length
    first = hashed(hashed(hashed(KEY[:32], KEY[32:] + bytes(16)), b"\xab" * 32), hashed(leaf(32000000000), leaf(0)))
    second = hashed(hashed(leaf(0), leaf(1)), hashed(leaf(MOST), leaf(MOST)))
    assert validator.hash_tree_root() == hashed(first, second)


@pytest.mark.parametrize("status", [*ValidatorStatus, "pending_deposited", "Active2", "x" * 64])
def test_status_that_is_not_known_passes(status: str) -> None:
    """A client that cannot read what a later fork adds would lose all its validators."""
    found = read(ListedValidator, {**LISTED, "status": status}).status
    assert found == status
    assert isinstance(found, ValidatorStatus) is (status in [*ValidatorStatus])


@pytest.mark.parametrize("status", ["", "x" * 65, "active ongoing", "a\n", "\x1b[2J", "aktivé", 5, None, True, ["a"]])
def test_status_that_is_no_word_is_refused(status: Any) -> None:
    with pytest.raises(ValueError, match="status"):
        read(ListedValidator, {**LISTED, "status": status})


def test_balances_in_ssz_are_read_in_whole() -> None:
    data = b"".join(value.to_bytes(8, "little") for value in (7, MOST, MOST, 0))
    assert balances_from_ssz(data) == [ValidatorBalance(7, MOST), ValidatorBalance(MOST, 0)]
    assert balances_from_ssz(b"") == []
    for wrong in (data[:-1], data + b"\0", b"\0" * 8):
        with pytest.raises(ValueError, match="16 bytes"):
            balances_from_ssz(wrong)


def test_parts_of_a_list_are_put_together_in_order_and_without_repeats() -> None:
    def part(*balances: tuple[int, int]) -> OnChain[Any]:
        return OnChain([ValidatorBalance(*each) for each in balances], False, True)

    whole = merged([part((5, 1), (3, 1)), part((3, 2), (9, 2), (5, 2)), part()])
    assert whole == part((5, 1), (3, 1), (9, 2))


@pytest.mark.parametrize(
    ("optimistic", "finalized", "whole"),
    [
        ([False, False], [True, True], (False, True)),
        ([False, True], [False, True], (True, False)),
        ([None, True], [None, False], (True, False)),
        ([None, False], [True, None], (None, None)),
        ([None, None], [None, None], (None, None)),
    ],
)
def test_parts_are_no_surer_together_than_the_least_sure(optimistic: Any, finalized: Any, whole: Any) -> None:
    found = merged([OnChain([], *flags) for flags in zip(optimistic, finalized, strict=True)])
    assert (found.execution_optimistic, found.finalized) == whole


def test_proposer_duties_of_the_two_routes_differ() -> None:
    """Q14b: one root means two things."""
    one, two = (ProposerDuties([], None, None, version) for version in (1, 2))
    assert one != two
    assert isinstance(one, Duties)


# --- rows

ODD_NUMBERS = [
    "-1",
    "-0",
    "+1",
    "1.0",
    "1.5",
    "1e3",
    "1E3",
    "1e+3",
    "1E-3",
    "01",
    "00",
    "",
    " 1",
    "1 ",
    "\t1",
    "1_000",
    "0x1",
    "١",
    "null",
    "true",
    "NaN",
    "Infinity",
    str(2**64),
    "9" * 40,
]
ODD_TOKENS = [
    *map(json.dumps, ODD_NUMBERS),
    *("-1", "1.0", "1.5", "1e3", "1E3", "1E+3", "1e-3", "1e400", "NaN", str(2**64), "9" * 40),
    *("true", "false", "null", "[]", "{}", '["1"]'),
]


def with_token(kind: type[Row], name: str, token: str) -> bytes:
    """Write an answer of three rows, in the second of which a member is this piece of JSON."""
    example = ROWS[kind]
    mark = "here"
    value = [[mark], [[mark]]][name == "validator_aggregates"] if isinstance(example[name], list) else mark
    return around([example, {**example, name: value}, example]).replace(b'"here"', token.encode())


NUMBERS = [(kind, name) for kind, example in ROWS.items() for name in example if name != "pubkey"]


@pytest.mark.parametrize("token", ODD_TOKENS)
def test_what_is_no_number_is_refused_and_named(token: str) -> None:
    """Q17: signs, fractions, exponents, booleans, blanks, underscores, what is out of range."""
    for kind, name in NUMBERS:
        empty = name == "validators" and token == "[]"
        body = with_token(kind, name, "[[]]" if empty else token)
        for reader in (partial(read_duties, kind), partial(read_rows, list[kind])):  # type: ignore[valid-type]
            with pytest.raises(ValueError, match=r".") as caught:
                reader(body)
            text = where(caught.value)
            # What is no JSON has no place.
            assert f"data[1].{name}" in text or (token == "NaN" and "json" in text)


@pytest.mark.parametrize("value", [0, 9, 2**53 + 1, 2**63 - 1, 2**63, MOST])
def test_numbers_are_exact_as_texts_and_bare(value: int) -> None:
    """Q17: to 2^64−1."""
    for kind, name in NUMBERS:
        for token in (str(value), f'"{value}"', f' "{value}" '):
            found = getattr(read_duties(kind, with_token(kind, name, token)).data[1], name)
            while isinstance(found, list):
                found = found[0]
            assert found == value
            assert type(found) is int


@pytest.mark.parametrize(
    "key",
    [
        '"0X' + "ab" * 48 + '"',
        '"' + "ab" * 49 + '"',
        '"0x' + "ab" * 47 + '"',
        '"0x' + "ab" * 47 + 'a"',
        '"0x' + "ab" * 49 + '"',
        '"0x' + "ab" * 47 + 'zz"',
        '"0x' + "ab" * 47 + ' a"',
        '"0x' + "ab" * 47 + 'éé"',
        '"0x' + "ab" * 100_000 + '"',
        '"0x"',
        '""',
        "null",
        "5",
        "true",
        "[]",
        "{}",
    ],
    ids=lambda key: key[:8] + key[-8:],
)
def test_what_is_no_key_is_refused_and_named(key: str) -> None:
    body = with_token(AttesterDuty, "pubkey", key)
    with pytest.raises(ValueError, match=r".") as caught:
        read_duties(AttesterDuty, body)
    assert "data[1].pubkey" in where(caught.value)


def test_keys_are_bytes_in_whichever_case_they_come() -> None:
    body = with_token(AttesterDuty, "pubkey", f'"0x{KEY.hex().upper()}"')
    found = read_duties(AttesterDuty, body).data[1].pubkey
    assert (found, type(found)) == (KEY, bytes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dependent_root", "null"),
        ("dependent_root", "0xab"),
        ("dependent_root", 5),
        ("dependent_root", ROOT_HEX + "00"),
        ("dependent_root", None),
        ("execution_optimistic", "null"),
        ("execution_optimistic", "true"),
        ("execution_optimistic", 1),
        ("execution_optimistic", "0"),
        ("execution_optimistic", []),
        ("data", None),
        ("data", {}),
        ("data", "text"),
        ("data", 5),
    ],
)
def test_what_stands_around_duties_is_read_as_strictly(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_duties(AttesterDuty, around([ATTESTER], **{name: value}))
    assert f"({name}" in where(caught.value)


def test_flag_that_is_not_told_is_unknown() -> None:
    body = json.dumps({"data": [ATTESTER], "dependent_root": ROOT_HEX}).encode()
    assert read_duties(AttesterDuty, body).execution_optimistic is None
    assert read_duties(AttesterDuty, around([], execution_optimistic=None)).execution_optimistic is None


def test_dependent_root_must_be_there_where_the_api_has_it() -> None:
    """Q14b: without it nobody sees that the duties have changed."""
    body = json.dumps({"data": [SYNC]}).encode()
    assert read_duties(SyncCommitteeDuty, body, rooted=False).dependent_root is None
    with pytest.raises(ValueError, match="dependent_root"):
        read_duties(SyncCommitteeDuty, body)


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("kind", ROWS)
def test_answers_in_the_plainest_form_are_read_the_quick_way(kind: type[Row], separators: tuple[str, str]) -> None:
    """A thousand attester duties in 1.1 ms instead of 2.7."""
    rows = [ROWS[kind]] * 1000
    body = json.dumps(json.loads(around(rows, finalized=True)), separators=separators).encode()
    found = read_plain(list[kind], body)  # type: ignore[valid-type]
    assert found is not None
    assert (found.data, len(found.data)) == (read(list[kind], rows), 1000)  # type: ignore[valid-type]
    assert (found.execution_optimistic, found.finalized) == (False, True)


tokens = st.one_of(
    st.from_regex(r'"?[1-9][0-9]?[eE][+]?[0-9]{1,2}"?', fullmatch=True),
    st.sampled_from(ODD_TOKENS),
    st.from_regex(r'"?[-+ ]?[0-9]{1,3}[.eE+_]?[-+]?[0-9]{0,2}"?', fullmatch=True),
    st.integers(0, 2**65).map(str),
    st.integers(0, 2**65).map(lambda value: f'"{value}"'),
)
members = st.dictionaries(
    st.text(max_size=4),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6)),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
        max_leaves=4,
    ),
    max_size=3,
)


@given(
    number=tokens,
    place=st.sampled_from(NUMBERS),
    extra=st.one_of(st.just({}), members),
    blanks=st.sampled_from(["", " ", "\n", "\t"]),
    raw=st.booleans(),
)
def test_quick_way_takes_nothing_that_the_strict_one_does_not(
    number: str, place: tuple[type[Row], str], extra: dict[str, Any], blanks: str, raw: bool
) -> None:
    """Nor does it read anything as another value."""
    kind, name = place
    text = json.loads(with_token(kind, name, '"here"'))
    text["data"][2].update({key: value for key, value in extra.items() if key not in text["data"][2]})
    text.update({key: value for key, value in extra.items() if key not in text})
    body = json.dumps(text, ensure_ascii=not raw).replace(": ", ":" + blanks).replace('"here"', number)
    quick = read_plain(list[kind], body.encode())  # type: ignore[valid-type]
    if quick is not None:
        strict = adapter(OnChain[list[kind]]).validate_json(body)  # type: ignore[valid-type]
        assert (quick.data, quick.execution_optimistic) == (strict.data, strict.execution_optimistic)


# --- what names validators


def test_validators_are_named_by_index_or_key_each_once() -> None:
    assert write_validator_id(MOST) == str(MOST)
    assert write_validator_id(KEY) == KEY_HEX
    assert write_validator_ids([7, KEY, 0, 7, bytes(KEY)]) == ["7", KEY_HEX, "0"]
    assert write_indices(iter([3, 1, 3])) == ["3", "1"]
    assert write_statuses([ValidatorStatus.ACTIVE_ONGOING, "active_ongoing", "new"]) == ["active_ongoing", "new"]
    assert write_indices([]) == []


@pytest.mark.parametrize(
    "write",
    [
        lambda: write_validator_id(-1),
        lambda: write_validator_id(2**64),
        lambda: write_validator_id(True),
        lambda: write_validator_id(b"\x01" * 32),
        lambda: write_validator_ids([1, b""]),
        lambda: write_validator_ids(KEY),
        lambda: write_validator_ids(KEY_HEX),  # type: ignore[arg-type]
        lambda: write_indices([1.0]),  # type: ignore[list-item]
        lambda: write_indices([KEY]),  # type: ignore[list-item]
        lambda: write_indices(KEY),
        lambda: write_statuses("active"),
    ],
)
def test_what_names_no_validator_is_refused(write: Callable[[], Any]) -> None:
    """Q3: one key in the place of a list would be 48 validators."""
    with pytest.raises(ValueError, match=r"."):
        write()


def test_slots_and_checkpoints_are_what_they_are_elsewhere() -> None:
    found = read(FinalityCheckpoints, EXAMPLES[FinalityCheckpoints])
    assert found.finalized == Checkpoint(Epoch(3), b"\xab" * 32)  # type: ignore[arg-type]
    assert read(Committee, COMMITTEE) == Committee(index=0, slot=Slot(100), validators=[5, 7])
