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


def test_a_call_is_overtaken_where_something_newer_is_in_the_place_of_all_of_it() -> None:
    kept = Preparations()
    first: list[tuple[int, Any, float]] = [(1, "one", 10.0), (2, "two", 10.0)]
    kept.remember(PROPOSERS, tell, first)
    assert not kept.overtaken(PROPOSERS, first)
    kept.remember(PROPOSERS, tell, [(1, "newer", 10.0)])
    assert not kept.overtaken(PROPOSERS, first)
    kept.remember(PROPOSERS, tell, [(2, "newer", 10.0)])
    assert kept.overtaken(PROPOSERS, first)
    kept.expire(10.0)
    assert not kept.overtaken(PROPOSERS, first)


def test_many_are_told_in_requests_of_some_hundred() -> None:
    kept = Preparations()
    kept.remember(PROPOSERS, tell, [(index, index, 10.0) for index in range(2 * CHUNK + 1)])
    assert [len(chunk) for _, chunk in kept.requests(PROPOSERS)] == [CHUNK, CHUNK, 1]


def test_no_more_is_kept_than_the_bound_and_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparations, "MOST", 3)
    kept = Preparations()
    kept.remember(PROPOSERS, tell, [(index, index, 10.0) for index in range(5)])
    assert items(kept, PROPOSERS) == [2, 3, 4]
