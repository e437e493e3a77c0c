"""Values that come by the thousand are read by msgspec or by pydantic: which of them it is, nobody can tell (Q17)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc_fallback.node.values.adapters import adapter
from vc_fallback.node.values.answers import Duties, OnChain
from vc_fallback.node.values.duties import AttesterDuty, PtcDuty, SyncCommitteeDuty, read_duties
from vc_fallback.node.values.rows import read_plain
from vc_fallback.node.values.states import Committee, SyncCommittees, read_rows

KEY = b'"0x' + b"9a" * 48 + b'"'
ROOT = b'"0x' + b"0f" * 32 + b'"'

# What stands for a number: signs, blanks, underscores, fractions, exponents, leading zeros, other digits, other kinds.
TEXTS = (
    "0", "1", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615",
    "18446744073709551616", "-0", "-1", "+1", " 1", "1 ", "1_0", "00", "01", "1.0", "1.5", "1e3", "1E3", "1e+3", "1E+3",
    "1e-3", "1e", "e1", "e", "0x1", "0b1", "inf", "nan", "NaN", "Infinity", "", "null", "true", "٣", "１",
    "1\\n", "\\u0031", "1\n", "1\x00", "\ufeff1", "9" * 30, "9" * 5000,
)  # fmt: skip
NUMBERS = [
    *(f'"{text}"'.encode() for text in TEXTS),
    *(text.encode() for text in TEXTS),
    *(b"false", b"[]", b"{}", b'["1"]', b"[1]", b'{"a":1}', b'"1', b"'1'", b'"\xff"', b'"1\xff"'),
    *(b"1e400", b"-Infinity", b"1" + b"0" * 400, b'"1' + b"0" * 400 + b'"'),
]
TAKEN = {b"%d" % value for value in (0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)}
TAKEN |= {b'"%b"' % token for token in TAKEN} | {b'"\\u0031"'}
TAKEN.add(b"-0")  # as JSON has it that is no text, but the number 0
HALF = b'"0x' + b"ab" * 47
KEYS = [
    KEY, b'"0x' + b"AB" * 48 + b'"', HALF + b'\\u0061b"',
    b'"0X' + b"ab" * 48 + b'"', KEY.upper(), KEY[1:-1], b'"' + KEY[3:], b'"0x"', HALF + b'"', HALF + b'abab"',
    HALF + b'zz"', HALF + b'a"', HALF + b' a"', HALF + b'\xff"', b'"0x' + b"\xc3\xa9" * 48 + b'"',
    b'"0x' + b"\xd9\xa3" * 96 + b'"', b"null", b"1", b'""', b"[]", b"{}", b"true",
]  # fmt: skip
"""Of which three are keys."""
FLAGS = [b"true", b"false", b"null", b'"true"', b'"false"', b'"null"', b'"Null"', b"0", b"1", b'""', b'"1"', b"True"]
ROOTS = [ROOT, b"null", b'"null"', b'"0x"', ROOT.upper(), b'"0X' + b"0f" * 32 + b'"', b'"0x' + b"0f" * 33 + b'"', b"1"]
# What stands for members that nobody knows.
OTHERS = [
    b"1", b"-1.5e-3", b'"text"', b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\x"', b'"\x01"', b"NaN", b"-Infinity",
    b"nan", b"null", b"1e400", b"1" * 5000, b"01", b"[1,]", b'{"a":1,"a":[]}', b'{"\xff":1}', b"{1:1}", b"tru", b"1ee5",
    b"[" * 150 + b"]" * 150, b"[" * 198 + b"]" * 198, b"[" * 250 + b"]" * 250, b'{"a":' * 250 + b"1" + b"}" * 250,
    b"[" * 20_000 + b"]" * 20_000, b"[" * 20_000,
]  # fmt: skip
NAMES = [b"extra", b"version", b"slot", b"Slot", b"sl\\u006ft", b"\xff", b"\xc3\xa9", b"", b"a\nb", b"data"]

DEPTHS: dict[Any, dict[str, int]] = {
    list[AttesterDuty]: dict.fromkeys(AttesterDuty.__struct_fields__, 0),
    list[PtcDuty]: dict.fromkeys(PtcDuty.__struct_fields__, 0),
    list[SyncCommitteeDuty]: {"pubkey": 0, "validator_index": 0, "validator_sync_committee_indices": 1},
    list[Committee]: {"index": 0, "slot": 0, "validators": 1},
    SyncCommittees: {"validators": 1, "validator_aggregates": 2},
}
"""Types of `data`; their members, with how deep in lists the numbers are."""
every_kind = pytest.mark.parametrize("kind", DEPTHS, ids=str)

BLANKS = st.sampled_from([b""] * 6 + [b" ", b"\n", b"\t\r\n ", b"\x0b", b"\xc2\xa0", b"\x00"])


def mostly(plain: bytes, odd: list[bytes]) -> st.SearchStrategy[bytes]:
    """Draw the plain one in most cases, so that most of an answer is right."""
    return st.sampled_from([plain] * 4 * len(odd) + odd)


def numbers() -> st.SearchStrategy[bytes]:
    """Draw what stands for a number."""
    some = st.integers(0, 2**65).flatmap(lambda value: st.sampled_from([b"%d" % value, b'"%d"' % value]))
    close = st.from_regex(rb'"?[-+ ]?[0-9]{1,3}[.eE+_]?[-+]?[0-9]{0,2}"?', fullmatch=True)
    return st.sampled_from([0] * 20 + [1] * 6 + [2, 3]).flatmap(
        lambda way: [st.just(b'"7"'), some, close, st.sampled_from(NUMBERS)][way]
    )


def in_lists(item: st.SearchStrategy[bytes], depth: int) -> st.SearchStrategy[bytes]:
    """Draw lists of it, in lists."""
    for _ in range(depth):
        item = st.lists(item, max_size=3).map(lambda items: b"[" + b",".join(items) + b"]")
    return item


@st.composite
def objects(draw: st.DrawFn, values: dict[str, st.SearchStrategy[bytes]]) -> bytes:
    """Draw an object that has mostly the members it should, in any order, some of them twice."""
    names = list(values)
    for _ in range(draw(st.sampled_from([0] * 8 + [1]))):
        names.remove(draw(st.sampled_from(names)))
    for _ in range(draw(st.sampled_from([0] * 8 + [1, 2]))):
        names.insert(draw(st.integers(0, len(names))), draw(st.sampled_from(list(values))))
    pairs = [(name.encode(), draw(values[name])) for name in names]
    for _ in range(draw(st.sampled_from([0] * 8 + [1, 2]))):
        pairs.insert(draw(st.integers(0, len(pairs))), (draw(st.sampled_from(NAMES)), draw(st.sampled_from(OTHERS))))
    return b"{" + b",".join(b'"%b":%b%b' % (name, draw(BLANKS), value) for name, value in pairs) + b"}"


@st.composite
def answers(draw: st.DrawFn, kind: Any) -> bytes:
    """Draw an answer that is nearly one."""
    row = {
        name: mostly(KEY, KEYS) if name == "pubkey" else in_lists(numbers(), depth)
        for name, depth in DEPTHS[kind].items()
    }
    data = objects(row) if kind is SyncCommittees else in_lists(objects(row), 1)
    odd = st.sampled_from([b"null", b"[]", b"{}", b'""', b"[null]", b"[[]]", b"[{}]"])
    around = {
        "data": st.sampled_from([True] * 20 + [False]).flatmap(lambda right: data if right else odd),
        "dependent_root": mostly(ROOT, ROOTS),
        "execution_optimistic": mostly(b"false", FLAGS),
        "finalized": mostly(b"true", FLAGS),
    }
    body = draw(BLANKS) + draw(objects(around)) + draw(BLANKS)
    for _ in range(draw(st.sampled_from([0] * 4 + [1, 2]))):
        place = draw(st.integers(0, len(body)))
        body = body[:place] + draw(st.binary(max_size=2)) + body[place + draw(st.integers(0, 2)) :]
    return body


def outcome(read: Callable[[], Any]) -> Any:
    """Return what is read with its types, or that it is refused."""
    try:
        found = read()
    except (ValueError, RecursionError):
        return "refused"
    return found, repr(found)


def agree(kind: Any, body: bytes) -> bool:
    """Hold both readers against each other, as the two kinds of answers have them; return whether it was read."""
    about = outcome(lambda: read_rows(kind, body))
    assert about == outcome(lambda: adapter(OnChain[kind]).validate_json(body))
    if kind is not SyncCommittees:
        row: Any = get_args(kind)[0]
        duties = outcome(lambda: read_duties(row, body, rooted=False))
        assert duties == outcome(lambda: adapter(Duties[row]).validate_json(body))
    return bool(about != "refused")


def answer(kind: Any, replaced: Mapping[str, bytes] = MappingProxyType({}), more: bytes = b"") -> bytes:
    """Write a plain answer.

    :param replaced: other values of its members, or of its row's.
    :param more: of its row, and of it as a whole.
    """
    row = {name: KEY if name == "pubkey" else within(depth, b'"7"') for name, depth in DEPTHS[kind].items()}
    data = _object({name: replaced.get(name, value) for name, value in row.items()}, more)
    around = {"data": data if kind is SyncCommittees else b"[%b,%b]" % (data, data), "dependent_root": ROOT}
    around |= {"execution_optimistic": b"false", "finalized": b"true"}
    return _object({name: replaced.get(name, value) for name, value in around.items()}, more)


def within(depth: int, token: bytes) -> bytes:
    """Write a number, or a list with it at its end."""
    return b"[" * depth + (b"7," if depth else b"") + token + b"]" * depth


def _object(members: Mapping[str, bytes], more: bytes) -> bytes:
    return b"{" + b",".join(b'"%b":%b' % (name.encode(), value) for name, value in members.items()) + more + b"}"


@every_kind
def test_a_plain_answer_is_read_by_msgspec(kind: Any) -> None:
    """Else nothing here would be held against anything."""
    assert read_plain(kind, answer(kind)) is not None
    assert agree(kind, answer(kind))


@every_kind
def test_both_readers_agree_on_every_kind_of_number(kind: Any) -> None:
    """Q17, case 63: and take of them the same ones in every place."""
    (first, depth), *others = [(name, depth) for name, depth in DEPTHS[kind].items() if name != "pubkey"]
    for token in NUMBERS:
        taken = agree(kind, answer(kind, {first: within(depth, token)}))
        assert taken == (token.strip() in TAKEN), token
        for name, deep in others:
            assert agree(kind, answer(kind, {name: within(deep, token)})) == taken


def test_both_readers_agree_on_every_key_flag_and_root() -> None:
    """`0X` is no `0x`; digits in upper case are digits."""
    kind = list[PtcDuty]
    assert [agree(kind, answer(kind, {"pubkey": key})) for key in KEYS] == [True] * 3 + [False] * (len(KEYS) - 3)
    for name, values in (("execution_optimistic", FLAGS), ("finalized", FLAGS), ("dependent_root", ROOTS)):
        for value in values:
            agree(kind, answer(kind, {name: value}))


@every_kind
def test_both_readers_agree_on_members_that_are_there_twice(kind: Any) -> None:
    """The last one holds, and what the first one was does not matter."""
    for name, depth in DEPTHS[kind].items():
        plain = KEY if name == "pubkey" else within(depth, b'"9"')
        for first, last in ((plain, plain), (b"null", plain), (plain, b"null"), (b'"\xff"', plain)):
            agree(kind, answer(kind, {name: first}, b',"%b":%b' % (name.encode(), last)))


@every_kind
def test_both_readers_agree_on_members_that_nobody_knows(kind: Any) -> None:
    """What is passed over is JSON all the same: its UTF-8, its depth, its numbers."""
    for name in NAMES:
        for value in OTHERS:
            agree(kind, answer(kind, {}, b',"%b":%b' % (name, value)))
    assert agree(kind, answer(kind, {}, b',"new":{"a":[1.5,null]}'))
    assert not agree(kind, answer(kind, {}, b',"new":"\xff"'))


@every_kind
@settings(max_examples=150)
@given(data=st.data())
def test_both_readers_agree_on_every_answer(kind: Any, data: st.DataObject) -> None:
    """Whatever is refused by one is by the other, and whatever is read is the same value."""
    agree(kind, data.draw(answers(kind)))
