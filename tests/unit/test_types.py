"""Roots and provenance (rule 1, Q17)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc_fallback.base.types import (
    FAR_FUTURE_EPOCH,
    ZERO_ROOT,
    NodeId,
    Provenance,
    Role,
    Sourced,
    Tier,
    parse_root,
    root_hex,
)

HEX = "0123456789abcdef" * 4


@settings(max_examples=30)
@given(st.binary(min_size=32, max_size=32))
def test_a_root_is_written_in_lower_case_and_read_in_either(root: bytes) -> None:
    """Roots are 32 bytes inside, `0x…` in lower case at the edges."""
    text = root_hex(root)
    assert text == text.lower()
    assert len(text) == 66
    assert parse_root(text) == root
    assert parse_root("0x" + text[2:].upper()) == root


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        HEX,
        "0x" + HEX[:-1],
        "0x" + HEX[:-2],
        "0x" + HEX + "0",
        "0x" + HEX + "00",
        "0X" + HEX,
        " 0x" + HEX[:-1],
        "0x" + HEX + "\n",
        "0x" + HEX[:-1] + "g",
        "0x" + HEX[:-2] + " 0",
        # bytes.fromhex skips blanks between bytes: 64 characters are not 32 bytes then.
        "0x" + HEX[:-2] + "  ",
        "0x" + " ".join(HEX[i : i + 2] for i in range(0, 42, 2))[:64].ljust(64, "0"),
        "0x" + HEX[:-1] + "١",
        "0x" + HEX[:-1] + "\uff11",  # a full-width 1
        "0x" + HEX[:-2] + "-1",
        "0x" + HEX[:-2] + "_1",
    ],
)
def test_what_is_no_root_is_refused_without_repeating_it(text: str) -> None:
    """Q17."""
    with pytest.raises(ValueError, match=r"^a root is 0x and 64 hexadecimal digits$"):
        parse_root(text)


@given(st.text(st.sampled_from("0x123abAB gG\n\t_-"), min_size=60, max_size=70))
def test_a_text_is_a_root_or_a_value_error(text: str) -> None:
    """Q17: nothing in between."""
    try:
        root = parse_root(text)
    except ValueError:
        return
    assert root_hex(root) == text.lower()


def test_a_value_carries_where_it_came_from() -> None:
    """Rule 1: node, generation, time, latency."""
    value = Sourced(7, Provenance(NodeId("n1"), generation=3, received=12.5, latency=0.25))
    assert (value.value, value.node_id, value.generation, value.latency) == (7, "n1", 3, 0.25)
    assert Provenance(NodeId("n1"), 1, 0.0).latency is None


def test_words_are_written_as_in_the_design() -> None:
    """The words appear in configuration, JSON lines and metrics."""
    assert [str(tier) for tier in Tier] == ["primary", "fallback"]
    assert [str(role) for role in Role] == ["events", "duties", "attestation", "proposal", "submission"]
    assert FAR_FUTURE_EPOCH == 18446744073709551615
    assert root_hex(ZERO_ROOT) == "0x" + "0" * 64
