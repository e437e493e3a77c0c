"""What one node is asked for on one connection of other topics, and what its refusals change (T4; cases 4 to 7)."""

import re
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

from vc_fallback.base.backoff import Backoff, BackoffPolicy
from vc_fallback.decide.topic_tiers import Lack

_REMEMBERED = 128
"""Topics of which refusals are remembered: twice as many as can be subscribed to at once."""

_EXPECTED = re.compile(r"\b(?:expected|valid|allowed|supported)\b[^:]{0,40}(?:one of|are|topics|:)", re.IGNORECASE)


@dataclass(slots=True)
class _Refused:
    again: float
    lack: Lack


class TopicRequests:
    """Finds the topics that a node knows, so that one which it does not know costs the others nothing.

    A set that is refused with words that name a topic is asked for without that one. Where the words name none the set
    is halved: each half is asked for beside what the node is known to take, until the one that it refuses is alone. A
    refused topic is asked for again beside the others, after 1, 2, 4 … 30 s (T4). What was found out holds for as long
    as the node's version is the same.
    """

    __slots__ = ("_accepted", "_apart", "_backoffs", "_make_backoff", "_refused", "policy", "version")

    def __init__(self, policy: BackoffPolicy, make_backoff: Callable[[BackoffPolicy], Backoff] = Backoff) -> None:
        self.policy = policy
        self.version = ""
        self._make_backoff = make_backoff
        self._accepted: dict[str, float] = {}
        """The topics that the node takes, with the moment of its answer."""
        self._apart: deque[frozenset[str]] = deque()
        """Sets that are to be asked for one after the other, as all of them together were refused."""
        self._refused: dict[str, _Refused] = {}
        self._backoffs: dict[str, Backoff] = {}

    @property
    def reduced(self) -> bool:
        """Whether the node refused something."""
        return bool(self._refused or self._apart)

    def lack(self, topic: str) -> Lack | None:
        """Return why a topic is not asked for now."""
        refused = self._refused.get(topic)
        return refused.lack if refused is not None else None

    def refusals(self) -> dict[str, str]:
        """Return the refused topics, each with the node's words."""
        return {topic: refused.lack.words for topic, refused in sorted(self._refused.items())}

    def next(self, wanted: Collection[str], now: float) -> frozenset[str]:
        """Return the topics that the next request is to carry, of those that are wanted."""
        if len(self._backoffs) > _REMEMBERED:
            # Of topics that are not wanted any more nothing is remembered for ever (rule 6).
            for kept in (self._backoffs, self._refused, self._accepted):
                for topic in kept.keys() - set(wanted):
                    del kept[topic]
        apart = frozenset().union(*self._apart)
        base = frozenset(topic for topic in wanted if topic not in self._refused and topic not in apart)
        for group in self._apart:
            trial = group.intersection(wanted)
            if trial:
                return base | trial
        due = [(refused.again, topic) for topic, refused in self._refused.items() if topic in wanted]
        # One at a time: of two in one request the node need not say which it refuses.
        return base | {min(due)[1]} if due and min(due)[0] <= now else base

    def next_try(self, wanted: Collection[str]) -> float | None:
        """Return when a refused topic is to be asked for again, in loop time."""
        return min((refused.again for topic, refused in self._refused.items() if topic in wanted), default=None)

    def accept(self, topics: Collection[str], now: float) -> None:
        """Take that the node answered a request with a stream."""
        for topic in topics:
            self._accepted.setdefault(topic, now)
            self._refused.pop(topic, None)
        left = (group.difference(topics) for group in self._apart)
        self._apart = deque(group for group in left if group)

    def refuse(self, topics: Collection[str], words: str, now: float) -> frozenset[str]:
        """Take a 400 on a request; return the topics that are given up for it."""
        asked = frozenset(topics)
        # Some say behind that what they would have taken.
        named = _named(asked, _EXPECTED.split(words)[0]) or _named(asked, words)
        # What it took before it knows: its words list that, too.
        named = named.difference(self._accepted) or named
        if named and (named != asked or len(asked) == 1):
            for topic in named:
                self.give_up(topic, words, now)
            return named
        doubted = asked.difference(self._accepted) or asked
        left = (group - doubted for group in self._apart)
        self._apart = deque(group for group in left if group)
        ordered = sorted(doubted)
        if len(ordered) == 1:
            self.give_up(ordered[0], words, now)
            return doubted
        for topic in ordered:
            # Not even what it took before: it is another node, or its refusal is about something else.
            self._accepted.pop(topic, None)
        half = len(ordered) // 2
        self._apart.extendleft((frozenset(ordered[half:]), frozenset(ordered[:half])))
        return frozenset()

    def give_up(self, topic: str, words: str, now: float, *, refused: bool = True) -> None:
        """Ask for a topic no more until its wait is over: it was refused, or nothing of it could be read."""
        backoff = self._backoffs.setdefault(topic, self._make_backoff(self.policy))
        backoff.policy = self.policy
        accepted = self._accepted.pop(topic, None)
        if accepted is not None and now - accepted >= self.policy.cap:
            # It went well for longer than any wait: this is a new trouble.
            backoff.reset()
        self._refused[topic] = _Refused(now + backoff.failed(), Lack(words, refused, now))

    def loud(self, topic: str) -> bool:
        """Whether the last refusal of a topic deserves a warning: number 1, 2, 4, 8, … in a row (H9)."""
        backoff = self._backoffs.get(topic)
        return backoff is not None and backoff.loud

    def seen_version(self, version: str) -> None:
        """Ask for everything again where the node's version string is another than before."""
        if version and version != self.version:
            if self.version:
                self.forget()
            self.version = version

    def names(self, topics: Collection[str], words: str) -> bool:
        """Whether words name one of some topics."""
        return bool(_named(topics, words))

    def forget(self) -> None:
        """Forget what was found out."""
        self._accepted.clear()
        self._apart.clear()
        self._refused.clear()
        self._backoffs.clear()


def _named(topics: Collection[str], words: str) -> frozenset[str]:
    return frozenset(topic for topic in topics if re.search(rf"(?<!\w){re.escape(topic)}(?!\w)", words))
