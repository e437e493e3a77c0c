"""Secrets never reach a log, an exception text or a terminal (rule 11; cases 21 and 22)."""

import string
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from vc_fallback.base.errors import NodeError
from vc_fallback.base.redact import printable, redact_text, redact_url
from vc_fallback.base.types import NodeId
from vc_fallback.base.urls import BaseURL
from vc_fallback.node.failures import Malformed, StatusError
from vc_fallback.testing.virtual_time import real_time


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://bn1:5052", "http://bn1:5052"),
        ("http://bn1:5052/", "http://bn1:5052"),
        ("https://bn1/", "https://bn1"),
        ("http://[::1]:5052", "http://[::1]:5052"),
        ("https://user:p%40ss@bn1", "https://bn1"),
        ("https://token@bn1:1", "https://bn1:1"),
        ("https://user:p@ss@bn1", "https://bn1"),
        ("https://user:pa'ss@bn1", "https://bn1"),
        ("https://name.quiknode.pro/TOKEN/", "https://name.quiknode.pro/…"),
        ("https://bn1/v2/KEY/eth/v1/node/syncing", "https://bn1/…"),
        ("https://bn1?key=TOKEN", "https://bn1/…"),
        ("https://bn1#TOKEN", "https://bn1/…"),
        # An unescaped / or ? in a password makes the user look like the host.
        ("https://user:12/34@bn1", "<url>"),
        ("https://user:12?34@bn1", "<url>"),
        ("https://user:12#34@bn1", "<url>"),
        ("https://user:12\\34@bn1", "<url>"),
        ("https://user:pass", "<url>"),
        ("https://[::1", "<url>"),
        ("https://", "<url>"),
        ("file:///etc/passwd", "<url>"),
        ("TOKEN", "<url>"),
        ("", "<url>"),
        ("https://bn1/…", "https://bn1/…"),
    ],
)
def test_of_a_url_scheme_host_and_port_are_shown(url: str, shown: str) -> None:
    """Rule 11: user-info, path, query and fragment may all hold tokens."""
    assert redact_url(url) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET https://user:pw@bn1/TOKEN/eth/v1/events failed", "GET https://bn1/… failed"),
        ("cannot connect to 'http://bn1:5052'.", "cannot connect to 'http://bn1:5052'."),
        ("(http://[::1]:5052/)", "(http://[::1]:5052)"),
        ('{"url":"https://u:p@bn1/TOKEN"}', '{"url":"https://bn1/…"}'),
        ("a http://u:p@a and b https://u:p@b", "a http://a and b https://b"),
        ("HTTP://U:P@BN1", "http://bn1"),
        ("xhttp://u:p@bn1", "xhttp://bn1"),
        ("_http://u:p@bn1", "_http://bn1"),
        ("éhttp://u:p@bn1", "éhttp://bn1"),
        ("//u:p@bn1/x", "<redacted>@bn1/x"),
        ("u:p@bn1:5052", "<redacted>@bn1:5052"),
        # What a node echoes of the request's target.
        ("Cannot GET /v2/TOKEN/eth/v1/events?topics=head&key=TOKEN", "Cannot GET …/eth/v1/events"),
        ('{"message":"Route GET:/TOKEN/eth/v1/x not found"}', '{"message":"Route …/eth/v1/x not found"}'),
        ("GET /eth/v1/node/syncing: 503", "GET /eth/v1/node/syncing: 503"),
        ("(/eth/v1/node/syncing)", "(/eth/v1/node/syncing)"),
        # Headers, as text and as they look in a repr.
        ("Authorization: Basic dXNlcjpwQHNz", "Authorization: <redacted>"),
        ("authorization: Bearer abc\nnext line", "authorization: <redacted>\nnext line"),
        ("Proxy-Authorization: Basic dXNl", "Proxy-Authorization: <redacted>"),
        ("Cookie: session=abc; b=c", "Cookie: <redacted>"),
        ("Set-Cookie: session=abc", "Set-Cookie: <redacted>"),
        ("{'X-Api-Key': 'TOKEN'}", "{'X-Api-Key': <redacted>"),
        ("[(b'authorization', b'Token abc')]", "[(b'authorization', <redacted>"),
        ("api_key=TOKEN", "api_key=<redacted>"),
        ("password=hunter2", "password=<redacted>"),
        ("sent Bearer abcdef to it", "sent Bearer <redacted> to it"),
        ("sent Basic YTpi", "sent Basic <redacted>"),
        # What holds no secret stays as it is.
        ("Missing Authorization header", "Missing Authorization header"),
        ("connection refused ('127.0.0.1', 5052)", "connection refused ('127.0.0.1', 5052)"),
        ("certificate is valid for eth2.node, not bn1", "certificate is valid for eth2.node, not bn1"),
        ("2026-11-30 12:30:00 slot 100", "2026-11-30 12:30:00 slot 100"),
        ("", ""),
    ],
)
def test_what_is_left_of_a_text(text: str, shown: str) -> None:
    """Rule 11: wherever in a text a secret stands."""
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("two\nlines\tand\r\nblanks   ", "two lines and blanks"),
        ("\x1b[31mred\x07", "\ufffd[31mred\ufffd"),
        ("\u202eabc\u200b", "\ufffdabc\ufffd"),
        ("\ud800", "\ufffd"),
        ("x" * 301, "x" * 299 + "…"),
        ("x" * 300, "x" * 300),
        ("<html>" + " " * 2000 + "http://user:1234@bn1", "<html> http://bn1"),
    ],
)
def test_a_nodes_words_fit_one_line(text: str, line: str) -> None:
    """Rules 6 and 11: no control characters, bounded."""
    assert printable(text) == line


def test_no_half_of_a_url_is_shown_where_a_text_is_cut() -> None:
    """Rule 11: before the cut a URL with its password, after it what looks like a host and a port."""
    for length in range(16_384 - 60, 16_384 + 10, 2):
        line = printable(" " * length + "https://user:12345678@bn1/TOKEN", limit=10**6)
        assert "1234" not in line
        assert "user" not in line
        assert "TOKEN" not in line


_SECRET = st.text(st.sampled_from(string.ascii_letters + string.digits + "'\"!$&()*+,;=-._~<>[]{}|^`é"), min_size=8)
_AROUND = st.text(st.sampled_from(string.printable + "é…"), max_size=30)


@given(_SECRET, _AROUND, _AROUND, st.sampled_from(["", "/", "/x", "?a=b"]), st.booleans())
@example("12345678", "", "", "", False)
@example("pass'word", "'", "'", "", False)
def test_no_password_in_a_url_survives(secret: str, before: str, after: str, rest: str, escape: bool) -> None:
    """Rule 11: whatever stands around, escaped or as typed."""
    written = quote(secret, safe="") if escape else secret
    assume(not any(part in before + " " + after for part in _parts(written)))
    for text in (f"https://user:{written}@bn1:5052{rest}", f"https://{written}@bn1{rest}"):
        _gone(written, f"{before} {text} {after}")
        _gone(written, f"{before}'{text}'{after}")


@given(_SECRET, _AROUND, st.sampled_from(["/{}/eth/v1/events", "/v2/{}", "/x?key={}", "?{}", "#{}", "/a/{}/?b=c"]))
def test_no_token_in_a_path_or_query_survives(secret: str, before: str, form: str) -> None:
    """Rule 11, case 22."""
    assume(not any(part in before for part in _parts(secret)))
    _gone(secret, f"{before} https://bn1{form.format(secret)} failed")
    _gone(secret, f"{before} Cannot GET /{secret}/eth/v1/events?key={secret} there")


@given(_SECRET, st.sampled_from(["Authorization", "proxy-authorization", "X-API-Key", "Cookie", "x-auth-token"]))
def test_no_credential_header_survives(secret: str, name: str) -> None:
    """Rule 11."""
    for text in (
        f"{name}: {secret}",
        f"{name}: Bearer {secret}",
        repr({name: secret}),
        repr([(name.encode(), secret)]),
    ):
        _gone(secret, text)
        _gone(secret, f"sent {text}")


@given(st.text())
def test_redacting_never_fails_and_is_done_once(text: str) -> None:
    """A text that was redacted stays as it is: logs are redacted again at the command's edge."""
    once = redact_text(text)
    assert redact_text(once) == once
    assert len(printable(text)) <= 300
    assert printable(text).isprintable()


@pytest.mark.parametrize(
    "text",
    ["a", "a:", "a:@", "http://", "authorization ", "authorization" + " " * 9, "basic ", " ", "/eth/v1", "://", "a.@"],
)
def test_a_nodes_megabyte_costs_little(text: str) -> None:
    """Rule 6: the cost of a hostile text is bounded and not quadratic (some 5 ms)."""
    began = real_time()
    printable(text * (2**20 // len(text)))
    assert real_time() - began < 1


def test_errors_of_nodes_hold_no_secret() -> None:
    """Rule 11: exception texts, and what is kept beside them."""
    node = NodeId("bn1:5052")
    errors: list[NodeError] = [
        NodeError(node, "/eth/v1/events", "cannot reach https://user:SECRETPW@bn1/SECRETPW"),
        Malformed(node, "/eth/v1/events", "no JSON: Authorization: SECRETPW"),
        StatusError(node, "/eth/v1/events", "Cannot GET /SECRETPW/eth/v1/events?key=SECRETPW", status=404),
    ]
    for error in errors:
        assert "SECRETPW" not in f"{error} {error!r} {error.problem} {vars(error)}"
        assert str(error).startswith("bn1:5052: /eth/v1/events: ")
    status = errors[-1]
    assert isinstance(status, StatusError)
    assert (status.status, status.problem) == (404, "Cannot GET …/eth/v1/events")
    assert str(StatusError(node, "/eth/v1/events", "", status=503)) == "bn1:5052: /eth/v1/events: 503"


@given(_SECRET)
def test_a_base_url_shows_its_origin_only(secret: str) -> None:
    """Rule 11: `str`, `repr` and what a log line makes of them."""
    token = quote(secret, safe="")
    url = BaseURL.parse(f"https://user:{token}@bn1/{token}?key={token}")
    for text in (str(url), repr(url), f"{url}", f"{[url]}"):
        assert token not in text
        assert secret not in text
    assert str(url) == "https://bn1/…"


def _parts(secret: str) -> list[str]:
    """The secret, and the better part of it."""
    return [secret, *(secret[start : start + 7] for start in range(len(secret) - 6))]


def _gone(secret: str, text: str) -> None:
    for shown in (redact_text(text), printable(text)):
        assert not [part for part in _parts(secret) if part in shown]
