"""What attempts came to, and what is raised where no node gave what was asked (Q3, Q4, rules 9 and 11)."""

import logging
import math
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from vc_fallback.base.errors import FallbackError, NodeError
from vc_fallback.base.redact import printable
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.node.failures import Closed, NotFound, Quarantined, UnsupportedEndpoint

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MOST_SHOWN = 8
"""Nodes that an error names, each with its reason (rule 6)."""
_LONGEST_REASON = 160
_NO_MOMENT = 60.0
"""Seconds: an end before that in loop time, and as long ago, was meant as a time from now."""

NO_SAY = (Closed, Quarantined, UnsupportedEndpoint)
"""Failures of nodes that were not, or cannot be, asked this: they do not stand against what the others say."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why an answer does not win: it is empty, optimistic, or older than what is known.

    :param words: the reason, as in `optimistic`; shown in errors, cut and redacted there.
    :param usable: whether it is taken after all once nothing better can come (Q8, case 50).
    """

    words: str
    usable: bool = False


class Attempt(NamedTuple, Generic[T]):
    """What asking one node once came to. Moments are loop time in seconds.

    Without an answer and without an error it was given up: another was faster, the time was over, or the caller left.
    """

    node_id: NodeId
    started: float
    ended: float
    answer: Sourced[T] | None = None
    error: NodeError | None = None
    doubt: Doubt | None = None

    @property
    def duration(self) -> float:
        """Seconds that it lasted."""
        return self.ended - self.started

    @property
    def given_up(self) -> bool:
        """Whether its end was not waited for."""
        return self.answer is None and self.error is None

    @property
    def semantic(self) -> bool:
        """Whether the node is well and says no, which health does not count (rule 10)."""
        return self.error is not None and not self.error.blames_node

    @property
    def words(self) -> str:
        """What came of it, in a few words."""
        if self.error is not None:
            return self.error.words
        if self.answer is None:
            return f"no answer after {self.duration:.3g} s"
        return "answered" if self.doubt is None else f"not taken: {printable(self.doubt.words)}"


Op = Callable[[NodeId], Awaitable[Sourced[T]]]
"""Asks one node; what it raises but :exc:`~vc_fallback.NodeError` is the caller's own, and comes out unchanged."""

Accept = Callable[[Sourced[T]], Doubt | None]
"""Looks at an answer; `None` lets it win."""

Report = Callable[[Attempt[T]], None]
"""Is told of every attempt when it ends, those given up included, which a digest of latencies needs (N3)."""


class RequestFailed(FallbackError):
    """No node gave what was asked. `attempts` are the last of each node that was asked, the best node's first."""

    def __init__(self, what: str, problem: str, attempts: Sequence[Attempt[Any]] = ()) -> None:
        super().__init__(f"{what}: {problem}")
        self.what = what
        self.attempts = tuple(attempts)

    @property
    def errors(self) -> dict[NodeId, NodeError]:
        """The last error of every node that had one."""
        return {attempt.node_id: attempt.error for attempt in self.attempts if attempt.error is not None}


class NotSent(NodeError):
    """Nothing was sent to the node, for a reason that is not the node's."""

    blames_node: ClassVar[bool] = False


class NoCandidates(RequestFailed):
    """There is no node to ask."""


class AllNodesFailed(RequestFailed):
    """Every node was asked, and none gave an answer that can be taken."""


class DeadlineExceeded(RequestFailed):
    """The time was over before an answer came that can be taken; of what was asked late it may have been too little."""


class QuorumNotReached(RequestFailed):
    """Fewer nodes than the threshold gave the same value (rule 9).

    :param votes: who gave which value, by its key, the most votes first.
    """

    def __init__(
        self,
        what: str,
        threshold: int,
        votes: Mapping[Hashable, tuple[NodeId, ...]],
        attempts: Sequence[Attempt[Any]] = (),
        *,
        problem: str = "",
    ) -> None:
        super().__init__(what, problem or _votes(threshold, votes, attempts), attempts)
        self.threshold = threshold
        self.votes = votes


def check(what: str, nodes: Sequence[NodeId], end: float, now: float) -> None:
    """Refuse what cannot be done, before anything is sent.

    :raises ValueError: for a node that is there twice, and for an end that is no moment (rule 6: every wait has one).
    :raises NoCandidates: without nodes.
    :raises DeadlineExceeded: for an end that is past.
    """
    if not math.isfinite(end):
        raise ValueError(f"{what}: the end of a request is a moment in loop time, not {end}")
    if not nodes:
        raise NoCandidates(what, "there is no node to ask")
    if len(nodes) > 1 and len(set(nodes)) < len(nodes):
        raise ValueError(f"{what}: a node is there twice: {enumerate_some(nodes)}")
    if end <= now:
        hint = ""
        if 0 <= end < _NO_MOMENT < now - end:
            hint = "; a deadline is a moment in loop time: nodes.clock.now() + seconds"
        raise DeadlineExceeded(what, f"its time was over {now - end:.3g} s ago: no node was asked{hint}")


def last_resort(nodes: Iterable[NodeId], attempts: Iterable[Attempt[T]]) -> Sourced[T] | None:
    """Return the answer to be taken where none won: the usable one of the first node that gave one."""
    usable = {a.node_id: a.answer for a in attempts if a.doubt is not None and a.doubt.usable}
    return next((usable[node_id] for node_id in nodes if node_id in usable), None)


def failure(what: str, nodes: Sequence[NodeId], attempts: Sequence[Attempt[T]], *, over: bool) -> FallbackError:
    """Return what is to be raised where no answer is to be taken.

    "Not found" is the answer when all say so (Q3), that is all who could be asked.

    :param over: whether the time was over, so that there may have been more to come.
    """
    last = {attempt.node_id: attempt for attempt in attempts}
    attempts = [last[node_id] for node_id in nodes if node_id in last]
    if over:
        late = [f"{node_id}: not asked" for node_id in nodes if node_id not in last]
        return DeadlineExceeded(what, _because("no answer in time", attempts, late), attempts)
    absent = [attempt.error for attempt in attempts if isinstance(attempt.error, NotFound)]
    having_a_say = [attempt for attempt in attempts if not isinstance(attempt.error, NO_SAY)]
    if absent and len(absent) == len(having_a_say):
        return absent[0]
    count = len(attempts)
    problem = "the only node failed" if count == 1 else f"all {count} nodes failed"
    return AllNodesFailed(what, _because(problem, attempts), attempts)


def tell(report: Report[T] | None, attempt: Attempt[T]) -> None:
    """Report an attempt; a report that raises is logged and costs nobody."""
    if report is not None:
        try:
            report(attempt)
        except Exception:
            logger.exception("reporting an attempt at %s", attempt.node_id)


def _because(problem: str, attempts: Sequence[Attempt[T]], more: Sequence[str] = ()) -> str:
    reasons = [f"{a.node_id}: {cut(a.words)}" for a in attempts]
    return f"{problem}: {enumerate_some([*reasons, *more], '; ')}"


def _votes(threshold: int, votes: Mapping[Hashable, tuple[NodeId, ...]], attempts: Sequence[Attempt[Any]]) -> str:
    last = {attempt.node_id: attempt for attempt in attempts}
    for voters in votes.values():
        for node_id in voters:
            last.pop(node_id, None)
    for_each = [f"{_key(key)} by {enumerate_some(voters)}" for key, voters in votes.items()]
    without = [f"{node_id}: {cut(attempt.words)}" for node_id, attempt in last.items()]
    found = enumerate_some([*for_each, *without], "; ") or "no node answered"
    return f"{threshold} nodes have to give the same: {found}"


def _key(key: Hashable) -> str:
    return f"0x{key[:4].hex()}…" if isinstance(key, bytes) else printable(str(key), 40)


def cut(words: str) -> str:
    """Shorten what one node is said to have said, so that several fit in an error (rule 6)."""
    return words if len(words) <= _LONGEST_REASON else words[: _LONGEST_REASON - 1] + "…"


def enumerate_some(parts: Sequence[str], between: str = ", ") -> str:
    """Write the first of these, and how many more there are (rule 6)."""
    shown = between.join(parts[:_MOST_SHOWN])
    left = len(parts) - _MOST_SHOWN
    return f"{shown}{between}and {left} more" if left > 0 else shown
