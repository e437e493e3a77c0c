"""What a node is asked for after its refusals (T4; cases 4 to 7; scenario 17)."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc_fallback.base.backoff import Backoff, BackoffPolicy
from vc_fallback.decide.topic_requests import TopicRequests

POLICY = BackoffPolicy(first=1.0, factor=2.0, cap=30.0, jitter=0.0)


def plan() -> TopicRequests:
    return TopicRequests(POLICY, Backoff)


def settle(
    requests: TopicRequests, wanted: set[str], known: set[str], words: Callable[[set[str]], str], now: float
) -> int:
    """Ask until the node takes what it is asked for, and nothing else is due; return the number of requests."""
    asked: frozenset[str] = frozenset()
    for count in range(1000):
        topics = requests.next(wanted, now)
        assert topics <= wanted
        if not topics or topics == asked:
            return count
        if topics <= known:
            requests.accept(topics, now)
            asked = topics
        else:
            requests.refuse(topics, words(set(topics - known)), now)
    raise AssertionError("it never ends")


def nameless(_: set[str]) -> str:
    return "400 invalid query string: topics: Matching variant not found"


def naming(unknown: set[str]) -> str:
    return f"400 Invalid topic: {min(unknown)}"


@pytest.mark.parametrize("words", [nameless, naming])
def test_one_unknown_topic_costs_the_others_nothing(words: Callable[[set[str]], str]) -> None:
    """Cases 6 and 7: whether the node names it or not, a few requests later all others are carried."""
    requests = plan()
    wanted = {"block", "finalized_checkpoint", "voluntary_exit", "payload_attributes", "fast_confirmation"}
    count = settle(requests, wanted, wanted - {"fast_confirmation"}, words, 0.0)
    assert count <= 6
    assert requests.next(wanted, 0.5) == wanted - {"fast_confirmation"}
    lack = requests.lack("fast_confirmation")
    assert lack is not None
    assert lack.refused
    assert lack.words.startswith("400")
    assert requests.refusals().keys() == {"fast_confirmation"}


def test_a_refused_topic_goes_on_to_be_wanted() -> None:
    """T4: it is asked for beside the others after 1, 2, 4, … 30 s, and the node may take it one day."""
    requests, wanted = plan(), {"block", "new"}
    now = 0.0
    settle(requests, wanted, {"block"}, nameless, now)
    waits = []
    for _ in range(7):
        due = requests.next_try(wanted)
        assert due is not None
        waits.append(due - now)
        assert requests.next(wanted, due - 0.01) == {"block"}
        now = due
        assert requests.next(wanted, now) == wanted
        requests.refuse(wanted, nameless(set()), now)
        assert requests.next(wanted, now) == {"block"}
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    now += 30
    requests.accept(requests.next(wanted, now), now)
    assert requests.next(wanted, now) == wanted
    assert not requests.reduced
    assert requests.next_try(wanted) is None


def test_several_refused_topics_are_tried_one_at_a_time() -> None:
    """T4: so each has its own answer."""
    requests, wanted = plan(), {"block", "x", "y"}
    settle(requests, wanted, {"block"}, nameless, 0.0)
    tried = requests.next(wanted, 5.0)
    assert len(tried) == 2
    requests.refuse(tried, nameless(set()), 5.0)
    assert requests.next(wanted, 5.0) == wanted - (tried - {"block"})


def test_what_a_new_topic_does_touches_nothing_that_is_known() -> None:
    """T1: a topic that is wanted later and refused is doubted alone, in one request."""
    requests = plan()
    settle(requests, {"block", "voluntary_exit"}, {"block", "voluntary_exit"}, nameless, 0.0)
    wanted = {"block", "voluntary_exit", "new"}
    requests.refuse(requests.next(wanted, 1.0), nameless(set()), 1.0)
    assert requests.next(wanted, 1.0) == {"block", "voluntary_exit"}
    assert requests.refusals().keys() == {"new"}


def test_words_that_name_every_topic_name_none() -> None:
    """A node may list what it knows in its error: all that was asked for is in it, so the set is halved."""
    requests = plan()
    requests.refuse({"block", "voluntary_exit"}, "400 one of: block, voluntary_exit, head", 0.0)
    assert not requests.refusals()
    assert requests.next({"block", "voluntary_exit"}, 0.0) == {"block"}


def test_part_of_a_name_is_no_name() -> None:
    """`block` is in `block_gossip`."""
    requests = plan()
    requests.refuse({"block", "block_gossip"}, "400 Invalid topic: block_gossip", 0.0)
    assert requests.next({"block", "block_gossip"}, 0.0) == {"block"}


def test_another_version_is_asked_for_everything() -> None:
    """Per node and version: what an older one refused the new one may know."""
    requests, wanted = plan(), {"block", "new"}
    requests.seen_version("a/1")
    settle(requests, wanted, {"block"}, nameless, 0.0)
    requests.seen_version("a/1")
    assert requests.next(wanted, 0.0) == {"block"}
    requests.seen_version("a/2")
    assert requests.next(wanted, 0.0) == wanted


def test_a_topic_that_is_taken_and_then_refused_again_and_again_waits_longer_each_time() -> None:
    """Case 4: a node may answer 200 and refuse in its first event; one that went well for long begins anew."""
    requests, wanted, now = plan(), {"new"}, 0.0
    waits = []
    for _ in range(4):
        requests.accept(wanted, now)
        requests.give_up("new", "nothing can be read", now, refused=False)
        due = requests.next_try(wanted)
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits == [1, 2, 4, 8]
    requests.accept(wanted, now)
    requests.give_up("new", "nothing can be read", now + 30, refused=False)
    assert requests.next_try(wanted) == now + 31


TOPICS = [f"t{number}" for number in range(12)]


@settings(max_examples=60)
@given(
    st.sets(st.sampled_from(TOPICS), min_size=1), st.sets(st.sampled_from(TOPICS)), st.sampled_from((nameless, naming))
)
def test_what_the_node_knows_is_found(wanted: set[str], known: set[str], words: Callable[[set[str]], str]) -> None:
    """For any topics: all that it knows is carried, all else refused, by a bounded number of requests (rule 6)."""
    requests = plan()
    count = settle(requests, wanted, known, words, 0.0)
    unknown = wanted - known
    assert requests.next(wanted, 0.0) == wanted & known
    assert requests.refusals().keys() == unknown
    assert count <= 1 + 2 * len(wanted)
    # A second look costs nothing.
    assert settle(requests, wanted, known, words, 0.0) <= 1


@pytest.mark.parametrize("before", [True, False], ids=["taken before", "new"])
def test_words_that_list_what_is_known_cost_only_what_is_not(before: bool) -> None:
    """Case 6: the usual words of a decoder name what it would have taken, too."""
    requests = plan()
    known = {"block", "finalized_checkpoint", "voluntary_exit"}
    if before:
        requests.accept(known, 0.0)
    words = "400 unknown variant `weird`, expected one of `head`, `block`, `voluntary_exit`"
    assert requests.refuse({*known, "weird"}, words, 1.0) == {"weird"}
    assert requests.next({*known, "weird"}, 1.5) == known


def test_words_that_list_topics_in_another_way_cost_none_that_was_taken() -> None:
    """What the node has taken it knows."""
    requests = plan()
    requests.accept({"block"}, 0.0)
    assert requests.refuse({"block", "weird"}, "400 weird is none of block, head", 1.0) == {"weird"}


def test_what_is_wanted_no_more_is_forgotten_where_it_is_much() -> None:
    """Rule 6: names without end leave nothing behind."""
    requests = plan()
    for number in range(1000):
        wanted = {"block", f"weird{number}"}
        requests.next(wanted, float(number))
        requests.refuse(wanted, f"400 Invalid topic: weird{number}", float(number))
    assert len(requests.refusals()) < 200
    assert requests.next({"block"}, 1000.0) == {"block"}
