"""The order and the times in which news of health are told."""

from itertools import count

from vc_fallback.base.health_signals import AllUnhealthy, DutiesMoved
from vc_fallback.base.signals import Observers, Signal
from vc_fallback.base.types import NodeId
from vc_fallback.health.news import News


def test_what_is_told_later_never_has_an_earlier_time() -> None:
    """N9: a program that reads of a failover and its cause finds the cause first by time, too."""
    told: list[Signal] = []
    clock = count(1)
    news = News(Observers([told.append]), lambda _: AllUnhealthy(next(clock), begins=True), lambda: next(clock))
    news.add(NodeId("a"))
    news.add(DutiesMoved(0.0, "failover", NodeId("a"), NodeId("b"), "a: gone"))
    news.add(NodeId("b"))
    news.tell()
    assert [type(signal) for signal in told] == [AllUnhealthy, DutiesMoved, AllUnhealthy]
    assert [signal.at for signal in told] == [1, 2, 3]
