"""What nodes were told ahead of duties, kept for those that come back without it (Q14)."""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from vc_fallback.base.types import Sourced
from vc_fallback.node import routes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.routes import Route

MOST = 2**20
"""Items of one kind that are kept; the oldest go first (rule 6)."""

CHUNK = 500
"""Items of one request when they are sent again: what was told in many calls must fit into what nodes take in one."""


class Preparation(StrEnum):
    """What a node can be told ahead of duties, in the order in which one is told that comes back: whom a block pays is
    worth the most, and registrations go on to relays, which takes long."""

    PROPOSERS = "fee recipients of proposers"
    PREFERENCES = "proposer preferences"
    COMMITTEES = "committee subscriptions"
    SYNC_COMMITTEES = "sync committee subscriptions"
    REGISTRATIONS = "validator registrations"


_RANKS = {preparation: rank for rank, preparation in enumerate(Preparation)}


Tell = Callable[[BeaconNode, Sequence[Any], float], Awaitable[Sourced[Any]]]
"""Tells one node a list of items, within so many seconds."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Items that one request may carry together.

    :param version: the fork that they are of, where the request names it.
    :param forms: whether they are there as SSZ, and as JSON, where both may be: no list can be made of others.
    """

    preparation: Preparation
    route: Route
    version: str = ""
    forms: tuple[bool, bool] = (False, False)

    @property
    def rank(self) -> int:
        """Its place in the order of telling, the first 0."""
        return _RANKS[self.preparation]

    @property
    def subscribes(self) -> bool:
        """Whether it is a subscription, of which the configuration may want one node alone to know (Q5)."""
        return self.preparation in (Preparation.COMMITTEES, Preparation.SYNC_COMMITTEES)


PROPOSERS = Kind(Preparation.PROPOSERS, routes.PREPARE_PROPOSERS)
"""Whom blocks pay."""


class Preparations:
    """The newest of what was told, until it expires. Moments are loop time in seconds."""

    def __init__(self) -> None:
        self._kept: dict[Kind, dict[Hashable, tuple[Any, float]]] = {}
        self._tell: dict[Kind, Tell] = {}

    def remember(self, kind: Kind, tell: Tell, items: Iterable[tuple[Hashable, Any, float]]) -> None:
        """Keep items by their keys, each until a moment; one with the key of another takes its place."""
        kept = self._kept.setdefault(kind, {})
        self._tell[kind] = tell
        for key, item, expires in items:
            kept.pop(key, None)
            kept[key] = (item, expires)
        while len(kept) > MOST:
            del kept[next(iter(kept))]

    def expire(self, now: float) -> None:
        """Drop what is over."""
        for kind, kept in [*self._kept.items()]:
            for key in [key for key, (_, expires) in kept.items() if expires <= now]:
                del kept[key]
            if not kept:
                del self._kept[kind], self._tell[kind]

    def count(self, kind: Preparation) -> int:
        """Return how many items of a kind are kept."""
        return sum(len(kept) for of, kept in self._kept.items() if of.preparation is kind)

    def kinds(self, now: float) -> list[Kind]:
        """Return of what kinds something is kept."""
        self.expire(now)
        return [*self._kept]

    def overtaken(self, kind: Kind, items: Iterable[tuple[Hashable, Any, float]]) -> bool:
        """Whether there is something newer in the place of all of these."""
        kept = self._kept.get(kind, {})
        return all(key in kept and kept[key][0] is not item for key, item, _ in items)

    def requests(self, kind: Kind) -> list[tuple[Tell, list[Any]]]:
        """Return what a node has to be told of a kind that knows nothing, in requests of some hundred items."""
        items = iter([item for item, _ in self._kept.get(kind, {}).values()])
        requests = []
        while chunk := list(islice(items, CHUNK)):
            requests.append((self._tell[kind], chunk))
        return requests
