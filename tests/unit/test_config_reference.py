"""The reference of settings says what the models say."""

from scripts.config_reference import TARGET, reference


def test_the_reference_is_that_of_the_models() -> None:
    """O6: every field is documented; run `python -m scripts.config_reference` after a change of a model."""
    assert TARGET.read_text(encoding="utf-8") == reference()


def test_the_reference_names_every_setting_once_in_its_section() -> None:
    """O6: a field without a docstring is an error of the reference itself."""
    page = reference()
    for name in ("candidates", "url", "genesis_time", "head_silence", "tier_gate", "request_connect_timeout"):
        assert page.count(f"\n| `{name}` |") == 1
