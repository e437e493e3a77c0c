"""How far nodes are behind the tip (N5; scenarios 1, 3, 5)."""

import random

import pytest

from vc_fallback.base.types import NodeId, Slot
from vc_fallback.decide.tip import tip
from vc_fallback.decide.tip_consensus import DEMOTED, MAX_LAG, Heights, by_own_word

A, B, C, D = NAMES = [NodeId(name) for name in "abcd"]


def heights(*slots: int, served: bool = True, settle: float = 0.0) -> Heights:
    known = Heights(settle)
    for node_id, slot in zip(NAMES, slots, strict=False):
        known.saw(node_id, Slot(slot), 0.0, served=served)
    return known


@pytest.mark.parametrize(
    ("slots", "wall", "top", "lags"),
    [
        pytest.param((1000, 1002, 1002), 1002, 1002, [2, 0, 0], id="1"),
        pytest.param((990, 1000, 1000), 1000, 1000, [10, 0, 0], id="3"),
        pytest.param((1000, 1005, 998), 1001, 1000, [0, None, 2], id="5: 1005 is discarded, 1000 is served"),
        pytest.param((1003, 1002, 998), 1001, 1002, [None, 0, 4], id="one slot beyond the clock is not discarded"),
        pytest.param((1000,), 1000, 1000, [0], id="one: its own"),
        pytest.param((900,), 1000, 900, [0], id="one: however far behind the clock"),
        pytest.param((1000, 990), 1000, 1000, [0, 10], id="two: the higher"),
        pytest.param((1001, 1000, 990), 1000, 1000, [0, 0, 10], id="three: the second highest"),
        pytest.param((999, 900, 899), 1000, 900, [0, 0, 1], id="one of three ahead does not move it"),
        pytest.param((1002, 1003), 1000, None, [None, None], id="all beyond the clock: no tip"),
        pytest.param((0, 0, 2**64 - 1), 5, 0, [0, 0, None], id="0 and the largest number"),
    ],
)
def test_the_tip_and_the_lags(slots: tuple[int, ...], wall: int, top: int | None, lags: list[int | None]) -> None:
    """N5, scenarios 1, 3 and 5."""
    known = heights(*slots)
    assert known.tip(0.0, Slot(wall)) == top
    assert [known.lag(node_id, 0.0, Slot(wall)) for node_id in NAMES[: len(slots)]] == lags
    assert known.lag(NodeId("unknown"), 0.0, Slot(wall)) is None
    assert (MAX_LAG, DEMOTED) == (8, 2)


@pytest.mark.parametrize(
    ("claimed", "served", "top"),
    [
        pytest.param([1000, 998], [1000, 998], 1000, id="5: the higher one, its header is served"),
        pytest.param([1000, 998], [998], 998, id="5: it is not"),
        pytest.param([1000, 998], [], 998, id="neither"),
        pytest.param([1000, 998], [999, 998], 999, id="of the higher one the header it has served"),
        pytest.param([1000, 998], [990], 998, id="an older header than the other's height"),
        pytest.param([1000], [], 1000, id="one: its own, whatever it serves"),
        pytest.param([1000, 999, 998], [], 999, id="three: their number is enough"),
    ],
)
def test_of_two_the_higher_one_counts_if_its_node_serves_the_header(
    claimed: list[int], served: list[int], top: int
) -> None:
    """N5, scenario 5: the wall clock is at 1001."""
    assert tip(map(Slot, claimed), Slot(1001), map(Slot, served)) == top


def test_a_number_in_node_syncing_is_no_header() -> None:
    """N5: of two nodes neither can pull the tip up by a number alone."""
    known = heights(998, 998)
    known.saw(A, Slot(1000), 1.0, served=False)
    assert known.tip(1.0, Slot(1000)) == 998
    known.saw(A, Slot(1000), 2.0, served=True)
    assert known.tip(2.0, Slot(1000)) == 1000
    known.saw(A, Slot(1000), 3.0, served=False)
    assert known.tip(3.0, Slot(1000)) == 1000, "served once is served"
    known.saw(A, Slot(900), 4.0, served=False)
    assert known.tip(4.0, Slot(1000)) == 998, "it went back: that header is no longer its head"


def test_where_only_numbers_are_known_they_are_enough() -> None:
    """N5: three nodes whose streams are all silent."""
    known = heights(998, 999, 997, served=False)
    known.saw(C, Slot(1000), 1.0, served=False)
    assert known.tip(1.0, Slot(1000)) == 999
    assert known.lag(A, 1.0, Slot(1000)) == 1


def test_the_latest_head_counts_not_the_highest() -> None:
    """H7: a node that goes back is behind."""
    known = heights(1000, 1000, 1000)
    known.saw(A, Slot(990), 1.0, served=True)
    assert known.slot(A) == 990
    assert known.lag(A, 1.0, Slot(1000)) == 10


def test_a_head_counts_against_others_when_it_had_time_to_reach_them() -> None:
    """N5, N8: after a missed slot the next head is two further, and late arrival alone is normal propagation."""
    known = heights(100, 100, 100, settle=3.0)
    known.saw(A, Slot(102), 24.0, served=True)
    known.saw(B, Slot(102), 24.1, served=True)
    assert known.lag(C, 24.2, Slot(102)) == 0
    assert known.lag(C, 26.9, Slot(102)) == 0
    assert known.lag(C, 27.1, Slot(102)) == 2
    known.saw(C, Slot(102), 27.2, served=True)
    assert known.lag(C, 27.2, Slot(102)) == 0, "its own head counts at once"


def test_a_burst_leaves_the_last_height() -> None:
    """H13, rule 6: of heads that come at once a few are kept."""
    known = heights(100, 100, 100, settle=3.0)
    for slot in range(101, 200):
        known.saw(A, Slot(slot), 10.0, served=True)
        known.saw(B, Slot(slot), 10.0, served=True)
    assert known.slot(A) == 199
    assert known.tip(13.0, Slot(200)) == 199


def test_a_burst_moves_the_tip_that_was_known_before_it() -> None:
    """N5: what has settled of a node is dropped where more than eight heights come, and the tip is found anew."""
    known, fresh = heights(100, settle=3.0), heights(100, settle=3.0)
    assert known.tip(5.0, Slot(200)) == 100
    for number in range(12):
        for one in (known, fresh):
            one.saw(A, Slot(101 + number), 10.0, served=True)
    assert known.tip(10.0, Slot(200)) == fresh.tip(10.0, Slot(200)) == 105


def test_who_is_forgotten_has_no_height() -> None:
    """N5: what a node said that says nothing any more is no height now."""
    known = heights(1000, 900, 900)
    assert known.tip(0.0, Slot(1000)) == 900
    known.forget(B)
    known.forget(C)
    assert known.tip(0.0, Slot(1000)) == 1000
    assert known.slot(B) is None
    assert Heights(0.0).tip(0.0, Slot(1)) is None


def test_heads_beyond_the_clock_are_the_fault_of_few_nodes_or_of_the_clock() -> None:
    """N5, N8: the clock alone demotes nobody."""

    def beyond(*slots: int) -> str:
        known = heights(*slots)
        return "".join(node_id for node_id in NAMES if known.beyond_clock(node_id, Slot(1001)))

    assert beyond(1005, 1000, 998) == "a"
    assert beyond(1005, 1006, 998) == ""
    assert beyond(1005, 1000) == ""
    assert beyond(1003, 1000, 998) == "a"
    assert beyond(1002, 1000, 998) == ""
    assert beyond() == ""


@pytest.mark.parametrize("seed", range(20))
def test_a_tip_that_is_kept_is_the_one_that_would_be_found(seed: int) -> None:
    """N5: whatever is shown when, and whoever is forgotten; asked for at every step, or seldom."""
    dice = random.Random(seed)
    often, now, wall = Heights(3.0), 0.0, 100
    history: list[tuple[NodeId, Slot, float, bool] | NodeId] = []
    for _ in range(300):
        now += dice.choice([0.0, 0.01, 0.7, 3.0, 12.0])
        wall += dice.random() < 0.2
        name = dice.choice(NAMES)
        if dice.random() < 0.03:
            often.forget(name)
            history.append(name)
        elif dice.random() < 0.8:
            shown = (name, Slot(wall - dice.choice([-3, -1, 0, 0, 0, 1, 1, 9])), now, dice.random() < 0.7)
            often.saw(*shown[:3], served=shown[3])
            history.append(shown)
        if dice.random() < 0.7:
            anew = Heights(3.0)
            for step in history:
                if isinstance(step, tuple):
                    anew.saw(*step[:3], served=step[3])
                else:
                    anew.forget(step)
            assert often.tip(now, Slot(wall)) == anew.tip(now, Slot(wall))


def test_missed_slots_warn_and_put_nobody_behind() -> None:
    """N5: seven missed slots on every node."""
    known = heights(1000, 1000, 1000)
    assert known.behind_clock(0.0, Slot(1007)) == 7
    assert known.lag(A, 0.0, Slot(1007)) == 0
    assert known.behind_clock(0.0, Slot(999)) == 0
    assert Heights(0.0).behind_clock(0.0, Slot(1007)) == 0


@pytest.mark.parametrize(
    ("head", "distance", "latest", "behind"),
    [
        pytest.param(5127470, 178, 5127470, 178, id="29: as the case has it"),
        pytest.param(1000, 2, 1000, 2, id="as it says"),
        pytest.param(1000, 2, 1001, 1, id="it has gone on since"),
        pytest.param(1000, 2, 1005, 0, id="it has caught up"),
        pytest.param(1000, 2, None, 2, id="no head but the check's"),
        pytest.param(1000, 2, 990, 2, id="a reorg"),
        pytest.param(0, 2**64 - 1, 0, 2**64 - 1, id="the largest number"),
    ],
)
def test_what_a_node_says_of_itself_is_measured_by_the_newest_head(
    head: int, distance: int, latest: int | None, behind: int
) -> None:
    """N6, case 29: the claim of a check is not held against heads that came after it."""
    assert by_own_word(Slot(head), distance, None if latest is None else Slot(latest)) == behind
