"""What is told of health: in the order in which it came to be, and never from within the telling of something else."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from vc_fallback.base.signals import Observers, Signal
from vc_fallback.base.types import NodeId

PAUSE = 0.1
"""Seconds in which nodes that pass each other by are waited for."""


class News:
    """What waits to be told.

    An observer may change the list, drain a node or do anything else that makes news. It finds everything as it is by
    then, and what it brought about is told when it has returned. Of a node is told how it is when its turn comes, and
    every signal bears the moment of its turn: what is told later never has an earlier time.

    :param of_node: makes the signal of a node; `None` where there is nothing to tell, or no such node any more.
    :param now: loop time.
    """

    def __init__(
        self, observers: Observers, of_node: Callable[[NodeId], Signal | None], now: Callable[[], float]
    ) -> None:
        self._observers = observers
        self._of_node = of_node
        self._now = now
        self._waiting: deque[Signal | NodeId] = deque()
        self._nodes: set[NodeId] = set()
        self._telling = False
        self._moved: dict[NodeId, None] = {}
        self.due: float | None = None
        """The moment in loop time at which :meth:`look` has something to say, or `None`."""

    def add_soon(self, nodes: Iterable[NodeId], now: float) -> None:
        """Have told in a moment how nodes are that only have another place: when one falls, a hundred others move up.

        In that moment more of them may move, and of each is told once.
        """
        self._moved.update(dict.fromkeys(nodes))
        if self._moved and self.due is None:
            self.due = now + PAUSE

    def look(self, now: float) -> None:
        """Have told what was to be told in a moment, if that is over."""
        if self.due is not None and now >= self.due:
            moved, self._moved, self.due = self._moved, {}, None
            for node_id in moved:
                self.add(node_id)

    def add(self, news: Signal | NodeId) -> None:
        """Have a signal told, or how a node is."""
        if not self._observers:
            return
        if isinstance(news, str):
            if news in self._nodes:
                return
            self._nodes.add(news)
        self._waiting.append(news)

    def tell(self) -> None:
        """Tell everything that waits; does nothing while that is being done already."""
        if self._telling:
            return
        self._telling = True
        try:
            while self._waiting:
                news = self._waiting.popleft()
                if isinstance(news, str):
                    self._nodes.discard(news)
                    signal = self._of_node(news)
                else:
                    signal = replace(news, at=self._now())
                if signal is not None:
                    self._observers(signal)
        finally:
            self._telling = False
