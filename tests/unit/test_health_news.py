"""What is news of a node's health, and what of it is said aloud (H9, N1, N4)."""

import pytest

from tests.health_told import health, recovered, recovering, suspect, unhealthy, well
from vc_fallback.base.health import HealthReason
from vc_fallback.base.health_signals import BranchesDiffer, ClockDoubted, HealthChanged
from vc_fallback.base.signals import GenerationChanged, Signal, Started
from vc_fallback.base.types import NodeId, Root, Slot
from vc_fallback.observe.health_news import HealthNews, News, Turn

A, B = NodeId("a:1"), NodeId("b:1")
ROOTS = {Root(bytes(32)): (A,), Root(b"\x01" * 32): (B,)}


def told(*signals: Signal, observer: HealthNews | None = None) -> list[News]:
    observer = HealthNews() if observer is None else observer
    return [news for signal in signals for news in observer(signal)]


def turns(*signals: Signal) -> list[str]:
    return [news.turn for news in told(*signals)]


def changed(*nodes: NodeId) -> GenerationChanged:
    return GenerationChanged(0.0, 2, (), nodes, (), ())


def test_a_node_that_is_killed_and_restarted_walks_through_its_states() -> None:
    """N1, N4."""
    news = told(
        health(reason=HealthReason.NEW),
        well(),
        suspect(at=10.0),
        unhealthy(at=14.0),
        recovering(at=30.0),
        recovered(at=34.0),
    )
    assert news == [
        News(Turn.SUSPECT, loud=True),
        News(Turn.UNHEALTHY, loud=True),
        News(Turn.RECOVERING, loud=True),
        News(Turn.RECOVERED, loud=True, gone=24.0),
    ]


def test_a_suspicion_that_comes_to_nothing_is_cleared() -> None:
    assert told(well(), suspect(at=10.0), well(at=12.0)) == [
        News(Turn.SUSPECT, loud=True),
        News(Turn.CLEARED, loud=True, gone=2.0),
    ]


def test_a_place_that_moved_and_a_first_check_are_no_news() -> None:
    quiet = [health(reason=HealthReason.NEW), well(), health(rank=2), health(rank=None), health(rank=3, peers=9)]
    assert told(*quiet) == []
    assert told(suspect(), *(health(rank=rank, suspect=True) for rank in (1, 2, 3)))[1:] == []


@pytest.mark.parametrize("first", [suspect(), unhealthy(), recovering()])
def test_a_node_that_is_first_told_of_when_it_is_not_well_is_news(first: HealthChanged) -> None:
    assert len(told(first)) == 1


def test_another_reason_of_an_unhealthy_node_is_news_and_the_same_one_is_not() -> None:
    assert turns(unhealthy(), unhealthy(), unhealthy(reason=HealthReason.BEHIND)) == ["unhealthy", "unhealthy"]


def test_a_node_may_be_suspect_again_as_soon_as_it_has_recovered() -> None:
    assert turns(unhealthy(), recovering(), suspect()) == ["unhealthy", "recovering", "recovered", "suspect"]


def test_optimistic_and_an_execution_layer_that_is_offline_are_news_and_so_is_their_end() -> None:
    assert turns(
        health(optimistic=None, el_offline=None),
        health(optimistic=False, el_offline=False),
        health(optimistic=True),
        health(optimistic=True, el_offline=True),
        # It says nothing: as it was.
        health(optimistic=None, el_offline=None),
        health(optimistic=True, el_offline=True),
        health(optimistic=False, el_offline=True),
        health(),
    ) == ["optimistic", "el_offline", "verified", "el_back"]


def flapping(first: float, every: float, count: int) -> list[Signal]:
    moments = [first + every * number for number in range(count)]
    return [signal for at in moments for signal in (suspect(at=at), well(at=at + 1))]


def test_what_comes_again_and_again_is_loud_the_first_second_fourth_eighth_time() -> None:
    """H9; case 31: the end of what was said aloud is said aloud too."""
    news = told(*flapping(0.0, 20.0, 9))
    assert [item.loud for item in news if item.turn is Turn.SUSPECT] == [
        number in (1, 2, 4, 8) for number in range(1, 10)
    ]
    assert [item.loud for item in news if item.turn is Turn.CLEARED] == [
        number in (1, 2, 4, 8) for number in range(1, 10)
    ]
    flags = told(*(health(at=20.0 * number, optimistic=number % 2 == 0) for number in range(18)))
    assert [item.loud for item in flags[::2]] == [item.loud for item in flags[1::2]]
    assert [item.loud for item in flags[::2]] == [number in (1, 2, 4, 8) for number in range(1, 10)]


def test_after_a_rest_of_five_slots_it_is_the_first_time_again() -> None:
    assert all(item.loud for item in told(*flapping(0.0, 62.0, 9)))
    # Slots of 1 s.
    known = Started(0.0, (), 0.0, 1.0)
    assert all(item.loud for item in told(known, *flapping(0.0, 6.5, 9)))
    assert not all(item.loud for item in told(known, *flapping(0.0, 5.5, 9)))


def test_a_node_that_fails_on_its_way_back_is_gone_all_the_time_and_its_recovery_is_loud() -> None:
    """Nine rounds within one trouble: the last of them was quiet, but the trouble was not."""
    rounds: list[Signal] = [
        signal for number in range(9) for signal in (unhealthy(at=number * 10.0), recovering(at=number * 10.0 + 2))
    ]
    news = told(*rounds, recovered(at=100.0))
    assert [item.loud for item in news if item.turn is Turn.UNHEALTHY] == [
        number in (1, 2, 4, 8) for number in range(1, 10)
    ]
    # A recovery that begins is as loud as the failure before it.
    assert [item.loud for item in news[1::2]] == [item.loud for item in news[:-1:2]]
    assert news[-1] == News(Turn.RECOVERED, loud=True, gone=100.0)


def test_a_suspicion_does_not_make_an_old_trouble_of_another_kind_a_recent_one() -> None:
    observer = HealthNews()
    told(*(unhealthy(at=0.0), recovered(at=1.0)) * 3, observer=observer)
    told(suspect(at=1000.0), well(at=1001.0), observer=observer)
    assert [item.loud for item in told(unhealthy(at=1002.0), observer=observer)] == [True]


def test_nodes_are_counted_each_by_itself() -> None:
    observer = HealthNews()
    told(*flapping(0.0, 20.0, 2), observer=observer)
    assert told(suspect("b:1", at=40.0), observer=observer) == [News(Turn.SUSPECT, loud=True)]
    assert told(suspect("a:1", at=40.0), observer=observer) == [News(Turn.SUSPECT, loud=False)]


def test_a_node_that_left_begins_anew() -> None:
    observer = HealthNews()
    told(*flapping(0.0, 20.0, 2), unhealthy(at=40.0), health(at=40.0, optimistic=True), changed(A), observer=observer)
    assert told(well(at=41.0), suspect(at=41.0), observer=observer) == [News(Turn.SUSPECT, loud=True)]
    told(GenerationChanged(0.0, 2, (), (), (A,), ()), observer=observer)
    assert told(well(at=41.0), suspect(at=41.0), observer=observer) == [News(Turn.SUSPECT, loud=True)]


def test_a_fork_that_goes_on_is_said_at_slots_one_two_four_and_eight() -> None:
    """N3."""
    observer = HealthNews()
    loud = [observer.branches(BranchesDiffer(12.0 * slot, Slot(slot), None, "", ROOTS)) for slot in range(1, 10)]
    assert loud == [slot in (1, 2, 4, 8) for slot in range(1, 10)]
    # One node is blamed beside it, and acquitted; the fork is over and comes again much later.
    assert observer.branches(BranchesDiffer(120.0, Slot(10), A, "2 of 3", {}))
    assert observer.branches(BranchesDiffer(130.0, Slot(11), A, "", {}))
    assert observer.branches(BranchesDiffer(140.0, None, None, "", {}))
    assert not observer.branches(BranchesDiffer(141.0, Slot(11), None, "", ROOTS))
    assert not observer.branches(BranchesDiffer(142.0, None, None, "", {}))
    assert observer.branches(BranchesDiffer(300.0, Slot(30), None, "", ROOTS))


def test_a_doubted_clock_is_thinned_out_over_epochs() -> None:
    """N8: a node that is later than the others in 8 of 16 slots, then 7, then 8, is no news each time."""
    observer = HealthNews()
    loud = [observer.clock(ClockDoubted(120.0 * number, A, "late")) for number in range(1, 10)]
    assert loud == [number in (1, 2, 4, 8) for number in range(1, 10)]
    assert observer.clock(ClockDoubted(1080.0, None, "slow"))
    assert observer.clock(ClockDoubted(5000.0, A, "late"))
    # The end is said where the doubt was: the first of a row, not the third.
    assert observer.clock(ClockDoubted(5010.0, A, ""))
    assert [observer.clock(ClockDoubted(5020.0 + 10 * number, A, "late" if number % 2 else "")) for number in (1, 3)]
    assert observer.clock(ClockDoubted(5060.0, A, "")) is False
