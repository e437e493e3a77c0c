"""Events are known again by what they mean, for some slots, in bounded memory (T6)."""

import sys
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc_fallback.decide.seen import GENERATIONS, SeenWindow

CEILING = 2**18

STEPS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 12)), max_size=60)
"""Keys and how many slots later each comes."""


def key(number: int) -> bytes:
    return number.to_bytes(8)


@given(slots=st.integers(1, 20), steps=STEPS)
@settings(max_examples=200, deadline=None)
def test_a_copy_is_known_for_the_window_and_no_longer_than_half_more(slots: int, steps: list[tuple[int, int]]) -> None:
    """Within it every copy is known, behind it none, and what was never seen is never known."""
    seen = SeenWindow(slots, ceiling=100)
    at, firsts = 100, dict[int, int]()
    for number, later in steps:
        at += later
        ago = at - firsts[number] if number in firsts else None
        first = seen.first(key(number), at)
        if ago is None or ago > slots + 2 * -(-slots // GENERATIONS):
            assert first
        elif ago <= slots:
            assert not first
        if first:
            firsts[number] = at
    assert len(seen) <= len(firsts)
    assert seen.forgotten == 0


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(-3, 3)), max_size=200), st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_no_more_is_kept_than_the_ceiling_whatever_the_clock_does(steps: list[tuple[int, int]], ceiling: int) -> None:
    """What is given up for it is counted, and nothing else: each meaning is kept, out of date, or counted."""
    seen = SeenWindow(10**6, ceiling=ceiling)
    at = told = 0
    for number, later in steps:
        at += later
        told += seen.first(key(number), at)
        assert len(seen) <= ceiling
        assert len(seen) + seen.forgotten == told


@pytest.mark.parametrize("back", [1, 50, 10**6])
def test_a_clock_that_is_set_back_makes_nothing_forgotten_and_nothing_kept_for_ever(back: int) -> None:
    """A window goes on from the time that the clock shows."""
    seen = SeenWindow(4, ceiling=CEILING)
    for slot in (1000, 1001, 1002):
        assert seen.first(key(slot), slot)
    now = 1002 - back
    assert not any(seen.first(key(slot), now) for slot in (1000, 1001, 1002))
    assert not seen.first(key(1002), now + 4)
    assert all(seen.first(key(slot), now + 6) for slot in (1000, 1001, 1002))
    assert len(seen) == 3


def test_a_clock_that_jumps_ahead_forgets_and_goes_on() -> None:
    """After that copies are known again."""
    seen = SeenWindow(64, ceiling=CEILING)
    assert [seen.first(b"a", slot) for slot in (5, 6, 10**9, 10**9 + 1)] == [True, False, True, False]


def test_long_keys_that_differ_little_are_others() -> None:
    """The whole key counts."""
    seen = SeenWindow(4, ceiling=CEILING)
    keys = [bytes(200), bytes(199) + b"\x01", b"\x01" + bytes(199), bytes(199), b""]
    assert all(seen.first(one, 1) for one in keys)
    assert not any(seen.first(one, 1) for one in keys)


def test_a_whole_network_attests_in_the_memory_of_a_few_slots() -> None:
    """30,000 a slot from three nodes: what is kept stops growing, is small, and a call takes microseconds."""
    seen = SeenWindow(4, ceiling=CEILING)
    kept, begun = [], perf_counter()
    for slot in range(10):
        for _ in range(3):
            for number in range(slot * 30_000, (slot + 1) * 30_000, 10):
                seen.first(key(number), slot)
        kept.append(len(seen))
    assert kept == [3000 * min(count, 5) for count in range(1, 11)]
    assert (perf_counter() - begun) / 90_000 < 50e-6
    parts = [seen._now, *(part for _, part in seen._old)]
    size = sum(sys.getsizeof(part) + sum(map(sys.getsizeof, part)) for part in parts)
    assert size / len(seen) < 200
    assert seen.forgotten == 0
    assert len(seen) * 10 < CEILING


@pytest.mark.parametrize("wrong", [{"slots": 0, "ceiling": 1}, {"slots": 4, "ceiling": 0}])
def test_sizes_are_positive(wrong: dict[str, int]) -> None:
    """Nothing else makes sense."""
    with pytest.raises(ValueError, match="at least 1"):
        SeenWindow(**wrong)
