"""Certificates of candidates are read when the list is, and read anew when every stream starts anew."""

from pathlib import Path

import pytest
import trustme

from vc_fallback.base.errors import ConfigurationError
from vc_fallback.config import FallbackConfig
from vc_fallback.heads.monitor import HeadMonitor


def config(url: str, ca: Path) -> FallbackConfig:
    return FallbackConfig.of({"candidates": [{"url": "http://other"}, {"url": url, "ca": ca}]})


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_certificate_authority_that_cannot_be_read_is_an_error_of_its_field(scheme: str, tmp_path: Path) -> None:
    """Q16: beside an http:// URL too, which may redirect to https:// on its host."""
    with pytest.raises(ConfigurationError) as caught:
        HeadMonitor(config(f"{scheme}://node", tmp_path / "missing.pem"))
    assert caught.value.field == "candidates[1].ca"


def test_certificates_are_read_anew_when_every_stream_is_restarted(tmp_path: Path) -> None:
    """G2: `restart="all"` finds a renewed certificate, and one that has become unreadable, before anything changes."""
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    settings = config("https://node", file)
    monitor = HeadMonitor(settings)
    file.write_text("no certificate any more")
    monitor.update_candidates(settings.candidate_list())
    with pytest.raises(ConfigurationError) as caught:
        monitor.update_candidates(settings.candidate_list(), restart="all")
    assert caught.value.field == "candidates[1].ca"
    assert monitor.candidates.generation == 2
