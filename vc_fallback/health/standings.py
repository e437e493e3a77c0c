"""The ranking of all nodes, and which of them has the duties, as of now (N6, N9, N10)."""

from collections.abc import Iterable

from vc_fallback.base.health_signals import AllUnhealthy, DutiesMoved
from vc_fallback.base.types import NodeId
from vc_fallback.decide.failover import Failover, FailoverPolicy
from vc_fallback.decide.rank import RankFacts, Ranking, rank
from vc_fallback.health.news import News


class Standings:
    """Remade with every change of what they depend on; of whoever has another place, and of duties that move, is told.

    Nothing is told here before :meth:`News.tell`: the caller does that when all is done.
    """

    def __init__(self, news: News) -> None:
        self.ranking: Ranking = rank(())
        self.failover = Failover(FailoverPolicy())
        self._news = news

    @property
    def order(self) -> tuple[NodeId, ...]:
        """The nodes in the order in which to ask them: the one that has the duties first."""
        return self.failover.order(self.ranking)

    def change(self, facts: RankFacts, now: float) -> None:
        """Take other facts of one node."""
        self._become(self.ranking.changed(facts), now)

    def remake(self, facts: Iterable[RankFacts], now: float) -> None:
        """Take the facts of all nodes."""
        self._become(rank(facts), now)

    def look(self, now: float) -> None:
        """See whether time alone moves duties."""
        self._become(self.ranking, now)

    def _become(self, ranking: Ranking, now: float) -> None:
        before, self.ranking = self.ranking.numbers, ranking
        if ranking.numbers is not before:
            moved = [node_id for node_id, number in ranking.numbers.items() if before.get(node_id) != number]
            self._news.add_soon(moved, now)
        alarm = self.failover.all_unhealthy
        move = self.failover.look(now, ranking)
        if move is not None:
            self._news.add(DutiesMoved(now, str(move.kind), move.source, move.target, move.reason))
        if self.failover.all_unhealthy is not alarm:
            self._news.add(AllUnhealthy(now, self.failover.all_unhealthy))
