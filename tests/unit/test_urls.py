"""Base URLs: what is kept, what is sent, what is equal (Q16, I3; cases 21, 22, 25, 38)."""

import base64
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc_fallback.base.urls import BaseURL

EVENTS = "/eth/v1/events"


def basic(pair: bytes) -> str:
    return "Basic " + base64.b64encode(pair).decode()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("http://bn1:5052", EVENTS),
        ("http://bn1:5052/", EVENTS),
        ("https://name.quiknode.pro/TOKEN", "/TOKEN" + EVENTS),
        ("https://name.quiknode.pro/TOKEN/", "/TOKEN" + EVENTS),
        ("https://bn1/v2/KEY", "/v2/KEY" + EVENTS),
        ("https://bn1/a%2Fb", "/a%2Fb" + EVENTS),
        ("https://bn1/a%2Fb/", "/a%2Fb" + EVENTS),
        ("https://bn1/a%2fb", "/a%2fb" + EVENTS),
        ("https://bn1/a%20b", "/a%20b" + EVENTS),
        ("https://bn1/100%", "/100%" + EVENTS),
        ("https://bn1/ü", "/%C3%BC" + EVENTS),
        ('https://bn1/a"b<c>', "/a%22b%3Cc%3E" + EVENTS),
        ("https://bn1/[x]{y}|^`", "/%5Bx%5D%7By%7D%7C%5E%60" + EVENTS),
        ("https://bn1//a//", "//a" + EVENTS),
        ("https://bn1?key=TOKEN", EVENTS + "?key=TOKEN"),
        ("https://bn1/?key=TOKEN", EVENTS + "?key=TOKEN"),
        ("https://bn1/p?key=a%26b&x", "/p" + EVENTS + "?key=a%26b&x"),
        ("https://bn1/p?", "/p" + EVENTS),
        ("https://bn1?next=http://x/y?z", EVENTS + "?next=http://x/y?z"),
    ],
)
def test_prefix_and_query_are_kept_on_every_call(text: str, target: str) -> None:
    """Q16, case 22: with and without a trailing slash; `%2F` stays `%2F`."""
    assert BaseURL.parse(text).target(EVENTS) == target


def test_topics_are_repeated_keys_behind_the_base_query() -> None:
    """H10, Q16."""
    url = BaseURL.parse("https://bn1/p?key=TOKEN")
    topics = [("topics", "head"), ("topics", "head_v2")]
    assert url.target(EVENTS, topics) == "/p" + EVENTS + "?key=TOKEN&topics=head&topics=head_v2"
    assert BaseURL.parse("http://bn1").target(EVENTS, [("id", "a b&c=d,ü")]) == EVENTS + "?id=a%20b%26c%3Dd,%C3%BC"
    for text in ("0x1,2", "a=b", "a&b", "a b", "a%b", "a+b", "a\n", "é", "~._-", ""):
        quoted = quote(text, safe=",")
        assert (
            BaseURL.parse("http://bn1").target(EVENTS, [("id", text), (text, "1")])
            == f"{EVENTS}?id={quoted}&{quoted}=1"
        )


@pytest.mark.parametrize(
    ("userinfo", "pair"),
    [
        ("user:p%40ss", b"user:p@ss"),
        ("user:p@ss", b"user:p@ss"),
        ("user:pass", b"user:pass"),
        ("user:", b"user:"),
        ("user", b"user:"),
        (":pass", b":pass"),
        ("us%3Aer:pa:ss", b"us:er:pa:ss"),
        ("%C3%BCser:p%0D%0Ass", "üser:p\r\nss".encode()),
        ("üser:päss", "üser:päss".encode()),
        ("user:%zz%", b"user:%zz%"),
        ("user:%5Bx%5D", b"user:[x]"),
    ],
)
def test_user_info_becomes_authorization(userinfo: str, pair: bytes) -> None:
    """Q16, case 21: percent-decoded, and in no part of what is sent or shown otherwise."""
    url = BaseURL.parse(f"https://{userinfo}@bn1:1/p")
    assert url.authorization == basic(pair)
    assert (url.host, url.port, url.netloc, url.target("/x")) == ("bn1", 1, "bn1:1", "/p/x")


def test_the_case_of_the_field() -> None:
    """Case 21, to the letter."""
    assert BaseURL.parse("https://user:p%40ss@bn1").authorization == "Basic dXNlcjpwQHNz"


@pytest.mark.parametrize("text", ["http://bn1", "http://@bn1", "http://:@bn1"])
def test_no_user_info_is_no_authorization(text: str) -> None:
    """Q16."""
    assert BaseURL.parse(text).authorization is None


@pytest.mark.parametrize(
    ("text", "host", "port", "netloc", "hostport"),
    [
        ("http://bn1", "bn1", 80, "bn1", "bn1:80"),
        ("https://bn1", "bn1", 443, "bn1", "bn1:443"),
        ("http://bn1:80", "bn1", 80, "bn1", "bn1:80"),
        ("https://bn1:80", "bn1", 80, "bn1:80", "bn1:80"),
        ("http://bn1:443", "bn1", 443, "bn1:443", "bn1:443"),
        ("http://BN1:05052", "bn1", 5052, "bn1:5052", "bn1:5052"),
        ("http://bn1.:5052", "bn1.", 5052, "bn1.:5052", "bn1.:5052"),
        ("http://127.0.0.1:65535", "127.0.0.1", 65535, "127.0.0.1:65535", "127.0.0.1:65535"),
        ("http://[::1]:5052", "::1", 5052, "[::1]:5052", "[::1]:5052"),
        ("http://[::1]", "::1", 80, "[::1]", "[::1]:80"),
        ("http://[0:0:0:0:0:0:0:1]", "::1", 80, "[::1]", "[::1]:80"),
        ("http://[::FFFF:127.0.0.1]:1", "::ffff:7f00:1", 1, "[::ffff:7f00:1]:1", "[::ffff:7f00:1]:1"),
        ("http://bücher.example:1", "xn--bcher-kva.example", 1, "xn--bcher-kva.example:1", "xn--bcher-kva.example:1"),
        ("http://beacon_node:1", "beacon_node", 1, "beacon_node:1", "beacon_node:1"),
        ("http://-bn:1", None, 0, "", ""),
        ("http://" + "a" * 63 + ".b", "a" * 63 + ".b", 80, "a" * 63 + ".b", "a" * 63 + ".b:80"),
    ],
)
def test_host_and_port(text: str, host: str | None, port: int, netloc: str, hostport: str) -> None:
    """Q16, I3, case 25: default ports, IPv6 in brackets, names of other scripts, container names."""
    if host is None:
        with pytest.raises(ValueError, match="host name"):
            BaseURL.parse(text)
        return
    url = BaseURL.parse(text)
    assert (url.host, url.port, url.netloc, url.hostport) == (host, port, netloc, hostport)
    assert url.origin == f"{url.scheme}://{netloc}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://bn1:5052", "http://bn1:5052/"),
        ("http://bn1", "HTTP://BN1:80/"),
        ("https://bn1/p", "https://bn1:443/p/"),
        ("http://[::1]:1", "http://[0::1]:01"),
        ("http://bn1?", "http://bn1"),
        ("http://bücher.example", "http://XN--BCHER-KVA.example"),
        ("http://u%41:p@bn1", "http://uA:p@bn1"),
    ],
)
def test_two_spellings_are_one_address(one: str, other: str) -> None:
    """G1, case 38: one stream, one vote."""
    assert BaseURL.parse(one) == BaseURL.parse(other)
    assert hash(BaseURL.parse(one)) == hash(BaseURL.parse(other))
    assert BaseURL.parse(one).digest == BaseURL.parse(other).digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://bn1", "https://bn1"),
        ("http://bn1", "http://bn1:81"),
        ("http://bn1/a", "http://bn1/b"),
        ("http://bn1/a", "http://bn1/A"),
        ("http://bn1/a%2Fb", "http://bn1/a/b"),
        ("http://bn1?a", "http://bn1?b"),
        ("http://bn1?a", "http://bn1/a"),
        ("http://u:p@bn1", "http://bn1"),
        ("http://u:p@bn1", "http://u:q@bn1"),
    ],
)
def test_what_differs_is_not_one_address(one: str, other: str) -> None:
    """Rule 1: never confused."""
    first, second = BaseURL.parse(one), BaseURL.parse(other)
    assert first != second
    assert first.digest_with_credentials != second.digest_with_credentials


def test_a_digest_is_six_hexadecimal_digits_and_depends_on_no_password() -> None:
    """I3, rule 11: a new password is no new node, and a hash of a weak one would give it away."""
    first, second = BaseURL.parse("https://u:1@bn1/p"), BaseURL.parse("https://u:2@bn1/p")
    assert first.digest == second.digest == BaseURL.parse("https://bn1/p").digest
    assert len(first.digest) == 6
    assert int(first.digest, 16) >= 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bn1",
        "bn1:5052",
        "//bn1:5052",
        "http:bn1",
        "http:/bn1",
        "http://",
        "http:///path",
        "http://:5052",
        "http://user:pw@",
        "http://user:pw@:1",
        "ftp://bn1",
        "ws://bn1",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://bn1:",
        "http://bn1:0",
        "http://bn1:-1",
        "http://bn1:+80",
        "http://bn1:65536",
        "http://bn1:" + "9" * 5000,
        "http://bn1:port",
        "http://bn1:٣",
        "http://bn1:80:80",
        "http://user:pa/ss@bn1",
        "http://user:[x]@bn1",
        "http://x[::1]",
        "http://[::1]x:80",
        "http://[]",
        "http://[bn1]",
        "http://[::1",
        "http://::1",
        "http://[::1]x",
        "http://[::g]",
        "http://[127.0.0.1]",
        "http://[v1.x]",
        "http://[fe80::1%25eth0]:5052",
        "http://[fe80::1%eth0]:5052",
        "http://bn1#fragment",
        "http://bn1#",
        "http://bn1/p?q#f",
        "http://bn 1",
        " http://bn1",
        "http://bn1 ",
        "http://bn1/a b",
        "http://bn1/a\nb",
        "http://bn1/\r\nHost: evil",
        "http://bn1/\x00",
        "http://bn1/\x7f",
        "http://bn1\\evil",
        "http://a%20b",
        "http://a..b",
        "http://.a",
        "http://" + "a" * 64,
        "http://" + "a." * 127 + "b",
        "http://bn1,bn2",
        "http://bn1:4000,bn2:4000",
        "http://bn1;x",
        "http://<bn1>",
        "http://bn1\u3002\u3002x",
        "http://\u200b",
        "http://bn1\ufe55\uff20x",
        "http://xn--\u00e9",
        "http://\ud800",
        "http://bn1/\ud800",
        "http://u:\udcff@bn1",
        "\ufeffhttp://bn1",
    ],
)
def test_what_is_no_usable_url_is_refused_without_repeating_it(text: str) -> None:
    """Scenario 8, rule 11, case 25 (the comma list): the text of the error holds no part of the URL."""
    with pytest.raises(ValueError, match=r"\w") as caught:
        BaseURL.parse(text)
    assert type(caught.value) is ValueError
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    for part in ("bn1", "bn2", "user", "pw", "evil", "etc", "alert", "fe80"):
        assert part not in str(caught.value)


_WORDS = ("http://", "https://", "HTTP://", "//", "::1", "user", "p%40", "%2F", "a=b", "65536", "0", "-1", "xn--")
_PIECES = st.sampled_from(
    [*_WORDS, "xn--a", "%25eth0", "..", "v1.x", "127.0.0.1", *"@:/[]?#%&;1h._\\éⓔ。٣ß℀℆＠：／？＃"]
)
_WEIRD = st.one_of(
    st.lists(_PIECES | st.sampled_from(["\ud800", "\t", "\n", " ", "\x00", "\u200d", "a" * 64]), max_size=10).map(
        "".join
    ),
    st.text(),
)


def parsed(text: str) -> tuple[BaseURL | None, ValueError | None]:
    try:
        return BaseURL.parse(text), None
    except ValueError as error:
        return None, error


@settings(max_examples=200)
@given(_WEIRD, st.booleans())
def test_any_text_is_a_url_that_can_be_sent_or_a_value_error(text: str, with_scheme: bool) -> None:
    """Q16, hazard 15, rule 11: nothing else is raised, no blank or line break comes through, nothing is repeated."""
    text = "http://SECRETUSER:SECRETPW@" + text if with_scheme else text
    url, error = parsed(text)
    if url is None:
        assert type(error) is ValueError
        assert "SECRET" not in str(error)
        return
    target = url.target(EVENTS, [("topics", "head")])
    for sent in (target, url.netloc, url.authorization or ""):
        assert sent.isascii()
        assert sent.isprintable()
    assert " " not in target + url.netloc
    assert target.startswith("/")
    assert "SECRET" not in f"{url} {url!r} {url.digest}"
    # What is sent is read back as the same address.
    again = BaseURL.parse(url.origin + url.prefix + (f"?{url.query}" if url.query else ""))
    assert (again.scheme, again.host, again.port) == (url.scheme, url.host, url.port)
    assert (again.prefix, again.query) == (url.prefix, url.query)
