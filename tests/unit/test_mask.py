"""What takes a candidate's own secrets out of a text (rule 11)."""

import pytest

from vc_fallback.base.redact import Mask
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("unknown key k3yvalue.", "unknown key <redacted>."),
        ("t0ken-1/path", "<redacted>/path"),
        ("both t0ken-1t0ken-1", "both <redacted><redacted>"),
        ("p@ssword and p%40ssword", "<redacted> and <redacted>"),
        ("user-name:p@ssword", "<redacted>"),
        ("dXNlci1uYW1lOnBAc3N3b3Jk", "<redacted>"),
        ("key q-value of q", "key <redacted> of q"),
        ("head_v2: invalid topic name", "head_v2: invalid topic name"),
        ("v2 is a word", "v2 is a word"),
    ],
)
def test_every_part_of_a_candidate_that_may_be_secret(text: str, masked: str) -> None:
    """User-info raw, decoded and encoded, parts of path and query, values of headers; short words stay."""
    url = BaseURL.parse("https://user-name:p%40ssword@bn.example/v2/t0ken-1?q=q-value")
    candidate = Candidate(url, headers=(("X-Key", "k3yvalue"), ("X-Short", "v2")))
    assert candidate.mask(text) == masked


def test_a_secret_within_a_longer_one_leaves_nothing_of_it() -> None:
    """The longest is taken out first."""
    assert Mask(["secret", "secret-and-more"])("secret-and-more, secret") == "<redacted>, <redacted>"


@pytest.mark.parametrize(
    "form",
    [
        "p/ss w&rd<'ä", "p%2Fss%20w%26rd%3C%27%C3%A4", "p%2fss%20w%26rd%3c%27%c3%a4", "p/ss%20w%26rd%3C%27%C3%A4",
        "p%2Fss+w%26rd%3C%27%C3%A4", "p/ss w&amp;rd&lt;&#x27;ä", "p/ss w&amp;rd&lt;'ä", "p/ss w&rd<'\\u00e4",
        "p\\/ss w&rd<'\\u00e4", "cC9zcyB3JnJkPCfDpA",
    ],
)  # fmt: skip
def test_a_secret_in_whatever_form_a_node_writes_it(form: str) -> None:
    """In a URL, a page, JSON, base64."""
    assert Mask(["p/ss w&rd<'ä"])(f"the {form}=") == "the <redacted>="


@pytest.mark.parametrize(
    "text",
    [
        "dXNlcjpwQHNzdzByZFhZWg==",
        "dXNlcjpwQHNzd",
        "user:p@ssw",
        "w0rdXYZ",
        "P@SSW0RDXYZ",
        "İ P@SSW0RDXYZ",
        "p\\u0040ssw0rdXYZ",
    ],
)
def test_a_secret_that_is_cut_short_or_written_in_other_letters(text: str) -> None:
    """Rule 11: of what a node repeats in part nobody sees as much as eight characters."""
    mask = Candidate(BaseURL.parse("http://user:p%40ssw0rdXYZ@bn.example")).mask
    shown = mask(f"bad credentials {text}, go away").lower()
    assert shown.startswith("bad credentials ")
    assert shown.endswith(", go away")
    for form in ("user:p@ssw0rdxyz", "dxnlcjpwqhnzdzbyzfhzwg"):
        assert not any(form[at : at + 8] in shown for at in range(len(form) - 7)), shown


def test_the_parts_of_a_header_are_secrets_each() -> None:
    """A node repeats what counts of it."""
    candidate = Candidate(
        BaseURL.parse("http://bn"), headers=(("Authorization", "Bearer t0ken=="), ("Cookie", "id=sess10n; a=0ther-one"))
    )
    assert candidate.mask("t0ken== sess10n 0ther-one") == "<redacted> <redacted> <redacted>"


def test_nothing_to_hide() -> None:
    """A candidate without secrets has its texts as they are."""
    assert Candidate(BaseURL.parse("http://bn.example:5052")).mask("bn.example:5052 v1") == "bn.example:5052 v1"
