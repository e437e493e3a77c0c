"""What nodes were told, kept for those that come back without it (Q14, rule 6)."""

from typing import Any

import pytest

from vc_fallback.base.types import Sourced
from vc_fallback.node import routes
from vc_fallback.node.client import BeaconNode
from vc_fallback.routing import preparations
from vc_fallback.routing.preparations import CHUNK, Kind, Preparation, Preparations

PROPOSERS = Kind(Preparation.PROPOSERS, routes.PREPARE_PROPOSERS)
COMMITTEES = Kind(Preparation.COMMITTEES, routes.SUBSCRIBE_COMMITTEES)


async def tell(node: BeaconNode, items: Any, timeout: float) -> Sourced[Any]:
    raise AssertionError


def items(kept: Preparations, kind: Kind) -> list[Any]:
    return [item for _, chunk in kept.requests(kind) for item in chunk]


def test_the_newest_of_each_is_kept_until_it_is_over() -> None:
    kept = Preparations()
    kept.remember(PROPOSERS, tell, [(1, "old", 10.0), (2, "two", 20.0)])
    kept.remember(PROPOSERS, tell, [(1, "new", 30.0)])
    kept.remember(COMMITTEES, tell, [(1, "seat", 5.0)])
    assert items(kept, PROPOSERS) == ["two", "new"]
    assert kept.kinds(5.0) == [PROPOSERS]
    assert kept.count(Preparation.COMMITTEES) == 0
    assert kept.kinds(20.0) == [PROPOSERS]
    assert items(kept, PROPOSERS) == ["new"]
    assert kept.kinds(30.0) == []
    assert kept.requests(PROPOSERS) == []


def test_what_was_told_meanwhile_is_seen_also_where_all_was_over_before() -> None:
    kept = Preparations()
    assert kept.news(PROPOSERS) == 0
    kept.remember(PROPOSERS, tell, [(1, "one", 10.0)])
    first = kept.news(PROPOSERS)
    kept.remember(COMMITTEES, tell, [(1, "seat", 10.0)])
    assert kept.news(PROPOSERS) == first
    kept.remember(PROPOSERS, tell, [(1, "one", 10.0)])
    second = kept.news(PROPOSERS)
    kept.expire(10.0)
    assert kept.news(PROPOSERS) == 0
    kept.remember(PROPOSERS, tell, [(1, "one", 20.0)])
    assert len({0, first, second, kept.news(PROPOSERS)}) == 4


def test_many_are_told_in_requests_of_some_hundred() -> None:
    kept = Preparations()
    kept.remember(PROPOSERS, tell, [(index, index, 10.0) for index in range(2 * CHUNK + 1)])
    assert [len(chunk) for _, chunk in kept.requests(PROPOSERS)] == [CHUNK, CHUNK, 1]


def test_no_more_is_kept_than_the_bound_and_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparations, "MOST", 3)
    kept = Preparations()
    kept.remember(PROPOSERS, tell, [(index, index, 10.0) for index in range(5)])
    assert items(kept, PROPOSERS) == [2, 3, 4]
