"""How long a better answer is waited for, once there is one that can be taken (Q8, Q14b)."""

from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

import anyio

from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.routing.outcomes import Doubt, RequestFailed

T = TypeVar("T")


class Found(NamedTuple, Generic[T]):
    """An answer, and what is to be said against it; nothing where it is as good as it can be."""

    answer: Sourced[T]
    words: str


class Patience(Generic[T]):
    """Holds the answers of one request that are usable, though a better one may come.

    A race of its own accord goes on until somebody wins or all are through: one silent node would hold back an answer
    that is old, but can be signed, until the end of the slot. And an answer is kept here while its node is asked once
    more, so that it is not lost with the second question.

    :param seconds: from the first usable answer until the best of these is taken.
    :param worth: compares usable answers; of equals the one that came first is taken.
    :param scope: a new one, where somebody has one that costs less.
    """

    def __init__(
        self,
        clock: Clock,
        seconds: float,
        worth: Callable[[Found[T]], float] = lambda _: 0.0,
        scope: anyio.CancelScope | None = None,
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._worth = worth
        self._scope = anyio.CancelScope() if scope is None else scope
        self._held: dict[NodeId, Found[T]] = {}
        self._won: Found[T] | None = None

    def hold(self, answer: Sourced[T], words: str) -> None:
        """Keep an answer that is to be taken where nothing better comes."""
        if not self._held:
            self._scope.deadline = self._clock.now() + self._seconds
        self._held[answer.node_id] = Found(answer, words)

    def judge(self, answer: Sourced[T], words: str) -> Doubt | None:
        """Say of an answer that can be taken whether it wins; with words against it, it is kept."""
        if not words:
            if self._won is None:
                self._won = Found(answer, "")
            return None
        self.hold(answer, words)
        return Doubt(words, usable=True)

    async def run(self, race: Callable[[], Awaitable[Sourced[T]]]) -> Found[T]:
        """Run the race, in which every answer that can be taken is judged here.

        :raises Exception: what the race raised, where no answer can be taken.
        """
        try:
            with self._scope:
                answer = await race()
                if self._won is None and not self._held:
                    return Found(answer, "")
        except (RequestFailed, NodeError):
            if self._won is None and not self._held:
                raise
        return self._won or max(self._held.values(), key=self._worth)
