"""The candidate list with its generation: ids, merging, changes (G1, G2, I3; scenarios 8 and 48, cases 21, 37, 38)."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.types import NodeId, Role, Tier
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate, Candidates, TLSSettings, check_headers, compare

FALLBACK = Tier.FALLBACK


def at(url: str, name: str | None = None, **more: object) -> Candidate:
    return replace(Candidate(BaseURL.parse(url), name), **more)  # type: ignore[arg-type]


A, B, C, D = (at(f"http://bn{letter}:5052", letter) for letter in "ABCD")


def ids(*candidates: Candidate) -> list[str]:
    return list(Candidates(candidates).current.members)


def refused(*candidates: Candidate) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        Candidates(candidates)
    return caught.value


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        (["http://bn1:5052"], ["bn1:5052"]),
        (["http://bn1"], ["bn1:80"]),
        (["https://user:pw@bn1"], ["bn1:443"]),
        (["http://[::1]:5052"], ["[::1]:5052"]),
        (["http://bn1:5052", "http://bn2:5052"], ["bn1:5052", "bn2:5052"]),
        (["http://bn1:5052", "http://bn1:5053"], ["bn1:5052", "bn1:5053"]),
        (["http://bn1:5052/a"], ["bn1:5052-######"]),
        (["http://bn1:5052?a"], ["bn1:5052-######"]),
        (["http://bn1:5052/a", "http://bn1:5052/b"], ["bn1:5052-######", "bn1:5052-######"]),
        (["http://bn1:5052", "http://bn1:5052/b"], ["bn1:5052-######", "bn1:5052-######"]),
        (["http://bn1:443", "https://bn1"], ["bn1:443-######", "bn1:443-######"]),
        (["http://u:p@bn1", "http://u:q@bn1"], ["bn1:80-######", "bn1:80-######"]),
        (["http://u:p@bn1/a", "http://u:q@bn1/a", "http://bn1/a"], ["bn1:80-######"] * 3),
    ],
)
def test_an_id_is_host_and_port_and_a_hash_where_that_does_not_tell_apart(urls: list[str], expected: list[str]) -> None:
    """I3: never an index, never the host alone, no secret."""
    found = ids(*map(at, urls))
    assert [re.sub(r"-[0-9a-f]{6}$", "-######", node_id) for node_id in found] == expected
    assert len(set(found)) == len(urls)


def test_a_given_name_is_the_id() -> None:
    """I3."""
    assert ids(at("http://bn1:5052", "left"), at("http://bn1:5052/b", "right")) == ["left", "right"]


def test_an_id_does_not_depend_on_the_place_in_the_list() -> None:
    """Rule 1: a candidate that moved in the list is never confused with another."""
    some = [at("http://bn1:5052/a"), at("http://bn1:5052/b"), at("http://bn2:5052")]
    assert sorted(ids(*some)) == sorted(ids(*reversed(some)))


def test_a_new_password_is_no_new_node() -> None:
    """I3, G2: the credentials of a node with a path change, the node stays."""
    candidates = Candidates([at("https://u:old@bn1/TOKEN")])
    change = candidates.update([at("https://u:new@bn1/TOKEN")])
    assert (change.added, change.removed, len(change.changed)) == ((), (), 1)


def test_a_name_that_is_another_nodes_address_gives_that_one_a_hash() -> None:
    """I3: given names come first."""
    found = ids(at("http://bn1:5052"), at("http://bn2:5052", "bn1:5052"))
    assert found[1] == "bn1:5052"
    assert re.fullmatch(r"bn1:5052-[0-9a-f]{6}", found[0])


def test_a_name_that_is_another_nodes_derived_id_is_taken() -> None:
    """Scenario 8: duplicate names, whichever was derived."""
    derived = at("http://bn1:5052/a")
    name = ids(derived)[0]
    assert refused(derived, at("http://bn2", name)).field == "candidates[1].name"
    assert refused(at("http://bn2", name), derived).field == "candidates[1].name"


@pytest.mark.parametrize(
    ("one", "other"),
    [("http://bn1:5052", "http://bn1:5052/"), ("http://bn1", "HTTP://BN1:80"), ("https://bn1/p", "https://bn1:443/p/")],
)
def test_two_spellings_in_one_tier_are_one_candidate(one: str, other: str) -> None:
    """G1, I3, case 38: one stream, one vote."""
    members = Candidates([at(one), at("http://bn2"), at(other)]).current.members
    assert [member.index for member in members.values()] == [0, 1]
    assert next(iter(members.values())).candidate.url == BaseURL.parse(one)


def test_of_merged_candidates_the_first_ones_settings_stand_and_roles_add_up() -> None:
    """I3: and a name counts, whichever of them has it."""
    first = at("http://bn1", roles=frozenset({Role.EVENTS}), priority=3, headers=(("X-A", "1"),))
    second = at("http://bn1/", "left", roles=frozenset({Role.DUTIES}), priority=1)
    (member,) = Candidates([first, second]).current.members.values()
    assert member.node_id == "left"
    assert member.candidate.roles == {Role.EVENTS, Role.DUTIES}
    assert (member.candidate.priority, member.candidate.headers) == (3, (("X-A", "1"),))


def test_other_credentials_are_another_candidate() -> None:
    """I3, rule 1: two accounts at one provider are two limits, and neither is dropped in silence."""
    assert len(ids(at("https://u:1@bn1"), at("https://u:2@bn1"))) == 2


@pytest.mark.parametrize(
    ("candidates", "field"),
    [
        ([at("http://bn1"), at("http://bn1/", tier=FALLBACK)], "candidates[1].url"),
        ([at("http://bn2"), at("http://bn1", tier=FALLBACK), at("http://bn1")], "candidates[2].url"),
        ([at("http://bn1", "a"), at("http://bn2", "a")], "candidates[1].name"),
        ([at("http://bn1", "a"), at("http://bn1", "b")], "candidates[1].url"),
        ([at("http://bn1"), at("http://bn1", "a"), at("http://bn2", "a")], "candidates[2].name"),
        ([at("http://bn1", "")], "candidates[0].name"),
        ([at("http://bn1", " a")], "candidates[0].name"),
        ([at("http://bn1", "a\n")], "candidates[0].name"),
        ([at("http://bn1", "a\u202e")], "candidates[0].name"),
        ([at("http://bn1", "a" * 65)], "candidates[0].name"),
        ([at("http://bn1", "http://u:SECRET@bn1")], "candidates[0].name"),
        ([at("http://bn1", "u:SECRET@bn1")], "candidates[0].name"),
        ([at("http://bn1", roles=frozenset())], "candidates[0].roles"),
        ([at("http://bn1", headers=(("X A", "SECRET"),))], "candidates[0].headers"),
        ([at("http://bn1", headers=(("X-A", "SEC\r\nRET: x"),))], "candidates[0].headers"),
        ([at("http://u:SECRET@bn1", headers=(("authorization", "Bearer SECRET"),))], "candidates[0].headers"),
    ],
)
def test_a_list_that_cannot_be_used_names_the_field(candidates: list[Candidate], field: str) -> None:
    """Scenario 8, rule 11: the field, and no secret."""
    error = refused(*candidates)
    assert error.field == field
    assert str(error).startswith(f"{field}: ")
    assert "SECRET" not in str(error)


def test_a_bad_update_changes_nothing() -> None:
    """G1: checked whole before anything changes."""
    candidates = Candidates([A, B])
    before = candidates.current
    with pytest.raises(ConfigurationError):
        candidates.update([C, at("http://bnC:5052", "C", tier=FALLBACK)])
    assert candidates.current is before
    assert candidates.watch.version == 0


@pytest.mark.parametrize(
    ("name", "value", "good"),
    [
        ("X-Api-Key", "abc", True),
        ("x_1!#$%&'*+.^`|~", "", True),
        ("X", "a b\tc", True),
        ("", "abc", False),
        ("X:", "abc", False),
        ("X Y", "abc", False),
        ("Ü", "abc", False),
        ("X\r\n", "abc", False),
        ("X", "a\r\nb", False),
        ("X", "a\x00", False),
        ("X", " a", False),
        ("X", "a ", False),
        ("X", "ü", False),
    ],
)
def test_headers_that_can_be_sent(name: str, value: str, good: bool) -> None:
    """Q16, hazard 15: refused when they are configured, not at every request."""
    if good:
        check_headers([(name, value)])
        return
    with pytest.raises(ValueError, match="a header's"):
        check_headers([(name, value)])


def test_every_update_bumps_the_generation_also_when_nobody_watches() -> None:
    """G1: list and counter are one value in one watch."""
    candidates = Candidates([A])
    assert (candidates.generation, candidates.watch.version) == (1, 0)
    first = candidates.current
    candidates.update([A])
    candidates.update([])
    assert (candidates.generation, candidates.current.generation, candidates.watch.version) == (3, 3, 2)
    assert candidates.watch.value is candidates.current
    assert (first.generation, list(first.members)) == (1, ["A"])


def test_the_list_may_be_empty() -> None:
    """G6: nodes join later."""
    candidates = Candidates()
    assert len(candidates.current) == 0
    assert candidates.update([A]).added == ("A",)


def test_a_list_cannot_be_changed_from_outside() -> None:
    """G1: immutable."""
    members = Candidates([A]).current.members
    with pytest.raises(TypeError):
        members[NodeId("B")] = members[NodeId("A")]  # type: ignore[index]


@pytest.mark.parametrize(
    ("old", "new", "added", "removed", "changed", "kept"),
    [
        pytest.param([A, B, C], [B, C, D], "D", "A", "", "BC", id="48: [A, B, C] → [B, C, D]"),
        pytest.param([A, B], [B, A], "", "", "", "BA", id="the order of the list keeps connections"),
        pytest.param([A, B], [A, replace(B, tier=FALLBACK)], "", "", "", "AB", id="so does the tier"),
        pytest.param([A], [replace(A, priority=5, roles=frozenset({Role.DUTIES}))], "", "", "", "A", id="and the rest"),
        pytest.param([A], [replace(A, url=D.url)], "", "", "A", "", id="49: another URL under the same name"),
        pytest.param([A], [replace(A, url=BaseURL.parse("http://u:p@bnA:5052"))], "", "", "A", "", id="credentials"),
        pytest.param([A], [replace(A, url=BaseURL.parse("http://bnA:5052/p"))], "", "", "A", "", id="path"),
        pytest.param([A], [replace(A, headers=(("X", "1"),))], "", "", "A", "", id="headers"),
        pytest.param([A], [replace(A, tls=TLSSettings(ca=Path("ca.pem")))], "", "", "A", "", id="TLS"),
        pytest.param([A], [replace(A, url=BaseURL.parse("HTTP://BNA:5052/"))], "", "", "", "A", id="38: a spelling"),
        pytest.param([A, B], [], "", "AB", "", "", id="everything leaves"),
        pytest.param([A], [D], "D", "A", "", "", id="swapped"),
    ],
)
def test_what_changes_between_two_lists(
    old: Sequence[Candidate], new: Sequence[Candidate], added: str, removed: str, changed: str, kept: str
) -> None:
    """G2, scenarios 48 and 49: whose connection goes on."""
    candidates = Candidates(old)
    change = candidates.update(new)
    assert (change.added, change.removed) == (tuple(added), tuple(removed))
    assert (change.changed, change.kept) == (tuple(changed), tuple(kept))


def test_roles_and_tiers_select_in_list_order() -> None:
    """Words of the design: priority is for the rank, not for the list."""
    candidates = Candidates(
        [
            replace(A, priority=9),
            replace(B, tier=FALLBACK),
            replace(C, roles=frozenset({Role.DUTIES})),
            replace(D, priority=1),
        ]
    )
    listed = candidates.current
    assert [member.node_id for member in listed.of(Role.EVENTS)] == ["A", "B", "D"]
    assert [member.node_id for member in listed.of(Role.EVENTS, Tier.PRIMARY)] == ["A", "D"]
    assert [member.node_id for member in listed.of(Role.DUTIES, FALLBACK)] == ["B"]
    member = listed.get(NodeId("B"))
    assert member is not None
    assert (member.index, member.tier, member.has(Role.EVENTS)) == (1, FALLBACK, True)
    assert NodeId("B") in listed
    assert listed.get(NodeId("x")) is None


def test_no_secret_stands_in_a_repr() -> None:
    """Rule 11: candidates, members and lists end up in log lines."""
    secret = at("https://user:SECRET@bn1/SECRET?key=SECRET", headers=(("X-Api-Key", "SECRET"),))
    candidates = Candidates([secret])
    assert "SECRET" not in f"{secret!r} {candidates.current!r} {candidates.current.members!r}"


_URLS = st.sampled_from(
    ["http://a", "http://a/", "https://a", "http://a:443", "http://a/p", "http://a/q", "http://u:1@a", "http://u:2@a/p"]
)
_NAMES = st.sampled_from([None, None, None, "a:80", "x", "y"])


@given(st.lists(st.tuples(_URLS, _NAMES, st.sampled_from(Tier)), max_size=6))
def test_any_list_is_refused_or_has_one_id_for_each_address(rows: list[tuple[str, str | None, Tier]]) -> None:
    """I3, G1: whatever was given, and then given again."""
    candidates = Candidates()
    given = [at(url, name, tier=tier) for url, name, tier in rows]
    try:
        candidates.update(given)
    except ConfigurationError as error:
        first = error
    else:
        listed = candidates.current
        assert {member.candidate.url for member in listed.members.values()} == {candidate.url for candidate in given}
        assert len({member.candidate.url for member in listed.members.values()}) == len(listed)
        again = compare(listed, Candidates(given).current)
        assert (again.added, again.removed, again.changed) == ((), (), ())
        return
    assert re.fullmatch(r"candidates\[[0-5]\]\.(url|name)", first.field)
