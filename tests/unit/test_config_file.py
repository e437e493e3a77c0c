"""One TOML file with environment variables for secrets (O6, scenario 8, rule 11)."""

from pathlib import Path

import pytest

from vc_fallback.base.errors import ConfigurationError, field_path
from vc_fallback.config import FallbackConfig


def load(tmp_path: Path, text: str | bytes, **environment: str) -> FallbackConfig:
    path = tmp_path / "fallback.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return FallbackConfig.load(path, environment)


def test_variables_are_put_in_wherever_a_text_stands(tmp_path: Path) -> None:
    """O6: secrets stand in no file; what is put in is not read again."""
    config = load(
        tmp_path,
        """
        [[candidates]]
        url = "https://${USER}:${PASSWORD}@bn1/${TOKEN}$$"
        headers = { X-Api-Key = "${TOKEN}" }
        """,
        USER="user",
        PASSWORD="p%40ss",
        TOKEN="${USER}$",
    )
    (candidate,) = config.candidate_list()
    assert candidate.url.authorization == "Basic dXNlcjpwQHNz"
    assert candidate.url.prefix == "/$%7BUSER%7D$$"
    assert candidate.headers == (("X-Api-Key", "${USER}$"),)


def test_certificates_are_found_beside_the_file(tmp_path: Path) -> None:
    """O6: whatever the working directory is; absolute paths stay."""
    config = load(
        tmp_path, '[[candidates]]\nurl = "https://bn1"\nca = "ca.pem"\ncertificate = "/c.pem"\nkey = "k/k.pem"\n'
    )
    tls = config.candidate_list()[0].tls
    assert (tls.ca, tls.certificate, tls.key) == (tmp_path / "ca.pem", Path("/c.pem"), tmp_path / "k/k.pem")


def test_a_clock_is_switched_off_by_false(tmp_path: Path) -> None:
    """H5: TOML has no `null`."""
    assert load(tmp_path, "[streams]\nhard_clock = false\n").streams.hard_clock is None


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ('[[candidates]]\nurl = "http://${SECRETPW}@bn1"', "candidates[0].url", "SECRETPW is not set"),
        ('[[candidates]]\nurl = "http://u:SECRETPW$x@bn1"', "candidates[0].url", "dollar sign"),
        ('[[candidates]]\nurl = "http://u:SECRETPW${@bn1"', "candidates[0].url", "dollar sign"),
        ('[[candidates]]\nurl = "http://u:SECRETPW${}@bn1"', "candidates[0].url", "dollar sign"),
        ('[[candidates]]\nurl = "SECRETPW$$"', "candidates[0].url", "begins with"),
        ('"http://u:SECRETPW@bn1" = "$"', "<key>", "dollar sign"),
        ('a = ["SECRETPW", ["$"]]', "a[1][0]", "dollar sign"),
        ("[streams]\nhead_silence = 0", "streams.head_silence", "greater than 0"),
        ("url = SECRETPW", "config", "not TOML (line 1"),
        ('url = "SECRETPW', "config", "not TOML"),
        ("a = 1\na = 2", "config", "not TOML"),
        (b"a = '\xff'", "config", "not UTF-8"),
        ("a = " + "1" * 5000, "config", "not TOML"),
        ("a = " + "[" * 5000, "config", "nested too deeply"),
        ("a" + ".b" * 1500 + " = 1", "config", "nested too deeply"),
        ("#" + "x" * 2**20, "config", "larger than"),
    ],
)
def test_a_bad_file_is_an_error_that_names_the_place(
    tmp_path: Path, text: str | bytes, field: str, problem: str
) -> None:
    """Scenario 8, rule 11: one line, no value repeated."""
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text)
    assert caught.value.field == field
    assert problem in caught.value.problem
    assert "SECRETPW" not in str(caught.value).replace("SECRETPW is not set", "")
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("path", ["missing.toml", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_an_error_of_the_configuration(tmp_path: Path, path: str) -> None:
    """Scenario 8."""
    with pytest.raises(ConfigurationError) as caught:
        FallbackConfig.load(tmp_path / path, {})
    assert caught.value.field == "config"
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ((), ""),
        (("candidates", 1, "url"), "candidates[1].url"),
        (("candidates", 0, "headers", "X-Api-Key"), "candidates[0].headers.X-Api-Key"),
        (("http://u:p@bn1", "a"), "<key>.a"),
        (("a", "b c"), "a.<key>"),
        (("a", ""), "a.<key>"),
        (("a" * 42,), "<key>"),
        ((1,), "[1]"),
    ],
)
def test_a_place_is_written_as_a_dotted_path(location: tuple[int | str, ...], path: str) -> None:
    """Scenario 8, rule 11: keys that are no names are not repeated."""
    assert field_path(location) == path
